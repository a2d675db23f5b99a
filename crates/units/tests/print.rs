//! Writing quantities for people.

use proptest::prelude::*;
use units::{Bytes, Duration, Instant, Probability, Rate};

#[test]
fn rates_show_three_significant_digits() {
    for (bps, text) in [
        (0, "0 bit/s"),
        (999, "999 bit/s"),
        (1_000, "1 kbit/s"),
        (42_500_000, "42.5 Mbit/s"),
        (42_549_999, "42.5 Mbit/s"),
        (940_600_000, "941 Mbit/s"),
        (1_784_000_000, "1.78 Gbit/s"),
        (10_000_000_000, "10 Gbit/s"),
        (1_234_000_000_000, "1234 Gbit/s"),
    ] {
        assert_eq!(Rate::from_bps(bps).to_string(), text);
    }
}

#[test]
fn sizes_show_the_prefix_in_which_they_are_whole() {
    for (bytes, text) in [
        (0, "0 B"),
        (1500, "1500 B"),
        (1024, "1 KiB"),
        (9_999, "9999 B"),
        (12_500, "12.5 kB"),
        (125_000_000, "125 MB"),
        (33_554_432, "32 MiB"),
        (3 << 30, "3 GiB"),
        (2_500_000_000, "2.5 GB"),
    ] {
        assert_eq!(Bytes::new(bytes).to_string(), text);
    }
}

#[test]
fn times_show_two_decimals_of_the_unit_that_fits() {
    for (nanos, text) in [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_200, "1.2 us"),
        (98_400_000, "98.4 ms"),
        (98_456_789, "98.46 ms"),
        (30_000_000_000, "30 s"),
    ] {
        assert_eq!(Duration::from_nanos(nanos).to_string(), text);
    }
    assert_eq!(Instant::from_nanos(1_500_000_000).to_string(), "1.5 s");
    assert_eq!(Instant::from_nanos(1_234_567).to_string(), "0.001235 s");
}

#[test]
fn probabilities_show_all_their_digits() {
    for (ppb, text) in [(0, "0%"), (1, "0.0000001%"), (15_000_000, "1.5%"), (1_000_000_000, "100%")] {
        assert_eq!(Probability::from_ppb(ppb).to_string(), text);
    }
}

/// Whether `read` is `value` as far as three digits can say.
fn close(read: u64, value: u64) -> bool {
    read.abs_diff(value) as u128 * 200 <= u128::from(value)
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_nearly_the_same(value in any::<u64>(), shift in 0u32..64) {
        let value = value >> shift;
        let rate: Rate = Rate::from_bps(value).to_string().parse().unwrap();
        prop_assert!(close(rate.as_bps(), value), "{}", rate.as_bps());
        let bytes: Bytes = Bytes::new(value).to_string().parse().unwrap();
        prop_assert!(close(bytes.as_u64(), value), "{}", bytes.as_u64());
        let time: Duration = Duration::from_nanos(value).to_string().parse().unwrap();
        prop_assert!(close(time.as_nanos(), value), "{}", time.as_nanos());
    }

    #[test]
    fn a_printed_probability_is_read_as_the_same(ppb in 0u32..=1_000_000_000) {
        let probability = Probability::from_ppb(ppb);
        prop_assert_eq!(probability.to_string().parse(), Ok(probability));
    }
}
