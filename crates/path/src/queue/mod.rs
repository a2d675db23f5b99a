//! What waits for the transmitter, and which packet goes next.

mod codel;
mod fifo;
mod fq;
mod red;

use units::{Bytes, Instant, Rate};

pub(crate) use fifo::Fifo;
pub(crate) use red::Verdict;

use crate::check::FULL_PACKET;
use crate::config::{Discipline, LinkConfig};
use crate::ledger::Moment;
use crate::{Packet, Sink};
use codel::{Control, Params};
use fq::FqCoDel;
use red::Average;

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
    CoDel { fifo: Fifo<T>, control: Control, params: Params },
    FqCoDel { queues: FqCoDel<T>, params: Params },
    Red { fifo: Fifo<T>, average: Average },
}

impl<T> Queue<T> {
    pub(crate) fn new(config: &LinkConfig, seed: u64) -> Self {
        let params = |codel| Params { codel, ecn: config.queue.ecn, maxpacket: Bytes::ZERO };
        match config.queue.discipline {
            Discipline::DropTail => Self::DropTail(Fifo::new()),
            Discipline::CoDel(codel) => {
                Self::CoDel { fifo: Fifo::new(), control: Control::default(), params: params(codel) }
            }
            Discipline::FqCoDel { codel, buckets, quantum } => {
                Self::FqCoDel { queues: FqCoDel::new(buckets, quantum, seed), params: params(codel) }
            }
            Discipline::Red(red) => {
                let typical = (FULL_PACKET + config.overhead).as_u64();
                Self::Red { fifo: Fifo::new(), average: Average::new(red, typical, seed) }
            }
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::DropTail(fifo) | Self::CoDel { fifo, .. } | Self::Red { fifo, .. } => fifo.is_empty(),
            Self::FqCoDel { queues, .. } => queues.is_empty(),
        }
    }

    /// What the discipline wants done with a packet that finds `queue` bytes at a bottleneck of this rate.
    #[inline]
    pub(crate) fn judge(&mut self, now: Instant, queue: Bytes, rate: impl FnOnce() -> Rate) -> Verdict {
        match self {
            Self::Red { average, .. } => average.judge(now, queue.as_u64(), rate()),
            _ => Verdict::Pass,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, item: Item<T>) {
        if let Self::CoDel { params, .. } | Self::FqCoDel { params, .. } = self {
            params.maxpacket = params.maxpacket.max(item.occupies);
        }
        match self {
            Self::DropTail(fifo) | Self::CoDel { fifo, .. } | Self::Red { fifo, .. } => fifo.push(item),
            Self::FqCoDel { queues, .. } => queues.push(item),
        }
    }

    /// Takes the packet that is sent next. Asked also when nothing waits, which some disciplines want to know.
    #[inline]
    pub(crate) fn pop<S: Sink<T>>(&mut self, moment: &mut Moment<'_, S>) -> Option<Item<T>> {
        match self {
            Self::DropTail(fifo) => fifo.pop(),
            Self::CoDel { fifo, control, params } => control.pop(params, fifo, moment),
            Self::FqCoDel { queues, params } => queues.pop(params, moment),
            Self::Red { fifo, .. } => fifo.pop(),
        }
    }

    /// The bottleneck has nothing left to do.
    #[inline]
    pub(crate) fn idle(&mut self, now: Instant) {
        if let Self::Red { average, .. } = self {
            average.idle(now);
        }
    }

    /// Makes room by dropping packets that wait, where the discipline does so instead of refusing the one that arrives.
    pub(crate) fn make_room<S: Sink<T>>(&mut self, moment: &mut Moment<'_, S>) {
        if let Self::FqCoDel { queues, .. } = self {
            queues.drop_batch(moment);
        }
    }

    /// Whether packets are dropped from the head when the queue is full.
    #[inline]
    pub(crate) fn drops_at_head(&self) -> bool {
        matches!(self, Self::FqCoDel { .. })
    }

    /// The newest packet of this flow that waits, where the discipline tells flows apart.
    pub(crate) fn last_of(&self, hash: u32) -> Option<&Item<T>> {
        match self {
            Self::FqCoDel { queues, .. } => queues.last_of(hash),
            _ => None,
        }
    }

    /// Takes a waiting packet out, without a judgement.
    pub(crate) fn take(&mut self) -> Option<Item<T>> {
        match self {
            Self::DropTail(fifo) | Self::CoDel { fifo, .. } | Self::Red { fifo, .. } => fifo.pop(),
            Self::FqCoDel { queues, .. } => queues.take(),
        }
    }
}
