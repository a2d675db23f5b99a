//! What a flow came to.

use units::{Bytes, Duration, Instant};

use crate::flow::FlowSample;
use crate::sender::SenderCounters;
use crate::world::World;

/// One flow, as of the moment it was asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowOutcome {
    /// When it was to connect.
    pub start: Instant,
    /// When the handshake was done.
    pub established: Option<Instant>,
    /// When its application stopped sending because its time was over.
    pub stopped: Option<Instant>,
    /// When all of its amount had arrived.
    pub completed: Option<Instant>,
    /// Payload that arrived in order.
    pub received: Bytes,
    /// Totals of its sender.
    pub counters: SenderCounters,
    /// Smallest round-trip time its sender saw.
    pub min_rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// From each request to its whole response.
    pub response_times: Vec<Duration>,
    /// Its state over time.
    pub samples: Vec<FlowSample>,
}

impl World {
    /// How many flows there are.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Payload of a flow that has arrived in order.
    pub fn received(&self, flow: usize) -> Bytes {
        self.streams[self.flows[flow].data].receiver.received()
    }

    /// The sender of a flow's data direction.
    pub fn sender(&self, flow: usize) -> &crate::Sender {
        &self.streams[self.flows[flow].data].sender
    }

    /// The receiver of a flow's data direction.
    pub fn receiver(&self, flow: usize) -> &crate::Receiver {
        &self.streams[self.flows[flow].data].receiver
    }

    /// What a flow came to so far.
    pub fn outcome(&self, flow: usize) -> FlowOutcome {
        let flow = &self.flows[flow];
        let stream = &self.streams[flow.data];
        FlowOutcome {
            start: flow.start,
            established: flow.established,
            stopped: flow.stopped,
            completed: flow.completed,
            received: stream.receiver.received(),
            counters: stream.sender.counters(),
            min_rtt: stream.sender.min_rtt(),
            smoothed_rtt: stream.sender.smoothed_rtt(),
            response_times: flow.response_times.clone(),
            samples: flow.samples.clone(),
        }
    }
}
