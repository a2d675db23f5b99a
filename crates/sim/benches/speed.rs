//! How fast the simulator is: `cargo bench -p linerate-sim -- [FLOWS RATE_GBIT RTT_MS SECONDS [CONTROL [REPEATS]]]`.
//!
//! Prints for each repeat the packet events (a packet, ACKs included, enters a link, or leaves it at its far end or by being dropped), the
//! time and the events a second of one core, then the median and the largest memory the process had.

use std::time::Instant as Clock;

use path::{Discipline, LinkConfig, LossModel, QueueConfig, QueueLimit, RateModel};
use sim::{AckPolicy, Buffers, FlowConfig, Traffic, World, WorldConfig};
use units::{Bytes, Duration, Instant, Probability, Rate};

fn link(rate: RateModel, delay: Duration, queue: Bytes) -> LinkConfig {
    LinkConfig {
        rate,
        delay,
        flow_delay: Vec::new(),
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss: LossModel::None,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Bytes(queue),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

fn run(flows: u64, rate: Rate, rtt: Duration, time: Duration, control: &str) -> (u64, f64, f64) {
    let queue = rate.bdp(rtt);
    let flow = |number: u64| FlowConfig {
        controller: sim::controller(control, number).expect("a known control"),
        response_controller: None,
        traffic: Traffic::Bulk { bytes: None },
        start: Instant::ZERO + (Duration::from_secs(1) * number) / flows,
        stop: None,
        buffers: Buffers {
            receive_initial: Bytes::new(64 << 20),
            receive_most: Bytes::new(64 << 20),
            send_most: Bytes::new(64 << 20),
            ..Buffers::default()
        },
        acks: AckPolicy::default(),
        burst: None,
        ecn: false,
    };
    let mut world = World::new(WorldConfig {
        forward: vec![link(RateModel::Constant(rate), rtt / 2, queue)],
        back: vec![link(RateModel::Unlimited, rtt / 2, queue)],
        flows: (0..flows).map(flow).collect(),
        mtu: 1500,
        seed: 1,
        bucket: Duration::from_millis(100),
        sample_every: None,
        probe: None,
    })
    .expect("a possible world");
    let started = Clock::now();
    world.run(Instant::ZERO + time);
    let seconds = started.elapsed().as_secs_f64();
    let carried = world.forward_counters()[0].delivered_bytes;
    (world.packet_events(), seconds, Rate::from_transfer(carried, time).as_mbps_f64())
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |place: usize, default: u64| words.get(place).and_then(|word| word.parse().ok()).unwrap_or(default);
    let (flows, rate) = (number(0, 100), Rate::from_mbps(number(1, 1) * 1000));
    let (rtt, time) = (Duration::from_millis(number(2, 50)), Duration::from_secs(number(3, 20)));
    let control = words.get(4).map_or("reno", String::as_str);
    let mut speeds = Vec::new();
    for _ in 0..number(5, 5) {
        let (events, seconds, carried) = run(flows, rate, rtt, time, control);
        let speed = events as f64 / seconds / 1e6;
        println!(
            "{flows} {control} flows, {rate} x {rtt}, {time}: {events} packet events in {seconds:.2} s = {speed:.2} million/s, {carried:.0} Mbit/s carried"
        );
        speeds.push(speed);
    }
    speeds.sort_by(f64::total_cmp);
    println!(
        "median {:.2} million packet events/s ({:.2} .. {:.2}); peak memory {}",
        speeds[speeds.len() / 2],
        speeds[0],
        speeds[speeds.len() - 1],
        peak_memory()
    );
}
