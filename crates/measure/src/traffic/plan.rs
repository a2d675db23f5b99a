use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use host::clock::Clock;
use host::netns::{NetNs, NetNsError};
use units::{Bytes, Duration};

use crate::probe::{ProbeError, ProbePlan};

/// One of the two ends of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The end that connects.
    Client,
    /// The end that listens.
    Server,
}

/// Asks a running experiment to end early. Clones mean the same request.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Not asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks. Safe from a signal handler's thread and from any other.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether anybody asked.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl From<Arc<AtomicBool>> for StopFlag {
    /// A flag that something else sets, such as a signal handler.
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

/// What a flow sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowKind {
    /// One end pushes as fast as the socket takes it.
    Bulk {
        /// How much; `None`: until the flow's time is up.
        bytes: Option<Bytes>,
    },
    /// One end asks and waits for the whole answer, again and again, over one connection.
    RequestResponse {
        /// Size of each request; at least one byte.
        request: Bytes,
        /// Size of each response; at least one byte.
        response: Bytes,
        /// From the last byte of a response to the next request.
        pause: Duration,
    },
}

/// One TCP connection of an experiment. The client connects, whoever sends the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowPlan {
    /// Its name in the outcome.
    pub label: String,
    /// What it sends.
    pub kind: FlowKind,
    /// The congestion control of both its sockets.
    pub congestion_control: String,
    /// When it connects, after the traffic's start.
    pub start: Duration,
    /// How long it lasts from there; `None`: to the traffic's end.
    pub duration: Option<Duration>,
    /// The port its server listens on. Each flow has its own, so that an emulator can tell flows apart.
    pub server_port: u16,
    /// The end that sends the bulk of the data, or that asks.
    pub data_from: End,
}

/// Everything that runs over a path at once.
#[derive(Debug, Clone)]
pub struct TrafficPlan {
    /// Where clients run.
    pub client: NetNs,
    /// Where servers run; may be the same.
    pub server: NetNs,
    /// The address clients connect from.
    pub client_addr: IpAddr,
    /// The address servers listen on.
    pub server_addr: IpAddr,
    /// The flows; none is allowed where only probes are wanted.
    pub flows: Vec<FlowPlan>,
    /// When everything ends. Traffic ends earlier where every flow has.
    pub duration: Duration,
    /// The distance of samples; 100 ms is usual.
    pub sample_every: Duration,
    /// Probes of the delay while the flows run.
    pub probe: Option<ProbePlan>,
    /// The time base of the outcome.
    pub clock: Clock,
    /// Ends it early.
    pub stop: StopFlag,
}

/// Why traffic could not run at all. What keeps single flows from running is in the outcome.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The plan contradicts itself.
    #[error("{0}")]
    BadPlan(String),
    /// A namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NetNsError),
    /// The flows need more open files than this process may have.
    #[error(
        "{needed} open files are needed and the hard limit of this process is {hard}: raise it (ulimit -Hn) or use fewer flows"
    )]
    TooManyFiles {
        /// Files needed, those already open included.
        needed: u64,
        /// `RLIMIT_NOFILE`.
        hard: u64,
    },
    /// The probe could not start.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Another step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was attempted.
        step: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
}

impl TrafficPlan {
    pub(super) fn check(&self) -> Result<(), TrafficError> {
        let bad = |text: String| Err(TrafficError::BadPlan(text));
        if self.sample_every == Duration::ZERO {
            return bad("the distance of samples must not be zero".into());
        }
        if self.probe.is_some_and(|probe| probe.interval == Duration::ZERO) {
            return bad("the distance of probes must not be zero".into());
        }
        if self.client_addr.is_ipv4() != self.server_addr.is_ipv4() {
            return bad(format!("{} and {} are of different IP versions", self.client_addr, self.server_addr));
        }
        let mut ports = HashSet::new();
        for flow in &self.flows {
            if flow.server_port == 0 || !ports.insert(flow.server_port) {
                return bad(format!(
                    "flow {}: every flow needs a server port of its own, not {}",
                    flow.label, flow.server_port
                ));
            }
            if let FlowKind::RequestResponse { request, response, .. } = flow.kind
                && (request == Bytes::ZERO || response == Bytes::ZERO)
            {
                return bad(format!("flow {}: a request and a response have at least one byte", flow.label));
            }
        }
        Ok(())
    }
}
