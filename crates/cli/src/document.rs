//! The head that every JSON document of a command has.

use serde_json::{Map, Value};

use crate::exit::Failure;
use crate::output;

/// `schema` (`linerate.COMMAND/1`), `linerate_version`, `kernel`, `command_line`, `started_at`.
pub fn head(command: &str) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("schema".into(), format!("linerate.{command}/1").into());
    map.insert("linerate_version".into(), env!("CARGO_PKG_VERSION").into());
    map.insert("kernel".into(), release().into());
    map.insert("command_line".into(), std::env::args().collect::<Vec<_>>().into());
    map.insert("started_at".into(), humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string().into());
    map
}

/// The running kernel's release; empty where the system does not say.
pub fn release() -> String {
    nix::sys::utsname::uname().map_or_else(|_| String::new(), |name| name.release().to_string_lossy().into_owned())
}

/// A document as text, ending in a line feed.
///
/// # Errors
/// Never for what this program makes.
pub fn text(map: Map<String, Value>) -> Result<String, Failure> {
    serde_json::to_string_pretty(&Value::Object(map)).map(|text| text + "\n").map_err(Failure::failed)
}

/// Prints a document.
pub fn print(map: Map<String, Value>) -> Result<(), Failure> {
    output::print(&text(map)?)
}
