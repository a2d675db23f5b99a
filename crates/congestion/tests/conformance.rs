//! BBRv3 here and in the kernel: the same inputs lead to the same decisions and the same state, call by call.
//!
//! Inputs come from the kernel program's C, compiled natively and run in virtual time over many paths; and from a recording of the program in a
//! kernel (`linerate cc trace --record`). `cargo test -p linerate-bbr3 --test trace` does the same with the kernel it runs on.

use bbr3::raw::RawKnobs;
use bbr3::{Knobs, Mode, Profile};
use bbr3_native::{Application, Bbr3, Conformance, Count, FlowConfig, Replayed, World, WorldConfig};
use path::{Discipline, LinkConfig, LossModel, QueueConfig, QueueLimit, RateModel, Reorder};
use units::{Bytes, Duration, Instant, Probability, Rate};

fn link(rate: RateModel, delay: Duration, packets: u32, loss: LossModel) -> LinkConfig {
    LinkConfig {
        rate,
        delay,
        flow_delay: Vec::new(),
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Packets(packets),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::new(14),
    }
}

/// A path, and the connection on it.
struct Case {
    forward: LinkConfig,
    reverse: LinkConfig,
    knobs: RawKnobs,
    application: Application,
    handshake_rtt: Duration,
    can_mark: bool,
    has_sack: bool,
    seed: u64,
}

impl Case {
    fn new(rate: Rate, rtt: Duration, queue: u32, loss: LossModel) -> Self {
        Self {
            forward: link(RateModel::Constant(rate), rtt / 2, queue, loss),
            reverse: link(RateModel::Unlimited, rtt / 2, 1_000_000, LossModel::None),
            knobs: Knobs::default().to_raw().unwrap(),
            application: Application::Bulk,
            handshake_rtt: rtt,
            can_mark: true,
            has_sack: true,
            seed: 1,
        }
    }

    fn world(self) -> World {
        let mut cc = Bbr3::new(self.knobs, self.seed).record();
        if !self.can_mark {
            cc = cc.without_app_limited();
        }
        let flow = FlowConfig { application: self.application, ..FlowConfig::bulk(cc, self.handshake_rtt) };
        let config = WorldConfig { forward: self.forward, reverse: self.reverse, flows: vec![flow], seed: self.seed };
        let mut world = World::new(config).unwrap();
        if !self.has_sack {
            world.flow_mut(0).sender.forget_sack();
        }
        world
    }

    /// Runs it, and holds every call against the library.
    fn check(self, seconds: u64) -> (World, Replayed) {
        let mut world = self.world();
        world.run(at_ms(seconds * 1000));
        let done = conforms(&mut world);
        (world, done)
    }
}

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What this connection was told and decided since the last time is what the library decides.
fn conforms(world: &mut World) -> Replayed {
    let (header, events) = world.flow_mut(0).sender.cc_mut().take_recording();
    let mut conformance = Conformance::new(header);
    for event in &events {
        conformance.feed(event).unwrap_or_else(|difference| panic!("{difference}"));
    }
    let done = conformance.replayed();
    assert_eq!((done.from_init, done.skipped), (1, 0), "the connection was seen from its first call");
    done
}

fn random(percent: f64) -> LossModel {
    LossModel::Independent(Probability::from_ppb((percent * 1e7) as u32))
}

fn reference(queue: u32, loss: LossModel) -> Case {
    Case::new(Rate::from_mbps(50), ms(40), queue, loss)
}

#[test]
fn on_a_clean_path_through_every_mode() {
    let (world, done) = reference(330, LossModel::None).check(30);
    for mode in &Mode::ALL[1..] {
        assert!(world.sender().cc().entries_into(*mode) > 0, "{} was part of it", mode.name());
    }
    assert!(done.acks > 40_000, "{done:?}");
}

#[test]
fn with_random_loss() {
    for (percent, seed) in [(0.1, 1), (1.0, 2), (2.0, 3), (5.0, 4), (20.0, 5)] {
        let (_, done) = Case { seed, ..reference(165, random(percent)) }.check(20);
        assert!(done.acks > 500 && done.calls > done.acks, "{percent} %: {done:?}");
    }
}

#[test]
fn with_bursts_of_loss_and_shallow_and_deep_queues() {
    let bursts = LossModel::Burst { average: Probability::from_ppb(10_000_000), mean_burst_milli: 8_000 };
    for queue in [4, 17, 83, 660, 1321] {
        for loss in [LossModel::None, bursts.clone()] {
            let (_, done) = reference(queue, loss).check(15);
            assert!(done.acks > 1000, "{queue}: {done:?}");
        }
    }
}

