//! One verdict.

use crate::files::Span;

use super::rule::{Rule, Severity};

/// A verdict on a part of a document.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// How bad it is here.
    pub severity: Severity,
    /// The document's index.
    pub document: usize,
    /// The part that is meant.
    pub span: Span,
    /// The key, where it is about one.
    pub key: Option<String>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do, or what is behind it.
    pub help: Option<String>,
    /// Other places that matter.
    pub related: Vec<Related>,
    /// How to mend it by itself.
    pub fix: Option<Fix>,
}

/// Another place.
#[derive(Debug, Clone)]
pub struct Related {
    /// The document's index.
    pub document: usize,
    /// The part.
    pub span: Span,
    /// What is there.
    pub what: String,
}

/// A change to the document that mends a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What it does, in a few words.
    pub title: String,
    /// The changes, not overlapping.
    pub edits: Vec<Edit>,
}

/// A part of the text and what to put in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The part.
    pub span: Span,
    /// The text in its place.
    pub text: String,
}

impl Finding {
    /// With something to do.
    pub(super) fn help(&mut self, text: impl Into<String>) -> &mut Self {
        self.help = Some(text.into());
        self
    }

    /// With another severity than the rule's.
    pub(super) fn severity(&mut self, severity: Severity) -> &mut Self {
        self.severity = severity;
        self
    }

    /// With another place.
    pub(super) fn related(&mut self, document: usize, span: Span, what: impl Into<String>) -> &mut Self {
        self.related.push(Related { document, span, what: what.into() });
        self
    }

    /// With a change that mends it.
    pub(super) fn replace(&mut self, title: impl Into<String>, span: Span, text: impl Into<String>) -> &mut Self {
        self.fix = Some(Fix { title: title.into(), edits: vec![Edit { span, text: text.into() }] });
        self
    }
}
