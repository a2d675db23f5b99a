//! What loss leads to: the ring, the lost packet that goes too high, recovery, timeouts, tail loss probes, and undo.

mod common;

use bbr3::Mode;
use bbr3_native::{Bbr3, CaState, Count};
use common::bench::{BDP, BW, Bench, INFINITE, MSS, RTT_US};

/// In UP with samples of the probe arriving, and a steady flight of `packets`, sent in groups of two.
fn probing(packets: u32) -> Bench {
    prepare(Bench::new(), packets)
}

fn prepare(mut bench: Bench, packets: u32) -> Bench {
    bench.go(Mode::Cruise);
    bench.conn.in_flight = packets;
    bench.conn.snd_nxt = packets * MSS;
    for _ in 0..packets {
        bench.rest_with(packets);
        bench.cc.state_mut().rounds_since_probe = 0;
        bench.deliver();
    }
    bench.go(Mode::Up);
    bench.sends = false;
    bench.conn.in_flight = packets;
    bench.conn.cwnd = packets;
    bench.conn.snd_una = bench.conn.snd_nxt - packets * MSS;
    bench.cc.state_mut().bw_probe_samples = 1;
    bench.cc.state_mut().ack_phase = 3;
    bench.rest_with(packets);
    bench.ack.prior_delivered = bench.conn.delivered - packets;
    bench.ack.last_end_seq = bench.conn.snd_una + 10 * MSS;
    bench
}

mod ring {
    use super::*;

    /// Groups of two packets, each sent after an ACK for two, in a flight of `flight`.
    fn steady(flight: u32, groups: u32) -> Bench {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.conn.in_flight = flight;
        bench.conn.snd_nxt = flight * MSS;
        for _ in 0..groups {
            bench.rest_with(flight);
            bench.deliver();
        }
        bench
    }

    #[test]
    fn a_packet_finds_the_flight_it_was_sent_with() {
        let mut bench = steady(50, 100);
        let delivered = bench.conn.delivered;
        bench.rest_with(50);
        bench.ack.prior_delivered = delivered - 50;
        // The last of its group, and the one before it.
        bench.ack.last_end_seq = bench.conn.snd_nxt - 48 * MSS;
        assert_eq!(bench.deliver().tx_in_flight, 50);
        bench.rest_with(50);
        bench.ack.prior_delivered = delivered - 50;
        bench.ack.last_end_seq = bench.conn.snd_nxt - 51 * MSS;
        assert_eq!(bench.deliver().tx_in_flight, 49);
    }

    #[test]
    fn a_retransmission_left_before_the_new_data_of_its_group() {
        let mut bench = steady(50, 100);
        bench.ack.prior_delivered = bench.conn.delivered - 48;
        bench.ack.last_end_seq = MSS;
        bench.ack.is_retrans = 1;
        assert_eq!(bench.deliver().tx_in_flight, 48);
    }

    #[test]
    fn what_was_lost_since_is_counted() {
        let mut bench = steady(50, 100);
        let sent = bench.conn.delivered;
        bench.deliver();
        bench.ack.losses = 3;
        bench.deliver();
        bench.ack.losses = 2;
        bench.ack.prior_delivered = sent;
        let sample = bench.deliver();
        assert_eq!((sample.lost, sample.newly_lost, sample.ack_losses), (5, 2, 2));
        // Sent after all of it.
        bench.deliver();
        bench.ack.prior_delivered = bench.conn.delivered - 2;
        assert_eq!(bench.deliver().lost, 0);
    }

    #[test]
    fn marks_made_between_acks_are_news_too() {
        let mut bench = steady(50, 10);
        bench.conn.lost += 4;
        bench.ack.losses = 1;
        let sample = bench.deliver();
        assert_eq!((sample.newly_lost, sample.ack_losses), (5, 1));
        assert_eq!(bench.deliver().newly_lost, 0);
    }

