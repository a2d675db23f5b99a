//! The report for machines.
//!
//! Written as it is made: a hundred thousand findings as a tree of values take more time and memory than to find them.

use serde::Serialize;
use serde_json::{Map, Value};
use tuning::files::Document;
use tuning::lint::{Finding, Report, Severity, Target};

use super::sources::Sources;
use crate::document;
use crate::exit::Failure;
use crate::output::{self, Each};

/// Prints `linerate.lint/1`.
pub fn print(sources: &Sources, target: &Target, report: &Report) -> Result<(), Failure> {
    let documents = &sources.documents;
    output::print_json(&Whole {
        head: document::head("lint"),
        target: About {
            distribution: target.distribution.as_ref().map(ToString::to_string),
            kernel: target.kernel.to_string(),
            container: target.is_container,
            memory_bytes: target.memory.map(units::Bytes::as_u64),
        },
        files: documents
            .iter()
            .map(|d| File { file: &d.name, format: d.format.name(), settings: d.settings.len() })
            .collect(),
        unread: sources.unread.iter().map(|u| Unread { file: &u.name, reason: &u.why }).collect(),
        findings: Each(report.findings.iter(), |finding| Line::of(documents, finding)),
        summary: Summary {
            errors: report.count(Severity::Error),
            warnings: report.count(Severity::Warning),
            notes: report.count(Severity::Note),
            suppressed: report.suppressed,
        },
    })
}

#[derive(Serialize)]
struct Whole<'a, F: Serialize> {
    #[serde(flatten)]
    head: Map<String, Value>,
    target: About,
    files: Vec<File<'a>>,
    unread: Vec<Unread<'a>>,
    findings: F,
    summary: Summary,
}

#[derive(Serialize)]
struct About {
    distribution: Option<String>,
    kernel: String,
    container: bool,
    memory_bytes: Option<u64>,
}

#[derive(Serialize)]
struct File<'a> {
    file: &'a str,
    format: &'a str,
    settings: usize,
}

#[derive(Serialize)]
struct Unread<'a> {
    file: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct Summary {
    errors: usize,
    warnings: usize,
    notes: usize,
    suppressed: usize,
}

#[derive(Serialize)]
struct Line<'a> {
    rule: &'a str,
    name: &'a str,
    severity: &'a str,
    file: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    key: Option<&'a str>,
    message: &'a str,
    help: Option<&'a str>,
    fix: Option<Fix<'a>>,
    related: Vec<Related<'a>>,
}

#[derive(Serialize)]
struct Fix<'a> {
    title: &'a str,
    edits: Vec<Edit<'a>>,
}

#[derive(Serialize)]
struct Edit<'a> {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    text: &'a str,
}

#[derive(Serialize)]
struct Related<'a> {
    file: &'a str,
    line: usize,
    what: &'a str,
}

impl<'a> Line<'a> {
    fn of(documents: &'a [Document], finding: &'a Finding) -> Self {
        let document = &documents[finding.document];
        let (start, end) = (document.position(finding.span), document.source.position(finding.span.end));
        let edit = |edit: &'a tuning::lint::Edit| {
            let (start, end) = (document.position(edit.span), document.source.position(edit.span.end));
            Edit {
                line: start.line,
                column: start.column,
                end_line: end.line,
                end_column: end.column,
                text: &edit.text,
            }
        };
        Self {
            rule: finding.rule.id,
            name: finding.rule.name,
            severity: finding.severity.name(),
            file: &document.name,
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            key: finding.key.as_deref(),
            message: &finding.message,
            help: finding.help.as_deref(),
            fix: finding.fix.as_ref().map(|fix| Fix { title: &fix.title, edits: fix.edits.iter().map(edit).collect() }),
            related: finding
                .related
                .iter()
                .map(|related| {
                    let other = &documents[related.document];
                    Related { file: &other.name, line: other.position(related.span).line, what: &related.what }
                })
                .collect(),
        }
    }
}
