use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Instant;

/// Who wants to be woken when. Each of a fixed number of parties has one time, which it may change.
#[derive(Debug)]
pub(super) struct Agenda {
    /// The time that counts, per party.
    current: Vec<Instant>,
    /// Entries of changed times stay in here and are passed over.
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Agenda {
    pub(super) fn new(times: impl Iterator<Item = Instant>) -> Self {
        let current: Vec<Instant> = times.collect();
        let heap = current.iter().copied().zip(0..).map(Reverse).collect();
        Self { current, heap }
    }

    /// The earliest time, or one before it.
    pub(super) fn next(&self) -> Instant {
        self.heap.peek().map_or(Instant::MAX, |Reverse((at, _))| *at)
    }

    /// Changes a party's time.
    pub(super) fn set(&mut self, party: usize, at: Instant) {
        if self.current[party] != at {
            self.current[party] = at;
            self.heap.push(Reverse((at, party)));
        }
    }

    /// A party whose time has come. It comes again only once its time was changed.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<usize> {
        while let Some(&Reverse((at, party))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            if self.current[party] == at {
                // No time is equal to this one until `set` gives the next.
                self.current[party] = Instant::MAX;
                return Some(party);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn parties_come_in_the_order_of_their_times_and_once() {
        let mut agenda = Agenda::new([at(30), at(10), at(20)].into_iter());
        assert_eq!(agenda.next(), at(10));
        assert_eq!(agenda.take_due(at(9)), None);
        assert_eq!(agenda.take_due(at(25)), Some(1));
        assert_eq!(agenda.take_due(at(25)), Some(2));
        assert_eq!(agenda.take_due(at(25)), None);
        assert_eq!(agenda.take_due(at(30)), Some(0));
        assert_eq!(agenda.take_due(at(1_000)), None);
    }

    #[test]
    fn a_changed_time_replaces_the_old_one_earlier_or_later() {
        let mut agenda = Agenda::new([at(10), at(20)].into_iter());
        agenda.set(0, at(40));
        agenda.set(1, at(5));
        assert_eq!(agenda.take_due(at(30)), Some(1));
        assert_eq!(agenda.take_due(at(30)), None);
        assert_eq!(agenda.take_due(at(40)), Some(0));
    }

    #[test]
    fn a_party_may_ask_for_the_same_time_again() {
        let mut agenda = Agenda::new([at(10)].into_iter());
        assert_eq!(agenda.take_due(at(10)), Some(0));
        agenda.set(0, at(10));
        assert_eq!(agenda.take_due(at(10)), Some(0));
    }
}
