//! One run at a time: a lock on a file of the state directory, which the kernel gives up with the process.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use tuning::transaction::STATE;

use crate::Live;

/// The right to change something. Given up when dropped.
#[derive(Debug)]
pub struct Lock {
    _file: Flock<File>,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run has it.
    #[error("another linerate is at work: {0}. Wait for its end")]
    Held(String),
    /// The system refuses.
    #[error("can't lock {STATE}/lock: {0}")]
    Io(#[from] io::Error),
}

impl Lock {
    /// Takes the lock; `command` is what others are told.
    ///
    /// # Errors
    /// [`LockError::Held`] at once where another run has it.
    pub fn take(live: &Live, command: &str) -> Result<Self, LockError> {
        Self::get(live, command, FlockArg::LockExclusiveNonblock)
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// [`LockError::Io`].
    pub fn wait(live: &Live, command: &str) -> Result<Self, LockError> {
        Self::get(live, command, FlockArg::LockExclusive)
    }

    fn get(live: &Live, command: &str, how: FlockArg) -> Result<Self, LockError> {
        let path = live.place(&format!("{STATE}/lock"));
        loop {
            let folder = live.place(STATE);
            if !folder.is_dir() {
                DirBuilder::new().recursive(true).mode(0o755).create(folder.parent().unwrap_or(&folder))?;
                match DirBuilder::new().mode(0o700).create(&folder) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    result => result?,
                }
            }
            let mut open = OpenOptions::new();
            open.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = open.custom_flags(nix::libc::O_NOFOLLOW).open(&path)?;
            let mut file = match Flock::lock(file, how) {
                Ok(file) => file,
                Err((mut file, Errno::EWOULDBLOCK)) => {
                    let mut who = String::new();
                    let _ = Read::by_ref(&mut file).take(200).read_to_string(&mut who);
                    return Err(LockError::Held(if who.is_empty() {
                        "a process that has just begun".into()
                    } else {
                        who
                    }));
                }
                Err((_, errno)) => return Err(io::Error::from(errno).into()),
            };
            // Between opening and locking, `uninstall` may have removed the file.
            let same = fs::metadata(&path).is_ok_and(|there| file.metadata().is_ok_and(|own| own.ino() == there.ino()));
            if same {
                // For people; whether it can be written doesn't matter.
                let _ = file.set_len(0).and_then(|()| file.rewind());
                let _ = write!(file, "{command} (process {})", std::process::id());
                return Ok(Self { _file: file });
            }
        }
    }
}
