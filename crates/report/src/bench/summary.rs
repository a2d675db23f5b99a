//! From runs to one line per congestion control and direction.

use super::model::{BenchReport, BenchRun, BenchSummary, DirectionReport};
use crate::model::Interval;
use crate::summary::IntervalOf;

/// A figure of one direction of one run.
pub type RunFigure = fn(&BenchRun, &DirectionReport) -> Option<f64>;

impl BenchReport {
    /// Fills `summary` from `results`: medians and intervals over the valid runs, invalid ones counted. Lines are in the order in which the
    /// congestion controls were asked for. `interval` is the statistics, which this crate has none of.
    pub fn summarise(&mut self, interval: IntervalOf) {
        let mut controls: Vec<Option<String>> = self.settings.congestion_controls.iter().cloned().map(Some).collect();
        for run in &self.results {
            if !controls.contains(&run.congestion_control) {
                controls.push(run.congestion_control.clone());
            }
        }
        let mut lines = Vec::new();
        for control in controls {
            let runs: Vec<&BenchRun> = self.results.iter().filter(|run| run.congestion_control == control).collect();
            for direction in ["forward", "reverse"] {
                if runs.iter().any(|run| run.direction(direction).is_some()) {
                    lines.push(summary_line(control.clone(), direction, &runs, interval));
                }
            }
        }
        self.summary = lines;
    }
}

fn summary_line(control: Option<String>, direction: &str, runs: &[&BenchRun], interval: IntervalOf) -> BenchSummary {
    let valid: Vec<(&BenchRun, &DirectionReport)> =
        runs.iter().filter(|run| run.valid).filter_map(|run| Some((*run, run.direction(direction)?))).collect();
    let of = |figure: RunFigure| -> Option<Interval> {
        let values: Vec<f64> =
            valid.iter().filter_map(|(run, direction)| figure(run, direction)).filter(|v| v.is_finite()).collect();
        (!values.is_empty()).then(|| interval(&values))
    };
    BenchSummary {
        congestion_control: control,
        direction: direction.to_owned(),
        repeats: valid.len() as u32,
        invalid: (runs.len() - valid.len()) as u32,
        goodput_bps: of(|_, direction| direction.goodput_bps.map(|bps| bps as f64)),
        retransmitted_share: of(|_, direction| direction.retransmitted_share),
        rtt_under_load_ms: of(|run, _| run.rtt_under_load_ms.map(|rtt| rtt.p50)),
        rtt_under_load_p95_ms: of(|run, _| run.rtt_under_load_ms.map(|rtt| rtt.p95)),
        rpm: of(|run, _| run.responsiveness.map(|found| found.rpm)),
        cpu_s_per_gb: of(|run, _| Some(run.cpu.client_s_per_gb? + run.cpu.server_s_per_gb?)),
    }
}
