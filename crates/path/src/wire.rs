//! From the bottleneck to the far end: propagation delay, jitter, reordering.
//!
//! Packets with the same delay keep their order, so each distinct delay is a first-in-first-out line, and the next delivery is
//! the earliest of the lines' heads. The common case, one line, touches no heap.

use alloc::collections::binary_heap::PeekMut;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use units::{Duration, Instant, Probability};

use crate::config::LinkConfig;
use crate::random::{Stage, Stream};
use crate::{Delivery, FlowId};

/// A delay of its own.
#[derive(Debug)]
struct Line<T> {
    delay: Duration,
    /// Due time of the last packet put in: jitter never lets a later one pass it.
    last_due: Instant,
    packets: VecDeque<(Delivery<T>, u64)>,
}

/// Place of a packet in the order of deliveries: due time, then order of leaving the bottleneck; with its line.
type Head = Reverse<(Instant, u64, usize)>;

#[derive(Debug)]
pub(crate) struct Wire<T> {
    /// One for each distinct delay, or with reordering two: the second for packets that skip part of it.
    lines: Vec<Line<T>>,
    /// Line of each flow with a delay of its own, by flow number; all others use the first.
    line_of_flow: Vec<usize>,
    /// Heads of all lines that hold packets; not kept for a single line.
    heads: BinaryHeap<Head>,
    jitter: Option<(Duration, Stream)>,
    early: Option<(Probability, Stream)>,
    shortest: Duration,
    entered: u64,
    count: usize,
}

impl<T> Wire<T> {
    pub(crate) fn new(config: &LinkConfig, seed: u64) -> Self {
        let mut delays = vec![config.delay];
        let last_flow = config.flow_delay.iter().map(|(flow, _)| usize::from(flow.0)).max();
        let mut line_of_flow = vec![0; last_flow.map_or(0, |last| last + 1)];
        for (flow, delay) in &config.flow_delay {
            let found = delays.iter().position(|known| known == delay);
            line_of_flow[usize::from(flow.0)] = found.unwrap_or(delays.len());
            if found.is_none() {
                delays.push(*delay);
            }
        }
        let line = |delay| Line { delay, last_due: Instant::ZERO, packets: VecDeque::new() };
        let lines: Vec<Line<T>> = match config.reorder {
            None => delays.iter().map(|delay| line(*delay)).collect(),
            Some(reorder) => {
                line_of_flow.iter_mut().for_each(|index| *index *= 2);
                delays.iter().flat_map(|delay| [line(*delay), line(*delay - reorder.advance)]).collect()
            }
        };
        Self {
            shortest: lines.iter().map(|line| line.delay).min().unwrap_or_default(),
            heads: BinaryHeap::with_capacity(lines.len()),
            lines,
            line_of_flow,
            jitter: (config.jitter > Duration::ZERO).then(|| (config.jitter, Stream::new(seed, Stage::Jitter))),
            early: config.reorder.map(|reorder| (reorder.probability, Stream::new(seed, Stage::Reorder))),
            entered: 0,
            count: 0,
        }
    }

    /// No packet is shorter on its way than this.
    #[inline]
    pub(crate) fn shortest_delay(&self) -> Duration {
        self.shortest
    }

    /// Packets on their way.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Puts a packet in that leaves the bottleneck at `delivery.due`, which becomes the time it reaches the far end.
    #[inline]
    pub(crate) fn push(&mut self, mut delivery: Delivery<T>) {
        let FlowId(flow) = delivery.packet.flow;
        let mut index = self.line_of_flow.get(usize::from(flow)).copied().unwrap_or(0);
        if let Some((probability, stream)) = &mut self.early {
            index += usize::from(probability.happens(stream.draw()));
        }
        let single = self.lines.len() == 1;
        let line = &mut self.lines[index];
        let mut due = delivery.due + line.delay;
        if let Some((most, stream)) = &mut self.jitter {
            due += Duration::from_nanos(stream.up_to(most.as_nanos()));
        }
        due = due.max(line.last_due);
        line.last_due = due;
        delivery.due = due;
        if !single && line.packets.is_empty() {
            self.heads.push(Reverse((due, self.entered, index)));
        }
        line.packets.push_back((delivery, self.entered));
        self.entered += 1;
        self.count += 1;
    }

    /// Due time of the next delivery; `Instant::MAX` for none.
    #[inline]
    pub(crate) fn next_due(&self) -> Instant {
        match self.lines.as_slice() {
            [only] => only.packets.front().map_or(Instant::MAX, |(delivery, _)| delivery.due),
            _ => self.heads.peek().map_or(Instant::MAX, |Reverse((due, ..))| *due),
        }
    }

    /// Takes the next delivery out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Delivery<T>> {
        let delivery = match self.lines.as_mut_slice() {
            [only] => only.packets.pop_front()?.0,
            lines => {
                let mut head = self.heads.peek_mut()?;
                let Reverse((due, order, index)) = &mut *head;
                let line = &mut lines[*index].packets;
                let (delivery, _) = line.pop_front()?;
                match line.front() {
                    Some((next, next_order)) => (*due, *order) = (next.due, *next_order),
                    None => drop(PeekMut::pop(head)),
                }
                delivery
            }
        };
        self.count -= 1;
        Some(delivery)
    }
}
