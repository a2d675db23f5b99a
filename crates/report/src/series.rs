//! Values over time, and three ways to keep fewer of them.
//!
//! Which way is right depends on what a point means. A *state* sampled now and then (queue depth, RTT) keeps its
//! extremes, so that a short spike survives; an *amount* since the point before (drops) is added up, so that totals
//! survive; a *rate* over the time since the point before (goodput) is averaged.

use serde::{Deserialize, Serialize};
use units::Instant;

/// The most points that a report keeps of one series.
pub const MAX_POINTS: usize = 600;

/// Values over time, as two columns: small in JSON, and ready for a data frame.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    /// Since the run's start, rising.
    time_s: Vec<f64>,
    /// As many values, in the unit of the series' name.
    value: Vec<f64>,
}

impl Series {
    /// No points.
    pub fn new() -> Self {
        Self::default()
    }

    /// From points in the order of time, by [`Series::push`].
    pub fn from_points(points: impl IntoIterator<Item = (Instant, f64)>) -> Self {
        let mut series = Self::new();
        for (at, value) in points {
            series.push(at, value);
        }
        series
    }

    /// Adds a point. Time is kept to 0.1 ms and the value to six digits, which no plot can tell from more; what is not
    /// a finite number is left out, because JSON has no word for it.
    pub fn push(&mut self, at: Instant, value: f64) {
        if value.is_finite() {
            self.time_s.push((at.as_secs_f64() * 1e4).round() / 1e4);
            self.value.push(six_digits(value));
        }
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.time_s.len().min(self.value.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pairs of seconds since the run's start and value.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.time_s.iter().copied().zip(self.value.iter().copied())
    }

    /// At most `limit` points of a state: the time is cut into `limit / 2` equal spans and each keeps its smallest and its
    /// largest point, in the order they came.
    #[must_use]
    pub fn extremes(self, limit: usize) -> Self {
        let buckets = (limit / 2).max(1);
        if self.len() <= limit {
            return self;
        }
        let (first, last) = (self.time_s[0], self.time_s[self.len() - 1]);
        let width = (last - first) / buckets as f64;
        let bucket_of = |time: f64| (((time - first) / width) as usize).min(buckets - 1);
        let mut kept = Self::new();
        let mut start = 0;
        while start < self.len() {
            let bucket = bucket_of(self.time_s[start]);
            let mut end = start;
            let (mut low, mut high) = (start, start);
            while end < self.len() && bucket_of(self.time_s[end]) == bucket {
                if self.value[end] < self.value[low] {
                    low = end;
                }
                if self.value[end] > self.value[high] {
                    high = end;
                }
                end += 1;
            }
            kept.copy(&self, low.min(high));
            if low != high {
                kept.copy(&self, low.max(high));
            }
            start = end;
        }
        kept
    }

    /// At most `limit` points of an amount: neighbours are added up, at the time of the last of them.
    #[must_use]
    pub fn sums(self, limit: usize) -> Self {
        self.merged(limit, |values| values.iter().sum())
    }

    /// At most `limit` points of a rate over equal spans: neighbours are averaged, at the time of the last of them.
    #[must_use]
    pub fn means(self, limit: usize) -> Self {
        self.merged(limit, |values| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn merged(self, limit: usize, merge: impl Fn(&[f64]) -> f64) -> Self {
        if self.len() <= limit {
            return self;
        }
        let group = self.len().div_ceil(limit.max(1));
        let times = self.time_s.chunks(group).map(|times| times[times.len() - 1]).collect();
        let values = self.value.chunks(group).map(|values| six_digits(merge(values))).collect();
        Self { time_s: times, value: values }
    }

    fn copy(&mut self, from: &Self, index: usize) {
        self.time_s.push(from.time_s[index]);
        self.value.push(from.value[index]);
    }
}

/// `value` to six significant decimal digits.
pub(crate) fn six_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let magnitude = value.abs().log10().floor() as i32;
    if magnitude >= 5 {
        // Whole numbers stay whole.
        let step = 10f64.powi(magnitude - 5);
        return (value / step).round() * step;
    }
    let factor = 10f64.powi(5 - magnitude);
    (value * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn ramp(points: u64) -> Series {
        Series::from_points((0..points).map(|i| (at(i * 10), i as f64)))
    }

    #[test]
    fn a_short_spike_survives_extremes_and_not_means() {
        let spiked = || Series::from_points((0..10_000).map(|i| (at(i), if i == 7_777 { 500.0 } else { 1.0 })));
        let kept = spiked().extremes(100);
        assert!(kept.len() <= 100, "{}", kept.len());
        assert!(kept.points().any(|(time, value)| time == 7.777 && value == 500.0));
        assert!(spiked().means(100).points().all(|(_, value)| value < 10.0));
    }

    #[test]
    fn extremes_keep_the_order_of_time_within_a_span() {
        let kept = Series::from_points((0..1_000).map(|i| (at(i), f64::from((i % 100 > 50) as u8)))).extremes(40);
        let times: Vec<f64> = kept.points().map(|(time, _)| time).collect();
        assert!(times.is_sorted(), "{times:?}");
    }

    #[test]
    fn sums_keep_the_total_and_means_keep_the_mean() {
        let total: f64 = ramp(1_000).points().map(|(_, value)| value).sum();
        let summed = ramp(1_000).sums(300);
        assert!(summed.len() <= 300);
        assert_eq!(summed.points().map(|(_, value)| value).sum::<f64>(), total);
        let averaged = ramp(1_000).means(250);
        assert_eq!(averaged.points().map(|(_, value)| value).sum::<f64>() / 250.0, total / 1_000.0);
    }

    #[test]
    fn a_series_within_the_limit_stays_as_it_is() {
        assert_eq!(ramp(50).extremes(50), ramp(50));
        assert_eq!(ramp(50).sums(50), ramp(50));
        assert_ne!(ramp(50).sums(49), ramp(50));
    }

    #[test]
    fn points_at_one_time_do_not_divide_by_zero() {
        let kept = Series::from_points((0..100).map(|i| (at(5), f64::from(i)))).extremes(10);
        assert_eq!(kept.points().collect::<Vec<_>>(), [(0.005, 0.0), (0.005, 99.0)]);
    }

    #[test]
    fn what_is_not_a_number_is_left_out() {
        let series = Series::from_points([(at(0), 1.0), (at(1), f64::NAN), (at(2), f64::INFINITY), (at(3), 2.0)]);
        assert_eq!(series.points().collect::<Vec<_>>(), [(0.0, 1.0), (0.003, 2.0)]);
    }

    #[test]
    fn six_digits_are_kept_on_both_sides_of_the_point() {
        assert_eq!(six_digits(0.123_456_78), 0.123_457);
        assert_eq!(six_digits(965_432_198.0), 965_432_000.0);
        assert_eq!(six_digits(-81.234_567_8), -81.234_6);
        assert_eq!(six_digits(0.0), 0.0);
    }
}
