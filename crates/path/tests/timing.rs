//! What a link does must not depend on when its driver calls, only on what arrives when, and on the seed.

mod common;

use common::{Event, Log, at, open_link};
use path::{
    CoDel, Discipline, Ecn, FlowId, Link, LinkConfig, LossModel, Packet, Policer, QueueConfig, QueueLimit, RateModel,
    Red, Reorder, Trace,
};
use proptest::prelude::*;
use proptest::sample::select;
use units::{Bytes, Duration, Instant, Probability, Rate};

fn rate_models() -> impl Strategy<Value = RateModel> {
    let rate = |bps| RateModel::Constant(Rate::from_bps(bps));
    // Full packets take 1 ms, 1 us, 15 ns and an odd time.
    let constant = select(vec![12_000_000, 12_000_000_000, 800_000_000_000, 7_777_777]).prop_map(rate);
    let steps = prop::collection::vec((1u64..20, 1u64..30), 1..6).prop_map(|pieces| {
        let mut time = 0;
        let steps = pieces.iter().map(|(millis, mbps)| {
            time += millis;
            (at(time * 1_000_000), Rate::from_mbps(*mbps))
        });
        RateModel::Steps(steps.collect())
    });
    let trace = prop::collection::vec(0u32..30, 1..40).prop_map(|mut opportunities_ms| {
        opportunities_ms.sort_unstable();
        opportunities_ms.push(31);
        RateModel::Trace(Trace { opportunities_ms })
    });
    prop_oneof![1 => Just(RateModel::Unlimited), 4 => constant, 2 => steps, 2 => trace]
}

fn loss_models() -> impl Strategy<Value = LossModel> {
    let some = Probability::from_ppb(50_000_000);
    prop_oneof![
        Just(LossModel::None),
        Just(LossModel::Independent(some)),
        Just(LossModel::Burst { average: some, mean_burst_milli: 2500 }),
        Just(LossModel::Periodic { every: 7, offset: 3 }),
        Just(LossModel::List(vec![0, 5, 6, 30])),
    ]
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    let codel = CoDel { target: Duration::from_millis(1), interval: Duration::from_millis(5) };
    let red = Red {
        min: Bytes::new(3000),
        max: Bytes::new(9000),
        max_probability: Probability::from_ppb(200_000_000),
        weight_shift: 2,
    };
    select(vec![
        Discipline::DropTail,
        Discipline::CoDel(codel),
        Discipline::FqCoDel { codel, buckets: 8, quantum: Bytes::new(1600) },
        Discipline::Red(red),
    ])
}

fn queues() -> impl Strategy<Value = QueueConfig> {
    let limits = prop_oneof![
        (1u32..40).prop_map(QueueLimit::Packets),
        (1600u64..60_000).prop_map(|bytes| QueueLimit::Bytes(Bytes::new(bytes))),
    ];
    let mark_above = prop::option::of((0u64..20_000).prop_map(Bytes::new));
    (limits, disciplines(), any::<bool>(), mark_above).prop_map(|(limit, discipline, ecn, mark_above)| QueueConfig {
        limit,
        discipline,
        ecn,
        mark_above,
    })
}

