//! CoDel, FQ-CoDel, RED and marking.

mod common;

use common::{PACKET_PER_MS, at, bottleneck, ms, packet, run, stream, with_queue};
use path::{CoDel, Discipline, DropCause, Ecn, LinkConfig, Packet, QueueLimit, Red};
use units::{Bytes, Duration, Instant, Probability};

const CODEL: CoDel = CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

/// One full packet per millisecond through this discipline.
fn managed(discipline: Discipline) -> LinkConfig {
    with_queue(bottleneck(PACKET_PER_MS), |queue| queue.discipline = discipline)
}

fn capable(packet: Packet<u64>) -> Packet<u64> {
    Packet { ecn: Ecn::Ect0, ..packet }
}

fn burst(time: Instant, numbers: std::ops::Range<u64>) -> impl Iterator<Item = (Instant, Packet<u64>)> {
    numbers.map(move |number| (time, packet(number, 1500)))
}

fn in_ms(drops: &[(u64, u64)]) -> Vec<(u64, u64)> {
    drops.iter().map(|(number, time)| (*number, time / 1_000_000)).collect()
}

/// 500 packets at once. Without drops, packet k is taken out at k ms after k ms of waiting. Packet 5 at 5 ms is the first above
/// target, so from 105 ms on it is ok to drop. There the first drop falls, packet 105; packet 106 is sent in its place. The
/// next are due at 205 ms, then after 100 / sqrt(count) ms each: 275.71 (count 2), 333.45 (3), 383.45 (4), 428.17 (5),
/// 468.99 (6), 506.79 (7). Packets are taken at whole milliseconds, and each drop moves later packets one place forward.
const FIRST_EPISODE: [(u64, u64); 7] =
    [(105, 105), (206, 205), (278, 276), (337, 334), (388, 384), (434, 429), (475, 469)];

#[test]
fn codel_drops_as_the_pseudo_code_of_rfc_8289_worked_by_hand() {
    let log = run(&managed(Discipline::CoDel(CODEL)), 1, burst(at(0), 0..500));
    assert_eq!(in_ms(&log.dropped_at(DropCause::Aqm)), FIRST_EPISODE);
    assert_eq!(log.deliveries().len(), 493);
    assert!(log.deliveries().is_sorted());
}

#[test]
fn codel_goes_on_near_its_last_drop_rate_when_trouble_comes_back_soon() {
    // A second burst at 1000 ms: first drop at 1105 ms. The last cycle counted from 1 to 7: it starts with 6 and goes on after
    // 40.82 (1145.82), 37.80 (1183.62) and 35.36 ms (1218.98).
    let again = burst(at(0), 0..500).chain(burst(ms(1000), 500..750));
    let log = run(&managed(Discipline::CoDel(CODEL)), 1, again);
    let second = [(605, 1105), (647, 1146), (686, 1184), (722, 1219)];
    assert_eq!(in_ms(&log.dropped_at(DropCause::Aqm)), [&FIRST_EPISODE[..], &second].concat());
}

#[test]
fn codel_starts_anew_when_trouble_comes_back_late() {
    // The next drop of the first episode was due at 506.79 ms. After more than 16 intervals (2106.79 ms) that is forgotten.
    let late = burst(at(0), 0..500).chain(burst(ms(3000), 500..750));
    let log = run(&managed(Discipline::CoDel(CODEL)), 1, late);
    let second = [(605, 3105), (706, 3205)];
    assert_eq!(in_ms(&log.dropped_at(DropCause::Aqm)), [&FIRST_EPISODE[..], &second].concat());
}

#[test]
fn codel_leaves_a_queue_alone_that_empties_within_an_interval() {
    // 104 packets are gone at 104 ms; 110 are not.
    assert_eq!(run(&managed(Discipline::CoDel(CODEL)), 1, burst(at(0), 0..104)).dropped(DropCause::Aqm), []);
    assert_eq!(run(&managed(Discipline::CoDel(CODEL)), 1, burst(at(0), 0..110)).dropped(DropCause::Aqm), [105]);
}

#[test]
fn codel_never_drops_the_last_packet() {
    // At 1.2 Mbit/s a packet takes 10 ms, twice the target: two waiting packets are always too late, one is never dropped.
    let slow = with_queue(bottleneck(PACKET_PER_MS / 10), |queue| queue.discipline = Discipline::CoDel(CODEL));
    let log = run(&slow, 1, stream(1000, 10_000_000));
    assert_eq!(log.dropped(DropCause::Aqm), []);
    let log = run(&slow, 1, stream(1000, 9_000_000));
    assert!(!log.dropped(DropCause::Aqm).is_empty());
}

