//! Exit codes, the same for every command.

use std::fmt;
use std::process::ExitCode;

/// What the process says when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Clean or done.
    Done = 0,
    /// Found something: a difference, an invalid or partial run.
    Found = 1,
    /// The command line or a file given by the user is wrong.
    Usage = 2,
    /// Refused, because it would put something at risk.
    Refused = 3,
    /// Failed, and nothing is left behind.
    Failed = 4,
    /// Failed, and something is not as it was before.
    NotUndone = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error on its way to the user: one sentence or several lines, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: Exit,
    message: String,
}

impl Failure {
    /// Wrong input: exit code 2.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { code: Exit::Usage, message: message.to_string() }
    }

    /// Ended early, or found something, without anything being wrong: exit code 1.
    pub fn found(message: impl fmt::Display) -> Self {
        Self { code: Exit::Found, message: message.to_string() }
    }

    /// Not done, because it would put something at risk: exit code 3.
    pub fn refused(message: impl fmt::Display) -> Self {
        Self { code: Exit::Refused, message: message.to_string() }
    }

    /// Something broke half way and could not be put back: exit code 5.
    pub fn not_undone(message: impl fmt::Display) -> Self {
        Self { code: Exit::NotUndone, message: message.to_string() }
    }

    /// The system refused or something broke: exit code 4.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self { code: Exit::Failed, message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
