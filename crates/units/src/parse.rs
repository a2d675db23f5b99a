//! Decimal numbers with a unit, read exactly: no floating point in between.

use core::fmt;

/// Why a quantity could not be read.
///
/// It does not repeat the input: the caller has it and knows where it stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// Nothing, or no digits before the unit.
    NoNumber,
    /// The number has no unit, and this quantity needs one. Holds the units that are known.
    NoUnit(&'static str),
    /// The unit is not known. Holds the units that are.
    UnknownUnit(&'static str),
    /// A unit that people read in two ways. Holds what to write instead.
    AmbiguousUnit(&'static str),
    /// Too large for the type, or finer than its resolution.
    OutOfRange(&'static str),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => f.write_str("it does not start with a number"),
            Self::NoUnit(known) => write!(f, "the unit is missing; write one of {known}"),
            Self::UnknownUnit(known) => write!(f, "the unit is not known; write one of {known}"),
            Self::AmbiguousUnit(instead) => write!(f, "the unit can be read in two ways; {instead}"),
            Self::OutOfRange(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for ParseError {}

/// A non-negative decimal number: `digits / 10^decimals`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// `self * scale`, rounded to the nearest integer; halves go up. Neither too large for `u64` nor rounded down to nothing.
    ///
    /// `scale` is at most that of hours in nanoseconds.
    pub(crate) fn times(self, scale: u64, too_large: &'static str) -> Result<u64, ParseError> {
        let divisor = 10u128.pow(self.decimals);
        let rounded = (self.digits * u128::from(scale) + divisor / 2) / divisor;
        if rounded == 0 && self.is_positive() {
            return Err(ParseError::OutOfRange("it is too small to be told from zero"));
        }
        u64::try_from(rounded).map_err(|_| ParseError::OutOfRange(too_large))
    }

    /// Whether the number is above zero.
    pub(crate) fn is_positive(self) -> bool {
        self.digits > 0
    }
}

/// Most digits before and after the point together that matter; with the largest scale the product fits into `u128`.
const MOST_DIGITS: u32 = 24;

/// Splits `text` into its number and the trimmed rest.
pub(crate) fn number_and_unit(text: &str) -> Result<(Decimal, &str), ParseError> {
    let text = text.trim();
    let mut digits: u128 = 0;
    let mut decimals = 0;
    let mut seen_digit = false;
    let mut seen_point = false;
    let mut end = text.len();
    for (index, c) in text.char_indices() {
        match c {
            '0'..='9' => {
                seen_digit = true;
                digits = digits * 10 + u128::from(c as u32 - '0' as u32);
                decimals += u32::from(seen_point);
                if digits >= 10u128.pow(MOST_DIGITS) || decimals > MOST_DIGITS {
                    return Err(ParseError::OutOfRange("the number has too many digits"));
                }
            }
            '_' if seen_digit => {}
            '.' if !seen_point => seen_point = true,
            _ => {
                end = index;
                break;
            }
        }
    }
    if !seen_digit {
        return Err(ParseError::NoNumber);
    }
    Ok((Decimal { digits, decimals }, text[end..].trim()))
}

/// Writes `value / scale` with up to `places` decimals and no trailing zeros.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, scale: u64, places: u32) -> fmt::Result {
    let factor = 10u128.pow(places);
    let scaled = (u128::from(value) * factor + u128::from(scale) / 2) / u128::from(scale);
    let (whole, mut fraction) = (scaled / factor, scaled % factor);
    write!(f, "{whole}")?;
    if fraction == 0 {
        return Ok(());
    }
    let mut width = places as usize;
    while fraction.is_multiple_of(10) {
        fraction /= 10;
        width -= 1;
    }
    write!(f, ".{fraction:0width$}")
}
