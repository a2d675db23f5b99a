//! A path by netem on this kernel, where it has netem; where it has none, the refusal. `tests/vm/netem-test` holds it against what was
//! asked for, on kernels that have it.

use std::net::UdpSocket;

use linerate_lab::netem::{NetemError, NetemSession, Unsupported, probe};
use linerate_lab::session::{DataFrom, FIRST_PORT, Setup};
use linerate_lab::world::SERVER;
use path::{Discipline, LinkConfig, LossModel, QueueConfig, QueueLimit, RateModel};
use testkit::require_root_or_skip;
use units::{Bytes, Duration, Probability, Rate};

fn link() -> LinkConfig {
    LinkConfig {
        rate: RateModel::Constant(Rate::from_mbps(10)),
        delay: Duration::from_millis(5),
        flow_delay: vec![],
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss: LossModel::None,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Bytes(Bytes::new(150_000)),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

fn start(forward: &LinkConfig) -> Result<NetemSession, NetemError> {
    NetemSession::start(Setup {
        forward,
        back: &link(),
        data_from: DataFrom::Client,
        seed: 1,
        mtu: 1_500,
        sysctls: &[],
        flows: 1,
        probe: false,
        log_packets: false,
        capture: None,
    })
}

#[test]
fn a_path_by_netem_carries_a_packet_or_says_how_to_load_netem() {
    require_root_or_skip!();
    match probe() {
        Ok(()) => {
            let session = start(&link()).unwrap();
            let receiver = session.server.run(|| UdpSocket::bind((SERVER, FIRST_PORT)).unwrap()).unwrap();
            let sender = session.client.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
            sender.send_to(b"hello", (SERVER, FIRST_PORT)).unwrap();
            receiver.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
            assert_eq!(receiver.recv(&mut [0; 16]).unwrap(), 5);
            let outcome = session.finish().unwrap();
            assert_eq!((outcome.up.sent_packets, outcome.up.sent_bytes), (1, Bytes::new(33)));
            assert!(outcome.notes[0].contains("100 packets"), "{:?}", outcome.notes);
        }
        Err(missing) => {
            assert!(matches!(missing, NetemError::NoNetem), "{missing}");
            let refusal = start(&link()).err().expect("there is no netem").to_string();
            assert!(refusal.contains("sudo modprobe sch_netem") && refusal.contains("--emulator model"), "{refusal}");
        }
    }
}

#[test]
fn what_netem_cannot_do_is_refused_before_anything_is_made() {
    let jitter = LinkConfig { jitter: Duration::from_millis(1), ..link() };
    assert!(matches!(start(&jitter), Err(NetemError::Unsupported(Unsupported::Jitter))));
    let nothing = LinkConfig { rate: RateModel::Constant(Rate::ZERO), ..link() };
    assert!(matches!(start(&nothing), Err(NetemError::Config(_))));
}
