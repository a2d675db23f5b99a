//! Which files are read, and in which order.
//!
//! systemd `src/basic/conf-files.c` and procps `PreloadSystem` agree: all directories' files in the order of their base names, and
//! of several with one base name the first directory's only. systemd passes over names that start with a dot.

use std::collections::BTreeMap;

use super::reader::Dialect;
use super::root::{Resolved, Root, Unreadable, resolve};

/// The directories, the strongest first.
pub const DIRECTORIES: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];

/// A file that is read, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfFile {
    /// Its path, links not followed.
    pub path: String,
    /// What becomes of it.
    pub state: State,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is read; the path behind its links, where there are any.
    Read {
        /// The file behind the links.
        target: String,
    },
    /// A file of the same name in a stronger directory stands in its place.
    Masked {
        /// That file.
        by: String,
    },
    /// It is a link to `/dev/null`: it masks others and sets nothing.
    Null,
    /// A link whose target is missing: it masks others and sets nothing.
    Dangling,
    /// Links in a circle, a directory or a device: it masks others and can't be read.
    NoFile(&'static str),
    /// It can't be read.
    Unreadable(String),
}

/// All files of the directories in the order of reading, masked ones behind the one that masks them.
pub fn files(root: &(impl Root + ?Sized), dialect: Dialect) -> Vec<ConfFile> {
    files_of(root, &DIRECTORIES, dialect)
}

/// The same for other directories: `modules-load.d` works alike.
pub fn files_of(root: &(impl Root + ?Sized), directories: &[&str], dialect: Dialect) -> Vec<ConfFile> {
    let mut by_name: BTreeMap<String, Vec<ConfFile>> = BTreeMap::new();
    let mut broken = Vec::new();
    let mut seen = Vec::new();
    for directory in directories {
        let resolved = match resolve(root, directory) {
            Ok(Resolved::Directory(resolved)) => resolved,
            Ok(_) => continue,
            Err(Unreadable(why)) => {
                broken.push(ConfFile { path: (*directory).to_owned(), state: State::Unreadable(why) });
                continue;
            }
        };
        // `/lib` is a link to `/usr/lib` nearly everywhere: the same files again, masked by themselves.
        if seen.contains(&resolved) {
            continue;
        }
        let names = match root.list(&resolved) {
            Ok(names) => names,
            Err(Unreadable(why)) => {
                broken.push(ConfFile { path: (*directory).to_owned(), state: State::Unreadable(why) });
                continue;
            }
        };
        seen.push(resolved);
        for name in names {
            if !name.ends_with(".conf") || (dialect == Dialect::Systemd && name.starts_with('.')) {
                continue;
            }
            let path = format!("{directory}/{name}");
            let group = by_name.entry(name).or_default();
            let state = match group.first() {
                Some(first) => State::Masked { by: first.path.clone() },
                None => state(root, &path),
            };
            group.push(ConfFile { path, state });
        }
    }
    broken.into_iter().chain(by_name.into_values().flatten()).collect()
}

/// What becomes of a single file such as `/etc/sysctl.conf`; `None`: it isn't there.
pub fn single(root: &(impl Root + ?Sized), path: &str) -> Option<ConfFile> {
    match root.entry(path) {
        Ok(None) => None,
        _ => Some(ConfFile { path: path.to_owned(), state: state(root, path) }),
    }
}

fn state(root: &(impl Root + ?Sized), path: &str) -> State {
    match resolve(root, path) {
        Ok(Resolved::File(target)) => State::Read { target },
        Ok(Resolved::Null) => State::Null,
        Ok(Resolved::Missing) => State::Dangling,
        Ok(Resolved::Circle) => State::NoFile("its links lead in a circle"),
        Ok(Resolved::Directory(_)) => State::NoFile("it is a directory"),
        Ok(Resolved::Other) => State::NoFile("it is no regular file"),
        Err(Unreadable(why)) => State::Unreadable(why),
    }
}

#[cfg(test)]
mod tests {
    use super::super::root::MemoryRoot;
    use super::*;

    #[test]
    fn base_names_decide_the_order_and_etc_masks_only_the_same_name() {
        let root = MemoryRoot::new()
            .file("/usr/lib/sysctl.d/50-a.conf", "")
            .file("/usr/lib/sysctl.d/99-z.conf", "")
            .file("/etc/sysctl.d/50-a.conf", "")
            .file("/etc/sysctl.d/local.conf", "")
            .file("/etc/sysctl.d/README", "")
            .file("/etc/sysctl.d/.hidden.conf", "")
            .link("/run/sysctl.d/60-off.conf", "/dev/null")
            .link("/lib", "usr/lib");
        let names: Vec<_> = files(&root, Dialect::Systemd)
            .into_iter()
            .map(|f| format!("{}{}", f.path, if matches!(f.state, State::Read { .. }) { "" } else { " -" }))
            .collect();
        assert_eq!(
            names,
            [
                "/etc/sysctl.d/50-a.conf",
                "/usr/lib/sysctl.d/50-a.conf -",
                "/run/sysctl.d/60-off.conf -",
                "/usr/lib/sysctl.d/99-z.conf",
                "/etc/sysctl.d/local.conf",
            ]
        );
        assert_eq!(files(&root, Dialect::Procps)[0].path, "/etc/sysctl.d/.hidden.conf");
    }

    #[test]
    fn what_is_no_file_masks_and_is_named() {
        let root = MemoryRoot::new()
            .directory("/etc/sysctl.d/1.conf")
            .link("/etc/sysctl.d/2.conf", "2.conf")
            .link("/etc/sysctl.d/3.conf", "gone")
            .file("/usr/lib/sysctl.d/3.conf", "a.b=1");
        let states: Vec<_> = files(&root, Dialect::Systemd).into_iter().map(|f| f.state).collect();
        assert_eq!(
            states,
            [
                State::NoFile("it is a directory"),
                State::NoFile("its links lead in a circle"),
                State::Dangling,
                State::Masked { by: "/etc/sysctl.d/3.conf".to_owned() },
            ]
        );
    }
}
