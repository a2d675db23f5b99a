//! When each flow wants to be called next.

use units::Instant;

/// Children of a node: wide and flat, because most entries move little.
const ARITY: usize = 4;

/// One entry for each flow in a heap, found again by the flow's number. Of two due at the same time the lower number is first, so
/// that the order never depends on history.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: Vec<(Instant, u32)>,
    /// Where each flow is in `heap`.
    place: Vec<u32>,
}

impl Agenda {
    /// For flows 0 to `flows` - 1, none of which wants anything.
    pub(crate) fn new(flows: usize) -> Self {
        let heap = (0..flows as u32).map(|flow| (Instant::MAX, flow)).collect();
        Self { heap, place: (0..flows as u32).collect() }
    }

    /// The earliest entry's time; `Instant::MAX` for none.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        self.heap.first().map_or(Instant::MAX, |entry| entry.0)
    }

    /// Takes the earliest flow; it wants nothing until it says so again.
    pub(crate) fn take(&mut self) -> Option<usize> {
        let (at, flow) = *self.heap.first()?;
        if at == Instant::MAX {
            return None;
        }
        self.heap[0].0 = Instant::MAX;
        self.sink(0);
        Some(flow as usize)
    }

    /// The flow wants to be called at `at`. A later time than it has is left for when it is called: most timers are put off
    /// again and again, and being called early costs less than moving.
    #[inline]
    pub(crate) fn ask(&mut self, flow: usize, at: Instant) {
        let place = self.place[flow] as usize;
        if at < self.heap[place].0 {
            self.heap[place].0 = at;
            self.rise(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let first = place * ARITY + 1;
            let children = first..(first + ARITY).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else { break };
            if self.heap[least] >= entry {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, entry);
    }

    #[inline]
    fn put(&mut self, place: usize, entry: (Instant, u32)) {
        self.heap[place] = entry;
        self.place[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn flows_come_in_the_order_of_their_times_then_of_their_numbers(
            asked in proptest::collection::vec((0usize..50, 0u64..100), 0..300),
        ) {
            let mut agenda = Agenda::new(50);
            let mut wanted = [u64::MAX; 50];
            for (flow, at) in asked {
                agenda.ask(flow, Instant::from_nanos(at));
                wanted[flow] = wanted[flow].min(at);
            }
            let mut expected: Vec<(u64, usize)> = wanted.iter().copied().zip(0..).filter(|w| w.0 < u64::MAX).collect();
            expected.sort();
            for (at, flow) in expected {
                prop_assert_eq!(agenda.next(), Instant::from_nanos(at));
                prop_assert_eq!(agenda.take(), Some(flow));
            }
            prop_assert_eq!(agenda.take(), None);
            prop_assert_eq!(agenda.next(), Instant::MAX);
        }
    }

    #[test]
    fn a_later_wish_waits_for_the_earlier_one() {
        let mut agenda = Agenda::new(2);
        agenda.ask(1, Instant::from_nanos(5));
        agenda.ask(1, Instant::from_nanos(9));
        assert_eq!(agenda.next(), Instant::from_nanos(5));
        assert_eq!((agenda.take(), agenda.take()), (Some(1), None));
    }
}
