//! Where and what: the kernel, the path, the variants and the published figures.

use serde::{Deserialize, Serialize};

/// The machine and kernel under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Kernel {
    /// As `uname -r` prints it.
    pub release: String,
    /// As `uname -m` prints it.
    pub architecture: String,
    /// CPUs online.
    pub cpus: u32,
    /// Main memory.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Whether `/sys/kernel/btf/vmlinux` exists.
    pub btf: bool,
    /// `net.ipv4.tcp_available_congestion_control`.
    #[serde(default)]
    pub available_congestion_controls: Vec<String>,
}

/// A sysctl, or another name with a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Setting {
    /// Name.
    pub name: String,
    /// Value, as written.
    pub value: String,
}

impl Setting {
    /// From a pair.
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: value.to_owned() }
    }
}

/// One scenario as it was run, overrides of the command line included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScenarioReport {
    /// Its name; `results` and `summary` refer to it.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it shows and where its figures come from.
    #[serde(default)]
    pub about: String,
    /// The emulated path.
    pub path: PathReport,
    /// The variants, in the order of tables.
    pub profiles: Vec<ProfileReport>,
    /// Sysctls of both ends in every variant, before the profile's own.
    #[serde(default)]
    pub sysctls: Vec<Setting>,
    /// Length of one run, warm-up included.
    pub duration_s: f64,
    /// Left out of the figures at the start of each run.
    pub warmup_s: f64,
    /// Runs per cell that were asked for.
    pub repeats: u32,
    /// Seed of repeat 0; repeat k uses `seed + k` in every cell.
    pub seed: u64,
    /// Figures that somebody published.
    #[serde(default)]
    pub published: Vec<PublishedFigure>,
}

impl ScenarioReport {
    /// Cells times repeats.
    pub fn planned_runs(&self) -> u64 {
        let count = |length: usize| length.max(1) as u64;
        count(self.path.rtt_ms.len())
            * count(self.path.loss.len())
            * count(self.path.queue.len())
            * count(self.profiles.len())
            * u64::from(self.repeats)
    }
}

/// The emulated path: what is fixed, and the lists that were swept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathReport {
    /// The bottleneck's rate in words: `1 Gbit/s`, `100 Mbit/s, 10 Mbit/s from 10 s, 100 Mbit/s from 20 s`.
    pub rate: String,
    /// The bottleneck's rate where it is constant.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Round-trip times, one or several.
    pub rtt_ms: Vec<f64>,
    /// Loss in the data direction as a fraction from 0 to 1, one or several.
    pub loss: Vec<f64>,
    /// How losses come: `independent`, `in bursts of 300 packets on average`.
    #[serde(default)]
    pub loss_model: String,
    /// Queue sizes as the scenario writes them, one or several.
    pub queue: Vec<String>,
    /// `drop-tail`, `CoDel`, `FQ-CoDel`, `RED`.
    #[serde(default)]
    pub discipline: String,
    /// IP packet size limit of both ends.
    pub mtu_bytes: u32,
    /// What emulates it: `tun`, `netem`.
    #[serde(default)]
    pub emulator: String,
    /// What else holds for this path: jitter, reordering, policer, ECN.
    #[serde(default)]
    pub details: Vec<Setting>,
}

/// A variant of the two ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfileReport {
    /// Its name; `results` and `summary` refer to it.
    pub name: String,
    /// The congestion control of flows that name none.
    pub congestion_control: String,
    /// Its sysctls, after the scenario's.
    #[serde(default)]
    pub sysctls: Vec<Setting>,
}

/// Figures that somebody published for a profile, at one loss or at any.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublishedFigure {
    /// The profile it is held against.
    pub profile: String,
    /// What the publication calls it.
    pub label: String,
    /// The loss it was published for as a fraction; `null`: any.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Goodput.
    #[serde(default)]
    pub goodput_bps: Option<u64>,
    /// RTT under load.
    #[serde(default)]
    pub rtt_under_load_ms: Option<f64>,
    /// Queueing delay.
    #[serde(default)]
    pub queueing_delay_ms: Option<f64>,
    /// Time to finish a transfer.
    #[serde(default)]
    pub completion_s: Option<f64>,
    /// Retransmitted segments in one run.
    #[serde(default)]
    pub retransmitted_segments: Option<u64>,
    /// First Contentful Paint.
    #[serde(default)]
    pub first_contentful_paint_ms: Option<f64>,
    /// Why a measurement may disagree, in one sentence.
    #[serde(default)]
    pub note: Option<String>,
}
