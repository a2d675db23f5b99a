//! A server for many clients, some of which mean harm.
//!
//! One thread, the *gate*, takes connections and reads their cookies without ever waiting for one of them ([`gate`]); a test that may run
//! gets a thread of its own, which answers for its control connection ([`session`]), and one more per stream. Whatever a client does, every
//! wait has a time, every message a length, every kind of thing a number that it stays below: see [`ServerLimits`].

mod event;
mod gate;
mod routes;
mod session;

use std::io;
use std::net::SocketAddr;

use host::clock::Clock;
use socket2::{Domain, Protocol, Socket, Type};
use units::{Bytes, Duration, Rate};

use super::token::Token;
use crate::traffic::StopFlag;

pub use event::{Ending, Event, StreamSummary, TestSummary};

/// What clients may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Tests at once.
    pub tests: usize,
    /// Tests at once from one address.
    pub tests_per_address: usize,
    /// Clients that wait for a place; further ones are told that the server is busy.
    pub waiting: usize,
    /// The longest that one waits before it is told so.
    pub wait: Duration,
    /// The longest test, warm-up included.
    pub duration: Duration,
    /// The most payload of one test, both directions together.
    pub bytes: Bytes,
    /// The highest rate of one test in each direction. What the server sends is paced to it, what it receives is read no faster.
    pub rate: Rate,
    /// Parallel streams in each direction.
    pub streams: u32,
    /// Connections that have not said yet what they are. One more pushes out the oldest.
    pub undecided: usize,
    /// The longest that they may take to say it, and a client to answer wherever it has to.
    pub patience: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            tests: 4,
            tests_per_address: 4,
            waiting: 16,
            wait: Duration::from_secs(30),
            duration: Duration::from_secs(120),
            bytes: Bytes::new(1 << 40),
            rate: Rate::from_mbps(100_000),
            streams: 32,
            undecided: 256,
            patience: Duration::from_secs(10),
        }
    }
}

/// What to serve.
#[derive(Debug, Clone)]
pub struct ServerPlan {
    /// Where to listen.
    pub listen: Vec<SocketAddr>,
    /// What clients may have.
    pub limits: ServerLimits,
    /// Only clients with this token; `None`: every client.
    pub token: Option<Token>,
    /// linerate's version, for linerate clients.
    pub linerate_version: String,
    /// The kernel's release, for linerate clients.
    pub kernel: String,
    /// Ends serving.
    pub stop: StopFlag,
}

/// Why serving could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A socket could not listen.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The limits need more open files than this process may have.
    #[error("{0}")]
    Files(String),
    /// Another step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was attempted.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    plan: ServerPlan,
    listeners: Vec<Socket>,
    addresses: Vec<SocketAddr>,
}

impl Server {
    /// Listens in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn bind(plan: ServerPlan) -> Result<Self, ServerError> {
        let mut listeners = Vec::new();
        let mut addresses = Vec::new();
        for address in &plan.listen {
            let failed = |source| ServerError::Listen { address: *address, source };
            let socket = listen(*address).map_err(failed)?;
            let bound = socket.local_addr().map_err(failed)?;
            addresses.push(bound.as_socket().unwrap_or(*address));
            listeners.push(socket);
        }
        let limits = plan.limits;
        // Per test: both directions' streams with an event each, control, two probes with copies, and room.
        let files = limits.undecided + limits.waiting + limits.tests * (4 * limits.streams as usize + 16) + 64;
        crate::traffic::allow_files(files as u64).map_err(|error| ServerError::Files(error.to_string()))?;
        Ok(Self { plan, listeners, addresses })
    }

    /// Where it listens, with the ports that the kernel chose.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until the plan's stop flag says so; tests that run then are broken off. `on_event` may be called on any thread.
    ///
    /// # Errors
    /// [`ServerError::Step`] where the gate itself fails; what clients do is no error.
    pub fn run(self, on_event: &(dyn Fn(Event) + Sync)) -> Result<(), ServerError> {
        gate::run(&self.plan, &self.listeners, Clock::start(), on_event)
            .map_err(|source| ServerError::Step { step: "watch connections", source })
    }
}

fn listen(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // So that 0.0.0.0 and :: can be given together and each means itself.
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket)
}
