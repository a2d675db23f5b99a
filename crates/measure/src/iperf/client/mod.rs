//! One test against a server: `iperf3 -s` or `linerate serve`.

mod connect;
mod iperf3_json;
mod outcome;
mod test;

use std::io;
use std::net::{IpAddr, SocketAddr};

use host::clock::Clock;
use units::{Bytes, Duration, Rate};

use super::token::Token;
use super::wire::Direction;
use crate::traffic::StopFlag;

pub use iperf3_json::iperf3_json;
pub use outcome::{Ending, StreamOutcome, TestOutcome};
pub use test::run;

/// When a test ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// After this time, the warm-up not counted.
    Time(Duration),
    /// When all streams of a direction together have sent so much and it has arrived.
    Bytes(Bytes),
}

/// What to run.
#[derive(Debug, Clone)]
pub struct ClientPlan {
    /// The server's addresses, in the order to try them.
    pub servers: Vec<SocketAddr>,
    /// The address to connect from.
    pub from: Option<IpAddr>,
    /// Who sends.
    pub direction: Direction,
    /// Streams in each direction.
    pub streams: u32,
    /// When it ends.
    pub length: Length,
    /// Left out at the start; whole seconds, as iperf3 knows no others.
    pub omit: Duration,
    /// The congestion control of both ends' streams; `None`: each end's default.
    pub congestion_control: Option<String>,
    /// Limit of each stream.
    pub rate: Option<Rate>,
    /// The distance of samples.
    pub sample_every: Duration,
    /// Whether to probe the delay, where the server can.
    pub probe: bool,
    /// Proof for a server that wants one.
    pub token: Option<Token>,
    /// The longest wait for a connection, and for each answer of the server.
    pub patience: Duration,
    /// linerate's version, for the server.
    pub version: String,
    /// The time base of the outcome.
    pub clock: Clock,
    /// Ends it early.
    pub stop: StopFlag,
}

/// How far a test is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The server has not answered yet: it may be busy with others.
    Waiting,
    /// The path is measured without load.
    Idle,
    /// Data flows.
    Running {
        /// Since it began, warm-up included.
        elapsed: Duration,
        /// Until the end, where that is known.
        planned: Option<Duration>,
        /// Whether the warm-up is over.
        counting: bool,
        /// Acknowledged by the server so far.
        forward: Bytes,
        /// Received from the server so far.
        reverse: Bytes,
    },
}

/// Why there was no test at all. What ends one that runs is in its outcome.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The plan contradicts itself.
    #[error("{0}")]
    BadPlan(String),
    /// No connection to any address.
    #[error("no connection to {address}: {}", connect_words(.source))]
    Connect {
        /// The last one tried.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The server has no room for another test.
    #[error("the server is busy with other tests: try again later")]
    Busy,
    /// The server gave a reason.
    #[error("the server refuses this test: {0}")]
    Refused(String),
    /// This end can't use the congestion control.
    #[error(transparent)]
    CongestionControl(#[from] host::tcp::SetCongestionControlError),
    /// The server went away, was silent, or is no iperf3 server.
    #[error("the server {0}{1}")]
    Server(String, &'static str),
    /// Something at this end.
    #[error("{step}: {source}")]
    Local {
        /// What was attempted.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Stopped before data flowed.
    #[error("stopped before data flowed")]
    Stopped,
}

fn connect_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "refused; is `linerate serve` or `iperf3 -s` running there, and on this port?".to_owned()
        }
        io::ErrorKind::TimedOut => "no answer; a firewall may drop the packets, or the host is down".to_owned(),
        _ => error.to_string(),
    }
}

impl ClientPlan {
    fn check(&self) -> Result<(), TestError> {
        let bad = |text: &str| Err(TestError::BadPlan(text.to_owned()));
        match self.length {
            Length::Time(time) if time == Duration::ZERO => return bad("a test lasts longer than no time"),
            Length::Bytes(bytes) if bytes == Bytes::ZERO => return bad("a test moves more than no bytes"),
            _ => {}
        }
        if self.servers.is_empty() {
            return bad("no address to connect to");
        }
        if !(1..=super::wire::MOST_STREAMS).contains(&self.streams) {
            return bad("a test has 1 to 128 parallel streams");
        }
        if !self.omit.as_nanos().is_multiple_of(1_000_000_000) || self.omit > Duration::from_secs(60) {
            return bad("a warm-up is whole seconds, at most 60: iperf3's protocol knows no others");
        }
        if self.sample_every == Duration::ZERO {
            return bad("the distance of samples must not be zero");
        }
        Ok(())
    }
}
