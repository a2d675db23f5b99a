//! The kernel's command line: `sysctl.key=value`, applied before the first process (kernel `fs/proc/proc_sysctl.c`, since 5.8).

use super::{Found, Means, Setting, Span, is_dynamic};

/// Reads parameters out of a command line, or out of the lines of a boot loader's file.
pub(super) fn read(found: &mut Found<'_>) {
    let text = found.text;
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices("sysctl.") {
        let preceded = at.checked_sub(1).map(|before| bytes[before]);
        if preceded.is_some_and(|b| !b.is_ascii_whitespace() && !b"\"'".contains(&b)) {
            continue;
        }
        // A value with blanks stands in quotes: behind `=`, or around the whole parameter.
        let open = preceded.filter(|b| b"\"'".contains(b)).map(char::from).filter(|quote| closes(&text[at..], *quote));
        let rest = &text[at..];
        let Some(equals) = rest.find(|c: char| c == '=' || c.is_whitespace()).filter(|e| rest.as_bytes()[*e] == b'=')
        else {
            continue;
        };
        let value_start = equals + 1;
        let value = &rest[value_start..];
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (raw, inner) = match (quote, open) {
            (Some(quote), _) => {
                let end = value[1..].find(quote).map_or(value.len(), |end| end + 1);
                (value.get(..(end + 1).min(value.len())).unwrap_or(value), value.get(1..end).unwrap_or(""))
            }
            (None, Some(open)) => {
                let end = value.find(open).unwrap_or(value.len());
                (&value[..end], &value[..end])
            }
            (None, None) => {
                let end = value.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(value.len());
                (&value[..end], &value[..end])
            }
        };
        let key_span = Span::new(at + "sysctl.".len(), at + equals);
        if key_span.is_empty() {
            continue;
        }
        found.document.settings.push(Setting {
            key: key_span.of(text).to_owned(),
            value: inner.to_owned(),
            key_span,
            value_span: Span::new(at + value_start, at + value_start + raw.len()),
            span: Span::new(at, at + value_start + raw.len()),
            ignores_failure: false,
            only_raises: false,
            is_dynamic: is_dynamic(inner),
            means: Means::CommandLine,
        });
    }
}

/// Whether a quote that was opened before this parameter closes right behind it: then it belongs to the parameter.
fn closes(parameter: &str, quote: char) -> bool {
    parameter.find(quote).is_some_and(|end| parameter[..end].matches('=').count() == 1)
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Format};

    #[test]
    fn parameters_are_found_between_others_and_in_a_boot_loaders_file() {
        let read = |text: &str| {
            let document = Document::parse("cmdline", text.as_bytes(), Some(Format::CommandLine));
            document.settings.iter().map(|s| format!("{}={}", s.key, s.value)).collect::<Vec<_>>()
        };
        assert_eq!(
            read("quiet sysctl.net.core.somaxconn=4096 nosysctl.x=1 sysctl.net/core/rmem_max=1\n"),
            ["net.core.somaxconn=4096", "net/core/rmem_max=1"]
        );
        assert_eq!(read("GRUB_CMDLINE_LINUX=\"sysctl.vm.swappiness=1 sysctl.a.b=2\"\n"), ["vm.swappiness=1", "a.b=2"]);
        assert_eq!(read("\"sysctl.net.ipv4.tcp_rmem=4096 131072 1\" x"), ["net.ipv4.tcp_rmem=4096 131072 1"]);
        assert_eq!(read("sysctl.net.ipv4.tcp_rmem=\"4096 131072 1\" x"), ["net.ipv4.tcp_rmem=4096 131072 1"]);
        assert_eq!(read("sysctl. sysctl.x sysctl.=1 sysctl"), Vec::<String>::new());
    }
}
