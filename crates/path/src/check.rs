//! Refuses what no link can be.

use thiserror::Error;
use units::{Bytes, Duration, Probability, Rate};

use crate::FlowId;
use crate::config::{Discipline, LinkConfig, LossModel, QueueLimit, RateModel};

/// The largest packet a queue, a quantum or a token bucket must hold: one full Ethernet packet, without overhead.
pub(crate) const FULL_PACKET: Bytes = Bytes::new(1500);
/// The fastest link the arithmetic is made for.
pub(crate) const FASTEST: Rate = Rate::from_bps(1_000_000_000_000_000_000);
/// Queues an FQ-CoDel can have.
pub(crate) const MOST_BUCKETS: u32 = 65_536;
/// Beyond this RED's average hardly moves in any experiment.
pub(crate) const MOST_WEIGHT_SHIFT: u8 = 24;

/// What makes a [`LinkConfig`] impossible, and how to mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A constant rate, or the rate from one step on, is zero.
    #[error("a rate of zero lets nothing through; give one above zero (for an outage, a very small one)")]
    RateZero,
    /// Faster than the arithmetic goes.
    #[error("a rate of {0} is above the largest one, {FASTEST}; use an unlimited rate")]
    RateTooHigh(Rate),
    /// No first rate.
    #[error("the rate has no steps; give at least the one that holds from the start")]
    StepsEmpty,
    /// Two steps out of order, or at the same time. Holds the later one's place, from 0.
    #[error("rate step {0} is not later than the one before; sort the steps by time and keep one for each time")]
    StepsNotRising(usize),
    /// No delivery opportunities.
    #[error("the trace is empty; it needs at least one line with a time in milliseconds")]
    TraceEmpty,
    /// An entry lies before the one above it. Holds its place, from 0.
    #[error("entry {0} of the trace lies before the one above it; times in a trace never fall")]
    TraceFalls(usize),
    /// The trace has no length, so it would turn over for ever at its start.
    #[error("every entry of the trace is at 0 ms; the last one gives its length and must be above 0")]
    TraceWithoutLength,
    /// Two delays for one flow.
    #[error("flow {} has two delays; give it one", .0.0)]
    FlowDelayTwice(FlowId),
    /// Nothing arrives.
    #[error("a loss of 100% lets nothing through; give one below 100%")]
    LossAll,
    /// Bursts shorter than a packet.
    #[error("a mean loss burst of {0}/1000 packet is shorter than one packet; give 1000 or more")]
    BurstTooShort(u32),
    /// Bursts of this length, one packet apart, still lose less.
    #[error(
        "bursts of {mean_burst_milli}/1000 packets, each followed by at least one packet that arrives, never lose {average} \
         on average; give longer bursts or a lower average"
    )]
    BurstTooRare {
        /// The asked average.
        average: Probability,
        /// The asked mean length, in thousandths.
        mean_burst_milli: u32,
    },
    /// Every packet lost, or a division by zero.
    #[error("periodic loss of every {0}. packet lets nothing through; give a distance of 2 or more")]
    PeriodTooShort(u64),
    /// The list of lost packets is out of order, or names one twice. Holds the place, from 0.
    #[error("entry {0} of the list of lost packets is not above the one before; sort it and name each packet once")]
    LossListNotRising(usize),
    /// A policer that never earns tokens.
    #[error("a policer with a rate of zero lets nothing through but its burst; give a rate above zero or leave it out")]
    PolicerRateZero,
    /// No full packet ever fits into the bucket.
    #[error("a policer's burst of {0} never admits a full packet; give {FULL_PACKET} or more")]
    PolicerBurstTooSmall(Bytes),
    /// No full packet fits into the queue.
    #[error("a queue of {limit} holds no full packet, which takes {needed} with overhead; give that or more")]
    QueueTooSmall {
        /// The asked limit.
        limit: Bytes,
        /// A full packet with overhead.
        needed: Bytes,
    },
    /// No packet fits into the queue.
    #[error("a queue of 0 packets has no place for the one in service, which counts; give 1 or more")]
    QueueOfNoPackets,
    /// CoDel's target or interval is zero, or the target is above the interval.
    #[error(
        "CoDel needs a target above zero and an interval not below it, not {target} and {interval}; RFC 8289 recommends \
         5 ms and 100 ms"
    )]
    CoDelTimes {
        /// The asked target.
        target: Duration,
        /// The asked interval.
        interval: Duration,
    },
    /// No queue to put a packet in, or too many.
    #[error("FQ-CoDel with {0} queues; give 1 to {MOST_BUCKETS} (RFC 8290: 1024)")]
    FqCoDelBuckets(u32),
    /// A full packet needs several rounds.
    #[error(
        "FQ-CoDel's quantum of {quantum} is less than a full packet, which takes {needed} with overhead; give that or more"
    )]
    FqCoDelQuantum {
        /// The asked quantum.
        quantum: Bytes,
        /// A full packet with overhead.
        needed: Bytes,
    },
    /// RED's thresholds are out of order.
    #[error("RED's lower threshold {min} is not below the upper one {max}; give a lower or a higher one")]
    RedThresholds {
        /// The asked lower threshold.
        min: Bytes,
        /// The asked upper threshold.
        max: Bytes,
    },
    /// RED's average would stand still.
    #[error(
        "RED's weight of 1/2^{0} hardly ever moves the average; give a shift of {MOST_WEIGHT_SHIFT} or less (usual: 9)"
    )]
    RedWeight(u8),
    /// Packets would arrive before they left.
    #[error("packets that overtake skip {advance} of a delay of {delay}; give at most the (shortest) delay")]
    ReorderTooEarly {
        /// The asked advance.
        advance: Duration,
        /// The shortest delay of any flow.
        delay: Duration,
    },
}

