//! `# linerate: allow RULE reason`: for the next setting, or for the one it stands behind. `allow-file`: for all of the file.

use crate::files::{Document, Span};

use super::finding::Finding;
use super::rule::{Rule, Severity};
use super::rules;
use super::rules::suppression::{NO_REASON, UNKNOWN_RULE, UNUSED};

/// A suppression that was read.
struct Allowed {
    document: usize,
    comment: Span,
    rule: &'static Rule,
    /// `None`: all of the file.
    lines: Option<(usize, usize)>,
    is_used: bool,
}

/// Takes out what comments allow; adds what is wrong with the comments themselves. Also says how many were taken out.
pub(super) fn apply(documents: &[Document], findings: Vec<Finding>) -> (Vec<Finding>, usize) {
    let mut own = Vec::new();
    let mut allowed = Vec::new();
    for (index, document) in documents.iter().enumerate() {
        read(index, document, &mut allowed, &mut own);
    }
    if allowed.is_empty() && own.is_empty() {
        return (findings, 0);
    }
    let before = findings.len();
    let mut kept: Vec<Finding> = findings
        .into_iter()
        .filter(|finding| {
            let line = documents[finding.document].position(finding.span).line;
            let fits = |a: &Allowed| {
                a.document == finding.document
                    && a.rule.id == finding.rule.id
                    && a.lines.is_none_or(|(first, last)| (first..=last).contains(&line))
            };
            match allowed.iter_mut().find(|a| fits(a)) {
                Some(allowed) => {
                    allowed.is_used = true;
                    false
                }
                None => true,
            }
        })
        .collect();
    let suppressed = before - kept.len();
    for unused in allowed.iter().filter(|a| !a.is_used) {
        own.push(finding(&UNUSED, unused.document, unused.comment, format!("nothing here breaks {}", unused.rule.id)));
    }
    kept.extend(own);
    (kept, suppressed)
}

fn read(index: usize, document: &Document, allowed: &mut Vec<Allowed>, own: &mut Vec<Finding>) {
    let text = document.source.text();
    for comment in &document.comments {
        let words = comment.span.of(text).trim_start_matches(['#', ';', ' ', '\t']);
        let Some(rest) = words.strip_prefix("linerate:").map(str::trim_start) else { continue };
        let (verb, rest) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let (name, reason) = rest.trim_start().split_once([' ', '\t']).unwrap_or((rest.trim(), ""));
        if !matches!(verb, "allow" | "allow-file") {
            let message = "write `# linerate: allow RULE reason` or `# linerate: allow-file RULE reason`";
            own.push(finding(&UNKNOWN_RULE, index, comment.span, message.to_owned()));
            continue;
        }
        let Some(rule) = rules::find(name) else {
            let message = format!("there is no rule `{name}`");
            own.push(finding(&UNKNOWN_RULE, index, comment.span, message));
            continue;
        };
        if reason.trim().is_empty() {
            let message =
                format!("say why {} may be broken here, behind its name; without a reason it is not allowed", rule.id);
            own.push(finding(&NO_REASON, index, comment.span, message));
            continue;
        }
        let line = document.position(comment.span).line;
        let lines = if verb == "allow-file" {
            None
        } else if comment.is_alone {
            // Up to the next setting: several comments may stand above it.
            let next = document.settings.iter().map(|s| document.position(s.span).line).find(|setting| *setting > line);
            Some((line, next.unwrap_or(line + 1)))
        } else {
            Some((line, line))
        };
        allowed.push(Allowed { document: index, comment: comment.span, rule, lines, is_used: false });
    }
}

fn finding(rule: &'static Rule, document: usize, span: Span, message: String) -> Finding {
    let severity: Severity = rule.severity;
    Finding { rule, severity, document, span, key: None, message, help: None, related: Vec::new(), fix: None }
}
