//! `linerate sim compare-lab`: both drivers over the same scenarios, and how far apart they are.

use std::path::PathBuf;

use clap::Args;
use report::{LabReport, SimDifference};

use super::experiment::simulate;
use crate::exit::{Exit, Failure};
use crate::lab::experiment::measure;
use crate::lab::{EmulatorKind, Outputs, Vary, load};
use crate::{output, stop};

/// Arguments of `sim compare-lab`.
#[derive(Args)]
pub struct Arguments {
    /// Built-in scenarios, or scenario files
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<String>,
    #[command(flatten)]
    vary: Vary,
    /// A report of `lab run --json` of the same scenarios, instead of running the lab now
    #[arg(long, value_name = "FILE")]
    lab: Option<PathBuf>,
    /// Write the comparison as JSON (`-` is standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the lab's report as JSON as well
    #[arg(long, value_name = "FILE")]
    lab_json: Option<PathBuf>,
}

/// Prints the comparison; exit code 1 where a cell is further off than the simulator promises.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let scenarios =
        arguments.scenarios.iter().map(|name| load(name, &arguments.vary)).collect::<Result<Vec<_>, _>>()?;
    for file in [&arguments.json, &arguments.lab_json].into_iter().flatten() {
        output::check_writable(file)?;
    }
    let stop = stop::on_signal()?;
    let mut lab = match &arguments.lab {
        Some(file) => {
            let failed = |error: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {error}", file.display()));
            let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
            LabReport::from_json(&text).map_err(|error| failed(&error))?
        }
        None => measure(&scenarios, &Outputs::default(), EmulatorKind::Model, &stop)?.0,
    };
    crate::lab::experiment::summarise(&mut lab);
    if let Some(file) = &arguments.lab_json {
        output::write(file, &lab.to_json())?;
    }
    let mut simulated = simulate(&scenarios, None, &stop)?;
    crate::lab::experiment::summarise(&mut simulated);
    let differences = report::sim_differences(&lab, &simulated);
    if differences.is_empty() {
        return Err(Failure::failed("nothing was compared: there is no cell of which both have a valid run"));
    }
    let to_stdout = arguments.json.as_deref() == Some(std::path::Path::new("-"));
    let table = report::render_sim_differences(&differences, output::width(), output::colour() && !to_stdout);
    if to_stdout {
        eprint!("{table}");
    } else {
        output::print(&table)?;
    }
    if let Some(file) = &arguments.json {
        let text = serde_json::to_string_pretty(&serde_json::json!({
            "schema": "linerate.sim-compare-lab/1",
            "linerate_version": env!("CARGO_PKG_VERSION"),
            "kernel": lab.kernel,
            "command_line": std::env::args().collect::<Vec<_>>(),
            "started_at": simulated.started_at,
            "differences": differences,
        }));
        output::write(file, &format!("{}\n", text.map_err(Failure::failed)?))?;
    }
    let far = differences.iter().any(SimDifference::is_far);
    Ok(if far || lab.partial || simulated.partial { Exit::Found } else { Exit::Done })
}
