//! What `linerate bench` found: the document, its table and its page.

mod compare;
mod html;
mod model;
mod summary;
mod terminal;
#[cfg(test)]
mod tests;

pub use compare::{BenchComparison, ComparedRuns, render_bench_compare};
pub use html::render_bench_html;
pub use model::*;
pub use summary::RunFigure;
pub use terminal::render_bench;
