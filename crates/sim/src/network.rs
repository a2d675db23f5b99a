//! The network: in each direction one link behind the other.

use path::record::Record;
use path::{Backlog, ConfigError, Counters, Delivery, DropCause, Link, LinkConfig, Packet, Sink};
use units::{Duration, Instant};

use crate::segment::Content;

/// A packet that has arrived at an end.
pub(crate) struct Arrival {
    pub at: Instant,
    /// At the end of the data direction.
    pub forward: bool,
    pub packet: Packet<Content>,
}

/// A link and what is known of it.
#[derive(Debug)]
struct Hop {
    link: Link<Content>,
    next: Instant,
    record: Option<Record>,
}

/// Passes on what a link tells.
struct Ears<'a> {
    record: Option<&'a mut Record>,
    delivered: &'a mut Vec<Delivery<Content>>,
    events: &'a mut u64,
}

impl Sink<Content> for Ears<'_> {
    #[inline]
    fn deliver(&mut self, delivery: Delivery<Content>) {
        *self.events += 1;
        if let Some(record) = &mut self.record {
            record.delivered(&delivery);
        }
        self.delivered.push(delivery);
    }

    fn dropped(&mut self, at: Instant, packet: Packet<Content>, number: u64, cause: DropCause) {
        *self.events += 1;
        if let Some(record) = &mut self.record {
            record.dropped(at, &packet, number, cause);
        }
    }

    #[inline]
    fn queued(&mut self, at: Instant, _: &Packet<Content>, _: u64, backlog: Backlog) {
        if let Some(record) = &mut self.record {
            record.queued(at, backlog);
        }
    }

    #[inline]
    fn dequeued(&mut self, at: Instant, packet: &Packet<Content>, _: u64, sojourn: Duration, _: Backlog) {
        if let Some(record) = &mut self.record {
            record.dequeued(at, packet, sojourn);
        }
    }

    fn marked(&mut self, at: Instant, packet: &Packet<Content>, _: u64) {
        if let Some(record) = &mut self.record {
            record.marked(at, packet);
        }
    }
}

/// Both directions.
#[derive(Debug)]
pub(crate) struct Network {
    /// The data direction's links in their order, then those back in theirs.
    hops: Vec<Hop>,
    forward_hops: usize,
    /// Packets that entered a link, or left it at its far end or by being dropped.
    pub events: u64,
    delivered: Vec<Delivery<Content>>,
}

impl Network {
    pub fn new(
        forward: &[LinkConfig],
        back: &[LinkConfig],
        seed: u64,
        mut record: impl FnMut() -> Record,
    ) -> Result<Self, ConfigError> {
        let mut hops = Vec::new();
        for (number, config) in forward.iter().chain(back).enumerate() {
            // The first of each direction has the seed that the lab gives it, so that both lose the same packets.
            let is_forward = number < forward.len();
            let place = if is_forward { number } else { number - forward.len() };
            let own = seed.wrapping_mul(2).wrapping_add(u64::from(!is_forward));
            let seed = own ^ 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(place as u64);
            let record = is_forward.then(&mut record);
            hops.push(Hop { link: Link::new(config, seed)?, next: Instant::MAX, record });
        }
        Ok(Self { hops, forward_hops: forward.len(), events: 0, delivered: Vec::new() })
    }

    /// When [`Network::advance`] has something to do; `Instant::MAX` for never.
    #[inline]
    pub fn next(&self) -> Instant {
        self.hops.iter().map(|hop| hop.next).min().unwrap_or(Instant::MAX)
    }

    /// Lets everything happen that is due by `now`.
    pub fn advance(&mut self, now: Instant, arrivals: &mut Vec<Arrival>) {
        while let Some(hop) = self.hops.iter().position(|hop| hop.next <= now) {
            let at = self.hops[hop].next;
            self.with(hop, |link, ears| link.advance(at, ears));
            self.pass_on(hop, arrivals);
        }
    }

    /// A packet leaves an end.
    #[inline]
    pub fn send(&mut self, now: Instant, forward: bool, packet: Packet<Content>, arrivals: &mut Vec<Arrival>) {
        let first = if forward { 0 } else { self.forward_hops };
        let last = if forward { self.forward_hops } else { self.hops.len() };
        if first == last {
            arrivals.push(Arrival { at: now, forward, packet });
            return;
        }
        self.offer(now, first, packet);
        self.pass_on(first, arrivals);
    }

    fn offer(&mut self, now: Instant, hop: usize, packet: Packet<Content>) {
        self.events += 1;
        self.with(hop, |link, ears| link.offer(now, packet, ears));
    }

    #[inline]
    fn with(&mut self, hop: usize, act: impl FnOnce(&mut Link<Content>, &mut Ears<'_>)) {
        let Hop { link, next, record } = &mut self.hops[hop];
        let mut ears = Ears { record: record.as_mut(), delivered: &mut self.delivered, events: &mut self.events };
        act(link, &mut ears);
        *next = link.next_event().unwrap_or(Instant::MAX);
    }

    /// What `hop` delivered goes to the next link, or has arrived.
    fn pass_on(&mut self, hop: usize, arrivals: &mut Vec<Arrival>) {
        if self.delivered.is_empty() {
            return;
        }
        let forward = hop < self.forward_hops;
        let is_last = hop + 1 == self.forward_hops || hop + 1 == self.hops.len();
        let mut delivered = std::mem::take(&mut self.delivered);
        for delivery in delivered.drain(..) {
            if is_last {
                arrivals.push(Arrival { at: delivery.due, forward, packet: delivery.packet });
            } else {
                self.offer(delivery.due, hop + 1, delivery.packet);
                // What the next link delivers meanwhile has its turn in time.
                self.pass_on_later(hop + 1, arrivals);
            }
        }
        self.delivered = delivered;
    }

    fn pass_on_later(&mut self, hop: usize, arrivals: &mut Vec<Arrival>) {
        if !self.delivered.is_empty() {
            self.pass_on(hop, arrivals);
        }
    }

    /// Totals of each link of the data direction, in their order.
    pub fn forward_counters(&self) -> Vec<Counters> {
        self.hops[..self.forward_hops].iter().map(|hop| hop.link.counters()).collect()
    }

    /// The same of the other direction.
    pub fn back_counters(&self) -> Vec<Counters> {
        self.hops[self.forward_hops..].iter().map(|hop| hop.link.counters()).collect()
    }

    /// Packets inside, both directions.
    pub fn inside(&self) -> u64 {
        self.hops.iter().map(|hop| hop.link.in_flight() as u64 + u64::from(hop.link.backlog().packets)).sum()
    }

    /// What was recorded of the links of the data direction.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.hops.iter().filter_map(|hop| hop.record.as_ref())
    }
}
