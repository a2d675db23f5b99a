//! A test as `iperf3 -J` would write it, so that what reads iperf3's files reads ours.
//!
//! Two differences in what stands behind a key: bytes of an interval on the sending end are those acknowledged (iperf3: those handed to the
//! socket), and sums of a sender over the whole test are those handed over, as in iperf3.

use serde_json::{Map, Value, json};
use units::{Bytes, Duration, Instant, Rate};

use super::outcome::{Ending, StreamOutcome, TestOutcome};
use super::{ClientPlan, Length};

/// The document; `started_s` is the time of day at which data began to flow, in seconds since 1970.
pub fn iperf3_json(plan: &ClientPlan, outcome: &TestOutcome, started_s: u64) -> Value {
    let socket = socket_number;
    let connected = outcome.streams.iter().filter_map(|stream| {
        let (local, remote) = (stream.local?, stream.remote?);
        Some(json!({
            "socket": socket(stream), "local_host": local.ip().to_string(), "local_port": local.port(),
            "remote_host": remote.ip().to_string(), "remote_port": remote.port(),
        }))
    });
    let (duration, bytes) = match plan.length {
        Length::Time(time) => (time.as_secs_f64(), 0),
        Length::Bytes(bytes) => (0.0, bytes.as_u64()),
    };
    let start = json!({
        "connected": connected.collect::<Vec<_>>(),
        "version": format!("linerate {}", plan.version),
        "system_info": system_info(),
        "timestamp": { "timesecs": started_s },
        "connecting_to": { "host": outcome.server.ip().to_string(), "port": outcome.server.port() },
        "cookie": outcome.cookie,
        "tcp_mss_default": outcome.streams.first().and_then(|stream| stream.mss).map_or(0, Bytes::as_u64),
        "target_bitrate": plan.rate.map_or(0, Rate::as_bps),
        "sock_bufsize": 0,
        "test_start": {
            "protocol": "TCP", "num_streams": plan.streams, "blksize": 128 << 10, "omit": plan.omit.as_secs_f64() as u64,
            "duration": duration, "bytes": bytes, "blocks": 0,
            "reverse": u8::from(!plan.direction.has_forward()), "bidir": u8::from(plan.direction.has_forward() && plan.direction.has_reverse()),
            "tos": 0, "target_bitrate": plan.rate.map_or(0, Rate::as_bps),
        },
    });
    let mut document = Map::new();
    document.insert("start".into(), start);
    document.insert("intervals".into(), intervals(outcome).into());
    document.insert("end".into(), end(outcome));
    if let Ending::Broken(reason) = &outcome.ending {
        document.insert("error".into(), reason.clone().into());
    }
    if outcome.ending == Ending::Stopped {
        document.insert("error".into(), "interrupt - the client has terminated".into());
    }
    Value::Object(document)
}

fn system_info() -> String {
    let name = nix::sys::utsname::uname().ok();
    name.map_or_else(String::new, |name| {
        [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()]
            .map(|part| part.to_string_lossy().into_owned())
            .join(" ")
    })
}

/// iperf3 writes the file descriptor: any number that tells streams apart does.
fn socket_number(stream: &StreamOutcome) -> i64 {
    stream.id + 4
}

/// One entry for each second.
fn intervals(outcome: &TestOutcome) -> Vec<Value> {
    const STEP: Duration = Duration::from_secs(1);
    let mut all = Vec::new();
    let mut from = outcome.started_at;
    while from < outcome.ended_at {
        let omitted = from < outcome.counting_from;
        let edge = if omitted { outcome.counting_from } else { outcome.ended_at };
        let mut to = (from + STEP).min(edge);
        // A last stump of a second belongs to the one before it.
        if edge.since(to) < Duration::from_millis(100) {
            to = edge;
        }
        let zero = if omitted { outcome.started_at } else { outcome.counting_from };
        let part = Part { from, to, zero, omitted };
        let streams: Vec<Value> = outcome.streams.iter().map(|stream| part.stream(stream)).collect();
        let mut interval = Map::new();
        interval.insert("streams".into(), streams.into());
        let both = outcome.direction.has_forward() && outcome.direction.has_reverse();
        let first = outcome.direction.has_forward();
        interval.insert("sum".into(), part.sum(outcome, first));
        if both {
            interval.insert("sum_bidir_reverse".into(), part.sum(outcome, false));
        }
        all.push(Value::Object(interval));
        from = to;
    }
    all
}

struct Part {
    from: Instant,
    to: Instant,
    zero: Instant,
    omitted: bool,
}

impl Part {
    fn stream(&self, stream: &StreamOutcome) -> Value {
        let mut entry = self.entry(moved_in(stream, self.from, self.to), stream.forward);
        if let Value::Object(entry) = &mut entry {
            entry.insert("socket".into(), socket_number(stream).into());
            if stream.forward
                && let Some(last) = stream.samples.iter().rfind(|sample| sample.at <= self.to)
            {
                entry.insert("retransmits".into(), sent_again_in(stream, self.from, self.to).into());
                entry.insert("snd_cwnd".into(), (u64::from(last.cwnd_segments) * last.mss.as_u64()).into());
                entry.insert("rtt".into(), last.srtt.map_or(0, Duration::as_micros).into());
                entry.insert("rttvar".into(), last.rttvar.as_micros().into());
            }
        }
        entry
    }

