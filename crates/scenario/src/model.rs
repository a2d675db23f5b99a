//! A scenario as plain values: what a file says once defaults are filled in and every name and unit is checked.

use path::{LinkConfig, QueueLimit};
use units::{Bytes, Duration, Probability, Rate};

/// One experiment: a path, what runs over it, and what it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The file's name for it: lower case, digits, `-`.
    pub name: String,
    /// One line for `lab list`.
    pub title: String,
    /// What it shows and where its figures come from.
    pub about: String,
    /// The path, swept values still open.
    pub path: PathSpec,
    /// What the ends send.
    pub flows: Vec<FlowSpec>,
    /// Variants of the ends: congestion control and sysctls. At least one.
    pub profiles: Vec<Profile>,
    /// Sysctls of both ends in every variant, before the profile's own.
    pub sysctls: Vec<(String, String)>,
    /// How long and how often.
    pub run: RunSpec,
    /// Figures that somebody published for it.
    pub published: Vec<Published>,
}

/// A path whose loss, queue and RTT may be lists: every combination is a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSpec {
    /// Everything that is not swept, for the direction data flows (`forward`) and the one acknowledgements flow (`back`).
    /// Delay, loss and queue of `forward` are filled in per cell; only a loss by pattern ([`LossModel::Periodic`],
    /// [`LossModel::List`]) stands here already, with its average as the only one of `losses`.
    ///
    /// [`LossModel::Periodic`]: path::LossModel::Periodic
    /// [`LossModel::List`]: path::LossModel::List
    pub forward: LinkConfig,
    /// The direction of acknowledgements. Delay and queue are filled in per cell.
    pub back: LinkConfig,
    /// Round-trip times.
    pub rtts: Vec<Duration>,
    /// Loss in the data direction; average over all packets.
    pub losses: Vec<Probability>,
    /// Mean loss burst in thousandths of a packet; `None`: independent loss.
    pub mean_burst_milli: Option<u32>,
    /// Bottleneck queue, as written.
    pub queues: Vec<QueueSpec>,
    /// Queue of the acknowledgements' direction, as written; without effect where `back` has no rate.
    pub back_queue: QueueSpec,
    /// IP packet size limit of both ends.
    pub mtu: u16,
}

/// A queue's size as people give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueSpec {
    /// In bytes.
    Bytes(Bytes),
    /// In packets.
    Packets(u32),
    /// As the time it takes to drain at the bottleneck's (first or mean) rate.
    Time(Duration),
    /// In thousandths of the bandwidth-delay product.
    BdpMilli(u32),
}

/// Which end sends the bulk of a flow's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowKind {
    /// The sender pushes as fast as it can, until `bytes` or the flow's end.
    Bulk {
        /// How much; `None`: until the flow stops.
        bytes: Option<Bytes>,
    },
    /// The sender asks and waits, again and again: one small request in the data direction, one response back.
    RequestResponse {
        /// Size of the request.
        request: Bytes,
        /// Size of the response.
        response: Bytes,
        /// From one response to the next request.
        pause: Duration,
    },
}

/// One flow, or several alike.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSpec {
    /// Its name in tables.
    pub label: String,
    /// How many.
    pub count: u16,
    /// What it sends.
    pub kind: FlowKind,
    /// Its own congestion control; `None`: the profile's.
    pub congestion_control: Option<String>,
    /// Its own round-trip time; `None`: the path's.
    pub rtt: Option<Duration>,
    /// When it starts, after the experiment's start. With `count`, each further one starts `stagger` later.
    pub start: Duration,
    /// Distance between the starts of several alike.
    pub stagger: Duration,
    /// How long it sends; `None`: to the end.
    pub duration: Option<Duration>,
}

/// A variant of the two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name in tables.
    pub name: String,
    /// The congestion control of flows that name none.
    pub congestion_control: String,
    /// Sysctls of both ends, by name and value.
    pub sysctls: Vec<(String, String)>,
}

/// How long and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSpec {
    /// Length of one run, warm-up included.
    pub duration: Duration,
    /// Left out of the figures at the start.
    pub warmup: Duration,
    /// Runs per cell.
    pub repeats: u32,
    /// First seed; repeat k of every cell uses `seed + k`, so that variants meet the same randomness.
    pub seed: u64,
}

/// A figure somebody published for one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The profile it is held against.
    pub profile: String,
    /// What the publication calls it.
    pub label: String,
    /// The congestion control the publication names, where the profile has another: a profile that
    /// [`Scenario::with_overrides`] makes for this control takes the figure along.
    pub congestion_control: Option<String>,
    /// The cell's loss; `None`: any.
    pub loss: Option<Probability>,
    /// Goodput.
    pub goodput: Option<Rate>,
    /// RTT under load.
    pub rtt_under_load: Option<Duration>,
    /// Queueing delay.
    pub queueing_delay: Option<Duration>,
    /// Time to finish a transfer.
    pub completion: Option<Duration>,
    /// Retransmitted segments in the run.
    pub retransmissions: Option<u64>,
    /// First Contentful Paint.
    pub first_contentful_paint: Option<Duration>,
    /// Why a measurement may disagree, in one sentence.
    pub note: Option<String>,
}

/// One run to make: every swept value fixed.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The variant.
    pub profile: Profile,
    /// Round-trip time of flows that name none.
    pub rtt: Duration,
    /// Average loss in the data direction.
    pub loss: Probability,
    /// Queue as written.
    pub queue: QueueSpec,
    /// Queue as the link takes it.
    pub queue_limit: QueueLimit,
    /// From 0.
    pub repeat: u32,
    /// Seed of every random choice of the path.
    pub seed: u64,
    /// The data direction, complete.
    pub forward: LinkConfig,
    /// The acknowledgement direction, complete.
    pub back: LinkConfig,
}
