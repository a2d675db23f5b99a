//! What a distribution does with settings files that others don't.

use std::fmt;

/// A distribution and its version, as `os-release(5)` names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distribution {
    /// `debian`, `ubuntu`, `fedora`; empty: not known.
    pub id: String,
    /// `13`, `26.04`; empty: not known, or it rolls.
    pub version: String,
}

/// Distributions without `/etc/sysctl.d/99-sysctl.conf`, from which version on.
const WITHOUT_LINK: [(&str, f64); 2] = [("debian", 13.0), ("ubuntu", 25.10)];

impl Distribution {
    /// From `debian-13`, `debian:13`, `debian13` or `ubuntu-26.04`; a name alone stays without version.
    pub fn parse(text: &str) -> Self {
        let text = text.trim().to_ascii_lowercase();
        let at = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        let id = text[..at].trim_end_matches(['-', ':', ' ', '_']).to_owned();
        Self { id, version: text[at..].to_owned() }
    }

    /// From the text of `/etc/os-release`.
    pub fn from_os_release(text: &str) -> Self {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or("").trim_matches(['"', '\'']).to_ascii_lowercase()
        };
        Self { id: field("ID"), version: field("VERSION_ID") }
    }

    /// Whether a fresh system has no `/etc/sysctl.d/99-sysctl.conf`, so that nobody reads `/etc/sysctl.conf` at boot.
    /// systemd-sysctl never reads that file itself.
    pub fn skips_sysctl_conf(&self) -> bool {
        let version: f64 = self.version.parse().unwrap_or(0.0);
        WITHOUT_LINK.iter().any(|(id, first)| *id == self.id && version >= *first)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = self.id.clone();
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        write!(f, "{name}{}{}", if self.version.is_empty() { "" } else { " " }, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_13_and_ubuntu_26_04_skip_the_old_file_and_their_predecessors_do_not() {
        for (text, skips) in [
            ("debian-13", true),
            ("debian:14", true),
            ("debian-12", false),
            ("ubuntu-26.04", true),
            ("ubuntu 24.04", false),
            ("fedora-42", false),
            ("debian", false),
            ("", false),
        ] {
            assert_eq!(Distribution::parse(text).skips_sysctl_conf(), skips, "{text}");
        }
        let read = Distribution::from_os_release("PRETTY_NAME=\"x\"\nVERSION_ID=\"13\"\nID=debian\n");
        assert_eq!(read, Distribution::parse("debian-13"));
        assert_eq!(read.to_string(), "Debian 13");
    }
}
