use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;

use super::{TCP_CC_INFO, option_bytes};

/// `TCP_CA_NAME_MAX` of include/net/tcp.h, the final NUL included.
const NAME_MAX: usize = 16;

/// Why a socket did not take a congestion control.
#[derive(Debug, thiserror::Error)]
pub enum SetCongestionControlError {
    /// The kernel has none of that name.
    #[error("this kernel has no congestion control `{name}`{}", it_has(.available))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What the kernel has loaded; empty where it could not be read.
        available: Vec<String>,
    },
    /// It exists but is reserved for processes with `CAP_NET_ADMIN`.
    #[error(
        "congestion control `{name}` is not open to ordinary users here: sysctl net.ipv4.tcp_allowed_congestion_control \
         does not list it, and this process lacks CAP_NET_ADMIN"
    )]
    NotAllowed {
        /// What was asked for.
        name: String,
    },
    /// Another error of setsockopt(2).
    #[error("set congestion control `{name}`: {source}")]
    Io {
        /// What was asked for.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
}

fn it_has(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" (it has {})", names.join(", ")) }
}

/// Makes a socket use the congestion control `name` (`TCP_CONGESTION`, tcp(7)). A process with `CAP_NET_ADMIN` in the initial
/// user namespace makes the kernel load the module `tcp_NAME` where it has to.
///
/// # Errors
/// [`SetCongestionControlError`]; the list of what the kernel has is read in the calling thread's network namespace.
pub fn set_congestion_control(socket: impl AsFd, name: &str) -> Result<(), SetCongestionControlError> {
    let unknown = || SetCongestionControlError::Unknown {
        name: name.to_owned(),
        available: crate::cc::available().unwrap_or_default(),
    };
    // The kernel would cut a longer name and might then find another control.
    if name.is_empty() || name.len() >= NAME_MAX {
        return Err(unknown());
    }
    // SAFETY: pointer and length describe the bytes of `name`, which live through the call; the descriptor is open while borrowed.
    let result = unsafe {
        let socket = socket.as_fd().as_raw_fd();
        let length = name.len() as libc::socklen_t;
        libc::setsockopt(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), length)
    };
    match Errno::result(result) {
        Ok(_) => Ok(()),
        Err(Errno::ENOENT) => Err(unknown()),
        Err(Errno::EPERM) => Err(SetCongestionControlError::NotAllowed { name: name.to_owned() }),
        Err(other) => Err(SetCongestionControlError::Io { name: name.to_owned(), source: other.into() }),
    }
}

/// The name of the congestion control that a socket uses now.
///
/// # Errors
/// What getsockopt(2) says.
pub fn congestion_control(socket: impl AsFd) -> io::Result<String> {
    let mut name = [0; NAME_MAX];
    let length = option_bytes(socket.as_fd().as_raw_fd(), libc::TCP_CONGESTION, &mut name)?;
    let name = &name[..length];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// What a congestion control says about itself through `TCP_CC_INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CcInfo {
    length: usize,
    version: u8,
}

/// `struct tcp_bbr_info` of mainline, five words.
const BBR1_LENGTH: usize = 20;
/// The same of BBRv2 and BBRv3 (google/bbr), which starts with those five words and goes on.
const BBR3_LENGTH: usize = 52;
const VERSION_OFFSET: usize = 39;

impl CcInfo {
    /// From the bytes that the kernel copied out into a buffer of at least 64: it cuts silently, so that a shorter buffer would
    /// make every BBR look like version 1.
    fn from_bytes(bytes: &[u8]) -> Self {
        Self { length: bytes.len(), version: bytes.get(VERSION_OFFSET).copied().unwrap_or(0) }
    }

    /// How many bytes the control gives; none for those without state to show, and for every one written in BPF.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Which BBR this is, by the shape of what it shows; `None` for anything else.
    pub fn bbr_version(&self) -> Option<u8> {
        match (self.length, self.version) {
            (BBR1_LENGTH, _) => Some(1),
            (BBR3_LENGTH, version @ (2 | 3)) => Some(version),
            _ => None,
        }
    }
}

/// What the congestion control of a socket says about itself.
///
/// # Errors
/// What getsockopt(2) says.
pub fn cc_info(socket: impl AsFd) -> io::Result<CcInfo> {
    let mut bytes = [0; 64];
    let length = option_bytes(socket.as_fd().as_raw_fd(), TCP_CC_INFO, &mut bytes)?;
    Ok(CcInfo::from_bytes(&bytes[..length]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bbr_versions_are_told_apart_by_length_and_version_byte() {
        let mut v3 = [0u8; 52];
        v3[39] = 3;
        assert_eq!(CcInfo::from_bytes(&v3).bbr_version(), Some(3));
        v3[39] = 2;
        assert_eq!(CcInfo::from_bytes(&v3).bbr_version(), Some(2));
        assert_eq!(CcInfo::from_bytes(&[7; 20]).bbr_version(), Some(1));
    }

    #[test]
    fn other_controls_are_not_taken_for_bbr() {
        assert_eq!(CcInfo::from_bytes(&[]).bbr_version(), None);
        assert_eq!(CcInfo::from_bytes(&[3; 16]).bbr_version(), None, "vegas and dctcp give 16 bytes");
        assert_eq!(CcInfo::from_bytes(&[9; 52]).bbr_version(), None, "no BBR has version 9");
        assert_eq!(CcInfo::from_bytes(&[3; 40]).bbr_version(), None);
    }
}
