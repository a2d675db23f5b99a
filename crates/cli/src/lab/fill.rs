//! From what a run gave to the plain values of a report.

use host::cc::{CcKind, CcVersion};
use lab::emulator::EmulatorOutcome;
use lab::lateness::Lateness;
use lab::netem::{NetemDirection, NetemOutcome};
use lab::record::Record;
use lab::run::{CellOutcome, PathSeen};
use measure::stats;
use measure::traffic::FlowOutcome;
use path::{Counters, Discipline, LinkConfig, LossModel, QueueLimit, RateModel};
use report::{
    DelayPercentiles, DropCounts, DropSeries, EmulatorReport, FlowReport, FlowSeries, FlowTraffic, MAX_POINTS,
    PathReport, Percentiles, ProfileReport, PublishedFigure, RunReport, RunSeries, ScenarioReport, Series, Setting,
    TimingError,
};
use scenario::{Cell, ExpandedFlow, FlowKind, QueueSpec, Scenario};
use units::{Duration, Instant, Probability, Rate};

/// A scenario as it is run.
pub fn scenario_report(scenario: &Scenario, emulator: &str) -> ScenarioReport {
    let settings = |pairs: &[(String, String)]| pairs.iter().map(|(name, value)| Setting::new(name, value)).collect();
    ScenarioReport {
        name: scenario.name.clone(),
        title: scenario.title.clone(),
        about: scenario.about.clone(),
        path: path_report(scenario, emulator),
        profiles: scenario
            .profiles
            .iter()
            .map(|profile| ProfileReport {
                name: profile.name.clone(),
                congestion_control: profile.congestion_control.clone(),
                sysctls: settings(&profile.sysctls),
            })
            .collect(),
        sysctls: settings(&scenario.sysctls),
        duration_s: scenario.run.duration.as_secs_f64(),
        warmup_s: scenario.run.warmup.as_secs_f64(),
        repeats: scenario.run.repeats,
        seed: scenario.run.seed,
        published: scenario
            .published
            .iter()
            .map(|figure| PublishedFigure {
                profile: figure.profile.clone(),
                label: figure.label.clone(),
                loss: figure.loss.map(Probability::as_f64),
                goodput_bps: figure.goodput.map(Rate::as_bps),
                rtt_under_load_ms: figure.rtt_under_load.map(Duration::as_millis_f64),
                queueing_delay_ms: figure.queueing_delay.map(Duration::as_millis_f64),
                completion_s: figure.completion.map(Duration::as_secs_f64),
                retransmitted_segments: figure.retransmissions,
                first_contentful_paint_ms: figure.first_contentful_paint.map(Duration::as_millis_f64),
                note: figure.note.clone(),
            })
            .collect(),
    }
}

fn path_report(scenario: &Scenario, emulator: &str) -> PathReport {
    let path = &scenario.path;
    PathReport {
        rate: rate_text(&path.forward.rate),
        rate_bps: match path.forward.rate {
            RateModel::Constant(rate) => Some(rate.as_bps()),
            _ => None,
        },
        rtt_ms: path.rtts.iter().map(|rtt| rtt.as_millis_f64()).collect(),
        loss: path.losses.iter().map(|loss| loss.as_f64()).collect(),
        loss_model: loss_text(path.mean_burst_milli, &path.forward.loss),
        queue: path.queues.iter().map(QueueSpec::to_string).collect(),
        discipline: match path.forward.queue.discipline {
            Discipline::DropTail => "drop-tail",
            Discipline::CoDel(_) => "CoDel",
            Discipline::FqCoDel { .. } => "FQ-CoDel",
            Discipline::Red(_) => "RED",
        }
        .to_owned(),
        mtu_bytes: u32::from(path.mtu),
        emulator: emulator.to_owned(),
        details: details(&path.forward, &path.back),
    }
}

