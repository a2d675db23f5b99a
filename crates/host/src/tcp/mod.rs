//! TCP sockets: what the kernel tells about one, and which congestion control it runs.

mod congestion;
pub mod diag;
mod info;
mod memory;
mod sockets;

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::errno::Errno;
use units::{Bytes, Rate};

pub use congestion::{CcInfo, SetCongestionControlError, cc_info, congestion_control, set_congestion_control};
pub use info::{CaState, RawTcpInfo, TcpInfo};
pub use memory::TcpMemory;
pub use sockets::{ControlUsers, control_users};

/// `TCP_CC_INFO` of include/uapi/linux/tcp.h, which the libc crate does not name.
const TCP_CC_INFO: libc::c_int = 26;

/// Limits the data that a socket queues and has not sent; the socket is writable below it (`TCP_NOTSENT_LOWAT`, tcp(7)).
///
/// # Errors
/// What setsockopt(2) says; `InvalidInput` above 4 GiB.
pub fn set_notsent_lowat(socket: impl AsFd, limit: Bytes) -> io::Result<()> {
    let limit = libc::c_uint::try_from(limit.as_u64()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let length = size_of_val(&limit) as libc::socklen_t;
    // SAFETY: the pointer and length describe `limit`, which lives through the call; the descriptor is open while borrowed.
    let result = unsafe {
        let socket = socket.as_fd().as_raw_fd();
        libc::setsockopt(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, (&raw const limit).cast(), length)
    };
    Ok(Errno::result(result).map(drop)?)
}

/// Limits how fast a socket sends, by pacing in the kernel (`SO_MAX_PACING_RATE`, socket(7)).
///
/// # Errors
/// What setsockopt(2) says.
pub fn set_max_pacing_rate(socket: impl AsFd, limit: Rate) -> io::Result<()> {
    let bytes_per_second: u64 = limit.as_bps() / 8;
    let length = size_of_val(&bytes_per_second) as libc::socklen_t;
    // SAFETY: the pointer and length describe `bytes_per_second`, which lives through the call; the descriptor is open while borrowed.
    let result = unsafe {
        let socket = socket.as_fd().as_raw_fd();
        libc::setsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const bytes_per_second).cast(),
            length,
        )
    };
    Ok(Errno::result(result).map(drop)?)
}

/// getsockopt(2) on the TCP level into `bytes`; how many were filled.
fn option_bytes(socket: RawFd, option: libc::c_int, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: `bytes` is writable for `length` bytes, the kernel writes at most that many and puts their count into `length`.
    let result =
        unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, option, bytes.as_mut_ptr().cast(), &raw mut length) };
    Errno::result(result)?;
    Ok(length as usize)
}
