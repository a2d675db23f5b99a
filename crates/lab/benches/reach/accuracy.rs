//! Rows about the emulator itself, with datagrams instead of TCP.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use linerate_lab::emulator::DirectionOutcome;
use linerate_lab::session::{DataFrom, FIRST_PORT, Session, Setup};
use linerate_lab::world::{CLIENT, SERVER};
use measure::probe::{ProbePath, ProbePlan, idle_rtt};
use measure::stats;
use measure::traffic::{End, StopFlag};
use path::{Discipline, DropCause, LinkConfig, LossModel, QueueConfig, QueueLimit, RateModel};
use units::{Bytes, Duration, Probability, Rate};

use crate::Figure;

type Outcome = Result<Figure, Box<dyn std::error::Error>>;
/// IPv4 and UDP headers.
const HEADERS: usize = 28;
const PAYLOAD: usize = 1_472;

fn link(rate: RateModel, delay: Duration, queue: u64) -> LinkConfig {
    LinkConfig {
        rate,
        delay,
        flow_delay: vec![],
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss: LossModel::None,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Bytes(Bytes::new(queue)),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

fn session(forward: &LinkConfig, seed: u64, log_packets: bool) -> Result<Session, Box<dyn std::error::Error>> {
    let back = link(RateModel::Unlimited, forward.delay, 1 << 30);
    Ok(Session::start(Setup {
        forward,
        back: &back,
        data_from: DataFrom::Client,
        seed,
        mtu: 1500,
        sysctls: &[],
        flows: 1,
        probe: false,
        log_packets,
        capture: None,
    })?)
}

/// What the far end got over the wall clock: bytes of IP packets, and the time from the first to the last of them.
struct Received {
    bytes: u64,
    packets: u64,
    span: StdDuration,
}

/// Offers `rate` x `excess` of full packets for `time`, in small groups every millisecond.
fn blast(session: &Session, rate: Rate, excess: f64, time: StdDuration) -> Result<Received, Box<dyn std::error::Error>> {
    let receiver = session.world.server.run(|| UdpSocket::bind((SERVER, FIRST_PORT)))??;
    receiver.set_read_timeout(Some(StdDuration::from_millis(500)))?;
    nix::sys::socket::setsockopt(&receiver, nix::sys::socket::sockopt::RcvBufForce, &(64 << 20))?;
    // The first second fills the queue and is left out.
    let skip = StdDuration::from_secs(1);
    let far = std::thread::spawn(move || {
        let mut buffer = [0u8; 2048];
        let begun = StdInstant::now();
        let mut first = None;
        let mut got = Received { bytes: 0, packets: 0, span: StdDuration::ZERO };
        while let Ok(len) = receiver.recv(&mut buffer) {
            let now = StdInstant::now();
            if now - begun < skip {
                continue;
            }
            match first {
                // The first packet opens the span: its bytes were sent before it.
                None => first = Some(now),
                Some(first) => {
                    got.bytes += (len + HEADERS) as u64;
                    got.packets += 1;
                    got.span = now - first;
                }
            }
        }
        got
    });
    session.world.client.run(|| -> std::io::Result<()> {
        let socket = UdpSocket::bind((CLIENT, 0))?;
        socket.connect(SocketAddr::from((SERVER, FIRST_PORT)))?;
        let payload = [0u8; PAYLOAD];
        let begun = StdInstant::now();
        let per_second = rate.as_bps() as f64 * excess / 8.0 / (PAYLOAD + HEADERS) as f64;
        let mut sent = 0.0;
        while begun.elapsed() < time {
            let due = begun.elapsed().as_secs_f64() * per_second;
            while sent < due {
                socket.send(&payload)?;
                sent += 1.0;
            }
            std::thread::sleep(StdDuration::from_millis(1));
        }
        Ok(())
    })??;
    far.join().map_err(|_| "the receiver panicked".into())
}

fn outside(device_drops: u64, up: &DirectionOutcome) -> Vec<String> {
    let lost = device_drops + up.outside.refused + up.outside.malformed;
    if lost > 0 { vec![format!("{lost} packets lost outside the path")] } else { vec![] }
}

/// Percent that the rate at the far end, by the wall clock, is off the asked one.
pub fn rate(mbps: u64, seed: u64) -> Outcome {
    let rate = Rate::from_mbps(mbps);
    let queue = rate.bytes_in(Duration::from_millis(50)).as_u64().max(30_000);
    let session = session(&link(RateModel::Constant(rate), Duration::from_millis(5), queue), seed, false)?;
    let got = blast(&session, rate, 1.1, StdDuration::from_secs(6))?;
    let (world, outcome) = session.finish();
    let seen = got.bytes as f64 * 8.0 / got.span.as_secs_f64();
    Ok(Figure {
        value: (seen / rate.as_bps() as f64 - 1.0) * 100.0,
        invalid: outside(world.device_drops()?, &outcome.up),
        note: format!("{:.4} Mbit/s over {} packets", seen / 1e6, got.packets),
    })
}

/// p99 of a lone packet's one-way delay beyond the path's own, in microseconds, over 400 probes.
pub fn idle_delay(seed: u64) -> Outcome {
    let delay = Duration::from_millis(20);
    let rate = Rate::from_mbps(1_000);
    let session = session(&link(RateModel::Constant(rate), delay, 1_000_000), seed, false)?;
    let ends = ProbePath {
        client: &session.world.client,
        server: &session.world.server,
        client_addr: CLIENT.into(),
        server_addr: SERVER.into(),
    };
    let plan = ProbePlan { interval: Duration::from_millis(10), from: End::Client };
    let outcome = idle_rtt(&ends, plan, 400, session.clock, &StopFlag::new())?;
    // 64 bytes of payload on 1 Gbit/s.
    let own = delay + rate.time_for(Bytes::new(92));
    let late: Vec<f64> = outcome
        .samples
        .iter()
        .filter_map(|sample| Some(sample.one_way?.saturating_sub(own).as_nanos() as f64 / 1e3))
        .collect();
    let at = |percent| stats::percentile(&late, percent).unwrap_or(f64::INFINITY);
    let note = format!("p50 {:.0}, p95 {:.0}, most {:.0}, {} probes", at(50.0), at(95.0), at(100.0), late.len());
    let invalid = if outcome.lost > 0 { vec![format!("{} probes lost", outcome.lost)] } else { vec![] };
    Ok(Figure { value: at(99.0), invalid, note })
}

/// Distance of the lost packets' count from the expected one, in percent of half the binomial 99 % interval; 1 % loss.
pub fn random_loss(seed: u64) -> Outcome {
    let asked = Probability::from_ppb(10_000_000);
    let mut config = link(RateModel::Constant(Rate::from_mbps(500)), Duration::from_millis(5), 50_000_000);
    config.loss = LossModel::Independent(asked);
    let session = session(&config, seed, false)?;
    blast(&session, Rate::from_mbps(300), 1.0, StdDuration::from_secs(4))?;
    let (world, outcome) = session.finish();
    let counters = outcome.up.counters;
    let plausible = stats::binomial_range(counters.offered, asked, 0.99);
    let (low, high) = (*plausible.start(), *plausible.end());
    let expected = counters.offered as f64 * asked.as_f64();
    let half = (high - low) as f64 / 2.0;
    Ok(Figure {
        value: (counters.dropped_random as f64 - expected) / half * 100.0,
        invalid: outside(world.device_drops()?, &outcome.up),
        note: format!("{} of {} lost, {low} to {high} expected", counters.dropped_random, counters.offered),
    })
}

/// Packets that the queue took over its limit, dropped before it was full, or let pass each other.
pub fn queue(seed: u64) -> Outcome {
    let limit = 150_000;
    let rate = Rate::from_mbps(100);
    let session = session(&link(RateModel::Constant(rate), Duration::from_millis(5), limit), seed, true)?;
    blast(&session, rate, 1.2, StdDuration::from_secs(4))?;
    let (world, outcome) = session.finish();
    let log = outcome.up.record.log().ok_or("the log was asked for")?;
    let wrong = wrong_packets(log, rate, limit);
    Ok(Figure {
        value: wrong as f64,
        invalid: outside(world.device_drops()?, &outcome.up),
        note: format!("{} offered, {} dropped", log.offered.len(), log.dropped.len()),
    })
}

/// Goes through the log with a queue of its own: exact integer fluid of bytes at the bottleneck.
fn wrong_packets(log: &linerate_lab::record::PacketLog, rate: Rate, limit: u64) -> usize {
    let mut wrong = log.delivered.windows(2).filter(|pair| pair[1].0 < pair[0].0).count();
    let dropped: std::collections::HashMap<u64, DropCause> = log.dropped.iter().copied().collect();
    // Departure time and size of each packet still inside.
    let mut inside: std::collections::VecDeque<(u64, u64)> = std::collections::VecDeque::new();
    let mut bytes = 0;
    let mut last_out = 0u64;
    for (number, (at, size, ..)) in log.offered.iter().enumerate() {
        let now = at.as_nanos();
        while inside.front().is_some_and(|(out, _)| *out <= now) {
            bytes -= inside.pop_front().map_or(0, |(_, size)| size);
        }
        let size = size.as_u64();
        let full = bytes + size > limit;
        let was_dropped = dropped.contains_key(&(number as u64));
        wrong += usize::from(full != was_dropped);
        if !was_dropped {
            last_out = last_out.max(now) + rate.time_for(Bytes::new(size)).as_nanos();
            inside.push_back((last_out, size));
            bytes += size;
        }
    }
    wrong
}
