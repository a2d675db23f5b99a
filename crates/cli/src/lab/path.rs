//! `linerate lab path`: an ad hoc path.

use path::RateModel;
use scenario::{AdHoc, QueueSpec, Scenario};
use units::{Duration, Probability, Rate};

use super::arguments::{EmulatorKind, Outputs, quantity};
use super::experiment;
use crate::exit::{Exit, Failure};

/// Arguments of `lab path`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Bottleneck bandwidth, e.g. `100mbit`
    #[arg(long, value_parser = quantity::<Rate>)]
    rate: Rate,
    /// Round-trip time, e.g. `80ms`
    #[arg(long, value_parser = quantity::<Duration>)]
    rtt: Duration,
    /// Loss in the data direction, e.g. `0%,1%`
    #[arg(long, value_delimiter = ',', default_value = "0%", value_parser = quantity::<Probability>)]
    loss: Vec<Probability>,
    /// Mean number of packets lost in a row; without it every packet is lost for itself
    #[arg(long, value_name = "PACKETS", value_parser = quantity::<f64>)]
    burst: Option<f64>,
    /// Queue at the bottleneck, e.g. `0.5bdp`, `100ms`, `250kB`, `165packets`
    #[arg(long, value_delimiter = ',', default_value = "1bdp", value_parser = quantity::<QueueSpec>)]
    queue: Vec<QueueSpec>,
    /// Random extra delay that keeps the order of packets
    #[arg(long, default_value = "0", value_parser = quantity::<Duration>)]
    jitter: Duration,
    /// Largest IP packet, in bytes
    #[arg(long, default_value_t = 1500)]
    mtu: u16,
    /// Congestion controls to compare
    #[arg(long, value_delimiter = ',', default_value = "cubic,bbr", value_name = "NAME,…")]
    cc: Vec<String>,
    /// Runs per cell
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// First seed of the path's randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length of one run, warm-up included
    #[arg(long, default_value = "15s", value_parser = quantity::<Duration>)]
    duration: Duration,
    /// Left out of the figures at a run's start
    #[arg(long, default_value = "3s", value_parser = quantity::<Duration>)]
    warmup: Duration,
    #[command(flatten)]
    outputs: Outputs,
    /// What carries the packets
    #[arg(long, value_enum, default_value_t)]
    emulator: EmulatorKind,
}

/// Runs bulk flows over the path.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut parts = AdHoc::new(RateModel::Constant(arguments.rate), arguments.rtt);
    parts.loss = *arguments.loss.first().unwrap_or(&Probability::ZERO);
    parts.queue = *arguments.queue.first().unwrap_or(&parts.queue);
    parts.mean_burst_milli = arguments.burst.map(burst_milli).transpose()?;
    parts.jitter = arguments.jitter;
    parts.mtu = arguments.mtu;
    parts.congestion_controls.clone_from(&arguments.cc);
    parts.run.repeats = arguments.repeat;
    parts.run.seed = arguments.seed;
    parts.run.duration = arguments.duration;
    parts.run.warmup = arguments.warmup;
    let overrides = scenario::Overrides {
        losses: Some(arguments.loss.clone()),
        queues: Some(arguments.queue.clone()),
        ..scenario::Overrides::default()
    };
    let scenario = Scenario::ad_hoc(parts).and_then(|s| s.with_overrides(overrides)).map_err(Failure::usage)?;
    experiment::run(&[scenario], &arguments.outputs, arguments.emulator)
}

fn burst_milli(packets: f64) -> Result<u32, Failure> {
    if !(1.0..=1e6).contains(&packets) {
        return Err(Failure::usage(format_args!("--burst {packets}: a loss burst is 1 to 1000000 packets on average")));
    }
    Ok((packets * 1e3).round() as u32)
}
