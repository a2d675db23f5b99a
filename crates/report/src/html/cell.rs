//! One cell of a scenario: how one of its runs went over time, every run's figures, what held the flows up.

use minijinja::Value;
use serde::Serialize;

use super::{Data, Figure, Head, Table};
use crate::groups::Group;
use crate::model::{FlowReport, FlowTraffic, LabReport, RunReport, SummaryLine};
use crate::plot::{Axis, Chart, Line, Mark};
use crate::series::Series;
use crate::summary::CellKey;
use crate::text::{self, RateUnit};

/// A plot is 350 units wide: more points than this do not show.
const PLOT_POINTS: usize = 400;
/// More lines than this cannot be told apart.
const PLOT_FLOWS: usize = 12;
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
    let which = if runs > 1 {
        format!("Run {} of {runs} (nearest to the median)", run.repeat + 1)
    } else {
        "The only run".to_owned()
    };
    let invalid = if run.valid { "" } else { ", invalid" };
    format!("{which}{invalid}, seed {}, {:.1} s after the start of the report.", run.seed, run.started_after_s)
}

/// What the plots do not show: limits, answers, the worst of the emulator.
fn facts(run: &RunReport) -> Vec<String> {
    let mut facts = Vec::new();
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
            facts.push(format!("{} ({}): {}.", flow.name(shared), flow.congestion_control, words.join("; ")));
        }
    }
    facts
}

/// Whether flows need their number to be told apart.
fn shared_labels(run: &RunReport) -> bool {
    run.flows.iter().any(|flow| flow.index > 0)
}

fn plots(run: &RunReport, id: &str) -> Vec<Figure> {
    let shared = shared_labels(run);
    let bulk: Vec<&FlowReport> =
        run.flows.iter().filter(|flow| flow.traffic == FlowTraffic::Bulk).take(PLOT_FLOWS).collect();
    let left_out = run.flows.iter().filter(|flow| flow.traffic == FlowTraffic::Bulk).count() - bulk.len();
    let of_flows = |series: &dyn Fn(&FlowReport) -> &Series| -> Vec<(String, Series)> {
        let name = |flow: &FlowReport| if bulk.len() > 1 { flow.name(shared) } else { String::new() };
        bulk.iter().map(|flow| (name(flow), series(flow).clone())).collect()
    };
    let one = |series: &Series| vec![(String::new(), series.clone().extremes(PLOT_POINTS))];
    let rates = |caption: &str, lines: Vec<(String, Series)>| {
        let unit = RateUnit::for_all(
            lines
                .iter()
                .flat_map(|(_, series)| series.points().map(|(_, value)| value))
                .collect::<Vec<_>>()
                .into_iter()
                .filter(|v| *v > 0.0),
        );
        (format!("{caption}, {}", unit.name()), unit.bps(), lines)
    };
    let means = |lines: Vec<(String, Series)>| -> Vec<(String, Series)> {
        lines.into_iter().map(|(name, series)| (name, series.means(PLOT_POINTS))).collect()
    };
    let extremes = |lines: Vec<(String, Series)>| -> Vec<(String, Series)> {
        lines.into_iter().map(|(name, series)| (name, series.extremes(PLOT_POINTS))).collect()
    };

    let mut wanted = vec![rates("Goodput", means(of_flows(&|flow| &flow.series.goodput_bps)))];
    if run.series.rtt_under_load_ms.is_empty() {
        wanted.push(("Smoothed RTT, ms".to_owned(), 1.0, extremes(of_flows(&|flow| &flow.series.smoothed_rtt_ms))));
    } else {
        wanted.push(("RTT under load, ms".to_owned(), 1.0, one(&run.series.rtt_under_load_ms)));
    }
    let deepest = run.series.queue_depth_bytes.points().map(|(_, bytes)| bytes).fold(0.0, f64::max);
    let (unit, scale) = if deepest >= 2e6 { ("MB", 1e6) } else { ("kB", 1e3) };
    wanted.push((format!("Queue depth, {unit}"), scale, one(&run.series.queue_depth_bytes)));
    let drops = &run.series.drops_packets;
    let causes =
        [("random", &drops.random), ("queue full", &drops.overflow), ("AQM", &drops.aqm), ("policer", &drops.policer)];
    let causes = causes.into_iter().filter(|(_, series)| series.points().any(|(_, packets)| packets > 0.0));
    let causes: Vec<(String, Series)> =
        causes.map(|(cause, series)| (cause.to_owned(), series.clone().sums(PLOT_POINTS / 2))).collect();
    let step = causes.iter().find_map(|(_, series)| usual_step(series));
    let per = step.map_or(String::new(), |step| format!(" per {:.0} ms", step * 1e3));
    wanted.push((format!("Drops by cause, packets{per}"), 1.0, causes));
    if run.series.marks_packets.points().any(|(_, packets)| packets > 0.0) {
        wanted.push((
            "CE marks, packets".to_owned(),
            1.0,
            vec![(String::new(), run.series.marks_packets.clone().sums(PLOT_POINTS / 2))],
        ));
    }
    wanted.push((
        "Congestion window, segments".to_owned(),
        1.0,
        extremes(of_flows(&|flow| &flow.series.cwnd_segments)),
    ));
    wanted.push(rates("Pacing rate", extremes(of_flows(&|flow| &flow.series.pacing_rate_bps))));

    let mut figures = Vec::new();
    for (caption, scale, lines) in wanted {
        let first_is_all = left_out > 0 && lines.len() == bulk.len() && lines.len() > 1;
        let caption = if first_is_all { format!("{caption} (first {} flows)", bulk.len()) } else { caption };
        let id = format!("{id}t{}", figures.len());
        figures.extend(plot(run, &id, &caption, scale, &lines));
    }
    figures
}

