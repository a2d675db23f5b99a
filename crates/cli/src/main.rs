//! `linerate`: arguments in, one library call, rendering out. Only here are exit codes chosen and text printed.
#![forbid(unsafe_code)]

mod audit;
mod bench;
mod cc;
mod change;
mod doctor;
mod document;
mod exit;
mod installed;
mod knobs;
mod lab;
mod lint;
mod output;
mod plan;
mod serve;
mod sim;
mod stop;
mod tune;
mod why;
mod wrap;

use std::io::Write;
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
    /// The lab's scenarios in virtual time: the same table, no kernel, no rights, thousands of flows
    Sim(Box<sim::Arguments>),
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
    /// What limits this host, with the evidence, what it costs and the fix. Reads only
    Audit(audit::Arguments),
    /// The smallest set of changes that a path and a role justify on this host, with the arithmetic. Changes nothing
    Plan(plan::Arguments),
    /// Makes a plan's changes as one transaction: journal first, read back, undone as a whole where anything fails
    Apply(Box<change::Apply>),
    /// Keeps what `apply --confirm` has made; without it, that undoes itself
    Confirm(change::Confirm),
    /// Puts back what was there before `apply`, to the byte, where it is still linerate's
    Rollback(change::Rollback),
    /// Compares live values and files with what was applied; after a restart, what did not survive and why. Changes nothing
    Verify(change::Verify),
    /// What was applied here, and what became of it
    History(change::History),
    /// Rolls everything back and removes the journals
    Uninstall(change::Uninstall),
    /// Watches a transaction that waits to be confirmed
    #[command(hide = true)]
    Guard(change::Guard),
    /// Sets again what a boot has reset
    #[command(hide = true)]
    Boot(change::Boot),
    /// The whole job, measured: finds the path, plans, tries each block of settings in paired runs, keeps what helped
    Tune(Box<tune::Arguments>),
    /// "No improvement", "back to cubic", "one core at 100 %": the questions of troubleshooting chapters, answered from evidence. Changes nothing
    Doctor(doctor::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Lab(command) => lab::run(command),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Bench(arguments) => bench::run(*arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Cc(command) => cc::run(command),
        Command::Knobs(arguments) => knobs::run(&arguments),
        Command::Lint(arguments) => lint::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Apply(arguments) => change::apply(&arguments),
        Command::Confirm(arguments) => change::confirm(&arguments),
        Command::Rollback(arguments) => change::rollback(&arguments),
        Command::Verify(arguments) => change::verify(&arguments),
        Command::History(arguments) => change::history(&arguments),
        Command::Uninstall(arguments) => change::uninstall(&arguments),
        Command::Guard(arguments) => change::guard(&arguments),
        Command::Boot(arguments) => change::boot(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
    };
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            // A terminal that is gone is no reason to panic.
            let _ = writeln!(std::io::stderr(), "linerate: {}", output::plain(&failure.to_string()));
            failure.code.into()
        }
    }
}
