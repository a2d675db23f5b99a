use std::io;
use std::path::PathBuf;

use crate::KnobError;

/// Why the program was not loaded, or is not where it should be. The host is as before unless a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A knob outside its range.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// A name the kernel can't register.
    #[error("\"{0}\" can't name a congestion control: 1 to 15 letters, digits, _ or .")]
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
    /// The verifier refused the program.
    #[error("the kernel's verifier refused the program: {reason}; the whole log is in {}", .log.display())]
    Refused {
        /// Its last word.
        reason: String,
        /// Where the log was saved.
        log: PathBuf,
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

/// The system's error inside one of libbpf-rs.
pub(crate) fn io_error(error: &libbpf_rs::Error) -> io::Error {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = source {
        if let Some(io) = current.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return io::Error::from_raw_os_error(io);
        }
        source = current.source();
    }
    let message = format!("{error:#}");
    io::Error::other(message)
}
