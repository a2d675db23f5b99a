//! The program itself, killed or refused at every system call that changes something. In a network namespace of its own and on a folder that
//! stands for the machine's files. The system calls are stopped by strace(1), so what runs is what users run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use host::netns::NetNs;
use host::sysctl;
use serde_json::json;

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");
/// Calls that change something on this machine.
const CALLS: [&str; 11] =
    ["mkdir", "rmdir", "rename", "unlink", "symlink", "ftruncate", "fsync", "fchmod", "flock", "write", "sendto"];
const KEYS: [(&str, &str); 14] = [
    ("net.ipv4.tcp_rmem", "4096 262144 33554432"),
    ("net.ipv4.tcp_wmem", "4096 65536 33554432"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
    ("net.ipv4.tcp_notsent_lowat", "131072"),
    ("net.ipv4.tcp_keepalive_time", "600"),
    ("net.ipv4.tcp_keepalive_intvl", "30"),
    ("net.ipv4.tcp_keepalive_probes", "5"),
    ("net.ipv4.tcp_fin_timeout", "30"),
    ("net.ipv4.tcp_mtu_probing", "1"),
    ("net.ipv4.tcp_max_syn_backlog", "8192"),
    ("net.ipv4.tcp_max_tw_buckets", "400000"),
    ("net.ipv4.tcp_syn_retries", "5"),
    ("net.ipv4.ip_local_port_range", "10240 65535"),
    ("net.core.somaxconn", "16384"),
];

/// A namespace with a device whose disciplines can be changed, and a folder.
struct Place {
    namespace: NetNs,
    folder: tempfile::TempDir,
    plan: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for name in ["etc/sysctl.d", "var/lib", "etc/systemd/system"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("etc/sysctl.d/10-own.conf"), "net.ipv4.tcp_sack = 1\n").unwrap();
        let namespace = NetNs::create().unwrap();
        testkit::ip(&namespace, "link add ifb9 numtxqueues 2 type ifb");
        testkit::ip(&namespace, "link set ifb9 up");
        let plan = folder.path().join("plan.json");
        let place = Self { namespace, folder, plan };
        place.write_plan();
        place
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn write_plan(&self) {
        let facts = Command::new(LINERATE).args(["plan", "--print-facts"]).output().unwrap();
        let facts: serde_json::Value = serde_json::from_slice(&facts.stdout).unwrap();
        let facts = &facts["facts"];
        let change = |kind: &str, key: &str, from: &str, to: &str| json!({ "kind": kind, "key": key, "from": from, "to": to, "place": "namespace", "why": "a test", "effect": "", "risk": "", "source": "" });
        let mut changes: Vec<_> = KEYS
            .iter()
            .map(|(key, to)| {
                let from = self.namespace.run(|| sysctl::read(key).unwrap()).unwrap();
                change("sysctl", key, &from, to)
            })
            .collect();
        let leaves = self.leaves();
        assert!(!leaves.is_empty(), "the device has queues");
        // The one kind that every kernel has and none puts there by itself.
        changes.push(change("qdisc", "ifb9 leaves", &leaves.join(" "), &vec!["pfifo"; leaves.len()].join(" ")));
        let plan = json!({
            "schema": "linerate.plan/1",
            "host": { "name": facts["hostname"], "id": facts["machine"], "kernel": facts["kernel"], "memory_bytes": facts["memory_bytes"] },
            "target": { "bandwidth_bps": 1_000_000_000_u64, "rtt_ns": 80_000_000_u64, "role": "web", "connections": null },
            "changes": changes, "kept": [], "notes": [],
        });
        fs::write(&self.plan, plan.to_string()).unwrap();
    }

    /// The kinds of the device's disciplines below `mq`.
    fn leaves(&self) -> Vec<String> {
        let all = self.namespace.run(|| host::qdisc::list().unwrap()).unwrap();
        all.iter().filter(|qdisc| !qdisc.root && qdisc.parent != 0xffff_fff1).map(|qdisc| qdisc.kind.clone()).collect()
    }

    fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }

    fn words<'a>(&'a self, command: &'a str) -> Vec<&'a str> {
        let root = self.root().to_str().unwrap();
        match command {
            "apply" => vec!["apply", self.plan.to_str().unwrap(), "--yes", "--in-namespace", "--root", root],
            other => vec![other, "--root", root],
        }
    }

    fn linerate(&self, command: &str) -> Output {
        self.command(LINERATE).args(self.words(command)).output().unwrap()
    }

    /// Under strace, which lets the `at`th of these calls (from 1) fail. The output of strace counts them.
    fn traced(&self, command: &str, call: &str, how: &str, at: usize) -> (Output, usize) {
        let log = self.root().join("strace");
        let mut strace = self.command("strace");
        strace.args(["-qq", "-f", "-o", log.to_str().unwrap(), "-e", &format!("trace={call}")]);
        strace.args(["-e", &format!("inject={call}:{how}:when={at}")]);
        let output = strace.arg(LINERATE).args(self.words(command)).output().unwrap();
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(log);
        (output, text.lines().filter(|line| line.contains(&format!("{call}("))).count())
    }

    /// Files with their bytes, keys, disciplines.
    fn picture(&self) -> BTreeMap<String, String> {
        let mut picture = BTreeMap::new();
        walk(self.root(), &mut picture);
        picture.retain(|path, _| !path.contains("/var/lib/linerate") && !path.ends_with("/strace"));
        let here = || {
            let keys = KEYS.iter().map(|(key, _)| ((*key).to_owned(), sysctl::read(key).unwrap()));
            let tree =
                host::qdisc::list().unwrap().iter().map(|q| format!("{}:{:x}", q.kind, q.handle)).collect::<Vec<_>>();
            (keys.collect::<Vec<_>>(), tree.join(" "))
        };
        let (keys, tree) = self.namespace.run(here).unwrap();
        picture.extend(keys);
        picture.insert("qdiscs".into(), tree);
        picture
    }
}

