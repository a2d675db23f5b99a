//! From runs to one line per cell.

use std::collections::BTreeMap;

use crate::model::{
    DelayIntervals, DropIntervals, FlowReport, FlowTraffic, Interval, LabReport, PercentileIntervals, PublishedFigure,
    RunReport, ScenarioReport, Share, SummaryLine,
};

/// How an [`Interval`] is made of one figure's values over the repeats, of which there is at least one, all finite.
pub type IntervalOf<'a> = &'a dyn Fn(&[f64]) -> Interval;

impl LabReport {
    /// Fills `summary` from `results`: medians and intervals over the valid runs of each cell, invalid ones counted, and the
    /// published figures beside them. Lines are in the order of scenarios, then RTT, loss, queue, and profiles as the
    /// scenario lists them.
    ///
    /// `interval` is the statistics, which this crate has none of. `linerate` passes the median with its 95 % bootstrap
    /// interval; [`median_and_range`] is there for callers without statistics of their own.
    pub fn summarise(&mut self, interval: IntervalOf) {
        let mut cells: BTreeMap<(CellOrder, CellKey), Vec<&RunReport>> = BTreeMap::new();
        for run in &self.results {
            let key = CellKey::of_run(run);
            cells.entry((self.order_of(run), key)).or_default().push(run);
        }
        let lines = cells.values().map(|runs| summary_line(runs, self.scenario(&runs[0].scenario), interval));
        self.summary = lines.collect();
    }

    fn order_of(&self, run: &RunReport) -> CellOrder {
        let scenario = self.scenarios.iter().position(|s| s.name == run.scenario).unwrap_or(usize::MAX);
        let spec = self.scenarios.get(scenario);
        let profile = spec.and_then(|s| s.profiles.iter().position(|p| p.name == run.profile)).unwrap_or(usize::MAX);
        let queue = spec.and_then(|s| s.path.queue.iter().position(|q| *q == run.queue)).unwrap_or(usize::MAX);
        CellOrder { scenario, rtt: nanos(run.rtt_ms), loss: ppb(run.loss), queue, profile }
    }
}

/// Where a cell stands among the others.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CellOrder {
    scenario: usize,
    rtt: u64,
    loss: u64,
    queue: usize,
    profile: usize,
}

/// What makes two runs, or two lines of two reports, the same cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CellKey {
    scenario: String,
    profile: String,
    congestion_control: String,
    loss_ppb: u64,
    rtt_nanos: u64,
    queue: String,
}

impl CellKey {
    pub(crate) fn of_run(run: &RunReport) -> Self {
        Self {
            scenario: run.scenario.clone(),
            profile: run.profile.clone(),
            congestion_control: run.congestion_control.clone(),
            loss_ppb: ppb(run.loss),
            rtt_nanos: nanos(run.rtt_ms),
            queue: run.queue.clone(),
        }
    }

    pub(crate) fn of_line(line: &SummaryLine) -> Self {
        Self {
            scenario: line.scenario.clone(),
            profile: line.profile.clone(),
            congestion_control: line.congestion_control.clone(),
            loss_ppb: ppb(line.loss),
            rtt_nanos: nanos(line.rtt_ms),
            queue: line.queue.clone(),
        }
    }
}

/// Loss as an integer, so that it can be compared: floating point took no part in choosing it.
fn ppb(fraction: f64) -> u64 {
    (fraction * 1e9).round() as u64
}

fn nanos(millis: f64) -> u64 {
    (millis * 1e6).round() as u64
}

/// The median with the smallest and the largest value.
pub fn median_and_range(values: &[f64]) -> Interval {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    };
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    Interval { median, low: at(0), high: at(sorted.len().saturating_sub(1)) }
}

/// Jain's fairness index: `(sum x)^2 / (n sum x^2)`; 1 where all are equal, 1/n where one has everything. `None` where
/// nobody has anything.
///
/// Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    let sum: f64 = shares.iter().sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// The published figure of one kind for a cell: one for exactly this loss before one for any.
pub(crate) fn published<'a, T>(
    scenario: Option<&'a ScenarioReport>,
    profile: &str,
    loss: f64,
    figure: impl Fn(&PublishedFigure) -> Option<T>,
) -> Option<(&'a PublishedFigure, T)> {
    let of_profile = || scenario.into_iter().flat_map(|s| &s.published).filter(|p| p.profile == profile);
    let exact = of_profile().filter(|p| p.loss.is_some_and(|l| ppb(l) == ppb(loss)));
    let any = of_profile().filter(|p| p.loss.is_none());
    exact.chain(any).find_map(|p| figure(p).map(|value| (p, value)))
}

