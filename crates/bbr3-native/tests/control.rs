//! What the model is turned into: window and pacing rate; and what the application's silence means.

mod common;

use bbr3::Mode;
use bbr3_native::{Bbr3, Count};
use common::bench::{BDP, BW, Bench, INFINITE, MSS, PACKET_US, RTT_US};

/// Bytes per second of the bench's bandwidth, 1 % below.
fn paced(gain: f64) -> f64 {
    f64::from(MSS) / 256e-6 * gain * 0.99
}

fn is_about(rate: u64, expected: f64) -> bool {
    (rate as f64 / expected - 1.0).abs() < 0.01
}

mod pacing {
    use super::*;

    #[test]
    fn each_mode_paces_at_its_gain() {
        for (mode, gain) in [(Mode::Cruise, 1.0), (Mode::Refill, 1.0), (Mode::Up, 1.25), (Mode::Down, 0.906)] {
            let mut bench = Bench::in_mode(mode);
            bench.ack.prior_in_flight = 3 * BDP;
            bench.conn.in_flight = 3 * BDP;
            bench.deliver();
            assert_eq!(bench.mode(), mode);
            assert!(is_about(bench.conn.pacing_rate, paced(gain)), "{mode:?} {}", bench.conn.pacing_rate);
        }
    }

    #[test]
    fn before_the_pipe_was_full_it_does_not_fall() {
        let mut bench = Bench::in_mode(Mode::Startup);
        bench.conn.pacing_rate = 1 << 40;
        bench.deliver();
        assert_eq!(bench.conn.pacing_rate, 1 << 40);
        bench.conn.pacing_rate = 1;
        bench.deliver();
        assert!(is_about(bench.conn.pacing_rate, paced(2.773)));
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.conn.pacing_rate = 1 << 40;
        bench.deliver();
        assert!(is_about(bench.conn.pacing_rate, paced(1.0)));
    }

    #[test]
    fn the_short_term_bound_and_the_sockets_limit_hold() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().bw_lo = BW / 2;
        bench.deliver();
        assert!(is_about(bench.conn.pacing_rate, paced(0.5)));
        bench.conn.max_pacing_rate = 12_345;
        bench.deliver();
        assert_eq!(bench.conn.pacing_rate, 12_345);
    }

    #[test]
    fn the_margin_is_a_knob() {
        let mut bench = Bench::knobs(|knobs| knobs.pacing_margin_percent = 10);
        bench.go(Mode::Cruise);
        bench.deliver();
        assert!(is_about(bench.conn.pacing_rate, paced(1.0) / 0.99 * 0.9));
    }
}

mod window {
    use super::*;

