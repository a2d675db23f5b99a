//! A settings file as each applier reads it.
//!
//! | | systemd-sysctl (252 to 258) | procps `sysctl` (4.0) |
//! | --- | --- | --- |
//! | ends of lines | line feed, carriage return, NUL | line feed; a NUL hides the rest of its line |
//! | blanks | space, tab, line ends | `isspace`: vertical tab and form feed too |
//! | behind `-` | blanks are taken off | belongs to the key |
//! | repeated and leading `/` in a key | taken off | kept, and the kernel's path look-up takes them off |
//! | a line of more than 1 MiB | reading stops | read |
//!
//! Sources: systemd `src/sysctl/sysctl.c`, `src/basic/sysctl-util.c` (sysctl_normalize), `src/basic/fileio.c` (read_line);
//! procps `src/sysctl.c` (parse_setting_line, slashdot).

use crate::files::Span;

use super::pattern::is_pattern;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// systemd-sysctl.
    Systemd,
    /// `sysctl` of procps up to 4.0.4 (Debian 13, Ubuntu 24.04 and before), also as ufw calls it.
    Procps,
    /// `sysctl` of procps from 4.0.5 on: exclusions may be patterns.
    Procps405,
}

impl Dialect {
    /// Whether it is one of procps' versions.
    pub fn is_procps(self) -> bool {
        self != Self::Systemd
    }
}

/// One line that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The path under `/proc/sys`, as this reader makes it.
    pub path: String,
    /// `None`: an exclusion from patterns.
    pub value: Option<String>,
    /// Whether a refusal is no failure.
    pub ignores_failure: bool,
    /// Its place, without blanks around.
    pub span: Span,
}

impl Line {
    /// Whether the key is a pattern.
    pub fn is_pattern(&self) -> bool {
        is_pattern(&self.path)
    }
}

/// The lines of `text` that count, in order.
pub fn read(text: &str, dialect: Dialect) -> Vec<Line> {
    let is_end = |c: char| match dialect {
        Dialect::Systemd => matches!(c, '\n' | '\r' | '\0'),
        Dialect::Procps | Dialect::Procps405 => c == '\n',
    };
    let mut lines = Vec::new();
    let mut start = 0;
    for part in text.split_inclusive(is_end) {
        let line = Span::new(start, start + part.len());
        start = line.end;
        let content = part.trim_end_matches(is_end);
        if dialect == Dialect::Systemd && content.len() >= crate::files::sysctl_d::LONGEST_LINE {
            break;
        }
        lines.extend(read_line(content, line.start, dialect));
    }
    lines
}

fn read_line(content: &str, start: usize, dialect: Dialect) -> Option<Line> {
    let is_blank = |c: char| match dialect {
        Dialect::Systemd => matches!(c, ' ' | '\t' | '\n' | '\r'),
        Dialect::Procps | Dialect::Procps405 => matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}'),
    };
    let content = if dialect.is_procps() { content.split('\0').next().unwrap_or("") } else { content };
    let stripped = content.trim_start_matches(is_blank);
    let from = start + content.len() - stripped.len();
    let line = stripped.trim_end_matches(is_blank);
    let span = Span::new(from, from + line.len());
    if line.is_empty() || line.starts_with(['#', ';']) || (dialect.is_procps() && stripped.len() < 2) {
        return None;
    }
    let (key, value) = match line.split_once('=') {
        Some((key, value)) => (key, Some(value.trim_matches(is_blank).to_owned())),
        None if line.starts_with('-') => (line, None),
        None => return None,
    };
    let without_dash = key.strip_prefix('-').unwrap_or(key);
    let key = match dialect {
        Dialect::Systemd => without_dash.trim_matches(is_blank),
        // The path of `--key` is that of `key`: setting_new takes off another one.
        Dialect::Procps | Dialect::Procps405 => {
            let key = without_dash.trim_end_matches(is_blank);
            key.strip_prefix('-').unwrap_or(key)
        }
    };
    let path = match dialect {
        Dialect::Systemd => simplified(&swapped(key)),
        Dialect::Procps | Dialect::Procps405 => swapped(key),
    };
    Some(Line {
        ignores_failure: value.is_some() && without_dash.len() < line.len() && line.starts_with('-'),
        path,
        value,
        span,
    })
}

/// Where the first separator is a dot, dots become slashes and slashes dots.
fn swapped(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(at) if key.as_bytes()[at] == b'.' => key
            .chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                other => other,
            })
            .collect(),
        _ => key.to_owned(),
    }
}

/// Without repeated, leading and trailing slashes and without `.` components.
pub(super) fn simplified(path: &str) -> String {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str, dialect: Dialect) -> Vec<(String, Option<String>, bool)> {
        read(text, dialect).into_iter().map(|line| (line.path, line.value, line.ignores_failure)).collect()
    }

    fn set(path: &str, value: &str, ignores: bool) -> (String, Option<String>, bool) {
        (path.to_owned(), Some(value.to_owned()), ignores)
    }

    #[test]
    fn both_read_settings_exclusions_and_comments_alike() {
        let text = "# c\n;c\n a.b = 1  2 \n-c/d.e=x=y\n-f.*.g\nno setting\n=\n";
        for dialect in [Dialect::Systemd, Dialect::Procps] {
            let lines = seen(text, dialect);
            assert_eq!(lines[0], set("a/b", "1  2", false), "{dialect:?}");
            assert_eq!(lines[1], set("c/d.e", "x=y", true), "{dialect:?}");
            assert_eq!(lines[2], ("f/*/g".to_owned(), None, false), "{dialect:?}");
        }
    }

    #[test]
    fn they_differ_where_the_table_says() {
        assert_eq!(seen("a.b=1\rc.d=2", Dialect::Systemd), [set("a/b", "1", false), set("c/d", "2", false)]);
        assert_eq!(seen("a.b=1\rc.d=2", Dialect::Procps), [set("a/b", "1\rc.d=2", false)]);
        assert_eq!(seen("a.b=1\0c.d=2", Dialect::Procps), [set("a/b", "1", false)]);
        assert_eq!(seen("- a.b=1", Dialect::Systemd), [set("a/b", "1", true)]);
        assert_eq!(seen("- a.b=1", Dialect::Procps), [set(" a/b", "1", true)]);
        assert_eq!(seen("/a//b/./c=1", Dialect::Systemd), [set("a/b/c", "1", false)]);
        assert_eq!(seen("/a//b/./c=1", Dialect::Procps), [set("/a//b/./c", "1", false)]);
    }
}
