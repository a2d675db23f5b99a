//! One HTML file: a table, inline SVG, no script, nothing fetched.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

use super::model::{BenchReport, BenchRun, BenchSummary, DirectionReport};
use super::terminal::{control_words, line_words, path_words, percent, settings_words, typical};
use crate::plot::{Axis, Chart, Line, Mark};
use crate::series::Series;
use crate::text::{self, RateUnit};

const PAGE: &str = include_str!("../../templates/bench.html");
const STYLE: &str = include_str!("../../templates/style.css");
/// A plot is about 400 units wide: more points than this do not show.
const MOST_POINTS: usize = 400;

/// The report as one HTML file that fetches nothing (a content security policy in it forbids even trying) and runs no script.
pub fn render_bench_html(report: &BenchReport) -> String {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    // The name's ending switches on escaping of everything that is not marked safe.
    let rendered = syntax
        .map(|syntax| environment.set_syntax(syntax))
        .and_then(|()| environment.add_template("bench.html", PAGE))
        .and_then(|()| environment.get_template("bench.html"))
        .and_then(|template| template.render(Serde(Page::of(report))));
    let page = rendered
        .unwrap_or_else(|error| format!("<!doctype html><pre>{}</pre>", minijinja::HtmlEscape(&error.to_string())));
    page.chars().map(text::without_reordering).collect()
}

#[derive(Serialize)]
struct Page {
    style: Value,
    title: String,
    linerate_version: String,
    started_at: String,
    kernel: String,
    lede: String,
    partial: Option<String>,
    warnings: Vec<String>,
    heads: Vec<(String, String)>,
    rows: Vec<Vec<String>>,
    invalid: Vec<String>,
    lines: Vec<Section>,
    seed: u64,
    command: String,
}

/// One congestion control in one direction.
#[derive(Serialize)]
struct Section {
    id: String,
    name: String,
    which: String,
    facts: Vec<String>,
    plots: Vec<Plot>,
}

#[derive(Serialize)]
struct Plot {
    caption: String,
    svg: Value,
}

impl Page {
    fn of(report: &BenchReport) -> Self {
        let medians = report.summary.iter().filter_map(|line| line.goodput_bps.map(|goodput| goodput.median));
        let unit = RateUnit::for_all(medians.collect::<Vec<_>>().into_iter());
        let head = |name: &str, unit: &str| (name.to_owned(), unit.to_owned());
        let server = match &report.server.linerate_version {
            Some(version) => format!("linerate {version}"),
            None => "iperf3".to_owned(),
        };
        let lines = report.summary.iter().enumerate().filter_map(|(index, line)| {
            let (run, direction) = typical(report, line)?;
            Some(section(report, line, run, direction, index))
        });
        let invalid = report.results.iter().filter(|run| !run.valid).map(|run| {
            let why = run.invalid_reason.as_deref().unwrap_or("no reason recorded");
            format!(
                "{}, repeat {}, is left out: {why}.",
                control_words(run.congestion_control.as_deref()),
                run.repeat + 1
            )
        });
        Self {
            style: Value::from_safe_string(STYLE.to_owned()),
            title: report.server.name.clone(),
            linerate_version: report.linerate_version.clone(),
            started_at: report.started_at.clone(),
            kernel: report.kernel.clone(),
            lede: format!("Against {} ({server}): {}.", report.server.address, settings_words(&report.settings)),
            partial: report
                .partial
                .then(|| format!("Partial: {}.", report.partial_reason.as_deref().unwrap_or("no reason recorded"))),
            warnings: report.warnings.clone(),
            heads: vec![
                head("Congestion control", ""),
                head("Goodput", unit.name()),
                head("Runs", ""),
                head("Sent again", ""),
                head("RTT idle", "ms"),
                head("RTT loaded p50", "ms"),
                head("p95", "ms"),
                head("RPM", ""),
                head("CPU", "s/GB"),
            ],
            rows: report.summary.iter().map(|line| row(report, line, unit)).collect(),
            invalid: invalid.collect(),
            lines: lines.collect(),
            seed: report.settings.seed,
            command: text::shell_line(&report.command_line),
        }
    }
}

