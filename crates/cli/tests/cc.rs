//! `linerate cc` as its user runs it. Every test that loads has a mount namespace with a BPF file system of its own, and a network
//! namespace: what it loads goes with them, also when it fails.
#![cfg(feature = "bpf")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use host::netns::NetNs;
use serde_json::Value;
use testkit::{require_root_or_skip, with_private_bpffs};

fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("lc{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Runs on the calling thread, so in its namespaces.
fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate")).arg("cc").args(words).env("NO_COLOR", "1").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output, after an end with this exit code.
#[track_caller]
fn ends(code: i32, words: &[&str]) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The message of an end with this exit code and nothing on standard output.
#[track_caller]
fn fails(code: i32, words: &[&str]) -> String {
    let output = run(words);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {message}");
    assert_eq!(text(&output.stdout), "", "{words:?}");
    message
}

#[track_caller]
fn json(code: i32, words: &[&str]) -> Value {
    let mut words = words.to_vec();
    words.push("--json");
    let document: Value = serde_json::from_str(&ends(code, &words)).unwrap();
    assert_eq!(document["schema"], format!("linerate.cc-{}/1", words[0]));
    for key in ["linerate_version", "kernel", "command_line", "started_at"] {
        assert!(!document[key].is_null(), "{key}");
    }
    document
}

fn control<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["controls"].as_array().unwrap();
    all.iter().find(|control| control["name"] == name).unwrap_or(&Value::Null)
}

fn is_registered(name: &str) -> bool {
    host::cc::available().unwrap().iter().any(|there| there == name)
}

/// In namespaces of its own, with bpffs mounted or not.
fn apart<T: Send>(mounted: bool, f: impl FnOnce() -> T + Send) -> T {
    with_private_bpffs(mounted, || {
        NetNs::create().unwrap().enter().unwrap();
        f()
    })
}

/// A connection over `lo` whose ends have the namespace's default, and what the client has.
fn connection() -> (TcpStream, TcpStream, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let control = host::tcp::congestion_control(&client).unwrap();
    let (server, _) = listener.accept().unwrap();
    (client, server, control)
}

#[test]
fn list_tells_what_each_control_is_and_who_uses_it() {
    require_root_or_skip!();
    apart(true, || {
        host::cc::set_default_control("reno").unwrap();
        let _both = connection();
        let document = json(0, &["list"]);
        let reno = control(&document, "reno");
        assert_eq!((&reno["kind"], &reno["default"], &reno["loaded"]), (&"builtin".into(), &true.into(), &true.into()));
        assert!(reno["live_sockets"].as_u64() >= Some(2), "{reno}");
        let here = document["namespaces"].as_array().unwrap().iter().find(|space| space["here"] == true).unwrap();
        assert_eq!(here["sockets"]["reno"]["connections"], 2);
        if is_registered("bbr") {
            assert!([1, 3].map(Value::from).contains(&control(&document, "bbr")["bbr_version"]));
        }
        let shown = ends(0, &["list"]);
        assert!(shown.contains("reno") && shown.contains("reno: here"), "{shown}");
    });
}

