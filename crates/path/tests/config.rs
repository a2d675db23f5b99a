//! Impossible links are refused with a reason and a way out, possible ones at the edge are not.

mod common;

use common::{bottleneck, ms, open_link, with_queue};
use path::{
    CoDel, ConfigError, Discipline, FlowId, Link, LinkConfig, LossModel, Policer, QueueLimit, RateModel, Red, Reorder,
    Trace,
};
use units::{Bytes, Duration, Probability, Rate};

const RATE: u64 = 1_000_000;

fn rate(model: RateModel) -> LinkConfig {
    LinkConfig { rate: model, ..open_link() }
}

fn loss(model: LossModel) -> LinkConfig {
    LinkConfig { loss: model, ..open_link() }
}

fn trace(entries: &[u32]) -> LinkConfig {
    rate(RateModel::Trace(Trace { opportunities_ms: entries.to_vec() }))
}

fn steps(steps: &[(u64, u64)]) -> LinkConfig {
    rate(RateModel::Steps(steps.iter().map(|(at, bps)| (ms(*at), Rate::from_bps(*bps))).collect()))
}

fn limit(limit: QueueLimit) -> LinkConfig {
    LinkConfig { overhead: Bytes::new(14), ..with_queue(bottleneck(RATE), |queue| queue.limit = limit) }
}

fn discipline(discipline: Discipline) -> LinkConfig {
    LinkConfig { overhead: Bytes::new(14), ..with_queue(bottleneck(RATE), |queue| queue.discipline = discipline) }
}

fn codel(target: u64, interval: u64) -> CoDel {
    CoDel { target: Duration::from_millis(target), interval: Duration::from_millis(interval) }
}

fn fq(buckets: u32, quantum: u64) -> LinkConfig {
    discipline(Discipline::FqCoDel { codel: codel(5, 100), buckets, quantum: Bytes::new(quantum) })
}

fn red(min: u64, max: u64, weight_shift: u8) -> LinkConfig {
    let max_probability = Probability::from_ppb(100_000_000);
    discipline(Discipline::Red(Red { min: Bytes::new(min), max: Bytes::new(max), max_probability, weight_shift }))
}

fn burst(percent: u32, mean_burst_milli: u32) -> LinkConfig {
    loss(LossModel::Burst { average: Probability::from_ppb(percent * 10_000_000), mean_burst_milli })
}

fn policer(bps: u64, burst: u64) -> LinkConfig {
    LinkConfig { policer: Some(Policer { rate: Rate::from_bps(bps), burst: Bytes::new(burst) }), ..open_link() }
}

fn reorder(advance: u64, delay: u64, flow_delay: u64) -> LinkConfig {
    LinkConfig {
        delay: Duration::from_millis(delay),
        flow_delay: vec![(FlowId(1), Duration::from_millis(flow_delay))],
        reorder: Some(Reorder {
            probability: Probability::from_ppb(1_000_000),
            advance: Duration::from_millis(advance),
        }),
        ..open_link()
    }
}

