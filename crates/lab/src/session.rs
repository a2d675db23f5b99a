//! A path that is up: both ends and the emulator between them, for as long as the value lives.

use host::clock::Clock;
use path::{FlowId, LinkConfig, QueueLimit, RateModel};
use units::{Bytes, Duration, Rate};

use crate::capture::Capture;
use crate::emulator::{Emulator, EmulatorError, EmulatorOutcome, EmulatorPlan};
use crate::frame::Classifier;
use crate::world::{World, WorldError, memory_available};

/// Server port of the first flow; the k-th flow (from 0) has this plus k.
pub const FIRST_PORT: u16 = 5_201;

/// Which end the data direction of a scenario starts at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataFrom {
    /// The client sends: the path's `forward` goes from client to server.
    #[default]
    Client,
    /// The server sends, as in a download.
    Server,
}

/// What a session needs to know.
pub struct Setup<'a> {
    /// The data direction.
    pub forward: &'a LinkConfig,
    /// The other one.
    pub back: &'a LinkConfig,
    /// Where the data direction starts.
    pub data_from: DataFrom,
    /// Seed of all randomness of the path.
    pub seed: u64,
    /// IP packet size limit of both ends.
    pub mtu: u16,
    /// Sysctls of both ends; later ones win.
    pub sysctls: &'a [(String, String)],
    /// Flows that have a server port each, from [`FIRST_PORT`] on.
    pub flows: u16,
    /// Whether the port after the flows' belongs to the probe.
    pub probe: bool,
    /// Keep every packet's fate, for comparison with the model.
    pub log_packets: bool,
    /// Where packets are captured: data direction, then the other.
    pub capture: Option<[Capture; 2]>,
}

/// Why a session could not start.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The two ends.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The emulator.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The packets of the path do not fit into memory.
    #[error("this path can hold {needed} in flight and queued, and the machine has {available} free: lower the rate, the RTT or the queue")]
    Memory {
        /// What a full path holds.
        needed: Bytes,
        /// Half of what is free.
        available: Bytes,
    },
}

/// A path that is up.
pub struct Session {
    /// The two ends.
    pub world: World,
    /// Time since the session's start.
    pub clock: Clock,
    emulator: Emulator,
}

/// Length of the buckets in which the bottleneck's history is kept.
pub const BUCKET: Duration = Duration::from_millis(100);

/// Deliveries closer than this share a wake-up, as with a NIC's interrupt moderation.
pub const BATCH: Duration = Duration::from_micros(50);

impl Session {
    /// Makes both ends and starts the emulator.
    ///
    /// # Errors
    /// [`SessionError`]; nothing is left behind.
    pub fn start(setup: Setup<'_>) -> Result<Self, SessionError> {
        check_memory(&setup)?;
        let world = World::create(setup.mtu, setup.sysctls)?;
        let clock = Clock::start();
        let (up, down, capture) = match setup.data_from {
            DataFrom::Client => (setup.forward, setup.back, setup.capture),
            DataFrom::Server => (setup.back, setup.forward, setup.capture.map(|[forward, back]| [back, forward])),
        };
        let plan = EmulatorPlan {
            up: up.clone(),
            down: down.clone(),
            seed: setup.seed,
            classifier: Classifier::new(FIRST_PORT, setup.flows + u16::from(setup.probe)),
            probe: setup.probe.then_some(FlowId(setup.flows + 1)),
            bucket: BUCKET,
            batch: BATCH,
            log_packets: setup.log_packets,
            capture,
        };
        let emulator = Emulator::start(plan, &world.client_tun, &world.server_tun, clock)?;
        Ok(Self { world, clock, emulator })
    }

    /// Stops the emulator and takes what it saw; the two ends go with the world.
    pub fn finish(self) -> (World, EmulatorOutcome) {
        (self.world, self.emulator.finish())
    }
}

pub(crate) fn check_memory(setup: &Setup<'_>) -> Result<(), SessionError> {
    let needed = most_bytes_inside(setup.forward) + most_bytes_inside(setup.back);
    let available = Bytes::new(memory_available()?.as_u64() / 2);
    // A link without a rate has no bound of its own; the ends' buffers bound it.
    if needed > available { Err(SessionError::Memory { needed, available }) } else { Ok(()) }
}

/// What a link holds when it is full: a bandwidth-delay product of its one-way delay, and its queue.
fn most_bytes_inside(link: &LinkConfig) -> Bytes {
    let rate = match &link.rate {
        RateModel::Unlimited => return Bytes::ZERO,
        RateModel::Constant(rate) => *rate,
        RateModel::Steps(steps) => steps.iter().map(|(_, rate)| *rate).max().unwrap_or_default(),
        RateModel::Trace(trace) => {
            let packets = trace.opportunities_ms.len() as u64;
            let length = trace.opportunities_ms.last().map_or(1, |ms| u64::from(*ms));
            Rate::from_transfer(Bytes::new(packets * 1_500), Duration::from_millis(length))
        }
    };
    let queue = match link.queue.limit {
        QueueLimit::Bytes(bytes) => bytes,
        QueueLimit::Packets(packets) => Bytes::new(u64::from(packets) * 1_500),
    };
    let longest = link.flow_delay.iter().map(|(_, delay)| *delay).max().unwrap_or_default().max(link.delay);
    rate.bytes_in(longest + link.jitter) + queue
}
