//! From a link's description to netem's settings, and the refusal of what netem can't do faithfully.

use path::{Discipline, LinkConfig, LossModel, QueueLimit, RateModel};
use units::{Bytes, Duration, Probability};

use super::options::{Loss, Netem, Serializer};

/// The smallest packet that may fill a delay line: an acknowledgement without options.
const SMALLEST_PACKET: u64 = 40;
/// Packets a delay line holds where no rate bounds what enters it.
const UNBOUNDED: u32 = 10_000_000;
/// Held on top of everything by a delay line, for packets that come in a burst.
const BURST: u64 = 1_000;

/// Something of a path that netem can't do, or not as the path model does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// Of the path.
    #[error("netem has no policer; run this path with --emulator model")]
    Policer,
    /// Of the path.
    #[error("netem follows no trace of delivery opportunities; run this path with --emulator model")]
    Trace,
    /// Of the path.
    #[error(
        "netem does not change its rate in steps without losing what it holds; run this path with --emulator model"
    )]
    RateSteps,
    /// Of the path.
    #[error("netem's jitter reorders packets; run a path with jitter with --emulator model")]
    Jitter,
    /// Of the path.
    #[error("netem's reordering rule is another one (gaps and correlation); run this path with --emulator model")]
    Reordering,
    /// Of the path.
    #[error("netem has no active queue management; run a path with CoDel, FQ-CoDel or RED with --emulator model")]
    Aqm,
    /// Of the path.
    #[error("netem marks packets at random and not by its queue; run a path with ECN marking with --emulator model")]
    Marking,
    /// Of the path.
    #[error("netem has one delay for all flows; run a path with round-trip times per flow with --emulator model")]
    FlowDelay,
    /// Of the path.
    #[error(
        "netem never loses both copies of a packet that it duplicates; run a path with duplication with --emulator model"
    )]
    Duplication,
    /// Of the path.
    #[error("netem has no periodic loss; run this path with --emulator model")]
    PeriodicLoss,
    /// Of the path.
    #[error("netem does not lose packets by number; run this path with --emulator model")]
    LossList,
    /// Of the run.
    #[error("netem keeps no packets: capture with --emulator model")]
    Capture,
    /// Of the run.
    #[error("netem does not tell the fate of each packet; log packets with --emulator model")]
    PacketLog,
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionPlan {
    /// Rate, queue and loss; no delay.
    pub bottleneck: Netem,
    /// Delay, on a later hop; nothing else.
    pub delay_line: Netem,
    /// What differs from the path as it was asked for, in sentences.
    pub notes: Vec<String>,
}

/// netem's settings for a link that [`LinkConfig::check`] has passed. `seed` is that of its loss.
///
/// # Errors
/// [`Unsupported`] names the first feature that netem does not have.
pub fn plan(link: &LinkConfig, mtu: u16, seed: u64) -> Result<DirectionPlan, Unsupported> {
    refuse(link)?;
    let mut notes = Vec::new();
    let rate = match &link.rate {
        RateModel::Constant(rate) => Some(Serializer::new(*rate, link.overhead)),
        RateModel::Unlimited => None,
        RateModel::Steps(_) => return Err(Unsupported::RateSteps),
        RateModel::Trace(_) => return Err(Unsupported::Trace),
    };
    let loss = match &link.loss {
        LossModel::None => Loss::None,
        LossModel::Independent(probability) => Loss::independent(*probability),
        LossModel::Burst { average, mean_burst_milli } => Loss::burst(*average, *mean_burst_milli),
        LossModel::Periodic { .. } => return Err(Unsupported::PeriodicLoss),
        LossModel::List(_) => return Err(Unsupported::LossList),
    };
    let limit = match (rate, link.queue.limit) {
        // Nothing waits where there is no rate.
        (None, _) => UNBOUNDED,
        (Some(_), QueueLimit::Packets(packets)) => packets,
        (Some(_), QueueLimit::Bytes(bytes)) => {
            let packet = Bytes::new(u64::from(mtu)) + link.overhead;
            let packets = u32::try_from(bytes.as_u64() / packet.as_u64().max(1)).unwrap_or(u32::MAX).max(1);
            notes.push(format!(
                "netem counts its queue in packets: {bytes} became {packets} packets of {packet}, so that small packets fill it as \
                 fast as large ones"
            ));
            packets
        }
    };
    let bottleneck = Netem { latency: Duration::ZERO, limit, loss, rate, seed: (loss != Loss::None).then_some(seed) };
    let delay_line =
        Netem { latency: link.delay, limit: delay_line_limit(link), loss: Loss::None, rate: None, seed: None };
    Ok(DirectionPlan { bottleneck, delay_line, notes })
}

