//! Paths and flows for tests.
#![allow(dead_code)]

use path::{Discipline, LinkConfig, LossModel, QueueConfig, QueueLimit, RateModel};
use sim::{AckPolicy, Buffers, FlowConfig, Traffic, World, WorldConfig};
use units::{Bytes, Duration, Instant, Probability, Rate};

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}

/// A direction with this rate, one-way delay and drop-tail queue.
pub fn link(rate: Rate, delay: Duration, queue: Bytes) -> LinkConfig {
    LinkConfig {
        rate: RateModel::Constant(rate),
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

/// The way back: delay alone.
pub fn back(delay: Duration) -> LinkConfig {
    LinkConfig { rate: RateModel::Unlimited, ..link(Rate::from_mbps(1), delay, Bytes::new(1_000_000)) }
}

/// A rate and a round-trip time with a queue of `bdp_milli` thousandths of their product.
pub fn path(rate: Rate, rtt: Duration, bdp_milli: u64) -> (LinkConfig, LinkConfig) {
    let queue = Bytes::new((rate.bdp(rtt).as_u64() * bdp_milli / 1000).max(3028));
    (link(rate, rtt / 2, queue), back(rtt / 2))
}

/// Buffers that limit nothing.
pub fn large() -> Buffers {
    Buffers {
        receive_initial: Bytes::new(1 << 30),
        receive_most: Bytes::new(1 << 30),
        send_most: Bytes::new(1 << 30),
        ..Buffers::default()
    }
}

pub fn flow(control: &str, traffic: Traffic) -> FlowConfig {
    FlowConfig {
        controller: sim::controller(control, 1).expect("a known control"),
        response_controller: matches!(traffic, Traffic::RequestResponse { .. })
            .then(|| sim::controller(control, 2).expect("a known control")),
        traffic,
        start: Instant::ZERO,
        stop: None,
        buffers: large(),
        acks: AckPolicy::default(),
        burst: None,
        ecn: false,
    }
}

pub fn bulk(control: &str) -> FlowConfig {
    flow(control, Traffic::Bulk { bytes: None })
}

pub fn config(forward: LinkConfig, back: LinkConfig, flows: Vec<FlowConfig>) -> WorldConfig {
    WorldConfig {
        forward: vec![forward],
        back: vec![back],
        flows,
        mtu: 1500,
        seed: 1,
        bucket: ms(100),
        sample_every: None,
        probe: None,
    }
}

pub fn world(forward: LinkConfig, back: LinkConfig, flows: Vec<FlowConfig>) -> World {
    World::new(config(forward, back, flows)).expect("a possible world")
}

/// Goodput of a flow from one time to another, in Mbit/s.
pub fn goodput(world: &mut World, flow: usize, from: Duration, to: Duration) -> f64 {
    world.run(at(from));
    let before = world.received(flow);
    world.run(at(to));
    Rate::from_transfer(world.received(flow).saturating_sub(before), to - from).as_mbps_f64()
}
