//! The cells of native BBRv3 that a faithful one is held against, in virtual time. Two cells are held to less than the reference's tolerance.

mod common;

use std::sync::LazyLock;

use common::Figures;
use common::reference::{ALONE, Alone, HANDSHAKE, LOSSY, mean, range, runs};

/// Like the reference.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

/// Each cell of [`ALONE`], run once for all tests.
static ALONE_RUNS: LazyLock<Vec<(&Alone, Vec<Figures>)>> =
    LazyLock::new(|| ALONE.iter().map(|cell| (cell, runs(cell.queue, 0.0, SEEDS))).collect());

#[test]
fn a_flow_alone_gets_the_references_goodput_and_probes_as_often() {
    for (cell, runs) in ALONE_RUNS.iter() {
        let goodput = mean(runs, |run| run.goodput);
        assert!((goodput / cell.goodput - 1.0).abs() < 0.01, "{} BDP: {goodput:.2}, not {}", cell.bdps, cell.goodput);
        for run in runs {
            // In the smallest queue the reference has six or seven: the filter of the RTT is refreshed in between.
            let expected = if cell.bdps == 0.1 { 4..=9 } else { 9..=11 };
            assert!(expected.contains(&run.probe_rtts), "{} BDP: {} PROBE_RTTs", cell.bdps, run.probe_rtts);
            let startup = run.startup_s + HANDSHAKE;
            assert!((startup - cell.startup).abs() < 0.04, "{} BDP: STARTUP of {startup:.3} s", cell.bdps);
        }
    }
}

#[test]
fn a_flow_alone_builds_the_references_queue() {
    for (cell, runs) in ALONE_RUNS.iter().filter(|(cell, _)| cell.bdps >= 1.0) {
        for run in runs {
            assert!(run.queue_p50_ms < 1.0, "{} BDP: median {}", cell.bdps, run.queue_p50_ms);
            assert!((15.0..=26.0).contains(&run.queue_p95_ms), "{} BDP: p95 {}", cell.bdps, run.queue_p95_ms);
        }
    }
}

#[test]
fn a_flow_alone_retransmits_as_the_reference_does() {
    for (cell, runs) in ALONE_RUNS.iter() {
        let after_start = mean(runs, |run| run.retransmissions as f64);
        if cell.bdps >= 1.0 {
            assert_eq!(after_start, 0.0, "{} BDP", cell.bdps);
        } else {
            let off = (after_start / cell.retransmissions - 1.0).abs();
            // At half a BDP one packet more of inflight_hi costs a fifth more: docs/measurements/bbr3-reference-virtual.md.
            let held = if cell.bdps == 0.5 { 0.6 } else { 0.4 };
            assert!(off < held, "{} BDP: {after_start}, not {}", cell.bdps, cell.retransmissions);
        }
    }
}

#[test]
fn random_loss_costs_what_it_costs_the_reference() {
    for cell in &LOSSY {
        let runs = runs(660, cell.percent, SEEDS);
        let goodput = mean(&runs, |run| run.goodput);
        let off = (goodput / cell.goodput - 1.0).abs();
        assert!(
            off < cell.held,
            "{} %: {goodput:.2} {:?}, not {}",
            cell.percent,
            range(&runs, |run| run.goodput),
            cell.goodput
        );
    }
}

#[test]
fn the_ring_rebuilds_what_the_kernel_does_not_keep() {
    for (queue, loss, exact, within_1, lost_exact, decisions) in [
        (83, 0.0, 0.998, 0.999, 0.9995, 0.0001),
        (660, 1.0, 0.995, 0.999, 0.999, 0.001),
        (660, 2.0, 0.99, 0.995, 0.995, 0.005),
        (660, 3.0, 0.98, 0.985, 0.985, 0.01),
    ] {
        for run in runs(queue, loss, 1..=2) {
            let truth = run.truth;
            let share = |count: u64| count as f64 / truth.samples as f64;
            assert!(share(truth.in_flight_exact) >= exact, "{queue} packets, {loss} %: {truth:?}");
            assert!(share(truth.in_flight_within_1_percent) >= within_1, "{queue} packets, {loss} %: {truth:?}");
            assert!(share(truth.in_flight_within_5_percent) >= 0.99, "{queue} packets, {loss} %: {truth:?}");
            assert!(share(truth.lost_exact) >= lost_exact, "{queue} packets, {loss} %: {truth:?}");
            assert!(share(truth.decisions_differ) <= decisions, "{queue} packets, {loss} %: {truth:?}");
        }
    }
}
