//! A folder as the tree of files that `tuning` reads.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use host::why::why;
use tuning::effective::{Entry, Root, Unreadable};

/// Larger files are none that set sysctls.
pub const LARGEST: u64 = 16 << 20;

/// A folder on disk. Links are resolved by the reader, inside of it.
pub struct Disk {
    top: PathBuf,
}

impl Disk {
    /// The tree under `top`.
    pub fn new(top: &Path) -> Self {
        Self { top: top.to_owned() }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.top.join(path.trim_start_matches('/'))
    }
}

fn unreadable(error: &io::Error) -> Unreadable {
    Unreadable(why(error))
}

impl Root for Disk {
    fn entry(&self, path: &str) -> Result<Option<Entry>, Unreadable> {
        let place = self.place(path);
        let kind = match fs::symlink_metadata(&place) {
            Ok(metadata) => metadata.file_type(),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(unreadable(&error)),
        };
        Ok(Some(if kind.is_symlink() {
            Entry::Link(fs::read_link(&place).map_err(|e| unreadable(&e))?.to_string_lossy().into_owned())
        } else if kind.is_dir() {
            Entry::Directory
        } else if kind.is_file() {
            Entry::File
        } else {
            Entry::Other
        }))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Unreadable> {
        read(&self.place(path)).map_err(|error| unreadable(&error))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unreadable> {
        let entries = fs::read_dir(self.place(path)).map_err(|e| unreadable(&e))?;
        Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }
}

/// Reads a file of a sensible size; never waits for a pipe or a device that lies somewhere. What the caller handed over open,
/// such as the shell's `<(command)`, is read to its end.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if is_handed_over(path) {
        return read_all(fs::File::open(path)?);
    }
    let file = fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    read_all(file)
}

fn is_handed_over(path: &Path) -> bool {
    let folders = ["/dev/fd", "/proc/self/fd"];
    path == Path::new("/dev/stdin")
        || path.parent().is_some_and(|folder| folders.iter().any(|f| folder == Path::new(f)))
}

/// Reads at most [`LARGEST`].
pub fn read_all(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        let what = format!("it is larger than {}: no file that sets sysctls is", units::Bytes::new(LARGEST));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}
