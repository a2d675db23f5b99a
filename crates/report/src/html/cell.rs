//! One cell of a scenario: how one of its runs went over time, every run's figures, what held the flows up.

use serde::Serialize;

use super::plots::plots;
use super::{Data, Figure, Head, Table};
use crate::groups::Group;
use crate::model::{DropCounts, FlowReport, FlowTraffic, LabReport, RunReport, SummaryLine};
use crate::series::Series;
use crate::summary::CellKey;
use crate::text::{self, RateUnit};

/// Rows of the table that says what the plots say.
const STEPS: usize = 10;

#[derive(Serialize)]
pub(super) struct CellView {
    id: String,
    name: String,
    figures: String,
    /// Which run the plots show.
    shown: String,
    facts: Vec<String>,
    plots: Vec<Figure>,
    steps: Option<Table>,
    runs: Table,
}

impl CellView {
    pub(super) fn of(report: &LabReport, group: &Group, line: &SummaryLine, id: &str) -> Self {
        let key = CellKey::of_line(line);
        let runs: Vec<&RunReport> = report.results.iter().filter(|run| CellKey::of_run(run) == key).collect();
        let shown = representative(&runs, line);
        let cell = group.cell_words(line);
        let profile = group.profile_words(line);
        Self {
            id: id.to_owned(),
            name: if cell.is_empty() { profile } else { format!("{profile}, {cell}") },
            figures: figures_words(group, line),
            shown: shown.map_or(String::new(), |run| shown_words(run, runs.len())),
            facts: shown.map_or(Vec::new(), facts),
            plots: shown.map_or(Vec::new(), |run| plots(run, id)),
            steps: shown.and_then(steps_table),
            runs: runs_table(group, &runs),
        }
    }
}

/// The valid run whose goodput is nearest to the median; the first run where none is valid.
fn representative<'a>(runs: &[&'a RunReport], line: &SummaryLine) -> Option<&'a RunReport> {
    let distance = |run: &RunReport| match (run.goodput_bps, line.goodput_bps) {
        (Some(bps), Some(goodput)) => (bps as f64 - goodput.median).abs(),
        _ => f64::INFINITY,
    };
    let valid = runs.iter().copied().filter(|run| run.valid);
    valid.min_by(|a, b| distance(a).total_cmp(&distance(b))).or(runs.first().copied())
}

fn figures_words(group: &Group, line: &SummaryLine) -> String {
    let unit = group.rate_unit();
    let mut words = Vec::new();
    match line.goodput_bps {
        Some(goodput) => words.push(format!("{} {}", unit.number(goodput.median), unit.name())),
        None if line.valid_repeats == 0 => words.push("no valid run".to_owned()),
        None => {}
    }
    if let Some(rtt) = line.rtt_under_load_ms {
        words.push(format!("RTT under load {} ms", text::millis(rtt.p50.median)));
    }
    words.join(", ")
}

fn shown_words(run: &RunReport, runs: usize) -> String {
    let which = match (runs, run.valid) {
        (1, true) => "The only run".to_owned(),
        (1, false) => "The only run, invalid".to_owned(),
        (_, true) => format!("Run {} of {runs}, the nearest to the median", run.repeat + 1),
        (_, false) => format!("Run {} of {runs}, none of them valid", run.repeat + 1),
    };
    let shaded = if run.warmup_s > 0.0 { " Shaded: the warm-up, left out of the figures." } else { "" };
    format!("{which}; seed {}, {:.1} s after the start of the report.{shaded}", run.seed, run.started_after_s)
}

/// What the plots do not show: limits, answers, the worst of the emulator.
fn facts(run: &RunReport) -> Vec<String> {
    let mut facts = Vec::new();
    if run.drops == DropCounts::default() {
        facts.push("The path dropped no packet.".to_owned());
    }
    let shared = shared_labels(run);
    for flow in &run.flows {
        let mut words = Vec::new();
        let part = |seconds: f64| flow.busy_s.filter(|busy| *busy > 0.0).map(|busy| seconds / busy);
        let limits = [
            (flow.receive_window_limited_s.and_then(part), "the receiver’s window"),
            (flow.send_buffer_limited_s.and_then(part), "the send buffer"),
        ];
        for (limited, by) in limits {
            if let Some(limited) = limited.filter(|limited| *limited >= 0.01) {
                words.push(format!("held up by {by} for {} of its busy time", text::share(limited)));
            }
        }
        if let (Some(sent), Some(again)) = (flow.sent_segments.filter(|sent| *sent > 0), flow.retransmitted_segments) {
            let percent = again as f64 / sent as f64 * 100.0;
            words.push(format!(
                "{} of {} segments sent again ({percent:.2}%)",
                text::count(again as f64),
                text::count(sent as f64)
            ));
        }
        if let Some(seconds) = flow.completion_s {
            words.push(format!("complete after {} s", text::three_digits(seconds)));
        }
        if let Some(response) = flow.response_ms {
            let (p50, p95) = (text::millis(response.p50), text::millis(response.p95));
            words.push(format!("{} answers, {p50} ms (p95 {p95})", flow.responses.unwrap_or(0)));
        }
        if !words.is_empty() {
            let name = crate::shares::flow_name(&flow.name(shared), &flow.congestion_control);
            facts.push(format!("{name}: {}.", words.join("; ")));
        }
    }
    facts
}

