//! `lab compare A.json B.json`: the cells that two reports share, and whether they differ by more than chance.

use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::groups::{Group, groups};
use crate::model::{Interval, LabReport, Setting, SummaryLine};
use crate::summary::CellKey;
use crate::table::{Style, draw_table, paint};
use crate::text::{self, RateUnit};

/// What can be said of one figure of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The two intervals share no value, and there are runs enough for that to mean something.
    Differs,
    /// The two intervals overlap. Not a proof that there is no difference.
    NoDifferenceSeen,
    /// With so few runs the intervals may be apart by chance.
    TooFewRuns,
}

/// One figure of one cell in both reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// The scenario's name.
    pub scenario: String,
    /// What tells the cell from others of the scenario: `1.5% loss`.
    pub cell: String,
    /// The profile's name.
    pub profile: String,
    /// `goodput_bps`, `rtt_under_load_p95_ms`, `completion_s`.
    pub figure: &'static str,
    /// In the first report.
    pub a: Interval,
    /// In the second.
    pub b: Interval,
    /// Valid runs in the first.
    pub repeats_a: u32,
    /// Valid runs in the second.
    pub repeats_b: u32,
    /// The second's median over the first's; `null` where the first is zero.
    pub b_over_a: Option<f64>,
    /// What can be said.
    pub verdict: Verdict,
}

/// Two reports held against each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// `linerate.lab-compare/1`.
    pub schema: &'static str,
    /// Every figure that both have.
    pub figures: Vec<ComparedFigure>,
    /// Cells that only the first has (or has valid runs of), in words.
    pub only_in_a: Vec<String>,
    /// Cells that only the second has (or has valid runs of), in words.
    pub only_in_b: Vec<String>,
    /// Conditions in which the two differ: kernel, version, length of runs, path, sysctls.
    pub other_conditions: Vec<String>,
}

impl Comparison {
    /// Whether any figure differs: exit code 1 of `lab compare`.
    pub fn differs(&self) -> bool {
        self.figures.iter().any(|figure| figure.verdict == Verdict::Differs)
    }
}

/// Holds two summarised reports against each other, cell by cell: same scenario, profile, congestion control, loss, RTT and
/// queue.
pub fn compare(a: &LabReport, b: &LabReport) -> Comparison {
    let mut comparison = Comparison {
        schema: "linerate.lab-compare/1",
        figures: Vec::new(),
        only_in_a: cells_without_partner(a, b),
        only_in_b: cells_without_partner(b, a),
        other_conditions: other_conditions(a, b),
    };
    for group in groups(a) {
        for line in &group.lines {
            if let Some(partner) = partner(line, b) {
                comparison.figures.extend(FIGURES.iter().filter_map(|figure| figure.compare(&group, line, partner)));
            }
        }
    }
    comparison
}

/// The comparison as a table (A: the first report, B: the second) for a terminal `width` columns wide, with ANSI colours where `colour`.
pub fn render_compare(comparison: &Comparison, width: usize, colour: bool) -> String {
    let mut out = String::new();
    for condition in &comparison.other_conditions {
        out.push_str(&text::wrap(condition, width, ""));
    }
    if comparison.figures.is_empty() {
        out.push_str("The two reports have no cell in common.\n");
    }
    for figures in comparison.figures.chunk_by(|a, b| a.scenario == b.scenario) {
        out.push('\n');
        out.push_str(&paint(&text::clip(&figures[0].scenario, width), Style::Bold, colour));
        out.push('\n');
        out.push_str(&figures_table(figures, width, colour));
    }
    if !comparison.figures.is_empty() {
        out.push('\n');
    }
    for (cells, which) in [(&comparison.only_in_a, "A"), (&comparison.only_in_b, "B")] {
        if !cells.is_empty() {
            out.push_str(&text::wrap(&format!("Only {which} has {}.", text::and_list(cells)), width, ""));
        }
    }
    let count = |verdict| comparison.figures.iter().filter(|figure| figure.verdict == verdict).count();
    let (differ, few) = (count(Verdict::Differs), count(Verdict::TooFewRuns));
    let total = comparison.figures.len();
    if total > 0 {
        let verdict = format!("{differ} of {total} figures differ.");
        out.push_str(&paint(&verdict, if differ > 0 { Style::Bold } else { Style::Plain }, colour));
        out.push('\n');
    }
    if few > 0 {
        let words = format!(
            "{few} cannot be told from chance: make at least 4 valid runs of each, or 3 against 5 (`--repeat`)."
        );
        out.push_str(&text::wrap(&words, width, ""));
    }
    out
}