fn summary_line(runs: &[&RunReport], scenario: Option<&ScenarioReport>, interval: IntervalOf) -> SummaryLine {
    let first = runs[0];
    let valid: Vec<&RunReport> = runs.iter().copied().filter(|run| run.valid).collect();
    let over = |figure: &dyn Fn(&RunReport) -> Option<f64>| interval_over(&valid, figure, interval);
    let must = |figure: &dyn Fn(&RunReport) -> f64| over(&|run| Some(figure(run)));

    let goodput_bps = over(&|run| run.goodput_bps.map(|bps| bps as f64));
    let find = |figure: &dyn Fn(&PublishedFigure) -> Option<f64>| {
        published(scenario, &first.profile, first.loss, figure).map(|(_, value)| value)
    };
    let published_goodput = published(scenario, &first.profile, first.loss, |p| p.goodput_bps);
    let published_any = published(scenario, &first.profile, first.loss, |p| Some(p.label.clone()));

    let mut invalid_reasons: Vec<String> = Vec::new();
    for run in runs.iter().filter(|run| !run.valid) {
        let reason = run.invalid_reason.clone().unwrap_or_else(|| "no reason recorded".to_owned());
        if !invalid_reasons.contains(&reason) {
            invalid_reasons.push(reason);
        }
    }
    let (shares, jain_index) = shares(&valid, interval);

    SummaryLine {
        scenario: first.scenario.clone(),
        profile: first.profile.clone(),
        congestion_control: first.congestion_control.clone(),
        congestion_control_version: runs.iter().find_map(|run| run.congestion_control_version.clone()),
        loss: first.loss,
        rtt_ms: first.rtt_ms,
        queue: first.queue.clone(),
        queue_bytes: first.queue_bytes,
        repeats: runs.len() as u32,
        valid_repeats: valid.len() as u32,
        invalid_reasons,
        goodput_bps,
        published_label: published_goodput.map(|(p, _)| p.label.clone()).or(published_any.map(|(_, label)| label)),
        published_goodput_bps: published_goodput.map(|(_, bps)| bps),
        measured_over_published: goodput_bps
            .zip(published_goodput)
            .filter(|(_, (_, bps))| *bps > 0)
            .map(|(measured, (_, bps))| crate::series::six_digits(measured.median / bps as f64)),
        rtt_idle_ms: over(&|run| run.rtt_idle_ms),
        rtt_under_load_ms: over(&|run| run.rtt_under_load_ms.map(|rtt| rtt.p50))
            .zip(over(&|run| run.rtt_under_load_ms.map(|rtt| rtt.p95)))
            .zip(over(&|run| run.rtt_under_load_ms.map(|rtt| rtt.p99)))
            .map(|((p50, p95), p99)| PercentileIntervals { p50, p95, p99 }),
        published_rtt_under_load_ms: find(&|p| p.rtt_under_load_ms),
        queueing_delay_ms: over(&|run| run.queueing_delay_ms.map(|delay| delay.mean))
            .zip(over(&|run| run.queueing_delay_ms.map(|delay| delay.p50)))
            .zip(over(&|run| run.queueing_delay_ms.map(|delay| delay.p95)))
            .zip(over(&|run| run.queueing_delay_ms.map(|delay| delay.p99)))
            .map(|(((mean, p50), p95), p99)| DelayIntervals { mean, p50, p95, p99 }),
        published_queueing_delay_ms: find(&|p| p.queueing_delay_ms),
        retransmitted_segments: over(&|run| run.retransmitted_segments.map(|count| count as f64)),
        published_retransmitted_segments: published(scenario, &first.profile, first.loss, |p| p.retransmitted_segments)
            .map(|(_, count)| count),
        completion_s: over(&|run| run.completion_s),
        published_completion_s: find(&|p| p.completion_s),
        first_contentful_paint_ms: over(&|run| run.first_contentful_paint_ms),
        published_first_contentful_paint_ms: find(&|p| p.first_contentful_paint_ms),
        page_load_ms: over(&|run| run.page_load_ms),
        drops: must(&|run| run.drops.random as f64)
            .zip(must(&|run| run.drops.overflow as f64))
            .zip(must(&|run| run.drops.aqm as f64))
            .zip(must(&|run| run.drops.policer as f64))
            .map(|(((random, overflow), aqm), policer)| DropIntervals { random, overflow, aqm, policer }),
        marks: must(&|run| run.marks as f64),
        receive_window_limited: over(&|run| part_of_busy(run, |flow| flow.receive_window_limited_s)),
        send_buffer_limited: over(&|run| part_of_busy(run, |flow| flow.send_buffer_limited_s)),
        shares,
        jain_index,
    }
}

