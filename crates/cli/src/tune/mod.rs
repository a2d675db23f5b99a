//! `linerate tune`: the whole job, measured.

mod end;
mod host;
mod idle;
mod job;
mod lab;
mod peer;
mod show;
mod text;

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tuning::plan::{Change, ChangeKind, Place, Plan, Role, Target};
use tuning::tune::{Difference, Limits, Options, Outcome, Part, parts, run as decide};
use units::{Duration, Probability, Rate};

use job::Explore;
pub use peer::split_port;

use crate::exit::{Exit, Failure};
use crate::lab::quantity;
use crate::{change, document, output, stop};

const CONTROL: &str = "net.ipv4.tcp_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

/// Arguments of `tune`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("path").required(true).args(["lab", "peer"]))]
pub struct Arguments {
    /// Tune this host for the path to a host where `linerate serve` (or `iperf3 -s`) runs
    #[arg(long, value_name = "HOST[:PORT]")]
    peer: Option<String>,
    /// Do the job with both ends in the lab: a built-in scenario (`linerate lab list`) or a scenario file. Touches nothing on the host
    #[arg(long, value_name = "SCENARIO")]
    lab: Option<String>,
    /// What the host is for: web, proxy, bulk, video, database or workstation
    #[arg(long, value_parser = super::plan::role, default_value = "bulk", value_name = "ROLE")]
    role: Role,
    /// Congestion controls to choose from; the one that carries most is proposed
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    cc: Option<Vec<String>>,
    /// What the path can carry, where you know it; measured otherwise, with as many connections as it takes
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>)]
    bandwidth: Option<Rate>,
    /// The path's loss, where the scenario has several, such as 1.5%
    #[arg(long, value_name = "P", value_parser = quantity::<Probability>, conflicts_with = "peer")]
    loss: Option<Probability>,
    /// Pairs of runs for each decision; with fewer than six no difference can be told from chance at 5 %
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u32).range(6..=100))]
    pairs: u32,
    /// Length of one run, warm-up included
    #[arg(long, default_value = "6s", value_name = "T", value_parser = quantity::<Duration>)]
    duration: Duration,
    /// Left out of the figures at a run's start
    #[arg(long, default_value = "2s", value_name = "T", value_parser = quantity::<Duration>)]
    warmup: Duration,
    /// First seed of all randomness
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Measure the path and print the plan; try nothing
    #[arg(long)]
    dry_run: bool,
    /// Write everything as JSON (`-` is standard output)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    real: Real,
}

/// What only a real path has.
#[derive(clap::Args)]
#[command(next_help_heading = "On a real path")]
struct Real {
    /// What is measured: what this host sends (`forward`), receives (`reverse`), or both at once
    #[arg(long, value_enum, default_value_t, conflicts_with = "lab")]
    direction: Direction,
    /// Do it without asking
    #[arg(long, short, conflicts_with = "lab")]
    yes: bool,
    /// At the end, undo everything by itself after this time (1s to 1h) unless `linerate confirm` comes; a restart undoes it too
    #[arg(long, value_name = "T", conflicts_with = "lab", value_parser = quantity::<Duration>)]
    confirm: Option<Duration>,
    /// Keep what helped until the next restart only: no file is written
    #[arg(long, conflicts_with = "lab")]
    live_only: bool,
    /// Where the job is stopped or the peer goes away, keep what was decided by then instead of putting everything back
    #[arg(long, conflicts_with = "lab")]
    keep_partial: bool,
    /// Token for a server that wants one
    #[arg(long, value_name = "FILE", conflicts_with = "lab")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    place: change::TrialPlace,
}

/// Who sends in the runs.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Direction {
    /// This host sends
    #[default]
    Forward,
    /// The peer sends
    Reverse,
    /// Both at once
    Both,
}

/// What was found out about the path before anything was changed.
#[derive(Debug, Clone, serde::Serialize)]
struct Path {
    /// What it carries.
    bandwidth_bps: u64,
    /// How that is known.
    bandwidth_from: String,
    /// Round-trip time without a queue.
    rtt_ms: f64,
}

/// Does the job.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(file) = &arguments.json {
        output::check_writable(file)?;
    }
    if arguments.warmup >= arguments.duration {
        return Err(Failure::usage(format_args!(
            "--warmup {} leaves nothing of --duration {}",
            arguments.warmup, arguments.duration
        )));
    }
    match (&arguments.lab, &arguments.peer) {
        (Some(scenario), _) => in_the_lab(arguments, scenario),
        (None, Some(peer)) => peer::run(arguments, peer),
        (None, None) => Err(Failure::usage("name a --peer, or a scenario for --lab")),
    }
}

