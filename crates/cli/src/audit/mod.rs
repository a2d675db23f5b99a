//! `linerate audit`: reads this host, asks `tuning`, shows what it says. Changes nothing.

pub mod gather;
mod observe;
mod text;
mod verbose;

use std::path::PathBuf;

use serde_json::{Value, json};
use tuning::audit::{Facts, Report, Severity, audit};
use units::Duration;

use crate::exit::{Exit, Failure};
use crate::{document, output};

/// Arguments of `audit`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Look at every TCP connection for this long, such as 60s: what holds them, round-trip times, losses, rates
    #[arg(long, value_name = "TIME", conflicts_with = "from")]
    observe: Option<Duration>,
    /// How often to look while observing; with very many connections it is stretched so that looking takes a quarter of one CPU at most
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "observe")]
    every: Duration,
    /// Judge the facts of a saved audit (its --json) instead of this host
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Show all notes in full, and the facts
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON (linerate.audit/1): `findings`, and `facts`, which `linerate plan --from` reads too
    #[arg(long)]
    json: bool,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

/// The shortest time between looks, and the shortest observation.
const SHORTEST: Duration = Duration::from_millis(10);

/// Reads, judges, prints.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    for (name, time) in [("--observe", arguments.observe), ("--every", Some(arguments.every))] {
        if time.is_some_and(|time| time < SHORTEST) {
            return Err(Failure::usage(format_args!("{name} needs {SHORTEST} at least")));
        }
    }
    output::check_writable(&arguments.output)?;
    // The head has the time at which reading begins.
    let mut head = document::head("audit");
    let facts = match &arguments.from {
        Some(file) => from_file(file)?,
        None => match arguments.observe {
            None => gather::this_host(),
            Some(time) => {
                let observed = observe::connections(time, arguments.every)?;
                Facts { observed: Some(observed), ..gather::this_host() }
            }
        },
    };
    let report = audit(&facts);
    let text = if arguments.json {
        let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
        head.insert("findings".into(), json!(report.findings));
        head.insert(
            "summary".into(),
            json!({
                "errors": count(Severity::Error),
                "warnings": count(Severity::Warning),
                "notes": count(Severity::Note),
            }),
        );
        head.insert("facts".into(), json!(facts));
        document::text(head)?
    } else {
        let mut text = text::render(&facts, &report, arguments.verbose, output::width());
        if arguments.verbose {
            text += &verbose::render(&facts, output::width());
        }
        output::plain(&text)
    };
    output::write(&arguments.output, &text)?;
    Ok(exit(&facts, &report))
}

/// Notes are no reason to fail; an observation that was cut short is.
fn exit(facts: &Facts, report: &Report) -> Exit {
    let found = report.findings.iter().any(|finding| finding.severity > Severity::Note);
    let partial = facts.observed.as_ref().is_some_and(|seen| seen.partial);
    if found || partial { Exit::Found } else { Exit::Done }
}

/// Some megabytes at most: a host with thousands of devices and listeners.
const MOST_BYTES: u64 = 64 << 20;

fn from_file(file: &std::path::Path) -> Result<Facts, Failure> {
    let name = file.display();
    let wrong = |why: String| Failure::usage(format_args!("{name}: {why}"));
    let text = output::read_text(file, MOST_BYTES).map_err(|error| wrong(error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("it is no JSON: {error}")))?;
    let facts = value.get("facts").cloned().unwrap_or(value);
    serde_json::from_value(facts)
        .map_err(|error| wrong(format!("it holds no facts: {error}; `linerate audit --json` shows how they look")))
}