fn refuse(link: &LinkConfig) -> Result<(), Unsupported> {
    let asked = [
        (link.policer.is_some(), Unsupported::Policer),
        (link.jitter != Duration::ZERO, Unsupported::Jitter),
        (link.reorder.is_some(), Unsupported::Reordering),
        (link.queue.discipline != Discipline::DropTail, Unsupported::Aqm),
        (link.queue.ecn || link.queue.mark_above.is_some(), Unsupported::Marking),
        (!link.flow_delay.is_empty(), Unsupported::FlowDelay),
        (link.duplicate != Probability::ZERO, Unsupported::Duplication),
    ];
    match asked.into_iter().find(|(asked, _)| *asked) {
        Some((_, feature)) => Err(feature),
        None => Ok(()),
    }
}

/// More packets than the bottleneck can send during the delay, by half, even if all are the smallest. Unlike a queue's limit this
/// costs nothing: netem allocates packet by packet.
fn delay_line_limit(link: &LinkConfig) -> u32 {
    match &link.rate {
        RateModel::Constant(rate) => {
            let held = rate.bytes_in(link.delay).as_u64() / SMALLEST_PACKET;
            u32::try_from(held.saturating_add(held / 2 + BURST)).unwrap_or(u32::MAX)
        }
        _ => UNBOUNDED,
    }
}

#[cfg(test)]
mod tests {
    use path::{CoDel, FlowId, Policer, QueueConfig, Reorder, Trace};
    use units::{Instant, Rate};

    use super::*;

    fn link() -> LinkConfig {
        LinkConfig {
            rate: RateModel::Constant(Rate::from_mbps(100)),
            delay: Duration::from_millis(40),
            flow_delay: vec![],
            jitter: Duration::ZERO,
            reorder: None,
            duplicate: Probability::ZERO,
            loss: LossModel::None,
            policer: None,
            queue: QueueConfig {
                limit: QueueLimit::Packets(100),
                discipline: Discipline::DropTail,
                ecn: false,
                mark_above: None,
            },
            overhead: Bytes::ZERO,
        }
    }

    #[test]
    fn the_bottleneck_has_no_delay_and_the_delay_line_nothing_else() {
        let lossy = LinkConfig { loss: LossModel::Independent(Probability::from_ppb(10_000_000)), ..link() };
        let plan = plan(&lossy, 1_500, 3).unwrap();
        assert_eq!(
            plan.bottleneck,
            Netem {
                latency: Duration::ZERO,
                limit: 100,
                loss: Loss::independent(Probability::from_ppb(10_000_000)),
                rate: Some(Serializer { bytes_per_second: 12_500_000, packet_overhead: -14 }),
                seed: Some(3),
            }
        );
        // 40 ms at 100 Mbit/s are 500 kB: 12,500 packets of 40 bytes, and half of that.
        let line = Netem {
            latency: Duration::from_millis(40),
            limit: 12_500 * 3 / 2 + 1_000,
            loss: Loss::None,
            rate: None,
            seed: None,
        };
        assert_eq!(plan.delay_line, line);
        assert_eq!(plan.notes, Vec::<String>::new());
    }

