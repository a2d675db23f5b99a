//! Each step of the algorithm by itself: what an ACK brings, and what becomes of it.

mod common;

use bbr3::Mode;
use bbr3_native::{CaState, Count};
use common::bench::{BDP, BW, Bench, INFINITE, MSS, RTT_US};

const ACKS_STARTING: u8 = 2;
const ACKS_FEEDBACK: u8 = 3;
const ACKS_STOPPING: u8 = 4;

/// A share of the flight: `percent` of a BDP.
fn share(percent: u32) -> u32 {
    BDP * percent / 100
}

mod init {
    use super::*;

    #[test]
    fn a_connection_begins_in_startup_with_no_bounds() {
        let bench = Bench::new();
        let state = bench.cc.state();
        assert_eq!(bench.mode(), Mode::Startup);
        assert_eq!((state.bw_lo, state.inflight_lo, state.inflight_hi), (INFINITE, INFINITE, INFINITE));
        assert_eq!(state.min_rtt_us, RTT_US);
        assert_eq!(state.next_round_delivered, bench.conn.delivered);
        assert_eq!(state.loss_round_delivered, bench.conn.delivered + 1);
        assert_eq!(bench.conn.ssthresh, 0x7fff_ffff);
        assert_eq!(bench.conn.cwnd, 10, "the initial window stays the kernel's");
    }

    #[test]
    fn pacing_starts_at_the_window_per_rtt_times_the_startup_gain() {
        let bench = Bench::new();
        let expected = 10.0 * f64::from(MSS) / 0.040960 * 2.773 * 0.99;
        assert!((bench.conn.pacing_rate as f64 / expected - 1.0).abs() < 0.001, "{}", bench.conn.pacing_rate);
        assert_eq!(bench.cc.state().has_seen_rtt, 1);
    }

    #[test]
    fn without_an_rtt_pacing_starts_at_the_window_per_millisecond_until_there_is_one() {
        let mut bench = Bench::new();
        bench.conn.srtt_us = 0;
        bench.conn.pacing_rate = u64::MAX;
        bench.conn.kernel_min_rtt_us = INFINITE;
        bench.cc.init(&mut bench.conn);
        let expected = 10.0 * f64::from(MSS) / 0.001 * 2.773 * 0.99;
        assert!((bench.conn.pacing_rate as f64 / expected - 1.0).abs() < 0.001);
        assert_eq!(bench.cc.state().has_seen_rtt, 0);
        bench.conn.srtt_us = RTT_US << 3;
        bench.ack.delivered = 10;
        bench.deliver();
        assert_eq!(bench.cc.state().has_seen_rtt, 1);
        assert!((bench.conn.pacing_rate as f64) < expected / 10.0, "the first RTT lowers it");
    }

    #[test]
    fn nothing_of_an_earlier_use_of_the_socket_is_left() {
        let fresh = Bench::new();
        let mut used = Bench::in_mode(Mode::Up);
        for _ in 0..50 {
            used.round();
        }
        used.conn = Bench::new().conn;
        used.cc.init(&mut used.conn);
        assert_eq!(used.cc.state(), fresh.cc.state());
    }

    #[test]
    fn a_large_initial_window_is_remembered_up_to_127() {
        let mut bench = Bench::new();
        bench.conn.cwnd = 500;
        bench.cc.init(&mut bench.conn);
        assert_eq!(bench.cc.state().init_cwnd, 127);
    }
}

mod rounds {
    use super::*;

