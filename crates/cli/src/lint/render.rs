//! The report for people: the lines that matter most, then each finding with its text, notes as one line each, a summary last.

use std::fmt::Write;

use tuning::lint::{Finding, Report, Severity};

use super::snippet::Drawer;
use super::sources::Sources;
use crate::{output, wrap};

/// More findings in full are a wall of text.
const MOST_IN_FULL: usize = 20;

/// Notes beyond this many are counted.
const MOST_NOTES: usize = 30;

/// The whole report. `all`: everything in full.
pub fn report(sources: &Sources, report: &Report, all: bool) -> String {
    let width = output::width();
    let colour = output::colour();
    let mut out = String::new();
    let names = Names::of(sources);
    let serious = report.findings.iter().filter(|f| f.severity > Severity::Note).count();
    let top = if report.findings.len() > 3 { top(&names, report, width) } else { String::new() };
    if !top.is_empty() {
        out += &top;
        out.push('\n');
    }
    let mut drawer = Drawer::new(width, colour, sources.documents.len());
    let in_full = if all { report.findings.len() } else { serious.min(MOST_IN_FULL) };
    for finding in &report.findings[..in_full] {
        out += &drawer.draw(sources, finding);
        out.push('\n');
    }
    if !all {
        if serious > in_full {
            let _ = writeln!(out, "… and {} more errors and warnings (--all)\n", serious - in_full);
        }
        out += &notes(&names, &report.findings[serious..], width);
    }
    // What has scrolled away is not read: on a terminal that is too short for all of it the lines that matter end it too.
    if !top.is_empty() && output::height().is_some_and(|height| out.lines().count() + 3 > height) {
        out += &top;
        out.push('\n');
    }
    out + &summary(sources, report)
}

/// A finding as a sentence that names the key.
pub fn sentence(finding: &Finding) -> String {
    match &finding.key {
        Some(key) if !finding.message.contains(key.as_str()) => format!("{key}: {}", finding.message),
        _ => finding.message.clone(),
    }
}

/// Text for people: without what disturbs a terminal, and with words that no human reads cut.
pub fn readable(text: &str) -> String {
    /// Keys, paths and lists of values are shorter.
    const LONGEST_WORD: usize = 120;
    const SHOWN: usize = 40;
    let cut = |word: &str| match word.char_indices().nth(LONGEST_WORD) {
        Some(_) => {
            let mut short: String = word.chars().take(SHOWN).collect();
            short.push('…');
            // A quote that was opened is closed.
            if word.starts_with('`') {
                short.push('`');
            }
            short
        }
        None => word.to_owned(),
    };
    output::plain(text).split(' ').map(cut).collect::<Vec<_>>().join(" ")
}

/// Documents as they are named here: without the folders that all of them have in common.
struct Names<'s> {
    sources: &'s Sources,
    common: usize,
}

impl<'s> Names<'s> {
    fn of(sources: &'s Sources) -> Self {
        let folder = |name: &str| name.rfind('/').map_or(0, |at| at + 1);
        let first = sources.documents.first().map_or("", |document| &document.name);
        let mut common = folder(first);
        for document in &sources.documents {
            while common > 0 && document.name.get(..common) != Some(&first[..common]) {
                common = folder(&first[..common - 1]);
            }
        }
        // A slash that all have in common tells that they are paths of the whole system.
        Self { sources, common: if common <= 1 { 0 } else { common } }
    }

    fn short(&self, index: usize) -> String {
        output::plain(&self.sources.documents[index].name[self.common..])
    }

    /// `line 3`, with the file where there are several.
    fn place(&self, finding: &Finding) -> String {
        let line = self.sources.documents[finding.document].position(finding.span).line;
        match self.sources.documents.len() {
            1 => format!("line {line}"),
            _ => format!("{}:{line}", self.short(finding.document)),
        }
    }
}

/// The three lines that matter most, one to a line of the file.
fn top(names: &Names<'_>, report: &Report, width: usize) -> String {
    let mut lines: Vec<(String, &Finding)> = Vec::new();
    for finding in &report.findings {
        let place = names.place(finding);
        if lines.iter().all(|(other, _)| *other != place) {
            lines.push((place, finding));
        }
        if lines.len() == 3 {
            break;
        }
    }
    let longest = lines.iter().map(|(place, _)| place.chars().count()).max().unwrap_or(0);
    let mut out = String::from(match lines.len() {
        1 => "The line that matters most:\n",
        _ => "The lines that matter most:\n",
    });
    for (place, finding) in lines {
        let head = format!("  {place:longest$}  {:7}  ", finding.severity.name());
        out += &wrap::hanging(&head, &readable(&sentence(finding)), width);
    }
    out
}

fn notes(names: &Names<'_>, notes: &[Finding], width: usize) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let sources = names.sources;
    let mut out = String::from("Notes:\n");
    // In the order of the files: they are read along.
    let mut shown: Vec<&Finding> = notes.iter().collect();
    shown.sort_by_key(|f| (f.document, f.span));
    let line = |f: &Finding| format!("line {}", sources.documents[f.document].position(f.span).line);
    let longest = shown.iter().take(MOST_NOTES).map(|f| line(f).len()).max().unwrap_or(0);
    let mut document = None;
    for finding in shown.iter().take(MOST_NOTES) {
        if sources.documents.len() > 1 && document != Some(finding.document) {
            let _ = writeln!(out, "  {}", names.short(finding.document));
            document = Some(finding.document);
        }
        let head = format!("  {:longest$}  {}  ", line(finding), finding.rule.id);
        let help = finding.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        out += &wrap::hanging(&head, &readable(&format!("{}{help}", sentence(finding))), width);
    }
    if notes.len() > MOST_NOTES {
        let _ = writeln!(out, "  … and {} more (--all)", notes.len() - MOST_NOTES);
    }
    out.push('\n');
    out
}

fn summary(sources: &Sources, report: &Report) -> String {
    let counted = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    if sources.documents.is_empty() {
        return String::from("Nothing was judged.\n");
    }
    let files = counted(sources.documents.len(), "file");
    let settings = super::settings(&sources.documents);
    let of = if sources.is_live { " of this host" } else { "" };
    let mut out = format!("{} in {files}{of}: ", counted(settings, "setting"));
    if report.findings.is_empty() {
        out += if settings == 0 { "nothing to judge" } else { "nothing to say against them" };
    } else {
        let parts = [Severity::Error, Severity::Warning, Severity::Note].map(|s| (super::count(report, s), s.name()));
        let parts: Vec<_> = parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| counted(n, word)).collect();
        out += &parts.join(", ");
    }
    if report.suppressed > 0 {
        let _ = write!(out, ", {} suppressed", report.suppressed);
    }
    if !sources.unread.is_empty() {
        let _ = write!(out, "; {} not read", counted(sources.unread.len(), "file"));
    }
    out += ".\n";
    let fixes = report.findings.iter().filter(|f| f.fix.is_some()).count();
    if fixes > 0 {
        let _ = writeln!(out, "--fix mends {fixes} of them; --explain RULE says what is behind one.");
    } else if !report.findings.is_empty() {
        out += "--explain RULE says what is behind one.\n";
    }
    out
}