    #[test]
    fn a_flight_of_any_size_fits_twice() {
        for flight in [10, 240, 5_000, 1_000_000] {
            let mut bench = steady(flight, 0);
            bench.conn.delivered = 1 << 30;
            let step = (flight / 400).max(1);
            for _ in 0..(2 * flight / step) {
                bench.rest_with(flight);
                bench.ack.acked_sacked = step;
                bench.deliver();
            }
            bench.rest_with(flight);
            bench.ack.prior_delivered = bench.conn.delivered - 2 * flight + flight / 50 + step;
            let sample = bench.deliver();
            assert!(sample.tx_in_flight > 0, "{flight}: still there");
        }
    }

    #[test]
    fn what_is_no_longer_there_is_not_known() {
        let mut bench = steady(10, 300);
        bench.ack.prior_delivered = bench.conn.delivered - 2 * 260;
        let sample = bench.deliver();
        assert_eq!((sample.tx_in_flight, sample.lost), (0, 0));
        bench.ack.prior_delivered = bench.conn.delivered - 2 * 230;
        assert!(bench.deliver().tx_in_flight > 0);
    }

    #[test]
    fn an_ack_without_a_delivered_packet_tells_nothing() {
        let mut bench = steady(50, 10);
        bench.ack.has_packet = 0;
        bench.ack.delivered = -1;
        bench.ack.interval_us = -1;
        let sample = bench.deliver();
        assert_eq!((sample.tx_in_flight, sample.lost, sample.has_packet), (0, 0, 0));
    }

    #[test]
    fn a_packet_is_always_in_its_own_flight() {
        let mut bench = steady(3, 10);
        bench.ack.prior_delivered = bench.conn.delivered - 2;
        bench.ack.last_end_seq = bench.conn.snd_nxt.wrapping_sub(1000 * MSS);
        assert_eq!(bench.deliver().tx_in_flight, 1);
    }
}

mod too_high {
    use super::*;

    #[test]
    fn the_packet_that_crosses_the_threshold_sets_the_bound() {
        // floor(200 * 5 / 256) = 3 are tolerated.
        let mut bench = probing(200);
        bench.ack.losses = 3;
        bench.deliver();
        assert_eq!((bench.cc.count(Count::TooHigh), bench.cc.state().inflight_hi), (0, INFINITE));

        let mut bench = probing(200);
        bench.ack.losses = 4;
        bench.deliver();
        assert_eq!((bench.cc.count(Count::TooHigh), bench.mode()), (1, Mode::Down));
        let state = *bench.cc.state();
        assert_eq!((state.prev_probe_too_high, state.bw_probe_samples, state.undo_mode), (1, 0, Mode::Up as u8));
        // Recovery begins with the oldest packet outstanding, the first of a group of two. The fourth from there crosses, as the last of
        // 200 again: with it 4 of 200 are lost.
        assert_eq!(state.inflight_hi, 200);
    }

    /// In recovery, with `losses` packets found lost by the delivery of one.
    fn recovering(losses: i32) -> Bench {
        let mut bench = probing(200);
        bench.cc.state_mut().prev_ca_state = CaState::Recovery as u8;
        bench.conn.ca_state = CaState::Recovery as u8;
        bench.ack.losses = losses;
        bench.ack.acked_sacked = 1;
        bench
    }

    #[test]
    fn in_recovery_the_lost_packet_is_the_one_before_those_delivered() {
        // The flight grew: the packets just before the one delivered had 206 in flight, the oldest 200.
        let mut bench = probing(200);
        bench.cc.state_mut().bw_probe_samples = 0;
        bench.sends = true;
        for _ in 0..6 {
            bench.conn.in_flight += 1;
            let flight = bench.conn.in_flight;
            bench.rest_with(flight);
            bench.deliver();
        }
        bench.sends = false;
        bench.cc.state_mut().mode = Mode::Up as u8;
        bench.cc.state_mut().bw_probe_samples = 1;
        bench.cc.state_mut().prev_ca_state = CaState::Recovery as u8;
        bench.rest_with(206);
        bench.ack.losses = 5;
        bench.ack.acked_sacked = 1;
        bench.ack.prior_delivered = bench.conn.delivered - 2;
        bench.ack.last_end_seq = bench.conn.snd_nxt;
        bench.deliver();
        // Lost are the five before the last: 202 in flight at the first, and 4 of 206 are tolerated.
        assert_eq!(bench.cc.count(Count::TooHigh), 1);
        assert!((205..=207).contains(&bench.cc.state().inflight_hi), "{}", bench.cc.state().inflight_hi);
    }

