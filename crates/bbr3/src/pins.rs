//! The folder of one installed control in bpffs: `/sys/fs/bpf/linerate/NAME/`.
//!
//! | pin | what it is |
//! | --- | --- |
//! | `link` | the registration (kernels that register by link). The last to come and the first to go: without it nothing is registered |
//! | `ops` | the struct_ops map. Where registration is by map, its state tells whether it is registered |
//! | `about` | [`About`](crate::About) |
//! | the program's maps | by name, `.` and the object's name left out: `bss`, `rodata_knobs`, `bbr3_state`, `bbr3_ring`, … |
//! | `next/` | what an upgrade will move one level up, once the kernel has taken the new program |

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::query::LinkInfo;
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapHandle, Object};

use crate::bpffs::{self, make_folder};
use crate::error::path_step;
use crate::generation::{self, State};
use crate::{About, LoadError, Registration, object};

const LINK: &str = "link";
const OPS: &str = "ops";
const ABOUT: &str = "about";
const NEXT: &str = "next";

/// What a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// There is none.
    Nothing,
    /// Pins without a registration: a loader or an unloader was killed.
    Leftovers,
    /// A registered control.
    Control(Registration),
}

/// A folder, whether it exists or not.
#[derive(Debug, Clone)]
pub(crate) struct Pins {
    folder: PathBuf,
}

/// The folder of all installed controls.
fn home() -> PathBuf {
    Path::new(bpffs::PATH).join("linerate")
}

/// The name of a map's pin. libbpf calls a section's map `bbr3.bss` or `.rodata.knobs`, and bpffs knows no dots.
pub(crate) fn pin_name(map: &str) -> String {
    map.trim_start_matches("bbr3.").trim_start_matches('.').replace('.', "_")
}

impl Pins {
    /// Of the control `name`, which must be a valid name.
    pub(crate) fn of(name: &str) -> Result<Self, LoadError> {
        object::check_name(name)?;
        Ok(Self { folder: home().join(name) })
    }

    /// The names of all folders, sorted.
    pub(crate) fn names() -> Result<Vec<String>, LoadError> {
        let entries = match fs::read_dir(home()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(LoadError::NotPermitted),
            Err(error) => return Err(path_step("read", home())(error)),
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| object::check_name(name).is_ok())
            .collect();
        names.sort();
        Ok(names)
    }

    pub(crate) fn path(&self, pin: &str) -> PathBuf {
        self.folder.join(pin)
    }

    pub(crate) fn link(&self) -> PathBuf {
        self.path(LINK)
    }

    /// The staging folder of an upgrade.
    pub(crate) fn next(&self) -> Self {
        Self { folder: self.folder.join(NEXT) }
    }

    /// A pinned map.
    pub(crate) fn map(&self, pin: &str) -> Result<MapHandle, LoadError> {
        let path = self.path(pin);
        MapHandle::from_pinned_path(&path).map_err(|error| path_step("open", path)(crate::error::io_error(&error)))
    }

    /// The struct_ops map.
    pub(crate) fn ops(&self) -> Result<MapHandle, LoadError> {
        self.map(OPS)
    }

    /// What is there.
    pub(crate) fn content(&self) -> Result<Content, LoadError> {
        match fs::symlink_metadata(&self.folder) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Nothing),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(LoadError::NotPermitted),
            Err(error) => return Err(path_step("look at", &self.folder)(error)),
        }
        if self.link().exists() {
            return Ok(Content::Control(Registration::Link));
        }
        // During an upgrade, and after one that was killed, the registered one may be in `next/`.
        let by_map =
            [self.clone(), self.next()].iter().any(|pins| pins.ops().is_ok_and(|ops| is_registered_by_map(&ops)));
        Ok(if by_map { Content::Control(Registration::Map) } else { Content::Leftovers })
    }

    /// Pins every map of a loaded object, and what is known about it.
    pub(crate) fn fill(&self, object: &Object, registration: Registration, about: &About) -> Result<(), LoadError> {
        make_folder(&self.folder)?;
        let (ops, left_out) = object::registration_map(registration);
        for map in object.maps().filter(|map| map.name() != left_out) {
            let name = map.name().to_string_lossy();
            let pin = if name == ops { OPS.to_owned() } else { pin_name(&name) };
            bpffs::pin(&map, &self.path(&pin))?;
        }
        bpffs::pin(about.to_map()?, &self.path(ABOUT))
    }

    /// The record that [`Pins::fill`] left.
    pub(crate) fn about(&self) -> Option<About> {
        About::from_map(&self.map(ABOUT).ok()?)
    }

    /// Ends an upgrade that was killed: moves the new pins into place where the kernel has the new program, removes them where not.
    pub(crate) fn settle(&self) -> Result<(), LoadError> {
        let next = self.next();
        if !next.folder.exists() {
            return Ok(());
        }
        if self.next_is_registered() { self.promote() } else { next.remove() }
    }

    /// False where `next/` was not filled, or where all of it but the folder has been moved: `ops` is the last to move.
    fn next_is_registered(&self) -> bool {
        let Ok(new) = self.next().ops() else { return false };
        if self.link().exists() {
            return map_of_link(&self.link()).is_some_and(|id| generation::map_id(&new) == Some(id));
        }
        is_registered_by_map(&new)
    }

    /// Moves everything in `next/` one level up, `ops` last.
    pub(crate) fn promote(&self) -> Result<(), LoadError> {
        let next = self.next();
        let mut pins = next.entries()?;
        pins.sort_by_key(|name| name == OPS);
        for pin in pins {
            fs::rename(next.path(&pin), self.path(&pin)).map_err(path_step("move", next.path(&pin)))?;
        }
        next.remove()
    }

    fn entries(&self) -> Result<Vec<String>, LoadError> {
        let entries = fs::read_dir(&self.folder).map_err(path_step("read", &self.folder))?;
        Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// Removes the folder and every pin in it. Where registration is by link, `link` goes first.
    pub(crate) fn remove(&self) -> Result<(), LoadError> {
        if !self.folder.exists() {
            return Ok(());
        }
        let mut pins = self.entries()?;
        pins.sort_by_key(|name| name != LINK);
        for pin in pins {
            if pin == NEXT {
                self.next().remove()?;
            } else {
                fs::remove_file(self.path(&pin)).map_err(path_step("remove", self.path(&pin)))?;
            }
        }
        fs::remove_dir(&self.folder).map_err(path_step("remove", &self.folder))?;
        // Others may be installed there.
        let _ = fs::remove_dir(home());
        Ok(())
    }
}

fn is_registered_by_map(ops: &MapHandle) -> bool {
    generation::state(ops).is_ok_and(|state| state == State::InUse)
}

/// The struct_ops map that a pinned link has registered.
pub(crate) fn map_of_link(path: &Path) -> Option<u32> {
    let link = Link::open(path).ok()?;
    match link.info().ok()? {
        LinkInfo { info: LinkTypeInfo::StructOps(info), .. } => Some(info.map_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_have_no_dots() {
        assert_eq!(pin_name("bbr3.bss"), "bss");
        assert_eq!(pin_name(".rodata.knobs"), "rodata_knobs");
        assert_eq!(pin_name("bbr3_state"), "bbr3_state");
        assert_eq!(pin_name("events"), "events");
    }
}
