//! From what a host shows and what it is to do, to the smallest set of changes that the difference justifies.
//!
//! [`plan`] is a pure function: [`Facts`] and a [`Target`] in, a [`Plan`] out, the same for the same input. A plan carries for each
//! change the arithmetic that asks for it, and lists what was looked at and left alone. Applying it is another's job.
//!
//! Two rules hold for every change, and tests hold them: a size that is there is never lowered, and the plan of a host that
//! has followed its plan is empty.

pub(crate) mod accept;
pub(crate) mod control;
mod draft;
mod export;
mod facts;
pub(crate) mod forward;
pub(crate) mod memory;
mod queue;
mod unknown;
pub(crate) mod window;

use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate};

pub use export::Format;
pub use facts::{Facts, Interface, Presence, Softnet};
pub use unknown::not_known;
pub use window::window_share;

use crate::kernel::KernelVersion;
use draft::Draft;

/// The value of `schema` in every plan this version makes.
pub const PLAN_SCHEMA: &str = "linerate.plan/1";

/// What a host is for. Decides which directions, queues and tables matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sends pages and files to many clients.
    Web,
    /// Takes connections and makes others for them.
    Proxy,
    /// Moves large files both ways.
    Bulk,
    /// Sends media in chunks.
    Video,
    /// Answers queries and copies itself to others.
    Database,
    /// Forwards other hosts' packets.
    Router,
    /// Runs pods: forwards for them, and is one end itself.
    KubernetesNode,
    /// Somebody sits in front of it.
    Workstation,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Web,
        Self::Proxy,
        Self::Bulk,
        Self::Video,
        Self::Database,
        Self::Router,
        Self::KubernetesNode,
        Self::Workstation,
    ];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Proxy => "proxy",
            Self::Bulk => "bulk",
            Self::Video => "video",
            Self::Database => "database",
            Self::Router => "router",
            Self::KubernetesNode => "kubernetes-node",
            Self::Workstation => "workstation",
        }
    }

    /// Whether large amounts come in over TCP that ends here.
    fn receives(self) -> bool {
        !matches!(self, Self::Web | Self::Video | Self::Router)
    }

    /// Whether large amounts go out over TCP that begins here.
    fn sends(self) -> bool {
        self != Self::Router
    }

    /// Whether it serves many clients over wide areas.
    fn serves(self) -> bool {
        matches!(self, Self::Web | Self::Proxy | Self::Video)
    }

    /// Whether it passes on packets of others.
    fn forwards(self) -> bool {
        matches!(self, Self::Router | Self::KubernetesNode)
    }
}

/// What the host is to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Bits per second that one connection should reach.
    #[serde(rename = "bandwidth_bps", with = "as_bps")]
    pub bandwidth: Rate,
    /// The path's round-trip time without a queue.
    #[serde(rename = "rtt_ns", with = "as_nanos")]
    pub rtt: Duration,
    /// What the host is for.
    pub role: Role,
    /// How many connections there are at the same time; for a router, those it forwards.
    pub connections: Option<u64>,
}

/// The changes for one host and one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// `linerate.plan/1`.
    pub schema: String,
    /// The host it was made for.
    pub host: Host,
    /// What for.
    pub target: Target,
    /// What to change, in the order to do it.
    pub changes: Vec<Change>,
    /// What was looked at and left alone.
    pub kept: Vec<Kept>,
    /// What else to know.
    pub notes: Vec<String>,
}

/// Which host a plan is for: applying it elsewhere would rest on other facts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// A fingerprint of its machine-id; empty where it has none.
    #[serde(default)]
    pub id: String,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// Its memory.
    pub memory_bytes: u64,
}

/// What a change acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A sysctl key.
    Sysctl,
    /// The queue discipline of a device that is up: `key` is `DEVICE root` or `DEVICE leaves`.
    Qdisc,
    /// The size of a network card's ring: `key` is `DEVICE rx` or `DEVICE tx`.
    Ring,
}

/// Where a change has to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In each network namespace for itself: a container can do it.
    Namespace,
    /// On the host, for all of it.
    Host,
}

/// One change, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What it acts on.
    pub kind: ChangeKind,
    /// The key, with dots.
    pub key: String,
    /// What is there now, whitespace normalised.
    pub from: String,
    /// What to set.
    pub to: String,
    /// Where it holds.
    pub place: Place,
    /// The arithmetic that asks for it.
    pub why: String,
    /// What should be better afterwards.
    pub effect: String,
    /// What it can cost.
    pub risk: String,
    /// Where the facts come from.
    pub source: String,
}

/// Something that was looked at and left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The key, with dots.
    pub key: String,
    /// What is there.
    pub value: String,
    /// Why that is right, or can't be bettered here.
    pub why: String,
}

/// Why text is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The facts lack something no plan can do without.
    #[error("the facts do not say {0}")]
    Missing(&'static str),
    /// The kernel's release can't be read.
    #[error("the facts' kernel: {0}")]
    Kernel(#[from] crate::kernel::BadVersion),
    /// A path without bandwidth or without delay.
    #[error("the {0} is zero: a plan needs a path")]
    NoPath(&'static str),
}

/// Makes the plan.
///
/// # Errors
/// [`PlanError`], where the facts do not say which kernel and how much memory, or the target is no path.
pub fn plan(facts: &Facts, target: &Target) -> Result<Plan, PlanError> {
    let kernel: KernelVersion = facts.kernel.parse()?;
    if facts.memory_bytes == 0 {
        return Err(PlanError::Missing("how much memory there is"));
    }
    if target.bandwidth == Rate::ZERO {
        return Err(PlanError::NoPath("bandwidth"));
    }
    if target.rtt == Duration::ZERO {
        return Err(PlanError::NoPath("round-trip time"));
    }
    let mut draft = Draft::new(facts, target, kernel);
    // Memory first: it bounds the buffers.
    memory::plan(&mut draft);
    window::plan(&mut draft);
    control::plan(&mut draft);
    queue::plan(&mut draft);
    accept::plan(&mut draft);
    forward::plan(&mut draft);
    let host = Host {
        name: facts.hostname.clone(),
        id: facts.machine.clone(),
        kernel: facts.kernel.clone(),
        memory_bytes: facts.memory_bytes,
    };
    Ok(draft.finish(host))
}

/// The bandwidth-delay product of a target. Saturates.
pub fn bdp(target: &Target) -> Bytes {
    target.bandwidth.bdp(target.rtt)
}

mod as_bps {
    use serde::{Deserialize, Deserializer, Serializer};
    use units::Rate;

    pub fn serialize<S: Serializer>(rate: &Rate, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(rate.as_bps())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        u64::deserialize(from).map(Rate::from_bps)
    }
}

mod as_nanos {
    use serde::{Deserialize, Deserializer, Serializer};
    use units::Duration;

    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_nanos())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_nanos)
    }
}
