//! From values to places along an axis, and where its ticks are.

use crate::text;

/// One axis: its range, its ticks, and whether it is logarithmic.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Place and text, rising.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From zero to at least `high`, with about `count` ticks on round numbers.
    pub(crate) fn from_zero(label: &str, high: f64, count: usize) -> Self {
        Self::linear(label, 0.0, if high > 0.0 { high } else { 1.0 }, count)
    }

    /// From at most `low` to at least `high`, with about `count` ticks on round numbers.
    pub(crate) fn linear(label: &str, low: f64, high: f64, count: usize) -> Self {
        let step = round_step((high - low).max(f64::MIN_POSITIVE) / count as f64);
        let (first, last) = ((low / step).floor(), (high / step - 1e-9).ceil());
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let ticks = (first as i64..=last as i64).map(|i| i as f64 * step);
        Self {
            label: label.to_owned(),
            low: first * step,
            high: last * step,
            logarithmic: false,
            ticks: ticks.map(|at| (at, tick_text(at, decimals))).collect(),
        }
    }

    /// From exactly `low` to exactly `high`: time, where the range says how long a run was.
    pub(crate) fn exact(label: &str, low: f64, high: f64, count: usize) -> Self {
        let mut axis = Self::linear(label, low, high, count);
        axis.ticks.retain(|(at, _)| low <= *at && *at <= high);
        (axis.low, axis.high) = (low, high);
        axis
    }

    /// Whole decades around `low..high`, both above zero.
    pub(crate) fn logarithmic(label: &str, low: f64, high: f64) -> Self {
        let first = (low.log10() + 1e-9).floor() as i32;
        let last = ((high.log10() - 1e-9).ceil() as i32).max(first + 1);
        // All ticks where there are few decades, every other one where there are many.
        let every = if last - first > 5 { 2 } else { 1 };
        let ticks = (first..=last).filter(|power| (last - power) % every == 0).map(|power| 10f64.powi(power));
        Self {
            label: label.to_owned(),
            low: 10f64.powi(first),
            high: 10f64.powi(last),
            logarithmic: true,
            ticks: ticks.map(|at| (at, decade_text(at))).collect(),
        }
    }

    /// Given places with given names, in order. Places keep their distances (on a logarithmic scale where they span more than a
    /// factor of eight and none is zero), or stand evenly where they would crowd.
    pub(crate) fn named(label: &str, places: &[(f64, String)]) -> Self {
        let (low, high) = (places[0].0, places[places.len() - 1].0);
        let logarithmic = low > 0.0 && high / low > 8.0;
        let axis = Self { label: label.to_owned(), low, high, logarithmic, ticks: places.to_vec() };
        let crowded = places.windows(2).any(|pair| axis.fraction(pair[1].0) - axis.fraction(pair[0].0) < 0.11);
        if !crowded || places.len() < 2 {
            return axis.widened();
        }
        let even = places.iter().enumerate().map(|(index, (_, name))| (index as f64, name.clone())).collect();
        Self { low: 0.0, high: places.len() as f64 - 1.0, logarithmic: false, ticks: even, ..axis }.widened()
    }

    /// Where the `index`-th named place stands, in the axis's own values.
    pub(crate) fn place(&self, index: usize) -> f64 {
        self.ticks[index].0
    }

    /// Room at both ends, so that marks and names at the ends are not cut.
    fn widened(mut self) -> Self {
        const ROOM: f64 = 0.04;
        if self.logarithmic {
            let factor = (self.high / self.low).powf(ROOM);
            (self.low, self.high) = (self.low / factor, self.high * factor);
        } else {
            let span = if self.high > self.low { self.high - self.low } else { 1.0 };
            (self.low, self.high) = (self.low - ROOM * span, self.high + ROOM * span);
        }
        self
    }

    /// From 0 at the low end to 1 at the high end; what lies outside is put on the end.
    pub(crate) fn fraction(&self, value: f64) -> f64 {
        let fraction = if self.logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// The nearest 1, 2 or 5 times a power of ten that is not smaller.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let mantissa = step / power;
    let round = [1.0, 2.0, 5.0].into_iter().find(|round| mantissa <= round + 1e-9).unwrap_or(10.0);
    round * power
}

fn tick_text(value: f64, decimals: usize) -> String {
    if value.abs() >= 10_000.0 { text::count(value) } else { format!("{value:.decimals$}") }
}

fn decade_text(value: f64) -> String {
    if value >= 10_000.0 {
        text::count(value).replace(".0", "")
    } else {
        let decimals = (-value.log10().floor()).max(0.0) as usize;
        format!("{value:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_stand_on_round_numbers_and_enclose_the_values() {
        assert_eq!(texts(&Axis::from_zero("", 942.0, 4)), ["0", "500", "1000"]);
        assert_eq!(texts(&Axis::from_zero("", 0.23, 4)), ["0.0", "0.1", "0.2", "0.3"]);
        assert_eq!(texts(&Axis::linear("", 79.0, 97.0, 4)), ["75", "80", "85", "90", "95", "100"]);
    }

    #[test]
    fn an_exact_range_keeps_its_ends() {
        let axis = Axis::exact("", 0.0, 15.0, 4);
        assert_eq!(texts(&axis), ["0", "5", "10", "15"]);
        assert_eq!(Axis::exact("", 0.0, 13.0, 4).fraction(13.0), 1.0);
    }

    #[test]
    fn a_logarithmic_axis_has_whole_decades() {
        let axis = Axis::logarithmic("", 0.92, 965.0);
        assert_eq!(texts(&axis), ["0.1", "1", "10", "100", "1000"]);
        assert_eq!(axis.fraction(1.0), 0.25);
        assert_eq!(axis.fraction(0.0), 0.0);
    }

    #[test]
    fn places_that_would_crowd_stand_evenly() {
        let places = |values: &[f64]| values.iter().map(|v| (*v, v.to_string())).collect::<Vec<_>>();
        let apart = Axis::named("", &places(&[0.0, 0.5, 1.5, 3.0]));
        assert_eq!(apart.place(2), 1.5);
        let crowded = Axis::named("", &places(&[0.0, 0.01, 1.5, 3.0]));
        assert_eq!(crowded.place(2), 2.0);
    }

    #[test]
    fn one_place_alone_stands_in_the_middle() {
        let axis = Axis::named("", &[(5.0, "5".to_owned())]);
        assert_eq!(axis.fraction(5.0), 0.5);
    }
}
