//! SARIF 2.1.0 (OASIS, 2020), as code scanning services read it.

use serde_json::{Value, json};
use tuning::files::{Document, Span};
use tuning::lint::{self, Finding, Report, Severity};

use super::sources::Sources;

/// The whole log.
pub fn document(sources: &Sources, report: &Report) -> String {
    let rules: Vec<_> = lint::all().collect();
    let index = |id: &str| rules.iter().position(|rule| rule.id == id);
    let results: Vec<Value> = report.findings.iter().map(|f| result(sources, f, index(f.rule.id))).collect();
    let notifications: Vec<Value> = sources
        .unread
        .iter()
        .map(|unread| json!({"level": "error", "message": {"text": unread.to_string()}, "locations": [{"physicalLocation": {"artifactLocation": artifact(&unread.name)}}]}))
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "linerate lint",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.iter().map(|rule| json!({
                    "id": rule.id,
                    "name": rule.name,
                    "shortDescription": {"text": rule.summary},
                    "fullDescription": {"text": rule.why},
                    "defaultConfiguration": {"level": level(rule.severity)},
                    "properties": {"tags": [rule.kind.title()]},
                })).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": sources.unread.is_empty(), "toolExecutionNotifications": notifications}],
            "results": results,
        }],
    });
    // Plain values always become text.
    serde_json::to_string_pretty(&log).unwrap_or_default() + "\n"
}

fn level(severity: Severity) -> &'static str {
    severity.name()
}

fn artifact(name: &str) -> Value {
    // A URI: everything else than the usual characters of a path is escaped.
    let mut uri = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri += &format!("%{byte:02X}");
        }
    }
    let uri = if uri.starts_with('/') { format!("file://{uri}") } else { uri };
    json!({"uri": uri})
}

fn region(document: &Document, span: Span) -> Value {
    let (start, end) = (document.position(span), document.source.position(span.end));
    json!({"startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column})
}

fn location(document: &Document, span: Span) -> Value {
    json!({"physicalLocation": {"artifactLocation": artifact(&document.name), "region": region(document, span)}})
}

fn result(sources: &Sources, finding: &Finding, index: Option<usize>) -> Value {
    let document = &sources.documents[finding.document];
    let help = finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    let mut result = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": index,
        "level": level(finding.severity),
        "message": {"text": format!("{}{help}", super::render::sentence(finding))},
        "locations": [location(document, finding.span)],
    });
    if !finding.related.is_empty() {
        let related = finding.related.iter().map(|r| {
            let mut place = location(&sources.documents[r.document], r.span);
            place["message"] = json!({"text": r.what});
            place
        });
        result["relatedLocations"] = related.collect();
    }
    if let Some(fix) = &finding.fix {
        let replacements: Vec<Value> = fix
            .edits
            .iter()
            .map(|edit| json!({"deletedRegion": region(document, edit.span), "insertedContent": {"text": edit.text}}))
            .collect();
        result["fixes"] = json!([{
            "description": {"text": fix.title},
            "artifactChanges": [{"artifactLocation": artifact(&document.name), "replacements": replacements}],
        }]);
    }
    result
}