fn figures_table(figures: &[ComparedFigure], width: usize, colour: bool) -> String {
    let headings = ["cell", "profile", "figure", "A", "B", "B/A", ""];
    let row = |index: usize, intervals: bool| {
        let figure: &ComparedFigure = &figures[index];
        let before = index.checked_sub(1).map(|before| &figures[before]);
        // Names once, above their figures.
        let same_cell = before.is_some_and(|before| before.cell == figure.cell);
        let same_profile = same_cell && before.is_some_and(|before| before.profile == figure.profile);
        let unless = |same: bool, name: &str, width| if same { String::new() } else { text::clip(name, width) };
        let known = FIGURES.iter().find(|known| known.key == figure.figure);
        let show = |interval: Interval| {
            let number = |value| known.map_or_else(|| text::three_digits(value), |known| (known.show)(value, figure));
            if intervals && interval.low < interval.high {
                format!("{} [{}..{}]", number(interval.median), number(interval.low), number(interval.high))
            } else {
                number(interval.median)
            }
        };
        let (verdict, style) = match figure.verdict {
            Verdict::Differs => ("differs", Style::Bold),
            Verdict::NoDifferenceSeen => ("no difference seen", Style::Plain),
            Verdict::TooFewRuns => ("too few runs", Style::Warning),
        };
        vec![
            (unless(same_cell, &figure.cell, 24), Style::Plain),
            (unless(same_profile, &figure.profile, 24), Style::Plain),
            (known.map_or(figure.figure.to_owned(), |known| (known.name)(figure)), Style::Plain),
            (show(figure.a), Style::Plain),
            (show(figure.b), Style::Plain),
            (figure.b_over_a.map_or_else(|| "-".to_owned(), text::ratio), Style::Plain),
            (verdict.to_owned(), style),
        ]
    };
    let left = |index: usize| matches!(index, 0..=2 | 6);
    let draw = |intervals, colour| {
        let headings = headings.iter().enumerate().map(|(index, heading)| ((*heading).to_owned(), left(index)));
        draw_table(headings.collect(), (0..figures.len()).map(|index| row(index, intervals)).collect(), colour)
    };
    let fits = draw(true, false).lines().all(|line| line.width() <= width);
    draw(fits, colour)
}

struct Figure {
    key: &'static str,
    /// With its unit.
    name: fn(&ComparedFigure) -> String,
    of: fn(&SummaryLine) -> Option<Interval>,
    show: fn(f64, &ComparedFigure) -> String,
}

const FIGURES: [Figure; 3] = [
    Figure {
        key: "goodput_bps",
        name: |figure| format!("goodput {}", rate_unit(figure).name()),
        of: |line| line.goodput_bps,
        show: |value, figure| rate_unit(figure).number(value),
    },
    Figure {
        key: "rtt_under_load_p95_ms",
        name: |_| "loaded p95 ms".to_owned(),
        of: |line| line.rtt_under_load_ms.map(|rtt| rtt.p95),
        show: |value, _| text::millis(value),
    },
    Figure {
        key: "completion_s",
        name: |_| "completion s".to_owned(),
        of: |line| line.completion_s,
        show: |value, _| text::three_digits(value),
    },
];

fn rate_unit(figure: &ComparedFigure) -> RateUnit {
    RateUnit::for_all([figure.a.median, figure.b.median].into_iter())
}

impl Figure {
    fn compare(&self, group: &Group, a: &SummaryLine, b: &SummaryLine) -> Option<ComparedFigure> {
        let (interval_a, interval_b) = (self.of)(a).zip((self.of)(b))?;
        let verdict = if interval_a.overlaps(&interval_b) {
            Verdict::NoDifferenceSeen
        } else if enough_runs(a.valid_repeats, b.valid_repeats) {
            Verdict::Differs
        } else {
            Verdict::TooFewRuns
        };
        let ratio = interval_b.median / interval_a.median;
        Some(ComparedFigure {
            scenario: a.scenario.clone(),
            cell: group.cell_words(a),
            profile: group.profile_words(a),
            figure: self.key,
            a: interval_a,
            b: interval_b,
            repeats_a: a.valid_repeats,
            repeats_b: b.valid_repeats,
            b_over_a: ratio.is_finite().then(|| crate::series::six_digits(ratio)),
            verdict,
        })
    }
}