#[test]
fn codel_marks_capable_packets_where_it_would_drop_and_sends_them() {
    let config = with_queue(managed(Discipline::CoDel(CODEL)), |queue| queue.ecn = true);
    let log = run(&config, 1, burst(at(0), 0..500).map(|(time, packet)| (time, capable(packet))));
    // The times of the first episode; nothing moves forward, so at each time the packet of that number is at the head.
    assert_eq!(log.marked(), [105, 205, 276, 334, 384, 429, 469]);
    assert_eq!(log.dropped(DropCause::Aqm), []);
    assert_eq!(log.deliveries().len(), 500);

    let incapable = run(&config, 1, burst(at(0), 0..500));
    assert_eq!((incapable.marked(), in_ms(&incapable.dropped_at(DropCause::Aqm))), (vec![], FIRST_EPISODE.to_vec()));
    let off = with_queue(config, |queue| queue.ecn = false);
    let off = run(&off, 1, burst(at(0), 0..500).map(|(time, packet)| (time, capable(packet))));
    assert_eq!((off.marked(), in_ms(&off.dropped_at(DropCause::Aqm))), (vec![], FIRST_EPISODE.to_vec()));
}

fn fq_codel() -> LinkConfig {
    managed(Discipline::FqCoDel { codel: CODEL, buckets: 1024, quantum: Bytes::new(1500) })
}

fn of(hash: u32, packet: Packet<u64>) -> Packet<u64> {
    Packet { hash, ..packet }
}

#[test]
fn a_sparse_flow_overtakes_the_queue_of_a_bulk_flow() {
    let bulk = burst(at(0), 0..50);
    let sparse = (at(10_500_000), of(1, packet(50, 100)));
    let both: Vec<_> = bulk.chain([sparse]).collect();
    let order = |config: &LinkConfig| run(config, 1, both.clone()).dequeued();
    // Packet 10 is in service; the sparse one is next.
    assert_eq!(order(&fq_codel())[9..13], [9, 10, 50, 11]);
    assert_eq!(order(&managed(Discipline::CoDel(CODEL)))[48..], [48, 49, 50]);
}

#[test]
fn bulk_flows_share_bytes_not_packets() {
    // Three 500-byte packets of one flow for each 1500-byte packet of the other, from when both wait.
    let large = (0..30).map(|number| (at(0), packet(number, 1500)));
    let small = (30..120).map(|number| (at(0), of(1, packet(number, 500))));
    let order = run(&fq_codel(), 1, large.chain(small)).dequeued();
    for round in order[1..117].chunks(4).take(28) {
        assert_eq!(round.iter().filter(|number| **number < 30).count(), 1, "{round:?} of {order:?}");
    }
}

#[test]
fn a_new_flow_that_runs_empty_waits_behind_the_old_ones_once() {
    // Flow 1 sends a packet each time its last one is out. Were it new each time it would keep the bulk flow waiting for ever.
    let bulk = burst(at(0), 0..20);
    let greedy = (20..40).map(|number| (ms(number - 19), of(1, packet(number, 1500))));
    let order = run(&fq_codel(), 1, bulk.chain(greedy)).dequeued();
    let first_ten_bulk = order.iter().take(20).filter(|number| **number < 20).count();
    assert_eq!(first_ten_bulk, 10, "{order:?}");
}

#[test]
fn a_full_fq_codel_drops_half_of_the_longest_queue_from_its_head() {
    let config = with_queue(fq_codel(), |queue| queue.limit = QueueLimit::Packets(20));
    // Number 0 is in service, 1 to 19 wait. The sparse packet makes 21.
    let log = run(&config, 1, burst(at(0), 0..20).chain([(at(1), of(1, packet(20, 100)))]));
    assert_eq!(log.dropped(DropCause::Overflow), (1..11).collect::<Vec<_>>());
    assert_eq!(log.dequeued()[..3], [0, 20, 11]);

    // At most 64 at once.
    let config = with_queue(fq_codel(), |queue| queue.limit = QueueLimit::Packets(400));
    let log = run(&config, 1, burst(at(0), 0..400).chain([(at(1), of(1, packet(400, 100)))]));
    assert_eq!(log.dropped(DropCause::Overflow), (1..65).collect::<Vec<_>>());
}

