//! The file system in which loaded BPF objects stay without a process: mounting it, locking it, and pins in it.
//!
//! Linux: kernel/bpf/inode.c. Names may not contain a dot there (`bpf_lookup`).

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount, umount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use nix::sys::statvfs::FsFlags;

use crate::LoadError;
use crate::error::path_step;

/// Where everybody mounts it, and the kernel makes a folder for it.
pub const PATH: &str = "/sys/fs/bpf";

/// What is at [`PATH`] for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The file system, and it can be written.
    Mounted,
    /// An empty folder.
    NotMounted,
    /// The file system, read-only.
    ReadOnly,
    /// Nothing.
    Absent,
}

/// Looks at [`PATH`].
pub fn state() -> State {
    match statfs(PATH) {
        Ok(found) if found.filesystem_type() == BPF_FS_MAGIC => {
            if found.flags().contains(FsFlags::ST_RDONLY) {
                State::ReadOnly
            } else {
                State::Mounted
            }
        }
        Ok(_) => State::NotMounted,
        Err(_) => State::Absent,
    }
}

/// Mounts it where it is not, with the options systemd uses. `true` where it had to.
///
/// # Errors
/// [`LoadError::NoBpffs`], [`LoadError::BpffsReadOnly`], [`LoadError::NotPermitted`].
pub fn ensure_mounted() -> Result<bool, LoadError> {
    match state() {
        State::Mounted => return Ok(false),
        State::ReadOnly => return Err(LoadError::BpffsReadOnly),
        State::Absent => return Err(LoadError::NoBpffs),
        State::NotMounted => {}
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RELATIME;
    match mount(Some("bpf"), PATH, Some("bpf"), flags, Some("mode=700")) {
        Ok(()) => Ok(true),
        Err(Errno::EPERM | Errno::EACCES) => Err(LoadError::NotPermitted),
        Err(Errno::ENODEV) => Err(LoadError::NoBpffs),
        Err(other) => Err(LoadError::Step { step: "mount bpffs at /sys/fs/bpf", source: other.into() }),
    }
}

/// The right to change what is loaded, held by one process at a time: every loader waits for it. Gone with the value, and with the process.
#[derive(Debug)]
pub struct Exclusive {
    /// Nobody reads it: closing it ends the lock. None once it is given back.
    lock: Option<Flock<File>>,
    mounted_now: bool,
}

impl Exclusive {
    /// Mounts bpffs where it is not, and waits until nobody else changes what is loaded.
    ///
    /// # Errors
    /// [`LoadError`]; nothing is changed then.
    pub fn wait() -> Result<Self, LoadError> {
        let mounted_now = ensure_mounted()?;
        let directory = match File::open(PATH) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(LoadError::NotPermitted),
            other => other.map_err(path_step("open", PATH))?,
        };
        let lock = Flock::lock(directory, FlockArg::LockExclusive)
            .map_err(|(_, errno)| path_step("lock", PATH)(errno.into()))?;
        Ok(Self { lock: Some(lock), mounted_now })
    }

    /// Whether bpffs was mounted for this.
    pub fn mounted_now(&self) -> bool {
        self.mounted_now
    }

    /// Gives the lock back after a failure, and unmounts what was mounted for it.
    pub fn undo(mut self) {
        // An open descriptor would keep it mounted.
        self.lock = None;
        if std::mem::take(&mut self.mounted_now) {
            // Where somebody else has begun to use it meanwhile, it stays.
            let _ = umount(PATH);
        }
    }
}

impl Drop for Exclusive {
    /// A mount in which nothing was left, as where there was nothing to unload, goes again.
    fn drop(&mut self) {
        self.lock = None;
        if self.mounted_now && is_unused() {
            let _ = umount(PATH);
        }
    }
}

/// Whether nothing is pinned: the kernel itself puts `maps.debug` and `progs.debug` there (kernel/bpf/preload, 5.10 and later).
fn is_unused() -> bool {
    let own = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name() == "maps.debug" || entry.file_name() == "progs.debug")
    };
    fs::read_dir(PATH).is_ok_and(|mut inside| inside.all(own))
}

/// Gives a BPF object a name in bpffs, by which it stays.
pub(crate) fn pin(object: impl AsFd, path: &Path) -> Result<(), LoadError> {
    let text = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| path_step("pin", path)(io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: the descriptor is open while borrowed, the path ends with NUL, and the call keeps neither.
    let result = unsafe { libbpf_sys::bpf_obj_pin(object.as_fd().as_raw_fd(), text.as_ptr()) };
    if result == 0 {
        return Ok(());
    }
    match Errno::from_raw(-result) {
        Errno::EROFS => Err(LoadError::BpffsReadOnly),
        other => Err(path_step("pin", path)(other.into())),
    }
}

/// Makes a folder and those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), LoadError> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => LoadError::BpffsReadOnly,
        io::ErrorKind::PermissionDenied => LoadError::NotPermitted,
        _ => path_step("make", path)(error),
    })
}
