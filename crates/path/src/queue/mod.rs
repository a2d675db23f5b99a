//! What waits for the transmitter, and which packet goes next.

mod fifo;

use units::{Bytes, Instant};

pub(crate) use fifo::Fifo;

use crate::Packet;
use crate::config::LinkConfig;

/// A packet at the bottleneck.
#[derive(Debug)]
pub(crate) struct Item<T> {
    pub(crate) packet: Packet<T>,
    pub(crate) number: u64,
    pub(crate) arrived: Instant,
    /// Size with overhead.
    pub(crate) occupies: Bytes,
}

/// The waiting packets under their discipline.
#[derive(Debug)]
pub(crate) enum Queue<T> {
    DropTail(Fifo<T>),
}

impl<T> Queue<T> {
    pub(crate) fn new(_config: &LinkConfig, _seed: u64) -> Self {
        Self::DropTail(Fifo::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::DropTail(fifo) => fifo.is_empty(),
        }
    }

    pub(crate) fn push(&mut self, item: Item<T>) {
        match self {
            Self::DropTail(fifo) => fifo.push(item),
        }
    }

    /// Takes the packet that is sent next.
    pub(crate) fn pop(&mut self) -> Option<Item<T>> {
        match self {
            Self::DropTail(fifo) => fifo.pop(),
        }
    }
}
