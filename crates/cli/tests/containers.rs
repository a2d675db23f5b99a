//! `plan`, `lint` in a container: private namespaces that look like what the managers make. Nothing outside of them changes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use testkit::require_root_or_skip;

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");
const PLAN: &str = "$LINERATE plan --bandwidth 1gbit --rtt 80ms --role web";

/// Runs a shell's command line in namespaces of its own.
fn inside(namespaces: &[&str], commands: &str) -> Output {
    Command::new("unshare")
        .args(namespaces)
        .args(["bash", "-ec", commands])
        .env("LINERATE", PROGRAM)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

#[track_caller]
fn printed(namespaces: &[&str], commands: &str) -> String {
    let output = inside(namespaces, commands);
    assert!(output.status.success(), "{commands}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const CONTAINER: [&str; 7] = ["--mount", "--propagation", "private", "--pid", "--fork", "--uts", "--mount-proc"];

#[test]
fn the_marks_of_managers_are_found_in_namespaces_of_their_own() {
    require_root_or_skip!();
    for (mark, manager) in [
        ("mount -t tmpfs none /run && touch /run/.containerenv", "podman container (/run/.containerenv)"),
        (
            "mount -t tmpfs none /run && mkdir /run/systemd && echo systemd-nspawn > /run/systemd/container",
            "systemd-nspawn container (/run/systemd/container)",
        ),
        // cgroup v2, seen from a container with the host's view of it.
        (
            "mount -t tmpfs none /run && echo 0::/kubepods.slice/pod1 > /run/cgroup && mount --bind /run/cgroup /proc/$$/cgroup && ",
            "kubernetes container (/proc/self/cgroup)",
        ),
    ] {
        // The shell is the process whose /proc is changed; `exec` keeps its number.
        let exec = if mark.ends_with("&& ") { "exec " } else { "; " };
        let text = printed(&CONTAINER, &format!("{mark}{exec}{PLAN}"));
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // A mark on the disk of the machine that runs the tests comes before the control group.
        let on_disk = Path::new("/.dockerenv").exists() && manager.ends_with("cgroup)");
        let manager = if on_disk { "docker container (/.dockerenv)" } else { manager };
        assert!(words.contains(&format!("Not the host: a {manager}")), "{manager}: {text}");
    }
}

#[test]
fn lxc_is_told_by_the_environment_of_its_first_process() {
    require_root_or_skip!();
    // The shell is process 1 of the namespace, and stays it.
    let words = ["bash", "-c", &format!("mount -t tmpfs none /run; {PLAN}; true")];
    let output =
        Command::new("unshare").args(CONTAINER).args(words).env("LINERATE", PROGRAM).env("container", "lxc").output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Not the host: a lxc container (/proc/1/environ)"), "{text}");
}

#[test]
fn a_network_namespace_is_not_the_host_and_host_wide_keys_are_not_planned_for() {
    require_root_or_skip!();
    let text = printed(&["--net"], PLAN);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("another network namespace than the host's (net.core.netdev_max_backlog is not there)"),
        "{text}"
    );
    assert!(words.contains("not known here, and so not planned for: net.core.default_qdisc"), "{text}");
    let facts: Value = serde_json::from_str(&printed(&["--net"], "$LINERATE plan --print-facts")).unwrap();
    assert_eq!(facts["facts"]["container"], true);
    assert!(facts["facts"]["sysctls"].get("net.core.netdev_max_backlog").is_none());
}

#[test]
fn the_machine_itself_is_no_container_whatever_marks_lie_on_its_disk() {
    require_root_or_skip!();
    // Where this test itself runs in one, there is nothing to see.
    if fs::read_link("/proc/self/ns/pid").unwrap().to_str() != Some("pid:[4026531836]") {
        eprintln!("SKIPPED: the tests run in a container");
        return;
    }
    let mark = "mount -t tmpfs none /run && touch /run/.containerenv";
    let text = printed(&["--mount", "--propagation", "private"], &format!("{mark}; {PLAN}"));
    assert!(!text.contains("Not the host"), "{text}");
}

#[test]
fn lint_of_a_containers_own_files_judges_them_as_a_containers() {
    require_root_or_skip!();
    let files = "mount -t tmpfs none /run && touch /run/.containerenv && mkdir /run/sysctl.d \
                 && echo net.core.rmem_max = 8388608 > /run/sysctl.d/90-x.conf";
    let output = inside(&CONTAINER, &format!("{files}; $LINERATE lint"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("LR043 host-only-key"), "{text}");
    let host = inside(&["--mount", "--propagation", "private"], &format!("{files}; $LINERATE lint"));
    assert!(!String::from_utf8_lossy(&host.stdout).contains("LR043"));
}
