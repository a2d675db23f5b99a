//! The files that load a control at boot, all of them linerate's own.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// The first line of each file, by which it is known again.
const MARK: &str = "# Written by `linerate cc enable`; `linerate cc disable` removes it.";

/// Paths below a root folder.
pub struct Files {
    root: PathBuf,
    name: String,
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::failed(format_args!("can't {what} {}: {error}", path.display()))
}

impl Files {
    /// Of the control `name`.
    pub fn new(root: &Path, name: &str) -> Self {
        Self { root: root.to_owned(), name: name.to_owned() }
    }

    /// A path of the system, below the root folder.
    pub fn below(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn unit_name(&self) -> String {
        format!("linerate-{}.service", self.name)
    }

    /// The unit.
    pub fn unit(&self) -> PathBuf {
        self.below("etc/systemd/system").join(self.unit_name())
    }

    /// What `systemctl enable` makes of `WantedBy=sysinit.target`.
    pub fn wanted(&self) -> PathBuf {
        self.below("etc/systemd/system/sysinit.target.wants").join(self.unit_name())
    }

    /// The file that makes it the default. Late in the alphabet, and so after everybody else's.
    pub fn default_file(&self) -> PathBuf {
        self.below("etc/sysctl.d").join(format!("zz-linerate-{}.conf", self.name))
    }

    /// Whether systemd will start the unit.
    #[cfg(feature = "bpf")]
    pub fn is_enabled(&self) -> bool {
        self.unit().exists() && self.wanted().symlink_metadata().is_ok()
    }

    /// Those that exist, the link first.
    pub fn existing(&self) -> Result<Vec<PathBuf>, Failure> {
        for file in [self.unit(), self.default_file()] {
            refuse_foreign(&file)?;
        }
        let all = [self.wanted(), self.unit(), self.default_file()];
        Ok(all.into_iter().filter(|file| file.symlink_metadata().is_ok()).collect())
    }

    /// Writes the unit, and the default where it is wanted; removes an earlier default where it is not.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    pub fn write(&self, unit: &str, default: bool) -> Result<(), Failure> {
        self.existing()?;
        put(&self.unit(), unit)?;
        if default {
            put(&self.default_file(), &self.default_text())?;
        } else {
            remove_file(&self.default_file())?;
        }
        let wanted = self.wanted();
        make_folder(&wanted)?;
        remove_file(&wanted)?;
        let unit = Path::new("/etc/systemd/system").join(self.unit_name());
        symlink(unit, &wanted).map_err(failed("make", &wanted))
    }

    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    fn default_text(&self) -> String {
        let Self { name, .. } = self;
        format!(
            "{MARK}\n# linerate-{name}.service loads {name} before this is read. With the hyphen, a boot where that fails keeps the\n\
             # default and is no failure of systemd-sysctl.\n-net.ipv4.tcp_congestion_control = {name}\n"
        )
    }

    /// Removes all of them.
    pub fn remove(&self) -> Result<(), Failure> {
        for file in self.existing()? {
            remove_file(&file)?;
        }
        // Made by us where it was missing; others may be in it.
        if let Some(folder) = self.wanted().parent() {
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    /// Files of sysctl.d that are read after ours and set another default: `sysctl.d(5)`.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    pub fn overriding(&self) -> Vec<PathBuf> {
        let own = self.default_file().file_name().map(|name| name.to_owned()).unwrap_or_default();
        let folders = ["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d"];
        let entries = folders.iter().filter_map(|folder| fs::read_dir(self.below(folder)).ok()).flatten().flatten();
        let mut found: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
            .filter(|path| path.file_name().is_some_and(|name| name > own.as_os_str()))
            .filter(|path| fs::read_to_string(path).is_ok_and(|text| sets_default(&text)))
            .collect();
        found.sort();
        found
    }
}

#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
fn sets_default(text: &str) -> bool {
    text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])).any(|line| {
        let key = line.split('=').next().unwrap_or_default().trim().trim_start_matches('-');
        key.replace('/', ".") == "net.ipv4.tcp_congestion_control"
    })
}

/// A text for [`Files::write`] begins so.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub fn marked(text: &str) -> String {
    format!("{MARK}\n{text}")
}

/// Somebody else's file of that name stays.
fn refuse_foreign(file: &Path) -> Result<(), Failure> {
    match fs::read_to_string(file) {
        Ok(text) if text.lines().next() == Some(MARK) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(Failure::refused(format_args!("{} was not written by linerate: left alone", file.display()))),
        Err(error) => Err(failed("read", file)(error)),
    }
}

fn make_folder(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed("make", folder))
}

/// Writes a file whole or not at all.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
fn put(file: &Path, text: &str) -> Result<(), Failure> {
    make_folder(file)?;
    let write = || {
        let mut partial =
            tempfile::Builder::new().prefix(".linerate-").tempfile_in(file.parent().unwrap_or(Path::new("/")))?;
        partial.write_all(text.as_bytes())?;
        partial.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        partial.as_file().sync_all()?;
        partial.persist(file).map(drop).map_err(|error| error.error)
    };
    write().map_err(failed("write", file))
}

fn remove_file(file: &Path) -> Result<(), Failure> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", file)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_sets_the_default_is_known_in_every_spelling() {
        for text in [
            "net.ipv4.tcp_congestion_control=bbr",
            "# x\n net/ipv4/tcp_congestion_control = cubic",
            "-net.ipv4.tcp_congestion_control = x",
        ] {
            assert!(sets_default(text), "{text}");
        }
        for text in ["", "# net.ipv4.tcp_congestion_control=bbr", "net.ipv4.tcp_available_congestion_control=x"] {
            assert!(!sets_default(text), "{text}");
        }
    }
}
