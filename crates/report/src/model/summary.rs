//! One line per cell: medians over its valid repeats, with intervals, beside what was published.

use serde::{Deserialize, Serialize};

/// A median over repeats and an interval around it (the caller says which; `linerate` uses the 95 % bootstrap interval
/// of the median). With one repeat all three are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// Median.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the two share a value.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Whether `value` lies inside, its ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Intervals of the percentiles of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PercentileIntervals {
    /// Of the runs' medians.
    pub p50: Interval,
    /// Of the runs' 95th percentiles.
    pub p95: Interval,
    /// Of the runs' 99th percentiles.
    pub p99: Interval,
}

/// Intervals of the mean and the percentiles of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DelayIntervals {
    /// Of the runs' means.
    pub mean: Interval,
    /// Of the runs' medians.
    pub p50: Interval,
    /// Of the runs' 95th percentiles.
    pub p95: Interval,
    /// Of the runs' 99th percentiles.
    pub p99: Interval,
}

/// Intervals of dropped packets by cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DropIntervals {
    /// By the loss model.
    pub random: Interval,
    /// By a full queue.
    pub overflow: Interval,
    /// By active queue management.
    pub aqm: Interval,
    /// By the policer.
    pub policer: Interval,
}

/// What part of the goodput a flow had, or all flows of one label together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Share {
    /// The flow's name or the flows' label.
    pub label: String,
    /// Its congestion control.
    pub congestion_control: String,
    /// How many flows it stands for.
    pub flows: u32,
    /// From 0 to 1.
    pub share: Interval,
    /// Goodput of these flows together.
    pub goodput_bps: Interval,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SummaryLine {
    /// The scenario's name.
    pub scenario: String,
    /// The profile's name.
    pub profile: String,
    /// The congestion control of flows that name none.
    pub congestion_control: String,
    /// Its version by probe.
    #[serde(default)]
    pub congestion_control_version: Option<String>,
    /// Average loss as a fraction from 0 to 1.
    pub loss: f64,
    /// Round-trip time without a queue.
    pub rtt_ms: f64,
    /// Bottleneck queue, as the scenario writes it.
    pub queue: String,
    /// Bottleneck queue, where it is limited in bytes.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// Runs made.
    pub repeats: u32,
    /// Runs that count.
    pub valid_repeats: u32,
    /// Why the others do not, each reason once.
    #[serde(default)]
    pub invalid_reasons: Vec<String>,
    /// Goodput of all bulk flows; `null` without a valid run.
    #[serde(default)]
    pub goodput_bps: Option<Interval>,
    /// What the publication calls it.
    #[serde(default)]
    pub published_label: Option<String>,
    /// Published goodput.
    #[serde(default)]
    pub published_goodput_bps: Option<u64>,
    /// Measured median over published goodput.
    #[serde(default)]
    pub measured_over_published: Option<f64>,
    /// RTT before any load.
    #[serde(default)]
    pub rtt_idle_ms: Option<Interval>,
    /// RTT of the probe under load.
    #[serde(default)]
    pub rtt_under_load_ms: Option<PercentileIntervals>,
    /// Published RTT under load.
    #[serde(default)]
    pub published_rtt_under_load_ms: Option<f64>,
    /// Queueing delay at the bottleneck.
    #[serde(default)]
    pub queueing_delay_ms: Option<DelayIntervals>,
    /// Published queueing delay.
    #[serde(default)]
    pub published_queueing_delay_ms: Option<f64>,
    /// Segments sent again.
    #[serde(default)]
    pub retransmitted_segments: Option<Interval>,
    /// Published retransmitted segments.
    #[serde(default)]
    pub published_retransmitted_segments: Option<u64>,
    /// Time to finish the transfers.
    #[serde(default)]
    pub completion_s: Option<Interval>,
    /// Published time to finish a transfer.
    #[serde(default)]
    pub published_completion_s: Option<f64>,
    /// First Contentful Paint.
    #[serde(default)]
    pub first_contentful_paint_ms: Option<Interval>,
    /// Published First Contentful Paint.
    #[serde(default)]
    pub published_first_contentful_paint_ms: Option<f64>,
    /// Load event of the page.
    #[serde(default)]
    pub page_load_ms: Option<Interval>,
    /// Dropped packets by cause.
    #[serde(default)]
    pub drops: Option<DropIntervals>,
    /// Packets marked CE.
    #[serde(default)]
    pub marks: Option<Interval>,
    /// Part of the busy time that flows were stalled by the receiver's window, from 0 to 1.
    #[serde(default)]
    pub receive_window_limited: Option<Interval>,
    /// Part of the busy time that flows were stalled by the send buffer, from 0 to 1.
    #[serde(default)]
    pub send_buffer_limited: Option<Interval>,
    /// Shares of the goodput, where several bulk flows ran. By label; by flow where all have the same label.
    #[serde(default)]
    pub shares: Vec<Share>,
    /// Jain's fairness index of the bulk flows' goodput (1: equal; 1/n: one has all), where several ran.
    #[serde(default)]
    pub jain_index: Option<Interval>,
}
