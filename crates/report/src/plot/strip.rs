//! One row of the headline table as a picture: published hollow, measured filled, on an axis shared by all rows.

use std::fmt::Write;

use super::{Axis, coordinate};
use crate::model::Interval;

const WIDTH: f64 = 180.0;
const HEIGHT: f64 = 20.0;
const MARGIN: f64 = 8.0;

/// The rows' common axis.
pub(crate) struct Strip {
    axis: Axis,
}

impl Strip {
    /// For figures of these sizes; `None` where there are none. Logarithmic where they span more than a factor of twenty.
    pub(crate) fn over(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        let high = values.iter().copied().fold(0.0, f64::max);
        let low = values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        if high <= 0.0 {
            return None;
        }
        let axis = if high / low > 20.0 { Axis::logarithmic("", low, high) } else { Axis::from_zero("", high, 3) };
        Some(Self { axis })
    }

    fn x(&self, value: f64) -> f64 {
        MARGIN + (WIDTH - 2.0 * MARGIN) * self.axis.fraction(value)
    }

    fn open(&self, svg: &mut String) {
        // The table's cells say the same in words.
        let _ = write!(svg, "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\">");
    }

    /// The axis, for the column's heading.
    pub(crate) fn heading(&self) -> String {
        let mut svg = String::new();
        self.open(&mut svg);
        let last = self.axis.ticks.len().saturating_sub(1);
        for (index, (at, label)) in self.axis.ticks.iter().enumerate() {
            let (class, x) = match index {
                0 => ("tick", 0.0),
                i if i == last => ("tick end", WIDTH),
                _ => ("tick mid", self.x(*at)),
            };
            let _ = write!(svg, "<text class=\"{class}\" x=\"{}\" y=\"15\">{label}</text>", coordinate(x));
        }
        svg.push_str("</svg>");
        svg
    }

    /// One row.
    pub(crate) fn row(&self, measured: Option<Interval>, published: Option<f64>) -> String {
        let mut svg = String::new();
        self.open(&mut svg);
        for (at, _) in &self.axis.ticks {
            let _ = write!(svg, "<path class=\"grid\" d=\"M{} 0v{HEIGHT}\"/>", coordinate(self.x(*at)));
        }
        let middle = HEIGHT / 2.0;
        if let (Some(measured), Some(published)) = (measured, published) {
            let (from, to) = (coordinate(self.x(published)), coordinate(self.x(measured.median)));
            let _ = write!(svg, "<path class=\"between\" d=\"M{from} {middle}H{to}\"/>");
        }
        if let Some(published) = published {
            let x = coordinate(self.x(published));
            let _ = write!(svg, "<circle class=\"given\" cx=\"{x}\" cy=\"{middle}\" r=\"4.5\"/>");
        }
        if let Some(measured) = measured {
            let (low, high) = (coordinate(self.x(measured.low)), coordinate(self.x(measured.high)));
            let x = coordinate(self.x(measured.median));
            let _ = write!(
                svg,
                "<path class=\"range\" d=\"M{low} {middle}H{high}\"/><circle class=\"found\" cx=\"{x}\" cy=\"{middle}\" r=\"4\"/>"
            );
        }
        svg.push_str("</svg>");
        svg
    }
}