/// Links of every kind, with delays that make deliveries coincide.
fn links() -> impl Strategy<Value = LinkConfig> {
    let millis = || select(vec![1u64, 2, 5]).prop_map(Duration::from_millis);
    let flow_delay = prop::collection::btree_map((0u16..4).prop_map(FlowId), millis(), 0..3);
    let reorder = prop::option::of(select(vec![1_000_000u64, 999_999, 0]).prop_map(|nanos| Reorder {
        probability: Probability::from_ppb(200_000_000),
        advance: Duration::from_nanos(nanos),
    }));
    let policer =
        prop::option::of((1u64..20).prop_map(|mbps| Policer { rate: Rate::from_mbps(mbps), burst: Bytes::new(6000) }));
    (
        rate_models(),
        (millis(), any::<bool>(), flow_delay, select(vec![0u64, 3, 1_500_000])),
        reorder,
        select(vec![0u32, 200_000_000]),
        loss_models(),
        policer,
        queues(),
        select(vec![0u64, 14]),
    )
        .prop_map(
            |(rate, (delay, no_delay, flow_delay, jitter), reorder, duplicate, loss, policer, queue, overhead)| {
                let (delay, reorder) = if no_delay { (Duration::ZERO, None) } else { (delay, reorder) };
                LinkConfig {
                    rate,
                    delay,
                    flow_delay: flow_delay.into_iter().collect(),
                    jitter: Duration::from_nanos(jitter),
                    reorder,
                    duplicate: Probability::from_ppb(duplicate),
                    loss,
                    policer,
                    queue,
                    overhead: Bytes::new(overhead),
                }
            },
        )
}

/// Arrivals of four flows, many at the same time or at times at which others leave.
fn arrivals() -> impl Strategy<Value = Vec<(Instant, Packet<u64>)>> {
    let gaps = select(vec![0u64, 0, 0, 1, 1000, 500_000, 1_000_000, 1_234_567, 40_000_000]);
    let ecn = select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    let packet = (gaps, select(vec![1500u64, 1500, 750, 40]), 0u16..4, ecn);
    prop::collection::vec(packet, 1..150).prop_map(|packets| {
        let mut time = 0;
        let each = packets.into_iter().zip(0..).map(|((gap, size, flow, ecn), token)| {
            time += gap;
            let size = Bytes::new(size);
            (at(time), Packet { token, size, flow: FlowId(flow), hash: u32::from(flow), ecn })
        });
        each.collect()
    })
}

/// Nothing appears or vanishes.
fn conserves(link: &Link<u64>) {
    let counters = link.counters();
    let dropped = counters.dropped_random + counters.dropped_overflow + counters.dropped_aqm + counters.dropped_policer;
    let inside = u64::from(link.backlog().packets) + link.in_flight() as u64;
    assert_eq!(counters.offered + counters.duplicated, counters.delivered + dropped + counters.left + inside);
}

fn time_of(event: &Event) -> Instant {
    match event {
        Event::Delivered(delivery) => delivery.due,
        Event::Dropped(at, ..) | Event::Queued(at, ..) | Event::Dequeued(at, ..) | Event::Marked(at, _) => *at,
        Event::Left(_) => Instant::MAX,
    }
}

/// Calls `advance` only once, at the end.
fn lazily(config: &LinkConfig, seed: u64, arrivals: &[(Instant, Packet<u64>)]) -> Log {
    common::run(config, seed, arrivals.iter().copied())
}

/// Calls `advance` whenever the link asks to, and checks that it never asks too late or for nothing.
fn eagerly(config: &LinkConfig, seed: u64, arrivals: &[(Instant, Packet<u64>)]) -> Log {
    let mut link = Link::new(config, seed).unwrap();
    let mut log = Log::default();
    let advance_until = |link: &mut Link<u64>, log: &mut Log, end: Instant| {
        while let Some(next) = link.next_event().filter(|next| *next <= end) {
            let before = log.0.len();
            link.advance(next, log);
            for event in &log.0[before..] {
                if let Event::Delivered(delivery) = event {
                    assert_eq!(delivery.due, next, "handed over when due");
                }
            }
            assert!(link.next_event().is_none_or(|then| then > next), "all that was due at {next} has happened");
            conserves(link);
        }
    };
    for (time, packet) in arrivals {
        advance_until(&mut link, &mut log, *time);
        link.offer(*time, *packet, &mut log);
        conserves(&link);
    }
    advance_until(&mut link, &mut log, Instant::MAX);
    assert_eq!((link.in_flight(), link.backlog().packets), (0, 0));
    log
}

