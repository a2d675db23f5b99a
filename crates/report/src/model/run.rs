//! One run of one cell: figures, flows, the path's own account, and how they went over time.

use serde::{Deserialize, Serialize};
use units::Duration;

use crate::series::Series;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunReport {
    /// The scenario's name.
    pub scenario: String,
    /// The profile's name.
    pub profile: String,
    /// The congestion control of flows that name none.
    pub congestion_control: String,
    /// Its version by probe, not by name: `BBRv1`, `BBRv3 (draft-05)`.
    #[serde(default)]
    pub congestion_control_version: Option<String>,
    /// Average loss of the data direction, as a fraction from 0 to 1.
    pub loss: f64,
    /// Round-trip time of the path without a queue.
    pub rtt_ms: f64,
    /// Bottleneck queue, as the scenario writes it.
    pub queue: String,
    /// Bottleneck queue, where it is limited in bytes.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// From 0.
    pub repeat: u32,
    /// Seed of every random choice of the path.
    pub seed: u64,
    /// From the start of the report to the start of this run.
    pub started_after_s: f64,
    /// How long it ran, warm-up included.
    pub duration_s: f64,
    /// Left out of the figures at the start.
    pub warmup_s: f64,
    /// Whether the figures may be believed. Invalid runs are shown, and left out of medians.
    pub valid: bool,
    /// Why not.
    #[serde(default)]
    pub invalid_reason: Option<String>,
    /// Application bytes at the receivers of all bulk flows, per second, after the warm-up.
    #[serde(default)]
    pub goodput_bps: Option<u64>,
    /// RTT before any load.
    #[serde(default)]
    pub rtt_idle_ms: Option<f64>,
    /// RTT of a light probe through the same queue, under load.
    #[serde(default)]
    pub rtt_under_load_ms: Option<Percentiles>,
    /// Time that packets spent in the bottleneck's queue.
    #[serde(default)]
    pub queueing_delay_ms: Option<DelayPercentiles>,
    /// Segments sent again, all flows.
    #[serde(default)]
    pub retransmitted_segments: Option<u64>,
    /// Time until the last flow with a byte count had delivered it.
    #[serde(default)]
    pub completion_s: Option<f64>,
    /// First Contentful Paint of a page loaded through the path.
    #[serde(default)]
    pub first_contentful_paint_ms: Option<f64>,
    /// Load event of that page.
    #[serde(default)]
    pub page_load_ms: Option<f64>,
    /// Packets that the path dropped in the data direction, by cause.
    #[serde(default)]
    pub drops: DropCounts,
    /// Packets that the path marked CE in the data direction.
    #[serde(default)]
    pub marks: u64,
    /// Each flow.
    #[serde(default)]
    pub flows: Vec<FlowReport>,
    /// What the emulator says about its own accuracy.
    #[serde(default)]
    pub emulator: Option<EmulatorReport>,
    /// How the path went over time.
    #[serde(default)]
    pub series: RunSeries,
}

/// Percentiles of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Percentiles {
    /// In milliseconds.
    pub fn from_durations(p50: Duration, p95: Duration, p99: Duration) -> Self {
        Self { p50: p50.as_millis_f64(), p95: p95.as_millis_f64(), p99: p99.as_millis_f64() }
    }
}

/// Mean and percentiles of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DelayPercentiles {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl DelayPercentiles {
    /// In milliseconds.
    pub fn from_durations(mean: Duration, p50: Duration, p95: Duration, p99: Duration) -> Self {
        Self {
            mean: mean.as_millis_f64(),
            p50: p50.as_millis_f64(),
            p95: p95.as_millis_f64(),
            p99: p99.as_millis_f64(),
        }
    }
}

/// Dropped packets by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DropCounts {
    /// By the loss model.
    pub random: u64,
    /// By a full queue.
    pub overflow: u64,
    /// By active queue management.
    pub aqm: u64,
    /// By the policer.
    pub policer: u64,
}

/// What a flow sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowTraffic {
    /// As much as it can.
    #[default]
    Bulk,
    /// One request, one response, again and again.
    RequestResponse,
}

