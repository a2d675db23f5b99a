//! `linerate lab compare`.

use std::path::{Path, PathBuf};

use report::LabReport;

use crate::exit::{Exit, Failure};
use crate::output;

/// Arguments of `lab compare`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The first report, as `lab run --json` wrote it
    a: PathBuf,
    /// The second
    b: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Prints which cells differ; exit code 1 where one does.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let comparison = report::compare(&read(&arguments.a)?, &read(&arguments.b)?);
    if arguments.json {
        let text = serde_json::to_string_pretty(&serde_json::json!({
            "schema": "linerate.lab-compare/1",
            "linerate_version": env!("CARGO_PKG_VERSION"),
            "differs": comparison.differs(),
            "comparison": comparison,
        }));
        output::print(&format!("{}\n", text.map_err(Failure::failed)?))?;
    } else {
        output::print(&report::render_compare(&comparison, output::width(), output::colour()))?;
    }
    if comparison.figures.is_empty() {
        eprintln!("Nothing was compared: there is no cell of which both reports have a valid run.");
        return Ok(Exit::Found);
    }
    Ok(if comparison.differs() { Exit::Found } else { Exit::Done })
}

fn read(file: &Path) -> Result<LabReport, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    LabReport::from_json(&text).map_err(|error| failed(&error))
}
