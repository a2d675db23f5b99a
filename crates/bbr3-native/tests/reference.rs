//! The cells of native BBRv3 (revision A) that a faithful one is held against, in virtual time.

mod common;

use common::{Cell, dumbbell, reference_flow};

#[test]
fn probe() {
    for q in [17, 41, 83, 165, 330, 660] {
        let mut cell = Cell::new(dumbbell(q, 0.0), vec![reference_flow(1)]);
        println!("q {q}: {:?}", cell.measure());
    }
}

#[test]
fn trace() {
    use bbr3_native::Count;
    let mut cell = Cell::new(dumbbell(83, 0.0), vec![reference_flow(1)]);
    let mut last = (0, 0);
    cell.world.watch(units::Instant::from_nanos(30_000_000_000), |now, _, s| {
        for (from, to) in s.cc_mut().take_transitions() {
            let st = s.cc().state();
            println!(
                "{now} {:?}->{:?} hi {} lo {} infl {} cwnd {} high {} retr {} lost {} rsk {} pth {}",
                from,
                to,
                st.inflight_hi as i32,
                st.inflight_lo as i32,
                s.in_flight(),
                s.cwnd(),
                s.cc().count(Count::TooHigh),
                s.retransmissions(),
                s.lost(),
                st.stopped_risky_probe,
                st.prev_probe_too_high
            );
        }
        let st = s.cc().state();
        if (st.inflight_hi, st.inflight_lo) != last {
            last = (st.inflight_hi, st.inflight_lo);
            println!(
                "   {now} {:?} hi {} lo {} infl {} cwnd {} lim {}",
                s.cc().mode(),
                st.inflight_hi as i32,
                st.inflight_lo as i32,
                s.in_flight(),
                s.cwnd(),
                s.conn().is_cwnd_limited
            );
        }
    });
}

#[test]
fn detail() {
    use bbr3_native::Count;
    let mut cell = Cell::new(dumbbell(83, 0.0), vec![reference_flow(1)]);
    cell.world.watch(units::Instant::from_nanos(13_300_000_000), |now, _, s| {
        if now.as_secs_f64() > 13.26 {
            let st = s.cc().state();
            let sm = s.last_sample();
            println!("{now} {:?} hi {} lo {} {:?} lost {} lir {} lrs {} lrd {} prior {} newly {} ack {} slost {} txif {} high {} bps {}", s.cc().mode(), st.inflight_hi as i32, st.inflight_lo as i32, s.ca_state(), s.lost(), st.loss_in_round, st.loss_round_start, st.loss_round_delivered as i32, sm.prior_delivered as i32, sm.newly_lost, sm.ack_losses, sm.lost, sm.tx_in_flight, s.cc().count(Count::TooHigh), st.bw_probe_samples);
        }
    });
}

#[test]
fn spread() {
    for q in [17, 41, 83, 165] {
        for burst in [3, 4, 5] {
            let (mut g, mut r, mut hi, mut lo, mut ups, mut cw) = (0.0, 0, 0.0, 0.0, 0, 0.0);
            let n = 6;
            for seed in 1..=n {
                let mut cell = Cell::new(dumbbell(q, 0.0), vec![reference_flow(seed)]);
                cell.world.flow_mut(0).sender.set_burst(burst);
                let f = cell.measure();
                g += f.goodput;
                r += f.retransmissions;
                hi += f.hi_mean;
                lo += f.lo_finite;
                ups += f.ups;
                cw += f.cwnd;
            }
            let n64 = n as f64;
            println!(
                "q {q} burst {burst}: goodput {:.2} retr {:.0} hi {:.1} lo {:.2} ups {:.1} cwnd {:.0}",
                g / n64,
                r as f64 / n64,
                hi / n64,
                lo / n64,
                ups as f64 / n64,
                cw / n64
            );
        }
    }
}

#[test]
fn random_loss() {
    for burst in [0, 1] {
        for loss in [0.5, 1.0, 1.5, 2.0, 3.0, 5.0] {
            let mut each = Vec::new();
            for seed in 1..=6 {
                let mut cell = Cell::seeded(dumbbell(660, loss), vec![reference_flow(seed)], seed);
                cell.world.flow_mut(0).sender.set_burst(burst);
                let f = cell.measure();
                each.push((f.goodput * 10.0).round() / 10.0);
                if seed == 1 {
                    println!("{:?}", f.truth);
                }
            }
            println!("loss {loss} burst {burst}: {:.2} {each:?}", each.iter().sum::<f64>() / 6.0);
        }
    }
}

#[test]
fn triggers() {
    for (q, loss) in [(83, 0.0), (660, 1.0), (660, 3.0), (660, 5.0)] {
        let mut cell = Cell::seeded(dumbbell(q, loss), vec![reference_flow(3)], 3);
        let f = cell.measure();
        println!("{q} {loss} {} {:?}", f.goodput, cell.world.sender().triggers);
    }
}

#[test]
fn slide() {
    use bbr3_native::Count;
    let at = |s: u64| units::Instant::from_nanos(s * 1_000_000_000);
    for (loss, burst) in [(3.0, 0), (3.0, 1), (5.0, 0), (5.0, 1)] {
        for seed in 1..=4 {
            let mut cell = Cell::seeded(dumbbell(660, loss), vec![reference_flow(seed)], seed);
            cell.world.flow_mut(0).sender.set_burst(burst);
            let mut g = Vec::new();
            let mut last = units::Bytes::ZERO;
            let mut cw = 0u64;
            for (from, to) in [(0, 10), (10, 20), (20, 40), (40, 60)] {
                for ms in 0..(to - from) * 50 {
                    cell.world.run(units::Instant::from_nanos(from * 1_000_000_000 + ms * 20_000_000));
                    if from >= 10 {
                        cw += u64::from(cell.world.sender().cwnd());
                    }
                }
                cell.world.run(at(to));
                let now = cell.world.flow(0).delivered_in_order();
                g.push(
                    (World::goodput(last, now, units::Duration::from_secs(to - from)).as_mbps_f64() * 10.0).round()
                        / 10.0,
                );
                last = now;
            }
            let s = cell.world.sender();
            println!(
                "loss {loss} burst {burst} {g:?} cwnd {} rto {} tlp {} high {} undo {} retr {} drops {} srtt {} ups {}",
                cw / 2500,
                s.cc().count(Count::Rto),
                s.cc().count(Count::TlpRecovery),
                s.cc().count(Count::TooHigh),
                s.cc().count(Count::Undo),
                s.retransmissions(),
                cell.world.flow(0).drops,
                s.srtt(),
                s.cc().entries_into(bbr3::Mode::Up)
            );
        }
    }
}
use bbr3_native::World;