#[test]
fn where_recoveries_prove_spurious() {
    let reorder = Some(Reorder { probability: Probability::from_ppb(20_000_000), advance: ms(12) });
    let mut undone = 0;
    for seed in 1..=6 {
        let mut case = Case { seed, ..reference(330, random(if seed % 2 == 0 { 0.2 } else { 0.0 })) };
        case.forward.reorder = reorder;
        let (world, _) = case.check(15);
        undone += world.sender().cc().count(Count::Undo);
    }
    assert!(undone > 0, "recoveries were undone");
}

#[test]
fn where_the_path_fails_for_seconds() {
    let outage = |rate| {
        RateModel::Steps(vec![
            (Instant::ZERO, rate),
            (at_ms(3000), Rate::from_bps(1000)),
            (at_ms(4500), rate),
            (at_ms(9000), Rate::from_bps(1000)),
            (at_ms(9800), rate),
        ])
    };
    let mut timeouts = 0;
    for queue in [20, 165, 660] {
        let mut case = reference(queue, random(0.5));
        case.forward.rate = outage(Rate::from_mbps(50));
        let (world, _) = case.check(15);
        timeouts += world.sender().cc().count(Count::Rto);
    }
    assert!(timeouts > 0, "the timer ran out");
}

#[test]
fn where_the_rate_changes_tenfold() {
    for (first, then) in [(10, 100), (100, 10)] {
        let mut case = reference(165, LossModel::None);
        case.forward.rate =
            RateModel::Steps(vec![(Instant::ZERO, Rate::from_mbps(first)), (at_ms(8000), Rate::from_mbps(then))]);
        case.check(25);
    }
}

#[test]
fn where_the_application_writes_now_and_then_and_on_kernels_that_keep_its_mark() {
    let mut restarts = 0;
    let mut repaired = 0;
    for can_mark in [true, false] {
        for (write, pause_ms, loss) in [(1, 15, 5.0), (3, 320, 8.0), (40, 100, 2.0), (400, 700, 1.0), (3000, 6500, 0.0)]
        {
            let case = Case { application: Application::Writes, can_mark, ..reference(330, random(loss)) };
            let mut world = case.world();
            for step in 0..25_000 / pause_ms {
                world.run(at_ms(step * pause_ms));
                world.write(0, write);
            }
            conforms(&mut world);
            restarts += world.sender().cc().count(Count::IdleRestart);
            repaired += world.sender().cc().count(Count::TlpRecovery);
        }
    }
    assert!(restarts > 20 && repaired > 0, "{restarts} restarts, {repaired} losses repaired by a probe");
}

#[test]
fn without_sack() {
    let (world, done) = Case { has_sack: false, ..reference(83, random(0.2)) }.check(15);
    assert!(world.sender().cc().count(Count::TooHigh) > 0, "{done:?}");
}

#[test]
fn with_other_parameters() {
    let short =
        Knobs { probe_rtt_interval: ms(700), min_rtt_window: ms(900), probe_wait_base: ms(150), ..Knobs::default() };
    let odd = Knobs {
        beta: Probability::from_ppb(500_000_000),
        headroom: Probability::ZERO,
        pacing_margin_percent: 5,
        startup_full_loss_count: 1,
        probe_max_rounds: 7,
        probe_rtt_duration: ms(50),
        ..Knobs::default()
    };
    for knobs in [Profile::LossyLink.knobs(), short, odd] {
        for loss in [0.0, 3.0] {
            Case { knobs: knobs.to_raw().unwrap(), ..reference(165, random(loss)) }.check(15);
        }
    }
}

#[test]
fn from_64_kbit_to_2_gbit_and_from_200_us_to_800_ms() {
    for (kbps, rtt_us, seconds) in [
        (64, 100_000, 60),
        (64, 800_000, 60),
        (1_000, 200, 20),
        (1_000, 800_000, 30),
        (100_000, 200, 3),
        (100_000, 800_000, 25),
        (2_000_000, 20_000, 2),
    ] {
        let rtt = Duration::from_micros(rtt_us);
        let rate = Rate::from_bps(kbps * 1000);
        let bdp = (rate.bdp(rtt).as_u64() / 1500).max(10) as u32;
        Case { handshake_rtt: Duration::ZERO, ..Case::new(rate, rtt, bdp, random(0.05)) }.check(seconds);
    }
}
