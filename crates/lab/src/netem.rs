//! A path by the kernel's own netem, in the shape of [`Session`](crate::session::Session): the same two ends with the same
//! addresses, and routers with netem qdiscs between them instead of the emulator's thread.
//!
//! For those who trust netem more than a new emulator, and for comparing the two. Only what netem does faithfully is taken; the rest is
//! refused by name ([`Unsupported`]). The traps of emulating with netem on one host are avoided by the [topology]: bursts are split
//! before the bottleneck, its limit counts no packet that is merely delayed, and its limit is the queue that was asked for.
//!
//! What remains different from the model: the queue counts packets only; random loss and overflow are one number; there is no
//! measure of how late the kernel was; and a burst of more than `net.core.netdev_max_backlog` (1000) packets at once is cut between the
//! hops, which [`NetemOutcome::device_dropped`] shows and which makes a run invalid.

mod message;
#[expect(unsafe_code, reason = "ethtool's ioctl has no safe wrapper")]
mod offload;
mod options;
mod plan;
mod rtnl;
mod sampler;
mod stats;
mod topology;

pub use options::{Loss, Netem, Serializer};
pub use plan::Unsupported;
pub use sampler::QueueSample;

use host::clock::Clock;
use host::netns::{NetNs, NetNsError};
use host::route::{self, RouteError};
use host::sysctl::SysctlError;
use units::{Bytes, Duration};

use self::plan::DirectionPlan;
use self::rtnl::Rtnl;
use self::sampler::Sampler;
use self::topology::{PLACES, Tap};
use crate::session::{DataFrom, SessionError, Setup, check_memory};
use crate::world::{CLIENT, DEVICE, LeftAlone, SERVER, WorldError, set_sysctls, transmit_drops};

