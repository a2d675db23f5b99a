//! `linerate`: arguments in, one library call, rendering out. Only here are exit codes chosen and text printed.
#![forbid(unsafe_code)]

mod document;
mod exit;
mod knobs;
mod lab;
mod lint;
mod output;
mod stop;
mod wrap;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Takes a stock Linux host to line rate on real paths, with evidence. So far: the lab, which measures.
///
/// Exit codes: 0 done or clean; 1 found something (a difference, an invalid or partial run); 2 usage;
/// 4 failed, nothing left behind; 130 ended by a second Ctrl-C.
#[derive(Parser)]
#[command(name = "linerate", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run experiments with this kernel's real TCP over an emulated path, in private namespaces: nothing on the host is touched
    #[command(subcommand)]
    Lab(lab::Command),
    /// What a sysctl means: unit, range, default, when to change it, risk, source. Reads only
    Knobs(knobs::Arguments),
    Lint(Box<lint::Arguments>),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Lab(command) => lab::run(command),
        Command::Knobs(arguments) => knobs::run(&arguments),
        Command::Lint(arguments) => lint::run(&arguments),
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            eprintln!("linerate: {}", output::plain(&failure.to_string()));
            failure.code.into()
        }
    }
}
