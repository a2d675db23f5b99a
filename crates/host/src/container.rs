//! Whether this process runs in a container, and by what that is known.
//!
//! A mark alone proves nothing: the disk of a virtual machine that was made out of a container image still has `/.dockerenv` on it. So a mark
//! counts only together with a namespace that is not the host's first one. Those have fixed numbers (`include/linux/proc_ns.h`,
//! the same from 3.8 to 7.2).

use std::fs;
use std::path::Path;

/// A container, and how it was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// `docker`, `podman`, `lxc`, `systemd-nspawn`, `kubernetes`, …, as its mark says; `container` where that says nothing.
    pub manager: String,
    /// The file that says so.
    pub evidence: &'static str,
}

/// The first namespaces of a running kernel, by the name of their links. The network's has no fixed number; mounts are
/// private too often to mean anything.
const FIRST: [(&str, u64); 5] =
    [("pid", 0xefff_fffc), ("user", 0xefff_fffd), ("uts", 0xefff_fffe), ("ipc", 0xefff_ffff), ("cgroup", 0xefff_fffb)];

/// The container that this process runs in; `None`: none that can be recognised.
pub fn detect() -> Option<Container> {
    detect_in(Path::new("/"))
}

/// The same for a tree that looks like `/`.
pub fn detect_in(root: &Path) -> Option<Container> {
    let mark = mark(root)?;
    has_own_namespace(root).then_some(mark)
}

/// Whether one of the namespaces isn't the first. Where `/proc` does not tell, a mark is believed.
fn has_own_namespace(root: &Path) -> bool {
    let number = |name: &str| {
        let link = fs::read_link(root.join("proc/self/ns").join(name)).ok()?;
        // `pid:[4026531836]`
        link.to_str()?.split_once(":[")?.1.strip_suffix(']')?.parse::<u64>().ok()
    };
    let seen: Vec<bool> =
        FIRST.iter().filter_map(|(name, first)| number(name).map(|number| number != *first)).collect();
    seen.is_empty() || seen.contains(&true)
}

/// What container managers leave for those who ask, the surest first.
fn mark(root: &Path) -> Option<Container> {
    let text = |path: &str| fs::read_to_string(root.join(path)).ok();
    let found = |manager: &str, evidence| {
        let manager = if manager.is_empty() { "container" } else { manager };
        Some(Container { manager: manager.to_owned(), evidence })
    };
    // https://systemd.io/CONTAINER_INTERFACE/
    for (path, evidence) in [
        ("run/host/container-manager", "/run/host/container-manager"),
        ("run/systemd/container", "/run/systemd/container"),
    ] {
        if let Some(text) = text(path) {
            return found(text.trim(), evidence);
        }
    }
    // Readable for root only. LXC, nspawn and podman say `container=lxc`.
    let environment = fs::read(root.join("proc/1/environ")).unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    if let Some(value) = variables.find_map(|variable| variable.strip_prefix(b"container=")) {
        return found(&String::from_utf8_lossy(value), "/proc/1/environ");
    }
    if root.join("run/.containerenv").exists() {
        return found("podman", "/run/.containerenv");
    }
    if root.join("run/secrets/kubernetes.io").exists() || root.join("var/run/secrets/kubernetes.io").exists() {
        return found("kubernetes", "/var/run/secrets/kubernetes.io");
    }
    if root.join("dev/lxd").exists() {
        return found("lxd", "/dev/lxd");
    }
    if root.join(".dockerenv").exists() {
        return found("docker", "/.dockerenv");
    }
    if root.join("proc/vz").exists() && !root.join("proc/bc").exists() {
        return found("openvz", "/proc/vz");
    }
    // With cgroup v2 and a namespace of its own this is `0::/`, and tells nothing: the mounts still do.
    let cgroup = text("proc/self/cgroup").unwrap_or_default();
    if let Some((_, manager)) = CGROUPS.iter().find(|(part, _)| cgroup.contains(part)) {
        return found(manager, "/proc/self/cgroup");
    }
    let mounts = text("proc/self/mountinfo").unwrap_or_default();
    mounts.lines().find_map(manager_of_mount).and_then(|manager| found(manager, "/proc/self/mountinfo"))
}