    #[test]
    fn where_the_lost_packet_was_is_not_known_its_group_stands_for_it() {
        // The delivered packet is a retransmission.
        let mut bench = recovering(4);
        bench.ack.is_retrans = 1;
        bench.deliver();
        assert_eq!(bench.cc.state().inflight_hi, 200);
        // Nothing was delivered.
        let mut bench = recovering(9);
        bench.ack.has_packet = 0;
        bench.deliver();
        assert_eq!(bench.cc.count(Count::TooHigh), 0);
        // The hole would be below what is acknowledged.
        let mut bench = recovering(15);
        bench.deliver();
        assert!(bench.cc.state().inflight_hi >= 200, "{}", bench.cc.state().inflight_hi);
    }

    #[test]
    fn with_reordering_the_lost_packet_is_older() {
        let lost_at = |reordering: bool| {
            let mut bench = probing(200);
            bench.sends = true;
            // A flight that grows by two packets with each ACK for two.
            for _ in 0..60 {
                bench.cc.state_mut().bw_probe_samples = 0;
                let flight = bench.conn.in_flight;
                bench.rest_with(flight);
                bench.deliver();
                bench.conn.in_flight += 2;
            }
            bench.cc.state_mut().mode = Mode::Up as u8;
            bench.cc.state_mut().bw_probe_samples = 1;
            bench.cc.state_mut().prev_ca_state = CaState::Recovery as u8;
            bench.cc.state_mut().bw_lo = BW;
            bench.conn.reord_seen = u8::from(reordering);
            bench.conn.reo_wnd_steps = 1;
            let flight = bench.conn.in_flight;
            bench.rest_with(flight);
            bench.ack.losses = 9;
            bench.ack.prior_delivered = bench.conn.delivered - 2;
            bench.ack.last_end_seq = bench.conn.snd_nxt;
            bench.deliver();
            assert_eq!(bench.cc.count(Count::TooHigh), 1);
            bench.cc.state().inflight_hi
        };
        let (without, with) = (lost_at(false), lost_at(true));
        // A quarter of the RTT at the bandwidth: 40 packets of `delivered`.
        assert!(without.abs_diff(with + 40) < 15, "{without} {with}");
    }

    #[test]
    fn the_bound_is_not_below_one_step_of_decrease() {
        let mut bench = probing(60);
        bench.conn.cwnd = 2 * BDP;
        bench.ack.losses = 3;
        bench.deliver();
        assert_eq!(bench.cc.state().inflight_hi, (BDP + 2) * 180 / 256);
    }

    #[test]
    fn an_application_limited_flight_ends_the_probe_and_sets_no_bound() {
        let mut bench = probing(200);
        bench.ack.losses = 10;
        bench.ack.is_app_limited = 1;
        bench.deliver();
        assert_eq!((bench.mode(), bench.cc.state().inflight_hi), (Mode::Down, INFINITE));
    }

    #[test]
    fn the_threshold_is_a_knob() {
        for (thresh, losses, too_high) in [(20, 15, 0), (20, 16, 1), (0, 1, 1)] {
            let mut bench = prepare(Bench::knobs(|knobs| knobs.loss_thresh = thresh), 200);
            bench.ack.losses = losses;
            bench.deliver();
            assert_eq!(bench.cc.count(Count::TooHigh), too_high, "{thresh} {losses}");
        }
    }

    #[test]
    fn without_sack_any_loss_is_too_much() {
        let mut bench = probing(200);
        bench.conn.has_sack = 0;
        bench.ack.losses = 1;
        bench.deliver();
        assert_eq!(bench.cc.count(Count::TooHigh), 1);
    }

    #[test]
    fn outside_a_probe_loss_sets_no_long_term_bound() {
        let mut bench = probing(200);
        bench.cc.state_mut().bw_probe_samples = 0;
        bench.ack.losses = 50;
        bench.deliver();
        assert_eq!((bench.cc.count(Count::TooHigh), bench.cc.state().inflight_hi), (0, INFINITE));
    }

