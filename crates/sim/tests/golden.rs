//! Who gets how much, over buffers of 0.25 to 8 BDP: tables that must come out the same to the last digit on every machine.
//!
//! After a change that is meant to change them: `UPDATE_GOLDEN=1 cargo test -p linerate-sim --test golden`, and say in the commit why.

use std::fmt::Write;
use std::path::PathBuf;

use scenario::{Overrides, QueueSpec, Scenario};
use sim::{CellOutcome, Options, run_cell};
use units::{Duration, Rate};

/// Goodput of each flow after the warm-up, in bit/s.
fn goodputs(outcome: &CellOutcome) -> Vec<u64> {
    let received = outcome.flows.iter().zip(&outcome.received_at_warmup);
    let time = outcome.ended.since(outcome.warmup);
    received.map(|(flow, before)| Rate::from_transfer(flow.received.saturating_sub(*before), time).as_bps()).collect()
}

/// Jain's index in parts per 10,000, without a floating-point number.
fn jain(goodputs: &[u64]) -> u128 {
    let sum: u128 = goodputs.iter().map(|bps| u128::from(*bps)).sum();
    let squares: u128 = goodputs.iter().map(|bps| u128::from(*bps) * u128::from(*bps)).sum();
    10_000 * sum * sum / (goodputs.len() as u128 * squares).max(1)
}

/// Mean and 95th percentile of the probe's time in the queue, in microseconds.
fn queueing_us(outcome: &CellOutcome) -> (u64, u64) {
    let mut waits: Vec<u64> = outcome
        .record
        .probe_sojourns
        .iter()
        .filter(|(at, _)| *at >= outcome.warmup)
        .map(|(_, wait)| wait.as_micros())
        .collect();
    waits.sort_unstable();
    let mean = waits.iter().sum::<u64>() / (waits.len() as u64).max(1);
    (mean, waits.get(waits.len() * 95 / 100).copied().unwrap_or(0))
}

fn table(name: &str, controls: &[&str]) -> String {
    let queues = ["0.25bdp", "0.5bdp", "1bdp", "2bdp", "4bdp", "8bdp"];
    let overrides = Overrides {
        congestion_controls: Some(controls.iter().map(|name| (*name).to_owned()).collect()),
        queues: Some(queues.iter().map(|queue| queue.parse::<QueueSpec>().unwrap()).collect()),
        duration: Some(Duration::from_secs(20)),
        warmup: Some(Duration::from_secs(5)),
        ..Overrides::default()
    };
    let scenario = Scenario::builtin(name).unwrap().with_overrides(overrides).unwrap();
    let labels: Vec<String> = scenario.expanded_flows().into_iter().map(|flow| flow.label).collect();
    let mut out = String::new();
    writeln!(out, "{name}: goodput of {} in bit/s, Jain's index in 1/10000,", labels.join(", ")).unwrap();
    writeln!(out, "queueing delay of the probe in us (mean, p95), packets offered, lost to a full queue").unwrap();
    for cell in scenario.cells().unwrap() {
        let outcome = run_cell(&scenario, &cell, &Options::default(), &mut |_, _| true).unwrap();
        let (goodputs, (mean, p95)) = (goodputs(&outcome), queueing_us(&outcome));
        let shares: Vec<String> = goodputs.iter().map(u64::to_string).collect();
        let counters = &outcome.counters;
        writeln!(
            out,
            "{:>8} {:<10} | {} | {} | {mean} {p95} | {} {}",
            cell.queue.to_string(),
            cell.profile.congestion_control,
            shares.join(" "),
            jain(&goodputs),
            counters.offered,
            counters.dropped_overflow
        )
        .unwrap();
    }
    out
}

#[track_caller]
fn assert_golden(name: &str, controls: &[&str]) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
    let table = table(name, controls);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &table).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    let different = table.lines().zip(golden.lines()).filter(|(now, before)| now != before);
    let shown: Vec<String> = different.map(|(now, before)| format!("- {before}\n+ {now}")).collect();
    assert!(
        table == golden,
        "{name} does not come out as before (UPDATE_GOLDEN=1 where that is meant):\n{}",
        shown.join("\n")
    );
}

#[test]
fn coexistence_comes_out_as_before() {
    assert_golden("coexistence", &["reno", "cubic", "bbr", "bbr3"]);
}

#[test]
fn rtt_fairness_comes_out_as_before() {
    assert_golden("rtt-fairness", &["reno", "cubic", "bbr", "bbr3"]);
}
