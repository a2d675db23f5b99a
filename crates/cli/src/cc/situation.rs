//! What stands behind a name before anything is changed.

use bbr3::{Found, Installed, LoadError};

use crate::exit::Failure;

/// What a name stands for now.
pub enum Situation {
    /// Nothing.
    Free,
    /// Pins of a loader that was killed; nothing is registered.
    Leftovers,
    /// Installed by linerate.
    Installed(Installed),
    /// The kernel has its own, built in or as a module.
    Kernels,
    /// In BPF, and another process holds it; the second is whether the program is one of linerate's.
    Held(bool),
}

/// Looks, and changes nothing.
pub fn of(name: &str) -> Result<Situation, Failure> {
    match Installed::find(name).map_err(failure)? {
        Found::Control(installed) => return Ok(Situation::Installed(installed)),
        Found::Leftovers => return Ok(Situation::Leftovers),
        Found::Nothing => {}
    }
    if host::cc::is_kernels_own(name).map_err(Failure::failed)? {
        return Ok(Situation::Kernels);
    }
    if !host::cc::available().map_err(Failure::failed)?.iter().any(|there| there == name) {
        return Ok(Situation::Free);
    }
    let generations = bbr3::generations().map_err(failure)?;
    let of_name: Vec<_> = generations.iter().filter(|generation| generation.name == name).collect();
    // What the kernel lists and BPF does not know is the kernel's own, whatever its module lists say.
    Ok(if of_name.is_empty() { Situation::Kernels } else { Situation::Held(of_name.iter().any(|one| one.ours)) })
}

/// The exit code of a failure of the loader. Unless a variant says otherwise, the host is as before.
pub fn failure(error: LoadError) -> Failure {
    match error {
        LoadError::BadName(_) | LoadError::Knob(_) => Failure::usage(error),
        LoadError::Lost { .. } | LoadError::StillThere(_) => Failure::not_undone(error),
        _ => Failure::failed(error),
    }
}

/// How the kernel will take the program, in words.
pub fn registration(kernel: bbr3::Kernel) -> &'static str {
    registered(kernel.registration)
}

/// The same of one that is installed.
pub fn registered(registration: bbr3::Registration) -> &'static str {
    match registration {
        bbr3::Registration::Link => "link",
        bbr3::Registration::Map => "map",
    }
}