/// The usual distance between two points.
fn usual_step(series: &Series) -> Option<f64> {
    let times: Vec<f64> = series.points().map(|(time, _)| time).collect();
    let mut steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied()
}

fn plot(run: &RunReport, id: &str, caption: &str, scale: f64, lines: &[(String, Series)]) -> Option<Figure> {
    if lines.iter().all(|(_, series)| series.is_empty()) {
        return None;
    }
    let values = || lines.iter().flat_map(|(_, series)| series.points().map(|(_, value)| value / scale));
    let (low, high) = values().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    // An RTT never gets near zero: show what varies. Amounts and rates start at zero.
    let y = if caption.contains("RTT") && high < 2.5 * low {
        Axis::linear("", low, high, 4)
    } else {
        Axis::from_zero("", high, 4)
    };
    let described = lines.iter().filter(|(_, series)| !series.is_empty()).map(|(name, series)| {
        let (mut low, mut high, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        for (_, value) in series.points() {
            (low, high, sum) = (low.min(value / scale), high.max(value / scale), sum + value / scale);
        }
        let figures = [low, sum / series.len() as f64, high].map(text::three_digits);
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        format!("{name}lowest {}, mean {}, highest {}", figures[0], figures[1], figures[2])
    });
    let chart = Chart {
        title: caption.to_owned(),
        description: format!("Over {:.0} seconds. {}.", run.duration_s, described.collect::<Vec<_>>().join(". ")),
        x: Axis::exact("seconds", 0.0, run.duration_s.max(0.001), 5),
        y,
        lines: lines
            .iter()
            .enumerate()
            .map(|(style, (name, series))| Line {
                name: name.clone(),
                style,
                mark: Mark::Line,
                points: series.points().map(|(time, value)| (time, value / scale)).collect(),
                intervals: Vec::new(),
            })
            .collect(),
        shaded_to: (run.warmup_s > 0.0).then_some(run.warmup_s),
    };
    Some(Figure { caption: caption.to_owned(), svg: Value::from_safe_string(chart.svg(id)) })
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
    Some(Table { caption: "The same in figures".to_owned(), rows: rows.collect(), head })
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