fn rate_text(rate: &RateModel) -> String {
    match rate {
        RateModel::Unlimited => "unlimited".to_owned(),
        RateModel::Constant(rate) => rate.to_string(),
        RateModel::Steps(steps) => {
            let text = |(at, rate): &(Instant, Rate)| {
                if *at == Instant::ZERO { rate.to_string() } else { format!("{rate} from {at}") }
            };
            steps.iter().map(text).collect::<Vec<_>>().join(", ")
        }
        RateModel::Trace(trace) => {
            let length = trace.opportunities_ms.last().copied().unwrap_or_default();
            format!("by a trace of {} packets in {} s", trace.opportunities_ms.len(), f64::from(length) / 1e3)
        }
    }
}

fn loss_text(mean_burst_milli: Option<u32>, fixed: &LossModel) -> String {
    match (fixed, mean_burst_milli) {
        (LossModel::Periodic { every, .. }, _) => format!("every {every}th packet"),
        (LossModel::List(numbers), _) => format!("{} packets by number", numbers.len()),
        (_, Some(milli)) => format!("in bursts of {} packets on average", f64::from(milli) / 1e3),
        (_, None) => "independent".to_owned(),
    }
}

/// What else holds for a path, where it is not the plain case.
fn details(forward: &LinkConfig, back: &LinkConfig) -> Vec<Setting> {
    let mut all = Vec::new();
    for (end, link) in [("", forward), ("back: ", back)] {
        let mut add = |name: &str, value: String| all.push(Setting::new(&format!("{end}{name}"), &value));
        if link.overhead.as_u64() > 0 {
            add("overhead per packet", link.overhead.to_string());
        }
        if link.jitter > Duration::ZERO {
            add("jitter up to", link.jitter.to_string());
        }
        if let Some(reorder) = link.reorder {
            add("reordering", format!("{} of packets skip {}", reorder.probability, reorder.advance));
        }
        if link.duplicate > Probability::ZERO {
            add("duplication", link.duplicate.to_string());
        }
        if let Some(policer) = link.policer {
            add("policer", format!("{} with a bucket of {}", policer.rate, policer.burst));
        }
        if link.queue.ecn {
            add("ECN", "marks where the AQM would drop".to_owned());
        }
        if let Some(threshold) = link.queue.mark_above {
            add("ECN", format!("marks above {threshold}"));
        }
        if !end.is_empty() && link.rate != RateModel::Unlimited {
            add("rate", rate_text(&link.rate));
        }
    }
    all
}