    fn sum(&self, outcome: &TestOutcome, forward: bool) -> Value {
        let bytes = outcome.streams_of(forward).map(|stream| moved_in(stream, self.from, self.to)).sum();
        let mut entry = self.entry(bytes, forward);
        if forward && let Value::Object(entry) = &mut entry {
            let again: u64 = outcome.streams_of(true).map(|stream| sent_again_in(stream, self.from, self.to)).sum();
            entry.insert("retransmits".into(), again.into());
        }
        entry
    }

    fn entry(&self, bytes: u64, sender: bool) -> Value {
        let time = self.to.since(self.from);
        json!({
            "start": self.from.since(self.zero).as_secs_f64(), "end": self.to.since(self.zero).as_secs_f64(),
            "seconds": time.as_secs_f64(), "bytes": bytes,
            "bits_per_second": Rate::from_transfer(Bytes::new(bytes), time).as_bps() as f64,
            "omitted": self.omitted, "sender": sender,
        })
    }
}

/// Bytes that this end saw acknowledged, or received, between two instants.
fn moved_in(stream: &StreamOutcome, from: Instant, to: Instant) -> u64 {
    let count = |until: Instant| -> u64 {
        if stream.forward {
            stream.samples.iter().rfind(|sample| sample.at <= until).map_or(0, |sample| sample.bytes_acked.as_u64())
        } else {
            stream.received_series.iter().rfind(|(at, _)| *at <= until).map_or(0, |(_, bytes)| bytes.as_u64())
        }
    };
    count(to).saturating_sub(count(from))
}

fn sent_again_in(stream: &StreamOutcome, from: Instant, to: Instant) -> u64 {
    let count = |until: Instant| {
        stream.samples.iter().rfind(|sample| sample.at <= until).map_or(0, |sample| sample.retransmitted_segments)
    };
    count(to).saturating_sub(count(from)).into()
}

fn end(outcome: &TestOutcome) -> Value {
    let counted = outcome.ended_at.since(outcome.counting_from);
    let whole = |bytes: Option<Bytes>, time: Duration, sender: bool| {
        let bytes = bytes.unwrap_or(Bytes::ZERO);
        json!({
            "start": 0, "end": time.as_secs_f64(), "seconds": time.as_secs_f64(), "bytes": bytes.as_u64(),
            "bits_per_second": Rate::from_transfer(bytes, time).as_bps() as f64, "sender": sender,
        })
    };
    let with = |mut value: Value, more: &[(&str, Value)]| {
        if let Value::Object(map) = &mut value {
            map.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        }
        value
    };
    let streams = outcome.streams.iter().map(|stream| {
        let rtts: Vec<u64> = stream.samples.iter().filter_map(|sample| sample.srtt).map(Duration::as_micros).collect();
        let cwnd = stream.samples.iter().map(|sample| u64::from(sample.cwnd_segments) * sample.mss.as_u64()).max();
        let mean = rtts.iter().sum::<u64>().checked_div(rtts.len() as u64).unwrap_or(0);
        let number = json!(socket_number(stream));
        let sender = with(
            whole(stream.sent, counted, stream.forward),
            &[
                ("socket", number.clone()),
                ("retransmits", json!(stream.retransmitted_segments.unwrap_or(0))),
                ("max_snd_cwnd", json!(cwnd.unwrap_or(0))),
                ("max_rtt", json!(rtts.iter().max().unwrap_or(&0))),
                ("min_rtt", json!(rtts.iter().min().unwrap_or(&0))),
                ("mean_rtt", json!(mean)),
            ],
        );
        let receiver = with(whole(stream.received, stream.received_in, stream.forward), &[("socket", number)]);
        json!({ "sender": sender, "receiver": receiver })
    });
    let total = |forward: bool, of: fn(&StreamOutcome) -> Option<Bytes>| {
        outcome.streams_of(forward).filter_map(of).fold(Bytes::ZERO, |sum, one| sum + one)
    };
    let received_in =
        |forward: bool| outcome.streams_of(forward).map(|stream| stream.received_in).max().unwrap_or(counted);
    let sent = |forward: bool| {
        let again = json!(outcome.retransmitted(forward).unwrap_or(0));
        with(whole(Some(total(forward, |stream| stream.sent)), counted, forward), &[("retransmits", again)])
    };
    let received = |forward: bool| whole(Some(total(forward, |stream| stream.received)), received_in(forward), forward);
    let first = outcome.direction.has_forward();
    let mut end = Map::new();
    end.insert("streams".into(), streams.collect::<Vec<_>>().into());
    end.insert("sum_sent".into(), sent(first));
    end.insert("sum_received".into(), received(first));
    if first && outcome.direction.has_reverse() {
        end.insert("sum_sent_bidir_reverse".into(), sent(false));
        end.insert("sum_received_bidir_reverse".into(), received(false));
    }
    let remote = outcome.server_results.as_ref();
    let cpu = |of: fn(&crate::iperf::wire::Results) -> f64| remote.map_or(0.0, of);
    end.insert(
        "cpu_utilization_percent".into(),
        json!({
            "host_total": outcome.results.cpu_util_total, "host_user": outcome.results.cpu_util_user,
            "host_system": outcome.results.cpu_util_system, "remote_total": cpu(|r| r.cpu_util_total),
            "remote_user": cpu(|r| r.cpu_util_user), "remote_system": cpu(|r| r.cpu_util_system),
        }),
    );
    let (own, other) = (outcome.results.congestion_used.clone(), remote.and_then(|r| r.congestion_used.clone()));
    let (sender, receiver) = if first { (own, other) } else { (other, own) };
    end.insert("sender_tcp_congestion".into(), json!(sender));
    end.insert("receiver_tcp_congestion".into(), json!(receiver));
    Value::Object(end)
}
