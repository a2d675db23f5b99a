//! Everything that is done with bytes from outside, for the fuzzer and for the tests that throw bytes at it.

use crate::catalogue::Catalogue;
use crate::effective::{Dialect, apply, reader};
use crate::files::{Document, Format};
use crate::kernel::KernelVersion;

use super::{Surroundings, Target, fix, lint};

/// Reads, judges, mends and applies `bytes`; the first one chooses the format and the target.
///
/// # Panics
/// Where something does not hold together: a place outside the text, fixes that don't come to an end.
#[doc(hidden)]
pub fn exercise(bytes: &[u8]) {
    let (choice, bytes) = bytes.split_first().map_or((0, bytes), |(choice, rest)| (*choice, rest));
    let format = Format::NAMES.get(usize::from(choice % 8)).map(|(_, format)| *format);
    let name = ["/etc/sysctl.d/10-x.conf", "/etc/sysctl.conf", "x.sh", "<stdin>"][usize::from(choice >> 3) % 4];
    let mut target = Target::new([KernelVersion::new(4, 9), KernelVersion::new(6, 12)][usize::from(choice >> 5) % 2]);
    target.is_container = choice & 64 != 0;
    target.has_busybox = choice & 128 != 0;
    let document = Document::parse(name, bytes, format);
    check(&document);
    let report = lint(std::slice::from_ref(&document), &target, &Surroundings::default(), Catalogue::builtin());
    let text = document.source.text();
    for finding in &report.findings {
        let spans = std::iter::once(finding.span).chain(finding.related.iter().map(|r| r.span));
        for span in spans.chain(finding.fix.iter().flat_map(|fix| fix.edits.iter().map(|edit| edit.span))) {
            assert!(text.get(span.start..span.end).is_some(), "{} points outside the text", finding.rule.id);
        }
    }
    let (fixed, count) = fix::apply(&document, 0, &report.findings);
    if count > 0 {
        check(&Document::parse(name, fixed.as_bytes(), Some(document.format)));
    }
    for dialect in [Dialect::Systemd, Dialect::Procps, Dialect::Procps405] {
        let lines = reader::read(text, dialect);
        let universe = ["net/ipv4/conf/all/rp_filter", "net/core/somaxconn"].map(str::to_owned);
        apply::apply(dialect, &[lines], &universe);
    }
}

fn check(document: &Document) {
    let text = document.source.text();
    for setting in &document.settings {
        for span in [setting.key_span, setting.value_span, setting.span] {
            assert!(text.get(span.start..span.end).is_some(), "a setting points outside the text");
        }
        let place = document.position(setting.span);
        assert!(place.line <= document.source.lines() && place.column >= 1);
    }
    for span in document.defects.iter().map(|d| d.span).chain(document.comments.iter().map(|c| c.span)) {
        assert!(text.get(span.start..span.end).is_some(), "a defect or a comment points outside the text");
    }
}