    #[test]
    fn a_queue_in_bytes_becomes_packets_and_says_so() {
        let mut bytes = link();
        bytes.queue.limit = QueueLimit::Bytes(Bytes::new(500_000));
        let plain = plan(&bytes, 1_500, 1).unwrap();
        assert_eq!(plain.bottleneck.limit, 333);
        assert!(plain.notes[0].contains("333 packets"), "{:?}", plain.notes);
        bytes.overhead = Bytes::new(38);
        assert_eq!(plan(&bytes, 1_500, 1).unwrap().bottleneck.limit, 325);
        bytes.queue.limit = QueueLimit::Bytes(Bytes::new(1_000));
        assert_eq!(plan(&bytes, 9_000, 1).unwrap().bottleneck.limit, 1);
    }

    #[test]
    fn a_link_without_a_rate_drops_nothing_by_its_queue() {
        let free = LinkConfig { rate: RateModel::Unlimited, ..link() };
        let plan = plan(&free, 1_500, 1).unwrap();
        assert_eq!((plan.bottleneck.rate, plan.bottleneck.limit), (None, UNBOUNDED));
        assert_eq!(plan.delay_line.limit, UNBOUNDED);
    }

    #[test]
    fn the_fastest_link_with_the_longest_delay_has_a_limit_that_fits() {
        let far = LinkConfig {
            rate: RateModel::Constant(Rate::from_bps(1_000_000_000_000_000_000)),
            delay: Duration::from_secs(3_600),
            ..link()
        };
        assert_eq!(plan(&far, 1_500, 1).unwrap().delay_line.limit, u32::MAX);
    }

    #[test]
    fn what_netem_cannot_do_is_refused_by_name_with_the_way_out() {
        let queue = |change: fn(&mut QueueConfig)| {
            let mut changed = link();
            change(&mut changed.queue);
            changed
        };
        let policer = Policer { rate: Rate::from_mbps(10), burst: Bytes::new(15_000) };
        let reorder = Reorder { probability: Probability::from_ppb(1), advance: Duration::from_millis(1) };
        let refused = [
            (LinkConfig { policer: Some(policer), ..link() }, Unsupported::Policer, "policer"),
            (
                LinkConfig { rate: RateModel::Trace(Trace { opportunities_ms: vec![1] }), ..link() },
                Unsupported::Trace,
                "trace",
            ),
            (
                LinkConfig { rate: RateModel::Steps(vec![(Instant::ZERO, Rate::from_mbps(1))]), ..link() },
                Unsupported::RateSteps,
                "steps",
            ),
            (LinkConfig { jitter: Duration::from_millis(1), ..link() }, Unsupported::Jitter, "jitter"),
            (LinkConfig { reorder: Some(reorder), ..link() }, Unsupported::Reordering, "reordering"),
            (
                queue(|queue| {
                    let codel = CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
                    queue.discipline = Discipline::CoDel(codel);
                }),
                Unsupported::Aqm,
                "active queue management",
            ),
            (queue(|queue| queue.ecn = true), Unsupported::Marking, "mark"),
            (queue(|queue| queue.mark_above = Some(Bytes::new(1))), Unsupported::Marking, "mark"),
            (
                LinkConfig { flow_delay: vec![(FlowId(1), Duration::from_millis(1))], ..link() },
                Unsupported::FlowDelay,
                "per flow",
            ),
            (LinkConfig { duplicate: Probability::from_ppb(1), ..link() }, Unsupported::Duplication, "duplicat"),
            (
                LinkConfig { loss: LossModel::Periodic { every: 2, offset: 0 }, ..link() },
                Unsupported::PeriodicLoss,
                "periodic loss",
            ),
            (LinkConfig { loss: LossModel::List(vec![1]), ..link() }, Unsupported::LossList, "number"),
        ];
        for (link, wanted, word) in refused {
            let error = plan(&link, 1_500, 1).unwrap_err();
            assert_eq!(error, wanted);
            let sentence = error.to_string();
            assert!(sentence.contains(word) && sentence.contains("--emulator model"), "{sentence}");
        }
        assert!(plan(&link(), 1_500, 1).is_ok());
    }
}
