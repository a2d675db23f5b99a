//! Versions of the Linux kernel.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kernel version, as far as it matters for what a kernel can do: `6.12`, also out of `6.12.117+deb13-cloud-amd64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct KernelVersion {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

/// The text does not start with two numbers joined by a point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kernel version: write it like 6.12")]
pub struct BadVersion(pub String);

impl KernelVersion {
    /// From its two numbers.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }
}

impl FromStr for KernelVersion {
    type Err = BadVersion;

    /// Reads `6.12`, `6.12.3`, and releases as `uname -r` prints them: `6.8.0-45-generic`, `7.2-rc1`.
    fn from_str(text: &str) -> Result<Self, BadVersion> {
        let bad = || BadVersion(text.to_owned());
        let text = text.trim();
        let (major, rest) = text.split_once('.').ok_or_else(bad)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        // `6.x` and `6.12th` are no releases; a release goes on with a point, a sign, or ends.
        if rest[end..].starts_with(|c: char| c.is_alphanumeric()) || !major.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        Ok(Self { major: major.parse().map_err(|_| bad())?, minor: rest[..end].parse().map_err(|_| bad())? })
    }
}

impl TryFrom<String> for KernelVersion {
    type Error = BadVersion;
    fn try_from(text: String) -> Result<Self, BadVersion> {
        text.parse()
    }
}

impl From<KernelVersion> for String {
    fn from(version: KernelVersion) -> Self {
        version.to_string()
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_distributions_are_read_and_other_text_is_not() {
        for (text, major, minor) in
            [("6.12", 6, 12), ("6.8.0-45-generic", 6, 8), ("6.12.117+deb13-cloud-amd64", 6, 12), ("7.2-rc1\n", 7, 2)]
        {
            assert_eq!(text.parse(), Ok(KernelVersion::new(major, minor)), "{text}");
        }
        for text in ["", "6", "6.", ".6", "v6.1", "6.x", "6.12th", "-6.1", "+6.1", "6.99999"] {
            assert_eq!(text.parse::<KernelVersion>(), Err(BadVersion(text.to_owned())));
        }
    }

    #[test]
    fn versions_compare_by_number_and_not_by_text() {
        assert!(KernelVersion::new(6, 9) < KernelVersion::new(6, 12));
        assert!(KernelVersion::new(6, 12) < KernelVersion::new(7, 0));
    }
}
