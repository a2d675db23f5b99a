//! What settings are meant for.

use std::fmt;

use crate::effective::Distribution;
use crate::kernel::KernelVersion;
use crate::plan::Role;

/// A place to apply settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// `None`: any.
    pub distribution: Option<Distribution>,
    /// The kernel.
    pub kernel: KernelVersion,
    /// Whether it is a container without the host's privileges.
    pub is_container: bool,
    /// Whether BusyBox applies the files.
    pub has_busybox: bool,
    /// `None`: any.
    pub role: Option<Role>,
    /// Its memory; `None`: not known.
    pub memory: Option<units::Bytes>,
    /// The congestion controls it has or can load; `None`: not known.
    pub congestion_controls: Option<Vec<String>>,
}

/// Why a text names no target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetError(String);

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TargetError {}

/// Kernels of distributions, the newest version first where several match.
const KERNELS: [(&str, &str, KernelVersion); 18] = [
    ("debian", "11", KernelVersion::new(5, 10)),
    ("debian", "12", KernelVersion::new(6, 1)),
    ("debian", "13", KernelVersion::new(6, 12)),
    ("ubuntu", "20.04", KernelVersion::new(5, 4)),
    ("ubuntu", "22.04", KernelVersion::new(5, 15)),
    ("ubuntu", "24.04", KernelVersion::new(6, 8)),
    ("ubuntu", "26.04", KernelVersion::new(7, 0)),
    ("rhel", "8", KernelVersion::new(4, 18)),
    ("rhel", "9", KernelVersion::new(5, 14)),
    ("rhel", "10", KernelVersion::new(6, 12)),
    ("almalinux", "9", KernelVersion::new(5, 14)),
    ("rocky", "9", KernelVersion::new(5, 14)),
    ("almalinux", "10", KernelVersion::new(6, 12)),
    ("rocky", "10", KernelVersion::new(6, 12)),
    ("centos", "9", KernelVersion::new(5, 14)),
    ("amzn", "2023", KernelVersion::new(6, 1)),
    ("sles", "15", KernelVersion::new(6, 4)),
    ("opensuse-leap", "15", KernelVersion::new(6, 4)),
];

impl Target {
    /// Whether it forwards packets of others.
    pub(super) fn forwards(&self) -> bool {
        matches!(self.role, Some(Role::Router | Role::KubernetesNode))
    }

    /// Any host with a kernel.
    pub fn new(kernel: KernelVersion) -> Self {
        Self {
            distribution: None,
            kernel,
            is_container: false,
            has_busybox: false,
            role: None,
            memory: None,
            congestion_controls: None,
        }
    }

    /// Reads words joined by commas: `debian-13`, `kernel=6.12`, `memory=16GiB`, `role=router`, `container`, `busybox`,
    /// `congestion-controls=reno+cubic`. A distribution brings its kernel; without either it is `kernel`.
    ///
    /// # Errors
    /// [`TargetError`] names the word and those there are.
    pub fn parse(text: &str, kernel: KernelVersion) -> Result<Self, TargetError> {
        let mut target = Self::new(kernel);
        let mut has_kernel = false;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let wrong = |why: &dyn fmt::Display| TargetError(format!("target `{word}`: {why}"));
            match word.split_once('=') {
                Some(("kernel", version)) => {
                    target.kernel = version.parse().map_err(|e| wrong(&e))?;
                    has_kernel = true;
                }
                Some(("memory", size)) => {
                    let bytes: units::Bytes = size.parse().map_err(|e| wrong(&e))?;
                    target.memory = Some(bytes);
                }
                Some(("role", name)) => {
                    let names = || Role::ALL.map(Role::name).join(", ");
                    let role = Role::ALL.into_iter().find(|role| role.name() == name);
                    target.role = Some(role.ok_or_else(|| wrong(&format_args!("roles are {}", names())))?);
                }
                Some(("congestion-controls", names)) => {
                    target.congestion_controls = Some(names.split(['+', ' ']).map(str::to_owned).collect());
                }
                Some(_) => {
                    return Err(wrong(
                        &"known are kernel=VERSION, memory=SIZE, role=ROLE, congestion-controls=NAME+NAME, container, busybox and distributions such as debian-13",
                    ));
                }
                None if word == "container" => target.is_container = true,
                None if word == "busybox" => target.has_busybox = true,
                None => {
                    let distribution = Distribution::parse(word);
                    let major = distribution.version.split('.').next().unwrap_or("").to_owned();
                    let known = KERNELS.iter().find(|(id, version, _)| {
                        *id == distribution.id && (*version == distribution.version || *version == major)
                    });
                    let is_named = KERNELS.iter().any(|(id, ..)| *id == distribution.id)
                        || OTHERS.contains(&distribution.id.as_str());
                    if !is_named {
                        return Err(wrong(&"not a distribution known here; write it like debian-13 or ubuntu-26.04"));
                    }
                    if let Some((.., kernel)) = known.filter(|_| !has_kernel) {
                        target.kernel = *kernel;
                    }
                    target.distribution = Some(distribution);
                }
            }
        }
        Ok(target)
    }
}

/// Distributions whose kernel does not follow from a version.
const OTHERS: [&str; 12] = [
    "fedora",
    "arch",
    "alpine",
    "gentoo",
    "nixos",
    "void",
    "opensuse-tumbleweed",
    "flatcar",
    "talos",
    "raspbian",
    "openwrt",
    "cachyos",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_make_a_target_and_a_distribution_brings_its_kernel() {
        let running = KernelVersion::new(6, 18);
        let target = Target::parse("debian-13, memory=16GiB,role=router,container", running).unwrap();
        assert_eq!(target.kernel, KernelVersion::new(6, 12));
        assert_eq!((target.memory, target.is_container), (Some(units::Bytes::new(16 << 30)), true));
        assert_eq!(Target::parse("kernel=6.1,debian-13", running).unwrap().kernel, KernelVersion::new(6, 1));
        assert_eq!(Target::parse("", running).unwrap().kernel, running);
    }

    #[test]
    fn what_is_no_target_is_named() {
        for (text, part) in [
            ("debain-13", "debain-13"),
            ("kernel=six", "six"),
            ("memory=much", "much"),
            ("role=boss", "kubernetes-node"),
            ("colour=red", "kernel=VERSION"),
        ] {
            let error = Target::parse(text, KernelVersion::new(6, 1)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
