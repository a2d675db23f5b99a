use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::str::FromStr;

use crate::parse::{ParseError, number_and_unit, write_scaled};

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

const KNOWN: &str = "B, kB, MB, GB, KiB, MiB, GiB";

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From a count of bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The count of bytes.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The difference, or zero where `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product, or the largest size where it does not fit.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    /// Reads `25MB`, `32MiB`, `64KiB`, `1500B`, `1500`. A number without a unit is bytes.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = number_and_unit(text)?;
        let scale = match unit {
            "" | "B" => 1,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(ParseError::UnknownUnit(KNOWN)),
        };
        number.times(scale, "the size is too large").map(Self)
    }
}

impl fmt::Display for Bytes {
    /// Binary prefixes where the size is a whole number of them (`32 MiB`), else decimal ones (`12.5 MB`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (scale, unit) in [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
            if self.0 >= scale && self.0.is_multiple_of(scale) {
                return write!(f, "{} {unit}", self.0 / scale);
            }
        }
        let (scale, unit) = match self.0 {
            0..10_000 => (1, "B"),
            10_000..1_000_000 => (1_000, "kB"),
            1_000_000..1_000_000_000 => (1_000_000, "MB"),
            _ => (1_000_000_000, "GB"),
        };
        write_scaled(f, self.0, scale, 2)?;
        write!(f, " {unit}")
    }
}