/// Why a path by netem could not start, or its account not be read.
#[derive(Debug, thiserror::Error)]
pub enum NetemError {
    /// The kernel has no netem at hand.
    #[error(
        "this kernel has no netem loaded: `sudo modprobe sch_netem` loads it where the distribution ships it (Fedora: package \
         kernel-modules-extra); else run with --emulator model"
    )]
    NoNetem,
    /// The kernel has no veth at hand.
    #[error("this kernel has no veth devices loaded: `sudo modprobe veth` loads them; else run with --emulator model")]
    NoVeth,
    /// The path or the run asks for more than netem does.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The path is impossible.
    #[error(transparent)]
    Config(#[from] path::ConfigError),
    /// No memory for the path's packets.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A sysctl of the scenario was refused.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A sysctl of a router was refused.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// The default congestion control of the ends' route.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// No namespace.
    #[error(transparent)]
    NetNs(#[from] NetNsError),
    /// The kernel does not split bursts for a device.
    #[error("this kernel does not split segments before a device (IFLA_GSO_MAX_SEGS): run with --emulator model")]
    NoSplitting,
    /// The kernel took only a part of netem's settings: what was asked, and what it shows.
    #[error("netem was told {:?}, but the kernel shows {:?}: run with --emulator model", .0[0], .0[1])]
    Differs(Box<[Netem; 2]>),
    /// A veth pair did not get a carrier.
    #[error("a device of the path did not come up")]
    NoCarrier,
    /// A qdisc's message without its account or its options.
    #[error("the kernel gives no statistics of a netem qdisc")]
    NoStatistics,
    /// Another step failed.
    #[error("netem path: {step}: {source}")]
    Step {
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

impl NetemError {
    fn netlink(step: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Step { step, source }
    }
}

/// Whether this kernel has netem at hand, tried on `lo` of a namespace of its own.
///
/// # Errors
/// [`NetemError::NoNetem`] where it has not; another where it can't be tried.
pub fn probe() -> Result<(), NetemError> {
    let nothing = Netem { latency: Duration::ZERO, limit: 1, loss: Loss::None, rate: None, seed: None };
    NetNs::create()?.run(|| {
        let loopback = nix::net::if_::if_nametoindex("lo");
        let index = loopback.map_err(|error| NetemError::netlink("find lo")(error.into()))?;
        topology::add(&mut Rtnl::open().map_err(NetemError::netlink("open rtnetlink"))?, index, &nothing)
    })?
}

/// What one direction counted.
#[derive(Debug, Clone, Default)]
pub struct NetemDirection {
    /// Packets the bottleneck dropped. netem does not tell random loss from a full queue.
    pub dropped: u64,
    /// Packets that left the bottleneck.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: Bytes,
    /// Packets still in its queue at the end.
    pub left_packets: u64,
    /// Most packets seen in its queue, by a look every [`QueueSample::PERIOD`].
    pub backlog_max_packets: u32,
    /// Most IP bytes seen in its queue, likewise.
    pub backlog_max_bytes: Bytes,
    /// Those looks.
    pub samples: Vec<QueueSample>,
    /// Packets that left the delay line, towards the receiver.
    pub delivered_packets: u64,
    /// Packets still in the delay line at the end.
    pub on_their_way_packets: u64,
    /// Packets that the delay line dropped. Anything but zero makes a run invalid.
    pub delay_line_dropped: u64,
    /// Whether the loss follows the seed: Linux 6.6 and later.
    pub seeded: bool,
}

/// What the path counted.
#[derive(Debug, Clone)]
pub struct NetemOutcome {
    /// From the client to the server.
    pub up: NetemDirection,
    /// From the server to the client.
    pub down: NetemDirection,
    /// Packets lost between the hops, where the kernel's own backlog was full. Anything but zero makes a run invalid.
    pub device_dropped: u64,
    /// What differs from the path as it was asked for, in sentences.
    pub notes: Vec<String>,
}

/// A path by netem that is up, for as long as the value lives.
pub struct NetemSession {
    /// Where data comes from, unless a flow says otherwise.
    pub client: NetNs,
    /// The far end.
    pub server: NetNs,
    /// Sysctls of the scenario that belong to the whole host and were left alone.
    pub left_alone: Vec<LeftAlone>,
    /// Every sysctl that was set, as the kernel shows it.
    pub applied: Vec<(String, String)>,
    /// Time since the session's start.
    pub clock: Clock,
    /// What differs from the path as it was asked for, in sentences.
    pub notes: Vec<String>,
    places: [NetNs; PLACES],
    delay_lines: [Tap; 2],
    seeded: [bool; 2],
    sampler: Sampler,
}

impl NetemSession {
    /// Makes both ends and the routers between them.
    ///
    /// # Errors
    /// [`NetemError`]; nothing is left behind.
    pub fn start(setup: Setup<'_>) -> Result<Self, NetemError> {
        let [up, down] = plans(&setup)?;
        check_memory(&setup)?;
        probe()?;
        let new = NetNs::create;
        let places: [NetNs; PLACES] = [new()?, new()?, new()?, new()?, new()?];
        let [client, routers @ .., server] = &places;
        let (left_alone, applied) = client.run(|| set_sysctls(setup.sysctls))??;
        server.run(|| set_sysctls(setup.sysctls))??;
        for router in routers {
            router.run(topology::prepare_router)??;
        }
        let [up_taps, down_taps] = topology::build(&places, setup.mtu, &up, &down)?;
        let clock = Clock::start();
        let sampler = Sampler::start([up_taps.bottleneck, down_taps.bottleneck], clock)
            .map_err(NetemError::netlink("start a thread"))?;
        let mut notes = up.notes;
        notes.extend(down.notes.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
        Ok(Self {
            client: client.clone(),
            server: server.clone(),
            left_alone,
            applied,
            clock,
            notes,
            delay_lines: [up_taps.delay_line, down_taps.delay_line],
            seeded: [up_taps.seeded, down_taps.seeded],
            places,
            sampler,
        })
    }

    /// Makes `control` what new connections of both ends use unless they choose themselves.
    ///
    /// # Errors
    /// Where the kernel does not have the control.
    pub fn set_default_control(&self, control: &str) -> Result<(), NetemError> {
        for (end, address) in [(&self.client, CLIENT), (&self.server, SERVER)] {
            end.run(|| route::set_congestion_control(DEVICE, topology::NETWORK, topology::PREFIX, address, control))??;
        }
        Ok(())
    }

    /// Packets lost between the hops so far. Anything but zero makes a run invalid.
    ///
    /// # Errors
    /// Where the counters can't be read.
    pub fn device_drops(&self) -> Result<u64, NetemError> {
        let mut drops = 0;
        for place in &self.places {
            let text = place.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
            let text = text.map_err(NetemError::netlink("read /proc/net/dev"))?;
            drops += [DEVICE, topology::LEFT, topology::RIGHT]
                .map(|device| transmit_drops(&text, device))
                .iter()
                .sum::<u64>();
        }
        Ok(drops)
    }

    /// Takes the path's account; the two ends live on with the caller's clones.
    ///
    /// # Errors
    /// Where the kernel does not give it.
    pub fn finish(mut self) -> Result<NetemOutcome, NetemError> {
        let device_dropped = self.device_drops()?;
        let mut directions = self.sampler.finish()?;
        for ((direction, line), seeded) in directions.iter_mut().zip(&mut self.delay_lines).zip(self.seeded) {
            let stats = line.stats()?;
            direction.delivered_packets = stats.sent_packets;
            direction.on_their_way_packets = u64::from(stats.backlog_packets);
            direction.delay_line_dropped = stats.dropped;
            direction.seeded = seeded;
        }
        let [up, down] = directions;
        Ok(NetemOutcome { up, down, device_dropped, notes: self.notes })
    }
}

/// Both directions' settings, up first.
fn plans(setup: &Setup<'_>) -> Result<[DirectionPlan; 2], NetemError> {
    if setup.capture.is_some() {
        return Err(Unsupported::Capture.into());
    }
    if setup.log_packets {
        return Err(Unsupported::PacketLog.into());
    }
    let (up, down) = match setup.data_from {
        DataFrom::Client => (setup.forward, setup.back),
        DataFrom::Server => (setup.back, setup.forward),
    };
    let seed = setup.seed.wrapping_mul(2);
    up.check()?;
    down.check()?;
    Ok([plan::plan(up, setup.mtu, seed)?, plan::plan(down, setup.mtu, seed.wrapping_add(1))?])
}