    #[test]
    fn it_grows_by_what_is_acknowledged_up_to_two_bdps() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.conn.cwnd = 2 * BDP - 3;
        bench.cc.state_mut().ack_epoch_stamp = 0;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 2 * BDP - 1);
        for _ in 0..5 {
            bench.after(500);
        }
        let target = 2 * BDP + bench.cc.state().extra_acked[0].max(bench.cc.state().extra_acked[1]);
        assert_eq!(bench.conn.cwnd, target);
        bench.conn.cwnd = 10 * BDP;
        bench.after(500);
        assert_eq!(bench.conn.cwnd, target, "and is cut to it at once");
    }

    #[test]
    fn an_ack_that_delivers_nothing_only_bounds_it() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.conn.cwnd = 5;
        bench.ack.acked_sacked = 0;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 5);
    }

    #[test]
    fn in_startup_it_grows_freely_up_to_twice_the_initial_window_and_is_not_cut() {
        let mut bench = Bench::in_mode(Mode::Startup);
        bench.cc.state_mut().bw_hi = [0, BW / 100];
        bench.ack.interval_us *= 100;
        bench.conn.pacing_rate = 1;
        bench.conn.cwnd = 18;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 20);
        bench.ack.interval_us *= 100;
        bench.conn.pacing_rate = 1;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 20, "neither raised nor cut");
        bench.conn.cwnd = 40;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 42, "below two BDPs again");
    }

    #[test]
    fn it_is_never_below_four() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().inflight_lo = 1;
        bench.conn.cwnd = 1;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 4);
    }

    #[test]
    fn each_mode_has_its_bounds() {
        let cwnd = |mode: Mode| {
            let mut bench = Bench::in_mode(mode);
            bench.cc.state_mut().inflight_hi = 200;
            bench.conn.in_flight = 3 * BDP;
            bench.ack.prior_in_flight = 3 * BDP;
            bench.cc.state_mut().cap_min_rtt_us = RTT_US;
            bench.deliver();
            assert_eq!(bench.mode(), mode);
            bench.conn.cwnd
        };
        assert_eq!(cwnd(Mode::Down), 200);
        assert_eq!(cwnd(Mode::Refill), 200);
        assert_eq!(cwnd(Mode::Cruise), 200 - 29, "with headroom");
        assert_eq!(cwnd(Mode::ProbeRtt), BDP / 2);
        assert!(cwnd(Mode::Drain) >= 2 * BDP, "no bound");
        assert!(cwnd(Mode::Startup) >= 2 * BDP, "no bound");
        let mut bench = Bench::in_mode(Mode::Down);
        bench.cc.state_mut().inflight_lo = 99;
        bench.conn.cwnd_clamp = 300;
        bench.ack.prior_in_flight = 3 * BDP;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 99, "the short-term one in every mode");
        bench.conn.cwnd_clamp = 50;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 50, "the socket's own");
    }

    #[test]
    fn headroom_is_a_knob() {
        let mut bench = Bench::knobs(|knobs| knobs.headroom = 128);
        bench.go(Mode::Cruise);
        bench.cc.state_mut().inflight_hi = 200;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 100);
    }

    #[test]
    fn probing_upwards_it_has_room_for_two_and_a_quarter_bdps_and_two_packets() {
        let mut bench = Bench::in_mode(Mode::Up);
        bench.conn.cwnd = 10 * BDP;
        bench.deliver();
        let extra = bench.cc.state().extra_acked[0];
        assert_eq!(bench.conn.cwnd, BDP * 9 / 4 + 2 + extra);
    }
}

mod aggregation {
    use super::*;

    /// ACKs for `burst` packets at once every `burst` packet times.
    fn bursts(bench: &mut Bench, burst: u32, count: u32) {
        for _ in 0..count {
            bench.ack.acked_sacked = burst;
            bench.ack.prior_delivered = bench.conn.delivered.wrapping_sub(BDP - burst);
            bench.after(u64::from(burst) * u64::from(PACKET_US));
        }
    }

