//! Runs scenarios cell by cell on all cores, shows how far it is, and writes the report. Ctrl-C keeps what was simulated.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::{LabReport, RunReport};
use scenario::{Cell, ExpandedFlow, Scenario};
use sim::{CellOutcome, Options, RunError, run_cell};
use units::Duration;

use super::fill;
use crate::exit::{Exit, Failure};
use crate::lab::Outputs;
use crate::lab::experiment::{check_outputs, finish, new_report};
use crate::lab::fill::scenario_report;
use crate::stop;

/// What carries the packets, in reports.
pub const CARRIER: &str = "simulator";
/// From one look at the progress to the next.
const TICK: std::time::Duration = std::time::Duration::from_millis(100);

/// One run to make.
struct Job<'a> {
    scenario: &'a Scenario,
    flows: &'a [ExpandedFlow],
    cell: Cell,
}

/// Runs every cell of `scenarios`, prints the table and writes the files asked for. `warnings` go into the report.
pub fn run_scenarios(
    scenarios: &[Scenario],
    outputs: &Outputs,
    jobs: Option<usize>,
    warnings: Vec<String>,
) -> Result<Exit, Failure> {
    check_outputs(outputs)?;
    if let Some(file) = &outputs.pcap {
        let name = file.display();
        return Err(Failure::usage(format_args!(
            "--pcap {name}: the simulator has no packets to capture; run the lab"
        )));
    }
    let stop = stop::on_signal()?;
    let mut report = simulate(scenarios, jobs, &stop)?;
    report.warnings.extend(warnings);
    finish(&mut report, outputs)?;
    Ok(if report.partial || report.results.iter().any(|run| !run.valid) { Exit::Found } else { Exit::Done })
}

/// Runs every cell of `scenarios`.
///
/// # Errors
/// What makes a scenario impossible to simulate, before anything is run.
pub fn simulate(scenarios: &[Scenario], jobs: Option<usize>, stop: &AtomicBool) -> Result<LabReport, Failure> {
    check(scenarios)?;
    let expanded: Vec<Vec<ExpandedFlow>> = scenarios.iter().map(Scenario::expanded_flows).collect();
    let mut plan = Vec::new();
    for (scenario, flows) in scenarios.iter().zip(&expanded) {
        let cells = scenario.cells().map_err(Failure::usage)?;
        plan.extend(cells.into_iter().map(|cell| Job { scenario, flows, cell }));
    }
    let threads = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    let mut report = new_report().simulated();
    report.scenarios = scenarios.iter().map(|scenario| scenario_report(scenario, CARRIER)).collect();
    let results = work(&plan, threads, stop)?;
    let made = results.iter().flatten().count();
    for (outcome, job) in results.into_iter().zip(&plan) {
        let Some((run, without_effect)) = outcome else { continue };
        for key in without_effect {
            let warning = format!("{key} of {} has no effect in the simulator", job.scenario.name);
            if !report.warnings.contains(&warning) {
                report.warnings.push(warning);
            }
        }
        report.results.push(run);
    }
    let stopped = report.results.iter().any(|run| run.invalid_reason.as_deref() == Some(report::STOPPED));
    if made < plan.len() || stopped {
        report.partial = true;
        report.partial_reason = Some("stopped by a signal".to_owned());
    }
    Ok(report)
}

/// Refuses a congestion control that the simulator does not have.
fn check(scenarios: &[Scenario]) -> Result<(), Failure> {
    for scenario in scenarios {
        let profiles = scenario.profiles.iter().map(|profile| &profile.congestion_control);
        for name in profiles.chain(scenario.flows.iter().filter_map(|flow| flow.congestion_control.as_ref())) {
            if let Err(error) = sim::controller(name, 0) {
                return Err(Failure::usage(format_args!("{}: {error}", scenario.name)));
            }
        }
    }
    Ok(())
}

type Made = Option<(RunReport, Vec<String>)>;
type MadeOrNot = Result<(RunReport, Vec<String>), RunError>;

/// The jobs on `threads` threads, longest-running cells no sooner than others: the results are in the order of the jobs and do not
/// depend on how many threads there are.
fn work(plan: &[Job<'_>], threads: usize, stop: &AtomicBool) -> Result<Vec<Made>, Failure> {
    let begun = Instant::now();
    let next = AtomicUsize::new(0);
    let (reached_ms, finished) = (AtomicU64::new(0), AtomicUsize::new(0));
    let made: Vec<Mutex<Option<MadeOrNot>>> = plan.iter().map(|_| Mutex::new(None)).collect();
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(plan.len()) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = plan.get(number) else { break };
                    let started_after = begun.elapsed();
                    let mut before = Duration::ZERO;
                    let outcome = run_cell(job.scenario, &job.cell, &Options::default(), &mut |at, _| {
                        reached_ms.fetch_add((at - before).as_millis(), Ordering::Relaxed);
                        before = at;
                        !stop.load(Ordering::Relaxed)
                    });
                    let result = outcome.map(|outcome: CellOutcome| {
                        let run = fill::run_report(job.scenario, &job.cell, job.flows, &outcome, started_after);
                        (run, outcome.without_effect)
                    });
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    if let Ok(mut slot) = made[number].lock() {
                        *slot = Some(result);
                    }
                    finished.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        watch(plan, stop, &failed, &reached_ms, &finished);
    });
    made.into_iter().map(|slot| slot.into_inner().ok().flatten().transpose().map_err(Failure::failed)).collect()
}

/// Shows how far the threads are until they are done.
fn watch(plan: &[Job<'_>], stop: &AtomicBool, failed: &AtomicBool, reached_ms: &AtomicU64, finished: &AtomicUsize) {
    let total: u64 = plan.iter().map(|job| job.scenario.run.duration.as_millis()).sum();
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar:.dim} {msg} (about {eta} left)") {
        bar.set_style(style);
    }
    let runs = plan.len();
    let begun = Instant::now();
    let mut told = false;
    loop {
        let done = finished.load(Ordering::Relaxed);
        if done >= runs || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
            break;
        }
        if !terminal && !told && begun.elapsed().as_secs() >= 2 {
            told = true;
            eprintln!(
                "Simulating {runs} run{} of {:.0} s in all …",
                if runs == 1 { "" } else { "s" },
                total as f64 / 1e3
            );
        }
        bar.set_message(format!("{done} of {runs} simulated"));
        bar.set_position(reached_ms.load(Ordering::Relaxed));
        std::thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}
