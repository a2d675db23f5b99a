//! All that a transaction looks at and does, one call for each system call that changes something: so a test can count them, and let
//! any of them fail.

use std::io;

use crate::journal::{Ring, Tree};

/// What is at a path, the last link not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A regular file.
    File {
        /// What is in it.
        bytes: Vec<u8>,
        /// The lower twelve bits of its mode.
        mode: u32,
        /// Whether it belongs to who runs this, or to root.
        own: bool,
    },
    /// A directory.
    Folder {
        /// The lower twelve bits of its mode.
        mode: u32,
        /// Whether it belongs to who runs this, or to root.
        own: bool,
    },
    /// A symbolic link, and what is written in it.
    Link(String),
    /// A device, a pipe, a socket.
    Other,
}

/// The machine, or a part of it, or a test's. Paths begin with `/`.
///
/// Methods that take `&self` only look.
pub trait World {
    /// An open file.
    type File;

    /// What is at a path.
    ///
    /// # Errors
    /// Where it can't be told.
    fn look(&self, path: &str) -> io::Result<Found>;

    /// The names in a directory, in any order; none where it isn't there.
    ///
    /// # Errors
    /// Where it can't be read.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;

    /// A key's value, whitespace normalised; `None`: there is no such key.
    ///
    /// # Errors
    /// Where it can't be read.
    fn sysctl(&self, key: &str) -> io::Result<Option<String>>;

    /// A device's disciplines; `None`: there is no such device.
    ///
    /// # Errors
    /// Where they can't be read.
    fn queues(&self, device: &str) -> io::Result<Option<Tree>>;

    /// The size of a ring and the largest possible; `None`: no such device, or it has none.
    ///
    /// # Errors
    /// Where it can't be read.
    fn ring(&self, device: &str, ring: Ring) -> io::Result<Option<(u32, u32)>>;

    /// The boot's id.
    fn boot_id(&self) -> String;

    /// `CLOCK_BOOTTIME` in nanoseconds.
    fn boottime_ns(&self) -> u64;

    /// Whether somebody undoes a transaction that waits, once its time is over.
    fn is_watched(&self, id: u32) -> bool;

    /// Whether nothing can be written below a path.
    fn is_read_only(&self, path: &str) -> bool;

    /// Makes a directory; the one above is there.
    ///
    /// # Errors
    /// What the system says, as for every method below.
    fn make_folder(&mut self, path: &str, mode: u32) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_folder(&mut self, path: &str) -> io::Result<()>;
    /// Creates a file that isn't there, with these permissions whatever the umask is.
    fn create(&mut self, path: &str, mode: u32) -> io::Result<Self::File>;
    /// Opens a file to write at its end.
    fn open_end(&mut self, path: &str) -> io::Result<Self::File>;
    /// Writes some of the bytes; how many.
    fn write(&mut self, file: &mut Self::File, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts a file to a length.
    fn cut(&mut self, file: &mut Self::File, length: u64) -> io::Result<()>;
    /// Waits until a file is on the disk.
    fn sync(&mut self, file: &mut Self::File) -> io::Result<()>;
    /// Waits until a directory's names are on the disk.
    fn sync_folder(&mut self, path: &str) -> io::Result<()>;
    /// Gives a file another name, in place of what has it.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file or a link.
    fn remove(&mut self, path: &str) -> io::Result<()>;
    /// Makes a symbolic link.
    fn link(&mut self, path: &str, target: &str) -> io::Result<()>;
    /// Sets a key by a single write.
    fn set_sysctl(&mut self, key: &str, value: &str) -> io::Result<()>;
    /// Gives a device a first discipline of this kind, with the handle [`HANDLE`](super::HANDLE).
    fn set_root(&mut self, device: &str, kind: &str) -> io::Result<()>;
    /// Gives one queue of the `mq` with that handle a discipline; queues count from 0.
    fn set_leaf(&mut self, device: &str, queue: usize, kind: &str) -> io::Result<()>;
    /// Takes a device's first discipline away, so that the kernel puts its own default there.
    fn reset_root(&mut self, device: &str) -> io::Result<()>;
    /// Sets the size of a ring.
    fn set_ring(&mut self, device: &str, ring: Ring, size: u32) -> io::Result<()>;
    /// Has the service manager read its units again, where there is one.
    fn reload_units(&mut self) -> io::Result<()>;
    /// Starts what undoes the transaction at its deadline, and waits until it watches.
    fn start_guard(&mut self, id: u32) -> io::Result<()>;
}
