use std::io;

use libbpf_rs::{Link, MapCore, MapFlags, Object};
use nix::errno::Errno;

use crate::error::io_error;
use crate::kernel::{Registration, has_module};
use crate::{Kernel, Knobs, LoadError, NAME, Totals, log, object};

/// What to load, and by which name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The name for `TCP_CONGESTION`.
    pub name: String,
    /// The program's parameters.
    pub knobs: Knobs,
}

impl Default for Options {
    /// The faithful BBRv3 as `bbr3`.
    fn default() -> Self {
        Self { name: NAME.to_owned(), knobs: Knobs::default() }
    }
}

/// A loaded program, registered as a congestion control until this is dropped. Sockets that use it then keep it until they close, but no new
/// one gets it. On kernels that register by map (6.1 to 6.3) a killed process leaves it registered.
#[derive(Debug)]
pub struct Loaded {
    // Dropped in this order: first the registration, then the maps.
    _link: Link,
    object: Object,
    kernel: Kernel,
    name: String,
}

impl Loaded {
    /// Loads and registers the program. The default congestion control stays what it was.
    ///
    /// # Errors
    /// [`LoadError`]; the host is as before then.
    pub fn ephemeral(options: &Options) -> Result<Self, LoadError> {
        let kernel = Kernel::detect()?;
        refuse_taken_name(&options.name)?;
        let mut object = object::load(options, kernel)?;
        let link = register(&mut object, kernel.registration, &options.name)?;
        Ok(Self { _link: link, object, kernel, name: options.name.clone() })
    }

    /// The name for `TCP_CONGESTION`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the kernel was found to be able to do.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The counters now.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn totals(&self) -> Result<Totals, LoadError> {
        let map = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let value = map.and_then(|map| map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        value.and_then(|value| Totals::from_bytes(&value)).ok_or_else(|| LoadError::Step {
            step: "read the program's counters",
            source: io::Error::other("they have another layout"),
        })
    }
}

fn register(object: &mut Object, registration: Registration, name: &str) -> Result<Link, LoadError> {
    let (wanted, _) = object::registration_map(registration);
    let mut map = object.maps_mut().find(|map| map.name() == wanted).ok_or_else(|| LoadError::Step {
        step: "register the congestion control",
        source: io::Error::other("the program has no such map"),
    })?;
    let (link, _) = log::listen(|| map.attach_struct_ops());
    link.map_err(|error| {
        let source = io_error(&error);
        if source.raw_os_error() == Some(Errno::EEXIST as i32) {
            return LoadError::AlreadyLoaded(name.to_owned());
        }
        LoadError::Step { step: "register the congestion control", source }
    })
}

/// The control `name` must be neither loaded nor loadable from the kernel itself.
fn refuse_taken_name(name: &str) -> Result<(), LoadError> {
    object::check_name(name)?;
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_err(LoadError::step("read net.ipv4.tcp_available_congestion_control"))?;
    if has_module(name).map_err(LoadError::step("look for kernel modules"))? {
        return Err(LoadError::NameIsModules(name.to_owned()));
    }
    if available.split_whitespace().any(|taken| taken == name) {
        return Err(LoadError::AlreadyLoaded(name.to_owned()));
    }
    Ok(())
}
