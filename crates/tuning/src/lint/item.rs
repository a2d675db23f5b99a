//! A setting together with what is known about its key.

use crate::catalogue::{Catalogue, Found};
use crate::files::{Document, Format, Setting, Span};

/// A setting to judge.
#[derive(Debug, Clone)]
pub(super) struct Item<'d> {
    /// The document's index.
    pub(super) document: usize,
    /// Documents with the same number are applied together.
    pub(super) group: usize,
    /// The setting.
    pub(super) setting: &'d Setting,
    /// What is known about its key.
    pub(super) found: Option<Found<'d>>,
    /// The key with dots, without the mistakes that other rules name.
    pub(super) key: String,
    /// The value without quotes and without a comment behind it.
    pub(super) value: &'d str,
    /// Its words, where it is known and all of them are numbers.
    pub(super) numbers: Vec<i128>,
}

impl<'d> Item<'d> {
    pub(super) fn new(
        document: usize,
        group: usize,
        of: &'d Document,
        setting: &'d Setting,
        catalogue: &'d Catalogue,
    ) -> Self {
        let written = setting.key.trim_start_matches(super::checks::is_invisible);
        let found = catalogue.lookup(written.strip_prefix("proc/sys/").unwrap_or(written));
        let key = found.as_ref().map_or_else(|| dotted(written), |found| found.key.to_string());
        let value = if matches!(of.format, Format::SysctlD | Format::Ufw | Format::Shell) {
            bare(&setting.value)
        } else {
            setting.value.trim()
        };
        let words = value.split_whitespace().map(number);
        let numbers = if setting.is_dynamic { Vec::new() } else { words.collect::<Option<_>>().unwrap_or_default() };
        Self { document, group, setting, found, key, value, numbers }
    }

    /// The only number.
    pub(super) fn number(&self) -> Option<i128> {
        match self.numbers[..] {
            [number] => Some(number),
            _ => None,
        }
    }

    /// The place of word `index` of the value.
    pub(super) fn word_span(&self, text: &str, index: usize) -> Span {
        let raw = self.setting.value_span.of(text);
        let word = self.value.split_whitespace().nth(index).unwrap_or("");
        let mut at = 0;
        for (place, part) in raw.split_whitespace().enumerate() {
            let start = at + raw[at..].find(part).unwrap_or(0);
            at = start + part.len();
            if place == index {
                // Where quotes inside the value make the words differ, the part as it is written is meant.
                let (from, length) = part.find(word).map_or((0, part.len()), |from| (from, word.len()));
                let from = self.setting.value_span.start + start + from;
                return Span::new(from, from + length);
            }
        }
        self.setting.value_span
    }

    /// The value with blanks as the kernel shows them.
    pub(super) fn normal_value(&self) -> String {
        self.value.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A key with dots where the first separator is a slash.
fn dotted(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(at) if key.as_bytes()[at] == b'/' => key
            .trim_matches('/')
            .chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect(),
        _ => key.to_owned(),
    }
}

/// Without quotes around and without a comment or another setting behind: what was meant.
fn bare(value: &str) -> &str {
    let value = value.trim();
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote) {
            return inner.split(quote).next().unwrap_or(inner).trim();
        }
    }
    let end = value.find(" #").or_else(|| value.find("\t#")).or_else(|| value.find([';', '#'])).unwrap_or(value.len());
    value[..end].trim()
}

/// A number as the kernel reads it: decimal, hexadecimal behind `0x`, octal behind `0`.
fn number(word: &str) -> Option<i128> {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, word),
    };
    if digits.is_empty() || digits.len() > 30 || !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => i128::from_str_radix(hexadecimal, 16),
        None if digits.len() > 1 && digits.starts_with('0') => i128::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    value.ok().map(|value| sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_kernel_does_and_others_are_none() {
        for (text, value) in [("10", Some(10)), ("0x10", Some(16)), ("010", Some(8)), ("-1", Some(-1)), ("0", Some(0))]
        {
            assert_eq!(number(text), value, "{text}");
        }
        for text in ["", "-", "1k", "1.5", "16M", "+1", "08"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn what_was_meant_is_the_value_without_quotes_and_comments() {
        assert_eq!(bare("\"4096 1 2\""), "4096 1 2");
        assert_eq!(bare("fq   # pacing"), "fq");
        assert_eq!(bare("1; net.b = 2"), "1");
        assert_eq!(bare("1 2\t3"), "1 2\t3");
    }
}