/// Whether two groups of runs of these sizes come out wholly apart by chance in at most 5 % of cases.
///
/// Of all orders of n + m runs without a difference, 2 have one group wholly above the other: 2 / C(n + m, n), the smallest
/// p-value of the two-sided rank-sum test. With fewer runs no distance between them means anything.
fn enough_runs(n: u32, m: u32) -> bool {
    let orders = (1..=n).fold(1.0, |product, i| product * f64::from(m + i) / f64::from(i));
    n.min(m) >= 3 && 2.0 / orders <= 0.05
}

fn partner<'a>(line: &SummaryLine, report: &'a LabReport) -> Option<&'a SummaryLine> {
    let key = CellKey::of_line(line);
    report.summary.iter().find(|other| other.valid_repeats > 0 && CellKey::of_line(other) == key)
}

fn cells_without_partner(of: &LabReport, other: &LabReport) -> Vec<String> {
    let mut cells = Vec::new();
    for group in groups(of) {
        for line in group.lines.iter().filter(|line| line.valid_repeats > 0 && partner(line, other).is_none()) {
            let words = [line.scenario.clone(), group.cell_words(line), group.profile_words(line)];
            cells.push(words.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" "));
        }
    }
    cells
}

fn other_conditions(a: &LabReport, b: &LabReport) -> Vec<String> {
    let mut conditions = Vec::new();
    let words = |settings: &[Setting]| {
        let pairs: Vec<_> = settings.iter().map(|s| format!("{}={}", s.name, s.value)).collect();
        if pairs.is_empty() { "none".to_owned() } else { pairs.join(", ") }
    };
    let mut note = |what: &str, a: &str, b: &str| {
        if a != b {
            conditions.push(format!("{what}: A {a}, B {b}."));
        }
    };
    note("Kernel", &a.kernel.release, &b.kernel.release);
    note("Architecture", &a.kernel.architecture, &b.kernel.architecture);
    note("CPUs", &a.kernel.cpus.to_string(), &b.kernel.cpus.to_string());
    note("linerate", &a.linerate_version, &b.linerate_version);
    for (one, other) in a.scenarios.iter().filter_map(|one| b.scenario(&one.name).map(|other| (one, other))) {
        let of = |what: &str| format!("{} {what}", one.name);
        note(&of("run length, s"), &one.duration_s.to_string(), &other.duration_s.to_string());
        note(&of("warm-up, s"), &one.warmup_s.to_string(), &other.warmup_s.to_string());
        note(&of("seed"), &one.seed.to_string(), &other.seed.to_string());
        note(&of("rate"), &one.path.rate, &other.path.rate);
        note(&of("MTU"), &one.path.mtu_bytes.to_string(), &other.path.mtu_bytes.to_string());
        note(&of("emulator"), &one.path.emulator, &other.path.emulator);
        note(&of("loss"), &one.path.loss_model, &other.path.loss_model);
        note(&of("queue discipline"), &one.path.discipline, &other.path.discipline);
        note(&of("sysctls"), &words(&one.sysctls), &words(&other.sysctls));
        for profile in &one.profiles {
            if let Some(partner) = other.profiles.iter().find(|p| p.name == profile.name) {
                note(&of(&format!("{} sysctls", profile.name)), &words(&profile.sysctls), &words(&partner.sysctls));
            }
        }
    }
    for line in &a.summary {
        if let Some(other) = partner(line, b) {
            let version = |line: &SummaryLine| line.congestion_control_version.clone().unwrap_or("unknown".to_owned());
            note(&format!("{} version", line.congestion_control), &version(line), &version(other));
        }
    }
    let mut seen = Vec::new();
    conditions.retain(|condition| {
        let new = !seen.contains(condition);
        seen.push(condition.clone());
        new
    });
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_against_four_runs_are_enough_and_three_against_three_are_not() {
        assert!(enough_runs(4, 4) && enough_runs(3, 5) && enough_runs(5, 3));
        assert!(!enough_runs(3, 3) && !enough_runs(3, 4) && !enough_runs(1, 1_000) && !enough_runs(2, 100));
    }
}