#[test]
fn load_use_status_upgrade_unload_as_the_page_says() {
    require_root_or_skip!();
    apart(true, || {
        let name = unique_name();
        let named = ["--name", name.as_str()];
        let with = |words: &[&'static str]| -> Vec<String> {
            words.iter().chain(&named[..]).map(|word| (*word).to_owned()).collect()
        };
        let words = |words: &[&'static str]| with(words);
        let ends = |code, list: &[&'static str]| {
            let list = words(list);
            ends(code, &list.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let json = |code, list: &[&'static str]| {
            let list = words(list);
            json(code, &list.iter().map(String::as_str).collect::<Vec<_>>())
        };
        host::cc::set_default_control("reno").unwrap();

        let shown = ends(0, &["load"]);
        assert!(shown.contains(&format!("as {name}")) && shown.contains("The default is still reno"), "{shown}");
        assert!(is_registered(&name));
        let again = json(0, &["load"]);
        assert_eq!(again["result"], "already_loaded");

        // What `sysctl -w net.ipv4.tcp_congestion_control=NAME` does.
        host::cc::set_default_control(&name).unwrap();
        let (_client, _server, control_of_client) = connection();
        assert_eq!(control_of_client, name);
        let status = json(0, &["status"]);
        let loaded = control(&status, &name);
        assert_eq!((&loaded["state"], &loaded["profile"]), (&"installed".into(), &"faithful".into()));
        assert_eq!((&loaded["live_sockets"], &loaded["totals"]["sockets_began"]), (&2.into(), &2.into()));
        assert_eq!(loaded["totals"]["sockets_degraded"], 0);
        assert_eq!(loaded["programs"].as_array().unwrap().len(), 1);
        assert_eq!(loaded["default_in"].as_array().unwrap().len(), 1);
        let list = super_list();
        let listed = control(&list, &name);
        assert_eq!(
            (&listed["kind"], &listed["bbr_version"], &listed["allowed"]),
            (&"bpf".into(), &3.into(), &true.into())
        );

        let upgraded = json(0, &["upgrade", "--profile", "lossy-link", "--beta", "20%"]);
        assert_eq!((&upgraded["defaults_rewritten"], &upgraded["profile"]), (&1.into(), &"lossy-link+".into()));
        let _second = connection();
        let status = json(0, &["status"]);
        let loaded = control(&status, &name);
        assert_eq!(loaded["totals"]["sockets_began"], 2, "new sockets of the default run the new program: {loaded}");
        assert_eq!(loaded["knobs"]["loss_thresh"], 20.0 / 256.0);
        assert_eq!(loaded["knobs"]["beta"], 51.0 / 256.0);
        let sockets: Vec<_> = loaded["programs"].as_array().unwrap().iter().map(|one| one["sockets"].clone()).collect();
        assert_eq!(sockets, [2, 2].map(Value::from));
        // Knobs that are not named stay.
        json(0, &["upgrade", "--headroom", "10%"]);
        let status = json(0, &["status"]);
        assert_eq!(control(&status, &name)["knobs"]["beta"], 51.0 / 256.0);

        let gone = json(0, &["unload", "--to", "reno"]);
        assert_eq!((&gone["result"], &gone["live_sockets"]), (&"unloaded".into(), &4.into()));
        assert_eq!(gone["defaults_moved"][0]["to"], "reno");
        assert_eq!(host::cc::default_control().unwrap(), "reno");
        assert!(!is_registered(&name));
        let status = json(0, &["status"]);
        let left = control(&status, &name);
        assert_eq!((&left["state"], &left["live_sockets"]), (&"unloaded".into(), &4.into()));
        assert!(!Path::new("/sys/fs/bpf/linerate").exists());
    });
}

fn super_list() -> Value {
    json(0, &["list"])
}

#[test]
fn the_default_is_moved_away_in_every_namespace_before_the_control_goes() {
    require_root_or_skip!();
    apart(true, || {
        let name = unique_name();
        host::cc::set_default_control("reno").unwrap();
        ends(0, &["load", "--name", &name, "--default"]);
        assert_eq!(host::cc::default_control().unwrap(), name);
        let other = NetNs::create().unwrap();
        other.run(|| host::cc::set_default_control(&name).unwrap()).unwrap();
        let dry = ends(0, &["unload", "--name", &name, "--dry-run"]);
        assert_eq!(dry.matches("set net.ipv4.tcp_congestion_control to reno in ").count(), 2, "{dry}");
        assert_eq!(host::cc::default_control().unwrap(), name, "a dry run does nothing");
        assert!(is_registered(&name));
        let gone = json(0, &["unload", "--name", &name]);
        assert_eq!(gone["defaults_moved"].as_array().unwrap().len(), 2);
        let defaults =
            [host::cc::default_control().unwrap(), other.run(|| host::cc::default_control().unwrap()).unwrap()];
        assert_eq!(defaults, ["reno", "reno"], "the default before load --default");
    });
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_none_of_it() {
    require_root_or_skip!();
    apart(false, || {
        let name = unique_name();
        let shown = ends(0, &["load", "--name", &name, "--default", "--dry-run"]);
        for part in ["mount the BPF file system", "register it as", "pin it in", "set net.ipv4.tcp_congestion_control"]
        {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(!is_registered(&name));
        assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::NotMounted);
        ends(0, &["load", "--name", &name]);
        assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::Mounted);
        ends(0, &["upgrade", "--name", &name, "--beta", "10%", "--dry-run"]);
        let status = json(0, &["status", "--name", &name]);
        assert_eq!(control(&status, &name)["profile"], "faithful");
        ends(0, &["unload", "--name", &name]);
    });
}

#[test]
fn a_load_that_is_refused_leaves_the_host_as_it_was() {
    require_root_or_skip!();
    apart(false, || {
        // The name is the kernel's.
        let message = fails(4, &["load", "--name", "reno", "--beta", "10%"]);
        assert!(message.contains("its own congestion control \"reno\"") && message.contains("--name"), "{message}");
        assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::NotMounted, "what was mounted for it is unmounted");
        let used = json(0, &["load", "--name", "reno"]);
        assert_eq!(used["result"], "kernels_own");
    });
}

#[test]
fn a_name_with_other_knobs_is_not_loaded_over() {
    require_root_or_skip!();
    apart(true, || {
        let name = unique_name();
        ends(0, &["load", "--name", &name]);
        let message = fails(4, &["load", "--name", &name, "--profile", "lossy-link"]);
        assert!(message.contains("with other knobs") && message.contains("cc upgrade"), "{message}");
        ends(0, &["unload", "--name", &name]);
    });
}

#[test]
fn two_loaders_at_once_both_end_well_and_one_of_them_loads() {
    require_root_or_skip!();
    apart(true, || {
        let name = unique_name();
        let start = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
            command.args(["cc", "load", "--json", "--name", &name]).stdout(std::process::Stdio::piped());
            command.spawn().unwrap()
        };
        let loaders = [start(), start()];
        let mut results: Vec<String> = loaders
            .into_iter()
            .map(|loader| {
                let output = loader.wait_with_output().unwrap();
                assert!(output.status.success());
                let document: Value = serde_json::from_slice(&output.stdout).unwrap();
                document["result"].as_str().unwrap().to_owned()
            })
            .collect();
        results.sort();
        assert_eq!(results, ["already_loaded", "loaded"]);
        ends(0, &["unload", "--name", &name]);
    });
}

#[test]
fn what_is_held_by_a_process_is_told_apart_and_left_alone() {
    require_root_or_skip!();
    apart(true, || {
        let name = unique_name();
        let options = bbr3::Options { name: name.clone(), ..bbr3::Options::default() };
        let held = bbr3::Loaded::ephemeral(&options).unwrap();
        assert!(fails(4, &["load", "--name", &name]).contains("by a process that takes it out when it ends"));
        assert!(fails(4, &["unload", "--name", &name]).contains("by a process"));
        assert!(fails(4, &["upgrade", "--name", &name]).contains("by a process"));
        let status = json(0, &["status", "--name", &name]);
        assert_eq!(control(&status, &name)["state"], "held_by_process");
        drop(held);
        assert!(fails(4, &["unload", "--name", &name]).contains("no control"));
    });
}

#[test]
fn without_root_it_says_what_is_needed() {
    require_root_or_skip!();
    apart(true, || {
        // Where everybody may read it. By cp: a file that this process wrote could not be run while another test starts a program.
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let copy = folder.path().join("linerate");
        assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_linerate")).arg(&copy).status().unwrap().success());
        let as_nobody = |words: &[&str]| {
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--bounding-set=-all",
                "--inh-caps=-all",
            ]);
            command.arg(&copy).arg("cc").args(words).output().unwrap()
        };
        for words in [&["load"][..], &["load", "--dry-run"], &["unload"], &["upgrade"], &["status"]] {
            let output = as_nobody(words);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(4), "{words:?}: {message}");
            assert!(message.contains("root, or CAP_BPF"), "{words:?}: {message}");
            assert_eq!(message.lines().count(), 1, "{words:?}: {message}");
        }
        // Looking at what there is needs nothing.
        let list = as_nobody(&["list"]);
        assert!(list.status.success() && text(&list.stdout).contains("Root sees more"), "{list:?}");
    });
}

