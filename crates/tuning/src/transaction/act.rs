//! One step made, and one step undone.

use std::io;

use super::store::Pen;
use super::world::{Found, World};
use super::{HANDLE, file};
use crate::journal::{Left, Record, Ring, Step, Tree};

const DEFAULT: &str = "net.core.default_qdisc";

/// Why a step could not be made or undone.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// It is no longer what the plan saw.
    #[error("{what} is {found} now, and was {expected}: somebody else has changed it meanwhile")]
    Changed {
        /// A key, a device, a path.
        what: String,
        /// What is there.
        found: String,
        /// What should have been there.
        expected: String,
    },
    /// The system refused.
    #[error("{what}: {source}")]
    Refused {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system took it and shows something else.
    #[error("{what} was set to {wanted}, and the kernel shows {shown}")]
    Differs {
        /// A key, a device, a path.
        what: String,
        /// What was to be there.
        wanted: String,
        /// What is there.
        shown: String,
    },
}

fn refused(what: impl Into<String>) -> impl FnOnce(io::Error) -> StepError {
    move |source| StepError::Refused { what: what.into(), source }
}

/// What undoing a step came to.
#[derive(Debug)]
pub enum Fate {
    /// It is what it was again.
    Restored,
    /// It was so already.
    WasOld,
    /// A restart has undone it.
    OfAnotherBoot,
    /// What it acted on is gone: a device, a module's key.
    Gone,
    /// Others use the directory.
    InUse,
    /// Somebody else has changed it since: left as it is.
    Changed(Left),
    /// It could not be undone.
    Failed(StepError),
}

/// What text shows for a file: enough to tell, not all of it.
fn shown(found: &Found) -> String {
    match found {
        Found::Nothing => "not there".to_owned(),
        Found::File { bytes, .. } => format!("another file of {} bytes", bytes.len()),
        Found::Folder { .. } => "a directory".to_owned(),
        Found::Link(target) => format!("a link to {target}"),
        Found::Other => "no regular file".to_owned(),
    }
}

fn kinds(tree: &Tree) -> String {
    let by = if tree.handle == 0 { "" } else { " (set by hand)" };
    if tree.leaves.is_empty() {
        format!("{}{by}", tree.root)
    } else {
        format!("{}{by} with {}", tree.root, tree.leaves.join(" "))
    }
}

/// Whether the disciplines are of these kinds, whoever put them there.
pub(super) fn has_kinds(tree: &Tree, kinds: &[String]) -> bool {
    if tree.root == "mq" { tree.leaves == kinds } else { kinds == [tree.root.clone()] }
}

/// Looks whether everything is as the step expects it. `Ok(false)`: it is made already.
pub(super) fn check<W: World>(world: &W, step: &Step) -> Result<bool, StepError> {
    let what = step.what();
    let changed = |found: String, expected: &str| {
        Err(StepError::Changed { what: what.to_owned(), found, expected: expected.to_owned() })
    };
    match step {
        Step::Sysctl { key, old, new } => match world.sysctl(key).map_err(refused(key))? {
            Some(value) if value == *old => Ok(old != new),
            Some(value) => changed(value, old),
            None => changed("gone".into(), old),
        },
        Step::Queues { device, old, .. } => match world.queues(device).map_err(refused(device))? {
            Some(tree) if tree == *old => Ok(true),
            Some(tree) => changed(kinds(&tree), &kinds(old)),
            None => changed("gone".into(), &kinds(old)),
        },
        Step::Ring { device, ring, old, .. } => match world.ring(device, *ring).map_err(refused(device))? {
            Some((size, _)) if size == *old => Ok(true),
            found => changed(format!("{:?}", found.map(|(size, _)| size)), &old.to_string()),
        },
        Step::Folder { path } => match world.look(path).map_err(refused(path))? {
            Found::Nothing => Ok(true),
            Found::Folder { .. } => Ok(false),
            found => changed(shown(&found), "not there"),
        },
        Step::File { path, old, .. } => match (world.look(path).map_err(refused(path))?, old) {
            (Found::Nothing, None) => Ok(true),
            (Found::File { bytes, .. }, Some(old)) if bytes == old.text.as_bytes() => Ok(true),
            (found, old) => changed(shown(&found), if old.is_some() { "linerate's own" } else { "not there" }),
        },
        Step::Link { path, .. } => match world.look(path).map_err(refused(path))? {
            Found::Nothing => Ok(true),
            found => changed(shown(&found), "not there"),
        },
    }
}

