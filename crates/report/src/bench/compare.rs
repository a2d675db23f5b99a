//! What `bench compare` says: plain values, and their table.

use serde::Serialize;

use super::terminal::percent;
use crate::model::Interval;
use crate::table::{Style, draw_table, paint};
use crate::text::{self, RateUnit};

/// Two sets of runs held against each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchComparison {
    /// The first set in words: file and congestion control.
    pub a: String,
    /// The second.
    pub b: String,
    /// Whether runs were compared in pairs.
    pub paired: bool,
    /// The level: where there is no difference, one is seen in at most this share of comparisons.
    pub level: f64,
    /// Conditions in which the two differ.
    pub other_conditions: Vec<String>,
    /// The figures; the first decides.
    pub figures: Vec<ComparedRuns>,
}

/// One figure of both sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRuns {
    /// Which: `goodput_bps`, `rtt_under_load_ms`, `retransmitted_share`, `rpm`, `cpu_s_per_gb`.
    pub figure: String,
    /// `forward` or `reverse`.
    pub direction: String,
    /// Valid runs of the first.
    pub runs_a: usize,
    /// Valid runs of the second.
    pub runs_b: usize,
    /// The first's median and its interval.
    pub a: Interval,
    /// The second's.
    pub b: Interval,
    /// `signed-rank` or `mann-whitney`.
    pub method: &'static str,
    /// Probability of such ranks without a difference.
    pub p: f64,
    /// From -1 (B always smaller) to 1 (B always larger).
    pub effect: f64,
    /// Shift from A to B.
    pub shift: f64,
    /// Its interval; `null`: so few runs can't give one.
    pub shift_low: Option<f64>,
    /// Its upper end.
    pub shift_high: Option<f64>,
    /// `differs`, `no-difference-seen`, `too-few-runs`.
    pub verdict: &'static str,
}

impl BenchComparison {
    /// Whether the figure that decides differs.
    pub fn differs(&self) -> bool {
        self.figures.first().is_some_and(|figure| figure.verdict == "differs")
    }
}

/// The comparison for a terminal `width` columns wide, with ANSI colours where `colour`. Ends with a line feed.
pub fn render_bench_compare(comparison: &BenchComparison, width: usize, colour: bool) -> String {
    let mut out = text::wrap(&format!("A: {}", comparison.a), width, "");
    out.push_str(&text::wrap(&format!("B: {}", comparison.b), width, ""));
    for condition in &comparison.other_conditions {
        out.push_str(&text::wrap(&format!("other conditions: {condition}"), width, ""));
    }
    let Some(first) = comparison.figures.first() else {
        out.push_str("Nothing was compared: there is no figure of which both have a valid run.\n");
        return out;
    };
    out.push('\n');
    let headings = ["figure", "A", "B", "B less A", "95% interval", "effect", "p", ""];
    let headings = headings.iter().enumerate().map(|(i, h)| ((*h).to_owned(), i == 0 || i == 7)).collect();
    let rows = comparison.figures.iter().map(|figure| {
        let unit = Unit::of(figure);
        let interval = match (figure.shift_low, figure.shift_high) {
            (Some(low), Some(high)) => format!("{} to {}", unit.signed(low), unit.signed(high)),
            _ => "-".to_owned(),
        };
        let verdict = match figure.verdict {
            "differs" => "differs",
            "no-difference-seen" => "no difference seen",
            _ => "too few runs",
        };
        let style = if figure.verdict == "differs" { Style::Bold } else { Style::Plain };
        vec![
            (format!("{} {}", unit.name(figure), figure.direction), style),
            (unit.number(figure.a.median), Style::Plain),
            (unit.number(figure.b.median), Style::Plain),
            (unit.signed(figure.shift), Style::Plain),
            (interval, Style::Plain),
            (format!("{:+.2}", figure.effect), Style::Plain),
            (if figure.p < 0.001 { "<0.001".to_owned() } else { format!("{:.3}", figure.p) }, Style::Plain),
            (verdict.to_owned(), style),
        ]
    });
    out.push_str(&draw_table(headings, rows.collect(), colour));
    out.push('\n');
    out.push_str(&paint(text::wrap(&sentence(comparison, first), width, "").trim_end(), Style::Bold, colour));
    out.push('\n');
    if comparison.figures.len() > 1 {
        let level = text::share(comparison.level);
        let words = format!(
            "The first line decides. The others are there to look at: each has its own {level} chance to show a difference that is not there."
        );
        out.push_str(&text::wrap(&words, width, ""));
    }
    out
}

fn sentence(comparison: &BenchComparison, figure: &ComparedRuns) -> String {
    let unit = Unit::of(figure);
    let how = if comparison.paired {
        format!("{} pairs", figure.runs_a)
    } else {
        format!("{} and {} runs", figure.runs_a, figure.runs_b)
    };
    let name = unit.name(figure);
    match figure.verdict {
        "differs" => {
            let share = if figure.a.median > 0.0 {
                format!(" ({:+.1}%)", 100.0 * figure.shift / figure.a.median)
            } else {
                String::new()
            };
            format!("{name} differs: B is {} {}{share}, by {how}.", unit.signed(figure.shift), unit.text(),)
        }
        "no-difference-seen" => match (figure.shift_low, figure.shift_high) {
            (Some(low), Some(high)) => format!(
                "No difference seen in {name}, by {how}: anything from {} to {} {} would look like this.",
                unit.signed(low),
                unit.signed(high),
                unit.text()
            ),
            _ => format!("No difference seen in {name}, by {how}."),
        },
        _ => format!(
            "Too few runs: {how} can't show a difference at a level of {}, however large. Six pairs, or four and four runs, are the least.",
            text::share(comparison.level)
        ),
    }
}

/// How a figure is written.
enum Unit {
    Rate(RateUnit),
    Millis,
    Share,
    Plain,
    Cpu,
}

impl Unit {
    fn of(figure: &ComparedRuns) -> Self {
        match figure.figure.as_str() {
            "goodput_bps" => Self::Rate(RateUnit::for_all([figure.a.median, figure.b.median].into_iter())),
            "rtt_under_load_ms" => Self::Millis,
            "retransmitted_share" => Self::Share,
            "cpu_s_per_gb" => Self::Cpu,
            _ => Self::Plain,
        }
    }

    fn name(&self, figure: &ComparedRuns) -> String {
        match figure.figure.as_str() {
            "goodput_bps" => format!("goodput ({})", self.text()),
            "rtt_under_load_ms" => "RTT under load (ms)".to_owned(),
            "retransmitted_share" => "sent again".to_owned(),
            "cpu_s_per_gb" => "CPU (s/GB)".to_owned(),
            "rpm" => "RPM".to_owned(),
            other => text::clean(other),
        }
    }

    fn text(&self) -> &'static str {
        match self {
            Self::Rate(unit) => unit.name(),
            Self::Millis => "ms",
            Self::Cpu => "s/GB",
            Self::Share => "of the payload",
            Self::Plain => "",
        }
    }

    fn number(&self, value: f64) -> String {
        match self {
            Self::Rate(unit) => unit.number(value),
            Self::Millis => text::millis(value),
            Self::Share => percent(value),
            Self::Plain => format!("{value:.0}"),
            Self::Cpu => text::three_digits(value),
        }
    }

    fn signed(&self, value: f64) -> String {
        let sign = if value < 0.0 { "-" } else { "+" };
        format!("{sign}{}", self.number(value.abs()))
    }
}
