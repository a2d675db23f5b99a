//! What a report holds: plain values, with the unit in the name where JSON has no types.
//!
//! The field names are the keys of the JSON file (`docs/schema/lab-1.json` is made from these types). A figure that was
//! not measured is `None` and `null`, never a zero.

mod place;
mod run;
mod summary;

use serde::{Deserialize, Serialize};

pub use place::{Kernel, PathReport, ProfileReport, PublishedFigure, ScenarioReport, Setting};
pub use run::{
    DelayPercentiles, DropCounts, DropSeries, EmulatorReport, FlowReport, FlowSeries, FlowTraffic, Percentiles,
    RunReport, RunSeries, TimingError,
};
pub use summary::{DelayIntervals, DropIntervals, Interval, PercentileIntervals, Share, SummaryLine};

/// The value of `schema` in every file this version writes.
pub const LAB_SCHEMA: &str = "linerate.lab/1";

/// The value of `schema` in files of the simulator. The same keys as [`LAB_SCHEMA`].
pub const SIM_SCHEMA: &str = "linerate.sim/1";

/// Everything one `lab run` found out, and everything needed to repeat it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabReport {
    /// `linerate.lab/1`; `linerate.sim/1` from the simulator.
    #[cfg_attr(test, schemars(extend("enum" = [LAB_SCHEMA, SIM_SCHEMA])))]
    pub schema: String,
    /// Version of linerate.
    pub linerate_version: String,
    /// The machine and kernel that ran it.
    pub kernel: Kernel,
    /// The command as it was given, one word each.
    pub command_line: Vec<String>,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// Whether the results come from the simulator, and not from a kernel's TCP.
    #[serde(default)]
    pub simulated: bool,
    /// Whether it ended before every planned run was made.
    #[serde(default)]
    pub partial: bool,
    /// Why it ended early.
    #[serde(default)]
    pub partial_reason: Option<String>,
    /// What concerns the whole report: a missing feature, a fallback that was taken.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What was to be run, with the figures that others published.
    pub scenarios: Vec<ScenarioReport>,
    /// Every run made, in the order they were made, invalid ones included.
    pub results: Vec<RunReport>,
    /// One line per cell: scenario, profile, congestion control, loss, queue and RTT. Made from `results`.
    #[serde(default)]
    pub summary: Vec<SummaryLine>,
}

impl LabReport {
    /// A report without runs. `started_at` is RFC 3339: this crate reads no clock.
    pub fn new(linerate_version: &str, kernel: Kernel, command_line: Vec<String>, started_at: &str) -> Self {
        Self {
            schema: LAB_SCHEMA.to_owned(),
            linerate_version: linerate_version.to_owned(),
            kernel,
            command_line,
            started_at: started_at.to_owned(),
            simulated: false,
            partial: false,
            partial_reason: None,
            warnings: Vec::new(),
            scenarios: Vec::new(),
            results: Vec::new(),
            summary: Vec::new(),
        }
    }

    /// The same for results of the simulator.
    #[must_use]
    pub fn simulated(mut self) -> Self {
        SIM_SCHEMA.clone_into(&mut self.schema);
        self.simulated = true;
        self
    }

    /// How many runs the scenarios ask for in all.
    pub fn planned_runs(&self) -> u64 {
        self.scenarios.iter().map(ScenarioReport::planned_runs).sum()
    }

    /// The scenario of that name.
    pub fn scenario(&self, name: &str) -> Option<&ScenarioReport> {
        self.scenarios.iter().find(|scenario| scenario.name == name)
    }
}
