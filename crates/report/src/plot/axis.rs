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
        let whole = |decimals: &usize| (step * 10f64.powi(*decimals as i32)).fract().abs() < 1e-6;
        let decimals = (0..9).find(whole).unwrap_or(9);
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

    /// Around `low..high`, both above zero, from and to 1, 2 or 5 times a power of ten; ticks at powers of ten, and between
    /// them where there are few.
    pub(crate) fn logarithmic(label: &str, low: f64, high: f64) -> Self {
        let candidates = |power: i32| [1.0, 2.0, 5.0].map(|mantissa| mantissa * 10f64.powi(power));
        let (first, last) = (low.log10().floor() as i32 - 1, high.log10().ceil() as i32 + 1);
        let all = || (first..=last).flat_map(candidates);
        let low = all().rfind(|at| *at <= low * (1.0 + 1e-9)).unwrap_or(low);
        let high = all().find(|at| *at >= high * (1.0 - 1e-9) && *at > low).unwrap_or(high);
        let powers =
            |every: i32| (first..=last).filter(move |power| (last - power) % every == 0).map(|p| 10f64.powi(p));
        let inside = |at: &f64| low * (1.0 - 1e-9) <= *at && *at <= high * (1.0 + 1e-9);
        let decades = (high / low).log10();
        let ticks: Vec<f64> = match decades {
            few if few < 1.5 => all().filter(inside).collect(),
            some if some < 6.0 => powers(1).filter(inside).collect(),
            _ => powers(2).filter(inside).collect(),
        };
        Self {
            label: label.to_owned(),
            low,
            high,
            logarithmic: true,
            ticks: ticks.into_iter().map(|at| (at, decade_text(at))).collect(),
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

/// The nearest of 1, 2, 2.5 and 5 times a power of ten that is not smaller.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let mantissa = step / power;
    let round = [1.0, 2.0, 2.5, 5.0].into_iter().find(|round| mantissa <= round + 1e-9).unwrap_or(10.0);
    round * power
}

fn tick_text(value: f64, decimals: usize) -> String {
    if value.abs() >= 10_000.0 { short_count(value) } else { format!("{value:.decimals$}") }
}

fn decade_text(value: f64) -> String {
    if value >= 10_000.0 {
        short_count(value)
    } else {
        let decimals = (-value.log10().floor()).max(0.0) as usize;
        format!("{value:.decimals$}")
    }
}

/// `20k`, not `20.0k`.
fn short_count(value: f64) -> String {
    let text = text::count(value);
    let (number, prefix) = text.split_at(text.len() - 1);
    let short = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{short}{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_stand_on_round_numbers_and_enclose_the_values() {
        assert_eq!(texts(&Axis::from_zero("", 942.0, 4)), ["0", "250", "500", "750", "1000"]);
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
    fn a_logarithmic_axis_has_ticks_at_powers_of_ten_and_between_few_of_them() {
        let axis = Axis::logarithmic("", 0.92, 965.0);
        assert_eq!(texts(&axis), ["1", "10", "100", "1000"]);
        assert!(axis.fraction(0.92) > 0.0 && axis.fraction(1_000.0) == 1.0);
        assert_eq!(axis.fraction(0.0), 0.0);
        assert_eq!(texts(&Axis::logarithmic("", 3.0, 40.0)), ["2", "5", "10", "20", "50"]);
        assert_eq!(texts(&Axis::logarithmic("", 10.0, 10.0)), ["10", "20"]);
    }

    #[test]
    fn large_ticks_are_short() {
        assert_eq!(texts(&Axis::from_zero("", 19_000.0, 4)), ["0", "5000", "10k", "15k", "20k"]);
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