    #[test]
    fn a_flight_found_too_high_as_it_is_acknowledged_ends_the_probe_too() {
        let mut bench = probing(200);
        bench.cc.state_mut().bw_probe_samples = 0;
        bench.ack.losses = 10;
        bench.deliver();
        bench.cc.state_mut().bw_probe_samples = 1;
        bench.ack.prior_delivered = bench.conn.delivered - 100;
        bench.deliver();
        assert_eq!((bench.mode(), bench.cc.count(Count::TooHigh)), (Mode::Down, 1));
    }

    #[test]
    fn the_crossing_is_worked_out_within_a_burst() {
        let mut cc = Bbr3::faithful(1);
        // (lost + x) / (flight + x) = 5/256: budget for 99 is 2, nothing lost before: x = 2 * 256 / 251.
        assert_eq!(cc.inflight_at_loss(100, 1), 99 + 2);
        assert_eq!(cc.inflight_at_loss(100, 2), 99 + 1);
        assert_eq!(cc.inflight_at_loss(100, 3), 99);
        assert_eq!(cc.inflight_at_loss(100, 50), 99);
        assert_eq!(cc.inflight_at_loss(1, 1), 0);
        let mut all = bbr3::Knobs::default().to_raw().unwrap();
        all.loss_thresh = 256;
        assert_eq!(Bbr3::new(all, 1).inflight_at_loss(100, 1), 99, "a threshold of 100 % divides by nothing");
    }

    #[test]
    fn a_lost_packet_that_the_ring_has_forgotten_changes_nothing() {
        let mut bench = probing(200);
        bench.conn.snd_una = bench.conn.snd_nxt.wrapping_add(500 * MSS);
        bench.ack.losses = 10;
        bench.ack.has_packet = 0;
        bench.deliver();
        assert_eq!(bench.cc.count(Count::TooHigh), 0);
        let mut bench = probing(200);
        bench.cc.state_mut().prev_ca_state = CaState::Recovery as u8;
        bench.ack.is_retrans = 1;
        bench.ack.prior_delivered = 10;
        bench.ack.losses = 10;
        bench.deliver();
        assert_eq!(bench.cc.count(Count::TooHigh), 0);
    }
}

mod loss_clock {
    use super::*;

    #[test]
    fn the_first_loss_of_a_round_starts_it() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().loss_round_delivered = bench.conn.delivered + 50;
        bench.ack.losses = 1;
        bench.deliver();
        assert_eq!(bench.cc.state().loss_round_delivered, bench.conn.delivered);
        let started = bench.cc.state().loss_round_delivered;
        bench.ack.losses = 1;
        bench.deliver();
        assert_eq!(bench.cc.state().loss_round_delivered, started, "the second does not");
    }

    #[test]
    fn a_loss_found_by_a_timer_starts_it_where_it_stood() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        let before = bench.conn.delivered;
        bench.conn.lost += 1;
        bench.deliver();
        assert_eq!(bench.cc.state().loss_round_delivered, before);
        assert_eq!(bench.cc.state().loss_in_round, 1);
    }
}

mod recovery {
    use super::*;

