//! Queue sizes as people write them, and what a link takes.

use std::fmt;
use std::str::FromStr;

use path::{QueueLimit, RateModel};
use units::{Bytes, Duration, ParseError, Rate};

use crate::QueueSpec;

/// Why a queue's size could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueueParseError {
    /// A number alone could be bytes, packets or BDPs.
    #[error("the unit is missing; write one of bdp, packets, ms, s, B, kB, MB, KiB, MiB")]
    NoUnit,
    /// No such unit.
    #[error("the unit is not known; write one of bdp, packets, ms, s, B, kB, MB, KiB, MiB")]
    UnknownUnit,
    /// Packets are not divided.
    #[error("a number of packets is whole and below 4294967296")]
    Packets,
    /// Finer than the model keeps, or too large.
    #[error("a number of BDPs has at most three decimals and is below 4294967")]
    Bdp,
    /// A time or a size that cannot be read.
    #[error(transparent)]
    Quantity(#[from] ParseError),
}

impl FromStr for QueueSpec {
    type Err = QueueParseError;

    /// Reads `1bdp`, `0.25 BDP`, `100ms`, `250kB`, `64KiB`, `165packets`.
    fn from_str(text: &str) -> Result<Self, QueueParseError> {
        let text = text.trim();
        let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '_')).unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim());
        if number.is_empty() {
            return Err(ParseError::NoNumber.into());
        }
        match unit {
            "" => Err(QueueParseError::NoUnit),
            "bdp" | "BDP" => thousandths(number).map(Self::BdpMilli).ok_or(QueueParseError::Bdp),
            "packet" | "packets" => number.parse().map(Self::Packets).map_err(|_| QueueParseError::Packets),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" => Ok(Self::Time(text.parse()?)),
            _ => match text.parse() {
                Ok(bytes) => Ok(Self::Bytes(bytes)),
                Err(ParseError::UnknownUnit(_)) => Err(QueueParseError::UnknownUnit),
                Err(other) => Err(other.into()),
            },
        }
    }
}

impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Packets(1) => f.write_str("1 packet"),
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Time(time) => time.fmt(f),
            Self::BdpMilli(milli) => write!(f, "{} BDP", f64::from(*milli) / 1000.0),
        }
    }
}

impl QueueSpec {
    /// The limit at a bottleneck of `rate` on a path of `rtt`, rounded down. `None` where the size is given as a time or in
    /// BDPs and there is no rate.
    pub(crate) fn limit(self, rate: Option<Rate>, rtt: Duration) -> Option<QueueLimit> {
        Some(match self {
            Self::Bytes(bytes) => QueueLimit::Bytes(bytes),
            Self::Packets(packets) => QueueLimit::Packets(packets),
            Self::Time(time) => QueueLimit::Bytes(rate?.bytes_in(time)),
            Self::BdpMilli(milli) => {
                let bytes = u128::from(rate?.bdp(rtt).as_u64()) * u128::from(milli) / 1000;
                QueueLimit::Bytes(Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX)))
            }
        })
    }
}

/// The rate that a queue's size in time or BDPs refers to: the first of several, the mean of a trace.
pub(crate) fn nominal_rate(rate: &RateModel) -> Option<Rate> {
    match rate {
        RateModel::Unlimited => None,
        RateModel::Constant(rate) => Some(*rate),
        RateModel::Steps(steps) => steps.first().map(|(_, rate)| *rate),
        RateModel::Trace(trace) => {
            let bytes = Bytes::new(1500).saturating_mul(trace.opportunities_ms.len() as u64);
            let length = Duration::from_millis(u64::from(*trace.opportunities_ms.last()?));
            Some(Rate::from_transfer(bytes, length))
        }
    }
}

/// The highest rate; of a trace its mean, since a queue evens out what is above it.
pub(crate) fn highest_rate(rate: &RateModel) -> Option<Rate> {
    match rate {
        RateModel::Steps(steps) => steps.iter().map(|(_, rate)| *rate).max(),
        other => nominal_rate(other),
    }
}

/// Reads a decimal number with at most three decimals, in thousandths.
pub(crate) fn thousandths(number: &str) -> Option<u32> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if (whole.is_empty() && fraction.is_empty()) || fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u32 = format!("{fraction:0<3}").parse().ok()?;
    whole.checked_mul(1000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_a_queue_is_read_and_printed() {
        for (text, spec, printed) in [
            ("1bdp", QueueSpec::BdpMilli(1000), "1 BDP"),
            ("0.25 BDP", QueueSpec::BdpMilli(250), "0.25 BDP"),
            ("100ms", QueueSpec::Time(Duration::from_millis(100)), "100 ms"),
            ("0.4s", QueueSpec::Time(Duration::from_millis(400)), "400 ms"),
            ("250kB", QueueSpec::Bytes(Bytes::new(250_000)), "250 kB"),
            ("64KiB", QueueSpec::Bytes(Bytes::new(65_536)), "64 KiB"),
            ("165packets", QueueSpec::Packets(165), "165 packets"),
            ("1 packet", QueueSpec::Packets(1), "1 packet"),
        ] {
            assert_eq!(text.parse(), Ok(spec), "{text}");
            assert_eq!(spec.to_string(), printed);
        }
    }

    #[test]
    fn what_is_no_queue_size_is_refused_with_the_reason() {
        for (text, why) in [
            ("165", QueueParseError::NoUnit),
            ("1bpd", QueueParseError::UnknownUnit),
            ("1.5packets", QueueParseError::Packets),
            ("4294967296packets", QueueParseError::Packets),
            ("0.0001bdp", QueueParseError::Bdp),
            ("1.2.3bdp", QueueParseError::Bdp),
            (".bdp", QueueParseError::Bdp),
            ("4294968bdp", QueueParseError::Bdp),
            ("bdp", QueueParseError::Quantity(ParseError::NoNumber)),
            ("", QueueParseError::Quantity(ParseError::NoNumber)),
        ] {
            assert_eq!(text.parse::<QueueSpec>(), Err(why), "{text}");
        }
    }

    #[test]
    fn thousandths_are_exact_and_finer_is_refused() {
        assert_eq!(thousandths("0.125"), Some(125));
        assert_eq!(thousandths(".5"), Some(500));
        assert_eq!(thousandths("2.5000"), Some(2500));
        assert_eq!(thousandths("300"), Some(300_000));
        assert_eq!(thousandths("0.1251"), None);
        assert_eq!(thousandths("-1"), None);
        assert_eq!(thousandths("1e3"), None);
    }

    #[test]
    fn sizes_in_time_and_bdp_follow_the_rate_and_need_one() {
        let rate = Some(Rate::from_mbps(50));
        let rtt = Duration::from_millis(40);
        assert_eq!(QueueSpec::BdpMilli(250).limit(rate, rtt), Some(QueueLimit::Bytes(Bytes::new(62_500))));
        assert_eq!(QueueSpec::Time(rtt).limit(rate, rtt), Some(QueueLimit::Bytes(Bytes::new(250_000))));
        assert_eq!(QueueSpec::Packets(7).limit(None, rtt), Some(QueueLimit::Packets(7)));
        assert_eq!(QueueSpec::BdpMilli(250).limit(None, rtt), None);
        assert_eq!(QueueSpec::Time(rtt).limit(None, rtt), None);
    }
}