    #[test]
    fn a_round_trip_ends_with_the_delivery_of_something_sent_after_it_began() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        let end = bench.conn.delivered;
        bench.deliver();
        assert_eq!(bench.cc.state().round_start, 0);
        bench.ack.prior_delivered = end;
        bench.deliver();
        assert_eq!(bench.cc.state().round_start, 1);
        assert_eq!(bench.cc.state().next_round_delivered, bench.conn.delivered);
        bench.ack.prior_delivered = end + 1;
        bench.deliver();
        assert_eq!(bench.cc.state().round_start, 0);
    }

    #[test]
    fn counters_may_wrap() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.conn.delivered = u32::MAX - 3;
        bench.new_round();
        bench.round();
        assert_eq!(bench.cc.state().round_start, 1);
        bench.ack.prior_delivered = u32::MAX - 2;
        bench.ack.acked_sacked = 4;
        bench.deliver();
        assert_eq!((bench.cc.state().round_start, bench.conn.delivered), (0, 2));
        bench.round();
        assert_eq!(bench.cc.state().round_start, 1, "2 is after 2^32 - 2");
    }

    #[test]
    fn an_ack_without_a_valid_interval_does_not_end_one() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.ack.interval_us = -1;
        bench.round();
        assert_eq!(bench.cc.state().round_start, 0);
    }

    #[test]
    fn rounds_since_the_last_probe_do_not_overflow() {
        let mut bench = Bench::knobs(|knobs| knobs.probe_max_rounds = 1000);
        bench.go(Mode::Cruise);
        bench.cc.state_mut().bw_hi = [0, 100 * BW];
        bench.conn.cwnd = 100 * BDP;
        bench.cc.state_mut().rounds_since_probe = 255;
        bench.round();
        assert_eq!(bench.cc.state().rounds_since_probe, 255);
    }
}

mod lower_bounds {
    use super::*;

    /// A round with loss in CRUISE, at `bw_percent` of the bandwidth.
    fn lossy_round(bench: &mut Bench, bw_percent: i64) {
        bench.ack.losses = 1;
        bench.deliver();
        bench.ack.interval_us = bench.ack.interval_us * 100 / bw_percent;
        bench.round();
    }

    #[test]
    fn a_round_with_loss_lowers_them_towards_what_was_delivered() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        lossy_round(&mut bench, 100);
        let state = *bench.cc.state();
        assert!(state.bw_lo.abs_diff(BW) < BW / 100, "the path still delivers all of it: {}", state.bw_lo);
        assert_eq!(state.inflight_lo, (2 * BDP + 2) * 180 / 256, "less is delivered than 0.7 of the window");
        assert_eq!(state.loss_in_round, 0, "a new round begins");
        assert_eq!(state.loss_round_start, 1);
    }

    #[test]
    fn they_do_not_fall_by_more_than_beta_in_a_round() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().bw_lo = BW;
        bench.cc.state_mut().inflight_lo = BDP;
        bench.ack.losses = 1;
        bench.ack.interval_us *= 10;
        bench.ack.delivered /= 10;
        bench.deliver();
        bench.ack.interval_us *= 10;
        bench.ack.delivered /= 10;
        bench.round();
        assert_eq!(bench.cc.state().bw_lo, (u64::from(BW) * 180 / 256) as u32);
        assert_eq!(bench.cc.state().inflight_lo, BDP * 180 / 256);
    }

    #[test]
    fn bandwidth_never_falls_to_nothing() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().bw_lo = 1;
        bench.ack.losses = 1;
        bench.deliver();
        bench.cc.state_mut().bw_latest = 0;
        bench.ack.interval_us = i64::MAX / 2;
        bench.ack.delivered = 0;
        bench.round();
        assert_eq!(bench.cc.state().bw_lo, 1);
    }

    #[test]
    fn without_loss_they_stay_away() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.round();
        bench.round();
        assert_eq!((bench.cc.state().bw_lo, bench.cc.state().inflight_lo), (INFINITE, INFINITE));
    }

    #[test]
    fn while_probing_loss_does_not_set_them() {
        for mode in [Mode::Startup, Mode::Refill, Mode::Up] {
            let mut bench = Bench::in_mode(mode);
            bench.ack.losses = 1;
            bench.deliver();
            // REFILL would end with the round.
            bench.cc.state_mut().next_round_delivered = bench.conn.delivered + 100;
            bench.round();
            assert_eq!(bench.cc.state().loss_round_start, 1, "{mode:?}");
            assert_eq!((bench.cc.state().bw_lo, bench.cc.state().inflight_lo), (INFINITE, INFINITE), "{mode:?}");
        }
    }

    #[test]
    fn each_has_a_loss_threshold_of_its_own() {
        let bounds = |bw_thresh: u32, inflight_thresh: u32, losses: i32| {
            let mut bench = Bench::knobs(|knobs| {
                knobs.bw_lo_loss_thresh = bw_thresh;
                knobs.inflight_lo_loss_thresh = inflight_thresh;
            });
            bench.go(Mode::Cruise);
            // The ring has seen the flight of one BDP.
            bench.deliver();
            bench.ack.losses = losses;
            bench.deliver();
            let sample = bench.round();
            assert!(sample.tx_in_flight.abs_diff(BDP) < 5, "{}", sample.tx_in_flight);
            (bench.cc.state().bw_lo != INFINITE, bench.cc.state().inflight_lo != INFINITE)
        };
        // 20/256 of 160 packets are 12.5.
        assert_eq!(bounds(0, 0, 1), (true, true));
        assert_eq!(bounds(20, 20, 12), (false, false));
        assert_eq!(bounds(20, 0, 12), (false, true));
        assert_eq!(bounds(0, 20, 12), (true, false));
    }

    #[test]
    fn what_a_tail_loss_probe_repairs_does_not_start_a_new_measurement() {
        let latest = |is_probe: bool| {
            let mut bench = Bench::in_mode(Mode::Cruise);
            bench.cc.state_mut().bw_latest = 5 * BW;
            bench.cc.state_mut().inflight_latest = 5 * BDP;
            if is_probe {
                bench.conn.tlp_high_seq = 77;
                bench.conn.tlp_retrans = 1;
                bench.conn.snd_una = 77;
            }
            let sample = bench.round();
            assert_eq!(sample.is_tlp_ack == 1, is_probe);
            (bench.cc.state().bw_latest > 4 * BW, bench.cc.state().inflight_latest > 4 * BDP)
        };
        assert_eq!(latest(false), (false, false));
        assert_eq!(latest(true), (true, true));
    }
}

