//! `linerate tune`: the whole job, measured.

mod lab;
mod show;
mod text;

use std::path::PathBuf;

use serde_json::json;
use tuning::plan::{Plan, Role, Target};
use tuning::tune::{Difference, Limits, Options, Outcome, parts, run as decide};
use units::{Duration, Probability, Rate};

use crate::exit::{Exit, Failure};
use crate::lab::quantity;
use crate::{document, output, stop};

/// Arguments of `tune`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Do the job with both ends in the lab: a built-in scenario (`linerate lab list`) or a scenario file. Touches nothing on the host
    #[arg(long, value_name = "SCENARIO")]
    lab: String,
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
    #[arg(long, value_name = "P", value_parser = quantity::<Probability>)]
    loss: Option<Probability>,
    /// Pairs of runs for each decision; with fewer than six no difference can be told from chance at 5 %
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u32).range(6..=100))]
    pairs: u32,
    /// Length of one run
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
    let started = document::head("tune");
    let mut ends = lab::LabEnds::start(arguments, stop::on_signal()?)?;
    let path = ends.find_path(arguments.bandwidth)?;
    let control = ends.choose_control()?;
    let plan = ends.plan(
        &Target {
            bandwidth: Rate::from_bps(path.bandwidth_bps),
            rtt: Duration::from_nanos((path.rtt_ms * 1e6) as u64),
            role: arguments.role,
            connections: None,
        },
        control.as_deref(),
    )?;
    let (possible, elsewhere) = ends.split(parts(&plan));
    eprint!("{}", text::plan(&path, &possible, &elsewhere));
    if arguments.dry_run {
        return finish(arguments, started, &path, &plan, None, &ends);
    }
    let mut coin = show::Coin::new(arguments.seed);
    let mut options =
        Options { pairs: arguments.pairs, limits: Limits::default(), differ: &differ, with_first: &mut || coin.toss() };
    let outcome = decide(&mut ends, possible, &mut options)?;
    finish(arguments, started, &path, &plan, Some(&outcome), &ends)
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

fn finish(
    arguments: &Arguments,
    mut document: serde_json::Map<String, serde_json::Value>,
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
        output::print(&text::outcome(outcome, ends.published(), ends.invalid_runs(), output::width()))?;
    }
    Ok(if outcome.partial || ends.stopped() || ends.invalid_runs() > 0 { Exit::Found } else { Exit::Done })
}