/// Parts of a control group's path.
const CGROUPS: [(&str, &str); 5] = [
    ("/kubepods", "kubernetes"),
    ("/docker/", "docker"),
    ("/docker-", "docker"),
    ("/libpod-", "podman"),
    ("/lxc", "lxc"),
];

/// Files that a manager lays over a container's own come out of its folder (proc_pid_mountinfo(5)). The host has such folders too: only what
/// is mounted over files of every system counts.
fn manager_of_mount(line: &str) -> Option<&'static str> {
    let mut fields = line.split(' ').skip(3);
    let (source, place) = (fields.next()?, fields.next()?);
    if place.starts_with("/proc/") && line.contains(" fuse.lxcfs ") {
        return Some("lxc");
    }
    if !place.starts_with("/etc/") && place != "/dev/termination-log" {
        return None;
    }
    [("/kubelet/pods/", "kubernetes"), ("/docker/containers/", "docker"), ("/overlay-containers/", "podman")]
        .iter()
        .find(|(part, _)| source.contains(part))
        .map(|(_, manager)| *manager)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A tree with files, and with a PID namespace that is the first or isn't.
    fn tree(first: bool, files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let namespaces = folder.path().join("proc/self/ns");
        fs::create_dir_all(&namespaces).unwrap();
        let pid = if first { "pid:[4026531836]" } else { "pid:[4026532701]" };
        symlink(pid, namespaces.join("pid")).unwrap();
        symlink("user:[4026531837]", namespaces.join("user")).unwrap();
        folder
    }

    fn manager(first: bool, files: &[(&str, &str)]) -> Option<String> {
        detect_in(tree(first, files).path()).map(|container| container.manager)
    }

    const MARKS: [(&str, &str, &str); 11] = [
        ("run/.containerenv", "", "podman"),
        (".dockerenv", "", "docker"),
        ("run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"),
        ("run/host/container-manager", "mkosi\n", "mkosi"),
        ("proc/1/environ", "TERM=linux\0container=lxc\0HOME=/\0", "lxc"),
        ("proc/1/environ", "container=\0", "container"),
        ("proc/vz/version", "", "openvz"),
        ("run/secrets/kubernetes.io/serviceaccount/token", "", "kubernetes"),
        ("proc/self/cgroup", "4:memory:/docker/0123abcd\n0::/\n", "docker"),
        ("proc/self/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n", "kubernetes"),
        (
            "proc/self/mountinfo",
            "661 640 254:1 /var/lib/docker/containers/0123/hostname /etc/hostname rw - ext4 /dev/vda1 rw\n",
            "docker",
        ),
    ];

    #[test]
    fn every_managers_mark_is_recognised() {
        for (file, text, expected) in MARKS {
            assert_eq!(manager(false, &[(file, text)]).as_deref(), Some(expected), "{file}");
        }
        // cgroup v2 inside of a cgroup namespace says nothing, and the mounts do.
        let both = [("proc/self/cgroup", "0::/\n"), (MARKS[10].0, MARKS[10].1)];
        assert_eq!(manager(false, &both).as_deref(), Some("docker"));
    }

    #[test]
    fn a_mark_on_a_virtual_machines_disk_is_no_container() {
        for (file, text, _) in MARKS {
            assert_eq!(manager(true, &[(file, text)]), None, "{file}");
        }
    }

    #[test]
    fn a_host_with_containers_on_it_is_none() {
        let host = [
            ("proc/1/environ", "HOME=/\0TERM=linux\0mycontainer=x\0"),
            ("proc/self/cgroup", "0::/user.slice/user-0.slice/session-1.scope\n"),
            (
                "proc/self/mountinfo",
                "22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n\
                 90 22 0:50 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw\n\
                 91 22 0:51 /var/lib/docker/containers/0123/mounts/shm /var/lib/docker/containers/0123/mounts/shm rw - tmpfs shm rw\n",
            ),
        ];
        assert_eq!(manager(false, &host), None);
        // An OpenVZ host has both.
        assert_eq!(manager(false, &[("proc/vz/version", ""), ("proc/bc/x", "")]), None);
    }
}
