//! Every network namespace of the machine, as far as this process may see.
//!
//! The kernel has no list before Linux 6.19, so namespaces are found by what holds them: threads, open descriptors, and mounts (`ip netns`,
//! container managers).

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::netns::{NetNs, NetNsError};

/// What holds a namespace: the first thing found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// The calling thread is in it.
    Here,
    /// A thread of this process is in it.
    Process {
        /// Its number.
        pid: u32,
        /// Its name (`comm`).
        name: String,
    },
    /// This process has it open.
    Descriptor {
        /// Its number.
        pid: u32,
        /// Its name (`comm`).
        name: String,
    },
    /// It is mounted here, as `ip netns` does.
    Mount(PathBuf),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("here"),
            Self::Process { pid, name } => write!(f, "{name} (process {pid})"),
            Self::Descriptor { pid, name } => write!(f, "held open by {name} (process {pid})"),
            Self::Mount(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A network namespace and where it was found.
#[derive(Debug, Clone)]
pub struct Place {
    /// The namespace.
    pub namespace: NetNs,
    /// Its identity, as `lsns` shows it.
    pub inode: u64,
    /// What holds it.
    pub holder: Holder,
}

/// What was found.
#[derive(Debug)]
pub struct Everywhere {
    /// Each namespace once; the calling thread's own first.
    pub places: Vec<Place>,
    /// Processes that this one may not look into. Their namespaces are missing, unless something else holds them too.
    pub hidden_processes: usize,
}

/// Looks for every network namespace.
///
/// # Errors
/// Where not even the calling thread's own namespace or `/proc` can be read.
pub fn look() -> Result<Everywhere, NetNsError> {
    let here = NetNs::current()?;
    let inode = here.inode()?;
    let mut search = Search { seen: BTreeSet::from([inode]), places: Vec::new(), hidden: 0 };
    search.places.push(Place { namespace: here, inode, holder: Holder::Here });
    let processes = process_numbers().map_err(|source| NetNsError::Step { step: "list /proc", source })?;
    for pid in &processes {
        search.threads_of(*pid);
    }
    search.mounts();
    for pid in &processes {
        search.descriptors_of(*pid);
    }
    Ok(Everywhere { places: search.places, hidden_processes: search.hidden })
}

fn process_numbers() -> io::Result<Vec<u32>> {
    Ok(numbers_in(Path::new("/proc"))?.collect())
}

fn numbers_in(folder: &Path) -> io::Result<impl Iterator<Item = u32>> {
    Ok(fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// The number in `net:[4026531840]`, which `/proc` shows for a network namespace.
fn inode_of_link(target: &Path) -> Option<u64> {
    target.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

struct Search {
    seen: BTreeSet<u64>,
    places: Vec<Place>,
    hidden: usize,
}

impl Search {
    /// Keeps the namespace that `link` leads to, where it is a new one.
    fn offer(&mut self, link: &Path, holder: impl FnOnce() -> Holder) -> io::Result<()> {
        let Some(inode) = inode_of_link(&fs::read_link(link)?) else { return Ok(()) };
        if !self.seen.contains(&inode) {
            self.keep(NetNs::open(link)?, holder());
        }
        Ok(())
    }

    fn keep(&mut self, namespace: NetNs, holder: Holder) {
        // Between looking and opening another one may have come into its place.
        if let Ok(inode) = namespace.inode()
            && self.seen.insert(inode)
        {
            self.places.push(Place { namespace, inode, holder });
        }
    }

    /// Threads of one process may be in different namespaces. Those that end meanwhile need not be found.
    fn threads_of(&mut self, pid: u32) {
        let tasks = PathBuf::from(format!("/proc/{pid}/task"));
        let Ok(threads) = numbers_in(&tasks) else { return };
        for thread in threads {
            let link = tasks.join(format!("{thread}/ns/net"));
            let offered = self.offer(&link, || Holder::Process { pid, name: name_of(pid) });
            if offered.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
                self.hidden += 1;
                return;
            }
        }
    }

    fn descriptors_of(&mut self, pid: u32) {
        let folder = PathBuf::from(format!("/proc/{pid}/fd"));
        let Ok(descriptors) = numbers_in(&folder) else { return };
        for descriptor in descriptors {
            let _ = self.offer(&folder.join(descriptor.to_string()), || Holder::Descriptor { pid, name: name_of(pid) });
        }
    }

    /// Mounts of namespaces that this process sees: proc_pid_mountinfo(5).
    fn mounts(&mut self) {
        let text = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
        for point in text.lines().filter_map(mounted_namespace) {
            if let Ok(namespace) = NetNs::open(&point) {
                self.keep(namespace, Holder::Mount(point));
            }
        }
    }
}

/// The mount point in a line of mountinfo, where it is one of a network namespace.
fn mounted_namespace(line: &str) -> Option<PathBuf> {
    let mut fields = line.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    inode_of_link(Path::new(root))?;
    Some(PathBuf::from(unescape(point)))
}

/// The kernel writes blanks, tabs, newlines and backslashes in octal (`\040`).
fn unescape(text: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(text.to_owned(), |text, (escape, character)| text.replace(escape, character))
}

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_network_namespaces_count() {
        assert_eq!(inode_of_link(Path::new("net:[4026531840]")), Some(4_026_531_840));
        for other in ["mnt:[4026531841]", "net:[x]", "socket:[12]", "/dev/null", "net:[1"] {
            assert_eq!(inode_of_link(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn mounts_of_network_namespaces_are_picked_out_of_mountinfo() {
        let line = "201 25 0:4 net:[4026532290] /run/netns/two\\040words rw shared:3 - nsfs nsfs rw";
        assert_eq!(mounted_namespace(line), Some(PathBuf::from("/run/netns/two words")));
        assert_eq!(mounted_namespace("24 29 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw"), None);
        assert_eq!(mounted_namespace(""), None);
    }
}
