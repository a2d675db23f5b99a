//! A path from a command line.

use path::RateModel;
use units::{Bytes, Duration, Probability};

use crate::error::ScenarioError;
use crate::read::{common_sysctls, loss_model};
use crate::{FlowSpec, PathSpec, Profile, QueueSpec, RunSpec, Scenario};

/// A path without a scenario file: one bulk flow for each congestion control, with buffers that do not limit it.
#[derive(Debug, Clone, PartialEq)]
pub struct AdHoc {
    /// The bottleneck.
    pub rate: RateModel,
    /// Round-trip time.
    pub rtt: Duration,
    /// Average loss in the data direction.
    pub loss: Probability,
    /// Mean loss burst in thousandths of a packet; `None`: independent loss.
    pub mean_burst_milli: Option<u32>,
    /// The bottleneck's queue.
    pub queue: QueueSpec,
    /// IP packet size limit of both ends.
    pub mtu: u16,
    /// Link-layer bytes of every packet.
    pub overhead: Bytes,
    /// Random extra delay that keeps the order of packets.
    pub jitter: Duration,
    /// Rate, loss, queue and jitter in both directions, instead of an acknowledgement direction without limits: for programs
    /// that send both ways.
    pub symmetric: bool,
    /// One variant each.
    pub congestion_controls: Vec<String>,
    /// How long and how often.
    pub run: RunSpec,
}

impl AdHoc {
    /// A path of `rate` and `rtt`, everything else as in a scenario file that does not say: no loss, a queue of one BDP (1000
    /// packets without a rate), 1500-byte packets, cubic and bbr, one run of 15 s each with 3 s of warm-up.
    pub fn new(rate: RateModel, rtt: Duration) -> Self {
        let plain = PathSpec::plain(rate, rtt);
        Self {
            queue: plain.queues[0],
            rate: plain.forward.rate,
            rtt,
            loss: Probability::ZERO,
            mean_burst_milli: None,
            mtu: plain.mtu,
            overhead: Bytes::ZERO,
            jitter: Duration::ZERO,
            symmetric: false,
            congestion_controls: vec!["cubic".to_owned(), "bbr".to_owned()],
            run: RunSpec::default(),
        }
    }
}

impl Scenario {
    /// A scenario named `ad-hoc` from the parts of a command line.
    ///
    /// # Errors
    /// What [`Scenario::check`] refuses.
    pub fn ad_hoc(parts: AdHoc) -> Result<Self, ScenarioError> {
        let title = title(&parts);
        let mut path = PathSpec::plain(parts.rate, parts.rtt);
        path.losses = vec![parts.loss];
        path.mean_burst_milli = parts.mean_burst_milli;
        path.queues = vec![parts.queue];
        path.mtu = parts.mtu;
        path.forward.overhead = parts.overhead;
        path.forward.jitter = parts.jitter;
        path.back.overhead = parts.overhead;
        if parts.symmetric {
            path.back = path.forward.clone();
            path.back.loss = loss_model(parts.loss, parts.mean_burst_milli);
            path.back_queue = parts.queue;
        }
        let scenario = Self {
            name: "ad-hoc".to_owned(),
            title,
            about: "A path given on the command line.".to_owned(),
            path,
            flows: vec![FlowSpec::bulk()],
            profiles: parts.congestion_controls.iter().map(|control| Profile::with_large_buffers(control)).collect(),
            sysctls: common_sysctls(),
            run: parts.run,
            published: Vec::new(),
        };
        scenario.check()?;
        Ok(scenario)
    }
}

fn title(parts: &AdHoc) -> String {
    let rate = match &parts.rate {
        RateModel::Unlimited => "No bottleneck".to_owned(),
        RateModel::Constant(rate) => rate.to_string(),
        RateModel::Steps(steps) => format!("{} rates in turn", steps.len()),
        RateModel::Trace(_) => "Rate by a trace".to_owned(),
    };
    format!("{rate}, {} round trip, {} loss", parts.rtt, parts.loss)
}
