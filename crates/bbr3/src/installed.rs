use std::io;

use libbpf_rs::{Link, MapCore, MapFlags, Object};
use zerocopy::FromBytes;

use crate::bpffs::{self, Exclusive};
use crate::generation::{self, State};
use crate::pins::{Content, Pins};
use crate::raw::RawKnobs;
use crate::register::{refuse_taken_name, register, registered_names, replace, unregister_map, wait_until_gone};
use crate::{About, Generation, Kernel, LoadError, Options, Registration, Totals, object};

/// A congestion control of this crate that stays without a process: pinned in bpffs, until it is unloaded or the machine restarts.
///
/// Every change takes an [`Exclusive`]. Whatever moment a loader is killed at, either the whole control is installed, or nothing is
/// registered and the pins that remain are cleared away by the next [`Installed::load`], [`Installed::upgrade`] or
/// [`Installed::unload`] of that name.
#[derive(Debug)]
pub struct Installed {
    name: String,
    pins: Pins,
    registration: Registration,
}

/// What there is of a name in bpffs.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// Pins of a loader or unloader that was killed; nothing is registered.
    Leftovers,
    /// A control.
    Control(Installed),
}

/// What [`Installed::unload`] found to take out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unloaded {
    /// An installed control.
    Control,
    /// Pins of a loader that was killed.
    Leftovers,
    /// A control registered by map whose loader was killed, without pins (6.1 to 6.3).
    Orphan,
}

/// Pins that go again, unless the kernel registers what they belong to.
struct Staged {
    pins: Pins,
    object: Object,
    kernel: Kernel,
    keep: bool,
}

impl Staged {
    /// Has the program verified and its maps pinned. Nothing is registered.
    fn new(options: &Options, kernel: Kernel, about: &About, pins: Pins) -> Result<Self, LoadError> {
        let object = object::load(options, kernel)?;
        let staged = Self { pins, object, kernel, keep: false };
        staged.pins.fill(&staged.object, kernel.registration, about)?;
        Ok(staged)
    }

    /// Registers it, to stay.
    fn commit(mut self, name: &str) -> Result<(), LoadError> {
        let mut link = register(&mut self.object, self.kernel.registration, name)?;
        match self.kernel.registration {
            // Until here the registration goes with this process, and from here on it stays with the pin.
            Registration::Link => bpffs::pin(&link, &self.pins.link())?,
            Registration::Map => link.disconnect(),
        }
        self.keep = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.keep {
            // What can't be removed is cleared away by the next loader.
            let _ = self.pins.remove();
        }
    }
}

impl Installed {
    /// Loads, registers and pins the program. The default congestion control stays what it was.
    ///
    /// # Errors
    /// [`LoadError`]; the host is as before then.
    pub fn load(options: &Options, about: &About, lock: &Exclusive) -> Result<Self, LoadError> {
        let pins = Pins::of(&options.name)?;
        let kernel = Kernel::detect()?;
        match Self::find_settled(&options.name, lock)? {
            Found::Control(_) => return Err(LoadError::AlreadyLoaded(options.name.clone())),
            Found::Leftovers => pins.remove()?,
            Found::Nothing => {}
        }
        refuse_taken_name(&options.name)?;
        Staged::new(options, kernel, about, pins.clone())?.commit(&options.name)?;
        Ok(Self { name: options.name.clone(), pins, registration: kernel.registration })
    }

    /// Looks for a control without changing anything.
    ///
    /// # Errors
    /// Where this process may not look, or bpffs holds something else there.
    pub fn find(name: &str) -> Result<Found, LoadError> {
        let pins = Pins::of(name)?;
        if bpffs::state() == bpffs::State::NotMounted {
            return Ok(Found::Nothing);
        }
        Ok(match pins.content()? {
            Content::Nothing => Found::Nothing,
            Content::Leftovers => Found::Leftovers,
            Content::Control(registration) => Found::Control(Self { name: name.to_owned(), pins, registration }),
        })
    }

    /// The same, after ending an upgrade that was killed.
    fn find_settled(name: &str, _lock: &Exclusive) -> Result<Found, LoadError> {
        if let Content::Control(_) = Pins::of(name)?.content()? {
            Pins::of(name)?.settle()?;
        }
        Self::find(name)
    }

