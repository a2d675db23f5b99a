//! The document: plain values, with the unit in the name. A figure that was not measured is `None` and `null`, never a zero.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{Interval, Percentiles};
use crate::series::Series;

/// The value of `schema` in every file this version writes.
pub const BENCH_SCHEMA: &str = "linerate.bench/1";

/// Everything one `bench` found out, and everything needed to repeat it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BenchReport {
    /// `linerate.bench/1`.
    #[cfg_attr(test, schemars(extend("const" = BENCH_SCHEMA)))]
    pub schema: String,
    /// Version of linerate.
    pub linerate_version: String,
    /// This end's kernel, as `uname -r` prints it.
    pub kernel: String,
    /// The command as it was given, one word each.
    pub command_line: Vec<String>,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// Whether it ended before every planned run was made and complete.
    pub partial: bool,
    /// Why it ended early.
    pub partial_reason: Option<String>,
    /// What concerns the whole report.
    pub warnings: Vec<String>,
    /// The other end.
    pub server: ServerReport,
    /// What was asked for.
    pub settings: Settings,
    /// Every run made, in the order they were made, invalid ones included.
    pub results: Vec<BenchRun>,
    /// One line per congestion control and direction. Made from `results`.
    pub summary: Vec<BenchSummary>,
}

/// The other end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerReport {
    /// As the user named it.
    pub name: String,
    /// The address that answered, with its port.
    pub address: String,
    /// Version of its linerate; `null`: it is an iperf3.
    pub linerate_version: Option<String>,
    /// Its kernel, where it is a linerate.
    pub kernel: Option<String>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Settings {
    /// `forward` (this end sends), `reverse`, `both`.
    pub direction: String,
    /// Streams in each direction.
    pub streams: u32,
    /// Length of a run, warm-up not counted; `null`: by bytes.
    pub duration_s: Option<f64>,
    /// Bytes of a run in each direction; `null`: by time.
    pub bytes: Option<u64>,
    /// Left out of the figures at the start of each run.
    pub omit_s: f64,
    /// Limit of each stream.
    pub rate_bps: Option<u64>,
    /// Compared, in the order given; empty: each end's default.
    pub congestion_controls: Vec<String>,
    /// Runs per congestion control.
    pub repeats: u32,
    /// Of the order of runs, and of the intervals.
    pub seed: u64,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BenchRun {
    /// As asked for; `null`: each end's default.
    pub congestion_control: Option<String>,
    /// From 0, for each congestion control. Runs of one repeat are neighbours in time.
    pub repeat: u32,
    /// From the start of the report to the start of this run.
    pub started_after_s: f64,
    /// How long it counted, warm-up left out.
    pub duration_s: f64,
    /// Whether the figures may be believed. Invalid runs are shown, and left out of medians.
    pub valid: bool,
    /// Why not.
    pub invalid_reason: Option<String>,
    /// One or two.
    pub directions: Vec<DirectionReport>,
    /// RTT before the load.
    pub rtt_idle_ms: Option<Percentiles>,
    /// RTT of a separate flow under load.
    pub rtt_under_load_ms: Option<Percentiles>,
    /// From handing a byte to the loaded flow until the other end's application has read it, and told so.
    pub latency_in_flow_ms: Option<Percentiles>,
    /// Working latency, draft-ietf-ippm-responsiveness.
    pub responsiveness: Option<ResponsivenessReport>,
    /// Probes without an answer.
    pub probes_lost: Option<u64>,
    /// Processor time.
    pub cpu: CpuReport,
    /// RTT of the separate flow over time.
    pub rtt_series_ms: Series,
    /// The same run as iperf3 would write it with `-J`.
    #[cfg_attr(test, schemars(with = "serde_json::Map<String, Value>"))]
    pub iperf3: Value,
}

/// Round trips per minute under load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResponsivenessReport {
    /// The figure: mean of the two below.
    pub rpm: f64,
    /// On connections of their own.
    pub foreign_rpm: f64,
    /// Inside the loaded flow.
    pub loaded_rpm: f64,
}

/// Processor time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuReport {
    /// Of this process while it counted.
    pub client_s: f64,
    /// Of the server while it counted.
    pub server_s: Option<f64>,
    /// Seconds per 10^9 bytes of payload, both directions together.
    pub client_s_per_gb: Option<f64>,
    /// The same of the server.
    pub server_s_per_gb: Option<f64>,
}

/// One direction of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DirectionReport {
    /// `forward` or `reverse`.
    pub direction: String,
    /// What the sockets that sent ran; `null`: not known.
    pub congestion_control: Option<String>,
    /// The same with its version by probe.
    pub congestion_control_version: Option<String>,
    /// Application bytes at the receivers, per second, warm-up left out.
    pub goodput_bps: Option<u64>,
    /// `receiver`, or `acknowledged` where the receiver did not come to tell: what the sender's kernel saw acknowledged.
    pub goodput_from: String,
    /// Payload received, warm-up left out.
    pub bytes: Option<u64>,
    /// Segments sent again, warm-up left out.
    pub retransmitted_segments: Option<u64>,
    /// Their share of all payload sent, from 0 to 1.
    pub retransmitted_share: Option<f64>,
    /// What held the senders back; `null` where the sender is an iperf3 server.
    pub limited_by: Option<LimitedBy>,
    /// What the samples say about the path; `null` as above.
    pub path: Option<PathEstimate>,
    /// Goodput of all streams over time: at the receiver where it told, else acknowledged.
    pub goodput_series_bps: Series,
    /// Smoothed RTT of the first sending socket over time.
    pub srtt_series_ms: Series,
    /// Congestion window of the first sending socket over time.
    pub cwnd_series_segments: Series,
    /// Segments sent again in each interval, all streams.
    pub retransmitted_series_segments: Series,
    /// Each stream.
    pub streams: Vec<StreamReport>,
}