#[test]
fn impossible_links_are_refused_and_their_possible_neighbours_are_not() {
    let always = Probability::ONE;
    let almost = Probability::from_ppb(999_999_999);
    let ppb = |percent: u32| Probability::from_ppb(percent * 10_000_000);
    let cases = [
        (bottleneck(0), ConfigError::RateZero, bottleneck(1)),
        (
            bottleneck(1_000_000_000_000_000_001),
            ConfigError::RateTooHigh(Rate::from_bps(1_000_000_000_000_000_001)),
            bottleneck(1_000_000_000_000_000_000),
        ),
        (steps(&[]), ConfigError::StepsEmpty, steps(&[(5, RATE)])),
        (steps(&[(0, RATE), (5, 0)]), ConfigError::RateZero, steps(&[(0, RATE), (5, 1)])),
        (steps(&[(0, RATE), (5, 7), (5, 8)]), ConfigError::StepsNotRising(2), steps(&[(0, RATE), (5, 7), (6, 8)])),
        (trace(&[]), ConfigError::TraceEmpty, trace(&[1])),
        (trace(&[0, 0]), ConfigError::TraceWithoutLength, trace(&[0, 0, 1])),
        (trace(&[3, 5, 4]), ConfigError::TraceFalls(2), trace(&[3, 5, 5])),
        (loss(LossModel::Independent(always)), ConfigError::LossAll, loss(LossModel::Independent(almost))),
        (loss(LossModel::Burst { average: always, mean_burst_milli: 5000 }), ConfigError::LossAll, burst(99, 99_000)),
        (burst(1, 999), ConfigError::BurstTooShort(999), burst(1, 1000)),
        (burst(51, 1000), ConfigError::BurstTooRare { average: ppb(51), mean_burst_milli: 1000 }, burst(50, 1000)),
        (burst(76, 3000), ConfigError::BurstTooRare { average: ppb(76), mean_burst_milli: 3000 }, burst(75, 3000)),
        (
            loss(LossModel::Periodic { every: 1, offset: 9 }),
            ConfigError::PeriodTooShort(1),
            loss(LossModel::Periodic { every: 2, offset: 9 }),
        ),
        (loss(LossModel::List(vec![1, 3, 3])), ConfigError::LossListNotRising(2), loss(LossModel::List(vec![1, 3, 4]))),
        (policer(0, 1500), ConfigError::PolicerRateZero, policer(1, 1500)),
        (policer(RATE, 1499), ConfigError::PolicerBurstTooSmall(Bytes::new(1499)), policer(RATE, 1500)),
        (limit(QueueLimit::Packets(0)), ConfigError::QueueOfNoPackets, limit(QueueLimit::Packets(1))),
        (
            limit(QueueLimit::Bytes(Bytes::new(1513))),
            ConfigError::QueueTooSmall { limit: Bytes::new(1513), needed: Bytes::new(1514) },
            limit(QueueLimit::Bytes(Bytes::new(1514))),
        ),
        (
            discipline(Discipline::CoDel(codel(0, 100))),
            ConfigError::CoDelTimes { target: Duration::ZERO, interval: Duration::from_millis(100) },
            discipline(Discipline::CoDel(codel(1, 100))),
        ),
        (
            discipline(Discipline::CoDel(codel(101, 100))),
            ConfigError::CoDelTimes { target: Duration::from_millis(101), interval: Duration::from_millis(100) },
            discipline(Discipline::CoDel(codel(100, 100))),
        ),
        (fq(0, 1514), ConfigError::FqCoDelBuckets(0), fq(1, 1514)),
        (fq(65_537, 1514), ConfigError::FqCoDelBuckets(65_537), fq(65_536, 1514)),
        (
            fq(1024, 1513),
            ConfigError::FqCoDelQuantum { quantum: Bytes::new(1513), needed: Bytes::new(1514) },
            fq(1024, 1514),
        ),
        (
            red(9000, 9000, 9),
            ConfigError::RedThresholds { min: Bytes::new(9000), max: Bytes::new(9000) },
            red(9000, 9001, 9),
        ),
        (red(1, 2, 25), ConfigError::RedWeight(25), red(1, 2, 24)),
        (
            reorder(4, 3, 9),
            ConfigError::ReorderTooEarly { advance: Duration::from_millis(4), delay: Duration::from_millis(3) },
            reorder(4, 4, 9),
        ),
        (
            reorder(4, 9, 3),
            ConfigError::ReorderTooEarly { advance: Duration::from_millis(4), delay: Duration::from_millis(3) },
            reorder(3, 9, 3),
        ),
    ];
    for (impossible, error, possible) in cases {
        assert_eq!(impossible.check(), Err(error));
        assert_eq!(Link::<()>::new(&impossible, 1).err(), Some(error));
        assert_eq!(possible.check(), Ok(()), "the neighbour of {error:?}");
        assert!(Link::<()>::new(&possible, 1).is_ok());
    }
}

#[test]
fn a_flow_has_one_delay() {
    let twice = |second| LinkConfig {
        flow_delay: vec![(FlowId(3), Duration::ZERO), (FlowId(second), Duration::from_millis(1))],
        ..open_link()
    };
    assert_eq!(twice(3).check(), Err(ConfigError::FlowDelayTwice(FlowId(3))));
    assert_eq!(twice(4).check(), Ok(()));
}

#[test]
fn a_queue_is_not_looked_at_where_nothing_waits() {
    assert_eq!(with_queue(open_link(), |queue| queue.limit = QueueLimit::Packets(0)).check(), Ok(()));
}

#[test]
fn errors_say_what_is_wrong_with_its_figures_and_how_to_mend_it() {
    let said = |config: LinkConfig| config.check().unwrap_err().to_string();
    assert_eq!(
        said(limit(QueueLimit::Bytes(Bytes::new(1000)))),
        "a queue of 1000 B holds no full packet, which takes 1514 B with overhead; give that or more"
    );
    assert_eq!(
        said(burst(60, 1000)),
        "bursts of 1000/1000 packets, each followed by at least one packet that arrives, never lose 60% on average; give \
         longer bursts or a lower average"
    );
    assert_eq!(
        said(bottleneck(0)),
        "a rate of zero lets nothing through; give one above zero (for an outage, a very small one)"
    );
    assert_eq!(
        said(reorder(4, 3, 9)),
        "packets that overtake skip 4 ms of a delay of 3 ms; give at most the (shortest) delay"
    );
}
