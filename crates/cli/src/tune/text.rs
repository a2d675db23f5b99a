//! The job for people.

use tuning::plan::Change;
use tuning::tune::{Block, Judgement, Kept, Outcome, Part, Sample, Series, Settled};
use units::Rate;

use super::Path;
use crate::wrap;

/// What was found and what will be tried.
pub fn plan(path: &Path, parts: &[Part], elsewhere: &[Change]) -> String {
    let mut out =
        format!("Path: {} ({}), RTT {:.1} ms\n", Rate::from_bps(path.bandwidth_bps), path.bandwidth_from, path.rtt_ms);
    if parts.is_empty() {
        out += "Nothing to try: what is there carries this.\n";
    }
    for part in parts {
        out += &format!("To try, {}:\n", part.block.name());
        for change in &part.changes {
            out += &format!("  {} = {}  (now {})\n", change.key, change.to, change.from);
        }
    }
    for change in elsewhere {
        out += &format!("Left alone, it belongs to the whole host: {} = {}\n", change.key, change.to);
    }
    out
}

/// What the next runs are for.
pub fn comparing(block: Option<Block>, again: bool, pairs: u32) -> String {
    match (block, again) {
        (Some(block), false) => format!("Trying {} (up to {pairs} pairs)", block.name()),
        (Some(block), true) => format!("Is {} needed by what helped? (up to {pairs} pairs)", block.name()),
        (None, _) => format!("Everything that is kept, against the host as it was (up to {pairs} pairs)"),
    }
}

/// One run.
pub fn run(with: bool, sample: &Sample) -> String {
    let rtt = sample.rtt_loaded_ms.map_or_else(String::new, |rtt| format!(", RTT {rtt:.1} ms"));
    format!(
        "{} {}{rtt}, {:.2} % sent again",
        if with { "with:   " } else { "without:" },
        Rate::from_bps(sample.goodput_bps as u64),
        sample.retransmitted_share * 100.0
    )
}

/// The end: what was kept, why, and what it gives.
pub fn outcome(outcome: &Outcome, published: Option<String>, width: usize) -> String {
    let width = width.min(110);
    let mut out = String::new();
    if outcome.partial {
        out += "Stopped before the end: this was decided by then.\n\n";
    }
    for job in &outcome.blocks {
        let name = job.part.block.name();
        let head = format!("{:10}", name);
        let verdict = match job.settled {
            Settled::Kept(Kept::Helped) => "kept, it helped",
            Settled::Kept(Kept::Needed) => "kept, what helped needs it",
            Settled::NoDifference => "taken back, no difference seen",
            Settled::Harmed => "taken back, it did harm",
            Settled::NotMeasurable => "not tried: a transfer can't show what it does",
            Settled::NotTried => "not tried",
        };
        let figures = job.judgement.as_ref().map_or_else(String::new, |judgement| figures(judgement, &job.series));
        out += &wrap::hanging(&head, &format!("{verdict}{figures}"), width);
    }
    match (&outcome.judgement, outcome.kept().next()) {
        (Some(judgement), Some(_)) => {
            out += &format!("\nBefore: {}\nAfter:  {}\n", middle(&outcome.whole.without), middle(&outcome.whole.with));
            out += &wrap::hanging("", &format!("Goodput{}", ratio(judgement)), width);
            if let Some(published) = published {
                out += &format!("The guide's figure, {published}\n");
            }
        }
        _ if outcome.partial => {}
        _ => out += "\nNothing is worth changing on this path.\n",
    }
    out
}

/// What was kept in the lab, for a host.
pub fn settings(outcome: &Outcome) -> String {
    if outcome.judgement.is_none() || outcome.kept().next().is_none() {
        return String::new();
    }
    let mut out =
        "\nTo set the same on a host, and measure there (`linerate tune --peer HOST` does both):\n".to_owned();
    for change in outcome.kept() {
        out += &format!("  {} = {}\n", change.key, change.to);
    }
    out
}

/// Runs that the lab says are none; empty where there are none.
pub fn invalid(invalid: usize, width: usize) -> String {
    let mut out = String::new();
    let width = width.min(110);
    if invalid > 0 {
        let (runs, were) = if invalid == 1 { ("run", "was") } else { ("runs", "were") };
        out += &wrap::hanging(
            "",
            &format!(
                "{invalid} {runs} {were} invalid by the lab's own rules (the machine was busy): repeat on a quieter one before you quote these figures."
            ),
            width,
        );
    }
    out
}

fn figures(judgement: &Judgement, series: &Series) -> String {
    let mut out = format!(": goodput{}", ratio(judgement));
    if let Some(rtt) = judgement.rtt_loaded_ms {
        out += &format!("; RTT under load {:+.1} ms", rtt.estimate);
    }
    out +=
        &format!("; {:+.2} % sent again; {} pairs", judgement.retransmitted_share.estimate * 100.0, series.with.len());
    out
}

fn ratio(judgement: &Judgement) -> String {
    let [ratio, low, high] = judgement.goodput_ratio;
    format!(" x {ratio:.2} ({low:.2} .. {high:.2}, p = {:.3})", judgement.p)
}

/// The median run.
fn middle(samples: &[Sample]) -> String {
    let median =
        |f: &dyn Fn(&Sample) -> Option<f64>| measure::stats::median(&samples.iter().filter_map(f).collect::<Vec<_>>());
    let goodput = median(&|sample| Some(sample.goodput_bps)).unwrap_or_default();
    let rtt =
        median(&|sample| sample.rtt_loaded_ms).map_or_else(String::new, |rtt| format!(", RTT under load {rtt:.1} ms"));
    let again = median(&|sample| Some(sample.retransmitted_share)).unwrap_or_default() * 100.0;
    format!("{}{rtt}, {again:.2} % sent again", Rate::from_bps(goodput as u64))
}

/// What the runs say about losses.
pub fn loss(estimate: &report::bench::PathEstimate) -> String {
    let share = estimate.loss.map_or_else(String::new, |loss| format!(" {:.2} %,", loss * 100.0));
    format!("{share} {}: {}", estimate.loss_kind, estimate.because).trim_start().to_owned()
}