mod startup {
    use super::*;

    #[test]
    fn it_ends_after_three_rounds_without_growth_by_a_quarter() {
        let mut bench = Bench::in_mode(Mode::Startup);
        for round in 1..=3 {
            assert_eq!(bench.mode(), Mode::Startup, "round {round}");
            bench.round();
        }
        assert_eq!(bench.mode(), Mode::Drain);
        assert_eq!(bench.cc.take_transitions(), [(Mode::Startup, Mode::Drain)]);
        assert_eq!(bench.cc.state().full_bw_reached, 1);
        assert!(bench.conn.ssthresh.abs_diff(BDP) < 3, "shown as the slow start threshold: {}", bench.conn.ssthresh);
    }

    #[test]
    fn growth_by_a_quarter_begins_the_count_again() {
        let mut bench = Bench::in_mode(Mode::Startup);
        bench.round();
        bench.round();
        assert_eq!(bench.cc.state().full_bw_count, 2);
        // Growth is noticed on any ACK, not only at the end of a round.
        bench.ack.interval_us = bench.ack.interval_us * 100 / 126;
        bench.deliver();
        assert_eq!(bench.cc.state().full_bw_count, 0);
        assert!(bench.cc.state().full_bw > BW * 5 / 4);
        bench.ack.interval_us = bench.ack.interval_us * 100 / 126;
        bench.round();
        assert_eq!(bench.cc.state().full_bw_count, 1);
    }

    #[test]
    fn application_limited_rounds_are_not_counted() {
        let mut bench = Bench::in_mode(Mode::Startup);
        for _ in 0..20 {
            bench.ack.is_app_limited = 1;
            bench.round();
        }
        assert_eq!((bench.mode(), bench.cc.state().full_bw_count), (Mode::Startup, 0));
    }

    /// A round of recovery with `events` ACKs that bring news of loss.
    fn lossy(bench: &mut Bench, events: u32, losses: i32) {
        bench.deliver();
        bench.set_state(CaState::Recovery);
        for _ in 0..events {
            bench.ack.losses = losses;
            bench.deliver();
        }
        bench.cc.state_mut().full_bw_count = 0;
        // Not a round of the plateau test.
        bench.cc.state_mut().next_round_delivered = bench.conn.delivered + 1000;
        bench.ack.prior_delivered = bench.cc.state().loss_round_delivered;
        bench.deliver();
    }

