//! Mahimahi traces, after the mm-link manual page.

mod common;

use common::{at, ms, open_link, packet, run, stream};
use path::{LinkConfig, RateModel, Trace};
use proptest::prelude::*;

fn trace(opportunities_ms: impl Into<Vec<u32>>) -> LinkConfig {
    LinkConfig { rate: RateModel::Trace(Trace { opportunities_ms: opportunities_ms.into() }), ..open_link() }
}

const MS: u64 = 1_000_000;

#[test]
fn the_manual_pages_12_mbit_per_second_trace_carries_a_full_packet_each_millisecond() {
    let log = run(&trace([1]), 1, stream(3, 0));
    assert_eq!(log.deliveries(), [(0, MS), (1, 2 * MS), (2, 3 * MS)]);
}

#[test]
fn several_small_packets_share_one_opportunity() {
    let packets = (0..4).map(|number| (at(0), packet(number, 500)));
    assert_eq!(run(&trace([2]), 1, packets).deliveries(), [(0, 2 * MS), (1, 2 * MS), (2, 2 * MS), (3, 4 * MS)]);
}

#[test]
fn a_packet_larger_than_what_is_left_needs_the_next_opportunity_too() {
    let packets = (0..3).map(|number| (at(0), packet(number, 1000)));
    // 1000 of the first; 500 of it and 500 of the second; 1000 of the second.
    assert_eq!(run(&trace([1, 5]), 1, packets).deliveries(), [(0, MS), (1, 5 * MS), (2, 5 * MS)]);
}

#[test]
fn an_opportunity_that_finds_nothing_waiting_is_lost() {
    // The packet comes when three of the five are over, one of them at this very moment.
    let log = run(&trace([1, 2, 3, 7, 9]), 1, [(ms(3), packet(0, 1500)), (ms(3), packet(1, 1500))]);
    assert_eq!(log.deliveries(), [(0, 7 * MS), (1, 9 * MS)]);
    // What a small packet leaves of an opportunity is lost too, when nothing else waits at that moment.
    let log = run(&trace([1, 5]), 1, [(ms(0), packet(0, 100)), (ms(1), packet(1, 1400))]);
    assert_eq!(log.deliveries(), [(0, MS), (1, 5 * MS)]);
}

#[test]
fn the_trace_starts_again_after_its_last_entry() {
    // Period 4 ms, twice at 2 ms: opportunities at 2, 2, 4, 6, 6, 8, ...
    let log = run(&trace([2, 2, 4]), 1, stream(6, 0));
    assert_eq!(log.deliveries().iter().map(|(_, due)| due / MS).collect::<Vec<_>>(), [2, 2, 4, 6, 6, 8]);
    // An entry at zero coincides with the last one of the turn before.
    let log = run(&trace([0, 3]), 1, stream(4, 0));
    assert_eq!(log.deliveries().iter().map(|(_, due)| due / MS).collect::<Vec<_>>(), [3, 3, 6, 6]);
    // After a long pause.
    let log = run(&trace([1, 3]), 1, [(ms(3_000_001), packet(0, 1500))]);
    assert_eq!(log.deliveries(), [(0, 3_000_003 * MS)]);
}

/// The manual page's rules, millisecond by millisecond, for arrivals sorted by time.
fn by_the_book(trace: &[u32], arrivals: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let period = u64::from(*trace.last().unwrap());
    let mut waiting: Vec<(u64, u64)> = Vec::new();
    let mut arriving = arrivals.iter().zip(0u64..).peekable();
    let mut delivered = Vec::new();
    for now in 0.. {
        let opportunities = (0..=now / period)
            .flat_map(|turn| trace.iter().map(move |entry| turn * period + u64::from(*entry)))
            .filter(|time| *time == now);
        for _ in opportunities {
            let mut left = 1500;
            while let Some((number, size)) = waiting.first_mut() {
                let part = left.min(*size);
                left -= part;
                *size -= part;
                if *size > 0 {
                    break;
                }
                delivered.push((*number, now * MS));
                waiting.remove(0);
            }
        }
        while let Some(((_, size), number)) = arriving.next_if(|((time, _), _)| *time == now) {
            waiting.push((number, *size));
        }
        if waiting.is_empty() && arriving.peek().is_none() {
            return delivered;
        }
    }
    unreachable!()
}

proptest! {
    #[test]
    fn a_link_follows_the_manual_page_for_any_trace(
        entries in prop::collection::vec(0u32..6, 1..8),
        tail in 1u32..4,
        gaps in prop::collection::vec((0u64..8, 40u64..3500), 1..40),
    ) {
        let mut entries = entries;
        entries.sort_unstable();
        entries.push(entries[entries.len() - 1] + tail);
        let mut time = 0;
        let arrivals: Vec<_> = gaps.iter().map(|(gap, size)| {
            time += gap;
            (time, *size)
        }).collect();
        let packets = arrivals.iter().zip(0..).map(|((time, size), number)| (ms(*time), packet(number, *size)));
        prop_assert_eq!(run(&trace(entries.clone()), 1, packets).deliveries(), by_the_book(&entries, &arrivals));
    }
}
