//! A line chart.

use std::fmt::Write;

use super::{Axis, STYLES, coordinate, escape};
use crate::text;

/// A chart: lines over a common axis.
pub(crate) struct Chart {
    /// For readers who do not see it: what is shown.
    pub title: String,
    /// For readers who do not see it: what it says.
    pub description: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    /// Shaded from the left end to here: the warm-up.
    pub shaded_to: Option<f64>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A line alone.
    Line,
    /// A line with filled marks at its points, and a bar from low to high where an interval is given.
    Filled,
    /// A dotted line with hollow marks: somebody else's figures.
    Hollow,
}

/// One line.
pub(crate) struct Line {
    /// Written at its end; empty: not named.
    pub name: String,
    /// Colour, dash and marker; wraps around.
    pub style: usize,
    pub mark: Mark,
    /// Rising in x.
    pub points: Vec<(f64, f64)>,
    /// Low and high of the points, or empty.
    pub intervals: Vec<(f64, f64)>,
}

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 34.0;
/// Of one character of a name, at the style sheet's largest size.
const CHARACTER: f64 = 6.6;
const NAME_CHARACTERS: usize = 17;
/// Between the base lines of two names.
const NAME_HEIGHT: f64 = 13.0;

impl Chart {
    /// As an `svg` element. `id` is unique in the page.
    pub(crate) fn svg(&self, id: &str) -> String {
        let names: Vec<String> = self.lines.iter().map(|line| text::clip(&line.name, NAME_CHARACTERS)).collect();
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let right = if longest == 0 { 14.0 } else { 12.0 + longest as f64 * CHARACTER };
        let frame = Frame { chart: self, width: WIDTH - LEFT - right, height: HEIGHT - TOP - BOTTOM };

        let mut svg = String::new();
        let _ = write!(
            svg,
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}t {id}d\">\
             <title id=\"{id}t\">{}</title><desc id=\"{id}d\">{}</desc>",
            escape(&self.title),
            escape(&self.description)
        );
        frame.write_axes(&mut svg);
        for line in &self.lines {
            frame.write_line(&mut svg, line);
        }
        frame.write_names(&mut svg, &names);
        svg.push_str("</svg>");
        svg
    }
}

/// The plotting area of a chart.
struct Frame<'a> {
    chart: &'a Chart,
    width: f64,
    height: f64,
}

impl Frame<'_> {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.width * self.chart.x.fraction(value)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + self.height * (1.0 - self.chart.y.fraction(value))
    }

    fn write_axes(&self, svg: &mut String) {
        let bottom = TOP + self.height;
        if let Some(to) = self.chart.shaded_to {
            let width = self.x(to) - LEFT;
            let _ = write!(
                svg,
                "<rect class=\"shade\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>",
                coordinate(width),
                coordinate(self.height)
            );
        }
        for (at, label) in &self.chart.y.ticks {
            let y = coordinate(self.y(*at));
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {y}h{}\"/><text class=\"tick end\" x=\"{}\" y=\"{y}\" dy=\".35em\">{}</text>",
                coordinate(self.width),
                LEFT - 6.0,
                escape(label)
            );
        }
        for (at, label) in &self.chart.x.ticks {
            let x = coordinate(self.x(*at));
            let _ = write!(
                svg,
                "<path class=\"axis\" d=\"M{x} {bottom}v4\"/><text class=\"tick mid\" x=\"{x}\" y=\"{}\">{}</text>",
                bottom + 15.0,
                escape(label)
            );
        }
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{LEFT} {bottom}h{}\"/><text class=\"tick mid\" x=\"{}\" y=\"{}\">{}</text>",
            coordinate(self.width),
            coordinate(LEFT + self.width / 2.0),
            HEIGHT - 5.0,
            escape(&self.chart.x.label)
        );
    }

    fn write_line(&self, svg: &mut String, line: &Line) {
        let style = line.style % STYLES;
        let places: Vec<(f64, f64)> = line.points.iter().map(|(x, y)| (self.x(*x), self.y(*y))).collect();
        let path = path(&places, line.mark == Mark::Line);
        let class = if line.mark == Mark::Hollow { "published" } else { "line" };
        let _ = write!(svg, "<path class=\"{class} s{style}\" d=\"{path}\"/>");
        if line.mark == Mark::Line {
            return;
        }
        for ((x, _), (low, high)) in places.iter().zip(&line.intervals) {
            let (low, high) = (self.y(*low), self.y(*high));
            if low - high > 1.0 {
                let (x, low, high) = (coordinate(*x), coordinate(low), coordinate(high));
                let _ = write!(svg, "<path class=\"bar s{style}\" d=\"M{x} {low}V{high}\"/>");
            }
        }
        let class = if line.mark == Mark::Hollow { "hollow" } else { "filled" };
        for (x, y) in &places {
            let _ = write!(svg, "<path class=\"{class} s{style}\" d=\"{}\"/>", marker(style, *x, *y));
        }
    }

    /// Names at the right, each as near to its line's end as the others leave room.
    fn write_names(&self, svg: &mut String, names: &[String]) {
        let ends =
            self.chart.lines.iter().zip(names).filter(|(line, name)| !name.is_empty() && !line.points.is_empty());
        let mut placed: Vec<(f64, &Line, &String)> =
            ends.map(|(line, name)| (self.y(line.points[line.points.len() - 1].1), line, name)).collect();
        placed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lowest = TOP + self.height;
        for index in 1..placed.len() {
            placed[index].0 = placed[index].0.max(placed[index - 1].0 + NAME_HEIGHT);
        }
        // What was pushed out at the bottom goes up again, and pushes the others.
        let mut limit = lowest;
        for (y, ..) in placed.iter_mut().rev() {
            *y = y.min(limit);
            limit = *y - NAME_HEIGHT;
        }
        for (y, line, name) in placed {
            let _ = write!(
                svg,
                "<text class=\"name s{}\" x=\"{}\" y=\"{}\" dy=\".35em\">{}</text>",
                line.style % STYLES,
                coordinate(LEFT + self.width + 8.0),
                coordinate(y),
                escape(name)
            );
        }
    }
}