    #[test]
    fn the_window_survives_recovery() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        let ssthresh = bench.conn.ssthresh;
        assert_eq!(bench.cc.ssthresh(&mut bench.conn), ssthresh, "the kernel's question is not answered");
        assert_eq!(bench.cc.state().prior_cwnd, 2 * BDP);
        bench.set_state(CaState::Recovery);
        bench.deliver();
        bench.set_state(CaState::Open);
        assert!(bench.conn.cwnd >= 2 * BDP);
        assert_eq!(bench.cc.state().loss_in_episode, 0);
    }

    #[test]
    fn what_to_go_back_to_is_saved_once_an_episode_before_anything_is_cut() {
        let mut bench = probing(200);
        bench.cc.state_mut().inflight_hi = 190;
        bench.cc.ssthresh(&mut bench.conn);
        bench.set_state(CaState::Recovery);
        bench.ack.losses = 20;
        bench.deliver();
        assert_eq!(bench.cc.count(Count::TooHigh), 1);
        assert_eq!(bench.cc.state().undo_inflight_hi, 190);
        bench.cc.ssthresh(&mut bench.conn);
        assert_eq!(bench.cc.state().undo_inflight_hi, 190, "still the first");
    }

    #[test]
    fn a_loss_without_the_kernels_question_saves_too() {
        let mut bench = probing(200);
        bench.ack.losses = 20;
        bench.deliver();
        assert_eq!((bench.cc.state().loss_in_episode, bench.cc.state().prior_cwnd), (1, 200));
    }

    #[test]
    fn in_recovery_or_probe_rtt_the_larger_window_is_kept() {
        for (state, mode, expected) in [
            (CaState::Open, Mode::Cruise, BDP),
            (CaState::Recovery, Mode::Cruise, 3 * BDP),
            (CaState::Open, Mode::ProbeRtt, 3 * BDP),
        ] {
            let mut bench = Bench::in_mode(mode);
            bench.cc.state_mut().prev_ca_state = state as u8;
            bench.cc.state_mut().prior_cwnd = 3 * BDP;
            bench.conn.cwnd = BDP;
            bench.cc.ssthresh(&mut bench.conn);
            assert_eq!(bench.cc.state().prior_cwnd, expected);
        }
    }
}

mod timeout {
    use super::*;

    /// The kernel's steps of a timeout: marks everything, asks, cuts the window, changes the state.
    fn time_out(bench: &mut Bench) {
        let flight = bench.conn.in_flight;
        bench.conn.lost += flight;
        bench.conn.lost_out = flight;
        bench.conn.in_flight = 0;
        bench.conn.prior_cwnd = bench.conn.cwnd;
        bench.cc.ssthresh(&mut bench.conn);
        bench.conn.cwnd = 1;
        bench.set_state(CaState::Loss);
    }

    #[test]
    fn it_sets_the_short_term_window_bound_to_the_window_before_it() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().full_bw_count = 2;
        time_out(&mut bench);
        let state = *bench.cc.state();
        assert_eq!((state.inflight_lo, state.full_bw, state.full_bw_count), (2 * BDP, 0, 0));
        assert_eq!((bench.conn.cwnd, state.loss_in_round, bench.cc.count(Count::Rto)), (1, 1, 1));
        bench.set_state(CaState::Open);
        assert_eq!(bench.conn.cwnd, 2 * BDP, "back at the end of recovery");
    }

    #[test]
    fn it_leaves_a_bound_that_is_there_and_none_while_probing() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().inflight_lo = 77;
        time_out(&mut bench);
        assert_eq!(bench.cc.state().inflight_lo, 77);
        bench.set_state(CaState::Open);
        assert_eq!(bench.conn.cwnd, 77, "the restored window is bounded at once");
        let mut bench = Bench::in_mode(Mode::Startup);
        time_out(&mut bench);
        assert_eq!(bench.cc.state().inflight_lo, INFINITE);
    }

    #[test]
    fn a_flight_lost_in_a_probe_went_too_high_at_the_threshold() {
        let mut bench = probing(200);
        bench.conn.cwnd = 200;
        time_out(&mut bench);
        assert_eq!((bench.mode(), bench.cc.count(Count::TooHigh)), (Mode::Down, 1));
        // As for a loss found by an ACK.
        assert_eq!(bench.cc.state().inflight_hi, 200);
        assert_eq!(bench.cc.state().seen_lost, bench.conn.lost);
    }

    #[test]
    fn one_without_new_marks_is_not_counted_twice() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.conn.in_flight = 0;
        time_out(&mut bench);
        assert_eq!(bench.cc.state().loss_in_round, 0);
    }

    #[test]
    fn racks_timer_is_noticed_as_recovery_begins() {
        let mut bench = probing(200);
        bench.conn.lost += 4;
        bench.conn.in_flight -= 4;
        bench.cc.ssthresh(&mut bench.conn);
        bench.set_state(CaState::Recovery);
        assert_eq!((bench.mode(), bench.cc.count(Count::TooHigh)), (Mode::Down, 1));
        let state = *bench.cc.state();
        assert_eq!((state.inflight_hi, state.loss_in_episode, state.seen_lost), (200, 1, bench.conn.lost));
        assert_eq!(bench.cc.count(Count::Rto), 0);
        // The next ACK does not count them again.
        assert_eq!(bench.deliver().newly_lost, 0);
    }

    #[test]
    fn recovery_begun_by_an_ack_is_left_to_that_ack() {
        let mut bench = probing(200);
        bench.conn.lost += 4;
        bench.conn.delivered += 2;
        bench.cc.ssthresh(&mut bench.conn);
        bench.set_state(CaState::Recovery);
        assert_eq!((bench.mode(), bench.cc.count(Count::TooHigh)), (Mode::Up, 0));
    }

    #[test]
    fn what_was_sent_before_and_after_a_timer_is_told_apart() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.sends = false;
        let sent = bench.conn.delivered;
        // Two packets, the timer marks one, and four more leave before the next ACK.
        bench.conn.data_segs_out += 2;
        bench.conn.snd_nxt += 2 * MSS;
        bench.conn.in_flight += 2;
        let (before, in_flight) = (bench.conn.snd_nxt, bench.conn.in_flight);
        bench.conn.lost += 1;
        bench.conn.in_flight -= 1;
        bench.set_state(CaState::Recovery);
        bench.conn.data_segs_out += 4;
        bench.conn.snd_nxt += 4 * MSS;
        bench.conn.in_flight += 4;
        bench.rest_with(bench.conn.in_flight);
        bench.deliver();
        for (end, tx_in_flight, lost) in [(before, in_flight, 1), (before + 4 * MSS, in_flight + 3, 0)] {
            bench.ack.prior_delivered = sent;
            bench.ack.last_end_seq = end;
            let sample = bench.deliver();
            assert_eq!((sample.tx_in_flight, sample.lost), (tx_in_flight, lost));
        }
    }

    #[test]
    fn a_flight_that_the_ring_does_not_know_is_left() {
        let mut bench = probing(200);
        bench.conn.snd_una = bench.conn.snd_nxt + 9 * MSS;
        time_out(&mut bench);
        assert_eq!((bench.mode(), bench.cc.count(Count::TooHigh)), (Mode::Up, 0));
    }
}

