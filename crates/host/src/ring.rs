//! Sizes of a network card's rings, by `SIOCETHTOOL` (linux/ethtool.h).

use std::io;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_SRINGPARAM: u32 = 0x11;

/// `struct ethtool_ringparam`: descriptors.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RingParam {
    command: u32,
    rx_max: u32,
    rx_mini_max: u32,
    rx_jumbo_max: u32,
    tx_max: u32,
    rx: u32,
    rx_mini: u32,
    rx_jumbo: u32,
    tx: u32,
}

/// The rings of one card, in descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// For packets that come in.
    pub rx: u32,
    /// The most there can be.
    pub rx_max: u32,
    /// For packets that go out.
    pub tx: u32,
    /// The most there can be.
    pub tx_max: u32,
}

/// The rings of a device of the calling thread's namespace; `None`: no such device, or one without rings.
///
/// # Errors
/// What the kernel answers.
pub fn rings(device: &str) -> io::Result<Option<Rings>> {
    match call(device, RingParam { command: ETHTOOL_GRINGPARAM, ..RingParam::default() }) {
        Ok(found) => Ok(Some(Rings { rx: found.rx, rx_max: found.rx_max, tx: found.tx, tx_max: found.tx_max })),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENODEV)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets the sizes that are named; the others stay. Many drivers restart the card for it: the link is down for a moment.
///
/// # Errors
/// What the kernel answers: `EINVAL` above the largest, or for a size that the card doesn't have.
pub fn set_rings(device: &str, rx: Option<u32>, tx: Option<u32>) -> io::Result<()> {
    let mut rings = call(device, RingParam { command: ETHTOOL_GRINGPARAM, ..RingParam::default() })?;
    rings.command = ETHTOOL_SRINGPARAM;
    rings.rx = rx.unwrap_or(rings.rx);
    rings.tx = tx.unwrap_or(rings.tx);
    call(device, rings).map(drop)
}

fn call(device: &str, mut rings: RingParam) -> io::Result<RingParam> {
    if device.len() >= libc::IFNAMSIZ || device.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let data = (&raw mut rings).cast();
    let mut request = libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: data } };
    // SAFETY: `request` is a whole ifreq with a NUL-terminated name; its data points at `rings`, which is as large as the kernel reads and
    // writes for both commands, and outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    Errno::result(result)?;
    Ok(rings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_or_has_no_rings_has_none() {
        assert_eq!(rings("lo").unwrap(), None);
        assert_eq!(rings("no-such-dev").unwrap(), None);
        assert_eq!(rings("a-name-that-no-device-has").unwrap(), None);
        assert!(set_rings("lo", Some(1), None).is_err());
    }
}
