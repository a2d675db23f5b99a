//! Congestion controls of the running kernel, told apart by what they do rather than by name.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::sysctl::{self, SysctlError};
use crate::tcp::{self, SetCongestionControlError};

/// Controls of mainline Linux whose module or built-in code shows no state of its own (net/ipv4/, Linux 6.18).
const MAINLINE: [&str; 17] = [
    "reno",
    "cubic",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// What stands behind a congestion control's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CcKind {
    /// Code of the kernel or one of its modules.
    Kernel,
    /// A BBR of this version in the kernel or a module.
    Bbr(u8),
    /// Loaded as BPF: not a name of mainline, no module of that name, and no state shown.
    Bpf,
}

/// A congestion control and which implementation of it runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CcVersion {
    /// Its name for `TCP_CONGESTION`.
    pub name: String,
    /// What stands behind the name.
    pub kind: CcKind,
}

impl CcVersion {
    /// What a socket runs now, read from the socket itself.
    ///
    /// # Errors
    /// What getsockopt(2) says.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let name = tcp::congestion_control(&socket)?;
        let info = tcp::cc_info(&socket)?;
        let has_module = Path::new("/sys/module").join(format!("tcp_{name}")).exists();
        Ok(Self { kind: kind_of(&name, info.bbr_version(), info.length(), has_module), name })
    }

    /// The BBR version, where it is one that says so.
    pub fn bbr_version(&self) -> Option<u8> {
        match self.kind {
            CcKind::Bbr(version) => Some(version),
            CcKind::Kernel | CcKind::Bpf => None,
        }
    }
}

impl fmt::Display for CcVersion {
    /// `bbr (BBRv1)`, `cubic`, `bbr3 (BPF)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CcKind::Kernel => f.write_str(&self.name),
            CcKind::Bbr(version) => write!(f, "{} (BBRv{version})", self.name),
            CcKind::Bpf => write!(f, "{} (BPF)", self.name),
        }
    }
}

fn kind_of(name: &str, bbr_version: Option<u8>, info_length: usize, has_module: bool) -> CcKind {
    match bbr_version {
        Some(version) => CcKind::Bbr(version),
        // Every BBR of a kernel shows its state.
        None if name == "bbr" && info_length == 0 => CcKind::Bpf,
        None if info_length > 0 || has_module || MAINLINE.contains(&name) => CcKind::Kernel,
        None => CcKind::Bpf,
    }
}

/// The controls loaded now. The kernel may have more as modules.
///
/// # Errors
/// Where the sysctl can't be read.
pub fn available() -> Result<Vec<String>, SysctlError> {
    names("net.ipv4.tcp_available_congestion_control")
}

/// The controls that ordinary users may choose.
///
/// # Errors
/// Where the sysctl can't be read.
pub fn allowed() -> Result<Vec<String>, SysctlError> {
    names("net.ipv4.tcp_allowed_congestion_control")
}

/// The control of new sockets in the calling thread's namespace.
///
/// # Errors
/// Where the sysctl can't be read.
pub fn default_control() -> Result<String, SysctlError> {
    sysctl::read("net.ipv4.tcp_congestion_control")
}

/// Makes `name` the control of new sockets in the calling thread's namespace. Where it is the default already, this still matters: the
/// kernel looks the name up again, and a control that was replaced since is then taken in its new form (`tcp_set_default_congestion_control`,
/// net/ipv4/tcp_cong.c).
///
/// # Errors
/// Where the kernel has none of that name, or does not let this namespace use it.
pub fn set_default_control(name: &str) -> Result<(), SysctlError> {
    sysctl::write("net.ipv4.tcp_congestion_control", name).map(drop)
}