mod tail_loss_probe {
    use super::*;

    fn repaired(bench: &mut Bench, retransmitted: bool) {
        bench.conn.tlp_high_seq = 5;
        bench.conn.tlp_retrans = u8::from(retransmitted);
        bench.cc.in_ack(&mut bench.conn);
        bench.conn.tlp_high_seq = 0;
        bench.cc.ssthresh(&mut bench.conn);
        bench.set_state(CaState::Cwr);
    }

    #[test]
    fn what_it_repairs_is_one_lost_packet_of_the_latest_flight() {
        let mut bench = probing(200);
        bench.cc.state_mut().inflight_latest = 30;
        repaired(&mut bench, true);
        assert_eq!((bench.cc.count(Count::TlpRecovery), bench.cc.count(Count::TooHigh)), (1, 1));
        assert_eq!((bench.mode(), bench.cc.state().loss_in_round), (Mode::Down, 0));
        // Of more than 51 packets one is tolerated.
        let mut bench = probing(200);
        bench.cc.state_mut().inflight_latest = 52;
        repaired(&mut bench, true);
        assert_eq!((bench.cc.count(Count::TlpRecovery), bench.cc.count(Count::TooHigh)), (1, 0));
        assert_eq!(bench.cc.state().loss_in_round, 1);
    }

    #[test]
    fn outside_a_probe_it_is_only_a_loss() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        repaired(&mut bench, true);
        assert_eq!((bench.mode(), bench.cc.state().loss_in_round), (Mode::Cruise, 1));
    }

    #[test]
    fn a_probe_of_new_data_repairs_nothing() {
        let mut bench = probing(200);
        repaired(&mut bench, false);
        assert_eq!(bench.cc.count(Count::TlpRecovery), 0);
    }

    #[test]
    fn a_reduction_for_another_reason_is_none() {
        let mut bench = probing(200);
        bench.conn.tlp_high_seq = 5;
        bench.conn.tlp_retrans = 1;
        bench.cc.in_ack(&mut bench.conn);
        bench.deliver();
        bench.set_state(CaState::Cwr);
        assert_eq!(bench.cc.count(Count::TlpRecovery), 0, "the ACK that might have repaired it is over");
    }
}

