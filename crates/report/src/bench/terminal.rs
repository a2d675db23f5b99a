//! The table and lines that `bench` prints.

use super::model::{BenchReport, BenchRun, BenchSummary, DirectionReport, PathEstimate, Settings};
use crate::model::{Interval, Percentiles};
use crate::series::Series;
use crate::table::{Style, draw_table, paint};
use crate::text::{self, RateUnit};

/// Columns of a sparkline.
const SPARKS: usize = 40;
const NAME_COLUMNS: usize = 20;

/// The report for a terminal `width` columns wide, with ANSI colours where `colour`. Ends with a line feed.
pub fn render_bench(report: &BenchReport, width: usize, colour: bool) -> String {
    let mut out = text::wrap(
        &format!("linerate {}, kernel {}, {}", report.linerate_version, report.kernel, report.started_at),
        width,
        "",
    );
    out.push_str(&text::wrap(&server_words(report), width, ""));
    out.push_str(&text::wrap(&settings_words(&report.settings), width, ""));
    if report.partial {
        let reason = report.partial_reason.as_deref().unwrap_or("no reason recorded");
        out.push_str(&paint(text::wrap(&format!("PARTIAL: {reason}."), width, "").trim_end(), Style::Warning, colour));
        out.push('\n');
    }
    for warning in &report.warnings {
        out.push_str(&text::wrap(&format!("warning: {warning}"), width, ""));
    }
    if report.summary.is_empty() {
        out.push_str("no run was made\n");
        return out;
    }
    out.push('\n');
    out.push_str(&table(report, width, colour));
    for line in &report.summary {
        if let Some((run, direction)) = typical(report, line) {
            out.push('\n');
            out.push_str(&details(report, line, run, direction, width));
        }
    }
    for run in report.results.iter().filter(|run| !run.valid) {
        let why = run.invalid_reason.as_deref().unwrap_or("no reason recorded");
        let words = format!(
            "! {}, repeat {}: left out: {why}",
            control_words(run.congestion_control.as_deref()),
            run.repeat + 1
        );
        out.push_str(&paint(text::wrap(&words, width, "").trim_end(), Style::Warning, colour));
        out.push('\n');
    }
    out
}

fn server_words(report: &BenchReport) -> String {
    let server = &report.server;
    let kind = match (&server.linerate_version, &server.kernel) {
        (Some(version), Some(kernel)) => format!("linerate {version}, kernel {kernel}"),
        (Some(version), None) => format!("linerate {version}"),
        _ if server.address.is_empty() => "never answered".to_owned(),
        _ => "an iperf3 server: no probes of the delay and no samples of what it sends".to_owned(),
    };
    format!("server {} ({}): {kind}", server.name, server.address)
}

/// What was asked for, in one line.
pub(super) fn settings_words(settings: &Settings) -> String {
    let direction = match settings.direction.as_str() {
        "both" => "both directions at once",
        other => other,
    };
    let mut words = vec![direction.to_owned()];
    let each = if settings.direction == "both" { " each way" } else { "" };
    words.push(if settings.streams == 1 {
        format!("1 stream{each}")
    } else {
        format!("{} streams{each}", settings.streams)
    });
    match (settings.duration_s, settings.bytes) {
        (Some(seconds), _) => words.push(format!("{seconds} s")),
        (None, Some(bytes)) => words.push(text::bytes(bytes)),
        (None, None) => {}
    }
    if settings.omit_s > 0.0 {
        words.push(format!("after {} s of warm-up", settings.omit_s));
    }
    if let Some(rate) = settings.rate_bps {
        words.push(format!("at most {} a stream", units::Rate::from_bps(rate)));
    }
    if settings.repeats > 1 {
        words.push(format!("{} repeats in random order, seed {}", settings.repeats, settings.seed));
    }
    words.join(", ")
}

pub(super) fn control_words(control: Option<&str>) -> String {
    control.map_or_else(|| "default".to_owned(), |name| text::clip(name, NAME_COLUMNS))
}

/// The congestion control with its direction where there are two.
pub(super) fn line_words(report: &BenchReport, line: &BenchSummary) -> String {
    let name = control_words(line.congestion_control.as_deref());
    if report.settings.direction == "both" { format!("{name} {}", line.direction) } else { name }
}