/// The interval of a figure over the runs that have it.
fn interval_over(
    runs: &[&RunReport],
    figure: &dyn Fn(&RunReport) -> Option<f64>,
    interval: IntervalOf,
) -> Option<Interval> {
    let values: Vec<f64> = runs.iter().filter_map(|run| figure(run)).filter(|value| value.is_finite()).collect();
    let Interval { median, low, high } = if values.is_empty() { return None } else { interval(&values) };
    let all_finite = median.is_finite() && low.is_finite() && high.is_finite();
    let rounded = crate::series::six_digits;
    all_finite.then(|| Interval { median: rounded(median), low: rounded(low), high: rounded(high) })
}

/// What part of all flows' busy time a limit held them up, from 0 to 1.
fn part_of_busy(run: &RunReport, limited_s: impl Fn(&FlowReport) -> Option<f64>) -> Option<f64> {
    let pairs = run.flows.iter().filter_map(|flow| flow.busy_s.zip(limited_s(flow)));
    let (busy, limited) = pairs.fold((0.0, 0.0), |(busy, limited), (b, l)| (busy + b, limited + l));
    (busy > 0.0).then(|| (limited / busy).clamp(0.0, 1.0))
}

fn bulk_flows(run: &RunReport) -> impl Iterator<Item = &FlowReport> {
    run.flows.iter().filter(|flow| flow.traffic == FlowTraffic::Bulk)
}

/// Shares and Jain's index over the valid runs, where there are several bulk flows.
fn shares(valid: &[&RunReport], interval: IntervalOf) -> (Vec<Share>, Option<Interval>) {
    let Some(first) = valid.iter().find(|run| bulk_flows(run).count() > 1) else {
        return (Vec::new(), None);
    };
    let mut labels: Vec<&str> = bulk_flows(first).map(|flow| flow.label.as_str()).collect();
    labels.dedup();
    let by_label = labels.len() > 1;
    let mut groups: Vec<(String, &FlowReport, u32)> = Vec::new();
    for flow in bulk_flows(first) {
        let name = flow.name(!by_label);
        match groups.iter_mut().find(|(group, ..)| *group == name) {
            Some((.., flows)) => *flows += 1,
            None => groups.push((name, flow, 1)),
        }
    }
    let shares = groups.into_iter().filter_map(|(label, flow, flows)| {
        let of_group = |run: &RunReport| {
            let flows = goodput_together(run).into_iter();
            flows.filter(|(flow, _)| flow.name(!by_label) == label).map(|(_, bps)| bps).sum::<f64>()
        };
        let total = |run: &RunReport| goodput_together(run).into_iter().map(|(_, bps)| bps).sum::<f64>();
        let share = interval_over(valid, &|run| Some(of_group(run) / total(run)), interval)?;
        let goodput_bps = interval_over(valid, &|run| Some(of_group(run)), interval)?;
        let congestion_control = flow.congestion_control.clone();
        Some(Share { label, congestion_control, flows, share, goodput_bps })
    });
    let jain = |run: &RunReport| jain_index(&goodput_together(run).iter().map(|(_, bps)| *bps).collect::<Vec<_>>());
    (shares.collect(), interval_over(valid, &jain, interval))
}

/// The goodput of each bulk flow over the time when all of them ran, in bits per second. A flow that had the path to itself
/// for a while took nothing from one that had not started yet.
///
/// From the flows' series where they did not all run from the warm-up to the end, else (and where a series is missing) the
/// flows' own figure.
fn goodput_together(run: &RunReport) -> Vec<(&FlowReport, f64)> {
    let from = bulk_flows(run).map(|flow| flow.start_s).fold(run.warmup_s, f64::max);
    let until = bulk_flows(run).map(|flow| flow.end_s).fold(run.duration_s, f64::min);
    let own = |flow: &FlowReport| flow.goodput_bps.unwrap_or(0) as f64;
    let slack = run.duration_s / 100.0;
    if from <= run.warmup_s + slack && until >= run.duration_s - slack {
        return bulk_flows(run).map(|flow| (flow, own(flow))).collect();
    }
    let within = |flow: &FlowReport| {
        let inside = flow.series.goodput_bps.points().filter(|(time, _)| from < *time && *time <= until);
        let (count, sum) = inside.fold((0u32, 0.0), |(count, sum), (_, bps)| (count + 1, sum + bps));
        (count > 0).then(|| sum / f64::from(count))
    };
    let windowed: Option<Vec<_>> = bulk_flows(run).map(|flow| within(flow).map(|bps| (flow, bps))).collect();
    windowed.unwrap_or_else(|| bulk_flows(run).map(|flow| (flow, own(flow))).collect())
}
