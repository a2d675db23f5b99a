//! CoDel, RFC 8289: drops from the head of the queue when packets have waited longer than a target for a whole interval,
//! then ever more often until they no longer do.

use units::{Bytes, Duration, Instant};

use super::{Fifo, Item};
use crate::config::CoDel;
use crate::ledger::Moment;
use crate::{DropCause, Sink};

/// State of one queue; the names are the RFC's.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// When it is ok to drop, if packets wait too long until then. `None`: they do not.
    first_above_time: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    /// Drops since the drop state was entered.
    count: u64,
    /// `count` as it was on entering.
    lastcount: u64,
}

/// What all queues of a link share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Params {
    pub(crate) codel: CoDel,
    /// Mark instead of dropping where the packet's transport is ECN-capable.
    pub(crate) ecn: bool,
    /// Largest packet seen, for the RFC's interface MTU: a queue of no more than this is never too long.
    pub(crate) maxpacket: Bytes,
}

impl Control {
    /// Takes the next packet to send, after dropping what comes before it (section 5.5 of the RFC).
    ///
    /// Where the RFC drops and ECN allows to mark, this does as Linux: the mark counts as a drop and the packet is sent
    /// (`include/net/codel_impl.h`).
    #[inline]
    pub(crate) fn pop<T, S: Sink<T>>(
        &mut self,
        params: &Params,
        fifo: &mut Fifo<T>,
        moment: &mut Moment<'_, S>,
    ) -> Option<Item<T>> {
        let (mut item, mut ok_to_drop) = self.take(params, fifo, moment.at);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && moment.at >= self.drop_next {
                self.count += 1;
                if self.mark_or_drop(params, &mut item, moment) {
                    self.drop_next = control_law(self.drop_next, params.codel.interval, self.count);
                    break;
                }
                (item, ok_to_drop) = self.take(params, fifo, moment.at);
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, params.codel.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !self.mark_or_drop(params, &mut item, moment) {
                (item, _) = self.take(params, fifo, moment.at);
            }
            self.dropping = true;
            // Where the queue was good only shortly, go on near the rate that made it good.
            let delta = self.count - self.lastcount;
            let recently = moment.at.since(self.drop_next) < params.codel.interval * 16;
            self.count = if delta > 1 && recently { delta } else { 1 };
            self.drop_next = control_law(moment.at, params.codel.interval, self.count);
            self.lastcount = self.count;
        }
        item
    }

    /// The RFC's `dodequeue`: the next packet, and whether it is ok to drop it.
    #[inline]
    fn take<T>(&mut self, params: &Params, fifo: &mut Fifo<T>, now: Instant) -> (Option<Item<T>>, bool) {
        let Some(item) = fifo.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        let mut ok_to_drop = false;
        if now.since(item.arrived) < params.codel.target || fifo.bytes() <= params.maxpacket {
            self.first_above_time = None;
        } else {
            let first_above_time = *self.first_above_time.get_or_insert(now + params.codel.interval);
            ok_to_drop = now >= first_above_time;
        }
        (Some(item), ok_to_drop)
    }

    /// True where the packet stays, marked.
    fn mark_or_drop<T, S: Sink<T>>(
        &self,
        params: &Params,
        item: &mut Option<Item<T>>,
        moment: &mut Moment<'_, S>,
    ) -> bool {
        if let Some(candidate) = item
            && params.ecn
            && moment.mark(&mut candidate.packet, candidate.number)
        {
            return true;
        }
        if let Some(item) = item.take() {
            moment.discard(item, DropCause::Aqm);
        }
        false
    }
}

/// `t + interval / sqrt(count)`, rounded down to a nanosecond.
///
/// The square root is taken last, of interval² / count: floor(sqrt(floor(x))) is floor(sqrt(x)), so nothing else is lost.
fn control_law(t: Instant, interval: Duration, count: u64) -> Instant {
    let interval = u128::from(interval.as_nanos());
    t + Duration::from_nanos((interval * interval / u128::from(count.max(1))).isqrt() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_law_divides_by_the_square_root_of_the_count() {
        let next = |count| control_law(Instant::from_nanos(7), Duration::from_millis(100), count).as_nanos() - 7;
        assert_eq!(next(1), 100_000_000);
        assert_eq!(next(2), 70_710_678);
        assert_eq!(next(3), 57_735_026);
        assert_eq!(next(4), 50_000_000);
        assert_eq!(next(10_000), 1_000_000);
        assert_eq!(control_law(Instant::ZERO, Duration::MAX, 1), Instant::MAX);
    }
}
