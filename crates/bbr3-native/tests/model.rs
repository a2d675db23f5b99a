//! The path model's arithmetic and filters.

mod common;

use bbr3::Mode;
use bbr3_native::Bbr3;
use common::bench::{BDP, BW, Bench, INFINITE, MSS, RTT_US};

#[test]
fn a_bdp_is_bandwidth_times_rtt_times_gain_rounded_up() {
    let mut cc = Bench::new().cc;
    cc.state_mut().min_rtt_us = RTT_US;
    assert_eq!(cc.bdp_multiple(BW, 256), BDP);
    assert_eq!(cc.bdp_multiple(BW, 512), 2 * BDP);
    assert_eq!(cc.bdp_multiple(BW + 1, 256), BDP + 1);
    assert_eq!(cc.bdp_multiple(0, 256), 0);
}

#[test]
fn a_bdp_at_800_gbit_and_10_s_does_not_wrap() {
    let mut cc = Bench::new().cc;
    cc.state_mut().min_rtt_us = 10_000_000;
    // 800 Gbit/s are 69.06 packets of 1448 bytes per µs.
    let bw = (69.06 * f64::from(1 << 24)) as u32;
    let exact = |gain: f64| 69.06 * 1e7 * gain / 256.0;
    for gain in [256, 512, 710] {
        let packets = f64::from(cc.bdp_multiple(bw, gain));
        assert!((packets / exact(f64::from(gain)) - 1.0).abs() < 1e-6, "{packets}");
    }
    // More than any counter holds.
    cc.state_mut().min_rtt_us = INFINITE - 1;
    assert_eq!(cc.bdp_multiple(INFINITE - 1, 710), INFINITE);
}

#[test]
fn a_bdp_without_an_rtt_is_the_initial_window() {
    let mut cc = Bench::new().cc;
    cc.state_mut().min_rtt_us = INFINITE;
    assert_eq!(cc.bdp_multiple(BW, 512), 10);
}

#[test]
fn a_rate_in_bytes_per_second_keeps_the_margin_and_does_not_wrap_at_800_gbit() {
    assert_eq!(Bbr3::bytes_per_second(1 << 24, 1000, 256, 0), 1_000_000_000);
    assert_eq!(Bbr3::bytes_per_second(1 << 24, 1000, 256, 1), 990_000_000);
    assert_eq!(Bbr3::bytes_per_second(1 << 24, 1000, 512, 1), 1_980_000_000);
    let bw = (69.06 * f64::from(1 << 24)) as u32;
    let rate = Bbr3::bytes_per_second(bw, 1448, 710, 1) as f64 * 8.0;
    assert!((rate / (800e9 * 710.0 / 256.0 * 0.99) - 1.0).abs() < 1e-3, "{rate}");
}

#[test]
fn an_application_limited_sample_counts_only_where_it_shows_more() {
    let sample = |bw_percent: i64, app_limited: u8| {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.ack.interval_us = bench.ack.interval_us * 100 / bw_percent;
        bench.ack.is_app_limited = app_limited;
        bench.cc.state_mut().bw_hi = [BW, 0];
        bench.deliver();
        bench.cc.state().bw_hi[1]
    };
    assert!(sample(90, 0) > 0, "a low sample of a busy connection is believed");
    assert_eq!(sample(90, 1), 0, "a low sample of an idle one is not");
    assert!(sample(110, 1) > BW, "a high one is, whoever limits");
}

#[test]
fn the_maximum_filter_remembers_this_cycle_and_the_one_before() {
    let mut bench = Bench::in_mode(Mode::Down);
    bench.cc.state_mut().ack_phase = 4; // ACKS_PROBE_STOPPING
    bench.cc.state_mut().bw_hi = [7 * BW, BW];
    bench.round();
    let [before, now] = bench.cc.state().bw_hi;
    assert!((BW..2 * BW).contains(&before), "the cycle that ended is the one before now");
    assert_eq!(now, 0);
    // A cycle without samples does not push it out.
    bench.cc.state_mut().ack_phase = 4;
    bench.ack.interval_us = -1;
    bench.ack.delivered = -1;
    bench.deliver();
    assert_eq!(bench.cc.state().bw_hi, [before, 0]);
}

#[test]
fn the_filter_does_not_advance_on_an_application_limited_round() {
    let mut bench = Bench::in_mode(Mode::Down);
    bench.cc.state_mut().ack_phase = 4;
    bench.cc.state_mut().bw_hi = [7 * BW, BW];
    bench.ack.is_app_limited = 1;
    bench.round();
    assert_eq!(bench.cc.state().bw_hi, [7 * BW, BW]);
    assert_eq!(bench.cc.state().ack_phase, 0);
}

#[test]
fn a_window_has_room_for_bursts_and_delayed_acks() {
    // A path of less than one packet: four packets, or three bursts of two, whichever is more.
    let mut bench = Bench::in_mode(Mode::Cruise);
    bench.cc.state_mut().bw_hi = [0, BW / 1000];
    bench.conn.pacing_rate = 1;
    bench.ack.interval_us *= 1000;
    bench.ack.delivered = 2;
    bench.deliver();
    assert_eq!(bench.conn.cwnd, 6);
    // A close receiver: three bursts of 64 KiB.
    let mut bench = Bench::in_mode(Mode::Cruise);
    bench.ack.rtt_us = 100;
    bench.conn.cwnd = 500;
    bench.deliver();
    assert_eq!(bench.conn.cwnd, 3 * ((65_536 - 321) / MSS));
}

#[test]
fn the_monitor_record_shows_bandwidth_bounds_and_phase() {
    let mut bench = Bench::in_mode(Mode::Cruise);
    bench.cc.state_mut().inflight_hi = 300;
    bench.cc.state_mut().bw_lo = BW;
    bench.deliver();
    let monitor = bbr3::Monitor::from_bytes(&bench.cc.monitor()).unwrap();
    assert_eq!(monitor.mode, Mode::Cruise);
    // 3906.25 packets of 1448 bytes per second.
    let expected = 3906.25 * 1448.0 * 8.0;
    assert!((monitor.bandwidth.as_bps() as f64 / expected - 1.0).abs() < 0.001, "{}", monitor.bandwidth);
    assert_eq!(monitor.max_bandwidth, monitor.bandwidth);
    assert_eq!(monitor.bandwidth_lo, Some(monitor.bandwidth));
    assert_eq!(monitor.min_rtt.unwrap().as_micros(), u64::from(RTT_US));
    assert_eq!((monitor.pacing_gain, monitor.cwnd_gain), (256, 512));
    assert_eq!((monitor.inflight_hi, monitor.inflight_lo), (Some(300), None));
    for mode in Mode::ALL {
        let mut bench = Bench::in_mode(mode);
        bench.cc.state_mut().mode = mode as u8;
        bench.cc.state_mut().probe_rtt_min_stamp = bench.conn.now_us;
        bench.conn.in_flight = 10 * BDP;
        bench.ack.prior_in_flight = 10 * BDP;
        bench.deliver();
        let monitor = bbr3::Monitor::from_bytes(&bench.cc.monitor()).unwrap();
        assert_eq!(monitor.mode, bench.mode());
        assert_eq!(monitor.mode, mode, "nothing in this ACK changes the mode");
    }
}