/// One run.
pub fn run_report(
    scenario: &Scenario,
    cell: &Cell,
    flows: &[ExpandedFlow],
    outcome: &CellOutcome,
    started_after: std::time::Duration,
) -> RunReport {
    let traffic = &outcome.traffic;
    let window = (traffic.started_at + scenario.run.warmup, traffic.ended_at);
    let flow_reports: Vec<FlowReport> =
        flows.iter().zip(&traffic.flows).map(|(flow, seen)| flow_report(flow, seen, cell, outcome, window)).collect();
    let bulk: Vec<&FlowReport> = flow_reports.iter().filter(|flow| flow.traffic == FlowTraffic::Bulk).collect();
    let probes = traffic.probes.as_ref().map_or(&[][..], |probes| &probes.samples);
    let loaded: Vec<Duration> =
        probes.iter().filter(|sample| sample.sent_at >= window.0).filter_map(|sample| sample.rtt).collect();
    let waits: Vec<Duration> = match &outcome.path {
        PathSeen::Model(seen) => {
            let sojourns = seen.up.record.probe_sojourns.iter();
            sojourns.filter(|(at, _)| *at >= window.0).map(|(_, wait)| *wait).collect()
        }
        // Beyond the propagation delay, by the clock instead of the model.
        PathSeen::Netem(_) => probes
            .iter()
            .filter(|sample| sample.sent_at >= window.0)
            .filter_map(|sample| Some(sample.one_way? - cell.forward.delay))
            .collect(),
    };
    RunReport {
        congestion_control_version: traffic.flows.iter().find_map(|flow| flow.cc_version.as_ref()).and_then(version),
        started_after_s: started_after.as_secs_f64(),
        duration_s: traffic.ended_at.since(traffic.started_at).as_secs_f64(),
        warmup_s: scenario.run.warmup.as_secs_f64(),
        valid: outcome.invalid.is_empty() && !traffic.partial,
        invalid_reason: match (outcome.invalid.is_empty(), traffic.partial) {
            (true, false) => None,
            (true, true) => Some(report::STOPPED.to_owned()),
            (false, _) => Some(outcome.invalid.join("; ")),
        },
        goodput_bps: sum(bulk.iter().filter_map(|flow| flow.goodput_bps)),
        rtt_idle_ms: outcome.idle_rtt.map(Duration::as_millis_f64),
        rtt_under_load_ms: percentiles(&loaded),
        queueing_delay_ms: delay_percentiles(&waits),
        retransmitted_segments: sum(flow_reports.iter().filter_map(|flow| flow.retransmitted_segments)),
        completion_s: completion(&flow_reports, flows),
        drops: match &outcome.path {
            PathSeen::Model(seen) => drop_counts(&seen.up.counters),
            PathSeen::Netem(seen) => DropCounts { unattributed: seen.up.dropped, ..DropCounts::default() },
        },
        marks: outcome.path.model().map_or(0, |seen| seen.up.counters.marked),
        flows: flow_reports,
        emulator: Some(match &outcome.path {
            PathSeen::Model(seen) => emulator_report(seen, outcome.device_drops),
            PathSeen::Netem(seen) => netem_report(seen),
        }),
        series: run_series(outcome),
        ..empty_run(scenario, cell)
    }
}

/// The version that a congestion control's own socket showed, where it shows one.
pub fn version(control: &CcVersion) -> Option<String> {
    match control.kind {
        CcKind::Bbr(version) => Some(format!("BBRv{version}")),
        CcKind::Bpf => Some("BPF".to_owned()),
        CcKind::Kernel => None,
    }
}

/// What is known of a run before it is made.
pub fn empty_run(scenario: &Scenario, cell: &Cell) -> RunReport {
    RunReport {
        scenario: scenario.name.clone(),
        profile: cell.profile.name.clone(),
        congestion_control: cell.profile.congestion_control.clone(),
        congestion_control_version: None,
        loss: cell.loss.as_f64(),
        rtt_ms: cell.rtt.as_millis_f64(),
        queue: cell.queue.to_string(),
        queue_bytes: match cell.queue_limit {
            QueueLimit::Bytes(bytes) => Some(bytes.as_u64()),
            QueueLimit::Packets(_) => None,
        },
        repeat: cell.repeat,
        seed: cell.seed,
        started_after_s: 0.0,
        duration_s: 0.0,
        warmup_s: 0.0,
        valid: false,
        invalid_reason: None,
        goodput_bps: None,
        rtt_idle_ms: None,
        rtt_under_load_ms: None,
        queueing_delay_ms: None,
        retransmitted_segments: None,
        completion_s: None,
        first_contentful_paint_ms: None,
        page_load_ms: None,
        drops: DropCounts::default(),
        marks: 0,
        flows: Vec::new(),
        emulator: None,
        series: RunSeries::default(),
    }
}

/// Drops by cause.
pub fn drop_counts(counters: &Counters) -> DropCounts {
    DropCounts {
        random: counters.dropped_random,
        overflow: counters.dropped_overflow,
        aqm: counters.dropped_aqm,
        policer: counters.dropped_policer,
        unattributed: 0,
    }
}