/// Makes a step and reads back what came of it.
pub(super) fn make<W: World>(world: &mut W, step: &Step) -> Result<(), StepError> {
    match step {
        Step::Sysctl { key, new, .. } => set(world, key, new),
        Step::Queues { device, old, new } => {
            let failed = || refused(format!("queue discipline of {device}"));
            if old.leaves.is_empty() {
                world.set_root(device, &new[0]).map_err(failed())?;
            } else {
                // The kernel's own mq has the handle 0, by which its leaves can't be named: first an mq that has one.
                world.set_root(device, "mq").map_err(failed())?;
                for (queue, kind) in new.iter().enumerate() {
                    world.set_leaf(device, queue, kind).map_err(failed())?;
                }
            }
            let tree = world.queues(device).map_err(failed())?;
            match tree {
                Some(tree) if tree.handle == HANDLE && has_kinds(&tree, new) => Ok(()),
                tree => {
                    let shown = tree.map_or("gone".to_owned(), |tree| kinds(&tree));
                    Err(StepError::Differs { what: device.clone(), wanted: new.join(" "), shown })
                }
            }
        }
        Step::Ring { device, ring, new, .. } => set_ring(world, device, *ring, *new),
        Step::Folder { path } => {
            world.make_folder(path, 0o755).map_err(refused(path))?;
            world.sync_folder(file::beside(path).0).map_err(refused(path))
        }
        Step::File { path, new, .. } => {
            file::put(world, path, new.text.as_bytes(), new.mode).map_err(refused(path))?;
            match world.look(path).map_err(refused(path))? {
                Found::File { bytes, .. } if bytes == new.text.as_bytes() => Ok(()),
                found => {
                    Err(StepError::Differs { what: path.clone(), wanted: "its text".into(), shown: shown(&found) })
                }
            }
        }
        Step::Link { path, target } => {
            world.link(path, target).map_err(refused(path))?;
            world.sync_folder(file::beside(path).0).map_err(refused(path))
        }
    }
}

fn set<W: World>(world: &mut W, key: &str, value: &str) -> Result<(), StepError> {
    world.set_sysctl(key, value).map_err(refused(format!("{key} = {value}")))?;
    let shown = world.sysctl(key).map_err(refused(key))?.unwrap_or_else(|| "gone".to_owned());
    if shown == value {
        return Ok(());
    }
    Err(StepError::Differs { what: key.to_owned(), wanted: value.to_owned(), shown })
}

fn set_ring<W: World>(world: &mut W, device: &str, ring: Ring, size: u32) -> Result<(), StepError> {
    let what = format!("{ring:?} ring of {device}").to_lowercase();
    world.set_ring(device, ring, size).map_err(refused(&what))?;
    match world.ring(device, ring).map_err(refused(&what))? {
        Some((shown, _)) if shown == size => Ok(()),
        shown => {
            let shown = shown.map_or("gone".to_owned(), |(size, _)| size.to_string());
            Err(StepError::Differs { what, wanted: size.to_string(), shown })
        }
    }
}

/// What is known when a step is undone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances {
    /// Whether live values can be of this transaction: it is the same boot, or files of the transaction set them at boot.
    pub live: bool,
    /// Whether the step was interrupted in this boot, so that whatever is there is its doing.
    pub in_flight: bool,
}

/// Undoes a step, where what is there is its doing.
pub(super) fn undo<W: World>(world: &mut W, pen: Option<&mut Pen>, step: &Step, know: Circumstances) -> Fate {
    let is_live = matches!(step, Step::Sysctl { .. } | Step::Queues { .. } | Step::Ring { .. });
    if is_live && !know.live {
        return Fate::OfAnotherBoot;
    }
    undo_step(world, pen, step, know).unwrap_or_else(Fate::Failed)
}

