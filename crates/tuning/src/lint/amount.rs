//! Numbers as people read them.

/// Bytes with a binary prefix, exact where they are a round number and with three digits else.
pub(super) fn bytes(bytes: i128) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut scale = 1_i128;
    while unit + 1 < UNITS.len() && bytes / scale >= 1024 {
        scale *= 1024;
        unit += 1;
    }
    if bytes % scale == 0 {
        format!("{} {}", bytes / scale, UNITS[unit])
    } else {
        let value = bytes as f64 / scale as f64;
        let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        format!("{value:.digits$} {}", UNITS[unit])
    }
}

/// A page, on every machine this is meant for except some arm64.
pub(super) const PAGE: i128 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers_are_exact_and_others_have_three_digits() {
        assert_eq!(bytes(1 << 30), "1 GiB");
        assert_eq!(bytes(212_992), "208 KiB");
        assert_eq!(bytes(927_000_000 * PAGE), "3.45 TiB");
        assert_eq!(bytes(87_380), "85.3 KiB");
        assert_eq!(bytes(0), "0 bytes");
    }
}
