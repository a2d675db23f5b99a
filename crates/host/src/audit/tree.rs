//! Files of this machine, or of a folder that holds a copy of another one's.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use facts::Fact;

/// No file of `/proc` or `/sys` that is read here is larger.
const LARGEST: u64 = 8 << 20;

/// Where files are read.
#[derive(Debug, Clone)]
pub struct Tree {
    top: PathBuf,
}

impl Tree {
    /// This machine.
    pub fn of_this_host() -> Self {
        Self::under(Path::new("/"))
    }

    /// A copy of a machine's files under `top`.
    pub fn under(top: &Path) -> Self {
        Self { top: top.to_owned() }
    }

    /// Whether it is this machine: only then can anything be asked by netlink or ioctl.
    pub fn is_this_host(&self) -> bool {
        self.top == Path::new("/")
    }

    /// The place of `path`, which starts with `/`.
    pub fn place(&self, path: &str) -> PathBuf {
        self.top.join(path.trim_start_matches('/'))
    }

    /// A file's text; bytes that are no text are replaced.
    ///
    /// # Errors
    /// What reading it gives; `FileTooLarge` for what can't be meant.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        fs::File::open(self.place(path))?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// A file's text, made into a value; where that fails, the reason.
    pub fn fact<T>(&self, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
        match self.read(path) {
            Ok(text) => Fact::of(path, parse(&text).ok_or("it does not look as expected")),
            Err(error) => Fact::missing(path, sentence(&error)),
        }
    }

    /// Whether there is something at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.place(path).symlink_metadata().is_ok()
    }

    /// The names in a folder, sorted; none where it can't be read.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(folder) = fs::read_dir(self.place(path)) else { return Vec::new() };
        let mut names: Vec<_> = folder.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// An error without the operating system's number.
pub(super) fn sentence(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => nix::errno::Errno::from_raw(code).desc().to_lowercase(),
        None => error.to_string(),
    }
}