    #[test]
    fn six_losses_in_a_round_of_recovery_end_it() {
        let mut bench = Bench::in_mode(Mode::Startup);
        lossy(&mut bench, 6, 1);
        assert_eq!(bench.cc.count(Count::StartupLoss), 1);
        assert_ne!(bench.mode(), Mode::Startup);
        assert_eq!(bench.cc.state().undo_mode, Mode::Startup as u8);
        assert!(bench.cc.state().inflight_hi >= BDP, "{}", bench.cc.state().inflight_hi);
    }

    #[test]
    fn fewer_losses_or_less_of_the_flight_do_not() {
        for (events, losses, knob) in [(5, 1, 5), (6, 1, 20)] {
            let mut bench = Bench::knobs(|knobs| knobs.startup_loss_thresh = knob);
            bench.go(Mode::Startup);
            lossy(&mut bench, events, losses);
            assert_eq!(bench.mode(), Mode::Startup, "{events} {knob}");
            assert_eq!(bench.cc.state().loss_events_in_round, 0, "a new round of the loss clock");
        }
        // Not in recovery.
        let mut bench = Bench::in_mode(Mode::Startup);
        for _ in 0..20 {
            bench.ack.losses = 1;
            bench.deliver();
        }
        assert_eq!(bench.cc.state().loss_events_in_round, 15, "saturates");
        bench.cc.state_mut().next_round_delivered = bench.conn.delivered + 1000;
        bench.round();
        assert_eq!(bench.mode(), Mode::Startup);
    }

    #[test]
    fn how_many_losses_it_takes_is_a_knob() {
        let mut bench = Bench::knobs(|knobs| knobs.startup_full_loss_count = 4);
        bench.go(Mode::Startup);
        lossy(&mut bench, 3, 2);
        assert_eq!(bench.cc.count(Count::StartupLoss), 0);
        lossy(&mut bench, 4, 2);
        assert_eq!(bench.cc.count(Count::StartupLoss), 1);
    }

    #[test]
    fn without_sack_any_loss_in_recovery_ends_it() {
        let mut bench = Bench::in_mode(Mode::Startup);
        bench.conn.has_sack = 0;
        bench.ack.losses = 1;
        bench.deliver();
        assert_eq!(bench.mode(), Mode::Startup, "not in recovery");
        bench.set_state(CaState::Recovery);
        bench.ack.losses = 1;
        bench.deliver();
        assert_ne!(bench.mode(), Mode::Startup);
    }
}

mod drain {
    use super::*;

    fn full(rounds: u8) -> Bench {
        let mut bench = Bench::in_mode(Mode::Drain);
        bench.conn.in_flight = 2 * BDP;
        bench.cc.state_mut().drain_rounds = rounds;
        bench
    }

    #[test]
    fn it_lasts_until_the_flight_is_a_bdp() {
        let mut bench = full(0);
        bench.deliver();
        assert_eq!(bench.mode(), Mode::Drain);
        bench.conn.in_flight = BDP;
        bench.deliver();
        assert_eq!(bench.mode(), Mode::Down);
    }

    #[test]
    fn it_lasts_three_rounds_and_no_more() {
        let mut bench = full(0);
        for _ in 0..3 {
            bench.round();
            assert_eq!(bench.mode(), Mode::Drain);
        }
        bench.round();
        assert_eq!(bench.mode(), Mode::Down);
    }

    #[test]
    fn what_pacing_holds_back_will_be_gone_by_then() {
        // The next packet departs in this time.
        let after = |wait_us: u64| {
            let mut bench = full(0);
            bench.conn.departure_ns = bench.conn.clock_ns + wait_us * 1000;
            bench.deliver();
            bench.cc.take_transitions().first() == Some(&(Mode::Drain, Mode::Down))
        };
        assert!(after(u64::from(RTT_US)), "a whole BDP is delivered until then");
        assert!(!after(u64::from(RTT_US) / 10));
        assert!(after(u64::from(RTT_US) * 10), "more than there is");
    }

    #[test]
    fn it_paces_at_half_the_bandwidth() {
        let mut bench = full(0);
        bench.deliver();
        let expected = f64::from(MSS) / 256e-6 * 0.5 * 0.99;
        assert!((bench.conn.pacing_rate as f64 / expected - 1.0).abs() < 0.01, "{}", bench.conn.pacing_rate);
    }
}

mod probe_bw {
    use super::*;

