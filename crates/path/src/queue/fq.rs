//! FQ-CoDel, RFC 8290: CoDel on each of many queues, served by deficit round robin, new queues first.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use units::Bytes;

use super::codel::{Control, Params};
use super::{Fifo, Item};
use crate::ledger::Moment;
use crate::random::{Stage, Stream};
use crate::{DropCause, Sink};

/// Most packets that one overflow drops (RFC 8290, section 4.1).
const DROP_BATCH: usize = 64;

#[derive(Debug)]
struct FlowQueue<T> {
    fifo: Fifo<T>,
    control: Control,
    /// Bytes it may still send in this round; below one it waits for the next.
    credits: i64,
    listed: bool,
}

#[derive(Debug)]
pub(crate) struct FqCoDel<T> {
    queues: Vec<FlowQueue<T>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: i64,
    packets: usize,
    /// Mixed into hashes, so that which flows share a queue depends on the seed.
    perturbation: u64,
}

impl<T> FqCoDel<T> {
    pub(crate) fn new(buckets: u32, quantum: Bytes, seed: u64) -> Self {
        let buckets = buckets as usize;
        let queue = || FlowQueue { fifo: Fifo::new(), control: Control::default(), credits: 0, listed: false };
        Self {
            queues: (0..buckets).map(|_| queue()).collect(),
            new: VecDeque::with_capacity(buckets),
            old: VecDeque::with_capacity(buckets),
            quantum: i64::try_from(quantum.as_u64()).unwrap_or(i64::MAX),
            packets: 0,
            perturbation: Stream::new(seed, Stage::Queue).draw(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// The queue of a flow: its hash, mixed well (the finaliser of SplitMix64) because callers may hash badly.
    fn bucket(&self, hash: u32) -> usize {
        let mut mixed = u64::from(hash) ^ self.perturbation;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * self.queues.len() as u128) >> 64) as usize
    }

    pub(crate) fn push(&mut self, item: Item<T>) {
        let bucket = self.bucket(item.packet.hash);
        let queue = &mut self.queues[bucket];
        queue.fifo.push(item);
        self.packets += 1;
        if !queue.listed {
            queue.listed = true;
            queue.credits = self.quantum;
            self.new.push_back(bucket);
        }
    }

    pub(crate) fn pop<S: Sink<T>>(&mut self, params: &Params, moment: &mut Moment<'_, S>) -> Option<Item<T>> {
        loop {
            let (list, is_new) = if self.new.is_empty() { (&mut self.old, false) } else { (&mut self.new, true) };
            let bucket = *list.front()?;
            let queue = &mut self.queues[bucket];
            if queue.credits <= 0 {
                queue.credits = queue.credits.saturating_add(self.quantum);
                list.pop_front();
                self.old.push_back(bucket);
                continue;
            }
            let before = queue.fifo.len();
            let item = queue.control.pop(params, &mut queue.fifo, moment);
            self.packets -= before - queue.fifo.len();
            if let Some(item) = item {
                queue.credits -= i64::try_from(item.occupies.as_u64()).unwrap_or(i64::MAX);
                return Some(item);
            }
            list.pop_front();
            // A new queue that ran empty goes once around the old ones first: else a flow could stay new for ever by sending
            // each packet a little after the one before, and starve the others (section 4.2).
            if is_new {
                self.old.push_back(bucket);
            } else {
                queue.listed = false;
            }
        }
    }

    /// Takes the next packet without a judgement.
    pub(crate) fn take(&mut self) -> Option<Item<T>> {
        let bucket = *self.new.iter().chain(&self.old).find(|bucket| !self.queues[**bucket].fifo.is_empty())?;
        self.packets -= 1;
        self.queues[bucket].fifo.pop()
    }

    /// Drops half of the longest queue's packets, at most 64, from its head (section 4.1).
    pub(crate) fn drop_batch<S: Sink<T>>(&mut self, moment: &mut Moment<'_, S>) {
        let longest = self.new.iter().chain(&self.old).copied();
        let Some(longest) = longest.max_by_key(|bucket| self.queues[*bucket].fifo.bytes()) else { return };
        let fifo = &mut self.queues[longest].fifo;
        for _ in 0..fifo.len().div_ceil(2).min(DROP_BATCH) {
            if let Some(item) = fifo.pop() {
                self.packets -= 1;
                moment.discard(item, DropCause::Overflow);
            }
        }
    }

    /// The newest packet that waits in the queue of the flow with this hash.
    pub(crate) fn last_of(&self, hash: u32) -> Option<&Item<T>> {
        self.queues[self.bucket(hash)].fifo.last()
    }
}