    #[test]
    fn what_arrives_at_once_is_added_to_the_window() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bursts(&mut bench, 32, 20);
        let state = *bench.cc.state();
        let extra = state.extra_acked[0].max(state.extra_acked[1]);
        assert!(extra >= 31, "{extra}");
        bench.conn.cwnd = 10 * BDP;
        bench.deliver();
        assert!(bench.conn.cwnd >= 2 * BDP + 31, "{}", bench.conn.cwnd);
    }

    #[test]
    fn it_is_forgotten_after_ten_rounds_and_in_startup_after_one() {
        for (mode, rounds) in [(Mode::Cruise, 10), (Mode::Startup, 2)] {
            let mut bench = Bench::in_mode(mode);
            bench.cc.state_mut().extra_acked = [0, 90];
            bench.cc.state_mut().extra_acked_slot = 1;
            let mut lasted = 0;
            while bench.cc.state().extra_acked.contains(&90) {
                bench.cc.state_mut().rounds_since_probe = 0;
                bench.cc.state_mut().full_bw_count = 0;
                bench.conn.now_us += u64::from(RTT_US);
                bench.round();
                lasted += 1;
                assert!(lasted < 50);
            }
            assert_eq!(lasted, rounds, "{mode:?}");
        }
    }

    #[test]
    fn it_adds_no_more_than_100_ms_of_the_bandwidth_nor_more_than_the_window() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().extra_acked = [100_000, 0];
        bench.conn.cwnd = 100 * BDP;
        bench.deliver();
        assert_eq!(bench.conn.cwnd, 2 * BDP + 390, "390.6 packets pass in 100 ms");
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.conn.cwnd = 50;
        bench.ack.acked_sacked = 5000;
        bench.deliver();
        assert!(bench.cc.state().extra_acked[0] <= 50, "{:?}", bench.cc.state().extra_acked);
    }

    #[test]
    fn an_epoch_ends_when_acks_fall_behind_or_after_a_million_packets() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().ack_epoch_acked = 100;
        bench.cc.state_mut().ack_epoch_stamp = bench.conn.now_us;
        bench.after(1000);
        assert_eq!(bench.cc.state().ack_epoch_acked, 102, "four packets were expected: it goes on");
        bench.after(100_000);
        assert_eq!(bench.cc.state().ack_epoch_acked, 2, "400 were: it ends");
        bench.cc.state_mut().ack_epoch_acked = (1 << 20) - 1;
        bench.deliver();
        assert_eq!(bench.cc.state().ack_epoch_acked, 2);
        bench.ack.acked_sacked = 1 << 21;
        bench.deliver();
        assert_eq!(bench.cc.state().ack_epoch_acked, 0xF_FFFF, "saturates");
    }

    #[test]
    fn an_epoch_that_starts_after_the_last_delivery_expects_nothing() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().ack_epoch_stamp = bench.conn.now_us + 5000;
        bench.deliver();
        assert_eq!(bench.cc.state().ack_epoch_acked, 2);
    }
}

mod idle {
    use super::*;

    fn quiet(mode: Mode) -> Bench {
        let mut bench = Bench::in_mode(mode);
        bench.conn.app_limited = 5;
        bench.conn.in_flight = 0;
        bench.conn.now_us += 3_000_000;
        bench
    }

    #[test]
    fn a_restart_paces_at_the_bandwidth_and_begins_a_new_epoch() {
        let mut bench = quiet(Mode::Up);
        bench.cc.state_mut().ack_epoch_acked = 50;
        bench.cc.tx_start(&mut bench.conn);
        assert!(is_about(bench.conn.pacing_rate, paced(1.0)));
        let state = *bench.cc.state();
        assert_eq!((state.idle_restart, state.ack_epoch_acked, state.ack_epoch_stamp), (1, 0, bench.conn.now_us));
        assert_eq!(bench.cc.count(Count::IdleRestart), 1);
    }

    #[test]
    fn a_busy_connection_is_not_restarting() {
        let mut bench = quiet(Mode::Up);
        bench.conn.app_limited = 0;
        bench.cc.tx_start(&mut bench.conn);
        assert_eq!((bench.cc.state().idle_restart, bench.cc.count(Count::IdleRestart)), (0, 0));
    }

    #[test]
    fn probe_rtt_ends_with_the_silence_where_it_had_lasted_long_enough() {
        let mut bench = quiet(Mode::ProbeRtt);
        bench.cc.state_mut().probe_rtt_done_stamp = bench.conn.now_us - 1;
        bench.cc.state_mut().prior_cwnd = 2 * BDP;
        bench.conn.cwnd = 10;
        bench.cc.tx_start(&mut bench.conn);
        assert_eq!((bench.mode(), bench.conn.cwnd), (Mode::Cruise, 2 * BDP));
        for stamp in [0, u64::MAX] {
            let mut bench = quiet(Mode::ProbeRtt);
            bench.cc.state_mut().probe_rtt_done_stamp = stamp;
            bench.cc.tx_start(&mut bench.conn);
            assert_eq!(bench.mode(), Mode::ProbeRtt);
        }
    }

