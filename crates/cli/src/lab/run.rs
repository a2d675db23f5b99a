//! `linerate lab run`.

use super::arguments::{EmulatorKind, Outputs, Vary};
use super::experiment;
use crate::exit::{Exit, Failure};

/// Arguments of `lab run`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Built-in scenarios (`linerate lab list`), or scenario files (`docs/scenarios.md`)
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<String>,
    #[command(flatten)]
    vary: Vary,
    #[command(flatten)]
    outputs: Outputs,
    /// What carries the packets
    #[arg(long, value_enum, default_value_t)]
    emulator: EmulatorKind,
}

/// Runs the scenarios one after the other.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let scenarios =
        arguments.scenarios.iter().map(|name| super::load(name, &arguments.vary)).collect::<Result<Vec<_>, _>>()?;
    experiment::run(&scenarios, &arguments.outputs, arguments.emulator)
}
