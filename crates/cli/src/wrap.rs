//! Text broken into lines.

use std::fmt::Write as _;

/// `text` in lines of at most `width` columns, the first after `first`, the others after as many blanks. Words longer than a line
/// stand out.
pub fn hanging(first: &str, text: &str, width: usize) -> String {
    let indent = first.chars().count();
    let mut out = first.to_owned();
    let mut column = indent;
    let mut fresh = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !fresh && column + 1 + length > width {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        fresh = false;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hang_under_the_first_and_keep_the_width() {
        assert_eq!(hanging("a: ", "one two three", 10), "a: one two\n   three\n");
        assert_eq!(hanging("a: ", "a-very-long-word b", 8), "a: a-very-long-word\n   b\n");
        assert_eq!(hanging("a: ", "", 8), "a: \n");
    }
}
