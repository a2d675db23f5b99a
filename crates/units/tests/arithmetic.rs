//! Sums, products and what lies between rate, size and time.

use proptest::prelude::*;
use units::{Bytes, Duration, Instant, Probability, Rate};

#[test]
fn the_bandwidth_delay_product_of_10_gbit_per_second_and_100_ms_is_125_mb() {
    assert_eq!(Rate::from_mbps(10_000).bdp(Duration::from_millis(100)), Bytes::new(125_000_000));
    assert_eq!(Rate::from_mbps(800_000).bdp(Duration::from_secs(10)), Bytes::new(1_000_000_000_000));
}

#[test]
fn a_full_packet_takes_1200_ns_at_10_gbit_per_second() {
    assert_eq!(Rate::from_mbps(10_000).time_for(Bytes::new(1500)), Duration::from_nanos(1200));
    assert_eq!(Rate::from_bps(3).time_for(Bytes::new(1)), Duration::from_nanos(2_666_666_667), "rounded up");
    assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), Duration::MAX);
}

#[test]
fn a_transfer_has_a_mean_rate_and_none_in_no_time() {
    assert_eq!(Rate::from_transfer(Bytes::new(125_000_000), Duration::from_secs(1)), Rate::from_mbps(1000));
    assert_eq!(Rate::from_transfer(Bytes::new(1), Duration::ZERO), Rate::ZERO);
}

#[test]
fn nothing_wraps_at_the_ends_of_the_range() {
    assert_eq!(Duration::MAX + Duration::from_nanos(1), Duration::MAX);
    assert_eq!(Duration::ZERO - Duration::from_nanos(1), Duration::ZERO);
    assert_eq!(Duration::MAX * 2, Duration::MAX);
    assert_eq!(Duration::from_secs(u64::MAX), Duration::MAX);
    assert_eq!(Instant::MAX + Duration::from_nanos(1), Instant::MAX);
    assert_eq!(Instant::ZERO.since(Instant::MAX), Duration::ZERO);
    assert_eq!(Bytes::new(u64::MAX) + Bytes::new(1), Bytes::new(u64::MAX));
    assert_eq!(Bytes::ZERO - Bytes::new(1), Bytes::ZERO);
    assert_eq!(Bytes::new(u64::MAX).saturating_mul(2), Bytes::new(u64::MAX));
    assert_eq!(Rate::from_mbps(u64::MAX), Rate::from_bps(u64::MAX));
    assert_eq!(Rate::from_bps(u64::MAX).bytes_in(Duration::MAX), Bytes::new(u64::MAX));
    assert_eq!(Rate::from_bps(1).time_for(Bytes::new(u64::MAX)), Duration::MAX);
    assert_eq!(Rate::from_transfer(Bytes::new(u64::MAX), Duration::from_nanos(1)), Rate::from_bps(u64::MAX));
    assert_eq!(Probability::from_ppb(u32::MAX), Probability::ONE);
}

#[test]
fn spans_convert_to_and_from_the_standard_librarys() {
    let span = core::time::Duration::from_micros(1500);
    assert_eq!(Duration::from(span), Duration::from_micros(1500));
    assert_eq!(core::time::Duration::from(Duration::from_micros(1500)), span);
    assert_eq!(Duration::from(core::time::Duration::MAX), Duration::MAX);
}

#[test]
fn a_probability_happens_for_its_share_of_all_random_numbers() {
    let half = Probability::from_ppb(500_000_000);
    assert!(half.happens(0) && half.happens((1 << 63) - 1));
    assert!(!half.happens(1 << 63) && !half.happens(u64::MAX));
    assert!(Probability::ONE.happens(u64::MAX));
    assert!(!Probability::ZERO.happens(0));
    // One part in 10^9 is the first 2^64 / 10^9 numbers.
    assert!(Probability::from_ppb(1).happens(18_446_744_073));
    assert!(!Probability::from_ppb(1).happens(18_446_744_074));
}

proptest! {
    #[test]
    fn the_time_for_bytes_is_the_shortest_that_carries_them(bps in 1_000u64..1_000_000_000_000, bytes in 1u64..1_000_000_000) {
        let rate = Rate::from_bps(bps);
        let time = rate.time_for(Bytes::new(bytes));
        prop_assert!(rate.bytes_in(time) >= Bytes::new(bytes));
        prop_assert!(rate.bytes_in(time - Duration::from_nanos(1)) < Bytes::new(bytes));
    }

    #[test]
    fn an_instant_plus_a_span_is_that_span_later(start in 0u64..1 << 63, span in 0u64..1 << 63) {
        let (start, span) = (Instant::from_nanos(start), Duration::from_nanos(span));
        prop_assert_eq!((start + span).since(start), span);
        prop_assert_eq!(start.since(start + span), Duration::ZERO);
    }
}