/// Hides a part of the machine from the calling thread's mount namespace.
fn cover(source: &str, target: &str) {
    let arguments: &[&str] =
        if source == "tmpfs" { &["-t", "tmpfs", "tmpfs", target] } else { &["--bind", source, target] };
    let done = Command::new("mount").args(arguments).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn a_kernel_without_type_information_is_named() {
    require_root_or_skip!();
    apart(false, || {
        cover("tmpfs", "/sys/kernel/btf");
        assert!(fails(4, &["load", "--name", &unique_name()]).contains("CONFIG_DEBUG_INFO_BTF"));
        assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::NotMounted, "what was mounted for it is unmounted");
    });
}

/// Type information in the kernel's format (Documentation/bpf/btf.rst) of one that has TCP's congestion controls and, as before 5.6, no way to
/// write one in BPF.
fn types_of_an_old_kernel() -> tempfile::NamedTempFile {
    let strings = b"\0int\0tcp_congestion_ops\0";
    let (int, structure): (u32, u32) = (1 << 24, 4 << 24);
    // Name, kind, size, and for the number its bits; a structure without members.
    let types = [1, int, 4, 32, 5, structure, 8];
    let mut file = Vec::new();
    file.extend(0xeb9f_u16.to_ne_bytes());
    file.extend([1, 0]);
    for word in [24, 0, 4 * types.len() as u32, 4 * types.len() as u32, strings.len() as u32].into_iter().chain(types) {
        file.extend(word.to_ne_bytes());
    }
    file.extend(strings);
    let place = tempfile::NamedTempFile::new().unwrap();
    fs::write(place.path(), file).unwrap();
    place
}

