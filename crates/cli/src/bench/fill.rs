//! From what `measure` found to what `report` shows.

use measure::estimate::{self, LossKind};
use measure::iperf::LatencyOutcome;
use measure::iperf::client::{ClientPlan, Ending, StreamOutcome, TestOutcome};
use measure::iperf::wire::Direction;
use measure::stats::percentile;
use measure::traffic::TcpSample;
use report::bench::{
    BenchReport, BenchRun, CpuReport, DirectionReport, LimitedBy, LossEvidence, PathEstimate, ResponsivenessReport,
    StreamReport,
};
use report::{MAX_POINTS, Percentiles, Series};
use serde_json::Value;
use units::{Bytes, Duration, Instant, Rate};

/// Rates over time are means over at least so long.
const BIN: Duration = Duration::from_millis(100);

/// Its name in reports.
pub fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Reverse => "reverse",
        Direction::Both => "both",
    }
}

/// What the server says about itself, as the first run learned it.
pub fn server(report: &mut BenchReport, outcome: &TestOutcome) {
    if !report.server.address.is_empty() {
        return;
    }
    report.server.address = outcome.server.to_string();
    report.server.linerate_version = outcome.hello.as_ref().map(|hello| hello.linerate_version.clone());
    report.server.kernel = outcome.hello.as_ref().map(|hello| hello.kernel.clone());
}

/// One run.
pub fn run(plan: &ClientPlan, outcome: &TestOutcome, repeat: u32, started_after: std::time::Duration) -> BenchRun {
    let (from, to) = (outcome.counting_from, outcome.ended_at);
    let wanted = [(true, outcome.direction.has_forward()), (false, outcome.direction.has_reverse())];
    let directions: Vec<DirectionReport> =
        wanted.iter().filter(|(_, wanted)| *wanted).map(|(forward, _)| direction(outcome, *forward)).collect();
    let invalid_reason = invalid_reason(plan, outcome, &directions);
    let latency = outcome.latency.as_ref();
    let inside = |at: &Instant| (from..=to).contains(at);
    let pings: Vec<Duration> =
        latency.iter().flat_map(|l| &l.pings).filter(|(at, _)| inside(at)).map(|(_, rtt)| *rtt).collect();
    let in_flow: Vec<Duration> =
        latency.iter().flat_map(|l| &l.in_flow).filter(|(at, _)| inside(at)).map(|(_, time)| *time).collect();
    let responsiveness = latency.and_then(|latency| latency.responsiveness(from, to));
    BenchRun {
        congestion_control: plan.congestion_control.clone(),
        repeat,
        started_after_s: started_after.as_secs_f64(),
        duration_s: to.since(from).as_secs_f64(),
        valid: invalid_reason.is_none(),
        invalid_reason,
        rtt_idle_ms: latency.and_then(|latency| percentiles(&latency.idle)),
        rtt_under_load_ms: percentiles(&pings),
        latency_in_flow_ms: percentiles(&in_flow),
        responsiveness: responsiveness.map(|found| ResponsivenessReport {
            rpm: found.rpm,
            foreign_rpm: found.foreign_rpm,
            loaded_rpm: found.loaded_rpm,
        }),
        probes_lost: latency.map(|latency| latency.lost as u64),
        cpu: cpu(outcome),
        rtt_series_ms: latency.map_or_else(Series::new, |latency| rtt_series(latency, outcome.started_at)),
        directions,
        iperf3: Value::Null,
    }
}

fn rtt_series(latency: &LatencyOutcome, start: Instant) -> Series {
    let since = |at: Instant| Instant::from_nanos(at.since(start).as_nanos());
    let mut pings: Vec<(Instant, f64)> =
        latency.pings.iter().map(|(at, rtt)| (since(*at), rtt.as_millis_f64())).collect();
    // An answer that was sent again may come after a later one's.
    pings.sort_by_key(|(at, _)| *at);
    Series::from_points(pings).extremes(MAX_POINTS)
}

