//! One scenario of the page: the table that puts published beside measured, why they disagree, shares, curves, cells.

use minijinja::Value;
use serde::Serialize;

use super::cell::CellView;
use super::{Data, Figure, Head, Table, sweep};
use crate::disagree::{disagreements, goodput_disagrees};
use crate::groups::Group;
use crate::model::{Interval, LabReport, SummaryLine};
use crate::plot::Strip;
use crate::text;

#[derive(Serialize)]
pub(super) struct Section {
    id: String,
    name: String,
    title: String,
    about: String,
    path: Vec<String>,
    summary: Table,
    disagreements: Vec<Reason>,
    invalid: Vec<String>,
    shares: Option<Table>,
    curves: Vec<Figure>,
    cells: Vec<CellView>,
}

#[derive(Serialize)]
struct Reason {
    sentence: String,
    note: Option<String>,
}

impl Section {
    pub(super) fn of(report: &LabReport, group: &Group, index: usize) -> Self {
        let id = format!("s{index}");
        let here = disagreements(report).into_iter().filter(|d| d.scenario == group.name);
        Self {
            name: group.name.to_owned(),
            title: group.spec.map_or(String::new(), |spec| spec.title.clone()),
            about: group.spec.map_or(String::new(), |spec| spec.about.clone()),
            path: path_words(group),
            summary: summary_table(group, &id),
            disagreements: here.map(|d| Reason { sentence: d.sentence(), note: d.note }).collect(),
            invalid: group.lines.iter().filter_map(|line| invalid_words(group, line)).collect(),
            shares: shares_table(group),
            curves: sweep::curves(group, &id),
            cells: group
                .lines
                .iter()
                .enumerate()
                .map(|(i, line)| CellView::of(report, group, line, &cell_id(&id, i)))
                .collect(),
            id,
        }
    }
}

fn cell_id(section: &str, line: usize) -> String {
    format!("{section}c{line}")
}

fn path_words(group: &Group) -> Vec<String> {
    let mut words = group.path_words();
    if let Some(spec) = group.spec {
        words.push(format!("MTU {}", spec.path.mtu_bytes));
        words.extend(spec.path.details.iter().map(|detail| format!("{} {}", detail.name, detail.value)));
    }
    words
}

fn invalid_words(group: &Group, line: &SummaryLine) -> Option<String> {
    let cell = group.cell_words(line);
    let name = [group.profile_words(line), cell].into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(", ");
    (line.valid_repeats < line.repeats).then(|| {
        format!(
            "{name}: {} of {} invalid and left out of the figures: {}.",
            line.repeats - line.valid_repeats,
            if line.repeats == 1 { "1 run".to_owned() } else { format!("{} runs", line.repeats) },
            line.invalid_reasons.join("; ")
        )
    })
}

