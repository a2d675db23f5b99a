//! `linerate lab`: experiments on one machine.

mod arguments;
mod list;

use clap::Subcommand;

use crate::exit::{Exit, Failure};

/// The subcommands of `lab`.
#[derive(Subcommand)]
pub enum Command {
    /// List the built-in scenarios
    List(list::Arguments),
}

/// Runs one of them.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::List(arguments) => list::run(&arguments),
    }
}
