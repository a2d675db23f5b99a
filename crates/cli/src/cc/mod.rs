//! `linerate cc`: this kernel's congestion controls.

mod trace;

use crate::exit::{Exit, Failure};

/// The subcommands.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Print what sockets on BBRv3 do, as they do it: changes of state, bounds, losses; or record every ACK for replay
    Trace(trace::Arguments),
}

/// Runs one.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Trace(arguments) => trace::run(&arguments),
    }
}
