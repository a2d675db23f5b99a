//! What is wrong with a scenario, and where.

use std::fmt;

/// One or more problems of a scenario. Displayed as one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    problems: Vec<Problem>,
}

/// More than this many problems are not worth reading; the first ones usually cause the rest.
const MOST_SHOWN: usize = 20;

impl ScenarioError {
    /// From at least one problem, in the order of the file.
    pub(crate) fn new(problems: Vec<Problem>) -> Self {
        debug_assert!(!problems.is_empty());
        Self { problems }
    }

    /// From one problem without a place in a file.
    pub(crate) fn one(origin: &str, reason: Reason) -> Self {
        Self::new(vec![Problem { origin: origin.to_owned(), position: None, reason }])
    }

    /// Every problem found; at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().take(MOST_SHOWN).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        match self.problems.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            1 => f.write_str("\nand one more problem"),
            more => write!(f, "\nand {more} more problems"),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// One thing that is wrong. Displayed as `scenarios/x.toml:7:1: unknown key "bufer" in [path]; did you mean "queue"?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, or the scenario's name where there is no file.
    pub origin: String,
    /// Where in the file; `None`: in all of it.
    pub position: Option<Position>,
    /// What is wrong.
    pub reason: Reason,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)?;
        if let Some(Position { line, column }) = self.position {
            write!(f, ":{line}")?;
            if let Some(column) = column {
                write!(f, ":{column}")?;
            }
        }
        write!(f, ": {}", self.reason)
    }
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// In characters, from 1; `None`: the whole line.
    pub column: Option<usize>,
}

impl Position {
    /// The position of the byte at `offset` of `text`.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        // Bytes that continue a character are not counted, so the offset need not be a character's first byte.
        let column = 1 + before[start..].iter().filter(|b| **b & 0xc0 != 0x80).count();
        Self { line, column: Some(column) }
    }
}

/// What kind of problem it is. The text says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that nothing reads.
    #[error("unknown key {key} {section}; {hint}")]
    UnknownKey {
        /// The key, quoted.
        key: String,
        /// The table it stands in: `in [path]`.
        section: String,
        /// A known key that is near, or all of them.
        hint: String,
    },
    /// A key that is needed.
    #[error("missing key \"{key}\" {section}")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// The table it belongs to: `in [path]`.
        section: String,
    },
    /// A value of another type than the key takes.
    #[error("{key} is {found}; write {expected}")]
    WrongType {
        /// The key.
        key: String,
        /// What stands there, with its article.
        found: &'static str,
        /// What to write.
        expected: String,
    },
    /// A text that is not the quantity it should be.
    #[error("{key} = {text}: {why}")]
    Quantity {
        /// The key.
        key: String,
        /// The value, a text in quotes.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A name that is none of those to choose from.
    #[error("{text} is not {what}; {hint}")]
    UnknownName {
        /// The name, quoted.
        text: String,
        /// What it should name, with its article.
        what: &'static str,
        /// A name that is near, or all of them.
        hint: String,
    },
    /// Values that are well written but cannot be run.
    #[error("{0}")]
    Impossible(String),
    /// A trace file that is missing or broken.
    #[error("{0}")]
    Trace(String),
}

/// `text` in quotes on one line, shortened where it is long: it may come from anywhere.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out = String::from("\"");
    for (index, c) in text.chars().enumerate() {
        if index == LONGEST {
            out.push('…');
            break;
        }
        if c.is_control() { out.extend(c.escape_debug()) } else { out.push(c) }
    }
    out.push('"');
    out
}
