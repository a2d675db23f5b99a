//! `sysctl.d(5)`: what systemd-sysctl and procps' sysctl both make of a line, and what makes neither happy.
//!
//! Sources: systemd `src/sysctl/sysctl.c` (parse_file of 252, parse_line of 258), procps `src/sysctl.c` (parse_setting_line, 4.0.2).
//! Where the two differ, `effective::reader` has each of them exactly; here is what people should be told.

use super::text::is_blank;
use super::{Comment, DefectKind, Exclusion, Found, Means, Setting, Span, is_dynamic, is_key_like};

/// systemd's `LONG_LINE_MAX`.
pub(crate) const LONGEST_LINE: usize = 1 << 20;

/// Reads the lines of `region`.
pub(super) fn read(found: &mut Found<'_>, region: Span, means: &Means) {
    let mut start = region.start;
    for line in region.of(found.text).split_inclusive('\n') {
        let span = Span::new(start, start + line.len());
        start = span.end;
        read_line(found, span, means);
    }
}

/// Reads one line, with or without its end.
pub(super) fn read_line(found: &mut Found<'_>, line: Span, means: &Means) {
    let text = found.text;
    if line.len() > LONGEST_LINE {
        found.defect(Span::new(line.start, line.start), DefectKind::LongLine);
        return;
    }
    let outer = line.trimmed(text);
    let (visible, hidden) = without_hidden(text, outer);
    if let Some((at, c)) = hidden {
        found.defect(at, DefectKind::HiddenCharacter(c));
    }
    let content = visible.of(text);
    match content.as_bytes().first() {
        None => return,
        Some(b'#' | b';') => {
            found.document.comments.push(Comment { span: visible, is_alone: true });
            return;
        }
        Some(_) => {}
    }
    if let Some(at) = content.find('\r') {
        found.defect(visible.part(at, 1), DefectKind::LoneCarriageReturn);
    }
    if let Some(kind) = other_than_setting(content) {
        found.defect(visible, kind);
        return;
    }
    let Some(equals) = content.find('=') else {
        match content.strip_prefix('-') {
            Some(key) if !key.is_empty() && !key.starts_with(['-', ' ']) => {
                found.document.exclusions.push(Exclusion { key: key.to_owned(), span: visible });
            }
            _ => found.defect(visible, DefectKind::NotASetting),
        }
        return;
    };
    let dash = usize::from(content.starts_with('-'));
    let key_span = visible.part(dash, equals - dash.min(equals)).trimmed(text);
    let mut value_span = visible.part(equals + 1, content.len() - equals - 1).trimmed(text);
    if value_span.is_empty() {
        value_span = Span::new(visible.end, visible.end);
    }
    if key_span.is_empty() {
        found.defect(visible, DefectKind::EmptyKey);
        return;
    }
    if value_span.is_empty() {
        found.defect(visible, DefectKind::EmptyValue);
    }
    if let Some((at, c)) = hidden_inside(text, key_span).or_else(|| hidden_inside(text, value_span)) {
        found.defect(at, DefectKind::HiddenCharacter(c));
    }
    let value = value_span.of(text);
    // `a = 1; b = 2`: both appliers take everything behind the first `=`.
    if let Some(at) = value.find(';').filter(|at| joined(&value[at + 1..])) {
        found.defect(value_span.part(at, value.len() - at), DefectKind::Joined);
    }
    found.document.settings.push(Setting {
        key: key_span.of(text).to_owned(),
        value: value.to_owned(),
        key_span,
        value_span,
        span: visible,
        ignores_failure: dash == 1,
        only_raises: false,
        is_dynamic: is_dynamic(value),
        means: means.clone(),
    });
}

/// Whether what stands behind a `;` is another setting.
fn joined(rest: &str) -> bool {
    rest.split_once('=').is_some_and(|(key, _)| is_key_like(key.trim()))
}

/// Lines that are meant for something else than a settings file.
fn other_than_setting(line: &str) -> Option<DefectKind> {
    if line.starts_with('[') && line.ends_with(']') {
        return Some(DefectKind::Section);
    }
    const COMMANDS: [&str; 12] =
        ["sysctl", "sudo", "echo", "cat", "tee", "printf", "modprobe", "ulimit", "export", "tc", "ip", "sed"];
    let word = line.split([' ', '\t']).next().unwrap_or("");
    let rest = line[word.len()..].trim_start();
    // `sysctl = 1` would be a strange setting, but one.
    let is_command = COMMANDS
        .contains(&word.trim_start_matches("/usr").trim_start_matches("/sbin/").trim_start_matches("/bin/"))
        && !rest.is_empty()
        && !rest.starts_with('=');
    let is_end = line == "EOF" || line.starts_with("<<") || line.contains("<<EOF") || line.contains("<< EOF");
    (is_command || is_end).then_some(DefectKind::Command)
}

