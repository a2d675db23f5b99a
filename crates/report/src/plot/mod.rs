//! Plots as inline SVG, written by hand rather than through `plotters`: every colour is a class that the page's style sheet
//! turns into a variable, so that one plot serves light, dark and print, and every plot carries a title and a description.
//! `plotters` writes colours as attributes and knows no title element.

mod axis;
mod chart;
mod strip;

pub(crate) use axis::Axis;
pub(crate) use chart::{Chart, Line, Mark};
pub(crate) use strip::Strip;

/// How many line styles the style sheet has: colour, dash and marker by number.
pub(crate) const STYLES: usize = 6;

/// Text in SVG and in attributes.
fn escape(text: &str) -> String {
    minijinja::HtmlEscape(text).to_string()
}

/// A coordinate to a tenth of a pixel, without a needless `.0`.
fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
