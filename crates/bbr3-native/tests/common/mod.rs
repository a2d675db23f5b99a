//! Shared by the tests: a path, flows on it, and what they show.
#![allow(dead_code)]

pub mod bench;
pub mod reference;

use bbr3::Mode;
use bbr3_native::{Bbr3, FlowConfig, Truth, World, WorldConfig};
use path::{Discipline, LinkConfig, LossModel, QueueConfig, QueueLimit, RateModel};
use units::{Bytes, Duration, Instant, Probability, Rate};

pub fn link(rate: RateModel, delay: Duration, packets: u32, loss: LossModel) -> LinkConfig {
    LinkConfig {
        rate,
        delay,
        flow_delay: Vec::new(),
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Packets(packets),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::new(14),
    }
}

/// 50 Mbit/s and 40 ms, as the reference was measured.
pub fn dumbbell(queue: u32, loss_percent: f64) -> (LinkConfig, LinkConfig) {
    let loss = if loss_percent > 0.0 {
        LossModel::Independent(Probability::from_ppb((loss_percent * 1e7) as u32))
    } else {
        LossModel::None
    };
    let half = Duration::from_millis(20);
    (
        link(RateModel::Constant(Rate::from_mbps(50)), half, queue, loss),
        link(RateModel::Unlimited, half, 1_000_000, LossModel::None),
    )
}

pub fn reference_flow(seed: u64) -> FlowConfig {
    FlowConfig::bulk(Bbr3::faithful(seed), Duration::from_millis(40))
}

pub struct Cell {
    pub world: World,
}

#[derive(Debug)]
pub struct Figures {
    pub goodput: f64,
    pub retransmissions_start: u64,
    pub retransmissions: u64,
    pub queue_mean_ms: f64,
    pub queue_p50_ms: f64,
    pub queue_p95_ms: f64,
    pub cwnd: f64,
    pub startup_s: f64,
    pub ups: u64,
    pub probe_rtts: u64,
    pub modes: Vec<(Mode, u64)>,
    pub hi_mean: f64,
    pub lo_finite: f64,
    pub truth: Truth,
}

impl Cell {
    pub fn new(path: (LinkConfig, LinkConfig), flows: Vec<FlowConfig>) -> Self {
        Self::seeded(path, flows, 7)
    }

    pub fn seeded((forward, reverse): (LinkConfig, LinkConfig), flows: Vec<FlowConfig>, seed: u64) -> Self {
        Self { world: World::new(WorldConfig { forward, reverse, flows, seed }).unwrap() }
    }

    pub fn measure(&mut self) -> Figures {
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let mut startup = None;
        self.world.watch(at(10), |now, _, sender| {
            if startup.is_none() && sender.cc().mode() != Mode::Startup {
                startup = Some(now);
            }
        });
        let flow = self.world.flow_mut(0);
        let bytes = flow.delivered_in_order();
        let retr = flow.sender.retransmissions();
        flow.sojourns_us.clear();
        let ups = flow.sender.cc().entries_into(Mode::Up);
        let prtt = flow.sender.cc().entries_into(Mode::ProbeRtt);
        let (mut n, mut cwnd, mut hi, mut hin, mut lo) = (0u64, 0u64, 0u64, 0u64, 0u64);
        let mut modes = [0u64; 7];
        for step in 500..3000u64 {
            self.world.run(Instant::from_nanos(step * 20_000_000));
            let s = self.world.sender();
            n += 1;
            cwnd += u64::from(s.cwnd());
            modes[s.cc().mode() as usize] += 1;
            if s.cc().state().inflight_hi != u32::MAX {
                hi += u64::from(s.cc().state().inflight_hi);
                hin += 1;
            }
            lo += u64::from(s.cc().state().inflight_lo != u32::MAX);
        }
        self.world.run(at(60));
        let flow = self.world.flow(0);
        let mut q: Vec<f64> = flow.sojourns_us.iter().map(|us| f64::from(*us) / 1000.0 - 0.242).collect();
        q.sort_by(f64::total_cmp);
        let cc = flow.sender.cc();
        Figures {
            goodput: World::goodput(bytes, flow.delivered_in_order(), Duration::from_secs(50)).as_mbps_f64(),
            retransmissions_start: retr,
            retransmissions: flow.sender.retransmissions() - retr,
            queue_mean_ms: q.iter().sum::<f64>() / q.len() as f64,
            queue_p50_ms: q[q.len() / 2],
            queue_p95_ms: q[q.len() * 95 / 100],
            cwnd: cwnd as f64 / n as f64,
            startup_s: startup.map_or(f64::NAN, |at| at.as_secs_f64()),
            ups: cc.entries_into(Mode::Up) - ups,
            probe_rtts: cc.entries_into(Mode::ProbeRtt) - prtt,
            modes: Mode::ALL.iter().map(|mode| (*mode, modes[*mode as usize] * 1000 / n)).collect(),
            hi_mean: hi as f64 / hin.max(1) as f64,
            lo_finite: lo as f64 / n as f64,
            truth: flow.sender.truth(),
        }
    }
}
