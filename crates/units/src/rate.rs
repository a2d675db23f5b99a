use core::fmt;
use core::str::FromStr;

use crate::parse::{ParseError, number_and_unit, write_scaled};
use crate::{Bytes, Duration};

/// A data rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

const KNOWN: &str = "bit, kbit, mbit, gbit, tbit (or MB/s, GB/s for bytes)";

impl Rate {
    /// No data at all.
    pub const ZERO: Self = Self(0);

    /// From bits per second.
    pub const fn from_bps(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// From decimal megabits per second. Saturates.
    pub const fn from_mbps(megabits_per_second: u64) -> Self {
        Self(megabits_per_second.saturating_mul(1_000_000))
    }

    /// The mean rate that carries `bytes` in `time`, rounded down; zero where `time` is zero. Saturates.
    pub fn from_transfer(bytes: Bytes, time: Duration) -> Self {
        if time == Duration::ZERO {
            return Self::ZERO;
        }
        let bits = u128::from(bytes.as_u64()) * 8 * 1_000_000_000;
        Self(u64::try_from(bits / u128::from(time.as_nanos())).unwrap_or(u64::MAX))
    }

    /// In bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// In decimal megabits per second, for display and plots.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The bandwidth-delay product for a round-trip time of `rtt`, rounded down. Saturates.
    pub fn bdp(self, rtt: Duration) -> Bytes {
        self.bytes_in(rtt)
    }

    /// The bytes carried in `time`, rounded down. Saturates.
    pub fn bytes_in(self, time: Duration) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(time.as_nanos()) / 8_000_000_000;
        Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The time that `bytes` occupy a link of this rate, rounded up. `Duration::MAX` at a rate of zero. Saturates.
    pub fn time_for(self, bytes: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(bytes.as_u64()) * 8_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    /// Reads `200mbit`, `1.5gbit`, `10 Gbit/s`, `125MB/s`. `mbps` is refused: `tc` reads it as bytes, people as bits.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = number_and_unit(text)?;
        let stem = unit.strip_suffix("/s").unwrap_or(unit);
        let per_second = stem.len() != unit.len();
        let scale = match stem {
            "bit" => 1,
            "kbit" | "Kbit" => 1_000,
            "mbit" | "Mbit" => 1_000_000,
            "gbit" | "Gbit" => 1_000_000_000,
            "tbit" | "Tbit" => 1_000_000_000_000,
            "B" if per_second => 8,
            "kB" | "KB" if per_second => 8_000,
            "MB" if per_second => 8_000_000,
            "GB" if per_second => 8_000_000_000,
            "bps" | "kbps" | "Kbps" | "mbps" | "Mbps" | "gbps" | "Gbps" => {
                return Err(ParseError::AmbiguousUnit("write mbit for bits per second or MB/s for bytes per second"));
            }
            "" => return Err(ParseError::NoUnit(KNOWN)),
            _ => return Err(ParseError::UnknownUnit(KNOWN)),
        };
        number.times(scale, "the rate is too large").map(Self)
    }
}

impl fmt::Display for Rate {
    /// Three significant digits, or all before the point, with the unit people expect: `1.78 Gbit/s`, `42.5 Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            0..1_000 => (1, "bit/s"),
            1_000..1_000_000 => (1_000, "kbit/s"),
            1_000_000..1_000_000_000 => (1_000_000, "Mbit/s"),
            _ => (1_000_000_000, "Gbit/s"),
        };
        let places = match self.0 / scale {
            0..10 => 2,
            10..100 => 1,
            _ => 0,
        };
        write_scaled(f, self.0, scale, places)?;
        write!(f, " {unit}")
    }
}