mod undo {
    use super::*;

    #[test]
    fn a_spurious_end_of_startup_is_taken_back() {
        let mut bench = Bench::in_mode(Mode::Startup);
        bench.cc.ssthresh(&mut bench.conn);
        bench.set_state(CaState::Recovery);
        let state = bench.cc.state_mut();
        state.mode = Mode::Drain as u8;
        state.undo_mode = Mode::Startup as u8;
        state.full_bw_reached = 1;
        state.inflight_hi = 50;
        state.bw_lo = BW / 3;
        state.inflight_lo = 40;
        state.loss_in_round = 1;
        bench.conn.cwnd = 20;
        let cwnd = bench.cc.undo(&mut bench.conn);
        let state = *bench.cc.state();
        assert_eq!((cwnd, bench.mode(), state.full_bw_reached), (2 * BDP, Mode::Startup, 0));
        assert_eq!((state.inflight_hi, state.inflight_lo, state.bw_lo), (INFINITE, INFINITE, INFINITE));
        assert_eq!((state.loss_in_round, state.full_bw, bench.cc.count(Count::Undo)), (0, 0, 1));
        // Only once.
        bench.cc.state_mut().mode = Mode::Drain as u8;
        bench.cc.undo(&mut bench.conn);
        assert_eq!(bench.mode(), Mode::Drain);
    }

    #[test]
    fn a_spurious_end_of_a_probe_leads_to_the_next_one() {
        let mut bench = probing(200);
        bench.cc.ssthresh(&mut bench.conn);
        bench.set_state(CaState::Recovery);
        bench.ack.losses = 20;
        bench.deliver();
        assert_eq!(bench.mode(), Mode::Down);
        let cwnd = bench.cc.undo(&mut bench.conn);
        assert_eq!((bench.mode(), bench.cc.state().inflight_hi), (Mode::Refill, INFINITE));
        assert!(cwnd >= 200);
    }

    #[test]
    fn in_probe_rtt_only_the_bounds_are_restored_and_the_window_stays_low() {
        for undo_mode in [Mode::Startup, Mode::Up] {
            let mut bench = Bench::in_mode(Mode::ProbeRtt);
            bench.cc.state_mut().undo_mode = undo_mode as u8;
            bench.cc.state_mut().undo_inflight_hi = 400;
            bench.cc.state_mut().inflight_hi = 100;
            bench.cc.state_mut().prior_cwnd = 400;
            bench.cc.state_mut().cap_min_rtt_us = RTT_US;
            let cwnd = bench.cc.undo(&mut bench.conn);
            assert_eq!((bench.mode(), bench.cc.state().inflight_hi), (Mode::ProbeRtt, 400));
            assert_eq!(cwnd, BDP / 2);
            assert_eq!(bench.cc.state().full_bw_reached, u8::from(undo_mode == Mode::Up));
        }
    }

    #[test]
    fn where_the_probe_goes_on_nothing_is_restarted() {
        for mode in [Mode::Up, Mode::Startup] {
            let mut bench = Bench::in_mode(mode);
            bench.cc.state_mut().undo_mode = mode as u8;
            bench.cc.undo(&mut bench.conn);
            assert_eq!(bench.mode(), mode);
            assert!(bench.cc.take_transitions().is_empty());
        }
    }

    #[test]
    fn without_a_change_to_take_back_the_mode_stays() {
        let mut bench = Bench::in_mode(Mode::Cruise);
        bench.cc.state_mut().prior_cwnd = 9 * BDP;
        bench.cc.state_mut().inflight_hi = 3 * BDP;
        let cwnd = bench.cc.undo(&mut bench.conn);
        assert_eq!(bench.mode(), Mode::Cruise);
        assert_eq!(cwnd, 3 * BDP - 3 * BDP * 38 / 256, "bounded at once: no ACK may come that does");
    }
}
