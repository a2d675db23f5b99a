//! `linerate sim`: the lab's scenarios in virtual time.

mod compare_lab;
mod experiment;
mod fill;
mod sweep;

use clap::{Args, Subcommand};

use crate::exit::{Exit, Failure};
use crate::lab::{Outputs, Vary, load};
pub use experiment::run_scenarios;

/// `sim SCENARIO…`, or a subcommand.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Run,
}

#[derive(Subcommand)]
enum Command {
    /// Run scenarios on this kernel and in the simulator, and print the difference
    CompareLab(compare_lab::Arguments),
}

/// Arguments of a run.
#[derive(Args)]
struct Run {
    /// Built-in scenarios (`linerate lab list`), or scenario files (`docs/scenarios.md`)
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// How many flows of the scenario's first kind
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=60_000))]
    flows: Option<u16>,
    /// Run the scenario once for each value: `flows=1,10,100`, `rate=10mbit,1gbit`, `duration=10s,60s`. May be repeated; every
    /// combination is run
    #[arg(long, value_name = "KEY=A,B,…")]
    sweep: Vec<String>,
    /// Runs at the same time; without it, as many as there are CPUs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    vary: Vary,
    #[command(flatten)]
    outputs: Outputs,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Some(Command::CompareLab(arguments)) => compare_lab::run(arguments),
        None => {
            let run = &arguments.run;
            let mut scenarios =
                run.scenarios.iter().map(|name| load(name, &run.vary)).collect::<Result<Vec<_>, _>>()?;
            if let Some(flows) = run.flows {
                scenarios.iter_mut().try_for_each(|scenario| sweep::set_flows(scenario, flows))?;
            }
            let scenarios = sweep::expand(scenarios, &run.sweep)?;
            run_scenarios(&scenarios, &run.outputs, run.jobs.map(usize::from), Vec::new())
        }
    }
}