    /// The names of everything in bpffs, leftovers included.
    ///
    /// # Errors
    /// Where this process may not look.
    pub fn names() -> Result<Vec<String>, LoadError> {
        if bpffs::state() == bpffs::State::NotMounted { Ok(Vec::new()) } else { Pins::names() }
    }

    /// Replaces the program of the control `name` by one with other knobs, or of another version. Sockets that are open keep the
    /// old one until they close, and so does the default of a namespace until it is written again.
    ///
    /// Where registration is by link, there is no moment without the control. Where it is by map (6.1 to 6.3), there is one of milliseconds.
    ///
    /// # Errors
    /// [`LoadError`]; the old program stays then, but for [`LoadError::Lost`].
    pub fn upgrade(options: &Options, about: &About, lock: &Exclusive) -> Result<Self, LoadError> {
        let kernel = Kernel::detect()?;
        let installed = match Self::find_settled(&options.name, lock)? {
            Found::Control(installed) => installed,
            Found::Leftovers | Found::Nothing => return Err(LoadError::NotInstalled(options.name.clone())),
        };
        let old = installed.pins.ops()?;
        let mut staged = Staged::new(options, kernel, about, installed.pins.next())?;
        match installed.registration {
            Registration::Link => {
                let link = Link::open(installed.pins.link()).map_err(LoadError::libbpf("open the registration"))?;
                replace(&link, &mut staged.object, &options.name)?;
                staged.keep = true;
            }
            Registration::Map => {
                unregister_map(&old)?;
                staged.commit(&options.name).map_err(|error| {
                    let _ = installed.pins.remove();
                    LoadError::Lost { name: options.name.clone(), source: io::Error::other(error.to_string()) }
                })?;
            }
        }
        installed.pins.promote()?;
        Ok(installed)
    }

    /// Takes the control `name` out, and its pins. Sockets that are open keep the program until they close; so does the default of a
    /// namespace: move that away first.
    ///
    /// # Errors
    /// [`LoadError`]. [`LoadError::StillThere`]: the pins are gone, the control is not.
    pub fn unload(name: &str, lock: &Exclusive) -> Result<Unloaded, LoadError> {
        let pins = Pins::of(name)?;
        match Self::find_settled(name, lock)? {
            Found::Control(installed) => {
                if installed.registration == Registration::Map {
                    unregister_map(&pins.ops()?)?;
                }
                pins.remove()?;
                wait_until_gone(name)?;
                Ok(Unloaded::Control)
            }
            Found::Leftovers => {
                pins.remove()?;
                Ok(Unloaded::Leftovers)
            }
            Found::Nothing => unload_orphan(name),
        }
    }

    /// The name for `TCP_CONGESTION`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is registered.
    pub fn registration(&self) -> Registration {
        self.registration
    }

    /// What its loader left; none where another tool made the pins.
    pub fn about(&self) -> Option<About> {
        self.pins.about()
    }

    /// The knobs it was loaded with.
    ///
    /// # Errors
    /// Where the pin can't be read, or holds the knobs of a version with others.
    pub fn knobs(&self) -> Result<RawKnobs, LoadError> {
        self.value("rodata_knobs").ok().and_then(|value| RawKnobs::read_from_bytes(&value).ok()).ok_or(
            LoadError::Step { step: "read the program's knobs", source: io::Error::other("they have another layout") },
        )
    }

    /// The counters now.
    ///
    /// # Errors
    /// Where the pin can't be read, or holds the counters of a version with others.
    pub fn totals(&self) -> Result<Totals, LoadError> {
        self.value("bss").ok().and_then(|value| Totals::from_bytes(&value)).ok_or(LoadError::Step {
            step: "read the program's counters",
            source: io::Error::other("they have another layout"),
        })
    }

    /// The kernel's number of the registered struct_ops map: the [`Generation`] that new sockets get.
    pub fn map_id(&self) -> Option<u32> {
        match self.registration {
            Registration::Link => crate::pins::map_of_link(&self.pins.link()),
            Registration::Map => self.pins.ops().ok().and_then(|ops| generation::map_id(&ops)),
        }
    }

