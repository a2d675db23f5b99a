use units::{Instant, Probability};

use crate::bottleneck::Bottleneck;
use crate::config::LinkConfig;
use crate::ledger::{Ledger, Moment};
use crate::loss::Loss;
use crate::policer::TokenBucket;
use crate::random::{Stage, Stream};
use crate::wire::Wire;
use crate::{Backlog, ConfigError, Counters, DropCause, Packet, Sink};

/// One direction of a path.
///
/// The driver calls [`offer`](Self::offer) for each packet that arrives and [`advance`](Self::advance) when time has passed,
/// both with a time that never goes back. What happens between two calls is worked out at the next one, at the exact
/// times it happened: calling late, early or often changes nothing that a [`Sink`] is told, only when.
#[derive(Debug)]
pub struct Link<T> {
    now: Instant,
    arrivals: u64,
    duplicate: Option<(Probability, Stream)>,
    loss: Loss,
    policer: Option<TokenBucket>,
    bottleneck: Bottleneck<T>,
    wire: Wire<T>,
    ledger: Ledger,
}

impl<T: Clone> Link<T> {
    /// An empty link at [`Instant::ZERO`]. Every random choice follows from `seed`.
    ///
    /// # Errors
    /// What [`LinkConfig::check`] finds.
    pub fn new(config: &LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            now: Instant::ZERO,
            arrivals: 0,
            duplicate: (config.duplicate > Probability::ZERO)
                .then(|| (config.duplicate, Stream::new(seed, Stage::Duplicate))),
            loss: Loss::new(&config.loss, seed),
            policer: config.policer.as_ref().map(TokenBucket::new),
            bottleneck: Bottleneck::new(config, seed),
            wire: Wire::new(config, seed),
            ledger: Ledger::default(),
        })
    }

    /// A packet arrives at `now`. First does all that [`advance`](Self::advance) would do.
    ///
    /// Time never goes back; an earlier `now` counts as the latest one seen.
    pub fn offer<S: Sink<T>>(&mut self, now: Instant, packet: Packet<T>, sink: &mut S) {
        self.advance(now, sink);
        let number = self.arrivals;
        self.arrivals += 1;
        self.ledger.counters.offered += 1;
        let copy = match &mut self.duplicate {
            Some((probability, stream)) => probability.happens(stream.draw()).then(|| packet.clone()),
            None => None,
        };
        if copy.is_some() {
            // Before the original can be dropped: whoever counts references has to know of the second one first.
            sink.duplicated(&packet, number);
        }
        let lost = self.loss.loses(number);
        self.admit(packet, number, lost, sink);
        if let Some(copy) = copy {
            self.ledger.counters.duplicated += 1;
            let lost = self.loss.loses_copy(number);
            self.admit(copy, number, lost, sink);
        }
    }

    fn admit<S: Sink<T>>(&mut self, packet: Packet<T>, number: u64, lost: bool, sink: &mut S) {
        let mut moment = Moment { at: self.now, ledger: &mut self.ledger, sink };
        if lost {
            return moment.drop(packet, number, DropCause::Random);
        }
        if let Some(policer) = &mut self.policer
            && !policer.admits(moment.at, packet.size)
        {
            return moment.drop(packet, number, DropCause::Policer);
        }
        if let Some(delivery) = self.bottleneck.arrive(packet, number, &mut moment) {
            self.wire.push(delivery);
        }
    }

    /// When to call [`advance`](Self::advance) next: never later than the next delivery, and nothing is to be gained from
    /// calling earlier. `None` while the link is empty.
    pub fn next_event(&self) -> Option<Instant> {
        let departs = self.bottleneck.next_event() + self.wire.shortest_delay();
        Some(departs.min(self.wire.next_due())).filter(|next| *next < Instant::MAX)
    }

    /// Lets everything happen that is due up to and including `now`, in order of time: packets leave the bottleneck, and
    /// reach the far end. Of two deliveries due at the same time the one that left the bottleneck first is first.
    pub fn advance<S: Sink<T>>(&mut self, now: Instant, sink: &mut S) {
        debug_assert!(now >= self.now, "time went back from {} to {now}", self.now);
        self.now = self.now.max(now);
        let mut departs = self.bottleneck.next_event();
        let mut due = self.wire.next_due();
        loop {
            let at = departs.min(due);
            if at > self.now || at == Instant::MAX {
                return;
            }
            if departs <= due {
                let mut moment = Moment { at, ledger: &mut self.ledger, sink };
                if let Some(delivery) = self.bottleneck.step(&mut moment) {
                    self.wire.push(delivery);
                }
                departs = self.bottleneck.next_event();
            } else if let Some(delivery) = self.wire.pop() {
                self.ledger.counters.delivered += 1;
                self.ledger.counters.delivered_bytes += delivery.packet.size;
                sink.deliver(delivery);
            }
            due = self.wire.next_due();
        }
    }

    /// Hands back every packet still inside with [`Sink::left`], those on their way first, and counts them as `left`. The
    /// link is empty afterwards and can be used on.
    pub fn drain<S: Sink<T>>(&mut self, sink: &mut S) {
        while let Some(delivery) = self.wire.pop() {
            self.ledger.counters.left += 1;
            sink.left(delivery.packet, delivery.number);
        }
        let mut moment = Moment { at: self.now, ledger: &mut self.ledger, sink };
        while let Some((packet, number)) = self.bottleneck.take_left(&mut moment) {
            moment.ledger.counters.left += 1;
            moment.sink.left(packet, number);
        }
    }

    /// Totals since the start.
    pub fn counters(&self) -> Counters {
        self.ledger.counters
    }

    /// What waits at the bottleneck as of the last call, the packet in service included.
    pub fn backlog(&self) -> Backlog {
        self.ledger.backlog
    }

    /// Packets between the bottleneck and the far end as of the last call.
    pub fn in_flight(&self) -> usize {
        self.wire.count()
    }
}