    #[test]
    fn down_ends_in_cruise_with_headroom_and_no_queue() {
        let next = |in_flight: u32, inflight_hi: u32| {
            let mut bench = Bench::in_mode(Mode::Down);
            bench.cc.state_mut().inflight_hi = inflight_hi;
            bench.ack.prior_in_flight = in_flight;
            bench.deliver();
            bench.mode()
        };
        assert_eq!(next(BDP, INFINITE), Mode::Cruise);
        assert_eq!(next(BDP + 1, INFINITE), Mode::Down, "more than a BDP");
        assert_eq!(next(BDP, BDP), Mode::Down, "no headroom");
        assert_eq!(next(share(85), BDP), Mode::Cruise);
        assert_eq!(next(4, 3), Mode::Cruise, "headroom is never below the smallest window");
        assert_eq!(next(4, 1), Mode::Cruise);
        assert_eq!(next(5, 1), Mode::Down);
    }

    #[test]
    fn cruise_takes_over_no_short_term_bound_above_the_long_term_one() {
        for (lo, expected) in [(2 * BDP, BDP + 50), (BDP, BDP), (INFINITE, INFINITE)] {
            let mut bench = Bench::in_mode(Mode::Down);
            bench.cc.state_mut().inflight_hi = BDP + 50;
            bench.cc.state_mut().inflight_lo = lo;
            bench.ack.prior_in_flight = 10;
            bench.deliver();
            assert_eq!((bench.mode(), bench.cc.state().inflight_lo), (Mode::Cruise, expected));
        }
    }

    #[test]
    fn it_is_time_to_probe_after_the_chosen_wait() {
        for mode in [Mode::Down, Mode::Cruise] {
            let mut bench = Bench::in_mode(mode);
            bench.ack.prior_in_flight = 10 * BDP;
            bench.after(2_500_000);
            assert_eq!(bench.mode(), mode);
            bench.cc.state_mut().probe_rtt_min_stamp = bench.conn.now_us;
            bench.ack.prior_in_flight = 10 * BDP;
            bench.after(1);
            assert_eq!(bench.mode(), Mode::Refill);
        }
    }

    #[test]
    fn it_is_time_to_probe_as_often_as_reno_would() {
        let probes = |rounds: u8, cwnd: u32| {
            let mut bench = Bench::in_mode(Mode::Cruise);
            bench.cc.state_mut().rounds_since_probe = rounds;
            bench.conn.cwnd = cwnd;
            bench.deliver();
            bench.mode() == Mode::Refill
        };
        assert!(probes(63, 2 * BDP));
        assert!(!probes(62, 2 * BDP));
        assert!(probes(20, 20), "a small window is probed more often");
        assert!(!probes(19, 20));
    }

    #[test]
    fn the_wait_is_two_to_three_seconds_and_starts_at_none_or_one_round() {
        for (rounds, fraction, wait) in [(0, 0, 2_000_000), (1, u32::MAX, 2_999_999), (0, 1 << 31, 2_500_000)] {
            let mut bench = Bench::in_mode(Mode::Drain);
            bench.cc.script_probe_wait(rounds, fraction);
            bench.ack.prior_in_flight = 3 * BDP;
            bench.deliver();
            assert_eq!(bench.mode(), Mode::Down);
            assert_eq!(bench.cc.state().probe_wait_us, wait);
            assert_eq!(u32::from(bench.cc.state().rounds_since_probe), rounds);
        }
    }

