//! What a rule is.

use std::fmt;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing breaks.
    Note,
    /// Costs something, or does not do what it says.
    Warning,
    /// Not applied at all, or does harm.
    Error,
}

impl Severity {
    /// As machines read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The text can't be read as it was meant.
    Syntax,
    /// The key isn't there.
    Name,
    /// The kernel refuses the value, or reads it otherwise than meant.
    Value,
    /// Nothing changes.
    NoEffect,
    /// Two settings don't go together.
    Conflict,
    /// It does harm.
    Danger,
    /// It is copied from list to list, and there is something better.
    Habit,
    /// It loses to others, or is gone after a reboot.
    Order,
    /// About suppressions themselves.
    Suppression,
}

impl Kind {
    /// As the documentation names it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Syntax => "Syntax",
            Self::Name => "Names",
            Self::Value => "Values",
            Self::NoEffect => "No effect",
            Self::Conflict => "Contradictions",
            Self::Danger => "Dangerous",
            Self::Habit => "Copied habits",
            Self::Order => "Order and persistence",
            Self::Suppression => "Suppressions",
        }
    }
}

/// Text that breaks a rule, and text close to it that doesn't. A test runs both.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The file's name.
    pub file: &'static str,
    /// The target, as [`super::Target::parse`] reads it.
    pub target: &'static str,
    /// Breaks the rule.
    pub bad: &'static str,
    /// Looks much the same and is right.
    pub good: &'static str,
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// `LR012`.
    pub id: &'static str,
    /// `overridden`.
    pub name: &'static str,
    /// What it is about.
    pub kind: Kind,
    /// How bad it usually is; single findings may differ.
    pub severity: Severity,
    /// What it costs to overlook it, 0 to 100: the order among findings of one severity.
    pub weight: u8,
    /// One line.
    pub summary: &'static str,
    /// Why, and what to do.
    pub why: &'static str,
    /// An example and a near miss.
    pub example: Example,
}

/// An example in a settings file, for a kernel that has everything.
pub(super) const fn conf(bad: &'static str, good: &'static str) -> Example {
    Example { file: "sysctl.d/60-net.conf", target: "kernel=6.12", bad, good }
}

/// An example in a file of another name or for another target.
pub(super) const fn example(
    file: &'static str,
    target: &'static str,
    bad: &'static str,
    good: &'static str,
) -> Example {
    Example { file, target, bad, good }
}