fn undo_step<W: World>(
    world: &mut W,
    pen: Option<&mut Pen>,
    step: &Step,
    know: Circumstances,
) -> Result<Fate, StepError> {
    let left = |found: String, old: String, new: String| {
        Ok(Fate::Changed(Left { what: step.what().to_owned(), found, old, new }))
    };
    match step {
        Step::Sysctl { key, old, new } => {
            let Some(value) = world.sysctl(key).map_err(refused(key))? else { return Ok(Fate::Gone) };
            if value == *old {
                return Ok(Fate::WasOld);
            }
            if value != *new && !know.in_flight && !is_between(&value, old, new) {
                return left(value, old.clone(), new.clone());
            }
            set(world, key, old)?;
        }
        Step::Queues { device, old, new } => {
            let Some(tree) = world.queues(device).map_err(refused(device))? else { return Ok(Fate::Gone) };
            if tree == *old {
                return Ok(Fate::WasOld);
            }
            let ours = is_ours(&tree, old, new) || (know.in_flight && tree.handle == HANDLE);
            if !ours {
                return left(kinds(&tree), kinds(old), new.join(" "));
            }
            give_back(world, pen, device, old, tree.handle != 0)?;
        }
        Step::Ring { device, ring, old, new } => {
            let found = world.ring(device, *ring).map_err(refused(device))?;
            let Some((size, _)) = found else { return Ok(Fate::Gone) };
            if size == *old {
                return Ok(Fate::WasOld);
            }
            if size != *new && !know.in_flight {
                return left(size.to_string(), old.to_string(), new.to_string());
            }
            set_ring(world, device, *ring, *old)?;
        }
        Step::Folder { path } => match world.look(path).map_err(refused(path))? {
            Found::Folder { .. } => match world.remove_folder(path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => return Ok(Fate::InUse),
                result => {
                    result.map_err(refused(path))?;
                    world.sync_folder(file::beside(path).0).map_err(refused(path))?;
                }
            },
            _ => return Ok(Fate::WasOld),
        },
        Step::File { path, old, new } => {
            file::clear(world, path).map_err(refused(path))?;
            match (world.look(path).map_err(refused(path))?, old) {
                (Found::Nothing, None) => return Ok(Fate::WasOld),
                (Found::File { bytes, .. }, Some(old)) if bytes == old.text.as_bytes() => return Ok(Fate::WasOld),
                (Found::File { bytes, .. }, None) if bytes == new.text.as_bytes() => {
                    file::remove(world, path).map_err(refused(path))?;
                }
                (Found::File { bytes, .. }, Some(old)) if bytes == new.text.as_bytes() => {
                    file::put(world, path, old.text.as_bytes(), old.mode).map_err(refused(path))?;
                }
                (found, old) => {
                    let before = if old.is_some() { "linerate's text of an earlier apply" } else { "not there" };
                    return left(shown(&found), before.to_owned(), "linerate's text".to_owned());
                }
            }
        }
        Step::Link { path, target } => match world.look(path).map_err(refused(path))? {
            Found::Nothing => return Ok(Fate::WasOld),
            Found::Link(there) if there == *target => file::remove(world, path).map_err(refused(path))?,
            found => return left(shown(&found), "not there".to_owned(), format!("a link to {target}")),
        },
    }
    Ok(Fate::Restored)
}

/// Whether disciplines are what an apply, or a rollback that was interrupted, has left: of its shape, each kind the old or the new one,
/// and none put there by somebody else. After a restart the kernel has put the new ones there by itself, from the drop-in.
fn is_ours(tree: &Tree, old: &Tree, new: &[String]) -> bool {
    let kinds_of = |tree: &Tree| if tree.root == "mq" { tree.leaves.clone() } else { vec![tree.root.clone()] };
    let (there, before) = (kinds_of(tree), kinds_of(old));
    matches!(tree.handle, 0 | HANDLE)
        && (tree.root == "mq") == (old.root == "mq")
        && there.len() == new.len()
        && there.iter().zip(before.iter().zip(new)).all(|(kind, (old, new))| kind == old || kind == new)
}

/// Whether each field is the old or the new one: the kernel sets the fields of a value one by one, and stops at one it refuses.
fn is_between(value: &str, old: &str, new: &str) -> bool {
    let fields = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (value, old, new) = (fields(value), fields(old), fields(new));
    value.len() == old.len()
        && value.len() == new.len()
        && value.iter().enumerate().all(|(at, field)| *field == old[at] || *field == new[at])
}

/// Gives a device back the disciplines that the kernel puts there by itself. What those are, the default decides at that moment.
fn give_back<W: World>(
    world: &mut W,
    pen: Option<&mut Pen>,
    device: &str,
    old: &Tree,
    explicit: bool,
) -> Result<(), StepError> {
    let failed = || refused(format!("queue discipline of {device}"));
    let kind = old.leaves.first().unwrap_or(&old.root).clone();
    let default = world.sysctl(DEFAULT).map_err(refused(DEFAULT))?;
    let borrowed = default.filter(|default| *default != kind);
    let mut pen = pen;
    if let Some(from) = &borrowed {
        if let Some(pen) = pen.as_deref_mut() {
            let record = Record::Borrowing { from: from.clone(), to: kind.clone() };
            pen.write(world, &record).map_err(|error| failed()(io::Error::other(error)))?;
        }
        set(world, DEFAULT, &kind)?;
    }
    let reset = (|| {
        if !explicit {
            // Only one that was set can be taken away.
            world.set_root(device, if old.leaves.is_empty() { &kind } else { "mq" }).map_err(failed())?;
        }
        world.reset_root(device).map_err(failed())
    })();
    if let Some(from) = &borrowed {
        set(world, DEFAULT, from)?;
        if let Some(pen) = pen {
            // Where that fails, the next rollback finds the default as it was, and says so then.
            let _ = pen.write(world, &Record::Returned);
        }
    }
    reset?;
    match world.queues(device).map_err(failed())? {
        Some(tree) if tree == *old => Ok(()),
        tree => {
            let shown = tree.map_or("gone".to_owned(), |tree| kinds(&tree));
            Err(StepError::Differs { what: device.to_owned(), wanted: kinds(old), shown })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_half_set_is_between_and_any_other_is_not() {
        assert!(is_between("4096 200 300", "4096 100 300", "4096 200 999"));
        assert!(!is_between("4096 150 300", "4096 100 300", "4096 200 999"));
        assert!(!is_between("4096 100", "4096 100 300", "4096 200 999"));
    }
}
