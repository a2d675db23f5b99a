//! No path and no history makes a controller overflow, divide by zero or leave its bounds.

mod common;

use common::{Application, RateModel, World, at, link};
use congestion::bbr3::Params;
use congestion::{Bbr1, Bbr3, Connection, Control, Controller, Cubic, Ignore, RateSampler, Recovery, Reno, exercise};
use path::LossModel;
use proptest::prelude::*;
use units::{Bytes, Duration, Instant, Rate};

fn controllers() -> [Box<dyn Controller>; 4] {
    [
        Box::new(Reno::new()),
        Box::new(Cubic::default()),
        Box::new(Bbr1::new(1)),
        Box::new(Bbr3::new(Params::default(), 1).unwrap()),
    ]
}

/// Drives a controller over a pipe of this rate and RTT for `flights` flights, in groups of packets: a billion packets in flight take no
/// longer than ten. Returns its pacing rate at the end.
fn drive(cc: &mut dyn Controller, rate: Rate, rtt: Duration, mss: u64, flights: u32) -> Option<Rate> {
    let start = Instant::ZERO + Duration::from_secs(1);
    let mut conn = Connection { srtt: Some(rtt), min_rtt: Some(rtt), ..Connection::new(start, Bytes::new(mss)) };
    let mut control = Control::new(10);
    let mut sampler = RateSampler::new(start);
    cc.init(&conn, &mut control, &mut Ignore);
    // When the pipe has sent what it was given.
    let mut free = start;
    let mut groups = std::collections::VecDeque::new();
    let mut order = 0;
    for _ in 0..flights * 8 {
        // Up to an eighth of the window at once.
        let room = control.cwnd.saturating_sub(conn.in_flight).min((control.cwnd / 8).max(1));
        if room > 0 {
            let was_empty = conn.in_flight == 0;
            conn.in_flight += room;
            conn.is_cwnd_limited = conn.in_flight >= control.cwnd;
            conn.max_outstanding = conn.in_flight;
            let stamp = sampler.on_sent(conn.now, conn.in_flight, was_empty);
            free = free.max(conn.now) + rate.time_for(Bytes::new(u64::from(room) * mss));
            groups.push_back((stamp, room, free + rtt));
            let paced =
                control.pacing_rate.map_or(Duration::ZERO, |rate| rate.time_for(Bytes::new(u64::from(room) * mss)));
            conn.now += paced.min(rtt / 8);
        }
        let Some((stamp, packets, due)) = groups.front().copied() else { continue };
        if due > conn.now && conn.in_flight < control.cwnd && groups.len() < 64 {
            continue;
        }
        groups.pop_front();
        conn.now = conn.now.max(due);
        let prior_in_flight = conn.in_flight;
        conn.in_flight -= packets;
        sampler.on_delivered_together(&stamp, order, packets);
        order += 1;
        let sample = sampler.finish(conn.now, conn.min_rtt);
        conn.delivered = sampler.delivered();
        conn.delivered_at = sampler.delivered_at();
        let measured = conn.now.since(stamp.sent_at);
        let ack = congestion::Ack {
            newly_acked: packets,
            prior_in_flight,
            rtt: Some(measured),
            sample,
            ..congestion::Ack::default()
        };
        assert_eq!(conn.recovery, Recovery::Open);
        cc.on_ack(&conn, &ack, &mut control, &mut Ignore);
        assert!(control.cwnd >= 1 && control.send_quantum >= 1);
        assert!(control.pacing_rate.is_none_or(|rate| rate > Rate::ZERO));
    }
    control.pacing_rate
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_history_keeps_every_controller_within_its_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        exercise::exercise(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// From 1 kbit/s x 1 us to 800 Gbit/s x 10 s, evenly over the orders of magnitude.
    #[test]
    fn no_path_makes_the_arithmetic_overflow(
        rate in 3.0_f64..11.903, rtt in 0.0_f64..7.0, mss in prop_oneof![Just(1448_u64), 1_u64..=9000],
    ) {
        let rate = Rate::from_bps(10_f64.powf(rate) as u64);
        let rtt = Duration::from_nanos((10_f64.powf(rtt) * 1000.0) as u64);
        for cc in &mut controllers() {
            drive(&mut **cc, rate, rtt, mss, 60);
        }
    }
}

#[test]
fn the_corners_of_what_paths_there_are() {
    for rate in [Rate::from_bps(1000), Rate::from_mbps(800_000)] {
        for rtt in [Duration::from_micros(1), Duration::from_secs(10)] {
            for cc in &mut controllers() {
                drive(&mut **cc, rate, rtt, 1448, 100);
            }
        }
    }
}

#[test]
fn bbr3_finds_800_gbit_over_100_ms() {
    let rate = Rate::from_mbps(800_000);
    let mut cc = Bbr3::new(Params::default(), 1).unwrap();
    let paced = drive(&mut cc, rate, Duration::from_millis(100), 1448, 200).unwrap();
    let share = paced.as_mbps_f64() / rate.as_mbps_f64();
    assert!((0.4..1.4).contains(&share), "{paced}");
}

fn fills_a_clean_path(cc: impl Controller) {
    let name = cc.name();
    let rtt = Duration::from_millis(40);
    let path = link(RateModel::Constant(Rate::from_mbps(20)), rtt, 66, LossModel::None);
    let mut world = World::with(cc, path, rtt, Application::Bulk);
    world.run(at(5_000));
    let goodput = world.measure(at(25_000)).as_mbps_f64();
    assert!(goodput > 17.0, "{name}: {goodput} Mbit/s");
}

#[test]
fn every_controller_fills_a_clean_path() {
    fills_a_clean_path(Reno::new());
    fills_a_clean_path(Cubic::default());
    fills_a_clean_path(Bbr1::new(1));
    fills_a_clean_path(Bbr3::new(Params::default(), 1).unwrap());
}
