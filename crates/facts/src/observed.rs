//! What many sockets add up to.

use core::net::IpAddr;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Counters;

/// All connections at one look. Times of `held` cover each connection's whole life so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// Sockets by state (`established`, `time-wait`, …).
    pub states: BTreeMap<String, u64>,
    /// Connections by congestion control; listeners not counted.
    pub controls: BTreeMap<String, u64>,
    /// Established connections, those over `lo` not counted: what follows is about them.
    pub remote_established: u64,
    /// Of them, with timestamps agreed on.
    pub timestamps: u64,
    /// With selective acknowledgements.
    pub sack: u64,
    /// With window scaling.
    pub window_scaling: u64,
    /// With ECN agreed on.
    pub ecn: u64,
    /// With an ECN mark seen.
    pub ecn_seen: u64,
    /// What held them.
    pub held: Held,
    /// The largest product of delivery rate and least round-trip time that one of them shows now.
    pub largest_bdp: Option<Bdp>,
    /// Connections whose receive buffer stands at `tcp_rmem`'s third value, with our own window as the limit of what comes.
    pub receive_buffers_full: u64,
    /// Use of ephemeral ports, towards the destinations with the most.
    pub ports: Vec<PortUse>,
}

/// Time with data outstanding, and what held it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Held {
    /// Time with data outstanding, summed over connections.
    pub busy_us: u64,
    /// Of it, held by the peer's receive window.
    pub rwnd_limited_us: u64,
    /// Of it, held by the send buffer.
    pub sndbuf_limited_us: u64,
    /// Of it, held by the congestion window: the rest, while the program had more to send. Zero where only one look was taken.
    pub cwnd_limited_us: u64,
}

impl Held {
    /// `part` of the busy time, from 0 to 1.
    pub fn share(&self, part: u64) -> f64 {
        if self.busy_us == 0 { 0.0 } else { part as f64 / self.busy_us as f64 }
    }
}

/// A bandwidth-delay product, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bdp {
    /// The product.
    pub bytes: u64,
    /// Payload bits per second.
    pub rate_bps: u64,
    /// The least round-trip time.
    pub min_rtt_us: u32,
    /// The connection's own port.
    pub port: u16,
    /// The other end.
    pub remote: IpAddr,
}

/// How many ephemeral ports are used towards one destination: from one address to one address and port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortUse {
    /// Our address.
    pub local: IpAddr,
    /// The destination.
    pub remote: IpAddr,
    /// Its port.
    pub remote_port: u16,
    /// Ports in use, TIME_WAIT included.
    pub used: u64,
    /// Of them, in TIME_WAIT.
    pub time_wait: u64,
}

/// What was seen over an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// How long it was.
    pub seconds: f64,
    /// How long it should have been.
    pub wanted_seconds: f64,
    /// Whether it was ended before.
    pub partial: bool,
    /// How often all sockets were looked at.
    pub looks: u64,
    /// Looks that failed, and why the last one did.
    pub failed_looks: u64,
    /// Why.
    pub failure: Option<String>,
    /// Connections seen, those over `lo` not counted.
    pub connections: u64,
    /// All of them together.
    pub total: Group,
    /// By our own port where we listen on it (`port 443`), else by the port of the other end (`to port 5432`).
    pub ports: Vec<Group>,
    /// By the other end's network: /24 of IPv4, /48 of IPv6.
    pub networks: Vec<Group>,
    /// Networks beyond those that are kept apart.
    pub networks_left_out: u64,
    /// How much the protocols' counters grew.
    pub counters: Counters,
}

/// Connections that have something in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// How many there were.
    pub connections: u64,
    /// What held them in this interval.
    pub held: Held,
    /// Payload bytes acknowledged by the other ends.
    pub sent_bytes: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Segments with data sent.
    pub data_segments: u64,
    /// Of them, retransmissions.
    pub retransmitted_segments: u64,
    /// Retransmissions that were not needed.
    pub spurious_segments: u64,
    /// Smoothed round-trip times of connections with traffic, in microseconds.
    pub rtt_us: Option<Spread>,
    /// Least round-trip times.
    pub min_rtt_us: Option<Spread>,
    /// Delivery rates not limited by the program, in bits per second.
    pub delivery_rate_bps: Option<Spread>,
    /// The largest product of such a rate and the least round-trip time: what the send buffers must hold.
    pub send_bdp_bytes: Option<u64>,
    /// The largest product of a rate of reception and the receiver's round-trip time: what the receive buffers must hold.
    pub receive_bdp_bytes: Option<u64>,
    /// Looks at connections that were held by our own receive window.
    pub receive_window_limited_looks: u64,
    /// Looks at connections on which data came.
    pub receiving_looks: u64,
}

/// A distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// How many values.
    pub count: u64,
    /// The median.
    pub p50: u64,
    /// Nine of ten are below.
    pub p90: u64,
    /// 99 of 100 are below.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}
