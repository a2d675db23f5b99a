//! Fixed-point arithmetic, the same as in the kernel: fractions of 256, bandwidths in packets per microsecond times 2^24.

use units::{Bytes, Rate};

/// "No bound yet", of counts.
pub(crate) const INFINITE: u32 = u32::MAX;

/// Gains and thresholds are fractions of this.
pub(crate) const UNIT: u32 = 1 << UNIT_SHIFT;
pub(crate) const UNIT_SHIFT: u32 = 8;

const BW_SHIFT: u32 = 24;

const USEC_PER_SEC: u64 = 1_000_000;

/// `value` times `fraction`/256, rounded down.
pub(crate) const fn scale(value: u32, fraction: u32) -> u32 {
    let scaled = (value as u64 * fraction as u64) >> UNIT_SHIFT;
    if scaled > INFINITE as u64 { INFINITE } else { scaled as u32 }
}

/// A bandwidth as the kernel's BBR keeps it: packets per microsecond times 2^24 in 32 bits.
///
/// With packets of 1448 bytes one step is 690 bit/s and the most is 2.96 Tbit/s, beyond which it saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bandwidth(u32);

impl Bandwidth {
    /// No bandwidth at all, or none known.
    pub const ZERO: Self = Self(0);
    /// The highest; as a bound: none.
    pub const INFINITE: Self = Self(u32::MAX);

    /// From packets per microsecond times 2^24.
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// In packets per microsecond times 2^24.
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// `packets` in `micros`, rounded up; below [`Bandwidth::INFINITE`]. No time: the highest.
    pub(crate) fn rounded_up(packets: u32, micros: u64) -> Self {
        if micros == 0 {
            return Self(INFINITE - 1);
        }
        let raw = (u64::from(packets) << BW_SHIFT).div_ceil(micros);
        Self(raw.min(u64::from(INFINITE - 1)) as u32)
    }

    /// `packets` in `micros`, rounded down.
    pub(crate) fn rounded_down(packets: u32, micros: u64) -> Self {
        let raw = (u64::from(packets) << BW_SHIFT) / micros.max(1);
        Self(raw.min(u64::from(INFINITE)) as u32)
    }

    /// Times `fraction`/256, rounded down.
    pub(crate) const fn scaled(self, fraction: u32) -> Self {
        Self(scale(self.0, fraction))
    }

    /// Packets in `micros`, rounded down. Saturates.
    pub(crate) fn packets_in(self, micros: u64) -> u64 {
        let packets = (u128::from(self.0) * u128::from(micros)) >> BW_SHIFT;
        u64::try_from(packets).unwrap_or(u64::MAX)
    }

    /// Times `gain`/256, over `micros`: packets, rounded up.
    ///
    /// As the kernel program: where the product gets too large for the exact form, eight bits that no real path misses are given up.
    pub(crate) fn packets_to_fill(self, micros: u32, gain: u32) -> u32 {
        let product = u64::from(self.0) * u64::from(micros);
        let product = if product < 1 << 54 {
            (product * u64::from(gain)) >> UNIT_SHIFT
        } else {
            (product >> UNIT_SHIFT).saturating_mul(u64::from(gain))
        };
        let packets = product.saturating_add((1 << BW_SHIFT) - 1) >> BW_SHIFT;
        packets.min(u64::from(INFINITE)) as u32
    }

    /// Bytes per second times `gain`/256, `margin_percent` below it.
    pub(crate) fn bytes_per_second(self, mss: Bytes, gain: u32, margin_percent: u32) -> u64 {
        let rate = u128::from(self.0) * u128::from(mss.as_u64());
        let rate = (rate * u128::from(gain)) >> UNIT_SHIFT;
        let margin = USEC_PER_SEC / 100 * u64::from(100 - margin_percent.min(100));
        u64::try_from((rate * u128::from(margin)) >> BW_SHIFT).unwrap_or(u64::MAX)
    }

    /// With packets of `mss` bytes.
    pub fn to_rate(self, mss: Bytes) -> Rate {
        rate_from_bytes(self.bytes_per_second(mss, UNIT, 0))
    }
}

/// The lowest pacing rate: a byte per second, so that no sender stops for good.
pub(crate) const SLOWEST: Rate = Rate::from_bps(8);

/// From bytes per second. Saturates.
pub(crate) const fn rate_from_bytes(bytes_per_second: u64) -> Rate {
    Rate::from_bps(bytes_per_second.saturating_mul(8))
}

/// Marsaglia's xorshift: a random number below `ceiling`. The generator's state is never zero.
pub(crate) fn random_below(generator: &mut u32, ceiling: u32) -> u32 {
    let mut drawn = *generator;
    drawn ^= drawn << 13;
    drawn ^= drawn >> 17;
    drawn ^= drawn << 5;
    *generator = drawn;
    ((u64::from(drawn) * u64::from(ceiling)) >> 32) as u32
}

/// A generator whose numbers have nothing to do with those of the next seed.
pub(crate) fn generator(seed: u64) -> u32 {
    // SplitMix64, one step.
    let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) >> 32) as u32 | 1
}