#[test]
fn a_kernel_that_is_too_old_is_told_so_and_left_alone() {
    require_root_or_skip!();
    apart(false, || {
        let types = types_of_an_old_kernel();
        cover(types.path().to_str().unwrap(), "/sys/kernel/btf/vmlinux");
        for words in [&["load"][..], &["load", "--dry-run"], &["load", "--default"]] {
            let name = unique_name();
            let shown = fails(4, &[words, &["--name", &name]].concat());
            assert!(shown.contains("older than 6.1"), "{words:?}: {shown}");
        }
        assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::NotMounted, "what was mounted for it is unmounted");
        // The kernel's own are still listed.
        assert!(ends(0, &["list"]).contains("cubic"));
    });
}

#[test]
fn the_kernels_own_is_used_without_a_mount() {
    require_root_or_skip!();
    apart(false, || {
        for words in [&["load", "--name", "cubic", "--dry-run"][..], &["load", "--name", "cubic"]] {
            let shown = ends(0, words);
            assert!(shown.contains("own cubic") && !shown.contains("mount"), "{shown}");
            assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::NotMounted);
        }
    });
}

#[test]
fn a_kernel_that_interprets_bpf_is_named() {
    require_root_or_skip!();
    // The key is there in the first network namespace only. Nothing is loaded, so nothing needs one of its own.
    with_private_bpffs(true, || {
        if !Path::new("/proc/sys/net/core/bpf_jit_enable").exists() {
            eprintln!("SKIPPED: this kernel, or this namespace, has no such key");
            return;
        }
        let zero = tempfile::NamedTempFile::new().unwrap();
        fs::write(zero.path(), "0\n").unwrap();
        cover(zero.path().to_str().unwrap(), "/proc/sys/net/core/bpf_jit_enable");
        assert!(fails(4, &["load", "--name", &unique_name()]).contains("bpf_jit_enable"));
    });
}

#[test]
fn a_system_without_a_place_for_bpffs_is_named() {
    require_root_or_skip!();
    apart(true, || {
        cover("tmpfs", "/sys/fs");
        for words in [&["load"][..], &["load", "--dry-run"]] {
            assert!(fails(4, words).contains("no BPF file system at /sys/fs/bpf"), "{words:?}");
        }
    });
}

#[test]
fn root_without_capabilities_as_in_a_container_is_told_which_are_needed() {
    require_root_or_skip!();
    apart(true, || {
        let output = Command::new("setpriv")
            .args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_linerate")])
            .args(["cc", "load", "--name", &unique_name()])
            .output()
            .unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{message}");
        assert!(message.contains("CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (a container needs them too)"), "{message}");
    });
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_touched() {
    for (words, part) in [
        (&["load", "--beta", "100%"][..], "--beta must be below 100 %"),
        (&["load", "--probe-rtt-interval", "11s"], "--min-rtt-window must be at least probe-rtt-interval"),
        (&["load", "--loss-thresh", "much"], "--loss-thresh"),
        (&["load", "--profile", "fast"], "lossy-link"),
        (&["enable", "--name", "two words"], "can't name a congestion control"),
        (&["disable", "--root", "/no/such/folder"], "no such folder"),
    ] {
        assert!(fails(2, words).contains(part), "{words:?}");
    }
}

#[test]
fn a_bad_name_is_refused_before_anything_is_touched() {
    require_root_or_skip!();
    apart(true, || {
        for words in [["load", "--name", "a-b"], ["unload", "--name", "../x"], ["upgrade", "--name", ""]] {
            assert!(fails(2, &words).contains("can't name a congestion control"), "{words:?}");
        }
    });
}

/// A root folder with systemd's folder and a program in it.
fn installation() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("usr/lib/systemd/system")).unwrap();
    fs::create_dir_all(root.path().join("usr/local/bin")).unwrap();
    fs::write(root.path().join("usr/local/bin/linerate"), "").unwrap();
    root
}

