//! Reading quantities as people write them.

use proptest::prelude::*;
use units::{Bytes, Duration, ParseError, Probability, Rate};

#[test]
fn rates_are_read_in_bits_or_bytes_per_second() {
    for (text, bps) in [
        ("0bit", 0),
        ("200mbit", 200_000_000),
        ("1.5gbit", 1_500_000_000),
        ("10 Gbit/s", 10_000_000_000),
        ("125MB/s", 1_000_000_000),
        ("1kB/s", 8_000),
        ("9600bit/s", 9_600),
        ("0.0001 tbit", 100_000_000),
        ("1_000 kbit", 1_000_000),
        ("  7Mbit  ", 7_000_000),
        ("18446744073709551615bit", u64::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Rate::from_bps(bps)), "{text}");
    }
}

#[test]
fn rates_that_people_read_in_two_ways_are_refused() {
    for text in ["100mbps", "1Gbps", "5kbps", "9600bps"] {
        assert!(matches!(text.parse::<Rate>(), Err(ParseError::AmbiguousUnit(_))), "{text}");
    }
    // Bytes per second need their "/s": without it they are a size.
    assert!(matches!("125MB".parse::<Rate>(), Err(ParseError::UnknownUnit(_))));
}

#[test]
fn sizes_keep_the_prefix_that_was_written() {
    for (text, bytes) in [
        ("25MB", 25_000_000),
        ("32MiB", 33_554_432),
        ("64KiB", 65_536),
        ("1.5 kB", 1_500),
        ("1500B", 1_500),
        ("1500", 1_500),
        ("0.5GiB", 536_870_912),
        ("2GB", 2_000_000_000),
    ] {
        assert_eq!(text.parse(), Ok(Bytes::new(bytes)), "{text}");
    }
}

#[test]
fn times_are_read_to_the_nanosecond() {
    for (text, nanos) in [
        ("98.4ms", 98_400_000),
        ("30s", 30_000_000_000),
        ("500us", 500_000),
        ("500µs", 500_000),
        ("500μs", 500_000),
        ("10ns", 10),
        ("2m", 120_000_000_000),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("0", 0),
        ("0.0", 0),
        ("1.000000001s", 1_000_000_001),
        (".5ms", 500_000),
        ("5.ms", 5_000_000),
    ] {
        assert_eq!(text.parse(), Ok(Duration::from_nanos(nanos)), "{text}");
    }
}

#[test]
fn probabilities_are_read_as_percent_or_fraction() {
    for (text, ppb) in [
        ("1.5%", 15_000_000),
        ("0.015", 15_000_000),
        ("0", 0),
        ("0%", 0),
        ("100 %", 1_000_000_000),
        ("1", 1_000_000_000),
        ("0.0000001%", 1),
        ("0.000000001", 1),
    ] {
        assert_eq!(text.parse(), Ok(Probability::from_ppb(ppb)), "{text}");
    }
}

#[test]
fn what_is_not_a_number_is_refused_as_such() {
    for text in ["", "   ", "fast", "mbit", "-5mbit", "+5mbit", ".", ".mbit", "_5mbit", "∞"] {
        assert_eq!(text.parse::<Rate>(), Err(ParseError::NoNumber), "{text:?}");
    }
}

#[test]
fn a_missing_unit_is_told_from_an_unknown_one() {
    assert!(matches!("5".parse::<Rate>(), Err(ParseError::NoUnit(_))));
    assert!(matches!("5".parse::<Duration>(), Err(ParseError::NoUnit(_))));
    for text in ["5 parsecs", "5e3ms", "1.2.3ms", "1 000ms", "5ms/s", "5 m s"] {
        assert!(matches!(text.parse::<Duration>(), Err(ParseError::UnknownUnit(_))), "{text}");
        assert!(matches!(text.parse::<Rate>(), Err(ParseError::UnknownUnit(_))), "{text}");
        assert!(matches!(text.parse::<Bytes>(), Err(ParseError::UnknownUnit(_))), "{text}");
        assert!(matches!(text.parse::<Probability>(), Err(ParseError::UnknownUnit(_))), "{text}");
    }
}

