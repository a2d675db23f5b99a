//! Generic receive offload, which would put packets together again that were split on purpose (ethtool's ioctl).

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// `include/uapi/linux/ethtool.h`.
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    cmd: u32,
    data: u32,
}

mod ioctl {
    nix::ioctl_readwrite_bad!(ethtool, libc::SIOCETHTOOL, libc::ifreq);
}

/// Switches receive offload off for `device` in the calling thread's namespace, and looks whether it is.
///
/// # Errors
/// The kernel's answer, or that it stays on.
pub fn disable_gro(device: &str) -> io::Result<()> {
    ethtool(device, ETHTOOL_SGRO, 0)?;
    match ethtool(device, ETHTOOL_GGRO, 0)? {
        0 => Ok(()),
        _ => Err(io::Error::other("it stays on")),
    }
}

fn ethtool(device: &str, cmd: u32, data: u32) -> io::Result<u32> {
    if device.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    let mut value = EthtoolValue { cmd, data };
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() };
    let mut request = libc::ifreq { ifr_name: name, ifr_ifru };
    // SAFETY: `request` is a whole ifreq with a NUL-terminated name, and points to `value`, a whole ethtool_value, which is all that
    // the two commands read and write; both outlive the call.
    unsafe { ioctl::ethtool(socket.as_raw_fd(), &raw mut request) }?;
    Ok(value.data)
}