#[test]
fn enable_writes_a_unit_into_another_root_and_disable_removes_all_of_it() {
    let root = installation();
    let at = root.path().to_str().unwrap();
    let below = |path: &str| root.path().join(path);
    let unit = below("etc/systemd/system/linerate-bbr3.service");
    let wanted = below("etc/systemd/system/sysinit.target.wants/linerate-bbr3.service");
    let default = below("etc/sysctl.d/zz-linerate-bbr3.conf");

    let dry = ends(0, &["enable", "--root", at, "--default", "--dry-run"]);
    assert!(dry.contains("linerate-bbr3.service") && dry.contains("zz-linerate-bbr3.conf"), "{dry}");
    assert!(!below("etc").exists());

    ends(0, &["enable", "--root", at, "--default", "--profile", "lossy-link", "--beta", "20%"]);
    let written = fs::read_to_string(&unit).unwrap();
    for line in [
        "ExecStart=/usr/local/bin/linerate cc load --name bbr3 --profile lossy-link --beta 20%%",
        "Before=systemd-sysctl.service network-pre.target sysinit.target",
        "DefaultDependencies=no",
        "WantedBy=sysinit.target",
    ] {
        assert!(written.lines().any(|written| written == line), "{line}: {written}");
    }
    assert_eq!(fs::read_link(&wanted).unwrap(), Path::new("/etc/systemd/system/linerate-bbr3.service"));
    assert!(fs::read_to_string(&default).unwrap().ends_with("\n-net.ipv4.tcp_congestion_control = bbr3\n"));

    // Again, without the default: that file goes.
    let again = json(0, &["enable", "--root", at]);
    assert_eq!(again["exec"], "/usr/local/bin/linerate");
    assert!(!default.exists() && unit.exists());
    assert!(fs::read_to_string(&unit).unwrap().contains("--name bbr3\n"));

    let gone = json(0, &["disable", "--root", at]);
    assert_eq!(gone["files"].as_array().unwrap().len(), 2);
    assert!(!unit.exists() && wanted.symlink_metadata().is_err());
    assert!(ends(0, &["disable", "--root", at]).contains("was not enabled"));
}

#[test]
fn enable_leaves_the_files_of_others_alone_and_names_those_that_win() {
    let root = installation();
    let at = root.path().to_str().unwrap();
    let folder = root.path().join("etc/sysctl.d");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("zzz-mine.conf"), "net.ipv4.tcp_congestion_control=cubic\n").unwrap();
    fs::write(folder.join("10-early.conf"), "net.ipv4.tcp_congestion_control=cubic\n").unwrap();
    let shown = ends(0, &["enable", "--root", at, "--default"]);
    assert!(shown.contains("zzz-mine.conf is read later") && !shown.contains("10-early"), "{shown}");
    ends(0, &["disable", "--root", at]);

    let unit = root.path().join("etc/systemd/system/linerate-bbr3.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "[Unit]\nDescription=mine\n").unwrap();
    for words in [["enable", "--root", at], ["disable", "--root", at]] {
        assert!(fails(3, &words).contains("was not written by linerate"), "{words:?}");
    }
    assert_eq!(fs::read_to_string(&unit).unwrap(), "[Unit]\nDescription=mine\n");
}

#[test]
fn enable_needs_systemd_and_a_program_to_start() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path().to_str().unwrap();
    assert!(fails(4, &["enable", "--root", at]).contains("there is no systemd in"));
    fs::create_dir_all(root.path().join("lib/systemd/system")).unwrap();
    assert!(fails(2, &["enable", "--root", at]).contains("no linerate in"));
    assert!(fails(2, &["enable", "--root", at, "--exec", "/opt/linerate"]).contains("no file"));
    assert!(fails(2, &["enable", "--root", at, "--exec", "/opt/a b"]).contains("systemd unit"));
    if !Path::new("/run/systemd/system").exists() {
        assert!(fails(4, &["enable"]).contains("was not started by systemd"));
    }
}

#[test]
fn unloading_what_is_not_there_leaves_no_mount_behind() {
    require_root_or_skip!();
    apart(false, || {
        let message = fails(4, &["unload", "--name", &unique_name()]);
        assert!(message.contains("is installed"), "{message}");
        assert_eq!(bbr3::bpffs::state(), bbr3::bpffs::State::NotMounted, "nothing was left in it");
    });
}
