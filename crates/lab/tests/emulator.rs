//! The emulator against the model: what happened in real time must be what the model says in virtual time, packet by packet.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_lab::direction::Outside;
use linerate_lab::emulator::DirectionOutcome;
use linerate_lab::record::PacketLog;
use linerate_lab::session::{DataFrom, FIRST_PORT, Session, Setup};
use linerate_lab::world::SERVER;
use path::{
    CoDel, Delivery, Discipline, DropCause, FlowId, Link, LinkConfig, LossModel, Packet, QueueConfig, QueueLimit, RateModel,
    Red, Reorder, Sink,
};
use units::{Bytes, Duration, Instant, Probability, Rate};

/// One emulator at a time: they share two cores with everything else.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn plain(rate: Rate, delay: Duration, queue: u64) -> LinkConfig {
    LinkConfig {
        rate: RateModel::Constant(rate),
        delay,
        flow_delay: vec![],
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss: LossModel::None,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Bytes(Bytes::new(queue)),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

fn unlimited() -> LinkConfig {
    LinkConfig { rate: RateModel::Unlimited, ..plain(Rate::from_mbps(1), Duration::from_millis(1), 1 << 30) }
}

/// Sends `count` numbered datagrams of `size` payload bytes, the sender never faster than the emulator reads, and returns what
/// the receiver got, in order, with what the emulator saw.
fn send_numbered(forward: &LinkConfig, seed: u64, count: u32, size: usize) -> (Vec<u32>, DirectionOutcome) {
    let session = Session::start(Setup {
        forward,
        back: &unlimited(),
        data_from: DataFrom::Client,
        seed,
        mtu: 1500,
        sysctls: &[],
        flows: 1,
        probe: false,
        log_packets: true,
        capture: None,
    })
    .unwrap();
    let receiver = session.world.server.run(|| UdpSocket::bind((SERVER, FIRST_PORT)).unwrap()).unwrap();
    receiver.set_read_timeout(Some(std::time::Duration::from_millis(700))).unwrap();
    nix::sys::socket::setsockopt(&receiver, nix::sys::socket::sockopt::RcvBufForce, &(64 << 20)).unwrap();
    let got = std::thread::spawn(move || {
        let mut got = Vec::new();
        let mut buffer = [0; 2048];
        // The time-out is the end of the experiment: nothing more comes.
        while let Ok(len) = receiver.recv(&mut buffer) {
            got.push(u32::from_le_bytes(buffer[..4].try_into().unwrap()));
            assert_eq!(len, size);
        }
        got
    });
    session
        .world
        .client
        .run(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect(SocketAddr::from((SERVER, FIRST_PORT))).unwrap();
            let mut payload = vec![0u8; size];
            for number in 0..count {
                payload[..4].copy_from_slice(&number.to_le_bytes());
                socket.send(&payload).unwrap();
            }
        })
        .unwrap();
    let got = got.join().unwrap();
    let (world, outcome) = session.finish();
    assert_eq!(world.device_drops().unwrap(), 0);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    assert_eq!(outcome.up.outside, Outside::default());
    (got, outcome.up)
}

/// The model alone, in virtual time, with the arrivals of a real run.
#[derive(Default)]
struct Virtual {
    delivered: Vec<(u64, Instant)>,
    dropped: Vec<(u64, DropCause)>,
}

impl Sink<()> for Virtual {
    fn deliver(&mut self, delivery: Delivery<()>) {
        self.delivered.push((delivery.number, delivery.due));
    }

    fn dropped(&mut self, _at: Instant, _packet: Packet<()>, number: u64, cause: DropCause) {
        self.dropped.push((number, cause));
    }
}

fn replay(config: &LinkConfig, seed: u64, log: &PacketLog) -> Virtual {
    let mut link = Link::new(config, seed).unwrap();
    let mut fates = Virtual::default();
    for &(at, size, flow, hash, ecn) in &log.offered {
        link.offer(at, Packet { token: (), size, flow, hash, ecn }, &mut fates);
    }
    link.advance(Instant::MAX, &mut fates);
    fates
}

