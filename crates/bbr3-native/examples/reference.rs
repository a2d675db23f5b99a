//! Every reference cell beside what the program does in virtual time, as Markdown:
//! `cargo run --release -p linerate-bbr3-native --example reference`

#[path = "../tests/common/mod.rs"]
mod common;

use common::Figures;
use common::reference::{ALONE, HANDSHAKE, LOSSY, mean, range, runs};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=32;

fn figure(runs: &[Figures], digits: usize, of: impl Fn(&Figures) -> f64 + Copy) -> String {
    let (low, high) = range(runs, of);
    format!("{:.digits$} ({low:.digits$}..{high:.digits$})", mean(runs, of))
}

fn main() {
    println!("## One flow alone, no random loss\n");
    println!("Mean (lowest..highest) of {} seeds; the reference's mean behind the stroke.\n", SEEDS.count());
    println!(
        "| queue, BDP (packets) | goodput Mbit/s | retransmissions 0-10 s | 10-60 s | queue p50 ms | queue p95 ms | STARTUP s | PROBE_RTTs |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut truths = Vec::new();
    for cell in &ALONE {
        let runs = runs(cell.queue, 0.0, SEEDS);
        println!(
            "| {} ({}) | {} / {} | {} / {} | {} / {} | {} | {} / {} | {} / {} | {} |",
            cell.bdps,
            cell.queue,
            figure(&runs, 2, |run| run.goodput),
            cell.goodput,
            figure(&runs, 0, |run| run.retransmissions_start as f64),
            cell.retransmissions_start,
            figure(&runs, 0, |run| run.retransmissions as f64),
            cell.retransmissions,
            figure(&runs, 1, |run| run.queue_p50_ms),
            figure(&runs, 1, |run| run.queue_p95_ms),
            cell.queue_p95,
            figure(&runs, 2, |run| run.startup_s + HANDSHAKE),
            cell.startup,
            figure(&runs, 0, |run| run.probe_rtts as f64),
        );
        truths.push((format!("queue {} packets", cell.queue), runs));
    }
    println!("\n## Random loss, queue of 4 BDP\n");
    println!("| loss % | goodput Mbit/s | off by | tolerance | retransmissions |");
    println!("| --- | --- | --- | --- | --- |");
    for cell in &LOSSY {
        let runs = runs(660, cell.percent, SEEDS);
        println!(
            "| {} | {} / {} | {:+.0} % | {:.0} % | {} / {} |",
            cell.percent,
            figure(&runs, 2, |run| run.goodput),
            cell.goodput,
            (mean(&runs, |run| run.goodput) / cell.goodput - 1.0) * 100.0,
            cell.tolerance * 100.0,
            figure(&runs, 0, |run| run.retransmissions as f64),
            cell.retransmissions,
        );
        truths.push((format!("{} % random loss", cell.percent), runs));
    }
    println!("\n## What the ring rebuilds, against the sender's own truth\n");
    println!("| case | ACKs | in flight exact | within 1 % | within 5 % | lost exact | worst | decision differs |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (case, runs) in truths {
        let sum = |of: fn(&Figures) -> u64| runs.iter().map(of).sum::<u64>();
        let samples = sum(|run| run.truth.samples);
        let share = |count: u64| format!("{:.2} %", count as f64 * 100.0 / samples as f64);
        println!(
            "| {case} | {samples} | {} | {} | {} | {} | {} | {} |",
            share(sum(|run| run.truth.in_flight_exact)),
            share(sum(|run| run.truth.in_flight_within_1_percent)),
            share(sum(|run| run.truth.in_flight_within_5_percent)),
            share(sum(|run| run.truth.lost_exact)),
            runs.iter().map(|run| run.truth.lost_worst).max().unwrap_or(0),
            sum(|run| run.truth.decisions_differ),
        );
    }
}