/// The last completion, where every flow with a byte count made it.
pub fn completion(reports: &[FlowReport], flows: &[ExpandedFlow]) -> Option<f64> {
    let with_bytes =
        flows.iter().zip(reports).filter(|(flow, _)| matches!(flow.kind, FlowKind::Bulk { bytes: Some(_) }));
    let times: Option<Vec<f64>> = with_bytes.map(|(_, report)| report.completion_s).collect();
    times?.into_iter().reduce(f64::max)
}

fn flow_report(
    flow: &ExpandedFlow,
    seen: &FlowOutcome,
    cell: &Cell,
    outcome: &CellOutcome,
    window: (Instant, Instant),
) -> FlowReport {
    let started = outcome.traffic.started_at;
    let since = |at: Instant| at.since(started).as_secs_f64();
    let end = seen.finished_at.or(seen.last_byte_at).unwrap_or(outcome.traffic.ended_at);
    let last = seen.samples.last();
    let begin = seen.started_at.unwrap_or(started).max(window.0);
    let bulk = matches!(flow.kind, FlowKind::Bulk { .. });
    FlowReport {
        label: flow.label.clone(),
        index: 0,
        traffic: if bulk { FlowTraffic::Bulk } else { FlowTraffic::RequestResponse },
        congestion_control: seen
            .cc_version
            .as_ref()
            .map_or_else(|| seen.congestion_control.clone(), |cc| cc.name.clone()),
        rtt_ms: flow.rtt.unwrap_or(cell.rtt).as_millis_f64(),
        start_s: since(seen.started_at.unwrap_or(started)),
        end_s: since(end),
        goodput_bps: seen.goodput(begin, end.min(window.1)).map(Rate::as_bps),
        received_bytes: Some(seen.received.as_u64()),
        sent_segments: None,
        retransmitted_segments: last.map(|sample| u64::from(sample.retransmitted_segments)),
        min_rtt_ms: last.and_then(|sample| sample.min_rtt).map(Duration::as_millis_f64),
        busy_s: last.map(|sample| sample.busy.as_secs_f64()),
        receive_window_limited_s: last.map(|sample| sample.rwnd_limited.as_secs_f64()),
        send_buffer_limited_s: last.map(|sample| sample.sndbuf_limited.as_secs_f64()),
        completion_s: seen.completion.map(Duration::as_secs_f64),
        responses: (!bulk).then_some(seen.request_latencies.len() as u64),
        response_ms: percentiles(&seen.request_latencies),
        series: flow_series(seen, started),
    }
}

fn flow_series(seen: &FlowOutcome, started: Instant) -> FlowSeries {
    let at = |instant: Instant| Instant::from_nanos(instant.since(started).as_nanos());
    let goodput = seen.received_series.windows(2).filter(|pair| pair[1].0 > pair[0].0).map(|pair| {
        (at(pair[1].0), Rate::from_transfer(pair[1].1 - pair[0].1, pair[1].0.since(pair[0].0)).as_bps() as f64)
    });
    let of = |value: &dyn Fn(&measure::traffic::TcpSample) -> Option<f64>| {
        Series::from_points(seen.samples.iter().filter_map(|sample| Some((at(sample.at), value(sample)?))))
            .means(MAX_POINTS)
    };
    FlowSeries {
        goodput_bps: Series::from_points(goodput).means(MAX_POINTS),
        cwnd_segments: of(&|sample| Some(f64::from(sample.cwnd_segments))),
        pacing_rate_bps: of(&|sample| sample.pacing_rate.map(|rate| rate.as_bps() as f64)),
        smoothed_rtt_ms: of(&|sample| sample.srtt.map(Duration::as_millis_f64)),
    }
}

