//! Scenario files: one experiment described in TOML, the same for the lab and the simulator.
#![forbid(unsafe_code)]

mod model;

pub use model::{Cell, FlowKind, FlowSpec, PathSpec, Profile, Published, QueueSpec, RunSpec, Scenario};
