//! Arguments that several `lab` commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lab::run::Carrier;
use units::{Bytes, Duration, Probability};

/// What to change about a scenario.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "What to vary")]
pub struct Vary {
    /// Congestion controls to compare, e.g. `cubic,bbr`: profiles that use them, or the largest stack with each
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub cc: Option<Vec<String>>,
    /// Only these profiles of the scenario
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub profile: Option<Vec<String>>,
    /// Loss rates in the data direction, e.g. `0%,0.5%,1.5%`
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',', value_name = "P,…", value_parser = quantity::<Probability>)]
    pub loss: Option<Vec<Probability>>,
    /// Round-trip times, e.g. `10ms,80ms`
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',', value_name = "T,…", value_parser = quantity::<Duration>)]
    pub rtt: Option<Vec<Duration>>,
    /// Queue sizes at the bottleneck, e.g. `0.5bdp,1bdp`, `100ms`, `250kB`, `165packets`
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',', value_name = "SIZE,…")]
    pub queue: Option<Vec<String>>,
    /// Largest socket buffers of both ends instead of the scenario's, e.g. `256MiB`
    #[arg(long, value_name = "SIZE", value_parser = buffers)]
    pub buffers: Option<Bytes>,
    /// Runs per cell
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// First seed of the path's randomness; repeat k uses seed + k
    #[arg(long, allow_hyphen_values = true, value_name = "S")]
    pub seed: Option<u64>,
    /// Length of one run, warm-up included
    #[arg(long, allow_hyphen_values = true, value_name = "T", value_parser = quantity::<Duration>)]
    pub duration: Option<Duration>,
    /// Left out of the figures at a run's start
    #[arg(long, allow_hyphen_values = true, value_name = "T", value_parser = quantity::<Duration>)]
    pub warmup: Option<Duration>,
}

/// Where results go.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Output")]
pub struct Outputs {
    /// Write a report for the browser: one file, nothing fetched from elsewhere
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write everything as JSON (`-` is standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Capture the headers of every packet, dropped ones with the reason, as pcapng; several runs get a number in the name
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
}

/// What carries the packets.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmulatorKind {
    /// Our own path model in real time, every packet accounted for
    #[default]
    Model,
    /// The kernel's netem, where it has one
    Netem,
}

impl EmulatorKind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Netem => "netem",
        }
    }
}

impl From<EmulatorKind> for Carrier {
    fn from(kind: EmulatorKind) -> Self {
        match kind {
            EmulatorKind::Model => Self::Model,
            EmulatorKind::Netem => Self::Netem,
        }
    }
}

/// A socket buffer size that `tcp_rmem` and `tcp_wmem` take: at least their own initial sizes, and a positive `int`.
fn buffers(text: &str) -> Result<Bytes, String> {
    let size: Bytes = quantity(text)?;
    let range = 131_072..=i32::MAX as u64;
    if range.contains(&size.as_u64()) { Ok(size) } else { Err("must be 128KiB to just under 2GiB".to_owned()) }
}

/// Reads a quantity; the error says what is wrong and what to write instead.
pub fn quantity<T>(text: &str) -> Result<T, String>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}