/// One flow of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FlowReport {
    /// The scenario's label; several flows may share it.
    pub label: String,
    /// From 0, among the flows of this label.
    pub index: u32,
    /// What it sends.
    pub traffic: FlowTraffic,
    /// Read back from the socket.
    pub congestion_control: String,
    /// Its own round-trip time without a queue.
    pub rtt_ms: f64,
    /// When it started, after the run's start.
    pub start_s: f64,
    /// When it ended, after the run's start.
    pub end_s: f64,
    /// Application bytes at its receiver, per second, after the warm-up, while it ran.
    #[serde(default)]
    pub goodput_bps: Option<u64>,
    /// Application bytes at its receiver, warm-up included.
    #[serde(default)]
    pub received_bytes: Option<u64>,
    /// Segments sent, retransmissions included.
    #[serde(default)]
    pub sent_segments: Option<u64>,
    /// Segments sent again.
    #[serde(default)]
    pub retransmitted_segments: Option<u64>,
    /// Smallest RTT that TCP saw.
    #[serde(default)]
    pub min_rtt_ms: Option<f64>,
    /// Time with data to send (`tcpi_busy_time`).
    #[serde(default)]
    pub busy_s: Option<f64>,
    /// Of that, stalled by the receiver's window (`tcpi_rwnd_limited`).
    #[serde(default)]
    pub receive_window_limited_s: Option<f64>,
    /// Of that, stalled by the send buffer (`tcpi_sndbuf_limited`).
    #[serde(default)]
    pub send_buffer_limited_s: Option<f64>,
    /// Time to deliver its byte count, where it has one.
    #[serde(default)]
    pub completion_s: Option<f64>,
    /// Requests answered, of a request/response flow.
    #[serde(default)]
    pub responses: Option<u64>,
    /// From a request to its whole response, of a request/response flow.
    #[serde(default)]
    pub response_ms: Option<Percentiles>,
    /// How it went over time.
    #[serde(default)]
    pub series: FlowSeries,
}

impl FlowReport {
    /// Its name where its label may be shared: `bulk`, or `bulk 2` (from 1) where `shared`.
    pub fn name(&self, shared: bool) -> String {
        if shared { format!("{} {}", self.label, self.index + 1) } else { self.label.clone() }
    }
}

/// A flow over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FlowSeries {
    /// Application bytes at its receiver, per second, over the time since the point before (usually 100 ms).
    pub goodput_bps: Series,
    /// Congestion window.
    pub cwnd_segments: Series,
    /// Pacing rate.
    pub pacing_rate_bps: Series,
    /// Smoothed RTT as TCP sees it.
    pub smoothed_rtt_ms: Series,
}

/// The path over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunSeries {
    /// RTT of the probe; extremes are kept where points were left out.
    pub rtt_under_load_ms: Series,
    /// Bytes waiting at the bottleneck; extremes are kept where points were left out.
    pub queue_depth_bytes: Series,
    /// Packets dropped since the point before, by cause.
    pub drops_packets: DropSeries,
    /// Packets marked CE since the point before.
    pub marks_packets: Series,
}

/// Drops over time, by cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DropSeries {
    /// By the loss model.
    pub random: Series,
    /// By a full queue.
    pub overflow: Series,
    /// By active queue management.
    pub aqm: Series,
    /// By the policer.
    pub policer: Series,
}

/// The emulator's account of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EmulatorReport {
    /// `tun`, `netem`.
    pub kind: String,
    /// How much later than due packets left it. A run is invalid where p999 is over 2 ms (or over 2 % of the RTT, where
    /// that is more).
    #[serde(default)]
    pub lateness_us: Option<TimingError>,
    /// How long packets waited before the emulator took them in.
    #[serde(default)]
    pub intake_us: Option<TimingError>,
    /// Packets it handled, both directions.
    pub packets: u64,
    /// Packets lost outside the model (full device queues), which must be none.
    pub outside_drops: u64,
}

/// Percentiles of a timing error in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimingError {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The worst.
    pub max: f64,
}

impl TimingError {
    /// In microseconds.
    pub fn from_durations(p50: Duration, p99: Duration, p999: Duration, max: Duration) -> Self {
        let micros = |d: Duration| d.as_nanos() as f64 / 1e3;
        Self { p50: micros(p50), p99: micros(p99), p999: micros(p999), max: micros(max) }
    }
}
