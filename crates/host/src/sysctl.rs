//! One key of `/proc/sys`, in the calling thread's namespace.
//!
//! Keys under `net` mean the network namespace of the thread that opens the file, so that these functions run inside
//! [`NetNs::run`](crate::netns::NetNs::run) for another namespace.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// Why a key could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// The text is not a key.
    #[error("`{key}` is not a sysctl key")]
    BadKey {
        /// As it was given.
        key: String,
    },
    /// The kernel has no such key, or shows it only outside this namespace.
    #[error("this kernel has no sysctl {key} (or not in this namespace)")]
    Missing {
        /// As it was given.
        key: String,
    },
    /// The kernel does not take the value.
    #[error("the kernel refuses {key} = {value}: {source}")]
    Refused {
        /// As it was given.
        key: String,
        /// What was written.
        value: String,
        /// `EINVAL`: outside the key's range or not of its form; `ENOENT`: a name the kernel does not know.
        source: io::Error,
    },
    /// The key is read-only for this process.
    #[error("no permission to write sysctl {key} here: it is read-only in this namespace or needs root ({source})")]
    ReadOnly {
        /// As it was given.
        key: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel took the value, and shows another one.
    #[error("{key} was set to {wanted}, but the kernel shows {shown}")]
    Differs {
        /// As it was given.
        key: String,
        /// What was written, whitespace normalised.
        wanted: String,
        /// What reading it back gave, whitespace normalised.
        shown: String,
    },
    /// Another error of reading or writing.
    #[error("sysctl {key}: {source}")]
    Io {
        /// As it was given.
        key: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// The file of a key.
///
/// sysctl.d(5) of systemd: where the first separator is `.`, dots become slashes and slashes dots
/// (`net.ipv4.conf.eth0/100.rp_filter` is the interface `eth0.100`); where it is `/`, the key is a path already.
///
/// # Errors
/// [`SysctlError::BadKey`] for an empty component, `.`, `..`, or a character no key has.
pub fn path_of(key: &str) -> Result<PathBuf, SysctlError> {
    let dotted = match key.find(['.', '/']) {
        Some(at) => key.as_bytes()[at] == b'.',
        None => true,
    };
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let relative: String = if dotted { key.chars().map(swap).collect() } else { key.to_owned() };
    let sound = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(|c: char| c.is_control() || c.is_whitespace())
    };
    if !relative.split('/').all(sound) {
        return Err(SysctlError::BadKey { key: key.to_owned() });
    }
    Ok(PathBuf::from("/proc/sys").join(relative))
}

/// A value with every run of whitespace as one blank, and none at its ends: the kernel separates fields by tabs, people by blanks.
pub fn normalise(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value of a key, whitespace normalised.
///
/// # Errors
/// [`SysctlError::BadKey`], [`SysctlError::Missing`] or [`SysctlError::Io`].
pub fn read(key: &str) -> Result<String, SysctlError> {
    let path = path_of(key)?;
    match fs::read_to_string(path) {
        Ok(text) => Ok(normalise(&text)),
        Err(error) if is_missing(&error) => Err(SysctlError::Missing { key: key.to_owned() }),
        Err(source) => Err(SysctlError::Io { key: key.to_owned(), source }),
    }
}

/// Sets a key, reads it back, and returns what the kernel then shows.
///
/// Reading back matters: the kernel ignores a missing third value of `tcp_rmem`, and changes the first two before it refuses
/// the third.
///
/// # Errors
/// Every kind of [`SysctlError`]. After [`SysctlError::Differs`] the key holds what the kernel made of the value.
pub fn write(key: &str, value: &str) -> Result<String, SysctlError> {
    let path = path_of(key)?;
    let wanted = normalise(value);
    let owned = || key.to_owned();
    let mut file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Err(SysctlError::Missing { key: owned() }),
        Err(error) if is_denied(&error) => return Err(SysctlError::ReadOnly { key: owned(), source: error }),
        Err(source) => return Err(SysctlError::Io { key: owned(), source }),
    };
    // One write: the kernel parses each write on its own.
    if let Err(source) = file.write_all(format!("{wanted}\n").as_bytes()) {
        return Err(match source.raw_os_error() {
            Some(libc::EINVAL | libc::ENOENT | libc::ERANGE | libc::EPERM | libc::EBUSY | libc::EOPNOTSUPP) => {
                SysctlError::Refused { key: owned(), value: wanted, source }
            }
            _ => SysctlError::Io { key: owned(), source },
        });
    }
    let shown = read(key)?;
    if shown == wanted { Ok(shown) } else { Err(SysctlError::Differs { key: owned(), wanted, shown }) }
}

/// Writes a key's file by a single write, and nothing more: what came of it, reading tells.
///
/// # Errors
/// What the system says, as it says it; `WriteZero` where the kernel took a part only.
pub fn put(path: &std::path::Path, value: &str) -> io::Result<()> {
    let text = format!("{value}\n");
    // Nothing is created: a key that is gone is an error.
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    if file.write(text.as_bytes())? == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::EISDIR))
}

fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::EROFS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(key: &str) -> String {
        path_of(key).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn dots_and_slashes_follow_the_rules_of_systemd() {
        assert_eq!(file("net.ipv4.tcp_rmem"), "/proc/sys/net/ipv4/tcp_rmem");
        assert_eq!(file("net/ipv4/tcp_rmem"), "/proc/sys/net/ipv4/tcp_rmem");
        assert_eq!(file("net.ipv4.conf.eth0/100.rp_filter"), "/proc/sys/net/ipv4/conf/eth0.100/rp_filter");
        assert_eq!(file("net/ipv4/conf/eth0.100/rp_filter"), "/proc/sys/net/ipv4/conf/eth0.100/rp_filter");
    }

    #[test]
    fn a_key_never_leads_out_of_proc_sys() {
        for key in [
            "",
            ".",
            "..",
            "net..ipv4",
            "net/../../etc/passwd",
            "/etc/passwd",
            "net.ipv4.",
            "net.//.x",
            "net ipv4",
            "a\n",
        ] {
            assert!(matches!(path_of(key), Err(SysctlError::BadKey { .. })), "{key:?} gave {:?}", path_of(key));
        }
    }

    #[test]
    fn whitespace_is_normalised() {
        assert_eq!(normalise("4096\t131072\t  6291456\n"), "4096 131072 6291456");
        assert_eq!(normalise("\n"), "");
    }
}
