//! What one packet costs in the model, offer and advance together: `cargo bench -p linerate-path`.
//!
//! Each case offers a million packets back to back at the bottleneck's rate, in bursts of 44 (a 64 KiB segment) as the
//! emulator does, with a bandwidth-delay product on the way. Printed: the median of the repeats and their range.

use std::hint::black_box;
use std::time::Instant as Clock;

use path::{
    CoDel, Delivery, Discipline, DropCause, Ecn, FlowId, Link, LinkConfig, LossModel, Packet, QueueConfig, QueueLimit,
    RateModel, Red, Reorder, Sink,
};
use units::{Bytes, Duration, Instant, Probability, Rate};

const PACKETS: u64 = 1_000_000;
const BURST: u64 = 44;
const REPEATS: usize = 11;

/// Adds up what it gets, as little as a driver can do.
#[derive(Default)]
struct Sum(u64);

impl Sink<u32> for Sum {
    fn deliver(&mut self, delivery: Delivery<u32>) {
        self.0 += u64::from(delivery.packet.token) ^ delivery.due.as_nanos();
    }
    fn dropped(&mut self, _at: Instant, packet: Packet<u32>, _number: u64, _cause: DropCause) {
        self.0 += u64::from(packet.token);
    }
}

fn plain(rate: Rate) -> LinkConfig {
    LinkConfig {
        rate: RateModel::Constant(rate),
        delay: Duration::from_millis(50),
        flow_delay: Vec::new(),
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss: LossModel::Independent(Probability::from_ppb(100_000)),
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Bytes(Bytes::new(125_000_000)),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

/// Nanoseconds per packet of one run.
fn run(config: &LinkConfig, rate: Rate) -> f64 {
    let mut link = Link::new(config, 1).expect("a possible link");
    let mut sink = Sum::default();
    let between = rate.time_for(Bytes::new(1500 * BURST));
    let mut now = Instant::ZERO;
    let mut token = 0;
    let mut burst = |link: &mut Link<u32>, sink: &mut Sum| {
        for _ in 0..BURST {
            let flow = FlowId((token % 16) as u16);
            let packet = Packet { token, size: Bytes::new(1500), flow, hash: token % 16, ecn: Ecn::Ect0 };
            link.offer(now, black_box(packet), sink);
            token += 1;
        }
        now += between;
        link.advance(now, sink);
        black_box(link.next_event());
    };
    // Until the first bandwidth-delay product is on its way, buffers grow.
    for _ in 0..3000 {
        burst(&mut link, &mut sink);
    }
    let started = Clock::now();
    for _ in 0..PACKETS / BURST {
        burst(&mut link, &mut sink);
    }
    let elapsed = started.elapsed();
    black_box(sink.0);
    elapsed.as_nanos() as f64 / (PACKETS / BURST * BURST) as f64
}

fn main() {
    let rate = Rate::from_mbps(10_000);
    let codel = CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
    let queue = |discipline| QueueConfig { discipline, ecn: true, ..plain(rate).queue };
    let cases = [
        ("drop-tail, constant rate, 0.01 % loss, one delay", plain(rate)),
        ("the same without a bottleneck", LinkConfig { rate: RateModel::Unlimited, ..plain(rate) }),
        (
            "jitter and reordering",
            LinkConfig {
                jitter: Duration::from_micros(100),
                reorder: Some(Reorder {
                    probability: Probability::from_ppb(10_000_000),
                    advance: Duration::from_micros(500),
                }),
                ..plain(rate)
            },
        ),
        (
            "sixteen delays",
            LinkConfig {
                flow_delay: (0..16).map(|flow| (FlowId(flow), Duration::from_millis(40 + u64::from(flow)))).collect(),
                ..plain(rate)
            },
        ),
        (
            "burst loss, rate in steps",
            LinkConfig {
                loss: LossModel::Burst { average: Probability::from_ppb(100_000), mean_burst_milli: 3000 },
                rate: RateModel::Steps(vec![(Instant::ZERO, rate), (Instant::from_nanos(500_000_000), rate)]),
                ..plain(rate)
            },
        ),
        ("CoDel", LinkConfig { queue: queue(Discipline::CoDel(codel)), ..plain(rate) }),
        (
            "FQ-CoDel, 16 flows",
            LinkConfig {
                queue: queue(Discipline::FqCoDel { codel, buckets: 1024, quantum: Bytes::new(1514) }),
                ..plain(rate)
            },
        ),
        (
            "RED",
            LinkConfig {
                queue: queue(Discipline::Red(Red {
                    min: Bytes::new(10_000_000),
                    max: Bytes::new(30_000_000),
                    max_probability: Probability::from_ppb(100_000_000),
                    weight_shift: 9,
                })),
                ..plain(rate)
            },
        ),
    ];
    println!("ns per 1500-byte packet at {rate}, median of {REPEATS} (lowest to highest)");
    for (name, config) in &cases {
        let mut times: Vec<f64> = (0..REPEATS).map(|_| run(config, rate)).collect();
        times.sort_by(f64::total_cmp);
        println!("{name:<52} {:>6.1}  ({:.1} to {:.1})", times[REPEATS / 2], times[0], times[REPEATS - 1]);
    }
}
