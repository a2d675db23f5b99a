use std::io;

use libbpf_rs::{Link, MapCore, MapFlags, Object};

use crate::register::{refuse_taken_name, register};
use crate::{Kernel, Knobs, LoadError, NAME, Totals, object};

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
