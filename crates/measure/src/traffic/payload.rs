use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::sendfile::sendfile64;
use socket2::Socket;

/// The most one call hands to the kernel.
pub(crate) const BLOCK: usize = 512 * 1024;
/// The most one call discards.
const DISCARD: usize = 4 * 1024 * 1024;

/// What flows send: one block of memory, in a file, from which the kernel takes pages by reference.
///
/// sendfile(2) spares the copy into the socket. With a BDP of 125 MB queued, that copy would go through cold memory twice, here and
/// in whoever reads the packets, and cost about a third of the sender's time at 10 Gbit/s.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    file: Arc<OwnedFd>,
}

impl Payload {
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd_create(c"linerate-payload", MFdFlags::MFD_CLOEXEC)?;
        let mut file = std::fs::File::from(file);
        file.write_all(&vec![0x6c; BLOCK])?;
        Ok(Self { file: Arc::new(file.into()) })
    }

    /// Hands up to `most` bytes to a non-blocking socket; how many it took.
    pub(crate) fn send(&self, socket: &Socket, most: u64) -> io::Result<u64> {
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(BLOCK);
        Ok(sendfile64(socket.as_fd(), self.file.as_fd(), Some(&mut 0), count)? as u64)
    }
}

/// Room for received data, which never arrives there.
#[derive(Debug)]
pub(crate) struct Discard {
    nowhere: Vec<MaybeUninit<u8>>,
}

impl Discard {
    pub(crate) fn new() -> Self {
        // Only the length counts; the memory is never touched, and so never becomes real.
        Self { nowhere: vec![MaybeUninit::uninit(); DISCARD] }
    }

    /// Takes up to `most` bytes out of a socket without copying them (`MSG_TRUNC`, tcp(7)); how many there were, 0 at the end.
    pub(crate) fn receive(&mut self, socket: &Socket, most: u64) -> io::Result<u64> {
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(DISCARD);
        Ok(socket.recv_with_flags(&mut self.nowhere[..count], libc::MSG_TRUNC | libc::MSG_DONTWAIT)? as u64)
    }
}