fn walk(folder: &Path, picture: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if path.is_symlink() {
            picture.insert(name, format!("link to {}", fs::read_link(&path).unwrap().display()));
        } else if path.is_dir() {
            walk(&path, picture);
            picture.insert(name, "directory".into());
        } else {
            picture.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
}

fn strace_is_missing() -> bool {
    if Command::new("strace").arg("-V").output().is_ok() {
        return false;
    }
    assert!(std::env::var("CI").is_err(), "strace is missing");
    eprintln!("SKIPPED: strace is missing");
    true
}

/// Each call of each kind, one run each; `judge` says whether the state right after is allowed.
fn at_every_call(
    command: &str,
    how: &str,
    calls: &[&str],
    judge: impl Fn(&Place, &Output, &BTreeMap<String, String>, &str),
) -> usize {
    let place = Place::new();
    let before = place.picture();
    let mut points = 0;
    for call in calls {
        for at in 1..200 {
            if command == "rollback" {
                let applied = place.linerate("apply");
                assert!(applied.status.success(), "{applied:?}");
                assert_ne!(place.picture(), before);
            }
            let (output, seen) = place.traced(command, call, how, at);
            let done = seen < at;
            let what = format!("{command}: {how} at {call} number {at}: {}", String::from_utf8_lossy(&output.stderr));
            if !done {
                points += 1;
                judge(&place, &output, &before, &what);
            }
            let next = place.linerate("rollback");
            assert!(next.status.success(), "{what}: the next rollback: {next:?}");
            assert_eq!(place.picture(), before, "{what}: the next rollback restores every byte");
            if done {
                break;
            }
        }
    }
    let gone = place
        .command(LINERATE)
        .args(["uninstall", "--yes", "--root", place.root().to_str().unwrap()])
        .status()
        .unwrap();
    assert!(gone.success());
    assert!(!place.root().join("var/lib/linerate").exists(), "uninstall leaves no file");
    assert_eq!(place.picture(), before);
    points
}

#[test]
fn killed_at_any_system_call_of_apply_and_rollback_the_next_rollback_restores_every_byte() {
    testkit::require_root_or_skip!();
    if strace_is_missing() {
        return;
    }
    let apply = at_every_call("apply", "signal=KILL", &CALLS, |_, _, _, _| {});
    let rollback = at_every_call("rollback", "signal=KILL", &CALLS, |_, _, _, _| {});
    println!("killed at {apply} calls of apply, {rollback} of rollback");
    assert!(apply + rollback >= 100, "{apply} {rollback}");
}

#[test]
fn an_apply_whose_system_calls_are_refused_leaves_nothing_behind() {
    testkit::require_root_or_skip!();
    if strace_is_missing() {
        return;
    }
    let mut points = 0;
    for error in ["ENOSPC", "EROFS", "EPERM", "EINVAL"] {
        points += at_every_call(
            "apply",
            &format!("error={error}"),
            // Reads go through openat and netlink's dump through sendto too: a refusal there is one to begin.
            &["mkdir", "rename", "fsync", "fchmod", "write", "symlink"],
            |place, output, before, what| {
                let after = place.picture();
                match output.status.code() {
                    Some(0) => assert_ne!(&after, before, "{what}"),
                    Some(3 | 4) => assert_eq!(&after, before, "{what}: a failed apply leaves nothing behind"),
                    other => panic!("{what}: {other:?}"),
                }
            },
        );
    }
    println!("refused at {points} calls");
}

#[test]
fn a_full_disk_is_an_apply_that_is_undone() {
    testkit::require_root_or_skip!();
    let place = Place::new();
    let before = place.picture();
    // One page: the journal fits, and the drop-in does not.
    let state = place.root().join("etc/sysctl.d");
    let full = place.namespace.run(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS | nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
        let none = None::<&str>;
        nix::mount::mount(none, "/", none, nix::mount::MsFlags::MS_REC | nix::mount::MsFlags::MS_PRIVATE, none)
            .unwrap();
        let flags = nix::mount::MsFlags::empty();
        nix::mount::mount(Some("tmpfs"), &state, Some("tmpfs"), flags, Some("size=4096,nr_inodes=20")).unwrap();
        fs::write(state.join("10-own.conf"), "net.ipv4.tcp_sack = 1\n").unwrap();
        let output = Command::new(LINERATE).args(place.words("apply")).output().unwrap();
        let names: Vec<_> = fs::read_dir(&state).unwrap().flatten().map(|entry| entry.file_name()).collect();
        (output, names)
    });
    let (output, names) = full.unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("No space left") && message.contains("Everything is as it was before"), "{message}");
    assert_eq!(names, ["10-own.conf"]);
    assert_eq!(place.picture(), before);
}
