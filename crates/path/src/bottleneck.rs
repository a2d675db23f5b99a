//! The queue and the transmitter behind it.

use units::{Bytes, Instant};

use crate::config::{LinkConfig, QueueConfig, QueueLimit};
use crate::ledger::Moment;
use crate::queue::{Item, Queue, Verdict};
use crate::server::Server;
use crate::{Backlog, Delivery, DropCause, Ecn, Packet, Sink};

#[derive(Debug)]
pub(crate) struct Bottleneck<T> {
    server: Server,
    queue: Queue<T>,
    /// The packet being sent and when its last bit is out.
    in_service: Option<(Item<T>, Instant)>,
    config: QueueConfig,
    overhead: Bytes,
}

impl<T> Bottleneck<T> {
    pub(crate) fn new(config: &LinkConfig, seed: u64) -> Self {
        Self {
            server: Server::new(&config.rate),
            queue: Queue::new(config, seed),
            in_service: None,
            config: config.queue,
            overhead: config.overhead,
        }
    }

    /// When something happens next: a packet is out, or the next one is taken from the queue. `Instant::MAX` for never.
    #[inline]
    pub(crate) fn next_event(&self) -> Instant {
        match &self.in_service {
            Some((_, out)) => *out,
            None if self.queue.is_empty() => Instant::MAX,
            None => self.server.next_start(),
        }
    }

    /// A packet arrives; everything due up to this moment has happened. Returns it where there is no bottleneck.
    #[inline]
    pub(crate) fn arrive<S: Sink<T>>(
        &mut self,
        packet: Packet<T>,
        number: u64,
        moment: &mut Moment<'_, S>,
    ) -> Option<Delivery<T>> {
        let mut item = Item { occupies: packet.size + self.overhead, packet, number, arrived: moment.at };
        if matches!(self.server, Server::Unlimited) {
            moment.enter(&item);
            moment.sink.queued(moment.at, &item.packet, number, moment.ledger.backlog);
            return Some(depart(item, moment));
        }
        let verdict = self.queue.judge(moment.at, moment.ledger.backlog.bytes, || self.server.rate());
        let mut mark = self.config.mark_above.is_some_and(|threshold| moment.ledger.backlog.bytes > threshold);
        if verdict == Verdict::Signal {
            if !self.config.ecn || item.packet.ecn == Ecn::NotEct {
                moment.drop(item.packet, number, DropCause::Aqm);
                return None;
            }
            mark = true;
        }
        let grown = moment.ledger.backlog.with(item.occupies);
        if !self.queue.drops_at_head() && !self.holds(grown) {
            moment.drop(item.packet, number, DropCause::Overflow);
            return None;
        }
        if mark {
            moment.mark(&mut item.packet, number);
        }
        let idle = self.in_service.is_none() && self.queue.is_empty();
        moment.enter(&item);
        if self.queue.drops_at_head() {
            self.push_and_make_room(item, moment);
        } else {
            moment.sink.queued(moment.at, &item.packet, number, moment.ledger.backlog);
            self.queue.push(item);
        }
        if idle && !self.queue.is_empty() {
            self.server.wake(moment.at);
            self.start(moment);
        }
        None
    }

    /// Whether the bottleneck may hold this much.
    #[inline]
    fn holds(&self, backlog: Backlog) -> bool {
        match self.config.limit {
            QueueLimit::Bytes(limit) => backlog.bytes <= limit,
            QueueLimit::Packets(limit) => backlog.packets <= limit,
        }
    }

    /// For disciplines that drop others in favour of the packet that arrives, which may be its own victim.
    fn push_and_make_room<S: Sink<T>>(&mut self, item: Item<T>, moment: &mut Moment<'_, S>) {
        let hash = item.packet.hash;
        self.queue.push(item);
        while !self.holds(moment.ledger.backlog) && !self.queue.is_empty() {
            self.queue.make_room(moment);
        }
        if let Some(item) = self.queue.last_of(hash) {
            moment.sink.queued(moment.at, &item.packet, item.number, moment.ledger.backlog);
        }
    }

    /// What `next_event` announced for this moment: returns the packet that is out, if one is.
    #[inline]
    pub(crate) fn step<S: Sink<T>>(&mut self, moment: &mut Moment<'_, S>) -> Option<Delivery<T>> {
        let out = self.in_service.take().map(|(item, _)| depart(item, moment));
        self.start(moment);
        out
    }

    /// Takes the next packet from the queue and starts to send it, where it is time to.
    #[inline]
    fn start<S: Sink<T>>(&mut self, moment: &mut Moment<'_, S>) {
        if !self.queue.is_empty() && self.server.next_start() > moment.at {
            return;
        }
        match self.queue.pop(moment) {
            Some(item) => {
                let out = self.server.send(item.occupies);
                self.in_service = Some((item, out));
            }
            None => self.queue.idle(moment.at),
        }
    }

    /// Takes out the packet in service, then those waiting, in the order they would leave.
    pub(crate) fn take_left<S: Sink<T>>(&mut self, moment: &mut Moment<'_, S>) -> Option<(Packet<T>, u64)> {
        let item = self.in_service.take().map(|(item, _)| item).or_else(|| self.queue.take())?;
        moment.leave(&item);
        Some((item.packet, item.number))
    }
}

#[inline]
fn depart<T, S: Sink<T>>(item: Item<T>, moment: &mut Moment<'_, S>) -> Delivery<T> {
    moment.leave(&item);
    let sojourn = moment.at.since(item.arrived);
    moment.sink.dequeued(moment.at, &item.packet, item.number, sojourn, moment.ledger.backlog);
    Delivery { packet: item.packet, number: item.number, due: moment.at, sojourn }
}
