//! A TUN device with segmentation offload, in the namespace of the calling thread.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Frames that wait in the device for the emulator. A full device drops outside the model, which makes a run invalid, and a
/// sender without pacing fills it with its whole window at once.
const TX_QUEUE_FRAMES: u32 = 200_000;

/// Why the device could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The kernel has no TUN, or /dev/net/tun is missing.
    #[error(
        "this kernel offers no TUN device (/dev/net/tun): load it with `sudo modprobe tun`, or in a container add `--device /dev/net/tun`"
    )]
    Missing(#[source] std::io::Error),
    /// No permission.
    #[error(
        "no permission for /dev/net/tun: run with sudo, or `sudo chmod 666 /dev/net/tun` (what Debian and Ubuntu ship) and user namespaces for the rest"
    )]
    Permission(#[source] std::io::Error),
    /// The node is there and is something else.
    #[error("/dev/net/tun is not the TUN device: make it anew with `sudo mknod /dev/net/tun c 10 200`")]
    NotTun(#[source] std::io::Error),
    /// Anything else.
    #[error("TUN device {name}: {source}")]
    Other {
        /// The device's name.
        name: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// A TUN device; clones share it. It is gone with the last clone.
#[derive(Clone)]
pub struct Tun {
    device: Arc<SyncDevice>,
}

impl Tun {
    /// Makes `name` with `address`/24 in the calling thread's network namespace, up, with segmentation and checksum offload.
    ///
    /// # Errors
    /// [`TunError`], which says what is missing and how to get it.
    pub fn create(name: &str, address: Ipv4Addr, mtu: u16) -> Result<Self, TunError> {
        let device = DeviceBuilder::new()
            .name(name)
            .layer(Layer::L3)
            .ipv4(address, 24, None)
            .mtu(mtu)
            .offload(true)
            .build_sync()
            .map_err(|error| TunError::from_io(name, error))?;
        device.set_nonblocking(true).map_err(|error| TunError::from_io(name, error))?;
        host::link::set_tx_queue_len(name, TX_QUEUE_FRAMES)
            .map_err(|source| TunError::Other { name: name.to_owned(), source })?;
        Ok(Self { device: Arc::new(device) })
    }
}

impl TunError {
    fn from_io(name: &str, error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Self::Missing(error),
            Some(libc::ENOTTY) => Self::NotTun(error),
            // Opening the node is refused with EACCES; EPERM comes from what is done to the device then.
            Some(libc::EACCES) => Self::Permission(error),
            _ => Self::Other { name: name.to_owned(), source: error },
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