    #[test]
    fn in_startup_pacing_is_left() {
        let mut bench = quiet(Mode::Startup);
        let rate = bench.conn.pacing_rate;
        bench.cc.tx_start(&mut bench.conn);
        assert_eq!((bench.conn.pacing_rate, bench.cc.state().idle_restart), (rate, 1));
    }
}

mod application_limits {
    use super::*;

    #[test]
    fn an_ack_with_nothing_to_send_and_room_in_the_window_marks_the_flight() {
        let marked = |change: fn(&mut Bench)| {
            let mut bench = Bench::in_mode(Mode::Cruise);
            bench.conn.unsent_bytes = MSS - 1;
            change(&mut bench);
            bench.deliver();
            bench.conn.app_limited
        };
        // As at the start of the ACK: delivered before it, and what was in flight.
        assert_eq!(marked(|_| {}), 1000 + BDP);
        assert_eq!(marked(|bench| bench.conn.unsent_bytes = MSS), 0);
        assert_eq!(marked(|bench| bench.conn.queued_bytes = 2000), 0, "packets wait below TCP");
        assert_eq!(marked(|bench| bench.ack.prior_in_flight = 2 * BDP), 0, "the window was full");
        assert_eq!(marked(|bench| bench.conn.lost_out = 1), 0, "something is to be sent again");
        assert_eq!(
            marked(|bench| {
                bench.conn.lost_out = 2;
                bench.ack.losses = 2;
            }),
            1000 + BDP,
            "but it was not known as the ACK began"
        );
    }

    #[test]
    fn where_the_kernels_mark_may_not_be_written_the_packets_are_remembered() {
        let mut bench = Bench::with(Bbr3::faithful(1).without_app_limited());
        bench.go(Mode::Cruise);
        bench.conn.unsent_bytes = 0;
        bench.deliver();
        assert_eq!(bench.conn.app_limited, 0, "not touched");
        let (from, until) = (bench.cc.state().app_limited_from, bench.cc.state().app_limited_until);
        assert_eq!((from, until), (1000, 1000 + BDP));
        bench.conn.unsent_bytes = 1 << 20;

        // Sent before, within, and after.
        bench.ack.prior_delivered = from - 1;
        assert_eq!(bench.deliver().is_app_limited, 0);
        bench.ack.prior_delivered = from;
        assert_eq!(bench.deliver().is_app_limited, 1);
        bench.ack.prior_delivered = until;
        assert_eq!(bench.deliver().is_app_limited, 1);
        bench.ack.prior_delivered = until + 1;
        assert_eq!(bench.deliver().is_app_limited, 0);
        assert_eq!(bench.cc.state().app_limited_mark, 0, "over");
        // The kernel's own mark counts as ever.
        bench.ack.is_app_limited = 1;
        assert_eq!(bench.deliver().is_app_limited, 1);
    }

    #[test]
    fn a_mark_that_goes_on_keeps_its_beginning() {
        let mut bench = Bench::with(Bbr3::faithful(1).without_app_limited());
        bench.go(Mode::Cruise);
        bench.conn.unsent_bytes = 0;
        bench.deliver();
        bench.conn.unsent_bytes = 0;
        bench.deliver();
        assert_eq!(bench.cc.state().app_limited_from, 1000);
        assert_eq!(bench.cc.state().app_limited_until, 1002 + BDP);
    }

    #[test]
    fn the_remembered_mark_makes_a_restart_one_from_idleness() {
        let mut bench = Bench::with(Bbr3::faithful(1).without_app_limited());
        bench.go(Mode::Cruise);
        bench.cc.tx_start(&mut bench.conn);
        assert_eq!(bench.cc.state().idle_restart, 0);
        bench.conn.unsent_bytes = 0;
        bench.deliver();
        bench.cc.tx_start(&mut bench.conn);
        assert_eq!(bench.cc.state().idle_restart, 1);
        assert_eq!(bench.cc.state().bw_lo, INFINITE);
    }
}
