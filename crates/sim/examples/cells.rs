//! Goodput of every cell of a scenario (built in, or a file) over several seeds:
//! `cargo run --release -p linerate-sim --example cells -- SCENARIO [CONTROL,…|= [SEEDS]]`; `=`: the scenario's own profiles.

use scenario::{NoFiles, Overrides, Scenario};
use sim::{Options, run_cell};
use units::Rate;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize, default: &str| words.get(place).cloned().unwrap_or_else(|| default.to_owned());
    let overrides = Overrides {
        congestion_controls: words
            .get(1)
            .filter(|word| *word != "=")
            .map(|list| list.split(',').map(str::to_owned).collect()),
        repeats: word(2, "5").parse().ok(),
        ..Overrides::default()
    };
    let name = word(0, "transcontinental");
    let scenario = match std::fs::read_to_string(&name) {
        Ok(text) => Scenario::parse(&text, &name, &NoFiles),
        Err(_) => Scenario::builtin(&name),
    };
    let scenario = scenario.and_then(|s| s.with_overrides(overrides)).expect("a scenario");
    let mut lines: Vec<(String, Vec<f64>)> = Vec::new();
    for cell in scenario.cells().expect("cells") {
        let outcome = run_cell(&scenario, &cell, &Options::default(), &mut |_, _| true).expect("a run");
        let flow = &outcome.flows[0];
        let end = flow.completed.unwrap_or(outcome.ended);
        let begin = flow.established.unwrap_or(outcome.warmup).max(outcome.warmup);
        let goodput =
            Rate::from_transfer(flow.received.saturating_sub(outcome.received_at_warmup[0]), end.since(begin));
        let counters = flow.counters;
        let part = |time: units::Duration| 100.0 * time.as_secs_f64() / counters.busy.as_secs_f64().max(1e-9);
        if std::env::var_os("DETAILS").is_some() {
            println!(
                "  {} {}: window-limited {:.0} %, buffer-limited {:.0} %, {:?}",
                cell.loss,
                cell.profile.name,
                part(counters.window_limited),
                part(counters.buffer_limited),
                counters
            );
        }
        let name = format!("{:>5} {}", cell.loss.to_string(), cell.profile.name);
        match lines.iter_mut().find(|line| line.0 == name) {
            Some(line) => line.1.push(goodput.as_mbps_f64()),
            None => lines.push((name, vec![goodput.as_mbps_f64()])),
        }
    }
    for (name, mut values) in lines {
        values.sort_by(f64::total_cmp);
        println!("{name:<30} {:8.2}  ({:.2} .. {:.2})", values[values.len() / 2], values[0], values[values.len() - 1]);
    }
}