/// Shares of the time in which senders had data outstanding; together 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LimitedBy {
    /// The receiver's window.
    pub receive_window: f64,
    /// The send buffer.
    pub send_buffer: f64,
    /// The rest: congestion window, pacing, or the sender itself.
    pub congestion_window: f64,
}

/// What the samples of the senders say about the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathEstimate {
    /// Bottleneck bandwidth.
    pub bottleneck_bps: Option<u64>,
    /// Whether the bottleneck may be wider than that: nothing showed that the flows filled it.
    pub bottleneck_at_least: bool,
    /// Minimum round-trip time.
    pub min_rtt_ms: Option<f64>,
    /// Their product.
    pub bdp_bytes: Option<u64>,
    /// Queueing delay that the flows caused: 95th percentile of smoothed RTT less the minimum.
    pub queueing_delay_ms: Option<f64>,
    /// `none`, `random`, `bursty`, `policed`, `queue-overflow`, `unclear`.
    pub loss_kind: String,
    /// Segments lost per segment sent.
    pub loss: Option<f64>,
    /// Why, in one sentence.
    pub because: String,
    /// What that was told by.
    pub evidence: LossEvidence,
}

/// The figures that the kind of loss is told by; each `null` where there was too little to have it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LossEvidence {
    /// Samples in which losses showed.
    pub loss_events: u64,
    /// Whether RTTs rose by more than noise.
    pub queue_seen: bool,
    /// How much higher RTTs are just before losses than at other times, from -1 to 1.
    pub rtt_before_loss: Option<f64>,
    /// Segments lost for each segment more that was sent in a window.
    pub lost_per_excess: Option<f64>,
    /// Share of the losses that an empty bucket of tokens explains.
    pub empty_bucket: Option<f64>,
    /// Variance over mean of the losses in a window.
    pub dispersion: Option<f64>,
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StreamReport {
    /// Its number in iperf3's protocol.
    pub id: i64,
    /// As above.
    pub goodput_bps: Option<u64>,
    /// Segments sent again.
    pub retransmitted_segments: Option<u64>,
    /// What its socket ran.
    pub congestion_control: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

/// One congestion control in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BenchSummary {
    /// As asked for; `null`: each end's default.
    pub congestion_control: Option<String>,
    /// `forward` or `reverse`.
    pub direction: String,
    /// Valid runs.
    pub repeats: u32,
    /// Runs that are not.
    pub invalid: u32,
    /// Goodput.
    pub goodput_bps: Option<Interval>,
    /// Share of payload sent again.
    pub retransmitted_share: Option<Interval>,
    /// Median RTT under load.
    pub rtt_under_load_ms: Option<Interval>,
    /// 95th percentile of RTT under load.
    pub rtt_under_load_p95_ms: Option<Interval>,
    /// Responsiveness.
    pub rpm: Option<Interval>,
    /// Processor time of both ends per 10^9 bytes.
    pub cpu_s_per_gb: Option<Interval>,
}

impl BenchReport {
    /// A report without runs. `started_at` is RFC 3339: this crate reads no clock.
    pub fn new(
        linerate_version: &str,
        kernel: &str,
        command_line: Vec<String>,
        started_at: &str,
        settings: Settings,
    ) -> Self {
        Self {
            schema: BENCH_SCHEMA.to_owned(),
            linerate_version: linerate_version.to_owned(),
            kernel: kernel.to_owned(),
            command_line,
            started_at: started_at.to_owned(),
            partial: false,
            partial_reason: None,
            warnings: Vec::new(),
            server: ServerReport::default(),
            settings,
            results: Vec::new(),
            summary: Vec::new(),
        }
    }

    /// As JSON text that ends in a line feed.
    pub fn to_json(&self) -> String {
        crate::json::lines(self)
    }

    /// Reads one back.
    ///
    /// # Errors
    /// A sentence: not JSON, another schema, a key that is missing.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        match value.get("schema").and_then(Value::as_str) {
            Some(BENCH_SCHEMA) => {}
            Some(other) => return Err(format!("its schema is `{other}`, and {BENCH_SCHEMA} is needed")),
            None => return Err("it has no `schema`: is it a file of `linerate bench --json`?".to_owned()),
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}

impl BenchRun {
    /// The direction of that name.
    pub fn direction(&self, name: &str) -> Option<&DirectionReport> {
        self.directions.iter().find(|direction| direction.direction == name)
    }
}