fn in_the_lab(arguments: &Arguments, scenario: &str) -> Result<Exit, Failure> {
    let started = document::head("tune");
    let mut ends = lab::LabEnds::start(arguments, scenario, stop::on_signal()?)?;
    ends.line().doing("The ends as they are".to_owned());
    let usual = ends.usual_control().to_owned();
    let carried_bps = ends.look(&usual, 1, 0)?.carried_bps;
    ends.line().ran(&format!("{usual}: {}", Rate::from_bps(carried_bps as u64)));
    let (path, first) = job::find_path(&mut ends, arguments.bandwidth)?;
    let chosen = job::choose_control(&mut ends, first)?;
    let mut plan = ends.plan(&target(arguments, &path), chosen.as_ref().map(|chosen| chosen.control.as_str()))?;
    job::propose_measured(&mut plan, &job::Chosen { control: usual, carried_bps }, chosen.as_ref());
    let (possible, elsewhere) = split(parts(&plan));
    eprint!("{}", text::plan(&path, &possible, &elsewhere));
    if arguments.dry_run {
        return finish_lab(arguments, started, &path, &plan, None, &ends);
    }
    let outcome = with_options(arguments, |options| decide(&mut ends, possible, options))?;
    finish_lab(arguments, started, &path, &plan, Some(&outcome), &ends)
}

fn target(arguments: &Arguments, path: &Path) -> Target {
    Target {
        bandwidth: Rate::from_bps(path.bandwidth_bps),
        rtt: Duration::from_nanos((path.rtt_ms * 1e6) as u64),
        role: arguments.role,
        connections: None,
    }
}

fn with_options<T>(arguments: &Arguments, job: impl FnOnce(&mut Options<'_>) -> T) -> T {
    let mut coin = show::Coin::new(arguments.seed);
    job(&mut Options {
        pairs: arguments.pairs,
        limits: Limits::default(),
        differ: &differ,
        with_first: &mut || coin.toss(),
    })
}

/// What can be set in a network namespace of its own, and what belongs to the whole host and is left alone.
fn split(parts: Vec<Part>) -> (Vec<Part>, Vec<Change>) {
    let mut elsewhere = Vec::new();
    let mut possible = Vec::new();
    for part in parts {
        let (here, host): (Vec<Change>, Vec<Change>) = part.changes.into_iter().partition(|change| {
            change.kind == ChangeKind::Sysctl && (change.place == Place::Namespace || change.key == CONTROL)
        });
        elsewhere.extend(host);
        if !here.is_empty() {
            possible.push(Part { block: part.block, changes: here });
        }
    }
    (possible, elsewhere)
}

/// Two series by the signed-rank test.
fn differ(with: &[f64], without: &[f64]) -> Difference {
    let pairs: Vec<(f64, f64)> = without.iter().copied().zip(with.iter().copied()).collect();
    let none = Difference { estimate: 0.0, low: 0.0, high: 0.0, p: 1.0 };
    measure::stats::signed_rank(&pairs, 0.95).map_or(none, |test| {
        let (low, high) = test.interval.map_or((test.shift, test.shift), |interval| (interval.low, interval.high));
        Difference { estimate: test.shift, low, high, p: test.p }
    })
}

fn finish_lab(
    arguments: &Arguments,
    mut document: Map<String, Value>,
    path: &Path,
    plan: &Plan,
    outcome: Option<&Outcome>,
    ends: &lab::LabEnds,
) -> Result<Exit, Failure> {
    if let Some(file) = &arguments.json {
        document.insert("simulated".into(), false.into());
        document.insert("lab".into(), json!(ends.name()));
        document.insert("seed".into(), arguments.seed.into());
        document.insert("path".into(), json!(path));
        document.insert("plan".into(), json!(plan));
        document.insert("limits".into(), json!(Limits::default()));
        document.insert("runs".into(), json!(ends.runs()));
        if let Some(outcome) = outcome {
            document.insert("outcome".into(), json!(outcome));
        }
        output::write(file, &document::text(document)?)?;
    }
    let Some(outcome) = outcome else { return Ok(Exit::Done) };
    if arguments.json.as_deref() != Some(std::path::Path::new("-")) {
        let mut said = text::outcome(outcome, ends.published(), output::width());
        said += &text::settings(outcome);
        said += &text::invalid(ends.invalid_runs(), output::width());
        output::print(&said)?;
    }
    Ok(if outcome.partial || ends.stopped() || ends.invalid_runs() > 0 { Exit::Found } else { Exit::Done })
}