impl LinkConfig {
    /// Whether a link can be like this.
    ///
    /// # Errors
    /// The first impossible value, in the order of the fields' stages.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_loss()?;
        self.check_policer()?;
        self.check_queue()?;
        self.check_rate()?;
        self.check_delay()
    }

    fn check_loss(&self) -> Result<(), ConfigError> {
        match &self.loss {
            LossModel::None => Ok(()),
            LossModel::Independent(Probability::ONE) => Err(ConfigError::LossAll),
            LossModel::Independent(_) => Ok(()),
            LossModel::Burst { average: Probability::ONE, .. } => Err(ConfigError::LossAll),
            LossModel::Burst { mean_burst_milli, .. } if *mean_burst_milli < 1000 => {
                Err(ConfigError::BurstTooShort(*mean_burst_milli))
            }
            LossModel::Burst { average, mean_burst_milli } => {
                // The chance to enter a burst, average / (1 - average) / mean length, is at most 1.
                let lost = u64::from(average.as_ppb());
                let arrived = u64::from(Probability::ONE.as_ppb()) - lost;
                match lost * 1000 <= arrived * u64::from(*mean_burst_milli) {
                    true => Ok(()),
                    false => Err(ConfigError::BurstTooRare { average: *average, mean_burst_milli: *mean_burst_milli }),
                }
            }
            LossModel::Periodic { every, .. } if *every < 2 => Err(ConfigError::PeriodTooShort(*every)),
            LossModel::Periodic { .. } => Ok(()),
            LossModel::List(numbers) => match numbers.windows(2).position(|pair| pair[0] >= pair[1]) {
                Some(place) => Err(ConfigError::LossListNotRising(place + 1)),
                None => Ok(()),
            },
        }
    }

    fn check_policer(&self) -> Result<(), ConfigError> {
        match self.policer {
            Some(policer) if policer.rate == Rate::ZERO => Err(ConfigError::PolicerRateZero),
            Some(policer) if policer.rate > FASTEST => Err(ConfigError::RateTooHigh(policer.rate)),
            Some(policer) if policer.burst < FULL_PACKET => Err(ConfigError::PolicerBurstTooSmall(policer.burst)),
            _ => Ok(()),
        }
    }

    fn check_queue(&self) -> Result<(), ConfigError> {
        let needed = FULL_PACKET + self.overhead;
        if self.rate != RateModel::Unlimited {
            match self.queue.limit {
                QueueLimit::Packets(0) => return Err(ConfigError::QueueOfNoPackets),
                QueueLimit::Bytes(limit) if limit < needed => return Err(ConfigError::QueueTooSmall { limit, needed }),
                _ => {}
            }
        }
        let (codel, red) = match self.queue.discipline {
            Discipline::DropTail => (None, None),
            Discipline::CoDel(codel) => (Some(codel), None),
            Discipline::FqCoDel { codel, buckets, quantum } => {
                if !(1..=MOST_BUCKETS).contains(&buckets) {
                    return Err(ConfigError::FqCoDelBuckets(buckets));
                }
                if quantum < needed {
                    return Err(ConfigError::FqCoDelQuantum { quantum, needed });
                }
                (Some(codel), None)
            }
            Discipline::Red(red) => (None, Some(red)),
        };
        if let Some(codel) = codel
            && (codel.target == Duration::ZERO || codel.target > codel.interval)
        {
            return Err(ConfigError::CoDelTimes { target: codel.target, interval: codel.interval });
        }
        match red {
            Some(red) if red.min >= red.max => Err(ConfigError::RedThresholds { min: red.min, max: red.max }),
            Some(red) if red.weight_shift > MOST_WEIGHT_SHIFT => Err(ConfigError::RedWeight(red.weight_shift)),
            _ => Ok(()),
        }
    }

    fn check_rate(&self) -> Result<(), ConfigError> {
        let possible = |rate: Rate| match rate {
            Rate::ZERO => Err(ConfigError::RateZero),
            rate if rate > FASTEST => Err(ConfigError::RateTooHigh(rate)),
            _ => Ok(()),
        };
        match &self.rate {
            RateModel::Unlimited => Ok(()),
            RateModel::Constant(rate) => possible(*rate),
            RateModel::Steps(steps) if steps.is_empty() => Err(ConfigError::StepsEmpty),
            RateModel::Steps(steps) => {
                steps.iter().try_for_each(|(_, rate)| possible(*rate))?;
                match steps.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
                    Some(place) => Err(ConfigError::StepsNotRising(place + 1)),
                    None => Ok(()),
                }
            }
            RateModel::Trace(trace) => {
                let entries = &trace.opportunities_ms;
                if let Some(place) = entries.windows(2).position(|pair| pair[0] > pair[1]) {
                    return Err(ConfigError::TraceFalls(place + 1));
                }
                match entries.last() {
                    None => Err(ConfigError::TraceEmpty),
                    Some(0) => Err(ConfigError::TraceWithoutLength),
                    Some(_) => Ok(()),
                }
            }
        }
    }

    fn check_delay(&self) -> Result<(), ConfigError> {
        for (place, (flow, _)) in self.flow_delay.iter().enumerate() {
            if self.flow_delay[..place].iter().any(|(earlier, _)| earlier == flow) {
                return Err(ConfigError::FlowDelayTwice(*flow));
            }
        }
        let shortest = self.flow_delay.iter().map(|(_, delay)| *delay).fold(self.delay, Duration::min);
        match self.reorder {
            Some(reorder) if reorder.advance > shortest => {
                Err(ConfigError::ReorderTooEarly { advance: reorder.advance, delay: shortest })
            }
            _ => Ok(()),
        }
    }
}
