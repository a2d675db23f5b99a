//! One finding, and all of them.

use serde::{Deserialize, Serialize};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is lost by it now.
    Note,
    /// It costs something, seldom or little.
    Warning,
    /// It costs much, or often, or now.
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

/// What shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The numbers, in words.
    pub what: String,
    /// The time they are about: `now`, `since boot (5 h)`, `over 60 s`.
    pub when: String,
    /// Where they were read.
    pub from: String,
}

/// A sysctl that a fix sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The key, with dots.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// The command, for a shell; empty where no command on this host helps.
    pub command: String,
    /// What else to know or to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The sysctls that the command sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
}

/// Something that limits this host, or will.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name, the same in every version: `listen-overflows`.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// What it is, in one line.
    pub title: String,
    /// What shows it.
    pub evidence: Vec<Evidence>,
    /// What it costs, and what is gained without it.
    pub cost: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Where the knowledge comes from.
    pub source: String,
    /// Among findings of one severity: larger comes first.
    #[serde(skip)]
    pub(super) weight: u32,
}

/// All findings, most important first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Finding {
    pub(super) fn new(id: &str, severity: Severity, weight: u32, title: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            severity,
            title: title.into(),
            evidence: Vec::new(),
            cost: String::new(),
            fix: None,
            source: String::new(),
            weight,
        }
    }

    pub(super) fn shows(mut self, what: impl Into<String>, when: impl Into<String>, from: impl Into<String>) -> Self {
        self.evidence.push(Evidence { what: what.into(), when: when.into(), from: from.into() });
        self
    }

    pub(super) fn costs(mut self, text: impl Into<String>) -> Self {
        self.cost = text.into();
        self
    }

    pub(super) fn fix(mut self, command: impl Into<String>, note: impl Into<String>) -> Self {
        self.fix = Some(Fix { command: command.into(), note: note.into(), settings: Vec::new() });
        self
    }

    /// A fix by sysctls, one after the other.
    pub(super) fn set(mut self, settings: &[(&str, String)], note: impl Into<String>) -> Self {
        let quoted = |value: &str| if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() };
        let words: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
        self.fix = Some(Fix {
            command: format!("sysctl -w {}", words.join(" ")),
            note: note.into(),
            settings: settings
                .iter()
                .map(|(key, value)| Setting { key: (*key).to_owned(), value: value.clone() })
                .collect(),
        });
        self
    }

    pub(super) fn source(mut self, text: &str) -> Self {
        self.source = text.to_owned();
        self
    }
}
