//! Verdicts on settings, before anyone applies them.
//!
//! | module | what |
//! | --- | --- |
//! | [`rule`] | what a rule is; `rules` has all of them, each with an example and a near miss |
//! | [`target`] | what the settings are meant for: distribution, kernel, memory, container, role |
//! | [`finding`] | one verdict with its place, and its fix |
//! | `checks` | the code behind the rules, one file per kind |
//! | `suppress` | `# linerate: allow RULE reason` |
//! | [`fix`] | from findings to a corrected text |
//!
//! [`lint`] is a function of its arguments: the same documents, target and surroundings give the same findings in the same order.
//! The order is the order in which to read them: by severity, then by what it costs to overlook one.

mod amount;
mod checks;
mod exercise;
pub mod finding;
pub mod fix;
mod item;
pub mod rule;
mod rules;
mod run;
mod suppress;
pub mod target;

use std::collections::BTreeSet;

use crate::catalogue::Catalogue;
use crate::files::Document;

#[doc(hidden)]
pub use exercise::exercise;
pub use finding::{Edit, Finding, Fix, Related};
pub use rule::{Kind, Rule, Severity};
pub use rules::{all, find};
pub use target::{Target, TargetError};

/// What is known about the place where the documents lie.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Modules that are loaded before sysctls are applied; `None`: not known.
    pub modules: Option<BTreeSet<String>>,
    /// What is set at boot behind the settings files, by others than their appliers.
    pub later: Vec<Later>,
}

/// A key whose last word at boot is not one of the documents that are read in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    /// The key, as [`crate::Key::path`] has it.
    pub key: String,
    /// The value that it ends up with.
    pub value: String,
    /// Who sets it: `tuned`.
    pub by: &'static str,
    /// The file in which that stands, named as the documents are.
    pub file: String,
    /// Its line there.
    pub line: usize,
}

/// What [`lint`] found.
#[derive(Debug, Clone)]
pub struct Report {
    /// In the order in which to read them.
    pub findings: Vec<Finding>,
    /// How many were left out because a comment allows them.
    pub suppressed: usize,
}

impl Report {
    /// How many findings there are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Judges documents. Those in one directory, or in the settings directories of one system, are judged together.
pub fn lint(documents: &[Document], target: &Target, surroundings: &Surroundings, catalogue: &Catalogue) -> Report {
    let mut run = run::Run::new(documents, target, surroundings, catalogue);
    checks::all(&mut run);
    let (findings, suppressed) = suppress::apply(documents, run.findings);
    let mut findings = findings;
    findings.sort_by(|a, b| {
        let key = |f: &Finding| {
            (std::cmp::Reverse(f.severity), std::cmp::Reverse(f.rule.weight), f.document, f.span, f.rule.id)
        };
        key(a).cmp(&key(b))
    });
    Report { findings, suppressed }
}