/// The valid run with the median goodput, or the nearest above; any run where none is valid.
pub(super) fn typical<'a>(report: &'a BenchReport, line: &BenchSummary) -> Option<(&'a BenchRun, &'a DirectionReport)> {
    let of_line = report.results.iter().filter(|run| run.congestion_control == line.congestion_control);
    let all: Vec<(&BenchRun, &DirectionReport)> =
        of_line.filter_map(|run| Some((run, run.direction(&line.direction)?))).collect();
    let mut valid: Vec<_> = all.iter().copied().filter(|(run, _)| run.valid).collect();
    valid.sort_by_key(|(_, direction)| direction.goodput_bps);
    valid.get(valid.len() / 2).copied().or_else(|| all.last().copied())
}

fn table(report: &BenchReport, width: usize, colour: bool) -> String {
    let rates = report.summary.iter().filter_map(|line| line.goodput_bps.map(|goodput| goodput.median));
    let unit = RateUnit::for_all(rates.collect::<Vec<_>>().into_iter());
    let typical_run = |line: &BenchSummary| typical(report, line).map(|(run, _)| run);
    let percentiles =
        |rtt: Option<Percentiles>| rtt.map(|rtt| [rtt.p50, rtt.p95, rtt.p99].map(text::millis).join(" / "));
    let any = |has: &dyn Fn(&BenchSummary) -> bool| report.summary.iter().any(has);
    type Cell<'a> = Box<dyn Fn(&BenchSummary) -> Option<String> + 'a>;
    let mut columns: Vec<(String, u8, Cell)> = vec![
        ("congestion\ncontrol".into(), 0, Box::new(|line| Some(line_words(report, line)))),
        (
            format!("goodput\n{}", unit.name()),
            0,
            Box::new(move |line| line.goodput_bps.map(|goodput| rate(unit, goodput))),
        ),
        (
            "n".into(),
            5,
            Box::new(|line| {
                let all = line.repeats + line.invalid;
                Some(if line.invalid == 0 { all.to_string() } else { format!("{} of {all}!", line.repeats) })
            }),
        ),
        ("sent\nagain".into(), 2, Box::new(|line| line.retransmitted_share.map(|share| percent(share.median)))),
    ];
    if any(&|line| typical_run(line).is_some_and(|run| run.rtt_idle_ms.is_some())) {
        columns.push((
            "RTT idle\nms".into(),
            4,
            Box::new(move |line| typical_run(line)?.rtt_idle_ms.map(|rtt| text::millis(rtt.p50))),
        ));
    }
    if any(&|line| line.rtt_under_load_ms.is_some()) {
        let cell = move |line: &BenchSummary| percentiles(typical_run(line)?.rtt_under_load_ms);
        columns.push(("RTT loaded ms\np50 / p95 / p99".into(), 1, Box::new(cell)));
    }
    if any(&|line| line.rpm.is_some()) {
        columns.push(("RPM".into(), 3, Box::new(|line| line.rpm.map(|rpm| format!("{:.0}", rpm.median)))));
    }
    if any(&|line| line.cpu_s_per_gb.is_some()) {
        columns.push((
            "CPU\ns/GB".into(),
            6,
            Box::new(|line| line.cpu_s_per_gb.map(|cpu| text::three_digits(cpu.median))),
        ));
    }
    let draw = |columns: &[(String, u8, Cell)], colour: bool| {
        let headings = columns.iter().enumerate().map(|(index, (heading, _, _))| (heading.clone(), index == 0));
        let rows = report.summary.iter().map(|line| {
            let cell = |(index, (_, _, cell)): (usize, &(String, u8, Cell))| {
                let style = if index == 1 { Style::Bold } else { Style::Plain };
                (cell(line).unwrap_or_else(|| "-".to_owned()), style)
            };
            columns.iter().enumerate().map(cell).collect()
        });
        draw_table(headings.collect(), rows.collect(), colour)
    };
    loop {
        let plain = draw(&columns, false);
        let widest = plain.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap_or(0);
        let least = columns.iter().enumerate().filter(|(_, column)| column.1 > 0).max_by_key(|(_, column)| column.1);
        match least {
            Some((index, _)) if widest > width => drop(columns.remove(index)),
            _ if colour => return draw(&columns, true),
            _ => return plain,
        }
    }
}

fn rate(unit: RateUnit, goodput: Interval) -> String {
    if goodput.low < goodput.high {
        format!("{} [{}..{}]", unit.number(goodput.median), unit.number(goodput.low), unit.number(goodput.high))
    } else {
        unit.number(goodput.median)
    }
}

pub(super) fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        0.0 => "0%".to_owned(),
        percent if percent < 0.01 => "<0.01%".to_owned(),
        percent if percent < 10.0 => format!("{percent:.2}%"),
        percent => format!("{percent:.0}%"),
    }
}

