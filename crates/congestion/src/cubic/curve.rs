//! The window as a function of time: RFC 9438, section 4.2, in integers.
//!
//! Windows are in packets times 2^32, times in seconds times 2^20 (0.95 us).

use units::Duration;

/// One packet.
pub(super) const PACKET: u64 = 1 << 32;

/// The longest time that counts: 2048 s from the plateau, where the curve is beyond all windows.
const LONGEST: u64 = 1 << 31;

/// In seconds times 2^20, rounded down.
pub(super) fn ticks(time: Duration) -> u64 {
    let micros = time.as_micros().min(LONGEST);
    (micros << 20) / 1_000_000
}

/// How far the curve is from its plateau `ticks` away from it: C t^3 with C = 0.4, packets times 2^32, rounded down. Saturates.
fn rise(ticks: u64) -> u64 {
    let ticks = u128::from(ticks.min(LONGEST));
    // t^3 has 60 bits of fraction.
    let cube = (ticks * ticks * ticks) >> 28;
    u64::try_from(cube).map_or(u64::MAX, |cube| cube / 5).saturating_mul(2)
}

/// K: the time in which the curve climbs by `rise`, packets times 2^32.
fn climb(rise: u64) -> u64 {
    // t^3 = rise / 0.4, with 60 bits of fraction.
    cube_root((u128::from(rise) * 5 / 2) << 28)
}

/// The largest integer whose cube is at most `value`.
fn cube_root(value: u128) -> u64 {
    let mut root: u64 = 0;
    for bit in (0..=42).rev() {
        let candidate = root | 1 << bit;
        let cube = u128::from(candidate) * u128::from(candidate);
        if cube.checked_mul(u128::from(candidate)).is_some_and(|cube| cube <= value) {
            root = candidate;
        }
    }
    root
}

/// W_cubic: from a window below its plateau up to it, and beyond.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Curve {
    /// W_max, packets times 2^32.
    plateau: u64,
    /// K, ticks.
    plateau_after: u64,
}

impl Curve {
    /// That begins at window `from` and is flat at `plateau`; packets times 2^32. From above the plateau it begins flat.
    pub(super) fn new(from: u64, plateau: u64) -> Self {
        Self { plateau: plateau.max(from), plateau_after: climb(plateau.saturating_sub(from)) }
    }

    /// The window after this time: packets times 2^32.
    pub(super) fn at(&self, time: Duration) -> u64 {
        let ticks = ticks(time);
        let height = rise(ticks.abs_diff(self.plateau_after));
        if ticks < self.plateau_after {
            self.plateau.saturating_sub(height)
        } else {
            self.plateau.saturating_add(height)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_is_that_of_the_rfc() {
        // W_max = 100, from 70: K = cbrt(30 / 0.4) = 4.217 s.
        let curve = Curve::new(70 * PACKET, 100 * PACKET);
        for (ms, expected) in
            [(0, 70.0), (1_000, 86.68), (2_000, 95.64), (4_217, 100.0), (8_434, 130.0), (20_000, 1672.59)]
        {
            let window = curve.at(Duration::from_millis(ms)) as f64 / PACKET as f64;
            assert!((window - expected).abs() < 0.02, "{ms} ms: {window}, not {expected}");
        }
    }

    #[test]
    fn above_the_last_maximum_it_begins_flat() {
        let curve = Curve::new(120 * PACKET, 100 * PACKET);
        assert_eq!(curve.at(Duration::ZERO), 120 * PACKET);
        assert!(curve.at(Duration::from_millis(1)) < 121 * PACKET);
    }

    #[test]
    fn no_time_and_no_window_is_too_large() {
        let curve = Curve::new(0, u64::MAX);
        assert!(curve.at(Duration::ZERO) < 10 * PACKET);
        for time in [Duration::from_secs(1), Duration::from_secs(2048), Duration::MAX] {
            assert!(curve.at(time) >= curve.at(Duration::ZERO));
        }
        assert_eq!(Curve::new(u64::MAX, 0).at(Duration::MAX), u64::MAX);
    }

    #[test]
    fn cube_roots_are_rounded_down() {
        for (value, root) in
            [(0, 0), (1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (1 << 90, 1 << 30), ((1 << 90) - 1, (1 << 30) - 1)]
        {
            assert_eq!(cube_root(value), root, "{value}");
        }
        assert_eq!(cube_root(u128::MAX), 6_981_463_658_331);
    }
}