fn run_series(outcome: &CellOutcome) -> RunSeries {
    let started = outcome.traffic.started_at;
    let at = |instant: Instant| Instant::from_nanos(instant.since(started).as_nanos());
    let probes = outcome.traffic.probes.iter().flat_map(|probes| &probes.samples);
    let rtt = probes.filter_map(|sample| Some((at(sample.sent_at), sample.rtt?.as_millis_f64())));
    let rtt_under_load_ms = Series::from_points(rtt).extremes(MAX_POINTS);
    match &outcome.path {
        PathSeen::Model(seen) => {
            let record = &seen.up.record;
            let drops = |cause: usize| buckets(record, started, move |b| f64::from(b.drops[cause])).sums(MAX_POINTS);
            RunSeries {
                rtt_under_load_ms,
                queue_depth_bytes: buckets(record, started, |b| b.queue_max_bytes as f64).extremes(MAX_POINTS),
                drops_packets: DropSeries { random: drops(0), overflow: drops(1), aqm: drops(2), policer: drops(3) },
                marks_packets: buckets(record, started, |b| f64::from(b.marks)).sums(MAX_POINTS),
            }
        }
        PathSeen::Netem(seen) => {
            let samples = seen.up.samples.iter().filter(|sample| sample.at >= started);
            let depth = samples.map(|sample| (at(sample.at), sample.bytes.as_u64() as f64));
            RunSeries {
                rtt_under_load_ms,
                queue_depth_bytes: Series::from_points(depth).extremes(MAX_POINTS),
                ..RunSeries::default()
            }
        }
    }
}

fn buckets(record: &Record, started: Instant, value: impl Fn(&lab::record::Bucket) -> f64) -> Series {
    let ends = (1u64..).map(|k| Instant::ZERO + record.bucket() * k);
    let inside = ends.zip(record.buckets()).filter(|(end, _)| *end > started);
    Series::from_points(inside.map(|(end, bucket)| (Instant::from_nanos(end.since(started).as_nanos()), value(bucket))))
}

/// What the emulator says of itself, both directions together.
pub fn emulator_report(emulator: &EmulatorOutcome, device_drops: u64) -> EmulatorReport {
    let (up, down) = (&emulator.up, &emulator.down);
    let both = |a: &Lateness, b: &Lateness| {
        let mut all = a.clone();
        all.add(b);
        TimingError::from_durations(all.quantile(0.5), all.quantile(0.99), all.quantile(0.999), all.max())
    };
    EmulatorReport {
        kind: "model".to_owned(),
        lateness_us: Some(both(&up.lateness, &down.lateness)),
        intake_us: Some(both(&up.intake, &down.intake)),
        packets: up.counters.offered + down.counters.offered,
        outside_drops: device_drops + up.outside.refused + down.outside.refused,
    }
}

fn netem_report(seen: &NetemOutcome) -> EmulatorReport {
    let packets = |direction: &NetemDirection| direction.sent_packets + direction.dropped;
    EmulatorReport {
        kind: "netem".to_owned(),
        lateness_us: None,
        intake_us: None,
        packets: packets(&seen.up) + packets(&seen.down),
        outside_drops: seen.device_dropped + seen.up.delay_line_dropped + seen.down.delay_line_dropped,
    }
}

/// In milliseconds; `None` where there are no values.
pub fn percentiles(values: &[Duration]) -> Option<Percentiles> {
    let at = |percent| stats::percentile(values, percent);
    Some(Percentiles::from_durations(at(50.0)?, at(95.0)?, at(99.0)?))
}

/// Mean and percentiles in milliseconds; `None` where there are no values.
pub fn delay_percentiles(values: &[Duration]) -> Option<DelayPercentiles> {
    let at = |percent| stats::percentile(values, percent);
    let sum: u64 = values.iter().map(|value| value.as_nanos()).sum();
    let mean = Duration::from_nanos(sum.checked_div(values.len() as u64)?);
    Some(DelayPercentiles::from_durations(mean, at(50.0)?, at(95.0)?, at(99.0)?))
}

/// The sum; `None` where there are no values.
pub fn sum(values: impl Iterator<Item = u64>) -> Option<u64> {
    values.reduce(|a, b| a + b)
}
