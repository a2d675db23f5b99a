//! What holds on every path.

mod common;

use common::*;
use path::{FlowId, LinkConfig, LossModel, QueueLimit, RateModel, Reorder};
use proptest::prelude::*;
use sim::{AckPolicy, ProbeConfig, Traffic, World, WorldConfig};
use units::{Bytes, Duration, Instant, Probability, Rate};

const CONTROLS: [&str; 5] = sim::CONTROLLERS;

/// Any direction: 1 kbit/s to 800 Gbit/s, 1 us to 10 s, every kind of trouble.
fn any_link() -> impl Strategy<Value = LinkConfig> {
    let rate =
        prop_oneof![(0u32..30).prop_map(|power| Rate::from_bps(1000 << power)), Just(Rate::from_bps(800_000_000_000))];
    let delay =
        prop_oneof![(0u64..24).prop_map(|power| Duration::from_micros(1 << power)), Just(Duration::from_secs(10))];
    let loss = prop_oneof![
        Just(LossModel::None),
        (0u32..900).prop_map(|milli| LossModel::Independent(Probability::from_ppb(milli * 1_000_000))),
        (1u32..300, 2000u32..50_000).prop_map(|(milli, burst)| LossModel::Burst {
            average: Probability::from_ppb(milli * 1_000_000),
            mean_burst_milli: burst
        }),
        (2u64..50, 0u64..50).prop_map(|(every, offset)| LossModel::Periodic { every, offset }),
    ];
    let trouble = (0u32..200, 0u32..200, 0u64..20_000);
    (rate, delay, 1u32..200, loss, trouble, any::<bool>()).prop_map(
        |(rate, delay, packets, loss, (reorder, duplicate, jitter_us), limited)| {
            let mut link = link(rate, delay, Bytes::new(3000));
            link.queue.limit = QueueLimit::Packets(packets);
            link.loss = loss;
            link.jitter = Duration::from_micros(jitter_us);
            link.duplicate = Probability::from_ppb(duplicate * 1_000_000);
            link.reorder = (reorder > 0)
                .then(|| Reorder { probability: Probability::from_ppb(reorder * 1_000_000), advance: delay / 2 });
            if !limited {
                link.rate = RateModel::Unlimited;
            }
            link
        },
    )
}

/// Hops there and back, flows (control, segments, receiver), seed.
type AnyWorld = (Vec<LinkConfig>, Vec<LinkConfig>, Vec<(usize, u64, AckPolicy)>, u64);

fn any_world() -> impl Strategy<Value = AnyWorld> {
    let acks = (1u32..8, 0u64..2000, any::<bool>()).prop_map(|(every, coalesce, compress_sacks)| AckPolicy {
        every,
        coalesce: Duration::from_micros(coalesce),
        compress_sacks,
    });
    let flow = (0..CONTROLS.len(), 1u64..150_000, acks);
    (
        proptest::collection::vec(any_link(), 1..3),
        proptest::collection::vec(any_link(), 0..2),
        proptest::collection::vec(flow, 1..4),
        any::<u64>(),
    )
}

fn make(forward: &[LinkConfig], back: &[LinkConfig], flows: &[(usize, u64, AckPolicy)], seed: u64) -> World {
    let flows = flows.iter().enumerate().map(|(number, (control, bytes, acks))| {
        let mut flow = flow(CONTROLS[*control], Traffic::Bulk { bytes: Some(Bytes::new(*bytes)) });
        flow.acks = *acks;
        flow.start = Instant::ZERO + ms(number as u64 * 7);
        flow.buffers = sim::Buffers::default();
        flow.ecn = number % 2 == 1;
        flow
    });
    World::new(WorldConfig {
        forward: forward.to_vec(),
        back: back.to_vec(),
        flows: flows.collect(),
        mtu: 1500,
        seed,
        bucket: ms(1000),
        sample_every: None,
        // Seldom: at 1 kbit/s two probes a second would fill the link.
        probe: Some(ProbeConfig { every: ms(30_000), from: Instant::ZERO, flow: FlowId(9) }),
    })
    .expect("a possible world")
}