#[test]
fn an_fq_codel_that_holds_one_packet_refuses_the_next() {
    let config = with_queue(fq_codel(), |queue| queue.limit = QueueLimit::Packets(1));
    let log = run(&config, 1, burst(at(0), 0..3));
    assert_eq!((log.dropped(DropCause::Overflow), log.dequeued()), (vec![1, 2], vec![0]));
}

#[test]
fn fq_codel_controls_each_queue_by_itself() {
    // The bulk flow stands for seconds, the other never waits: only the bulk flow is dropped from.
    let bulk = (0..900).map(|number| (at(number * 700_000), packet(number, 1500)));
    let sparse = (900..960).map(|number| (at((number - 900) * 10_000_000 + 1), of(1, packet(number, 100))));
    let mut both: Vec<_> = bulk.chain(sparse).collect();
    both.sort_by_key(|(time, _)| *time);
    let both: Vec<_> =
        both.into_iter().zip(0..).map(|((time, packet), number)| (time, Packet { token: number, ..packet })).collect();
    let sparse: Vec<u64> = both.iter().filter(|(_, packet)| packet.hash == 1).map(|(_, packet)| packet.token).collect();
    let log = run(&fq_codel(), 1, both);
    let dropped = log.dropped(DropCause::Aqm);
    assert!(dropped.len() > 10, "{}", dropped.len());
    assert!(dropped.iter().all(|number| !sparse.contains(number)), "{dropped:?}");
}

fn red(ecn: bool) -> LinkConfig {
    let red = Red {
        min: Bytes::new(15_000),
        max: Bytes::new(45_000),
        max_probability: Probability::from_ppb(100_000_000),
        weight_shift: 9,
    };
    with_queue(managed(Discipline::Red(red)), |queue| queue.ecn = ecn)
}

#[test]
fn red_lets_a_burst_pass_and_signals_a_standing_queue() {
    // 60 packets at once lift the average by 60 times about 30/512 packets: below the 10 of the lower threshold.
    assert_eq!(run(&red(false), 1, burst(at(0), 0..60)).dropped(DropCause::Aqm), []);
    // 5 % overload for 20 s ends at the upper threshold, where 10 % would be dropped, and far from a full queue.
    let log = run(&red(false), 1, stream(20_000, 950_000));
    let dropped = log.dropped(DropCause::Aqm).len();
    assert!((600..1100).contains(&dropped), "{dropped}");
    assert_eq!(log.dropped(DropCause::Overflow), []);
}

#[test]
fn red_marks_capable_packets_instead() {
    let packets = || stream(20_000, 950_000).map(|(time, packet)| (time, capable(packet)));
    let log = run(&red(true), 1, packets());
    assert!(log.marked().len() > 600, "{}", log.marked().len());
    // Nothing reacts to the marks here, so the queue fills in the end; but RED itself drops nothing.
    assert_eq!(log.dropped(DropCause::Aqm), []);
    assert!(!run(&red(true), 1, stream(20_000, 950_000)).dropped(DropCause::Aqm).is_empty());
    assert_eq!(run(&red(false), 1, packets()).marked(), []);
}

#[test]
fn a_step_threshold_marks_what_finds_more_than_it_waiting() {
    let config = with_queue(bottleneck(PACKET_PER_MS), |queue| queue.mark_above = Some(Bytes::new(3000)));
    let capable = burst(at(0), 0..6).map(|(time, packet)| (time, capable(packet)));
    // Number 2 finds 3000 bytes, number 3 finds 4500.
    let log = run(&config, 1, capable.chain([(ms(4), Packet { ecn: Ecn::Ect1, ..packet(6, 1500) })]));
    assert_eq!(log.marked(), [3, 4, 5]);
    let incapable = run(&config, 1, burst(at(0), 0..6));
    assert_eq!((incapable.marked(), incapable.deliveries().len()), (vec![], 6));
}

#[test]
fn a_packet_that_comes_marked_is_not_counted_as_marked_here() {
    let config = with_queue(bottleneck(PACKET_PER_MS), |queue| queue.mark_above = Some(Bytes::ZERO));
    let packets = burst(at(0), 0..3).map(|(time, packet)| (time, Packet { ecn: Ecn::Ce, ..packet }));
    assert_eq!(run(&config, 1, packets).marked(), []);
}
