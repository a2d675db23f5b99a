//! The report for machines.

use serde_json::{Value, json};
use tuning::files::Document;
use tuning::lint::{Finding, Report, Severity, Target};

use super::sources::Sources;
use crate::document;
use crate::exit::Failure;

/// Prints `linerate.lint/1`.
pub fn print(sources: &Sources, target: &Target, report: &Report) -> Result<(), Failure> {
    let mut head = document::head("lint");
    head.insert(
        "target".into(),
        json!({
            "distribution": target.distribution.as_ref().map(ToString::to_string),
            "kernel": target.kernel,
            "container": target.is_container,
            "memory_bytes": target.memory.map(units::Bytes::as_u64),
        }),
    );
    let files = sources
        .documents
        .iter()
        .map(|d| json!({"file": d.name, "format": d.format.name(), "settings": d.settings.len()}));
    head.insert("files".into(), files.collect());
    let unread = sources.unread.iter().map(|u| json!({"file": u.name, "reason": u.why}));
    head.insert("unread".into(), unread.collect());
    head.insert("findings".into(), report.findings.iter().map(|f| finding(sources, f)).collect());
    head.insert(
        "summary".into(),
        json!({
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "notes": report.count(Severity::Note),
            "suppressed": report.suppressed,
        }),
    );
    document::print(head)
}

fn finding(sources: &Sources, finding: &Finding) -> Value {
    let document = &sources.documents[finding.document];
    let start = document.position(finding.span);
    let end = document.source.position(finding.span.end);
    json!({
        "rule": finding.rule.id,
        "name": finding.rule.name,
        "severity": finding.severity.name(),
        "file": document.name,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "key": finding.key,
        "message": finding.message,
        "help": finding.help,
        "fix": finding.fix.as_ref().map(|fix| json!({
            "title": fix.title,
            "edits": fix.edits.iter().map(|edit| json!({
                "line": document.position(edit.span).line,
                "column": document.position(edit.span).column,
                "end_line": document.source.position(edit.span.end).line,
                "end_column": document.source.position(edit.span.end).column,
                "text": edit.text,
            })).collect::<Vec<_>>(),
        })),
        "related": finding.related.iter().map(|related| {
            let other: &Document = &sources.documents[related.document];
            json!({"file": other.name, "line": other.position(related.span).line, "what": related.what})
        }).collect::<Vec<_>>(),
    })
}
