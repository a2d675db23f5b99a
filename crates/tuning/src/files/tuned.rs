//! tuned profiles: INI with a `[sysctl]` section. Quotes and comments behind a value are syntax here (ConfigObj).

use super::{Comment, DefectKind, Found, Means, Setting, Span, is_dynamic};

/// Reads the profile's `[sysctl]` sections; others are none of our business.
pub(super) fn read(found: &mut Found<'_>) {
    let text = found.text;
    let mut start = 0;
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        let span = Span::new(start, start + line.len()).trimmed(text);
        start += line.len();
        let content = span.of(text);
        if content.starts_with('#') || content.starts_with(';') {
            found.document.comments.push(Comment { span, is_alone: true });
        } else if content.starts_with('[') {
            let name = content.trim_start_matches('[').split(']').next().unwrap_or("");
            inside = name.trim().trim_matches(['"', '\'']).starts_with("sysctl");
        } else if inside && !content.is_empty() {
            read_line(found, span);
        }
    }
}

fn read_line(found: &mut Found<'_>, span: Span) {
    let text = found.text;
    let content = span.of(text);
    let Some(equals) = content.find('=') else {
        found.defect(span, DefectKind::NotASetting);
        return;
    };
    let key_span = span.part(0, equals).trimmed(text);
    if key_span.is_empty() {
        found.defect(span, DefectKind::EmptyKey);
        return;
    }
    let mut value_span = span.part(equals + 1, content.len() - equals - 1).trimmed(text);
    let only_raises = value_span.of(text).starts_with('>');
    if only_raises {
        value_span = Span::new(value_span.start + 1, value_span.end).trimmed(text);
    }
    if let Some(at) = comment(value_span.of(text)) {
        found.document.comments.push(Comment { span: value_span.part(at, value_span.len() - at), is_alone: false });
        value_span = value_span.part(0, at).trimmed(text);
    }
    let raw = value_span.of(text);
    let value = ['"', '\'']
        .iter()
        .find_map(|quote| raw.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(raw)
        .trim()
        .to_owned();
    if value.is_empty() {
        found.defect(span, DefectKind::EmptyValue);
    }
    // tuned's conditional raise can also stand inside the quotes.
    let (value, only_raises) = match value.strip_prefix('>') {
        Some(rest) => (rest.trim().to_owned(), true),
        None => (value, only_raises),
    };
    // The line of which the comment is no part, so that a fix may delete it.
    found.document.settings.push(Setting {
        key: key_span.of(text).to_owned(),
        is_dynamic: is_dynamic(&value),
        value,
        key_span,
        value_span,
        span,
        ignores_failure: false,
        only_raises,
        means: Means::File,
    });
}

/// Where a comment starts behind a value: at a `#` outside of quotes.
fn comment(value: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in value.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '#') => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Format};

    #[test]
    fn only_the_sysctl_section_counts_and_quotes_raises_and_comments_are_syntax() {
        let text = "[main]\nsummary=net.core.x=1\n[sysctl]\nnet.ipv4.tcp_rmem=\"4096 87380 16777216\"\n\
            net.core.rmem_max=>4194304 # more\nnet.core.somaxconn=>2048\nvm.swappiness=${s}\n[disk]\nreadahead=>4096\n";
        let document = Document::parse("tuned.conf", text.as_bytes(), None);
        assert_eq!(document.format, Format::Tuned);
        let seen: Vec<_> =
            document.settings.iter().map(|s| (s.key.as_str(), s.value.as_str(), s.only_raises, s.is_dynamic)).collect();
        assert_eq!(
            seen,
            [
                ("net.ipv4.tcp_rmem", "4096 87380 16777216", false, false),
                ("net.core.rmem_max", "4194304", true, false),
                ("net.core.somaxconn", "2048", true, false),
                ("vm.swappiness", "${s}", false, true),
            ]
        );
        assert!(document.defects.is_empty());
    }
}
