use core::fmt;
use core::str::FromStr;

use crate::parse::{ParseError, number_and_unit, write_scaled};

/// A probability in parts per billion, from never (0) to always (10^9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u32);

const ONE: u32 = 1_000_000_000;

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(ONE);

    /// From parts per billion; more than 10^9 counts as always.
    pub const fn from_ppb(parts_per_billion: u32) -> Self {
        Self(if parts_per_billion > ONE { ONE } else { parts_per_billion })
    }

    /// In parts per billion.
    pub const fn as_ppb(self) -> u32 {
        self.0
    }

    /// As a fraction from 0 to 1, for display and statistics.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(ONE)
    }

    /// Whether an event of this probability happens for `random`, uniform over all of `u64`.
    ///
    /// One multiplication and one comparison, without rounding that differs between machines.
    pub const fn happens(self, random: u64) -> bool {
        // random / 2^64 < p / 10^9, both sides multiplied out.
        (random as u128) * (ONE as u128) < (self.0 as u128) << 64
    }
}

impl FromStr for Probability {
    type Err = ParseError;

    /// Reads `1.5%` or `0.015`; the finest step is one part in 10^9 (`0.0000001%`).
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = number_and_unit(text)?;
        let scale = match unit {
            "%" => u64::from(ONE / 100),
            "" => u64::from(ONE),
            _ => return Err(ParseError::UnknownUnit("% (or none, for a fraction)")),
        };
        let too_large = "a probability is at most 100% (a number without % is a fraction of 1)";
        let ppb = number.times(scale, too_large)?;
        if ppb > u64::from(ONE) {
            return Err(ParseError::OutOfRange(too_large));
        }
        Ok(Self(ppb as u32))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, u64::from(self.0), u64::from(ONE / 100), 7)?;
        f.write_str("%")
    }
}