/// Names that modules of this kernel may bring: `tcp_NAME.ko` in modules.dep(5), sorted. Which of them are loaded is not asked.
///
/// # Errors
/// Where the kernel's release can't be read. A kernel without modules has none.
pub fn in_modules() -> io::Result<Vec<String>> {
    let mut names: Vec<String> = read_module_list("modules.dep")?.lines().filter_map(control_of_module).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Whether the kernel itself has a control of this name: built in, or in a module, loaded or not.
///
/// # Errors
/// Where the kernel's release can't be read.
pub fn is_kernels_own(name: &str) -> io::Result<bool> {
    if MAINLINE.contains(&name) && available().is_ok_and(|all| all.iter().any(|there| there == name)) {
        return Ok(true);
    }
    let built_in = read_module_list("modules.builtin")?;
    Ok(in_modules()?.iter().any(|there| there == name)
        || built_in.lines().filter_map(control_of_module).any(|there| there == name))
}

/// Whether the control is a module that is loaded.
pub fn is_loaded_module(name: &str) -> bool {
    Path::new("/sys/module").join(format!("tcp_{name}")).join("initstate").exists()
}

fn read_module_list(list: &str) -> io::Result<String> {
    let uname = nix::sys::utsname::uname().map_err(io::Error::from)?;
    Ok(fs::read_to_string(Path::new("/lib/modules").join(uname.release()).join(list)).unwrap_or_default())
}

/// Modules named `tcp_…` that are no congestion control.
const OTHER_TCP_MODULES: [&str; 3] = ["diag", "probe", "sigpool"];

/// The control in a line of modules.dep or modules.builtin (`kernel/net/ipv4/tcp_bbr.ko.xz: …`).
fn control_of_module(line: &str) -> Option<String> {
    let path = Path::new(line.split(':').next()?);
    let of_kernel = path.starts_with("kernel");
    if of_kernel && !path.parent()?.ends_with("net/ipv4") {
        return None;
    }
    let name = path.file_name()?.to_str()?.split(".ko").next()?.strip_prefix("tcp_")?;
    (!OTHER_TCP_MODULES.contains(&name)).then(|| name.to_owned())
}

fn names(key: &str) -> Result<Vec<String>, SysctlError> {
    Ok(sysctl::read(key)?.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

/// Which implementation the kernel runs under `name`, found by giving it to a fresh socket.
///
/// # Errors
/// Where the socket does not take it.
pub fn probe_version(name: &str) -> Result<CcVersion, SetCongestionControlError> {
    let failed = |source: io::Error| SetCongestionControlError::Io { name: name.to_owned(), source };
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None);
    let socket = socket.map_err(|errno| failed(errno.into()))?;
    tcp::set_congestion_control(&socket, name)?;
    CcVersion::of(&socket).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_implementation_is_told_by_what_it_shows_before_its_name() {
        assert_eq!(kind_of("bbr", Some(3), 52, true), CcKind::Bbr(3));
        assert_eq!(kind_of("bbr", Some(1), 20, false), CcKind::Bbr(1));
        assert_eq!(kind_of("cubic", None, 0, false), CcKind::Kernel);
        assert_eq!(kind_of("vegas", None, 16, false), CcKind::Kernel);
        assert_eq!(kind_of("brutal", None, 0, true), CcKind::Kernel);
        assert_eq!(kind_of("bbr3", None, 0, false), CcKind::Bpf);
        assert_eq!(kind_of("bbr", None, 0, true), CcKind::Bpf);
    }

    #[test]
    fn controls_are_told_from_other_modules_by_folder_and_name() {
        let control = |line: &str| control_of_module(line);
        assert_eq!(control("kernel/net/ipv4/tcp_bbr.ko.xz: kernel/x.ko").as_deref(), Some("bbr"));
        assert_eq!(control("kernel/net/ipv4/tcp_dctcp.ko").as_deref(), Some("dctcp"));
        assert_eq!(control("updates/dkms/tcp_brutal.ko.zst:").as_deref(), Some("brutal"));
        for other in
            ["kernel/net/ipv4/tcp_diag.ko:", "kernel/drivers/x/tcp_thing.ko:", "kernel/net/ipv4/udp_diag.ko:", ""]
        {
            assert_eq!(control(other), None, "{other}");
        }
    }

    #[test]
    fn versions_are_written_as_people_expect() {
        let version = |name: &str, kind| CcVersion { name: name.into(), kind }.to_string();
        assert_eq!(version("bbr", CcKind::Bbr(1)), "bbr (BBRv1)");
        assert_eq!(version("cubic", CcKind::Kernel), "cubic");
        assert_eq!(version("bbr3", CcKind::Bpf), "bbr3 (BPF)");
    }
}
