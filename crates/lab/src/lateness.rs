//! How late the emulator was, measured by itself.

use hdrhistogram::Histogram;
use units::Duration;

/// A histogram of delays in nanoseconds, three digits exact, up to ten seconds.
#[derive(Debug, Clone)]
pub struct Lateness {
    histogram: Histogram<u64>,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { histogram: Histogram::new_with_bounds(1, 10_000_000_000, 3).expect("constant bounds are valid") }
    }
}

impl Lateness {
    /// Counts `weight` packets that were late by `by`.
    pub fn record(&mut self, by: Duration, weight: u64) {
        self.histogram.saturating_record_n(by.as_nanos().max(1), weight);
    }

    /// The delay that the fraction `q` of packets stayed at or below; zero where nothing was recorded.
    pub fn quantile(&self, q: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(q))
    }

    /// The worst.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }

    /// Packets counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_weigh_packets_not_calls() {
        let mut late = Lateness::default();
        late.record(Duration::from_micros(10), 999);
        late.record(Duration::from_millis(5), 1);
        assert!(late.quantile(0.99) < Duration::from_micros(11));
        assert!(late.quantile(0.9995) > Duration::from_millis(4), "the one late packet of a thousand is seen");
        assert_eq!(late.count(), 1000);
    }
}
