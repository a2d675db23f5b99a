//! Scenario files: one experiment described in TOML, the same for the lab and the simulator.
//!
//! Three layers, each usable by itself:
//!
//! 1. [`Scenario`] and its parts: plain values, whatever they came from.
//! 2. Ways to get one: [`Scenario::parse`] from a file's text, [`Scenario::builtin`] from those that come with the
//!    program, [`Scenario::ad_hoc`] from a command line; [`Scenario::with_overrides`] changes any of them.
//! 3. What a driver runs: [`Scenario::cells`] (every combination of profile, RTT, loss, queue and repeat, in the order to
//!    run them) and [`Scenario::expanded_flows`].
//!
//! What cannot be run is refused by [`Scenario::check`], which all of these call. Errors name the file, line and column
//! where there is one, and say what to write instead. The crate opens no files, reads no clock and draws no random numbers:
//! the caller brings texts and gets values.
#![forbid(unsafe_code)]

mod ad_hoc;
mod builtin;
mod cells;
mod check;
mod error;
mod model;
mod overrides;
mod queue;
mod read;
mod suggest;
mod trace;

pub use ad_hoc::AdHoc;
pub use builtin::{builtin, find};
pub use cells::ExpandedFlow;
pub use error::{Position, Problem, Reason, ScenarioError};
pub use model::{Cell, FlowKind, FlowSpec, PathSpec, Profile, Published, QueueSpec, RunSpec, Scenario};
pub use overrides::Overrides;
pub use queue::QueueParseError;
pub use read::{FileSource, NoFiles, known_keys};
pub use trace::parse_trace;
