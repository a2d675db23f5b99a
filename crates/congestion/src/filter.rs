//! The maximum over a sliding window, from its best, second best and third best (Kathleen Nichols' filter, lib/win_minmax.c of Linux).

use crate::Bandwidth;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sample {
    /// Time, in what the caller counts in; wraps.
    at: u32,
    value: Bandwidth,
}

/// A windowed maximum; its window is counted in round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WindowedMax {
    /// The highest of the window, of what came after it, and of what came after that.
    best: [Sample; 3],
}

impl WindowedMax {
    pub(crate) fn get(&self) -> Bandwidth {
        self.best[0].value
    }

    /// Takes in a value; forgets what is more than `window` old.
    pub(crate) fn update(&mut self, window: u32, at: u32, value: Bandwidth) {
        let new = Sample { at, value };
        let age = |sample: Sample| at.wrapping_sub(sample.at);
        if value >= self.best[0].value || age(self.best[2]) > window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best = [self.best[0], new, new];
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        if age(self.best[0]) > window {
            self.best = [self.best[1], self.best[2], new];
            if age(self.best[0]) > window {
                self.best = [self.best[1], new, new];
            }
        } else if self.best[1].at == self.best[0].at && age(self.best[0]) > window / 4 {
            // A quarter of the window without a better one: the second best is from the second quarter.
            self.best = [self.best[0], new, new];
        } else if self.best[2].at == self.best[1].at && age(self.best[0]) > window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(raw: u32) -> Bandwidth {
        Bandwidth::from_raw(raw)
    }

    #[test]
    fn the_maximum_lasts_for_the_window_and_then_gives_way_to_a_later_one() {
        let mut filter = WindowedMax::default();
        filter.update(10, 0, value(100));
        for at in 1..=10 {
            filter.update(10, at, value(50 + at));
            assert_eq!(filter.get(), value(100), "{at}");
        }
        filter.update(10, 11, value(1));
        // Not exact, but no higher than what was seen and from the last window.
        assert!(filter.get() >= value(52) && filter.get() <= value(60), "{:?}", filter.get());
    }

    #[test]
    fn a_higher_value_counts_at_once_and_an_old_window_is_forgotten() {
        let mut filter = WindowedMax::default();
        filter.update(10, u32::MAX, value(7));
        filter.update(10, 1, value(8));
        assert_eq!(filter.get(), value(8));
        filter.update(10, 100, value(3));
        assert_eq!(filter.get(), value(3));
    }
}