/// Every packet that entered a link came out, was dropped, or is inside.
fn assert_conserved(world: &World) {
    let all = world.forward_counters().into_iter().chain(world.back_counters());
    let (mut into, mut out) = (0, 0);
    for counters in all {
        into += counters.offered + counters.duplicated;
        let dropped =
            [counters.dropped_random, counters.dropped_overflow, counters.dropped_aqm, counters.dropped_policer];
        out += counters.delivered + dropped.iter().sum::<u64>();
    }
    assert_eq!(into, out + world.packets_inside());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// With any loss below all, every transfer finishes, exactly, and nothing appears or vanishes on the way.
    #[test]
    fn every_transfer_finishes_and_every_packet_is_accounted_for((forward, back, flows, seed) in any_world()) {
        let mut world = make(&forward, &back, &flows, seed);
        let mut end = Duration::from_secs(1);
        while !world.is_done() {
            // Two links that lose 90 % each way, and timeouts of two minutes: weeks of virtual time are possible.
            prop_assert!(end < Duration::from_secs(400 * 86_400), "stalled: {:?} of {:?}", world.sender(0), flows);
            world.run(at(end));
            assert_conserved(&world);
            end = end * 2;
        }
        for (number, (_, bytes, _)) in flows.iter().enumerate() {
            prop_assert_eq!(world.received(number), Bytes::new(*bytes));
            let outcome = world.outcome(number);
            prop_assert!(outcome.counters.sent >= bytes.div_ceil(1448));
            prop_assert!(outcome.counters.retransmitted <= outcome.counters.sent);
            prop_assert!(world.sender(number).in_flight() as u64 <= outcome.counters.sent);
        }
    }

    /// The same configuration gives the same run, whether time passes in one step or in many.
    #[test]
    fn a_run_repeats_to_the_last_packet_however_it_is_cut((forward, back, flows, seed) in any_world(), cuts in 1u64..40) {
        let end = Duration::from_secs(20);
        let (mut whole, mut cut) = (make(&forward, &back, &flows, seed), make(&forward, &back, &flows, seed));
        whole.run(at(end));
        (1..=cuts).for_each(|part| cut.run(at((end * part) / cuts)));
        prop_assert_eq!(whole.packet_events(), cut.packet_events());
        prop_assert_eq!(whole.forward_counters(), cut.forward_counters());
        prop_assert_eq!(whole.probes(), cut.probes());
        (0..flows.len()).for_each(|flow| assert_eq!(whole.outcome(flow), cut.outcome(flow)));
    }
}

#[test]
fn another_seed_gives_another_run() {
    let run = |seed| {
        let (mut forward, back) = path(Rate::from_mbps(50), ms(40), 1000);
        forward.loss = LossModel::Independent(Probability::from_ppb(10_000_000));
        let mut config = config(forward, back, vec![bulk("reno")]);
        config.seed = seed;
        let mut world = World::new(config).unwrap();
        world.run(at(ms(10_000)));
        (world.packet_events(), world.received(0))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn worlds_that_can_not_be_are_refused_with_what_is_wrong() {
    let make = |change: &dyn Fn(&mut WorldConfig)| {
        let (forward, back) = path(Rate::from_mbps(50), ms(40), 1000);
        let mut config = config(forward, back, vec![bulk("reno")]);
        change(&mut config);
        World::new(config).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(make(&|_| {}), Ok(()));
    assert!(make(&|config| config.mtu = 60).unwrap_err().contains("MTU of 60"));
    assert!(
        make(&|config| config.forward[0].loss = LossModel::Independent(Probability::ONE)).unwrap_err().contains("100%")
    );
    let many = |config: &mut WorldConfig| config.flows = (0..65_534).map(|_| bulk("reno")).collect();
    assert!(make(&many).unwrap_err().contains("65534 flows"));
}
