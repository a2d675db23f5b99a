//! What is told to the driver and counted whenever a packet's fate is decided.

use units::{Bytes, Instant};

use crate::queue::Item;
use crate::{Backlog, Counters, DropCause, Ecn, Packet, Sink};

/// Totals, and what waits right now.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) counters: Counters,
    pub(crate) backlog: Backlog,
}

/// A moment at which fates are decided: the time, who is told and what is counted.
pub(crate) struct Moment<'a, S> {
    pub(crate) at: Instant,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) sink: &'a mut S,
}

impl<S> Moment<'_, S> {
    /// A packet outside the queue is gone.
    pub(crate) fn drop<T>(&mut self, packet: Packet<T>, number: u64, cause: DropCause)
    where
        S: Sink<T>,
    {
        let counters = &mut self.ledger.counters;
        *match cause {
            DropCause::Random => &mut counters.dropped_random,
            DropCause::Overflow => &mut counters.dropped_overflow,
            DropCause::Aqm => &mut counters.dropped_aqm,
            DropCause::Policer => &mut counters.dropped_policer,
        } += 1;
        self.sink.dropped(self.at, packet, number, cause);
    }

    /// A packet that was in the queue is gone.
    pub(crate) fn discard<T>(&mut self, item: Item<T>, cause: DropCause)
    where
        S: Sink<T>,
    {
        self.leave(&item);
        self.drop(item.packet, item.number, cause);
    }

    /// Marks the packet where its transport is ECN-capable; says whether it carries a mark now.
    pub(crate) fn mark<T>(&mut self, packet: &mut Packet<T>, number: u64) -> bool
    where
        S: Sink<T>,
    {
        match packet.ecn {
            Ecn::NotEct => return false,
            Ecn::Ce => {}
            Ecn::Ect0 | Ecn::Ect1 => {
                packet.ecn = Ecn::Ce;
                self.ledger.counters.marked += 1;
                self.sink.marked(self.at, packet, number);
            }
        }
        true
    }

    /// Counts a packet into the backlog.
    #[inline]
    pub(crate) fn enter<T>(&mut self, item: &Item<T>) {
        self.ledger.backlog = self.ledger.backlog.with(item.occupies);
    }

    /// Counts a packet out of the backlog.
    #[inline]
    pub(crate) fn leave<T>(&mut self, item: &Item<T>) {
        let backlog = &mut self.ledger.backlog;
        backlog.packets -= 1;
        backlog.bytes = backlog.bytes - item.occupies;
    }
}

impl Backlog {
    /// What it is with one more packet.
    #[inline]
    pub(crate) fn with(self, occupies: Bytes) -> Self {
        Self { packets: self.packets + 1, bytes: self.bytes + occupies }
    }
}
