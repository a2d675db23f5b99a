//! `linerate`: arguments in, one library call, rendering out. Only here are exit codes chosen and text printed.
#![forbid(unsafe_code)]

mod bench;
mod cc;
mod document;
mod exit;
mod knobs;
mod lab;
mod lint;
mod output;
mod plan;
mod serve;
mod stop;
mod wrap;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Takes a stock Linux host to line rate on real paths, with evidence. So far: the lab, which measures; BBRv3 for stock kernels; and what every
/// network knob means.
///
/// Exit codes: 0 done or clean; 1 found something (a difference, an invalid or partial run); 2 usage; 3 refused for safety;
/// 4 failed, nothing left behind; 5 failed, not undone; 130 ended by a second Ctrl-C.
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
    /// Measure a real path: goodput, delay under load, losses, against `linerate serve` or any iperf3 server
    Bench(Box<bench::Arguments>),
    /// Answer tests of `linerate bench` and of iperf3 clients; on loopback unless told otherwise, with limits
    Serve(Box<serve::Arguments>),
    /// Congestion controls of this kernel: which there really are, who uses them, and BBRv3 where the kernel has none
    #[command(subcommand)]
    Cc(cc::Command),
    /// What a sysctl means: unit, range, default, when to change it, risk, source. Reads only
    Knobs(knobs::Arguments),
    /// Judges sysctl files, profiles, scripts, playbooks and manifests before anyone applies them; says who wins. Changes nothing
    Lint(Box<lint::Arguments>),
    /// The smallest set of changes that a path and a role justify on this host, with the arithmetic. Changes nothing
    Plan(plan::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Lab(command) => lab::run(command),
        Command::Bench(arguments) => bench::run(*arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Cc(command) => cc::run(command),
        Command::Knobs(arguments) => knobs::run(&arguments),
        Command::Lint(arguments) => lint::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            eprintln!("linerate: {}", output::plain(&failure.to_string()));
            failure.code.into()
        }
    }
}
