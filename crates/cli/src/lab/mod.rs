//! `linerate lab`: experiments on one machine.

mod arguments;
pub mod bbr3;
mod compare;
pub mod experiment;
pub mod fill;
mod list;
mod path;
mod run;
mod shell;
mod web;

use std::path::Path;

use clap::Subcommand;
use scenario::{Cell, FileSource, Overrides, QueueSpec, Scenario};

use crate::exit::{Exit, Failure};
use crate::output;
pub use arguments::{EmulatorKind, Outputs, Vary, quantity};

/// The subcommands of `lab`.
#[derive(Subcommand)]
pub enum Command {
    /// List the built-in scenarios
    List(list::Arguments),
    /// Run scenarios: every variant over the emulated path, in one table
    Run(run::Arguments),
    /// Run congestion controls over a path given on the command line
    Path(path::Arguments),
    /// Open a shell at the near end of an emulated path: bring your own iperf3, curl or browser
    Shell(shell::Arguments),
    /// Load a web page through a path and report First Contentful Paint and load time
    Web(web::Arguments),
    /// Compare the reports of two runs
    Compare(compare::Arguments),
}

/// Runs one of them.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::List(arguments) => list::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Path(arguments) => path::run(&arguments),
        Command::Shell(arguments) => shell::run(&arguments),
        Command::Web(arguments) => web::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
    }
}

/// What every experiment needs of the system, asked for while the process has one thread.
pub fn prerequisites() -> Result<(), Failure> {
    host::userns::enter_if_needed().map(|_| ()).map_err(Failure::failed)
}

/// A scenario is written by people: larger files are something else.
const MOST_SCENARIO_BYTES: u64 = 1 << 20;
/// Five minutes at 1 Gbit/s.
const MOST_TRACE_BYTES: u64 = 256 << 20;

/// Files next to a scenario file.
struct Folder<'a>(&'a Path);

impl FileSource for Folder<'_> {
    fn read(&self, name: &str) -> Result<String, String> {
        let file = self.0.join(name);
        output::read_text(&file, MOST_TRACE_BYTES).map_err(|error| format!("{}: {error}", file.display()))
    }
}

/// A built-in scenario by name, or a file, with what the command line changes.
pub fn load(name: &str, vary: &Vary) -> Result<Scenario, Failure> {
    load_plain(name)?.with_overrides(overrides(vary)?).map_err(Failure::usage)
}

/// A built-in scenario by name, or a file, as it is.
pub fn load_plain(name: &str) -> Result<Scenario, Failure> {
    let file = Path::new(name);
    if name.contains('/') || file.extension().is_some_and(|e| e == "toml") {
        let text = output::read_text(file, MOST_SCENARIO_BYTES)
            .map_err(|error| Failure::usage(format_args!("{name}: {error}")))?;
        let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Scenario::parse(&text, name, &Folder(folder)).map_err(Failure::usage)
    } else {
        Scenario::builtin(name).map_err(Failure::usage)
    }
}

fn overrides(vary: &Vary) -> Result<Overrides, Failure> {
    let queue =
        |text: &String| text.parse::<QueueSpec>().map_err(|e| Failure::usage(format_args!("--queue {text}: {e}")));
    Ok(Overrides {
        profiles: vary.profile.clone(),
        congestion_controls: vary.cc.clone(),
        losses: vary.loss.clone(),
        rtts: vary.rtt.clone(),
        queues: vary.queue.as_ref().map(|all| all.iter().map(queue).collect()).transpose()?,
        buffers: vary.buffers,
        repeats: vary.repeat,
        seed: vary.seed,
        duration: vary.duration,
        warmup: vary.warmup,
    })
}

/// The cell that commands with one path use.
pub fn first_cell(scenario: &Scenario) -> Result<Cell, Failure> {
    let cells = scenario.cells().map_err(Failure::usage)?;
    cells.into_iter().next().ok_or_else(|| Failure::usage("the scenario has no variant to run"))
}