fn invalid_reason(plan: &ClientPlan, outcome: &TestOutcome, directions: &[DirectionReport]) -> Option<String> {
    match &outcome.ending {
        Ending::Complete => {}
        Ending::Stopped => return Some(report::STOPPED.to_owned()),
        Ending::Broken(why) => return Some(why.clone()),
    }
    if let Some(wanted) = &plan.congestion_control {
        let ran = |stream: &&StreamOutcome| stream.congestion_control.as_ref().is_some_and(|ran| ran != wanted);
        if let Some(other) = outcome.streams.iter().find(ran) {
            let ran = other.congestion_control.as_deref().unwrap_or_default();
            return Some(format!(
                "the data was sent with congestion control `{ran}`, not `{wanted}`: does a route fix it (`ip route show`, congctl)?"
            ));
        }
    }
    let nothing = directions.iter().find(|direction| direction.bytes == Some(0) || direction.goodput_bps.is_none());
    nothing.map(|direction| format!("nothing arrived in direction {}", direction.direction))
}

fn percentiles(times: &[Duration]) -> Option<Percentiles> {
    let of = |percent| percentile(times, percent);
    Some(Percentiles::from_durations(of(50.0)?, of(95.0)?, of(99.0)?))
}

fn cpu(outcome: &TestOutcome) -> CpuReport {
    let bytes: u64 =
        outcome.streams.iter().filter_map(|stream| stream.received.or(stream.sent)).map(Bytes::as_u64).sum();
    let per_gb = |time: Duration| (bytes > 0).then(|| time.as_secs_f64() / (bytes as f64 / 1e9));
    CpuReport {
        client_s: outcome.cpu.as_secs_f64(),
        server_s: outcome.server_cpu.map(Duration::as_secs_f64),
        client_s_per_gb: per_gb(outcome.cpu),
        server_s_per_gb: outcome.server_cpu.and_then(per_gb),
    }
}

fn direction(outcome: &TestOutcome, forward: bool) -> DirectionReport {
    let streams: Vec<&StreamOutcome> = outcome.streams_of(forward).collect();
    let first = streams.first();
    let start = outcome.started_at;
    let received = outcome.goodput(forward);
    let goodput = received.or_else(|| outcome.acknowledged_rate(forward));
    let bytes: Option<Vec<u64>> = streams.iter().map(|stream| stream.received.map(Bytes::as_u64)).collect();
    let at = |sample: &TcpSample| Instant::from_nanos(sample.at.since(start).as_nanos());
    let of_first = |value: fn(&TcpSample) -> Option<f64>| {
        let samples = first.iter().flat_map(|stream| &stream.samples);
        Series::from_points(samples.filter_map(|sample| Some((at(sample), value(sample)?)))).extremes(MAX_POINTS)
    };
    let again: Vec<Vec<(Instant, u64)>> = streams
        .iter()
        .map(|stream| stream.samples.iter().map(|s| (at(s), u64::from(s.retransmitted_segments))).collect())
        .collect();
    DirectionReport {
        direction: direction_name(if forward { Direction::Forward } else { Direction::Reverse }).to_owned(),
        congestion_control: first.and_then(|stream| stream.congestion_control.clone()),
        congestion_control_version: first.and_then(|stream| stream.congestion_control_version.clone()),
        goodput_bps: goodput.map(Rate::as_bps),
        goodput_from: if received.is_some() { "receiver" } else { "acknowledged" }.to_owned(),
        bytes: bytes.map(|bytes| bytes.iter().sum()),
        retransmitted_segments: outcome.retransmitted(forward),
        retransmitted_share: retransmitted_share(&streams, outcome.counting_from),
        limited_by: limited_by(&streams, outcome.counting_from),
        path: path(&streams, outcome.counting_from),
        goodput_series_bps: goodput_series(&streams, start),
        srtt_series_ms: of_first(|sample| sample.srtt.map(Duration::as_millis_f64)),
        cwnd_series_segments: of_first(|sample| Some(sample.cwnd_segments.into())),
        retransmitted_series_segments: {
            let sums = differences(&again, Duration::ZERO).into_iter().map(|(at, _, count)| (at, count as f64));
            Series::from_points(sums).sums(MAX_POINTS)
        },
        streams: streams.iter().map(|stream| stream_report(stream)).collect(),
    }
}

