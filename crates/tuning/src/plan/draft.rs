//! A plan in the making, and the one place that enforces that no size is lowered.

use units::Bytes;

use super::{Change, ChangeKind, Facts, Host, Kept, PLAN_SCHEMA, Place, Plan, Target};
use crate::Catalogue;
use crate::catalogue::Scope;
use crate::kernel::KernelVersion;

/// The reasons of a change.
pub(super) struct Reasons<'a> {
    /// The arithmetic.
    pub why: String,
    /// What should be better.
    pub effect: &'a str,
    /// What it can cost; empty: what the catalogue says.
    pub risk: String,
}

pub(super) struct Draft<'f> {
    pub facts: &'f Facts,
    pub target: &'f Target,
    pub kernel: KernelVersion,
    /// What all TCP sockets together may hold once the plan is followed.
    pub tcp_memory: Option<Bytes>,
    changes: Vec<Change>,
    kept: Vec<Kept>,
    notes: Vec<String>,
}

impl<'f> Draft<'f> {
    pub fn new(facts: &'f Facts, target: &'f Target, kernel: KernelVersion) -> Self {
        Self { facts, target, kernel, tcp_memory: None, changes: Vec::new(), kept: Vec::new(), notes: Vec::new() }
    }

    /// Sets the fields of a numeric key to at least `wanted`. Fields that are larger stay; where all do, the key is kept as it is.
    pub fn raise(&mut self, key: &str, wanted: &[u64], reasons: Reasons<'_>, enough: &str) {
        let Some(there) = self.facts.numbers(key) else { return };
        if there.len() != wanted.len() {
            return;
        }
        let to: Vec<u64> = there.iter().zip(wanted).map(|(there, wanted)| *there.max(wanted)).collect();
        if to == there {
            self.keep(key, enough);
        } else {
            let text: Vec<String> = to.iter().map(u64::to_string).collect();
            self.set(key, &text.join(" "), reasons);
        }
    }

    /// Sets a key that is no size. Where it has the value, it is kept.
    pub fn set(&mut self, key: &str, to: &str, reasons: Reasons<'_>) {
        let Some(from) = self.facts.sysctl(key) else { return };
        if from == to {
            return;
        }
        let found = Catalogue::builtin().lookup(key);
        let (place, risk, source) = match &found {
            Some(found) => (
                match found.knob.scope_in(self.kernel) {
                    Scope::Namespace => Place::Namespace,
                    _ => Place::Host,
                },
                found.knob.risk.clone().unwrap_or_default(),
                found.knob.source.clone(),
            ),
            None => (Place::Host, String::new(), String::new()),
        };
        self.changes.push(Change {
            kind: ChangeKind::Sysctl,
            key: key.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            place,
            why: reasons.why,
            effect: reasons.effect.to_owned(),
            risk: if reasons.risk.is_empty() { risk } else { reasons.risk },
            source,
        });
    }

    /// Adds a change of another kind.
    pub fn push(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Says that a key was looked at and is left alone.
    pub fn keep(&mut self, key: &str, why: impl Into<String>) {
        if let Some(value) = self.facts.sysctl(key) {
            self.kept.push(Kept { key: key.to_owned(), value: value.to_owned(), why: why.into() });
        }
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// What a key will be once the plan so far is followed.
    pub fn planned(&self, key: &str) -> Option<&str> {
        let change = self.changes.iter().rev().find(|change| change.key == key);
        change.map(|change| change.to.as_str()).or_else(|| self.facts.sysctl(key))
    }

    pub fn finish(mut self, host: Host) -> Plan {
        let unknown = super::not_known(self.facts, self.target.role);
        if !unknown.is_empty() {
            self.notes.insert(0, format!("not known here, and so not planned for: {}", unknown.join(", ")));
        }
        Plan {
            schema: PLAN_SCHEMA.to_owned(),
            host,
            target: *self.target,
            changes: self.changes,
            kept: self.kept,
            notes: self.notes,
        }
    }
}