    /// A pinned map of the program, by its name in the C source with `.` as `_`, as `bss`, `bbr3_state`.
    ///
    /// # Errors
    /// Where there is none.
    pub fn map(&self, name: &str) -> Result<libbpf_rs::MapHandle, LoadError> {
        self.pins.map(&crate::pins::pin_name(name))
    }

    fn value(&self, pin: &str) -> Result<Vec<u8>, LoadError> {
        let value = self.pins.map(pin)?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(LoadError::libbpf("read a pinned map"))?;
        value.ok_or_else(|| LoadError::Step { step: "read a pinned map", source: io::ErrorKind::NotFound.into() })
    }
}

/// Takes out a control of ours that is registered by map and has no pins: its loader was killed, or its bpffs is gone.
fn unload_orphan(name: &str) -> Result<Unloaded, LoadError> {
    if !registered_names()?.iter().any(|there| there == name) {
        return Err(LoadError::NotInstalled(name.to_owned()));
    }
    let of_name = |generation: &Generation| generation.ours && generation.name == name;
    let ours: Vec<Generation> = generation::generations()?.into_iter().filter(of_name).collect();
    if let Some(orphan) = ours.iter().find(|generation| generation.state == State::InUse) {
        let map =
            libbpf_rs::MapHandle::from_map_id(orphan.map_id).map_err(LoadError::libbpf("open the registration"))?;
        unregister_map(&map)?;
        return Ok(Unloaded::Orphan);
    }
    if ours.is_empty() {
        Err(LoadError::NotInstalled(name.to_owned()))
    } else {
        Err(LoadError::HeldByProcess(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use nix::sys::signal::{Signal, raise};
    use testkit::{require_root_or_skip, with_private_bpffs};

    use super::*;

    const NAME_VARIABLE: &str = "LINERATE_TEST_NAME";

    /// A loader that is killed at a moment only code in here can choose.
    #[test]
    #[ignore = "the child of the test below"]
    fn killed_between_registering_and_pinning() {
        let Ok(name) = std::env::var(NAME_VARIABLE) else { return };
        let options = Options { name: name.clone(), ..Options::default() };
        let pins = Pins::of(&name).unwrap();
        let mut staged = Staged::new(&options, Kernel::detect().unwrap(), &About::new("faithful", None), pins).unwrap();
        let link = register(&mut staged.object, staged.kernel.registration, &name).unwrap();
        assert!(registered_names().unwrap().contains(&name));
        raise(Signal::SIGKILL).unwrap();
        drop((link, staged));
    }

    #[test]
    fn a_loader_that_is_killed_leaves_nothing_registered_and_the_next_one_clears_up() {
        require_root_or_skip!();
        with_private_bpffs(true, || {
            let name = format!("ltk{}", std::process::id());
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "installed::tests::killed_between_registering_and_pinning", "--ignored"])
                .env(NAME_VARIABLE, &name)
                .output()
                .unwrap();
            assert_eq!(child.status.signal(), Some(Signal::SIGKILL as i32), "{child:?}");
            wait_until_gone(&name).unwrap();
            assert!(matches!(Installed::find(&name).unwrap(), Found::Leftovers));
            let lock = Exclusive::wait().unwrap();
            let options = Options { name: name.clone(), ..Options::default() };
            Installed::load(&options, &About::new("faithful", None), &lock).unwrap();
            assert!(registered_names().unwrap().contains(&name));
            assert_eq!(Installed::unload(&name, &lock).unwrap(), Unloaded::Control);
            assert!(matches!(Installed::find(&name).unwrap(), Found::Nothing));
        });
    }

    #[test]
    fn a_load_that_fails_leaves_no_pins() {
        require_root_or_skip!();
        with_private_bpffs(true, || {
            let name = format!("ltf{}", std::process::id());
            let options = Options { name: name.clone(), ..Options::default() };
            let pins = Pins::of(&name).unwrap();
            let kernel = Kernel::detect().unwrap();
            let staged = Staged::new(&options, kernel, &About::default(), pins.clone()).unwrap();
            assert_eq!(pins.content().unwrap(), Content::Leftovers);
            drop(staged);
            assert_eq!(pins.content().unwrap(), Content::Nothing);
        });
    }
}