/// What the senders' samples say; `None` where the sender is an iperf3 server.
fn path(streams: &[&StreamOutcome], from: Instant) -> Option<PathEstimate> {
    // IP and TCP with time stamps.
    let header = if streams.first()?.remote.is_some_and(|remote| remote.is_ipv6()) { 72 } else { 52 };
    let samples: Vec<&[TcpSample]> = streams.iter().map(|stream| stream.counted_samples(from)).collect();
    let found = estimate::estimate(&samples, Bytes::new(header))?;
    Some(PathEstimate {
        bottleneck_bps: found.bottleneck.map(Rate::as_bps),
        bottleneck_at_least: found.at_least,
        min_rtt_ms: found.min_rtt.map(Duration::as_millis_f64),
        bdp_bytes: found.bdp().map(Bytes::as_u64),
        queueing_delay_ms: found.queueing_delay.map(Duration::as_millis_f64),
        loss_kind: found.loss_kind.name().to_owned(),
        loss: Some(found.loss),
        because: because(&found),
        evidence: LossEvidence {
            loss_events: found.evidence.loss_events as u64,
            queue_seen: found.evidence.queue_seen,
            rtt_before_loss: found.evidence.rtt_before_loss,
            lost_per_excess: found.evidence.lost_per_excess,
            empty_bucket: found.evidence.empty_bucket,
            dispersion: found.evidence.dispersion,
        },
    })
}

/// What the kind of loss was told by.
fn because(found: &estimate::PathEstimate) -> String {
    let evidence = &found.evidence;
    let with = |text: &str, value: Option<f64>| value.map_or_else(String::new, |value| format!("{text}{value:.2}"));
    match found.loss_kind {
        LossKind::None if evidence.queue_seen => "A queue built up and held all of it".into(),
        LossKind::None => "No queue built up: nothing shows where the limit is".into(),
        LossKind::QueueOverflow => {
            format!("RTTs are higher just before losses{}", with(": effect ", evidence.rtt_before_loss))
        }
        LossKind::Policed => match evidence.empty_bucket {
            Some(share) if share >= 0.5 => {
                format!("{:.0}% of the losses came when a bucket of tokens would have been empty", share * 100.0)
            }
            _ => format!(
                "Without a queue, what is sent beyond a rate is lost{}",
                with(": segments lost per segment more ", evidence.lost_per_excess)
            ),
        },
        LossKind::Bursty => format!(
            "Losses follow neither the queue nor the rate, and come together{}",
            with(": variance over mean ", evidence.dispersion)
        ),
        LossKind::Random => format!(
            "Losses follow neither the queue nor the rate, and come singly{}",
            with(": variance over mean ", evidence.dispersion)
        ),
        LossKind::Unclear => format!("Losses in {} samples only are too few to tell their kind", evidence.loss_events),
    }
}

fn stream_report(stream: &StreamOutcome) -> StreamReport {
    StreamReport {
        id: stream.id,
        goodput_bps: stream.received.map(|bytes| Rate::from_transfer(bytes, stream.received_in).as_bps()),
        retransmitted_segments: stream.retransmitted_segments,
        congestion_control: stream.congestion_control.clone(),
        error: stream.error.clone(),
    }
}

