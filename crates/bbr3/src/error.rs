use std::io;
use std::path::{Path, PathBuf};

use crate::KnobError;

/// Why the program was not loaded, or is not where it should be. The host is as before unless a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A knob outside its range.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// A name the kernel can't register.
    #[error("\"{0}\" can't name a congestion control: 1 to 15 letters, digits or _")]
    BadName(String),
    /// The process lacks the right to load BPF programs.
    #[error(
        "loading a congestion control needs root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (a container needs them too)"
    )]
    NotPermitted,
    /// The kernel was built without its type information.
    #[error(
        "this kernel has no type information (/sys/kernel/btf/vmlinux): it was built without CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf,
    /// The kernel knows no congestion control in BPF.
    #[error(
        "this kernel can't run a congestion control in BPF: it is older than 6.1, or was built without CONFIG_BPF_JIT"
    )]
    TooOld,
    /// BPF programs would be interpreted.
    #[error("the BPF compiler is off (sysctl net.core.bpf_jit_enable = 0), and a congestion control needs it")]
    NoJit,
    /// Kernel lockdown is in the way.
    #[error("kernel lockdown ({0}) forbids loading the program")]
    Lockdown(String),
    /// The kernel has a control of that name itself.
    #[error("this kernel has its own congestion control \"{0}\"; choose another name")]
    NameIsKernels(String),
    /// The kernel can load a module of that name.
    #[error("this kernel has the module tcp_{0}; use it, or choose another name")]
    NameIsModules(String),
    /// Already registered, by this program or by another in BPF.
    #[error("a congestion control \"{0}\" is already loaded")]
    AlreadyLoaded(String),
    /// No BPF file system, so nothing can stay loaded.
    #[error(
        "there is no BPF file system at /sys/fs/bpf, so nothing can stay loaded: the kernel was built without \
         CONFIG_BPF_SYSCALL, or this is a container that hides it"
    )]
    NoBpffs,
    /// It is there, and can't be written.
    #[error("the BPF file system is read-only here: mount -o remount,rw /sys/fs/bpf")]
    BpffsReadOnly,
    /// Nothing of that name was installed.
    #[error("no control \"{0}\" is installed (`linerate cc load` installs one)")]
    NotInstalled(String),
    /// Registered, but by a process that keeps it for itself.
    #[error("\"{0}\" is loaded by a process that takes it out when it ends (a `linerate lab` run?), not installed")]
    HeldByProcess(String),
    /// The old program was taken out, and the new one could not be registered.
    #[error("\"{name}\" was taken out, and the new program could not be registered: {source}; nothing is loaded now")]
    Lost {
        /// The control.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Taken out, and the kernel shows it all the same.
    #[error("\"{0}\" was taken out, but the kernel still has it: another process or bpffs mount holds it")]
    StillThere(String),
    /// The verifier refused the program.
    #[error("the kernel's verifier refused the program: {reason}; the whole log is in {}", .log.display())]
    Refused {
        /// Its last word.
        reason: String,
        /// Where the log was saved.
        log: PathBuf,
    },
    /// A step on a file failed.
    #[error("can't {verb} {}: {source}", .path.display())]
    Path {
        /// What was attempted.
        verb: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Another step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was attempted.
        step: &'static str,
        /// What the kernel or libbpf said.
        source: io::Error,
    },
}

impl LoadError {
    /// Wraps what a step said.
    pub(crate) fn step(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Step { step, source }
    }

    /// Wraps what libbpf said, as far as it says it by a number.
    pub(crate) fn libbpf(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Self {
        move |error| Self::Step { step, source: io_error(&error) }
    }
}

/// Wraps what a step on a file said.
pub(crate) fn path_step(verb: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> LoadError {
    move |source| LoadError::Path { verb, path: path.as_ref().to_owned(), source }
}

/// The system's error inside one of libbpf-rs, which shows it as text only: "… (os error 22)".
pub(crate) fn io_error(error: &libbpf_rs::Error) -> io::Error {
    let message = format!("{error:#}");
    let number = message.rsplit_once("(os error ").and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
    number.map_or_else(|| io::Error::other(message), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_an_error_of_libbpf_is_found_below_its_context() {
        use libbpf_rs::ErrorExt;
        let error = libbpf_rs::Error::from_raw_os_error(17).context("failed to attach struct_ops");
        assert_eq!(io_error(&error).raw_os_error(), Some(17));
        let bare = libbpf_rs::Error::from_raw_os_error(1);
        assert_eq!(io_error(&bare).raw_os_error(), Some(1));
        let other = libbpf_rs::Error::from(io::Error::other("nothing the system said"));
        assert_eq!(io_error(&other).to_string(), "nothing the system said");
    }
}
