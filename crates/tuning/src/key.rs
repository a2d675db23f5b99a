//! Keys as people write them: `net.ipv4.tcp_rmem`, `net/ipv4/tcp_rmem`, `net.ipv4.conf.eth0/100.rp_filter`.

use std::fmt::{self, Write};

/// A key, whichever notation it was written in. Two spellings of one file under `/proc/sys` are equal.
///
/// Displayed with dots, and with `/` where a component holds a dot itself (sysctl.d(5) of systemd).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Nothing, or nothing between two separators.
    #[error("a part of the key is empty")]
    EmptyPart,
    /// `.` or `..` as a part of a path: it would lead elsewhere.
    #[error("a part of the key leads out of /proc/sys")]
    LeadsOut,
    /// A character no key has.
    #[error("the key holds {0:?}, which no key has")]
    BadCharacter(char),
}

impl Key {
    /// Reads a key in either notation.
    ///
    /// Where the first separator is `.`, dots part the components and a `/` stands for a dot inside one; where it is `/`, it is
    /// the other way round. A leading `/proc/sys/` is taken off.
    ///
    /// # Errors
    /// [`BadKey`], with what is wrong.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let text = text.strip_prefix("/proc/sys/").unwrap_or(text);
        let bad = |c: &char| c.is_control() || c.is_whitespace() || matches!(c, '=' | '#' | ';' | '"' | '\'');
        if let Some(c) = text.chars().find(bad) {
            return Err(BadKey::BadCharacter(c));
        }
        let dotted = text.find(['.', '/']).is_none_or(|at| text.as_bytes()[at] == b'.');
        let swap = |c| match c {
            '.' => '/',
            '/' => '.',
            other => other,
        };
        let path: String = if dotted { text.chars().map(swap).collect() } else { text.to_owned() };
        for part in path.split('/') {
            match part {
                "" => return Err(BadKey::EmptyPart),
                "." | ".." => return Err(BadKey::LeadsOut),
                _ => {}
            }
        }
        Ok(Self(path))
    }

    /// The path under `/proc/sys`: `net/ipv4/tcp_rmem`.
    pub fn path(&self) -> &str {
        &self.0
    }

    /// The components, from the root: `net`, `ipv4`, `tcp_rmem`.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.0.split('/')
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| {
            f.write_char(match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_name_the_same_file() {
        let vlan = Key::parse("net.ipv4.conf.eth0/100.rp_filter").unwrap();
        assert_eq!(vlan.path(), "net/ipv4/conf/eth0.100/rp_filter");
        assert_eq!(vlan, Key::parse("net/ipv4/conf/eth0.100/rp_filter").unwrap());
        assert_eq!(vlan, Key::parse("/proc/sys/net/ipv4/conf/eth0.100/rp_filter").unwrap());
        assert_eq!(vlan.to_string(), "net.ipv4.conf.eth0/100.rp_filter");
        assert_ne!(vlan, Key::parse("net.ipv4.conf.eth0.100.rp_filter").unwrap());
    }

    #[test]
    fn what_is_no_key_is_refused_with_the_reason() {
        for (text, why) in [
            ("", BadKey::EmptyPart),
            ("net..ipv4", BadKey::EmptyPart),
            ("net/ipv4/", BadKey::EmptyPart),
            ("/etc/passwd", BadKey::EmptyPart),
            ("net/../ipv4", BadKey::LeadsOut),
            ("net.//.x", BadKey::LeadsOut),
            ("net ipv4", BadKey::BadCharacter(' ')),
            ("net.a=1", BadKey::BadCharacter('=')),
            ("net.\u{7}", BadKey::BadCharacter('\u{7}')),
        ] {
            assert_eq!(Key::parse(text), Err(why), "{text:?}");
        }
    }
}