/// Published beside measured. Columns that no line has anything for are left out.
fn summary_table(group: &Group, id: &str) -> Table {
    let unit = group.rate_unit();
    let any = |has: &dyn Fn(&SummaryLine) -> bool| group.lines.iter().any(|line| has(line));
    let mut columns: Vec<(Head, Box<dyn Fn(usize, &SummaryLine) -> Data + '_>)> = Vec::new();
    let millis = |interval: Interval| text::millis(interval.median);

    if group.varies.loss {
        columns.push((Head::figure("loss", ""), Box::new(|_, line| Data::figure(text::loss(line.loss)))));
    }
    if group.varies.rtt {
        columns.push((Head::figure("RTT", "ms"), Box::new(|_, line| Data::figure(text::millis(line.rtt_ms)))));
    }
    if group.varies.queue {
        columns.push((
            Head::figure("queue", ""),
            Box::new(|_, line| {
                let bytes = line.queue_bytes.map(text::bytes).filter(|bytes| *bytes != line.queue);
                Data::figure(line.queue.clone()).below(bytes.unwrap_or_default())
            }),
        ));
    }
    columns.push((
        Head::name("profile"),
        Box::new(|index, line| Data {
            to: Some(cell_id(id, index)),
            ..Data::name(group.profile_words(line)).below(control_words(line))
        }),
    ));
    if any(&|line| line.published_goodput_bps.is_some()) {
        columns.push((
            Head::figure("published", unit.name()),
            Box::new(move |_, line| match line.published_goodput_bps {
                Some(bps) => Data::figure(unit.number(bps as f64))
                    .below(line.published_label.clone().filter(|label| *label != line.profile).unwrap_or_default()),
                None => Data::figure("–"),
            }),
        ));
    }
    columns.push((Head::figure("measured", unit.name()), Box::new(move |_, line| measured(group, line))));
    if any(&|line| line.measured_over_published.is_some()) {
        columns.push((
            Head::figure("measured / published", ""),
            Box::new(|_, line| Data {
                class: if goodput_disagrees(line) { "figure off" } else { "figure" },
                ..Data::figure(line.measured_over_published.map_or("–".to_owned(), text::ratio))
            }),
        ));
    }
    let values = group.lines.iter().flat_map(|line| {
        let measured = line.goodput_bps.map(|goodput| [goodput.low, goodput.high]);
        let published = line.published_goodput_bps.map(|bps| bps as f64);
        measured.into_iter().flatten().chain(published).map(move |bps| bps / unit.bps())
    });
    if let Some(strip) = Strip::over(values) {
        let heading = Value::from_safe_string(strip.heading());
        columns.push((
            Head { picture: Some(heading), class: "strip", ..Head::figure("", unit.name()) },
            Box::new(move |_, line| {
                let scaled = |value: f64| value / unit.bps();
                let measured = line.goodput_bps.map(|goodput| Interval {
                    median: scaled(goodput.median),
                    low: scaled(goodput.low),
                    high: scaled(goodput.high),
                });
                let row = strip.row(measured, line.published_goodput_bps.map(|bps| scaled(bps as f64)));
                Data { class: "strip", picture: Some(Value::from_safe_string(row)), ..Data::default() }
            }),
        ));
    }
    if any(&|line| line.rtt_idle_ms.is_some()) {
        columns.push((
            Head::figure("RTT idle", "ms"),
            Box::new(move |_, line| Data::figure(line.rtt_idle_ms.map_or("–".to_owned(), millis))),
        ));
    }
    if any(&|line| line.rtt_under_load_ms.is_some() || line.published_rtt_under_load_ms.is_some()) {
        columns.push((
            Head::figure("RTT under load", "ms, p50 / p95"),
            Box::new(move |_, line| {
                let measured = line.rtt_under_load_ms.map(|rtt| format!("{} / {}", millis(rtt.p50), millis(rtt.p95)));
                beside(measured, line.published_rtt_under_load_ms.map(text::millis))
            }),
        ));
    }
    if any(&|line| line.queueing_delay_ms.is_some() || line.published_queueing_delay_ms.is_some()) {
        columns.push((
            Head::figure("queueing delay", "ms, p50 / p95"),
            Box::new(move |_, line| {
                let measured =
                    line.queueing_delay_ms.map(|delay| format!("{} / {}", millis(delay.p50), millis(delay.p95)));
                beside(measured, line.published_queueing_delay_ms.map(text::millis))
            }),
        ));
    }
    if any(&|line| line.completion_s.is_some() || line.published_completion_s.is_some()) {
        columns.push((
            Head::figure("completion", "s"),
            Box::new(|_, line| {
                let measured = line.completion_s.map(|s| text::three_digits(s.median));
                beside(measured, line.published_completion_s.map(text::three_digits))
            }),
        ));
    }
    if any(&|line| line.first_contentful_paint_ms.is_some() || line.published_first_contentful_paint_ms.is_some()) {
        columns.push((
            Head::figure("First Contentful Paint", "ms"),
            Box::new(|_, line| {
                let measured = line.first_contentful_paint_ms.map(|ms| format!("{:.0}", ms.median));
                beside(measured, line.published_first_contentful_paint_ms.map(|ms| format!("{ms:.0}")))
            }),
        ));
    }
    if any(&|line| line.page_load_ms.is_some()) {
        columns.push((
            Head::figure("page load", "ms"),
            Box::new(|_, line| {
                Data::figure(line.page_load_ms.map_or("–".to_owned(), |ms| format!("{:.0}", ms.median)))
            }),
        ));
    }
    if any(&|line| line.retransmitted_segments.is_some()) {
        columns.push((
            Head::figure("retrans\u{ad}mitted", "segments"),
            Box::new(|_, line| {
                let measured = line.retransmitted_segments.map(|count| text::count(count.median));
                beside(measured, line.published_retransmitted_segments.map(|count| text::count(count as f64)))
            }),
        ));
    }
    columns.push((
        Head::figure("runs", ""),
        Box::new(|_, line| {
            if line.valid_repeats == line.repeats {
                Data::figure(line.repeats.to_string())
            } else {
                Data { class: "figure off", ..Data::figure(format!("{} of {}", line.valid_repeats, line.repeats)) }
            }
        }),
    ));

    let rows = group.lines.iter().enumerate();
    Table {
        caption: "Goodput published and measured: median over valid runs, interval below.".to_owned(),
        rows: rows.map(|(index, line)| columns.iter().map(|(_, cell)| cell(index, line)).collect()).collect(),
        head: columns.into_iter().map(|(head, _)| head).collect(),
    }
}

/// The congestion control with its version, as far as the profile's name does not say it.
fn control_words(line: &SummaryLine) -> String {
    match &line.congestion_control_version {
        Some(version) if *version == line.congestion_control => String::new(),
        Some(version) => format!("{}: {version}", line.congestion_control),
        None if line.profile.contains(&line.congestion_control) => String::new(),
        None => line.congestion_control.clone(),
    }
}

fn measured(group: &Group, line: &SummaryLine) -> Data {
    let unit = group.rate_unit();
    match line.goodput_bps {
        Some(goodput) if goodput.low < goodput.high => Data { class: "figure measured", ..Data::default() }
            .main(unit.number(goodput.median))
            .below(format!("{} – {}", unit.number(goodput.low), unit.number(goodput.high))),
        Some(goodput) => Data { class: "figure measured", ..Data::default() }.main(unit.number(goodput.median)),
        None if line.valid_repeats == 0 => Data { class: "figure off", ..Data::default() }.main("no valid run"),
        None => Data::figure("–"),
    }
}

impl Data {
    fn main(mut self, main: impl Into<String>) -> Self {
        self.main = main.into();
        self
    }
}

fn beside(measured: Option<String>, published: Option<String>) -> Data {
    Data::figure(measured.unwrap_or("–".to_owned()))
        .below(published.map_or(String::new(), |published| format!("published {published}")))
}

fn shares_table(group: &Group) -> Option<Table> {
    let lines: Vec<&&SummaryLine> = group.lines.iter().filter(|line| !line.shares.is_empty()).collect();
    if lines.is_empty() {
        return None;
    }
    let in_cell = !group.cell_words(lines[0]).is_empty();
    let mut head = vec![Head::name("profile"), Head::name("shares of the goodput"), Head::figure("Jain’s index", "")];
    if in_cell {
        head.insert(0, Head::name("cell"));
    }
    let rows = lines.iter().map(|line| {
        let shares = line.shares.iter().map(|share| {
            let interval = if share.share.low < share.share.high {
                format!(" ({} – {})", text::share(share.share.low), text::share(share.share.high))
            } else {
                String::new()
            };
            format!("{} {}{interval}", crate::shares::name(share), text::share(share.share.median))
        });
        let mut row = vec![
            Data::name(group.profile_words(line)),
            Data::name(shares.collect::<Vec<_>>().join(", ")),
            Data::figure(line.jain_index.map_or("–".to_owned(), |jain| format!("{:.2}", jain.median))),
        ];
        if in_cell {
            row.insert(0, Data::name(group.cell_words(line)));
        }
        row
    });
    Some(Table { caption: "Shares of the goodput while all flows ran.".to_owned(), rows: rows.collect(), head })
}
