//! From what the simulator gave to the plain values of a report.

use path::record::{Bucket, Record};
use report::{
    DropSeries, EmulatorReport, FlowReport, FlowSeries, FlowTraffic, MAX_POINTS, RunReport, RunSeries, Series,
};
use scenario::{Cell, ExpandedFlow, FlowKind, Scenario};
use sim::{CellOutcome, FlowOutcome, FlowSample};
use units::{Bytes, Duration, Instant, Rate};

use super::experiment::CARRIER;
use crate::lab::fill::{completion, delay_percentiles, drop_counts, empty_run, percentiles, sum};

/// One run.
pub fn run_report(
    scenario: &Scenario,
    cell: &Cell,
    flows: &[ExpandedFlow],
    outcome: &CellOutcome,
    started_after: std::time::Duration,
) -> RunReport {
    let reports: Vec<FlowReport> = flows
        .iter()
        .zip(outcome.flows.iter().zip(&outcome.received_at_warmup))
        .map(|(flow, (seen, before))| flow_report(flow, seen, *before, cell, outcome))
        .collect();
    let bulk = reports.iter().filter(|flow| flow.traffic == FlowTraffic::Bulk);
    let loaded: Vec<Duration> =
        outcome.probes.iter().filter(|probe| probe.sent >= outcome.warmup).map(|probe| probe.rtt).collect();
    let waits = outcome.record.probe_sojourns.iter().filter(|(at, _)| *at >= outcome.warmup);
    let waits: Vec<Duration> = waits.map(|(_, wait)| *wait).collect();
    let silent = flows.iter().zip(&outcome.flows).find(|(_, seen)| seen.received == Bytes::ZERO);
    let invalid = match (outcome.stopped_early, silent) {
        (true, _) => Some(report::STOPPED.to_owned()),
        (false, Some((flow, _))) => Some(format!("flow {}: no data arrived; give it a longer --duration", flow.label)),
        (false, None) => None,
    };
    RunReport {
        started_after_s: started_after.as_secs_f64(),
        duration_s: outcome.ended.as_secs_f64(),
        warmup_s: scenario.run.warmup.as_secs_f64(),
        valid: invalid.is_none(),
        invalid_reason: invalid,
        goodput_bps: sum(bulk.filter_map(|flow| flow.goodput_bps)),
        rtt_idle_ms: outcome.idle_rtt.map(Duration::as_millis_f64),
        rtt_under_load_ms: percentiles(&loaded),
        queueing_delay_ms: delay_percentiles(&waits),
        retransmitted_segments: sum(reports.iter().filter_map(|flow| flow.retransmitted_segments)),
        completion_s: completion(&reports, flows),
        drops: drop_counts(&outcome.counters),
        marks: outcome.counters.marked,
        flows: reports,
        emulator: Some(EmulatorReport {
            kind: CARRIER.to_owned(),
            lateness_us: None,
            intake_us: None,
            packets: outcome.packet_events / 2,
            outside_drops: 0,
        }),
        series: run_series(outcome),
        ..empty_run(scenario, cell)
    }
}

fn flow_report(
    flow: &ExpandedFlow,
    seen: &FlowOutcome,
    before: Bytes,
    cell: &Cell,
    outcome: &CellOutcome,
) -> FlowReport {
    let end = [seen.completed, seen.stopped].into_iter().flatten().min().unwrap_or(outcome.ended).min(outcome.ended);
    let begin = seen.established.map(|at| at.max(outcome.warmup)).filter(|begin| *begin < end);
    let bulk = matches!(flow.kind, FlowKind::Bulk { .. });
    let counters = &seen.counters;
    FlowReport {
        label: flow.label.clone(),
        index: 0,
        traffic: if bulk { FlowTraffic::Bulk } else { FlowTraffic::RequestResponse },
        congestion_control: flow.congestion_control.clone().unwrap_or_else(|| cell.profile.congestion_control.clone()),
        rtt_ms: flow.rtt.unwrap_or(cell.rtt).as_millis_f64(),
        start_s: seen.start.as_secs_f64(),
        end_s: end.as_secs_f64(),
        goodput_bps: begin
            .map(|begin| Rate::from_transfer(seen.received.saturating_sub(before), end.since(begin)).as_bps()),
        received_bytes: Some(seen.received.as_u64()),
        sent_segments: Some(counters.sent),
        retransmitted_segments: Some(counters.retransmitted),
        min_rtt_ms: seen.min_rtt.map(Duration::as_millis_f64),
        busy_s: Some(counters.busy.as_secs_f64()),
        receive_window_limited_s: Some(counters.window_limited.as_secs_f64()),
        send_buffer_limited_s: Some(counters.buffer_limited.as_secs_f64()),
        completion_s: seen.completed.map(|at| at.since(seen.start).as_secs_f64()),
        responses: (!bulk).then_some(seen.response_times.len() as u64),
        response_ms: percentiles(&seen.response_times),
        series: flow_series(&seen.samples),
    }
}

fn flow_series(samples: &[FlowSample]) -> FlowSeries {
    let goodput = samples.windows(2).filter(|pair| pair[1].at > pair[0].at).map(|pair| {
        let received = pair[1].received.saturating_sub(pair[0].received);
        (pair[1].at, Rate::from_transfer(received, pair[1].at.since(pair[0].at)).as_bps() as f64)
    });
    let of = |value: &dyn Fn(&FlowSample) -> Option<f64>| {
        Series::from_points(samples.iter().filter_map(|sample| Some((sample.at, value(sample)?)))).means(MAX_POINTS)
    };
    FlowSeries {
        goodput_bps: Series::from_points(goodput).means(MAX_POINTS),
        cwnd_segments: of(&|sample| Some(f64::from(sample.cwnd_segments))),
        pacing_rate_bps: of(&|sample| sample.pacing_rate.map(|rate| rate.as_bps() as f64)),
        smoothed_rtt_ms: of(&|sample| sample.smoothed_rtt.map(Duration::as_millis_f64)),
    }
}

fn run_series(outcome: &CellOutcome) -> RunSeries {
    let rtt = outcome.probes.iter().map(|probe| (probe.sent, probe.rtt.as_millis_f64()));
    let record = &outcome.record;
    let drops = |cause: usize| buckets(record, move |b| f64::from(b.drops[cause])).sums(MAX_POINTS);
    RunSeries {
        rtt_under_load_ms: Series::from_points(rtt).extremes(MAX_POINTS),
        queue_depth_bytes: buckets(record, |b| b.queue_max_bytes as f64).extremes(MAX_POINTS),
        drops_packets: DropSeries { random: drops(0), overflow: drops(1), aqm: drops(2), policer: drops(3) },
        marks_packets: buckets(record, |b| f64::from(b.marks)).sums(MAX_POINTS),
    }
}

fn buckets(record: &Record, value: impl Fn(&Bucket) -> f64) -> Series {
    let ends = (1u64..).map(|k| Instant::ZERO + record.bucket() * k);
    Series::from_points(ends.zip(record.buckets()).map(|(end, bucket)| (end, value(bucket))))
}