/// A path through places; with `gaps`, broken where points are missing. Points on a level stretch are left out.
fn path(places: &[(f64, f64)], gaps: bool) -> String {
    let longest = if gaps { longest_step(places) } else { f64::INFINITY };
    let mut path = String::new();
    let mut last: Option<(f64, f64)> = None;
    let mut pen_up = true;
    for (index, &(x, y)) in places.iter().enumerate() {
        let broken = last.is_none_or(|(before, _)| x - before > longest);
        let next = places.get(index + 1);
        let level = !broken
            && last.is_some_and(|(_, before)| coordinate(before) == coordinate(y))
            && next.is_some_and(|(after, level)| coordinate(*level) == coordinate(y) && after - x <= longest);
        if broken {
            pen_up = true;
        }
        last = Some((x, y));
        if !level {
            let _ = write!(path, "{}{} {}", if pen_up { 'M' } else { 'L' }, coordinate(x), coordinate(y));
            pen_up = false;
            // A point with gaps on both sides would be invisible.
            if broken && next.is_none_or(|(after, _)| after - x > longest) {
                path.push_str("h.1");
            }
        }
    }
    path
}

/// A longer step than this is a gap: five times the usual one.
fn longest_step(places: &[(f64, f64)]) -> f64 {
    let mut steps: Vec<f64> = places.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    steps.sort_by(f64::total_cmp);
    // Thinned-out series have pairs of near points, so the usual step is looked for in the upper half.
    steps.get(steps.len() * 3 / 4).map_or(f64::INFINITY, |step| (step * 5.0).max(2.0))
}

/// Circle, square, triangle, diamond: lines can be told apart without their colours.
fn marker(style: usize, x: f64, y: f64) -> String {
    let (left, top) = (coordinate(x - 3.5), coordinate(y - 3.5));
    let (x, y) = (coordinate(x), coordinate(y));
    match style % 4 {
        0 => format!("M{left} {y}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z"),
        1 => format!("M{left} {top}h7v7h-7z"),
        2 => format!("M{x} {top}l4 7h-8z"),
        _ => format!("M{x} {top}l4 3.5-4 3.5-4-3.5z"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_in_the_data_is_a_gap_in_the_line() {
        let steady: Vec<_> = (0..20).map(|i| (f64::from(i) * 10.0, f64::from(i))).collect();
        assert_eq!(path(&steady, true).matches('M').count(), 1);
        let with_gap: Vec<_> = steady.iter().copied().filter(|(x, _)| !(60.0..130.0).contains(x)).collect();
        assert_eq!(path(&with_gap, true).matches('M').count(), 2);
        assert_eq!(path(&with_gap, false).matches('M').count(), 1);
    }

    #[test]
    fn a_level_stretch_is_two_points() {
        let level: Vec<_> = (0..100).map(|i| (f64::from(i), 5.0)).collect();
        assert_eq!(path(&level, true), "M0 5L99 5");
        assert_eq!(path(&level[..3], true), "M0 5L2 5");
        let step = [(0.0, 5.0), (1.0, 5.0), (2.0, 8.0), (3.0, 8.0)];
        assert_eq!(path(&step, true), "M0 5L1 5L2 8L3 8");
    }

    #[test]
    fn names_keep_their_distance() {
        let line = |name: &str, at: f64| Line {
            name: name.to_owned(),
            style: 0,
            mark: Mark::Line,
            points: vec![(0.0, at), (1.0, at)],
            intervals: Vec::new(),
        };
        let chart = Chart {
            title: String::new(),
            description: String::new(),
            x: Axis::exact("", 0.0, 1.0, 2),
            y: Axis::from_zero("", 10.0, 2),
            lines: vec![line("a", 0.0), line("b", 0.1), line("c", 0.0)],
            shaded_to: None,
        };
        let svg = chart.svg("x");
        let mut heights: Vec<f64> = svg
            .split("<text class=\"name")
            .skip(1)
            .map(|rest| rest.split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 3);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= NAME_HEIGHT - 0.05), "{heights:?}");
        assert!(heights[2] <= TOP + HEIGHT - BOTTOM, "{heights:?}");
    }
}