/// Goodput over time, what limited it, and what the path looks like, of one run.
fn details(
    report: &BenchReport,
    line: &BenchSummary,
    run: &BenchRun,
    direction: &DirectionReport,
    width: usize,
) -> String {
    let mut out = String::new();
    let name = line_words(report, line);
    let version = direction.congestion_control_version.clone().or_else(|| direction.congestion_control.clone());
    let said = match version {
        Some(version) if version != name && !name.starts_with(&version) => format!("{name}: ran {version}"),
        _ => name,
    };
    let which = if line.repeats > 1 { format!(" (repeat {}, the median)", run.repeat + 1) } else { String::new() };
    out.push_str(&text::wrap(&format!("{said}{which}"), width, ""));
    if let Some((sparks, low, high)) = sparkline(&direction.goodput_series_bps) {
        let unit = RateUnit::for_all([high].into_iter());
        out.push_str(&format!("  {sparks}  {} to {} {}\n", unit.number(low), unit.number(high), unit.name()));
    }
    if let Some(limited) = direction.limited_by {
        let parts = [
            ("the receiver's window", limited.receive_window),
            ("the send buffer", limited.send_buffer),
            ("congestion window or pacing", limited.congestion_window),
        ];
        let parts: Vec<String> = parts.iter().map(|(what, share)| format!("{what} {}", text::share(*share))).collect();
        out.push_str(&text::wrap(&format!("limited by {}", text::and_list(&parts)), width, "  "));
    }
    if let Some(latency) = run.latency_in_flow_ms {
        let words = format!(
            "inside the loaded flow, from one application to the other and back: {} ms p50, {} ms p95",
            text::millis(latency.p50),
            text::millis(latency.p95)
        );
        out.push_str(&text::wrap(&words, width, "  "));
    }
    if let Some(path) = &direction.path {
        out.push_str(&text::wrap(&path_words(path), width, "  "));
    }
    out
}

/// The estimate in one or two sentences.
pub(super) fn path_words(path: &PathEstimate) -> String {
    let mut parts = Vec::new();
    if let Some(bps) = path.bottleneck_bps {
        let least = if path.bottleneck_at_least { "at least " } else { "" };
        let unit = RateUnit::for_all([bps as f64].into_iter());
        parts.push(format!("bottleneck {least}{} {}", unit.number(bps as f64), unit.name()));
    }
    if let Some(ms) = path.min_rtt_ms {
        parts.push(format!("min RTT {} ms", text::millis(ms)));
    }
    if let Some(bdp) = path.bdp_bytes {
        parts.push(format!("BDP {}", text::bytes(bdp)));
    }
    if let Some(ms) = path.queueing_delay_ms {
        parts.push(format!("queueing delay {} ms", text::millis(ms)));
    }
    let loss = match (path.loss_kind.as_str(), path.loss) {
        ("none", _) => "no loss".to_owned(),
        (kind, Some(loss)) => format!("loss {} ({kind})", percent(loss)),
        (kind, None) => format!("loss ({kind})"),
    };
    parts.push(loss);
    format!("path: {}. {}.", parts.join(", "), path.because)
}

/// A series as block characters from zero to its highest value, and its lowest and highest mean over a character.
pub(super) fn sparkline(series: &Series) -> Option<(String, f64, f64)> {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let points: Vec<f64> = series.clone().means(SPARKS).points().map(|(_, value)| value).collect();
    let high = points.iter().copied().reduce(f64::max).filter(|high| *high > 0.0)?;
    let low = points.iter().copied().reduce(f64::min)?;
    let block = |value: &f64| BLOCKS[((value / high * 8.0).ceil() as usize).clamp(1, 8) - 1];
    Some((points.iter().map(block).collect(), low, high))
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;

    #[test]
    fn a_sparkline_shows_zero_and_the_highest_value() {
        let at = |n: u64| Instant::from_nanos(n * 100_000_000);
        let series = Series::from_points((0..4).map(|n| (at(n), [0.0, 4.0, 8.0, 2.0][n as usize])));
        assert_eq!(sparkline(&series), Some(("▁▄█▂".to_owned(), 0.0, 8.0)));
        assert_eq!(sparkline(&Series::new()), None);
    }

    #[test]
    fn a_small_share_is_not_shown_as_nothing() {
        assert_eq!([0.0, 0.000_01, 0.015, 0.25].map(percent), ["0%", "<0.01%", "1.50%", "25%"]);
    }
}
