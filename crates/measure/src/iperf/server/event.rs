//! What a server tells about its work.

use std::net::SocketAddr;

use units::{Bytes, Duration};

use crate::iperf::wire::Wish;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A client waits for a place.
    Waiting {
        /// Who.
        peer: SocketAddr,
    },
    /// A client was told that there is no place, or left while it waited.
    Busy {
        /// Who.
        peer: SocketAddr,
    },
    /// A client's test was refused.
    Refused {
        /// Who.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
    /// A test runs.
    Started {
        /// Number of the test since the server began.
        test: u64,
        /// Whose.
        peer: SocketAddr,
        /// What it asked for.
        wish: Wish,
        /// The client's version as it says itself; anything a client sent.
        client_version: Option<String>,
    },
    /// A test is over.
    Ended {
        /// As when it started.
        test: u64,
        /// Whose.
        peer: SocketAddr,
        /// How it ended.
        ending: Ending,
        /// What it moved.
        summary: TestSummary,
    },
    /// Connections were dropped that never became a test: told at most once a second.
    Dropped {
        /// How many since the last time.
        connections: u64,
        /// The last one's reason.
        reason: &'static str,
    },
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Results were exchanged.
    Complete,
    /// The client broke it off, or vanished, or broke the protocol.
    Client(String),
    /// It reached a limit.
    Limit(String),
    /// The server was stopped.
    Stopped,
}

/// What a test moved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestSummary {
    /// How long data could flow, warm-up left out.
    pub duration: Duration,
    /// Received, warm-up left out.
    pub received: Bytes,
    /// Sent, warm-up left out.
    pub sent: Bytes,
    /// Each stream.
    pub streams: Vec<StreamSummary>,
}

/// What a stream moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSummary {
    /// As in the results.
    pub id: i64,
    /// Whether the server sent.
    pub sends: bool,
    /// Payload, warm-up left out.
    pub bytes: Bytes,
    /// Segments sent again, where the server sent.
    pub retransmitted_segments: Option<u32>,
    /// What its socket ran, where the server sent.
    pub congestion_control: Option<String>,
}