    #[test]
    fn refill_forgets_the_short_term_bounds_and_lasts_a_round() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().bw_lo = BW / 2;
        bench.cc.state_mut().inflight_lo = BDP / 2;
        bench.cc.state_mut().stopped_risky_probe = 1;
        bench.cc.state_mut().probe_up_rounds = 7;
        bench.cc.state_mut().rounds_since_probe = 63;
        bench.deliver();
        assert_eq!(bench.mode(), Mode::Refill);
        let state = *bench.cc.state();
        assert_eq!((state.bw_lo, state.inflight_lo), (INFINITE, INFINITE));
        assert_eq!((state.stopped_risky_probe, state.probe_up_rounds, state.bw_probe_samples), (0, 0, 0));
        bench.deliver();
        assert_eq!(bench.mode(), Mode::Refill);
        let cwnd = bench.conn.cwnd;
        bench.round();
        assert_eq!(bench.mode(), Mode::Up);
        let state = *bench.cc.state();
        assert_eq!((state.bw_probe_samples, state.ack_phase, state.full_bw_count), (1, ACKS_STARTING, 0));
        assert_eq!((state.probe_up_rounds, state.probe_up_cnt), (1, cwnd));
        bench.round();
        assert_eq!(bench.cc.state().ack_phase, ACKS_FEEDBACK);
    }

    #[test]
    fn up_ends_when_the_bandwidth_stops_growing() {
        let mut bench = Bench::in_mode(Mode::Up);
        bench.cc.state_mut().prev_probe_too_high = 1;
        for _ in 0..2 {
            bench.round();
            assert_eq!(bench.mode(), Mode::Up);
        }
        bench.round();
        assert_eq!(bench.mode(), Mode::Down);
        assert_eq!(bench.cc.state().prev_probe_too_high, 0);
        assert_eq!(bench.cc.state().ack_phase, ACKS_STOPPING);
    }

    #[test]
    fn up_does_not_end_for_that_while_the_bound_limits() {
        let mut bench = Bench::in_mode(Mode::Up);
        bench.cc.state_mut().inflight_hi = 2 * BDP;
        for ack in 0..8 {
            bench.conn.is_cwnd_limited = 1;
            bench.conn.cwnd = bench.cc.state().inflight_hi;
            if ack % 2 == 0 {
                bench.round()
            } else {
                bench.deliver()
            };
            assert_eq!(bench.mode(), Mode::Up);
        }
    }

    #[test]
    fn a_probe_after_one_that_went_too_high_stops_at_the_bound() {
        let mut bench = Bench::in_mode(Mode::Up);
        bench.cc.state_mut().inflight_hi = BDP + 40;
        bench.cc.state_mut().prev_probe_too_high = 1;
        // The next burst of five packets counts.
        bench.conn.pacing_rate = 5 * 1024 * u64::from(MSS);
        bench.ack.prior_in_flight = BDP + 34;
        bench.deliver();
        assert_eq!(bench.mode(), Mode::Up);
        bench.conn.pacing_rate = 5 * 1024 * u64::from(MSS);
        bench.ack.prior_in_flight = BDP + 35;
        bench.deliver();
        assert_eq!(bench.mode(), Mode::Down);
        assert_eq!((bench.cc.state().stopped_risky_probe, bench.cc.state().prev_probe_too_high), (1, 0));
        // A round without too much loss: at once the next.
        bench.round();
        assert_eq!(bench.mode(), Mode::Refill);
        assert_eq!(bench.cc.state().bw_probe_samples, 0);
    }

    #[test]
    fn with_loss_the_next_probe_waits() {
        let mut bench = Bench::in_mode(Mode::Down);
        bench.cc.state_mut().ack_phase = ACKS_STOPPING;
        bench.cc.state_mut().stopped_risky_probe = 1;
        bench.cc.state_mut().prev_probe_too_high = 1;
        bench.ack.prior_in_flight = 10 * BDP;
        bench.round();
        assert_eq!(bench.mode(), Mode::Down);
    }

    #[test]
    fn the_bound_grows_by_one_two_four_packets_a_round() {
        let mut bench = Bench::in_mode(Mode::Up);
        bench.cc.state_mut().inflight_hi = 100;
        bench.cc.state_mut().probe_up_cnt = 100;
        bench.cc.state_mut().probe_up_rounds = 1;
        bench.conn.in_flight = 50;
        let mut grown = Vec::new();
        for _ in 0..4 {
            let before = bench.cc.state().inflight_hi;
            for ack in 0..50 {
                bench.conn.is_cwnd_limited = 1;
                bench.conn.cwnd = bench.cc.state().inflight_hi;
                bench.ack.prior_in_flight = 50;
                if ack == 49 {
                    bench.round()
                } else {
                    bench.deliver()
                };
            }
            grown.push(bench.cc.state().inflight_hi - before);
        }
        assert_eq!(grown[..3], [1, 2, 4], "{grown:?}");
        assert!(grown[3] >= 7, "{grown:?}");
    }

    #[test]
    fn the_bound_grows_only_where_the_window_is_used_up_to_it() {
        for (limited, cwnd) in [(0, 100), (1, 99)] {
            let mut bench = Bench::in_mode(Mode::Up);
            bench.cc.state_mut().inflight_hi = 100;
            bench.cc.state_mut().probe_up_cnt = 1;
            bench.conn.is_cwnd_limited = limited;
            bench.conn.cwnd = cwnd;
            bench.conn.in_flight = 50;
            bench.ack.prior_in_flight = 50;
            bench.deliver();
            assert_eq!(bench.cc.state().inflight_hi, 100);
        }
    }

    #[test]
    fn growth_does_not_double_without_end() {
        let mut bench = Bench::in_mode(Mode::Refill);
        bench.cc.state_mut().probe_up_rounds = 31;
        bench.round();
        assert_eq!(bench.mode(), Mode::Up);
        assert_eq!((bench.cc.state().probe_up_rounds, bench.cc.state().probe_up_cnt), (30, 1));
    }

    #[test]
    fn a_flight_that_came_through_raises_the_bound() {
        for mode in [Mode::Down, Mode::Drain, Mode::ProbeRtt] {
            let mut bench = Bench::in_mode(mode);
            bench.conn.in_flight = 2 * BDP;
            bench.rest_with(2 * BDP);
            bench.deliver();
            bench.cc.state_mut().inflight_hi = BDP;
            bench.rest_with(2 * BDP);
            let sample = bench.round();
            assert_eq!(bench.cc.state().inflight_hi, sample.tx_in_flight.max(BDP), "{mode:?}");
            assert!(sample.tx_in_flight > BDP + 50);
        }
    }
}

