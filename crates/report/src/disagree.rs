//! Where published and measured figures disagree, in one sentence each.

use crate::groups::{Group, groups};
use crate::model::{Interval, LabReport, PublishedFigure, SummaryLine};
use crate::summary::published;
use crate::text;

/// Figures within this factor of each other agree: kernels, paths and the length of a run differ by as much.
pub const AGREES_WITHIN: f64 = 1.25;

/// Delays closer than this agree whatever their ratio.
const DELAY_SLACK_MS: f64 = 5.0;

/// One kind of figure of one profile that does not come out as published, in all cells where that is so.
#[derive(Debug, Clone, PartialEq)]
pub struct Disagreement {
    /// The scenario's name.
    pub scenario: String,
    /// The profile's name.
    pub profile: String,
    /// What was published: `goodput`, `RTT under load`.
    pub quantity: &'static str,
    /// The unit of both figures.
    pub unit: &'static str,
    /// Each cell with its published and its measured figure.
    pub cells: Vec<DisagreeingCell>,
    /// Why, as the scenario has it.
    pub note: Option<String>,
}

/// One cell of a [`Disagreement`]; figures as text, in its unit.
#[derive(Debug, Clone, PartialEq)]
pub struct DisagreeingCell {
    /// What tells the cell from others: `1.5% loss`; empty where the scenario has one cell per profile.
    pub cell: String,
    /// Published.
    pub published: String,
    /// Measured.
    pub measured: String,
}

impl Disagreement {
    /// The figures as one sentence, without the note.
    pub fn sentence(&self) -> String {
        let unit = self.unit;
        let with = |cell: &str| if cell.is_empty() { String::new() } else { format!(" with {cell}") };
        let one_published = self.cells.iter().all(|cell| cell.published == self.cells[0].published);
        let figures =
            self.cells.iter().enumerate().map(|(index, DisagreeingCell { cell, published, measured })| {
                match (index, one_published) {
                    (0, _) => format!("published {published} {unit}, measured {measured} {unit}{}", with(cell)),
                    (_, true) => format!("{measured}{}", with(cell)),
                    (_, false) => format!("{published} and {measured}{}", with(cell)),
                }
            });
        format!("{}, {}: {}.", self.profile, self.quantity, figures.collect::<Vec<_>>().join("; "))
    }
}

/// Every disagreement of a summarised report, in its order.
///
/// A figure disagrees where it differs by more than [`AGREES_WITHIN`] from everything in the measured interval; a
/// delay, where it lies as far outside the range from the median's lower end to the 95th percentile's upper end, because
/// publications do not say which percentile theirs is. Retransmissions are not judged: they grow with the run's length.
pub fn disagreements(report: &LabReport) -> Vec<Disagreement> {
    let mut found: Vec<Disagreement> = Vec::new();
    for group in groups(report) {
        for quantity in &QUANTITIES {
            for line in &group.lines {
                if let Some(new) = quantity.judge(&group, line) {
                    let same = |old: &&mut Disagreement| {
                        (&old.scenario, &old.profile, old.quantity, &old.note)
                            == (&new.scenario, &new.profile, new.quantity, &new.note)
                    };
                    match found.iter_mut().find(same) {
                        Some(old) => old.cells.extend(new.cells),
                        None => found.push(new),
                    }
                }
            }
        }
    }
    found
}

/// Whether the line's goodput is one of the disagreements.
pub(crate) fn goodput_disagrees(line: &SummaryLine) -> bool {
    line.goodput_bps
        .zip(line.published_goodput_bps)
        .is_some_and(|(measured, published)| outside(published as f64, measured.low, measured.high, 0.0))
}

fn outside(published: f64, low: f64, high: f64, slack: f64) -> bool {
    published < low / AGREES_WITHIN - slack || published > high * AGREES_WITHIN + slack
}

/// A kind of figure that publications have.
struct Quantity {
    name: &'static str,
    /// `None`: the unit of the scenario's rates.
    unit: Option<&'static str>,
    figure: fn(&PublishedFigure) -> Option<f64>,
    measured: fn(&SummaryLine) -> Option<Measured>,
    slack: f64,
}

/// The measured side: one interval, or two percentiles of a delay.
enum Measured {
    One(Interval),
    Delay { p50: Interval, p95: Interval },
}

const QUANTITIES: [Quantity; 5] = [
    Quantity {
        name: "goodput",
        unit: None,
        figure: |p| p.goodput_bps.map(|bps| bps as f64),
        measured: |line| line.goodput_bps.map(Measured::One),
        slack: 0.0,
    },
    Quantity {
        name: "RTT under load",
        unit: Some("ms"),
        figure: |p| p.rtt_under_load_ms,
        measured: |line| line.rtt_under_load_ms.map(|rtt| Measured::Delay { p50: rtt.p50, p95: rtt.p95 }),
        slack: DELAY_SLACK_MS,
    },
    Quantity {
        name: "queueing delay",
        unit: Some("ms"),
        figure: |p| p.queueing_delay_ms,
        measured: |line| line.queueing_delay_ms.map(|delay| Measured::Delay { p50: delay.p50, p95: delay.p95 }),
        slack: DELAY_SLACK_MS,
    },
    Quantity {
        name: "completion",
        unit: Some("s"),
        figure: |p| p.completion_s,
        measured: |line| line.completion_s.map(Measured::One),
        slack: 0.0,
    },
    Quantity {
        name: "First Contentful Paint",
        unit: Some("ms"),
        figure: |p| p.first_contentful_paint_ms,
        measured: |line| line.first_contentful_paint_ms.map(Measured::One),
        slack: 0.0,
    },
];

impl Quantity {
    fn judge(&self, group: &Group, line: &SummaryLine) -> Option<Disagreement> {
        let measured = (self.measured)(line)?;
        let (source, figure) = published(group.spec, &line.profile, line.loss, self.figure)?;
        let (low, high) = match measured {
            Measured::One(interval) => (interval.low, interval.high),
            Measured::Delay { p50, p95 } => (p50.low, p95.high),
        };
        if !outside(figure, low, high, self.slack) {
            return None;
        }
        let number = |value: f64| match self.unit {
            None => group.rate_unit().number(value),
            Some("ms") => text::millis(value),
            Some(_) => text::three_digits(value),
        };
        let cell = DisagreeingCell {
            cell: group.cell_words(line),
            published: number(figure),
            measured: match measured {
                Measured::One(interval) => number(interval.median),
                Measured::Delay { p50, p95 } if p95.median < p50.median * 1.05 => number(p50.median),
                Measured::Delay { p50, p95 } => format!("{} (p95 {})", number(p50.median), number(p95.median)),
            },
        };
        Some(Disagreement {
            scenario: line.scenario.clone(),
            profile: group.profile_words(line),
            quantity: self.name,
            unit: self.unit.unwrap_or(group.rate_unit().name()),
            cells: vec![cell],
            note: source.note.clone(),
        })
    }
}