/// Payload sent again over payload sent; `None` without samples of the senders.
fn retransmitted_share(streams: &[&StreamOutcome], from: Instant) -> Option<f64> {
    let mut again = 0;
    let mut sent = 0;
    for stream in streams {
        let samples = stream.counted_samples(from);
        let (first, last) = (samples.first()?, samples.last()?);
        let repeated = (last.bytes_retrans - first.bytes_retrans).as_u64();
        again += repeated;
        sent += repeated + (last.bytes_acked - first.bytes_acked).as_u64();
    }
    (sent > 0).then(|| again as f64 / sent as f64)
}

/// Shares of the senders' busy time; `None` without samples of the senders.
fn limited_by(streams: &[&StreamOutcome], from: Instant) -> Option<LimitedBy> {
    let (mut busy, mut receive_window, mut send_buffer) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for stream in streams {
        let samples = stream.counted_samples(from);
        let (first, last) = (samples.first()?, samples.last()?);
        busy += last.busy - first.busy;
        receive_window += last.rwnd_limited - first.rwnd_limited;
        send_buffer += last.sndbuf_limited - first.sndbuf_limited;
    }
    let share = |time: Duration| (time.as_secs_f64() / busy.as_secs_f64()).min(1.0);
    (busy > Duration::ZERO).then(|| LimitedBy {
        receive_window: share(receive_window),
        send_buffer: share(send_buffer),
        congestion_window: (1.0 - share(receive_window) - share(send_buffer)).max(0.0),
    })
}

/// All streams together over time: what the receivers read, or, where they did not tell, what the senders saw acknowledged.
fn goodput_series(streams: &[&StreamOutcome], start: Instant) -> Series {
    let since = |at: Instant| Instant::from_nanos(at.since(start).as_nanos());
    let told = streams.iter().all(|stream| !stream.received_series.is_empty());
    let counts: Vec<Vec<(Instant, u64)>> = streams
        .iter()
        .map(|stream| {
            if told {
                stream.received_series.iter().map(|(at, bytes)| (since(*at), bytes.as_u64())).collect()
            } else {
                stream.samples.iter().map(|sample| (since(sample.at), sample.bytes_acked.as_u64())).collect()
            }
        })
        .collect();
    let rates = differences(&counts, BIN)
        .into_iter()
        .map(|(at, time, bytes)| (at, Rate::from_transfer(Bytes::new(bytes), time).as_bps() as f64));
    Series::from_points(rates).means(MAX_POINTS)
}

/// What several running counts grew by together, over spans of at least `least`: (end of the span, its length, growth).
fn differences(counts: &[Vec<(Instant, u64)>], least: Duration) -> Vec<(Instant, Duration, u64)> {
    let Some(times) = counts.first() else { return Vec::new() };
    let mut places = vec![0; counts.len()];
    let mut total_at = |at: Instant| -> u64 {
        let each = counts.iter().zip(&mut places).map(|(count, place)| {
            while *place + 1 < count.len() && count[*place + 1].0 <= at {
                *place += 1;
            }
            count.get(*place).filter(|(then, _)| *then <= at).map_or(0, |(_, value)| *value)
        });
        each.sum()
    };
    let mut spans = Vec::new();
    let mut last: Option<(Instant, u64)> = None;
    for (at, _) in times {
        let Some((before, value)) = last else {
            last = Some((*at, total_at(*at)));
            continue;
        };
        let time = at.since(before);
        if time >= least && time > Duration::ZERO {
            let now = total_at(*at);
            spans.push((*at, time, now.saturating_sub(value)));
            last = Some((*at, now));
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_of_several_counts_is_added_up_and_short_spans_are_joined() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let a = vec![(at(0), 0), (at(60), 6), (at(120), 12), (at(200), 20)];
        let b = vec![(at(0), 0), (at(61), 100), (at(121), 200), (at(201), 300)];
        let spans = differences(&[a, b], Duration::from_millis(100));
        assert_eq!(spans, [(at(120), Duration::from_millis(120), 112)]);
        assert_eq!(differences(&[], BIN), []);
    }
}