mod probe_rtt {
    use super::*;

    fn due() -> Bench {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().min_rtt_stamp = bench.conn.now_us;
        bench.cc.state_mut().probe_rtt_min_stamp = bench.conn.now_us;
        bench.cc.state_mut().probe_wait_us = 100_000_000;
        bench
    }

    #[test]
    fn it_comes_five_seconds_after_the_last_minimum() {
        let mut bench = due();
        bench.after(5_000_000);
        assert_eq!(bench.mode(), Mode::Cruise);
        bench.after(1);
        assert_eq!(bench.mode(), Mode::ProbeRtt);
        assert_eq!(bench.cc.state().ack_phase, ACKS_STOPPING);
        assert!(bench.cc.state().prior_cwnd >= 2 * BDP);
        assert_eq!(bench.conn.cwnd, BDP / 2);
        assert_eq!(bench.cc.state().pacing_gain, 256);
    }

    #[test]
    fn an_equal_minimum_puts_it_off() {
        let mut bench = due();
        bench.ack.rtt_us = i64::from(RTT_US) - 1;
        bench.after(4_000_000);
        bench.after(1_000_001);
        assert_eq!(bench.mode(), Mode::Cruise);
        bench.after(4_000_000);
        assert_eq!(bench.mode(), Mode::ProbeRtt);
    }

    #[test]
    fn it_holds_the_low_window_for_200_ms_and_a_round() {
        let mut bench = due();
        bench.after(5_000_001);
        // Not low yet.
        bench.conn.in_flight = BDP / 2 + 1;
        bench.after(1000);
        assert_eq!(bench.cc.state().probe_rtt_done_stamp, 0);
        bench.conn.in_flight = BDP / 2;
        bench.after(1000);
        assert_eq!(bench.cc.state().probe_rtt_done_stamp, bench.conn.now_us + 200_000);
        bench.after(200_001);
        assert_eq!(bench.mode(), Mode::ProbeRtt, "no round yet");
        bench.round();
        assert_eq!(bench.mode(), Mode::Cruise);
        assert_eq!(bench.cc.take_transitions()[1..], [(Mode::ProbeRtt, Mode::Down), (Mode::Down, Mode::Cruise)]);
        assert!(bench.conn.cwnd > BDP, "the window is back: {}", bench.conn.cwnd);
        assert_eq!(bench.cc.state().probe_rtt_min_stamp, bench.conn.now_us, "five seconds to the next");

        let mut bench = due();
        bench.after(5_000_001);
        bench.conn.in_flight = 4;
        bench.after(1000);
        bench.round();
        bench.after(199_999);
        assert_eq!(bench.mode(), Mode::ProbeRtt, "a round, but not 200 ms");
        bench.after(2);
        assert_eq!(bench.mode(), Mode::Cruise);
    }

