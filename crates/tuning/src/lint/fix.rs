//! From findings to a corrected text.

use crate::files::Document;

use super::finding::{Edit, Finding};

/// A document's text with the fixes of `findings` of that document put in, and how many were.
///
/// Fixes that overlap one that comes earlier in `findings` are left for the next round.
pub fn apply(document: &Document, index: usize, findings: &[Finding]) -> (String, usize) {
    let mut edits: Vec<&Edit> = Vec::new();
    let mut count = 0;
    for fix in findings.iter().filter(|f| f.document == index).filter_map(|f| f.fix.as_ref()) {
        let touches = |edit: &Edit| {
            edits.iter().any(|other| {
                edit.span.start < other.span.end && other.span.start < edit.span.end || edit.span == other.span
            })
        };
        if !fix.edits.iter().any(touches) {
            edits.extend(&fix.edits);
            count += 1;
        }
    }
    edits.sort_by_key(|edit| edit.span);
    let text = document.source.text();
    let mut fixed = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        fixed += text.get(at..edit.span.start).unwrap_or("");
        fixed += &edit.text;
        at = edit.span.end;
    }
    fixed += text.get(at..).unwrap_or("");
    (fixed, count)
}
