use host::cc::CcVersion;
use host::tcp::{CaState, TcpInfo};
use units::{Bytes, Duration, Instant, Rate};

use crate::probe::ProbeOutcome;

/// Why one flow did not do what was planned. The others go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The server could not listen.
    #[error("the server could not listen: {reason}")]
    Listen {
        /// What the kernel said.
        reason: String,
    },
    /// A socket did not take the congestion control.
    #[error("{reason}")]
    CongestionControl {
        /// Which, and what there is instead.
        reason: String,
    },
    /// The connection was refused, or its address can't be used or reached.
    #[error("no connection: {reason}")]
    Connect {
        /// What the kernel said.
        reason: String,
    },
    /// The flow's time was up before it had a connection.
    #[error("no connection before the flow's time was up")]
    NeverConnected,
    /// The connection broke.
    #[error("the connection broke: {reason}")]
    Broken {
        /// What the kernel said.
        reason: String,
    },
    /// The other end finished before everything was there.
    #[error("the sender finished before everything was there")]
    EndedEarly,
    /// The socket that sent the data ran another congestion control than it was given.
    #[error("the data was sent with congestion control `{ran}`, not `{wanted}` (a route's congctl may override it)")]
    WrongCongestionControl {
        /// What the plan said.
        wanted: String,
        /// What the socket itself said.
        ran: String,
    },
}

/// The state of the socket that sends a flow's data, at one moment. Counters are since the connection began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSample {
    /// When it was read.
    pub at: Instant,
    /// Payload acknowledged cumulatively; the kernel counts the sequence numbers of SYN and FIN too.
    pub bytes_acked: Bytes,
    /// Segments delivered, out of order ones included.
    pub delivered_segments: u32,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Duration>,
    /// Minimum round-trip time as the kernel has it; `None` before the first measurement.
    pub min_rtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rttvar: Duration,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Slow start threshold; `None`: none yet.
    pub ssthresh_segments: Option<u32>,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Segments sent and not acknowledged cumulatively.
    pub unacked_segments: u32,
    /// Segments acknowledged selectively now.
    pub sacked_segments: u32,
    /// Segments presumed lost now.
    pub lost_segments: u32,
    /// Payload queued and never sent.
    pub unsent: Bytes,
    /// Pacing rate; `None`: not paced.
    pub pacing_rate: Option<Rate>,
    /// The latest delivery rate sample.
    pub delivery_rate: Rate,
    /// Whether that sample was limited by the application.
    pub delivery_app_limited: bool,
    /// Segments retransmitted.
    pub retransmitted_segments: u32,
    /// Payload retransmitted.
    pub bytes_retrans: Bytes,
    /// Retransmission timeouts; `None` before Linux 6.7.
    pub timeouts: Option<u16>,
    /// Reordering events seen.
    pub reordering_seen: u32,
    /// Time with data outstanding.
    pub busy: Duration,
    /// Part of it limited by the receiver's window.
    pub rwnd_limited: Duration,
    /// Part of it limited by the send buffer.
    pub sndbuf_limited: Duration,
    /// What the sender believes about the path.
    pub ca_state: CaState,
    /// The receiver's window; `None` before Linux 5.4.
    pub send_window: Option<Bytes>,
}

impl TcpSample {
    pub(crate) fn new(at: Instant, info: &TcpInfo) -> Self {
        let raw = info.raw();
        Self {
            at,
            bytes_acked: info.bytes_acked(),
            delivered_segments: raw.delivered,
            srtt: info.srtt(),
            min_rtt: info.min_rtt(),
            rttvar: info.rttvar(),
            cwnd_segments: raw.snd_cwnd,
            ssthresh_segments: info.ssthresh_segments(),
            mss: info.mss(),
            unacked_segments: raw.unacked,
            sacked_segments: raw.sacked,
            lost_segments: raw.lost,
            unsent: info.unsent(),
            pacing_rate: info.pacing_rate(),
            delivery_rate: info.delivery_rate(),
            delivery_app_limited: info.delivery_rate_app_limited(),
            retransmitted_segments: raw.total_retrans,
            bytes_retrans: Bytes::new(raw.bytes_retrans),
            timeouts: info.timeouts(),
            reordering_seen: raw.reord_seen,
            busy: info.busy(),
            rwnd_limited: info.rwnd_limited(),
            sndbuf_limited: info.sndbuf_limited(),
            ca_state: info.ca_state(),
            send_window: info.send_window(),
        }
    }
}

/// What one flow did.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowOutcome {
    /// As planned.
    pub label: String,
    /// The congestion control it was given.
    pub congestion_control: String,
    /// What its data-sending socket really ran, read back from that socket; `None` where it never connected.
    pub cc_version: Option<CcVersion>,
    /// When the client called connect(2); `None` where it never did.
    pub started_at: Option<Instant>,
    /// When it had done what was planned: its last byte arrived, or its time was up. `None`: it did not come to that.
    pub finished_at: Option<Instant>,
    /// From connect(2) to the arrival of the last byte, for a bulk flow of so many bytes that made it.
    pub completion: Option<Duration>,
    /// Payload that the receiver's application read: a bulk flow's data, or the responses of a request/response flow.
    pub received: Bytes,
    /// When the last of it was read.
    pub last_byte_at: Option<Instant>,
    /// The same count over time: at the connection's start, at every sample and at the end.
    pub received_series: Vec<(Instant, Bytes)>,
    /// The data-sending socket over time; for request/response the one that asks.
    pub samples: Vec<TcpSample>,
    /// From the start of a request to the last byte of its response, in order.
    pub request_latencies: Vec<Duration>,
    /// What went wrong.
    pub error: Option<FlowError>,
}

impl FlowOutcome {
    /// Mean goodput from `from` to `to`, by the counts at the samples next to them; `None` where fewer than two counts lie between.
    pub fn goodput(&self, from: Instant, to: Instant) -> Option<Rate> {
        let mut inside = self.received_series.iter().filter(|(at, _)| (from..=to).contains(at));
        let first = inside.next()?;
        let last = inside.next_back()?;
        Some(Rate::from_transfer(last.1 - first.1, last.0.since(first.0)))
    }

    /// Segments retransmitted in all, as the last sample has it.
    pub fn retransmitted_segments(&self) -> u32 {
        self.samples.last().map_or(0, |sample| sample.retransmitted_segments)
    }
}

/// What all flows and probes did.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficOutcome {
    /// The instant that flow starts count from.
    pub started_at: Instant,
    /// When the last flow ended.
    pub ended_at: Instant,
    /// Whether it was stopped before its time.
    pub partial: bool,
    /// Whether TCP ran short of its host-wide memory (sysctl `net.ipv4.tcp_mem`) while it ran: the kernel then shrinks windows, and
    /// the figures say more about the host than about the path.
    pub memory_pressure: bool,
    /// In the plan's order.
    pub flows: Vec<FlowOutcome>,
    /// Where the plan asked for them.
    pub probes: Option<ProbeOutcome>,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Until the planned end, from the start.
    pub duration: Duration,
    /// Payload received by all flows.
    pub received: Bytes,
    /// Flows that have not ended.
    pub running: usize,
}
