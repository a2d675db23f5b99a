//! Where files come from.

use std::collections::BTreeMap;
use std::fmt;

/// What a path is, links not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link and its target, as it is written.
    Link(String),
    /// A device, a pipe, a socket.
    Other,
}

/// Why something could not be read: a sentence without its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// A tree of files. Paths start with `/` and mean places in the tree; no method follows a link in the last component, and
/// callers resolve the others, so that a link in the tree never leads out of it.
pub trait Root {
    /// What is at `path`; `None`: nothing.
    ///
    /// # Errors
    /// Where it can't be told.
    fn entry(&self, path: &str) -> Result<Option<Entry>, Unreadable>;

    /// The bytes of the file at `path`.
    ///
    /// # Errors
    /// Where it can't be read, or is too large.
    fn read(&self, path: &str) -> Result<Vec<u8>, Unreadable>;

    /// The names in the directory at `path`, in any order.
    ///
    /// # Errors
    /// Where it can't be read.
    fn list(&self, path: &str) -> Result<Vec<String>, Unreadable>;
}

/// What a path leads to once every link is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// A file at this path.
    File(String),
    /// A directory at this path.
    Directory(String),
    /// `/dev/null`: how files are masked.
    Null,
    /// Nothing; for a link, its target is missing.
    Missing,
    /// A device, a pipe, a socket.
    Other,
    /// More than 40 links: they lead in a circle.
    Circle,
}

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// Follows links inside the tree; an absolute target starts at its top.
///
/// # Errors
/// Where the tree can't be read.
pub fn resolve(root: &(impl Root + ?Sized), path: &str) -> Result<Resolved, Unreadable> {
    let mut todo: Vec<String> = parts(path).rev().map(str::to_owned).collect();
    let mut done = String::new();
    let mut links = 0;
    while let Some(part) = todo.pop() {
        if part == ".." {
            done.truncate(done.rfind('/').unwrap_or(0));
            continue;
        }
        let here = format!("{done}/{part}");
        // A tree need not have a /dev for files to be masked by a link there.
        if here == "/dev" && todo == ["null"] {
            return Ok(Resolved::Null);
        }
        match root.entry(&here)? {
            None => return Ok(Resolved::Missing),
            Some(Entry::Link(target)) => {
                links += 1;
                if links > MOST_LINKS {
                    return Ok(Resolved::Circle);
                }
                if target.starts_with('/') {
                    done.clear();
                }
                todo.extend(parts(&target).rev().map(str::to_owned));
            }
            Some(Entry::Directory) => done = here,
            Some(_) if !todo.is_empty() => return Ok(Resolved::Missing),
            Some(Entry::File) => return Ok(Resolved::File(here)),
            Some(Entry::Other) => return Ok(Resolved::Other),
        }
    }
    Ok(Resolved::Directory(if done.is_empty() { "/".to_owned() } else { done }))
}

fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// Reads the file that `path` leads to; `None`: there is none.
///
/// # Errors
/// Where it can't be read.
pub fn read_file(root: &(impl Root + ?Sized), path: &str) -> Result<Option<Vec<u8>>, Unreadable> {
    match resolve(root, path)? {
        Resolved::File(file) => root.read(&file).map(Some),
        _ => Ok(None),
    }
}

/// A tree in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryRoot {
    entries: BTreeMap<String, (Entry, Vec<u8>)>,
}

impl MemoryRoot {
    /// Nothing but the top.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a file and the directories above it.
    #[must_use]
    pub fn file(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        self.with(path, Entry::File, text.as_ref())
    }

    /// With a symbolic link.
    #[must_use]
    pub fn link(self, path: &str, target: &str) -> Self {
        self.with(path, Entry::Link(target.to_owned()), b"")
    }

    /// With a directory.
    #[must_use]
    pub fn directory(self, path: &str) -> Self {
        self.with(path, Entry::Directory, b"")
    }

    fn with(mut self, path: &str, entry: Entry, bytes: &[u8]) -> Self {
        for (at, _) in path.match_indices('/').skip(1) {
            self.entries.entry(path[..at].to_owned()).or_insert((Entry::Directory, Vec::new()));
        }
        self.entries.insert(path.to_owned(), (entry, bytes.to_vec()));
        self
    }
}

impl Root for MemoryRoot {
    fn entry(&self, path: &str) -> Result<Option<Entry>, Unreadable> {
        Ok(self.entries.get(path).map(|(entry, _)| entry.clone()))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Unreadable> {
        match self.entries.get(path) {
            Some((Entry::File, bytes)) => Ok(bytes.clone()),
            _ => Err(Unreadable("no such file".to_owned())),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unreadable> {
        let under = format!("{}/", path.trim_end_matches('/'));
        let names = self.entries.keys().filter_map(|key| key.strip_prefix(&under)).filter(|rest| !rest.contains('/'));
        Ok(names.map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside_the_tree_and_circles_end() {
        let root = MemoryRoot::new()
            .file("/usr/lib/sysctl.d/a.conf", "x")
            .link("/lib", "usr/lib")
            .link("/etc/a", "/lib/sysctl.d/../sysctl.d/a.conf")
            .link("/etc/out", "../../../../etc/a")
            .link("/etc/null", "/dev/null")
            .link("/etc/gone", "nothing")
            .link("/etc/c1", "c2")
            .link("/etc/c2", "c1");
        let to = |path: &str| resolve(&root, path).unwrap();
        let file = Resolved::File("/usr/lib/sysctl.d/a.conf".to_owned());
        assert_eq!(to("/lib/sysctl.d/a.conf"), file);
        assert_eq!(to("/etc/a"), file);
        assert_eq!(to("/etc/out"), file);
        assert_eq!(to("/etc/null"), Resolved::Null);
        assert_eq!(to("/etc/gone"), Resolved::Missing);
        assert_eq!(to("/etc/c1"), Resolved::Circle);
        assert_eq!(to("/etc/a/b"), Resolved::Missing);
        assert_eq!(to("/lib"), Resolved::Directory("/usr/lib".to_owned()));
        assert_eq!(to("/"), Resolved::Directory("/".to_owned()));
    }
}