/// Calls `advance` at arbitrary times, also several times at one.
fn arbitrarily(config: &LinkConfig, seed: u64, arrivals: &[(Instant, Packet<u64>)], calls: &[u64]) -> Log {
    let mut link = Link::new(config, seed).unwrap();
    let mut log = Log::default();
    let mut calls = calls.iter().cycle();
    let mut now = Instant::ZERO;
    for (time, packet) in arrivals {
        for share in calls.by_ref().take(2) {
            now += Duration::from_nanos(time.since(now).as_nanos() * share / 4);
            link.advance(now, &mut log);
        }
        link.offer(*time, *packet, &mut log);
        now = *time;
    }
    for share in calls.take(10) {
        now += Duration::from_nanos(700_000 * share);
        link.advance(now, &mut log);
    }
    link.advance(Instant::MAX, &mut log);
    log
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn fates_and_times_do_not_depend_on_when_the_driver_calls(
        config in links(),
        arrivals in arrivals(),
        seed in any::<u64>(),
        calls in prop::collection::vec(0u64..5, 3..20),
    ) {
        config.check().unwrap();
        let log = lazily(&config, seed, &arrivals);
        prop_assert!(log.0.is_sorted_by_key(time_of), "told in order of time");
        prop_assert_eq!(&eagerly(&config, seed, &arrivals), &log);
        prop_assert_eq!(&arbitrarily(&config, seed, &arrivals, &calls), &log);
    }

    #[test]
    fn the_queue_is_never_over_its_limit(config in links(), arrivals in arrivals(), seed in any::<u64>()) {
        if config.rate == RateModel::Unlimited {
            return Ok(());
        }
        for event in lazily(&config, seed, &arrivals).0 {
            if let Event::Queued(_, _, backlog) | Event::Dequeued(_, _, _, backlog) = event {
                match config.queue.limit {
                    QueueLimit::Packets(limit) => prop_assert!(backlog.packets <= limit),
                    QueueLimit::Bytes(limit) => prop_assert!(backlog.bytes <= limit),
                }
            }
        }
    }

    #[test]
    fn every_packet_ends_exactly_once(config in links(), arrivals in arrivals(), seed in any::<u64>(), end in 0usize..150) {
        let mut link = Link::new(&config, seed).unwrap();
        let mut log = Log::default();
        for (time, packet) in arrivals.iter().take(end) {
            link.offer(*time, *packet, &mut log);
        }
        link.drain(&mut log);
        conserves(&link);
        let mut ends = vec![0; arrivals.len()];
        for event in &log.0 {
            match event {
                Event::Delivered(delivery) => ends[delivery.number as usize] += 1,
                Event::Dropped(_, number, _) | Event::Left(number) => ends[*number as usize] += 1,
                _ => {}
            }
        }
        let offered = end.min(arrivals.len());
        prop_assert_eq!(ends.iter().sum::<u64>(), offered as u64 + link.counters().duplicated);
        prop_assert!(ends[..offered].iter().all(|ends| (1..=2).contains(ends)));
    }

    #[test]
    fn the_same_seed_gives_the_same_fates(config in links(), arrivals in arrivals(), seed in any::<u64>()) {
        prop_assert_eq!(lazily(&config, seed, &arrivals), lazily(&config, seed, &arrivals));
    }
}

#[test]
fn another_seed_gives_other_fates() {
    let config = LinkConfig { loss: LossModel::Independent(Probability::from_ppb(100_000_000)), ..open_link() };
    let arrivals: Vec<_> = common::stream(1000, 1).collect();
    assert_ne!(lazily(&config, 1, &arrivals), lazily(&config, 2, &arrivals));
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "time went back"))]
fn time_that_goes_back_is_a_mistake_of_the_driver() {
    let mut link = Link::new(&open_link(), 1).unwrap();
    let mut log = Log::default();
    link.advance(at(10), &mut log);
    link.offer(at(9), common::packet(0, 100), &mut log);
    link.advance(at(10), &mut log);
    assert_eq!(log.deliveries(), [(0, 10)], "without debug assertions it counts as the latest time seen");
}
