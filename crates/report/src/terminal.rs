//! The table that `lab run` prints.

use unicode_width::UnicodeWidthStr;

use crate::disagree::{disagreements, goodput_disagrees};
use crate::groups::{Group, groups};
use crate::model::{Interval, LabReport, SummaryLine};
use crate::table::{Style, draw_table, paint};
use crate::text;

/// Names longer than this are clipped, so that figures keep their place.
const NAME_COLUMNS: usize = 24;

/// The report as tables for a terminal `width` columns wide, with ANSI colours where `colour`.
///
/// Where a table is too wide it loses its least important columns; figures are never wrapped. Ends with a line feed.
pub fn render_lab_table(report: &LabReport, width: usize, colour: bool) -> String {
    let mut out = String::new();
    heading(&mut out, report, width, colour);
    let disagreements = disagreements(report);
    for group in groups(report) {
        out.push('\n');
        let path: Vec<String> = group.path_words().iter().map(|words| words.replace(' ', "\u{a0}")).collect();
        let title = format!("{}: {}", group.name, path.join(", "));
        for (index, line) in text::wrap(&title, width, "").lines().enumerate() {
            out.push_str(&paint(line, if index == 0 { Style::Bold } else { Style::Plain }, colour));
            out.push('\n');
        }
        if group.lines.is_empty() {
            out.push_str("  no run was made\n");
            continue;
        }
        if let Some(versions) = group.versions() {
            out.push_str(&text::wrap(&versions, width, ""));
        }
        out.push_str(&summary_table(&group, width, colour));
        out.push_str(&shares_table(&group, width, colour));
        invalid_runs(&mut out, &group, width, colour);
        let here = disagreements.iter().filter(|d| d.scenario == group.name);
        for (index, disagreement) in here.enumerate() {
            if index == 0 {
                out.push_str("Where published and measured disagree:\n");
            }
            out.push_str(&text::wrap(&disagreement.sentence(), width, "  "));
            if let Some(note) = &disagreement.note {
                out.push_str(&text::wrap(note, width, "    "));
            }
        }
    }
    out
}

fn heading(out: &mut String, report: &LabReport, width: usize, colour: bool) {
    let kernel = &report.kernel;
    let line = format!(
        "linerate {}, kernel {} {}, {} CPU{}, {}",
        report.linerate_version,
        kernel.release,
        kernel.architecture,
        kernel.cpus,
        if kernel.cpus == 1 { "" } else { "s" },
        report.started_at
    );
    out.push_str(&text::wrap(&line, width, ""));
    if let Some(simulated) = simulated_words(report) {
        out.push_str(&paint(text::wrap(simulated, width, "").trim_end(), Style::Warning, colour));
        out.push('\n');
    }
    if let Some(partial) = partial_words(report) {
        out.push_str(&paint(text::wrap(&partial, width, "").trim_end(), Style::Warning, colour));
        out.push('\n');
    }
    for warning in &report.warnings {
        out.push_str(&text::wrap(&format!("warning: {warning}"), width, ""));
    }
    if report.scenarios.is_empty() && report.results.is_empty() {
        out.push_str("no scenario was run\n");
    }
}

/// What a report of the simulator says about itself.
pub(crate) fn simulated_words(report: &LabReport) -> Option<&'static str> {
    report
        .simulated
        .then_some("SIMULATED in virtual time: no kernel's TCP took part. docs/sim.md says how far the figures carry.")
}

/// What a partial report says about itself.
pub(crate) fn partial_words(report: &LabReport) -> Option<String> {
    report.partial.then(|| {
        let reason = report.partial_reason.as_deref().unwrap_or("no reason recorded");
        let finished =
            report.results.iter().filter(|run| run.invalid_reason.as_deref() != Some(crate::STOPPED)).count();
        format!("PARTIAL: {finished} of {} runs were finished ({reason}).", report.planned_runs())
    })
}

fn invalid_runs(out: &mut String, group: &Group, width: usize, colour: bool) {
    for line in group.lines.iter().filter(|line| line.valid_repeats < line.repeats) {
        let invalid = line.repeats - line.valid_repeats;
        let cell = group.cell_words(line);
        let words = format!(
            "! {}{}{}: {invalid} of {} run{} invalid and left out: {}.",
            group.profile_words(line),
            if cell.is_empty() { "" } else { ", " },
            cell,
            line.repeats,
            if line.repeats == 1 { "" } else { "s" },
            line.invalid_reasons.join("; ")
        );
        out.push_str(&paint(text::wrap(&words, width, "").trim_end(), Style::Warning, colour));
        out.push('\n');
    }
}

/// One column: its heading in two lines, when it is given up (the highest first; zero: never), and what stands in it.
struct Column<'a> {
    heading: [&'a str; 2],
    give_up: u8,
    left: bool,
    cell: CellOf<'a>,
    /// What takes its place when it is given up.
    narrower: Option<CellOf<'a>>,
}

