//! What the subcommands print.

use serde_json::{Map, Value, json};

use super::Doing;
use crate::exit::{Exit, Failure};
use crate::output;

/// The head of a JSON document of `cc SUBCOMMAND`.
pub fn head(subcommand: &str) -> Map<String, Value> {
    let uname = nix::sys::utsname::uname().ok();
    let release = uname.as_ref().map_or_else(String::new, |uname| uname.release().to_string_lossy().into_owned());
    let mut map = Map::new();
    map.insert("schema".into(), format!("linerate.cc-{subcommand}/1").into());
    map.insert("linerate_version".into(), env!("CARGO_PKG_VERSION").into());
    map.insert("kernel".into(), release.into());
    map.insert("command_line".into(), std::env::args().collect::<Vec<_>>().into());
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    map.insert("started_at".into(), now.into());
    map
}

/// Prints a document.
pub fn print(map: Map<String, Value>) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&Value::Object(map)).map_err(Failure::failed)?;
    output::print(&format!("{text}\n"))
}

/// What a subcommand that changes something will do, or did.
pub struct Outcome {
    subcommand: &'static str,
    doing: Doing,
    fields: Map<String, Value>,
    steps: Vec<String>,
    notes: Vec<String>,
}

impl Outcome {
    /// Of `cc SUBCOMMAND`.
    pub fn new(subcommand: &'static str, doing: &Doing) -> Self {
        Self { subcommand, doing: doing.clone(), fields: head(subcommand), steps: Vec::new(), notes: Vec::new() }
    }

    /// One thing it will do, as an order: "load …".
    pub fn step(&mut self, text: impl Into<String>) {
        self.steps.push(text.into());
    }

    /// Something to know, in a sentence.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// A fact for the JSON document.
    pub fn fact(&mut self, key: &str, value: impl Into<Value>) {
        self.fields.insert(key.into(), value.into());
    }

    /// Whether nothing is to be done.
    pub fn dry_run(&self) -> bool {
        self.doing.dry_run
    }

    /// Prints it. `done` is the sentence for people.
    pub fn print(mut self, done: &str) -> Result<(), Failure> {
        if self.doing.json {
            self.fields.insert("dry_run".into(), self.doing.dry_run.into());
            self.fields.insert("steps".into(), json!(self.steps));
            self.fields.insert("notes".into(), json!(self.notes));
            return print(self.fields);
        }
        let mut text = String::new();
        if self.doing.dry_run {
            let rights = if self.steps.is_empty() { "nothing" } else { "this, and has done none of it" };
            text += &format!("linerate cc {} would do {rights}:\n", self.subcommand).replace("nothing:", "nothing.");
            for step in &self.steps {
                text += &format!("  {step}\n");
            }
        } else {
            text += &format!("{done}\n");
        }
        for note in &self.notes {
            text += &format!("{note}\n");
        }
        output::print(&output::plain(&text))
    }

    /// Prints it and ends well.
    pub fn finish(self, done: &str) -> Result<Exit, Failure> {
        self.print(done).map(|()| Exit::Done)
    }
}