/// Characters that nobody sees and every reader takes for a part of the key or the value.
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{a0}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{3000}')
        || (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{b}' | '\u{c}'))
}

/// `span` without hidden characters at its start, and the first of those.
fn without_hidden(text: &str, span: Span) -> (Span, Option<(Span, char)>) {
    let part = span.of(text);
    let rest = part.trim_start_matches(|c: char| is_hidden(c) || is_blank(c));
    let first = part.char_indices().take_while(|(at, _)| *at < part.len() - rest.len()).find(|(_, c)| is_hidden(*c));
    let hidden = first.map(|(at, c)| (span.part(at, c.len_utf8()), c));
    (Span::new(span.start + part.len() - rest.len(), span.end), hidden)
}

fn hidden_inside(text: &str, span: Span) -> Option<(Span, char)> {
    span.of(text).char_indices().find(|(_, c)| is_hidden(*c)).map(|(at, c)| (span.part(at, c.len_utf8()), c))
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Format};
    use super::*;

    fn document(text: &str) -> Document {
        Document::parse("x.conf", text.as_bytes(), Some(Format::SysctlD))
    }

    fn defects(text: &str) -> Vec<(usize, DefectKind)> {
        let document = document(text);
        document.defects.iter().map(|d| (document.position(d.span).line, d.kind.clone())).collect()
    }

    #[test]
    fn settings_keep_their_places_whatever_blanks_surround_them() {
        let document = document("# c\r\n\t net.ipv4.tcp_rmem =\t4096 131072\t33554432  \r\n-vm.x=1\n; c\nkernel/y = z");
        let seen: Vec<_> =
            document.settings.iter().map(|s| (s.key.as_str(), s.value.as_str(), s.ignores_failure)).collect();
        assert_eq!(
            seen,
            [("net.ipv4.tcp_rmem", "4096 131072\t33554432", false), ("vm.x", "1", true), ("kernel/y", "z", false)]
        );
        let place = document.position(document.settings[0].value_span);
        assert_eq!((place.line, place.column), (2, 23));
        assert!(document.defects.is_empty(), "{:?}", document.defects);
        assert_eq!(document.comments.len(), 2);
    }

    #[test]
    fn lines_that_are_no_settings_are_named_and_the_next_line_is_read() {
        assert_eq!(
            defects(
                "net.core.somaxconn 4096\nsysctl -w a.b=1\n[sysctl]\n=1\na.b=\nsysctl = 1\na.b = 1; c = 2\nnet.a = 1; net.b = 2\n"
            ),
            [
                (1, DefectKind::NotASetting),
                (2, DefectKind::Command),
                (3, DefectKind::Section),
                (4, DefectKind::EmptyKey),
                (5, DefectKind::EmptyValue),
                (8, DefectKind::Joined),
            ]
        );
    }

    #[test]
    fn a_character_nobody_sees_is_found_and_a_comment_may_hold_any() {
        assert_eq!(defects("\u{200b}net.a = 1\n"), [(1, DefectKind::HiddenCharacter('\u{200b}'))]);
        assert_eq!(defects("net.a\u{a0}= 1\n"), [(1, DefectKind::HiddenCharacter('\u{a0}'))]);
        assert_eq!(defects("\u{feff}net.a = 1\n"), [(1, DefectKind::HiddenCharacter('\u{feff}'))]);
        assert_eq!(defects("# ä\u{a0}\u{200b}\nnet.a = 1\n"), []);
    }

    #[test]
    fn an_exclusion_is_no_setting() {
        let document = document("-net.ipv4.conf.eth0.rp_filter\nnet.ipv4.conf.*.rp_filter = 1\n");
        assert_eq!((document.exclusions.len(), document.settings.len(), document.defects.len()), (1, 1, 0));
        assert_eq!(document.exclusions[0].key, "net.ipv4.conf.eth0.rp_filter");
    }
}