type CellOf<'a> = Box<dyn Fn(&SummaryLine) -> (String, Style) + 'a>;

fn summary_table(group: &Group, width: usize, colour: bool) -> String {
    let mut columns = columns(group);
    loop {
        let plain = draw(&columns, &group.lines, false);
        let widest = plain.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
        let least = columns.iter().enumerate().filter(|(_, c)| c.give_up > 0).max_by_key(|(_, c)| c.give_up);
        match least {
            Some((index, _)) if widest > width => match columns[index].narrower.take() {
                Some(cell) => (columns[index].cell, columns[index].give_up) = (cell, 0),
                None => drop(columns.remove(index)),
            },
            _ if colour => return draw(&columns, &group.lines, true),
            _ => return plain,
        }
    }
}

fn columns<'a>(group: &'a Group<'a>) -> Vec<Column<'a>> {
    let unit = group.rate_unit();
    let any = |has: &dyn Fn(&SummaryLine) -> bool| group.lines.iter().any(|line| has(line));
    let mut columns: Vec<Column> = Vec::new();
    let mut add = |shown: bool, heading: [&'a str; 2], give_up: u8, cell: CellOf<'a>| {
        if shown {
            columns.push(Column { heading, give_up, left: false, cell, narrower: None });
        }
    };
    let plain = |text: String| (text, Style::Plain);
    let millis = |value: Option<f64>| (value.map_or_else(none, text::millis), Style::Plain);

    add(group.varies.loss, ["loss", ""], 0, Box::new(move |line| plain(text::loss(line.loss))));
    add(group.varies.rtt, ["RTT", "ms"], 0, Box::new(move |line| plain(text::millis(line.rtt_ms))));
    add(group.varies.queue, ["queue", ""], 0, Box::new(move |line| plain(text::clip(&line.queue, 12))));
    add(true, ["profile", ""], 0, Box::new(move |line| plain(text::clip(&group.profile_words(line), NAME_COLUMNS))));
    add(true, ["goodput", unit.name()], 2, Box::new(move |line| goodput(group, line, true)));
    add(true, ["n", ""], 6, Box::new(repeats));
    let has_published = any(&|line| line.published_goodput_bps.is_some());
    add(
        has_published,
        ["published", unit.name()],
        1,
        Box::new(move |line| plain(line.published_goodput_bps.map_or_else(none, |bps| unit.number(bps as f64)))),
    );
    add(has_published, ["ratio", "to publ."], 3, Box::new(ratio));
    add(
        any(&|line| line.rtt_idle_ms.is_some()),
        ["idle", "RTT ms"],
        11,
        Box::new(move |line| millis(line.rtt_idle_ms.map(|rtt| rtt.median))),
    );
    let has_loaded = any(&|line| line.rtt_under_load_ms.is_some());
    add(
        has_loaded,
        ["loaded", "p50 ms"],
        5,
        Box::new(move |line| millis(line.rtt_under_load_ms.map(|rtt| rtt.p50.median))),
    );
    add(
        has_loaded,
        ["loaded", "p95 ms"],
        9,
        Box::new(move |line| millis(line.rtt_under_load_ms.map(|rtt| rtt.p95.median))),
    );
    add(
        any(&|line| line.published_rtt_under_load_ms.is_some()),
        ["publ.", "ms"],
        14,
        Box::new(move |line| millis(line.published_rtt_under_load_ms)),
    );
    add(
        any(&|line| line.queueing_delay_ms.is_some()),
        ["queueing", "p95 ms"],
        10,
        Box::new(move |line| millis(line.queueing_delay_ms.map(|delay| delay.p95.median))),
    );
    add(
        any(&|line| line.published_queueing_delay_ms.is_some()),
        ["publ.", "ms"],
        13,
        Box::new(move |line| millis(line.published_queueing_delay_ms)),
    );
    add(
        any(&|line| line.retransmitted_segments.is_some()),
        ["retrans-", "mitted"],
        if any(&|line| line.published_retransmitted_segments.is_some()) { 8 } else { 12 },
        Box::new(move |line| {
            plain(beside(
                line.retransmitted_segments,
                line.published_retransmitted_segments.map(|n| n as f64),
                text::count,
            ))
        }),
    );
    add(
        any(&|line| line.completion_s.is_some()),
        ["complete", "s (publ.)"],
        4,
        Box::new(move |line| plain(beside(line.completion_s, line.published_completion_s, text::three_digits))),
    );
    add(
        any(&|line| line.first_contentful_paint_ms.is_some()),
        ["first paint", "ms (publ.)"],
        7,
        Box::new(move |line| {
            let published = line.published_first_contentful_paint_ms;
            plain(beside(line.first_contentful_paint_ms, published, |ms| format!("{ms:.0}")))
        }),
    );
    add(
        any(&|line| line.page_load_ms.is_some()),
        ["page", "load ms"],
        9,
        Box::new(move |line| plain(line.page_load_ms.map_or_else(String::new, |load| format!("{:.0}", load.median)))),
    );
    for column in &mut columns {
        column.left = column.heading[0] == "profile";
        if column.heading[0] == "goodput" {
            column.narrower = Some(Box::new(move |line| goodput(group, line, false)));
        }
    }
    columns
}

fn none() -> String {
    "-".to_owned()
}

/// `7.42 (7.10)`: measured, and published where it is.
fn beside(measured: Option<Interval>, published: Option<f64>, show: impl Fn(f64) -> String) -> String {
    match (measured, published) {
        (Some(measured), Some(published)) => format!("{} ({})", show(measured.median), show(published)),
        (Some(measured), None) => show(measured.median),
        (None, Some(published)) => format!("- ({})", show(published)),
        (None, None) => none(),
    }
}

fn goodput(group: &Group, line: &SummaryLine, with_interval: bool) -> (String, Style) {
    let unit = group.rate_unit();
    match line.goodput_bps {
        Some(goodput) if with_interval && goodput.low < goodput.high => (
            format!("{} [{}..{}]", unit.number(goodput.median), unit.number(goodput.low), unit.number(goodput.high)),
            Style::Bold,
        ),
        Some(goodput) => (unit.number(goodput.median), Style::Bold),
        None if line.valid_repeats == 0 => ("invalid".to_owned(), Style::Warning),
        None => (none(), Style::Plain),
    }
}

fn repeats(line: &SummaryLine) -> (String, Style) {
    if line.valid_repeats == line.repeats {
        (line.repeats.to_string(), Style::Plain)
    } else {
        (format!("{} of {}!", line.valid_repeats, line.repeats), Style::Warning)
    }
}

fn ratio(line: &SummaryLine) -> (String, Style) {
    match line.measured_over_published {
        Some(ratio) if goodput_disagrees(line) => (text::ratio(ratio), Style::Warning),
        Some(ratio) => (text::ratio(ratio), Style::Plain),
        None => (none(), Style::Plain),
    }
}

fn draw(columns: &[Column], lines: &[&SummaryLine], colour: bool) -> String {
    let headings = columns.iter().map(|c| (c.heading.join("\n"), c.left));
    let rows = lines.iter().map(|line| columns.iter().map(|column| (column.cell)(line)).collect());
    draw_table(headings.collect(), rows.collect(), colour)
}

/// Shares of the goodput and Jain's index, for scenarios in which flows compete.
fn shares_table(group: &Group, width: usize, colour: bool) -> String {
    let with_shares: Vec<&SummaryLine> = group.lines.iter().copied().filter(|line| !line.shares.is_empty()).collect();
    let Some(first) = with_shares.first() else { return String::new() };
    let names = |line: &SummaryLine| line.shares.iter().map(crate::shares::name).collect::<Vec<_>>();
    let columns = names(first);
    let one_column_each = columns.len() <= 6 && with_shares.iter().all(|line| names(line) == columns);

    let mut headings = Vec::new();
    if group.varies.loss || group.varies.rtt || group.varies.queue {
        headings.push(("share of goodput".to_owned(), true));
    }
    headings.push(("profile".to_owned(), true));
    if one_column_each {
        headings.extend(columns.iter().map(|name| (text::clip(name, NAME_COLUMNS), false)));
    } else {
        headings.extend([("largest share".to_owned(), false), ("smallest share".to_owned(), false)]);
    }
    headings.push(("Jain".to_owned(), false));

    let row = |line: &&SummaryLine| {
        let mut cells = Vec::new();
        if headings[0].0 != "profile" {
            cells.push(text::clip(&group.cell_words(line), NAME_COLUMNS));
        }
        cells.push(text::clip(&group.profile_words(line), NAME_COLUMNS));
        if one_column_each {
            cells.extend(line.shares.iter().map(|share| text::share(share.share.median)));
        } else {
            let by_size = |a: &&crate::Share, b: &&crate::Share| a.share.median.total_cmp(&b.share.median);
            let words = |share: Option<&crate::Share>| {
                share.map_or_else(none, |s| {
                    format!("{} {}", text::clip(&crate::shares::name(s), 16), text::share(s.share.median))
                })
            };
            cells.push(words(line.shares.iter().max_by(by_size)));
            cells.push(words(line.shares.iter().min_by(by_size)));
        }
        cells.push(line.jain_index.map_or_else(none, |jain| format!("{:.2}", jain.median)));
        cells.into_iter().map(|cell| (cell, Style::Plain)).collect::<Vec<_>>()
    };
    let rows: Vec<_> = with_shares.iter().map(row).collect();
    if draw_table(headings.clone(), rows.clone(), false).lines().any(|line| line.width() > width) {
        // Too many or too long names for columns: words wrap.
        return with_shares.iter().map(|line| text::wrap(&crate::shares::sentence(group, line), width, "  ")).collect();
    }
    format!("\n{}", draw_table(headings, rows, colour))
}
