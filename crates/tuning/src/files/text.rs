//! A file's text with its lines.

use super::{Defect, DefectKind};

/// A part of a text: bytes `start..end` of the decoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

impl Span {
    /// From its ends.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end: end.max(start) }
    }

    /// Its length in bytes.
    pub fn len(self) -> usize {
        self.end - self.start
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Its part of `text`; empty where it isn't one.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }

    /// Without blanks at its ends.
    pub(super) fn trimmed(self, text: &str) -> Self {
        let part = self.of(text);
        let start = self.start + part.len() - part.trim_start_matches(is_blank).len();
        Self::new(start, start + part.trim_matches(is_blank).len())
    }

    /// From its byte `from` to its end.
    pub(crate) fn tail(self, from: usize) -> Self {
        Self::new((self.start + from).min(self.end), self.end)
    }

    /// The same of a part of `self` that starts at byte `from` and is `len` long.
    pub(super) fn part(self, from: usize, len: usize) -> Self {
        Self::new(self.start + from, self.start + from + len)
    }
}

/// What the appliers take for a blank: C's `isspace`, and not the blanks of Unicode.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// A place in a text, as editors count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// A decoded text and where its lines start.
#[derive(Debug, Clone)]
pub struct Source {
    text: String,
    starts: Vec<usize>,
}

/// Of this many bytes one may be a control character; more make a file binary.
const TEXT_PER_CONTROL: usize = 10;

impl Source {
    /// Decodes UTF-8, with or without a byte order mark, and UTF-16 with one. Anything else is taken for Latin-1, and said so.
    pub(super) fn decode(bytes: &[u8]) -> (Self, Vec<Defect>) {
        let mut defects = Vec::new();
        let mut say = |kind| defects.push(Defect { span: Span::new(0, 0), kind });
        let text = match bytes {
            [0xff, 0xfe, rest @ ..] => {
                say(DefectKind::Encoding("UTF-16"));
                utf16(rest, u16::from_le_bytes)
            }
            [0xfe, 0xff, rest @ ..] => {
                say(DefectKind::Encoding("UTF-16"));
                utf16(rest, u16::from_be_bytes)
            }
            _ => {
                let control = bytes.iter().filter(|b| **b < 0x20 && !b"\t\n\r\x0b\x0c\x1b".contains(b)).count();
                if control > bytes.len() / TEXT_PER_CONTROL {
                    say(DefectKind::Binary);
                    return (Self::new(String::new()), defects);
                }
                match std::str::from_utf8(bytes) {
                    Ok(text) => text.to_owned(),
                    Err(_) => {
                        say(DefectKind::Encoding("Latin-1"));
                        bytes.iter().map(|b| char::from(*b)).collect()
                    }
                }
            }
        };
        (Self::new(text), defects)
    }

    /// The text of `bytes`, whatever they are: for readers that, like the appliers, take everything for text.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::new(text.to_owned()),
            Err(_) => Self::new(bytes.iter().map(|b| char::from(*b)).collect()),
        }
    }

    fn new(text: String) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        Self { text, starts }
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of the byte at `offset`.
    pub fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts[line - 1];
        // Bytes that continue a character are not counted.
        let before = self.text.as_bytes()[start..offset].iter().filter(|b| **b & 0xc0 != 0x80).count();
        Position { line, column: before + 1 }
    }

    /// Line `number` (from 1), with its end.
    pub fn line(&self, number: usize) -> Span {
        let start = self.starts.get(number.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let end = self.starts.get(number).copied().unwrap_or(self.text.len());
        Span::new(start, end)
    }

    /// How many lines there are; one that ends the text without a line feed counts too.
    pub fn lines(&self) -> usize {
        self.starts.len() - usize::from(self.starts.last() == Some(&self.text.len()))
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let (source, defects) = Source::decode("äb\ncd\n".as_bytes());
        assert!(defects.is_empty());
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(2), Position { line: 1, column: 2 });
        assert_eq!(source.position(4), Position { line: 2, column: 1 });
        assert_eq!(source.position(99), Position { line: 3, column: 1 });
        assert_eq!((source.lines(), source.line(2)), (2, Span::new(4, 7)));
    }

    #[test]
    fn other_encodings_are_read_and_named_and_binary_is_refused() {
        let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain("a=b".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        let (source, defects) = Source::decode(&wide);
        assert_eq!((source.text(), &defects[0].kind), ("a=b", &DefectKind::Encoding("UTF-16")));
        let (source, defects) = Source::decode(b"a=\xe4");
        assert_eq!((source.text(), &defects[0].kind), ("a=ä", &DefectKind::Encoding("Latin-1")));
        let (source, defects) = Source::decode(b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00");
        assert_eq!((source.text(), &defects[0].kind), ("", &DefectKind::Binary));
        assert!(Source::decode(b"net.core.somaxconn = 4096 \x1b[0m\n").1.is_empty());
    }
}
