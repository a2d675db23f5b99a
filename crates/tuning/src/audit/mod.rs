//! From what a host shows to what limits it: findings with their evidence, their cost and the fix.
//!
//! [`audit`] is a pure function: [`Facts`] in, a [`Report`] out. It says nothing without evidence: a setting that differs from a popular
//! list is no finding, a counter that shows what the setting cost is one.
//!
//! | module | what |
//! | --- | --- |
//! | [`tally`] | all connections at one look, summed |
//! | [`observe`] | many looks at all connections, summed over an interval |
//! | [`persistence`] | which settings survive a reboot, and which file wins |
//! | [`servers`] | the line of nginx or HAProxy that decides a backlog |

mod finding;
mod histogram;
mod look;
pub mod observe;
pub mod persistence;
mod rules;
pub mod servers;
pub mod tally;

use facts::{HostFacts, Observed};
use serde::{Deserialize, Serialize};

pub use finding::{Evidence, Finding, Fix, Report, Setting, Severity};
pub use observe::Observer;
pub use persistence::Persistent;
pub use tally::Tally;

use crate::plan;

/// Everything an audit rests on: what a plan needs, what the host shows besides, and what was observed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// What a plan needs too. In JSON these stand beside the others, so that `plan --from` reads an audit's document.
    #[serde(flatten)]
    pub plan: plan::Facts,
    /// What the host shows.
    #[serde(flatten)]
    pub host: HostFacts,
    /// Each key that a file sets or that differs from the kernel's default: whether it survives a reboot.
    #[serde(default)]
    pub persistence: Vec<Persistent>,
    /// What was seen over an interval, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
}

/// Judges a host. The findings that matter most come first.
pub fn audit(facts: &Facts) -> Report {
    let mut look = look::Look::new(facts);
    rules::all(&mut look);
    look.finish()
}
