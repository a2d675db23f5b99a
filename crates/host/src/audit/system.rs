//! The machine and its rules: what it runs, whether it is virtual or a container, and what that forbids.

use facts::{Control, Fact, Forbidden, System};
use nix::sys::statvfs::{FsFlags, statvfs};

use super::tree::Tree;
use crate::cc::{self, CcKind};

/// Reads it.
pub fn read(tree: &Tree) -> System {
    let container = container(tree);
    let mut forbidden = Vec::new();
    let mut forbid = |what: &str, why: String| forbidden.push(Forbidden { what: what.to_owned(), why });
    if tree.is_this_host() && statvfs("/proc/sys/net").is_ok_and(|fs| fs.flags().contains(FsFlags::ST_RDONLY)) {
        forbid("setting any sysctl", "/proc/sys is mounted read-only here".to_owned());
    }
    // It is host-wide on every kernel so far, and other namespaces don't have it.
    if !tree.has("/proc/sys/net/core/netdev_max_backlog") && tree.has("/proc/sys/net/core/somaxconn") {
        forbid(
            "setting host-wide sysctls (most of net.core, tcp_mem)",
            "this is another network namespace than the host's: /proc/sys/net/core/netdev_max_backlog is not here"
                .to_owned(),
        );
    }
    if !tree.has("/proc/sys/net/core/somaxconn") {
        forbid("reading or setting sysctls of the network", "/proc/sys/net is not here".to_owned());
    }
    match tree.read("/proc/self/status").ok().and_then(|text| capabilities(&text)) {
        Some(bits) if bits & CAP_NET_ADMIN == 0 => {
            forbid("changing anything of the network", "this process lacks CAP_NET_ADMIN (run it as root)".to_owned());
        }
        Some(bits) if bits & CAP_SYS_MODULE == 0 => {
            forbid("loading kernel modules", "this process lacks CAP_SYS_MODULE".to_owned());
        }
        _ => {}
    }
    if tree.read("/proc/self/uid_map").is_ok_and(|text| !is_whole_map(&text)) {
        forbid(
            "changing the host",
            "this is a user namespace: its root is not the host's (/proc/self/uid_map)".to_owned(),
        );
    }
    if !tree.has("/run/systemd/system") {
        forbid(
            "boot units",
            "systemd is not running here (no /run/systemd/system): what is set is kept by files of other kinds"
                .to_owned(),
        );
    }
    System {
        distribution: distribution(tree),
        cpus: tree.fact("/sys/devices/system/cpu/online", cpus_in),
        uptime_seconds: tree.fact("/proc/uptime", |text| text.split(['.', ' ']).next()?.parse().ok()),
        virtualisation: virtualisation(tree),
        container,
        init: tree.fact("/proc/1/comm", |text| Some(text.trim_end().to_owned())),
        forbidden,
    }
}

/// linux/capability.h
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_MODULE: u64 = 1 << 16;

/// `CapEff` of proc_pid_status(5).
fn capabilities(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// user_namespaces(7): the first one's map is all numbers onto themselves.
fn is_whole_map(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The numbers in `0-3,8`.
fn cpus_in(text: &str) -> Option<u64> {
    let mut count = 0u64;
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(count)
}

fn distribution(tree: &Tree) -> Fact<String> {
    let pretty = |text: &str| {
        let value = text.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
        Some(value.trim_matches(['"', '\'']).to_owned())
    };
    let first = tree.fact("/etc/os-release", pretty);
    if first.value.is_some() { first } else { tree.fact("/usr/lib/os-release", pretty) }
}

/// Makers of virtual machines by what DMI names, and what people call them.
const MACHINES: [(&str, &str); 12] = [
    ("KVM", "kvm"),
    ("QEMU", "qemu"),
    ("Amazon EC2", "amazon"),
    ("Google", "google"),
    ("Microsoft Corporation", "hyper-v"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek GmbH", "virtualbox"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("Hetzner", "kvm"),
];

fn virtualisation(tree: &Tree) -> Fact<String> {
    for file in ["product_name", "sys_vendor", "board_vendor", "bios_vendor"] {
        let path = format!("/sys/class/dmi/id/{file}");
        let text = tree.read(&path).unwrap_or_default();
        if let Some((_, name)) = MACHINES.iter().find(|(maker, _)| text.contains(maker)) {
            return Fact::known(path, (*name).to_owned());
        }
    }
    if let Ok(text) = tree.read("/sys/hypervisor/type") {
        return Fact::known("/sys/hypervisor/type", text.trim().to_owned());
    }
    tree.fact("/proc/cpuinfo", |text| {
        let flags = text.lines().find(|line| line.starts_with("flags"));
        let hypervisor = flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
        Some(if hypervisor { "a hypervisor that does not name itself".to_owned() } else { String::new() })
    })
}

fn container(tree: &Tree) -> Fact<String> {
    match crate::container::detect_in(&tree.place("/")) {
        Some(container) => Fact::known(container.evidence, container.manager),
        None => Fact::known("/run/systemd/container, /.dockerenv, /run/.containerenv, /proc/1/environ", String::new()),
    }
}

/// The congestion controls that are registered, each probed on a fresh socket.
pub fn controls(tree: &Tree) -> Fact<Vec<Control>> {
    let from = "net.ipv4.tcp_available_congestion_control, TCP_CC_INFO";
    if !tree.is_this_host() {
        return Fact::missing(from, "not this host");
    }
    let names = match cc::available() {
        Ok(names) => names,
        Err(error) => return Fact::missing(from, error),
    };
    let allowed = cc::allowed().unwrap_or_default();
    let default = cc::default_control().unwrap_or_default();
    let control = |name: String| {
        let probed = cc::probe_version(&name).ok();
        Control {
            kind: match &probed {
                Some(version) if version.kind == CcKind::Bpf => "bpf",
                Some(_) => "kernel",
                None => "unknown",
            }
            .to_owned(),
            bbr_version: probed.and_then(|version| version.bbr_version()),
            allowed: allowed.contains(&name),
            default: default == name,
            name,
        }
    };
    Fact::known(from, names.into_iter().map(control).collect())
}

/// Any text in place of these files: for tests.
#[doc(hidden)]
pub fn exercise(text: &str) {
    let _ = (capabilities(text), is_whole_map(text), cpus_in(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_capabilities_and_maps_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpus_in("0-3,8\n"), Some(5));
        assert_eq!(cpus_in("0\n"), Some(1));
        assert_eq!(cpus_in("3-1"), None);
        assert_eq!(cpus_in(""), None);
        assert_eq!(capabilities("Name:\tx\nCapEff:\t00000000a80425fb\n"), Some(0xa804_25fb));
        assert!(is_whole_map("         0          0 4294967295\n"));
        assert!(!is_whole_map("         0     100000      65536\n"));
    }
}