#[test]
fn what_is_too_large_is_refused_and_the_largest_is_not() {
    fn too_large<Q: core::str::FromStr<Err = ParseError>>(text: &str) -> bool {
        matches!(text.parse::<Q>(), Err(ParseError::OutOfRange(_)))
    }
    assert!(too_large::<Rate>("18446744073709551616bit"));
    assert!(too_large::<Rate>("18446745tbit"));
    assert!(too_large::<Bytes>("18446744073709551616"));
    assert!(too_large::<Bytes>("17179869184GiB"));
    assert!(too_large::<Duration>("5124096h"));
    assert!(too_large::<Probability>("100.0000001%"));
    assert!(too_large::<Probability>("1.5"));
    assert_eq!("18446744073709551615".parse(), Ok(Bytes::new(u64::MAX)));
    assert_eq!("5124095h".parse(), Ok(Duration::from_secs(5_124_095 * 3600)));
    assert_eq!("100.0000000%".parse(), Ok(Probability::ONE));
}

#[test]
fn what_would_be_rounded_to_nothing_is_refused() {
    let too_small: Result<Duration, ParseError> = Err(ParseError::OutOfRange("it is too small to be told from zero"));
    assert_eq!("0.4ns".parse::<Duration>(), too_small);
    assert_eq!("0.00000004%".parse::<Probability>(), too_small.map(|_| Probability::ZERO));
    assert_eq!("0.4bit".parse::<Rate>(), too_small.map(|_| Rate::ZERO));
    assert_eq!("0.4".parse::<Bytes>(), too_small.map(|_| Bytes::ZERO));
    assert_eq!("0.5ns".parse(), Ok(Duration::from_nanos(1)), "halves go up");
}

#[test]
fn numbers_with_more_digits_than_matter_are_refused_and_leading_zeros_are_not() {
    let many = ParseError::OutOfRange("the number has too many digits");
    assert_eq!("1000000000000000000000000ns".parse::<Duration>(), Err(many));
    assert_eq!("0.0000000000000000000000001s".parse::<Duration>(), Err(many));
    assert_eq!("0000000000000000000000000000005ns".parse(), Ok(Duration::from_nanos(5)));
    assert_eq!("0.100000000000000000000000s".parse(), Ok(Duration::from_millis(100)));
}

#[test]
fn errors_name_the_units_that_are_known() {
    assert_eq!(
        "5".parse::<Duration>().unwrap_err().to_string(),
        "the unit is missing; write one of ns, us, ms, s, m, h"
    );
    assert_eq!(
        "5 TB".parse::<Bytes>().unwrap_err().to_string(),
        "the unit is not known; write one of B, kB, MB, GB, KiB, MiB, GiB"
    );
    assert_eq!(
        "5mbps".parse::<Rate>().unwrap_err().to_string(),
        "the unit can be read in two ways; write mbit for bits per second or MB/s for bytes per second"
    );
    assert_eq!("x".parse::<Rate>().unwrap_err().to_string(), "it does not start with a number");
    assert_eq!(
        "200%".parse::<Probability>().unwrap_err().to_string(),
        "a probability is at most 100% (a number without % is a fraction of 1)"
    );
}

proptest! {
    #[test]
    fn whole_numbers_of_the_smallest_unit_are_read_exactly(value in any::<u64>()) {
        prop_assert_eq!(format!("{value}bit").parse(), Ok(Rate::from_bps(value)));
        prop_assert_eq!(format!("{value} B").parse(), Ok(Bytes::new(value)));
        prop_assert_eq!(format!("{value}ns").parse(), Ok(Duration::from_nanos(value)));
    }

    #[test]
    fn all_decimals_down_to_the_smallest_unit_are_read_exactly(whole in 0u64..18_000_000_000, nanos in 0u64..1_000_000_000) {
        let exact = whole * 1_000_000_000 + nanos;
        prop_assert_eq!(format!("{whole}.{nanos:09}s").parse(), Ok(Duration::from_nanos(exact)));
        prop_assert_eq!(format!("{whole}.{nanos:09} gbit").parse(), Ok(Rate::from_bps(exact)));
        prop_assert_eq!(format!("{whole}.{nanos:09}GB").parse(), Ok(Bytes::new(exact)));
    }

    #[test]
    fn no_text_makes_parsing_panic(text in "\\PC{0,40}|[0-9._]{0,60}[a-zA-Z/%]{0,6}") {
        let _ = text.parse::<Rate>();
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Duration>();
        let _ = text.parse::<Probability>();
    }
}
