//! `sim compare-lab`: how far the simulator is from the kernel, cell by cell.

use serde::Serialize;

use crate::groups::groups;
use crate::model::{LabReport, SummaryLine};
use crate::summary::CellKey;
use crate::table::{Style, draw_table, paint};
use crate::text::{self, RateUnit};

/// The simulator promises goodput within this part of the kernel's …
pub const SIM_WITHIN: f64 = 0.10;
/// … or, where that is less than ten times as much, within this.
pub const SIM_WITHIN_BPS: f64 = 1e6;

/// One cell in both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimDifference {
    /// The scenario's name.
    pub scenario: String,
    /// What tells the cell from others of the scenario: `1.5% loss`.
    pub cell: String,
    /// The profile's name.
    pub profile: String,
    /// Median goodput in the lab.
    pub lab_goodput_bps: f64,
    /// Smallest and largest of the interval around it.
    pub lab_range_bps: [f64; 2],
    /// Median goodput in the simulator.
    pub sim_goodput_bps: f64,
    /// Valid runs in each.
    pub repeats: [u32; 2],
    /// 95th percentile of the round-trip time under load, in the lab and in the simulator.
    pub rtt_under_load_p95_ms: Option<[f64; 2]>,
    /// Retransmitted segments in the lab and in the simulator.
    pub retransmitted_segments: Option<[f64; 2]>,
    /// The simulator's goodput over the lab's, less one; `null` where the lab's is zero.
    pub difference: Option<f64>,
}

impl SimDifference {
    /// Whether goodput is further off than [`SIM_WITHIN`] and [`SIM_WITHIN_BPS`].
    pub fn is_far(&self) -> bool {
        let off = (self.sim_goodput_bps - self.lab_goodput_bps).abs();
        off > SIM_WITHIN * self.lab_goodput_bps
            && (off > SIM_WITHIN_BPS || self.lab_goodput_bps >= 10.0 * SIM_WITHIN_BPS)
    }
}

/// Every cell of which both summarised reports have a valid run.
pub fn sim_differences(lab: &LabReport, sim: &LabReport) -> Vec<SimDifference> {
    let mut all = Vec::new();
    for group in groups(lab) {
        for line in &group.lines {
            let key = CellKey::of_line(line);
            let partner = sim.summary.iter().find(|other| CellKey::of_line(other) == key);
            let Some((partner, a, b)) = partner.and_then(|other| Some((other, line.goodput_bps?, other.goodput_bps?)))
            else {
                continue;
            };
            let both = |of: fn(&SummaryLine) -> Option<f64>| Some([of(line)?, of(partner)?]);
            all.push(SimDifference {
                scenario: line.scenario.clone(),
                cell: group.cell_words(line),
                profile: group.profile_words(line),
                lab_goodput_bps: a.median,
                lab_range_bps: [a.low, a.high],
                sim_goodput_bps: b.median,
                repeats: [line.valid_repeats, partner.valid_repeats],
                rtt_under_load_p95_ms: both(|line| line.rtt_under_load_ms.map(|rtt| rtt.p95.median)),
                retransmitted_segments: both(|line| line.retransmitted_segments.map(|count| count.median)),
                difference: (a.median > 0.0).then(|| crate::series::six_digits(b.median / a.median - 1.0)),
            });
        }
    }
    all
}

/// As tables for a terminal, with ANSI colours where `colour`.
pub fn render_sim_differences(differences: &[SimDifference], width: usize, colour: bool) -> String {
    let mut out = String::new();
    for cells in differences.chunk_by(|a, b| a.scenario == b.scenario) {
        let unit = RateUnit::for_all(cells.iter().flat_map(|cell| [cell.lab_goodput_bps, cell.sim_goodput_bps]));
        out.push_str(&paint(&text::clip(&cells[0].scenario, width), Style::Bold, colour));
        out.push('\n');
        let headings = [
            ("cell".to_owned(), true),
            ("profile".to_owned(), true),
            (format!("lab {}", unit.name()), false),
            ("range".to_owned(), false),
            (format!("sim {}", unit.name()), false),
            ("difference".to_owned(), false),
            ("p95 RTT ms".to_owned(), false),
            ("resent".to_owned(), false),
        ];
        let rows = cells.iter().map(|cell| {
            let pair = |pair: Option<[f64; 2]>, show: &dyn Fn(f64) -> String| {
                pair.map_or_else(|| "-".to_owned(), |[lab, sim]| format!("{} / {}", show(lab), show(sim)))
            };
            let difference = cell.difference.map_or_else(|| "-".to_owned(), |part| format!("{:+.1} %", part * 100.0));
            let plain = |text: String| (text, Style::Plain);
            vec![
                plain(text::clip(&cell.cell, 24)),
                plain(text::clip(&cell.profile, 24)),
                plain(unit.number(cell.lab_goodput_bps)),
                plain(format!("{} .. {}", unit.number(cell.lab_range_bps[0]), unit.number(cell.lab_range_bps[1]))),
                plain(unit.number(cell.sim_goodput_bps)),
                (difference, if cell.is_far() { Style::Warning } else { Style::Plain }),
                plain(pair(cell.rtt_under_load_p95_ms, &text::millis)),
                plain(pair(cell.retransmitted_segments, &|count| format!("{count:.0}"))),
            ]
        });
        out.push_str(&draw_table(headings.to_vec(), rows.collect(), colour));
        out.push('\n');
    }
    let far = differences.iter().filter(|cell| cell.is_far()).count();
    let total = differences.len();
    out.push_str(&format!(
        "{} of {total} cells within {:.0} % of the kernel, or 1 Mbit/s below 10 Mbit/s.\n",
        total - far,
        SIM_WITHIN * 100.0
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(lab: f64, sim: f64) -> SimDifference {
        SimDifference {
            scenario: String::new(),
            cell: String::new(),
            profile: String::new(),
            lab_goodput_bps: lab,
            lab_range_bps: [lab, lab],
            sim_goodput_bps: sim,
            repeats: [1, 1],
            rtt_under_load_p95_ms: None,
            retransmitted_segments: None,
            difference: None,
        }
    }

    #[test]
    fn far_is_more_than_a_tenth_or_a_megabit_where_there_is_little() {
        assert!(!cell(100e6, 109e6).is_far() && cell(100e6, 111e6).is_far() && cell(100e6, 89e6).is_far());
        assert!(!cell(1e6, 1.9e6).is_far() && cell(1e6, 2.1e6).is_far() && cell(9e6, 7.9e6).is_far());
        // From 10 Mbit/s on only the tenth counts.
        assert!(cell(10e6, 11.2e6).is_far());
    }
}