fn agrees(config: &LinkConfig, seed: u64) -> (Vec<u32>, DirectionOutcome) {
    let (got, up) = send_numbered(config, seed, 4_000, 1_000);
    let log = up.record.log().unwrap();
    // The seed of the upward direction, as the emulator derives it.
    let fates = replay(config, seed * 2, log);
    assert_eq!(log.delivered, fates.delivered, "deliveries: which, in what order, due when");
    assert_eq!(log.dropped, fates.dropped, "drops: which, in what order, and why");
    let numbers: Vec<u32> = log.delivered.iter().map(|(number, _)| *number as u32).collect();
    assert_eq!(got, numbers, "the far end got exactly what the model delivered");
    (got, up)
}

#[test]
fn a_lossy_path_in_real_time_is_the_model_packet_by_packet() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let mut config = plain(Rate::from_mbps(100), Duration::from_millis(10), 300_000);
    config.loss = LossModel::Independent(Probability::from_ppb(30_000_000));
    let (got, up) = agrees(&config, 7);
    assert!(up.counters.dropped_random > 60 && up.counters.dropped_overflow > 100, "{:?}", up.counters);
    assert_eq!(got.len() as u64, up.counters.delivered);
    let other_seed = replay(&config, 15, up.record.log().unwrap());
    assert_ne!(other_seed.dropped, up.record.log().unwrap().dropped, "the comparison can fail");
}

#[test]
fn bursts_jitter_reordering_and_copies_come_out_as_the_model_says() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let mut config = plain(Rate::from_mbps(200), Duration::from_millis(8), 4_000_000);
    config.loss = LossModel::Burst { average: Probability::from_ppb(20_000_000), mean_burst_milli: 5_000 };
    config.jitter = Duration::from_micros(300);
    config.duplicate = Probability::from_ppb(10_000_000);
    config.reorder = Some(Reorder { probability: Probability::from_ppb(20_000_000), advance: Duration::from_millis(4) });
    let (got, up) = agrees(&config, 3);
    assert!(up.counters.duplicated > 10 && got.windows(2).any(|w| w[1] < w[0]), "{:?}", up.counters);
}

#[test]
fn order_is_kept_unless_asked_and_the_queue_holds_its_limit() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let limit = 100_000;
    let config = plain(Rate::from_mbps(50), Duration::from_millis(5), limit);
    let (got, up) = agrees(&config, 1);
    assert!(got.is_sorted());
    let most = up.record.buckets().iter().map(|b| b.queue_max_bytes).max().unwrap();
    assert!(most <= limit && most + 1_028 > limit, "full to the last packet and never over: {most}");
    assert!(up.counters.dropped_overflow > 0);
}

#[test]
fn aqm_decides_the_same_in_real_time() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let codel = CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
    let red = Red {
        min: Bytes::new(30_000),
        max: Bytes::new(90_000),
        max_probability: Probability::from_ppb(100_000_000),
        weight_shift: 6,
    };
    for discipline in [
        Discipline::CoDel(codel),
        Discipline::FqCoDel { codel, buckets: 1024, quantum: Bytes::new(1_514) },
        Discipline::Red(red),
    ] {
        let mut config = plain(Rate::from_mbps(40), Duration::from_millis(5), 2_000_000);
        config.queue.discipline = discipline;
        let (_, up) = agrees(&config, 5);
        assert!(up.counters.dropped_aqm > 0, "{discipline:?}: {:?}", up.counters);
    }
}

#[test]
fn packets_reach_the_far_end_with_the_delay_of_their_flow() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let mut config = plain(Rate::from_mbps(1_000), Duration::from_millis(2), 10_000_000);
    config.flow_delay = vec![(FlowId(1), Duration::from_millis(30))];
    let (_, up) = agrees(&config, 1);
    let log = up.record.log().unwrap();
    let (number, due) = log.delivered[0];
    let sent = log.offered[number as usize].0;
    assert!(due.since(sent) >= Duration::from_millis(30), "the flow's own delay, not the path's 2 ms");
}
