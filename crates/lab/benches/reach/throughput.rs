//! Rows that run TCP over the path.

use linerate_lab::run::{CellOutcome, Options, run_cell};
use path::RateModel;
use scenario::{AdHoc, Scenario};
use units::{Duration, Rate};

use crate::Figure;

type Outcome = Result<Figure, Box<dyn std::error::Error>>;

/// Goodput of one bulk flow in Mbit/s, at the receiver, over 10 s after 6 s of warm-up; queue of one BDP, buffers that do not limit.
pub fn goodput(rate: &str, rtt: &str, loss: &str, control: &str, seed: u64) -> Outcome {
    let mut parts = AdHoc::new(RateModel::Constant(rate.parse()?), rtt.parse()?);
    parts.loss = loss.parse()?;
    parts.congestion_controls = vec![control.to_owned()];
    parts.run.duration = Duration::from_secs(16);
    parts.run.warmup = Duration::from_secs(6);
    parts.run.seed = seed;
    let scenario = Scenario::ad_hoc(parts)?;
    let cell = scenario.cells()?.remove(0);
    let outcome = run_cell(&scenario, &cell, &Options::default(), &mut |_| {})?;
    let flow = &outcome.traffic.flows[0];
    let from = outcome.traffic.started_at + scenario.run.warmup;
    let measured = flow.goodput(from, outcome.traffic.ended_at).unwrap_or(Rate::ZERO);
    Ok(Figure { value: measured.as_mbps_f64(), note: lateness(&outcome), invalid: outcome.invalid })
}

/// Seconds for all cells of `transcontinental`, one repeat, and the process's largest memory.
pub fn transcontinental(_seed: u64) -> Outcome {
    let scenario = Scenario::builtin("transcontinental")?;
    let begun = std::time::Instant::now();
    let mut invalid = Vec::new();
    let cells = scenario.cells()?;
    for cell in &cells {
        let outcome = run_cell(&scenario, cell, &Options::default(), &mut |_| {})?;
        invalid.extend(outcome.invalid.iter().map(|why| format!("{} {}: {why}", cell.profile.name, cell.loss)));
    }
    let note = format!("{} cells, largest memory of this process {} MiB", cells.len(), largest_memory_mib()?);
    Ok(Figure { value: begun.elapsed().as_secs_f64(), invalid, note })
}

fn largest_memory_mib() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? / 1024)
}

fn lateness(outcome: &CellOutcome) -> String {
    let (up, down) = (&outcome.emulator.up.lateness, &outcome.emulator.down.lateness);
    format!(
        "late p99.9 {} / {}, at most {} / {}",
        up.quantile(0.999),
        down.quantile(0.999),
        up.max(),
        down.max()
    )
}