    #[test]
    fn its_samples_count_as_application_limited() {
        let mut bench = due();
        bench.after(5_000_001);
        bench.conn.in_flight = 33;
        bench.deliver();
        assert_eq!(bench.conn.app_limited, bench.conn.delivered + 33);
        bench.conn.delivered = 0u32.wrapping_sub(35);
        bench.deliver();
        assert_eq!(bench.conn.app_limited, 1, "zero would mean: not limited");
    }

    #[test]
    fn before_the_pipe_was_full_it_leads_back_to_startup() {
        let mut bench = Bench::in_mode(Mode::Startup);
        bench.cc.state_mut().probe_rtt_min_stamp = bench.conn.now_us;
        bench.after(5_000_001);
        assert_eq!(bench.mode(), Mode::ProbeRtt);
        bench.conn.in_flight = 4;
        bench.after(1000);
        bench.round();
        bench.after(200_001);
        assert_eq!(bench.mode(), Mode::Startup);
    }

    #[test]
    fn it_ends_the_short_term_bounds() {
        let mut bench = due();
        bench.after(5_000_001);
        bench.cc.state_mut().bw_lo = BW / 4;
        bench.cc.state_mut().inflight_lo = BDP / 4;
        bench.conn.in_flight = 4;
        bench.after(1000);
        bench.round();
        bench.after(200_001);
        assert_eq!((bench.cc.state().bw_lo, bench.cc.state().inflight_lo), (INFINITE, INFINITE));
    }

    #[test]
    fn a_minimum_is_believed_for_ten_seconds() {
        let mut bench = due();
        let start = bench.conn.now_us;
        bench.cc.state_mut().probe_rtt_min_us = RTT_US + 5000;
        bench.cc.state_mut().probe_rtt_min_stamp = start + 9_000_000;
        bench.after(10_000_000);
        assert_eq!(bench.cc.state().min_rtt_us, RTT_US);
        bench.after(1);
        assert_eq!(bench.cc.state().min_rtt_us, RTT_US + 100, "the lowest since");
    }

    #[test]
    fn a_delayed_ack_does_not_open_a_new_window() {
        for (delayed, expected) in [(1, RTT_US), (0, RTT_US + 9000)] {
            let mut bench = due();
            bench.ack.rtt_us = i64::from(RTT_US) + 9000;
            bench.ack.is_ack_delayed = delayed;
            bench.after(5_000_001);
            assert_eq!(bench.cc.state().probe_rtt_min_us, expected);
        }
    }

    #[test]
    fn an_ack_without_an_rtt_changes_no_minimum() {
        let mut bench = due();
        bench.ack.rtt_us = -1;
        bench.after(5_000_001);
        assert_eq!(bench.cc.state().probe_rtt_min_us, RTT_US);
        assert_eq!(bench.mode(), Mode::ProbeRtt);
    }

    #[test]
    fn after_idleness_it_is_skipped() {
        let mut bench = due();
        bench.cc.state_mut().idle_restart = 1;
        bench.after(5_000_001);
        assert_eq!(bench.mode(), Mode::Cruise);
        assert_eq!(bench.cc.state().idle_restart, 0, "something was delivered");
    }

    #[test]
    fn when_both_filters_run_out_the_low_window_is_of_the_old_minimum() {
        let mut bench = due();
        bench.ack.rtt_us = i64::from(RTT_US) * 4;
        bench.after(10_000_001);
        assert_eq!(bench.mode(), Mode::ProbeRtt);
        assert_eq!(bench.cc.state().min_rtt_us, RTT_US * 4, "the new minimum is a queue's");
        assert_eq!(bench.conn.cwnd, BDP / 2);
        // A lower one than before is believed at once.
        bench.ack.rtt_us = i64::from(RTT_US) / 2;
        bench.after(1000);
        assert_eq!(bench.conn.cwnd, BDP / 4);
    }
}