/// Whether flows need their number to be told apart.
pub(super) fn shared_labels(run: &RunReport) -> bool {
    run.flows.iter().any(|flow| flow.index > 0)
}

/// The plots in ten rows: means of goodput, the highest RTT and queue, drops added up.
fn steps_table(run: &RunReport) -> Option<Table> {
    let shared = shared_labels(run);
    let bulk: Vec<&FlowReport> = run.flows.iter().filter(|flow| flow.traffic == FlowTraffic::Bulk).take(6).collect();
    let step = run.duration_s / STEPS as f64;
    let nothing = bulk.iter().all(|flow| flow.series.goodput_bps.is_empty()) && run.series.rtt_under_load_ms.is_empty();
    if nothing || step <= 0.0 {
        return None;
    }
    let within = |series: &Series, index: usize| -> Vec<f64> {
        let (from, to) = (step * index as f64, step * (index + 1) as f64);
        series.points().filter(|(time, _)| from < *time && *time <= to).map(|(_, value)| value).collect()
    };
    let goodputs = || bulk.iter().flat_map(|flow| flow.series.goodput_bps.points().map(|(_, bps)| bps));
    let unit = RateUnit::for_all(goodputs().filter(|bps| *bps > 0.0).collect::<Vec<_>>().into_iter());
    let mut head = vec![Head::figure("until", "s")];
    for flow in &bulk {
        head.push(Head::figure(&if bulk.len() > 1 { flow.name(shared) } else { "goodput".to_owned() }, unit.name()));
    }
    head.push(Head::figure("highest RTT", "ms"));
    head.push(Head::figure("deepest queue", "kB"));
    head.push(Head::figure("drops", "packets"));
    let rows = (0..STEPS).map(|index| {
        let mean = |values: Vec<f64>| {
            if values.is_empty() {
                "–".to_owned()
            } else {
                unit.number(values.iter().sum::<f64>() / values.len() as f64)
            }
        };
        let highest = |values: Vec<f64>, show: &dyn Fn(f64) -> String| {
            values.into_iter().reduce(f64::max).map_or("–".to_owned(), show)
        };
        let mut row = vec![Data::figure(format!("{:.1}", step * (index + 1) as f64))];
        row.extend(bulk.iter().map(|flow| Data::figure(mean(within(&flow.series.goodput_bps, index)))));
        row.push(Data::figure(highest(within(&run.series.rtt_under_load_ms, index), &text::millis)));
        row.push(Data::figure(highest(within(&run.series.queue_depth_bytes, index), &|bytes| {
            text::count(bytes / 1e3)
        })));
        let drops = &run.series.drops_packets;
        let all = [&drops.random, &drops.overflow, &drops.aqm, &drops.policer];
        let sum: f64 = all.iter().flat_map(|series| within(series, index)).sum();
        row.push(Data::figure(text::count(sum)));
        row
    });
    Some(Table {
        caption: "Over each tenth of the run: mean goodput, highest RTT, deepest queue, drops added up.".to_owned(),
        rows: rows.collect(),
        head,
    })
}

fn runs_table(group: &Group, runs: &[&RunReport]) -> Table {
    let unit = group.rate_unit();
    let head = [
        ("run", ""),
        ("seed", ""),
        ("goodput", unit.name()),
        ("RTT idle", "ms"),
        ("RTT under load", "ms, p50 / p95 / p99"),
        ("queueing delay", "ms, p50 / p95 / p99"),
        ("retrans\u{ad}mitted", "segments"),
        ("drops", "random / full / AQM / policer"),
        ("CE marks", "packets"),
        ("lateness", "µs, p99.9 / worst"),
    ];
    let dash = || "–".to_owned();
    let rows = runs.iter().map(|run| {
        let d = run.drops;
        let drops = [d.random, d.overflow, d.aqm, d.policer].map(|n| text::count(n as f64)).join(" / ");
        let three = |p50, p95, p99| format!("{} / {} / {}", text::millis(p50), text::millis(p95), text::millis(p99));
        let lateness = run.emulator.as_ref().and_then(|emulator| emulator.lateness_us);
        let name = Data::figure((run.repeat + 1).to_string());
        vec![
            if run.valid { name } else { Data { class: "figure off", ..name.below("invalid") } },
            Data::figure(run.seed.to_string()),
            Data::figure(run.goodput_bps.map_or_else(dash, |bps| unit.number(bps as f64))),
            Data::figure(run.rtt_idle_ms.map_or_else(dash, text::millis)),
            Data::figure(run.rtt_under_load_ms.map_or_else(dash, |rtt| three(rtt.p50, rtt.p95, rtt.p99))),
            Data::figure(run.queueing_delay_ms.map_or_else(dash, |delay| three(delay.p50, delay.p95, delay.p99))),
            Data::figure(run.retransmitted_segments.map_or_else(dash, |count| text::count(count as f64))),
            Data::figure(drops),
            Data::figure(text::count(run.marks as f64)),
            Data::figure(lateness.map_or_else(dash, |late| format!("{:.0} / {:.0}", late.p999, late.max))),
        ]
    });
    Table {
        caption: "Every run".to_owned(),
        rows: rows.collect(),
        head: head.iter().map(|(text, unit)| Head::figure(text, unit)).collect(),
    }
}