fn row(report: &BenchReport, line: &BenchSummary, unit: RateUnit) -> Vec<String> {
    let none = || "-".to_owned();
    let idle = typical(report, line).and_then(|(run, _)| run.rtt_idle_ms);
    let goodput = line.goodput_bps.map(|goodput| {
        format!("{} [{}..{}]", unit.number(goodput.median), unit.number(goodput.low), unit.number(goodput.high))
    });
    vec![
        line_words(report, line),
        goodput.unwrap_or_else(none),
        if line.invalid == 0 {
            line.repeats.to_string()
        } else {
            format!("{} of {}", line.repeats, line.repeats + line.invalid)
        },
        line.retransmitted_share.map_or_else(none, |share| percent(share.median)),
        idle.map_or_else(none, |rtt| text::millis(rtt.p50)),
        line.rtt_under_load_ms.map_or_else(none, |rtt| text::millis(rtt.median)),
        line.rtt_under_load_p95_ms.map_or_else(none, |rtt| text::millis(rtt.median)),
        line.rpm.map_or_else(none, |rpm| format!("{:.0}", rpm.median)),
        line.cpu_s_per_gb.map_or_else(none, |cpu| text::three_digits(cpu.median)),
    ]
}

fn section(
    report: &BenchReport,
    line: &BenchSummary,
    run: &BenchRun,
    direction: &DirectionReport,
    index: usize,
) -> Section {
    let mut facts = Vec::new();
    if let Some(version) = &direction.congestion_control_version {
        facts.push(format!("The data was sent with {version}, as the sending socket itself says."));
    }
    if let Some(limited) = direction.limited_by {
        facts.push(format!(
            "Limited by the receiver's window {}, the send buffer {}, congestion window or pacing {}.",
            text::share(limited.receive_window),
            text::share(limited.send_buffer),
            text::share(limited.congestion_window)
        ));
    }
    if let Some(path) = &direction.path {
        facts.push(path_words(path));
    }
    let id = format!("line{index}");
    let seconds = report.settings.omit_s + run.duration_s;
    let rate = RateUnit::for_all([direction.goodput_bps.unwrap_or(0) as f64].into_iter());
    let draw = |name: &str, unit: &str, series: &Series, scale: f64, number: usize| {
        plot(name, unit, series, scale, (seconds, report.settings.omit_s), &format!("{id}p{number}"))
    };
    let plots = [
        draw("Goodput", rate.name(), &direction.goodput_series_bps.clone().means(MOST_POINTS), rate.bps(), 0),
        draw("RTT of a separate flow", "ms", &run.rtt_series_ms.clone().extremes(MOST_POINTS), 1.0, 1),
        draw("Smoothed RTT of the first stream", "ms", &direction.srtt_series_ms.clone().extremes(MOST_POINTS), 1.0, 2),
        draw("Congestion window", "segments", &direction.cwnd_series_segments.clone().extremes(MOST_POINTS), 1.0, 3),
        draw("Sent again", "segments", &direction.retransmitted_series_segments.clone().sums(MOST_POINTS / 2), 1.0, 4),
    ];
    let which = if line.repeats > 1 {
        format!("Over time: repeat {}, which has the median goodput.", run.repeat + 1)
    } else {
        "Over time.".to_owned()
    };
    Section { id, name: line_words(report, line), which, facts, plots: plots.into_iter().flatten().collect() }
}

/// A plot over a run of `(seconds, of which warm-up)`.
fn plot(name: &str, unit: &str, series: &Series, scale: f64, time: (f64, f64), id: &str) -> Option<Plot> {
    let points: Vec<(f64, f64)> = series.points().map(|(at, value)| (at, value / scale)).collect();
    let high = points.iter().map(|(_, value)| *value).reduce(f64::max)?;
    let low = points.iter().map(|(_, value)| *value).reduce(f64::min)?;
    let last = points.last().map_or(0.0, |(at, _)| *at);
    let caption = format!("{name}, {unit}");
    let mean = points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64;
    let [least, middle, most] = [low, mean, high].map(text::three_digits);
    let chart = Chart {
        title: caption.clone(),
        description: format!("Over {:.0} seconds: lowest {least}, mean {middle}, highest {most}.", time.0),
        x: Axis::exact("seconds", 0.0, time.0.max(last).max(0.001), 5),
        y: Axis::from_zero("", high, 4),
        lines: vec![Line { name: String::new(), style: 0, mark: Mark::Line, points, intervals: Vec::new() }],
        shaded_to: (time.1 > 0.0).then_some(time.1),
    };
    Some(Plot { caption, svg: Value::from_safe_string(chart.svg(id)) })
}
