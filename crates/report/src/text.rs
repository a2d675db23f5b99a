//! How figures and names are written, the same in every rendering.

use units::Probability;

/// Three significant digits, and no fewer whole ones: `0.920`, `1.30`, `42.0`, `965`, `1780`.
pub(crate) fn three_digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.0005 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

/// Milliseconds to a tenth below 100, whole above.
pub(crate) fn millis(value: f64) -> String {
    if value.abs() >= 99.95 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// A count: whole up to 9999, then `12.3k`, `1.23M`.
pub(crate) fn count(value: f64) -> String {
    match value.abs() {
        v if v < 9_999.5 => format!("{value:.0}"),
        v if v < 999_500.0 => format!("{}k", three_digits(value / 1e3)),
        v if v < 999_500_000.0 => format!("{}M", three_digits(value / 1e6)),
        _ => format!("{}G", three_digits(value / 1e9)),
    }
}

/// Measured over published: `1.02`, `12`, `0.016`.
pub(crate) fn ratio(value: f64) -> String {
    match value.abs() {
        v if v >= 9.95 => format!("{value:.0}"),
        v if v >= 0.0995 => format!("{value:.2}"),
        v if v >= 0.00095 => format!("{value:.3}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.0e}"),
    }
}

/// A share in whole percent; `<1%` is not nothing.
pub(crate) fn share(fraction: f64) -> String {
    match fraction * 100.0 {
        percent if percent > 0.0 && percent < 1.0 => "<1%".to_owned(),
        percent => format!("{percent:.0}%"),
    }
}

/// Loss as people write it: `1.5%`.
pub(crate) fn loss(fraction: f64) -> String {
    Probability::from_ppb((fraction.clamp(0.0, 1.0) * 1e9).round() as u32).to_string()
}

/// Bytes as people write them.
pub(crate) fn bytes(bytes: u64) -> String {
    units::Bytes::new(bytes).to_string()
}

/// A round-trip time as people write it: `80 ms`, `98.4 ms`.
pub(crate) fn rtt(millis: f64) -> String {
    format!("{} ms", crate::series::six_digits(millis))
}

/// The unit of a column of rates: one for all its rows, so that they compare at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateUnit {
    Kbit,
    Mbit,
    Gbit,
}

impl RateUnit {
    /// For rates in bits per second: Mbit/s unless all are smaller than one, or none is below one Gbit/s.
    pub(crate) fn for_all(rates: impl Iterator<Item = f64> + Clone) -> Self {
        let largest = rates.clone().fold(0.0, f64::max);
        let smallest = rates.fold(f64::INFINITY, f64::min);
        match (smallest, largest) {
            (_, largest) if largest < 1e6 => Self::Kbit,
            (smallest, _) if smallest >= 1e9 => Self::Gbit,
            _ => Self::Mbit,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kbit => "kbit/s",
            Self::Mbit => "Mbit/s",
            Self::Gbit => "Gbit/s",
        }
    }

    /// Bits per second in one of this unit.
    pub(crate) fn bps(self) -> f64 {
        match self {
            Self::Kbit => 1e3,
            Self::Mbit => 1e6,
            Self::Gbit => 1e9,
        }
    }

    /// The number alone.
    pub(crate) fn number(self, bps: f64) -> String {
        three_digits(bps / self.bps())
    }
}

/// Stands in for bidirectional marks, overrides and isolates, and for the line and paragraph separators.
pub(crate) fn without_reordering(c: char) -> char {
    match c {
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' => {
            '\u{fffd}'
        }
        c => c,
    }
}

/// `text` without what could move the cursor, change colours or reorder a terminal's line: names come from files.
pub(crate) fn clean(text: &str) -> String {
    let harmless = |c: char| match c {
        '\n' | '\t' | '\r' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => without_reordering(c),
    };
    text.chars().map(harmless).collect()
}

/// `text`, cleaned, in at most `width` terminal columns.
pub(crate) fn clip(text: &str, width: usize) -> String {
    use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
    let text = clean(text);
    if text.width() <= width {
        return text;
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    let mut clipped: String = text.chars().take_while(fits).collect();
    clipped.push('…');
    clipped
}

/// `text`, cleaned, in lines of at most `width` terminal columns where its words allow, each after `indent`. A no-break
/// space does not break, and is written as a space.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    use unicode_width::UnicodeWidthStr;
    let mut out = String::new();
    let mut used = 0;
    for word in clean(text).split(' ').filter(|word| !word.is_empty()) {
        if used > 0 && used + 1 + word.width() > width {
            out.push('\n');
            used = 0;
        }
        if used == 0 {
            out.push_str(indent);
            used = indent.width();
        } else {
            out.push(' ');
            used += 1;
        }
        out.push_str(&word.replace('\u{a0}', " "));
        used += word.width();
    }
    out.push('\n');
    out
}

/// A command line that a POSIX shell reads back as the same words.
pub(crate) fn shell_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    let quote = |word: &String| {
        let bare = !word.is_empty() && word.chars().all(plain);
        if bare { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// `a, b and c`.
pub(crate) fn and_list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits_across_the_places_where_rounding_carries() {
        let shown = [0.0, 0.92, 0.999_6, 1.3, 9.996, 42.0, 99.96, 965.4, 9_990.0, 0.000_1].map(three_digits);
        assert_eq!(shown, ["0", "0.920", "1.00", "1.30", "10.0", "42.0", "100", "965", "9990", "1.0e-4"]);
    }

    #[test]
    fn large_counts_are_shortened_without_a_thousand_k() {
        assert_eq!(
            [1204.0, 9_999.0, 9_999.9, 45_678.0, 999_600.0].map(count),
            ["1204", "9999", "10.0k", "45.7k", "1.00M"]
        );
    }

    #[test]
    fn a_small_ratio_does_not_become_zero() {
        assert_eq!([1.02, 12.3, 0.0163, 0.000_04, 0.0].map(ratio), ["1.02", "12", "0.016", "4e-5", "0"]);
    }

    #[test]
    fn one_unit_serves_a_whole_column() {
        assert_eq!(RateUnit::for_all([920e3, 965e6].into_iter()), RateUnit::Mbit);
        assert_eq!(RateUnit::for_all([920e3, 1e3].into_iter()), RateUnit::Kbit);
        assert_eq!(RateUnit::for_all([1.7e9, 9.9e9].into_iter()), RateUnit::Gbit);
        assert_eq!(RateUnit::for_all([464e6, 9.9e9].into_iter()), RateUnit::Mbit);
    }

    #[test]
    fn a_name_cannot_write_to_the_terminal() {
        assert_eq!(clean("a\x1b[31mred\n\u{202e}b"), "a\u{fffd}[31mred \u{fffd}b");
        assert_eq!(clean("größe µs"), "größe µs");
    }

    #[test]
    fn clipping_counts_columns_not_bytes() {
        assert_eq!(clip("größe", 5), "größe");
        assert_eq!(clip("größere", 5), "größ…");
        assert_eq!(clip("漢字漢字", 5), "漢字…");
    }

    #[test]
    fn a_command_line_survives_the_shell() {
        let words = ["linerate", "lab", "it's", "a b", "--loss=1.5%", ""].map(String::from);
        assert_eq!(shell_line(&words), r"linerate lab 'it'\''s' 'a b' --loss=1.5% ''");
    }
}
