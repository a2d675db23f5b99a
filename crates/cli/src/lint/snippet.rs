//! One finding as miette draws it.

use std::fmt;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents,
};
use tuning::files::{Document, Span};
use tuning::lint::{Finding, Severity};

use super::render::{readable, sentence};
use super::sources::Sources;
use crate::output;

/// A finding with the text it points at.
struct Shown {
    finding: Finding,
    source: Excerpt,
    labels: Vec<LabeledSpan>,
    help: Option<String>,
}

/// Draws findings.
pub struct Drawer {
    handler: GraphicalReportHandler,
    /// Texts without what would disturb a terminal, one per document.
    texts: Vec<Option<String>>,
}

impl Drawer {
    /// For a terminal of `width` columns.
    pub fn new(width: usize, colour: bool, documents: usize) -> Self {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width.clamp(40, 120))
            .with_links(false)
            .with_context_lines(1)
            .without_syntax_highlighting()
            .tab_width(4);
        Self { handler, texts: vec![None; documents] }
    }

    /// Draws one.
    pub fn draw(&mut self, sources: &Sources, finding: &Finding) -> String {
        let document = &sources.documents[finding.document];
        let text = self.texts[finding.document].get_or_insert_with(|| harmless(document.source.text())).clone();
        // Only lines that are shown are handed over: scanning a long file for each finding takes long.
        let excerpt = excerpt(document, &text, finding);
        let (start, length) = excerpt.place(one_line(document, finding.span));
        let own = finding.fix.as_ref().map(|fix| readable(&fix.title));
        let mut labels = vec![LabeledSpan::new_primary_with_span(own, (start, length))];
        let mut elsewhere = Vec::new();
        for related in &finding.related {
            if related.document == finding.document && related.span != finding.span && excerpt.holds(related.span) {
                let place = excerpt.place(one_line(document, related.span));
                labels.push(LabeledSpan::new_with_span(Some(related.what.clone()), place));
            } else if related.document != finding.document {
                let other = &sources.documents[related.document];
                elsewhere.push(format!("{}:{}: {}", other.name, other.position(related.span).line, related.what));
            }
        }
        let help = finding.help.iter().cloned().chain(elsewhere).collect::<Vec<_>>().join("\n");
        let shown = Shown {
            finding: finding.clone(),
            source: excerpt,
            labels,
            help: (!help.is_empty()).then(|| readable(&help)),
        };
        let mut out = String::new();
        // Writing into a string does not fail.
        let drawn = self.handler.render_report(&mut out, &shown);
        debug_assert!(drawn.is_ok());
        out
    }
}

/// More of a value than this is not underlined.
const LONGEST_MARK: usize = 160;
/// Of longer lines, as programs write them, only what is around the place is shown.
const LONGEST_LINE: usize = 400;
/// So many bytes around it.
const AROUND: usize = 40;

/// Some lines of a document. Whole lines are shown, and nothing around them.
struct Excerpt {
    name: String,
    text: String,
    /// Where it starts in the document, and in which line (from 0).
    offset: usize,
    first_line: usize,
}

impl Excerpt {
    /// A part of the document as a part of this, never empty.
    fn place(&self, span: Span) -> (usize, usize) {
        let start = floor(&self.text, span.start.saturating_sub(self.offset));
        let end = ceil(&self.text, start + span.len().clamp(1, LONGEST_MARK));
        (start, end - start)
    }

    fn holds(&self, span: Span) -> bool {
        span.start >= self.offset && span.end <= self.offset + self.text.len()
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        _after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (from, to) = (floor(&self.text, span.offset()), ceil(&self.text, span.offset() + span.len()));
        let start = self.text[..from].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[to..].find('\n').map_or(self.text.len(), |newline| to + newline);
        let line = self.first_line + self.text[..start].matches('\n').count();
        // Without context the place itself is asked for, for the head.
        let column = if before == 0 { self.text[start..from].chars().count() } else { 0 };
        let lines = self.text[start..end].matches('\n').count() + 1;
        let (start, end) = match lines {
            1 if end - start > LONGEST_LINE => {
                (floor(&self.text, from.saturating_sub(AROUND).max(start)), ceil(&self.text, (to + AROUND).min(end)))
            }
            _ => (start, end),
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            &self.text.as_bytes()[start..end],
            (start, end - start).into(),
            line,
            column,
            lines,
        )))
    }
}

/// The nearest boundary of a character at or before `index`: a place may lie inside one where bytes were no text.
fn floor(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The nearest at or behind it.
fn ceil(text: &str, index: usize) -> usize {
    (index..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// The lines from the first to the last place of a finding.
fn excerpt(document: &Document, text: &str, finding: &Finding) -> Excerpt {
    /// Farther apart, only the finding itself is shown.
    const MOST_LINES: usize = 400;
    let line = |span: Span| document.position(span).line;
    let own = line(finding.span);
    let related = finding.related.iter().filter(|r| r.document == finding.document).map(|r| line(r.span));
    let (mut first, mut last) = (own, own);
    for other in related.filter(|other| other.abs_diff(own) < MOST_LINES) {
        first = first.min(other);
        last = last.max(other);
    }
    let span = Span::new(document.source.line(first).start, document.source.line(last).end);
    Excerpt {
        name: output::plain(&document.name),
        text: text.get(span.start..span.end).unwrap_or("").to_owned(),
        offset: span.start,
        first_line: first - 1,
    }
}

/// A span of several lines, cut to its first.
fn one_line(document: &Document, span: Span) -> Span {
    let line = document.source.line(document.position(span).line);
    Span::new(span.start, span.end.min(line.end).max(span.start))
}

/// Text for a terminal whose bytes are where they were: what could disturb it becomes `?`.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_invisible = matches!(c, '\u{ad}' | '\u{a0}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if (c.is_control() && !matches!(c, '\n' | '\t')) || is_invisible {
            let replacement = if c == '\r' { " " } else { "?" };
            out.extend(std::iter::repeat_n(replacement, c.len_utf8()));
        } else {
            out.push(c);
        }
    }
    out
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.finding.rule.id)
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&readable(&sentence(&self.finding)))
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(format!("{} {}", self.finding.rule.id, self.finding.rule.name)))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.finding.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Note => miette::Severity::Advice,
        })
    }

    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.help.as_ref().map(|help| Box::new(help.as_str()) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}
