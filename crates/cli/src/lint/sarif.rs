//! SARIF 2.1.0 (OASIS, 2020), as code scanning services read it.

use serde::Serialize;
use serde_json::{Value, json};
use tuning::files::{Document, Span};
use tuning::lint::{self, Finding, Report, Severity};

use super::sources::Sources;
use crate::exit::Failure;
use crate::output::{self, Each};

/// Prints the whole log, results as they are made.
pub fn print(sources: &Sources, report: &Report) -> Result<(), Failure> {
    let rules: Vec<_> = lint::all().collect();
    let index = |id: &str| rules.iter().position(|rule| rule.id == id);
    let notifications: Vec<Value> = sources
        .unread
        .iter()
        .map(|unread| json!({"level": "error", "message": {"text": unread.to_string()}, "locations": [{"physicalLocation": {"artifactLocation": artifact(&unread.name)}}]}))
        .collect();
    let run = Run {
        tool: json!({"driver": {
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
        }}),
        column_kind: "unicodeCodePoints",
        invocations: json!([{"executionSuccessful": sources.unread.is_empty(), "toolExecutionNotifications": notifications}]),
        results: Each(report.findings.iter(), |finding| result(sources, finding, index(finding.rule.id))),
    };
    let schema = "https://json.schemastore.org/sarif-2.1.0.json";
    output::print_json(&Log { schema, version: "2.1.0", runs: [run] })
}

#[derive(Serialize)]
struct Log<R> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [R; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<R> {
    tool: Value,
    column_kind: &'static str,
    invocations: Value,
    results: R,
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
