//! What an experiment found, as tables for a terminal, as one HTML file, and as JSON.
//!
//! The crate is given plain values and knows no other crate of the workspace but `units`. A caller
//!
//! 1. makes a [`LabReport`] and pushes a [`ScenarioReport`] for each scenario and a [`RunReport`] for each run, series
//!    thinned out by [`Series`];
//! 2. calls [`LabReport::summarise`] with its statistics, which fills `summary`;
//! 3. renders: [`render_lab_table`], [`render_html`], [`LabReport::to_json`].
//!
//! Two JSON files are read back ([`LabReport::from_json`]) and held against each other by [`compare()`].
//!
//! Every string may come from a file that somebody else wrote: HTML is escaped, and a terminal gets no control characters.
#![forbid(unsafe_code)]

// So that tests inside and outside of the crate share one sample.
#[cfg(test)]
extern crate self as linerate_report;

pub mod bench;
mod compare;
mod disagree;
mod groups;
mod html;
mod json;
mod model;
mod plot;
#[cfg(test)]
mod schema;
mod series;
mod shares;
mod sim_difference;
mod summary;
mod table;
mod terminal;
mod text;

pub use compare::{Comparison, Verdict, compare, render_compare};
pub use disagree::{AGREES_WITHIN, DisagreeingCell, Disagreement, disagreements};
pub use html::render_html;
pub use json::ReadError;
pub use model::*;
pub use series::{MAX_POINTS, Series};
pub use sim_difference::{SIM_WITHIN, SIM_WITHIN_BPS, SimDifference, render_sim_differences, sim_differences};
pub use summary::{IntervalOf, jain_index, median_and_range};
pub use terminal::render_lab_table;

/// Why a run is invalid that a signal cut short.
pub const STOPPED: &str = "stopped before its time";
