//! `linerate plan` as its user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

const PATH: [&str; 6] = ["--bandwidth", "1gbit", "--rtt", "80ms", "--role", "bulk"];

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate")).arg("plan").args(words).env("NO_COLOR", "1").output().unwrap()
}

#[track_caller]
fn printed(words: &[&str]) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(words: &[&str], part: &str) {
    let output = run(words);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()), "{words:?}: {message}");
    assert!(message.contains(part), "{words:?} should say {part:?}: {message}");
}

fn facts() -> Value {
    json!({
        "kernel": "6.12.0",
        "memory_bytes": 17_179_869_184_u64,
        "hostname": "server",
        "sysctls": {
            "net.ipv4.tcp_rmem": "4096\t131072\t6291456",
            "net.ipv4.tcp_wmem": "4096 16384 4194304",
            "net.ipv4.tcp_mem": "188721 251629 377442",
            "net.ipv4.tcp_congestion_control": "cubic",
            "net.ipv4.tcp_available_congestion_control": "reno cubic bbr",
            "net.core.default_qdisc": "fq_codel",
        },
    })
}

fn file(folder: &Path, value: &Value) -> String {
    let file = folder.join("facts.json");
    fs::write(&file, value.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&PATH, more].concat()
}

#[test]
fn a_plan_from_facts_shows_the_arithmetic_and_what_it_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let facts = file(folder.path(), &facts());
    let text = printed(&with(&["--from", &facts]));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "1 Gbit/s x 80 ms = 10 MB in flight, role bulk. server, Linux 6.12.0, 16.0 GiB of memory.",
        "3 changes, in this order:",
        "1. net.ipv4.tcp_rmem = 4096 131072 40894464",
        "now 4096 131072 6291456",
        "holds CUBIC at 129 Mbit/s",
        "Looked at and left alone:",
        "- net.ipv4.tcp_mem = 188721 251629 377442: pages: at most 1.55 GB",
    ] {
        assert!(words.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
}

#[test]
fn facts_of_this_host_can_be_printed_and_planned_for_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let facts: Value = serde_json::from_str(&printed(&["--print-facts"])).unwrap();
    assert_eq!(facts["schema"], "linerate.facts/1");
    assert!(facts["facts"]["memory_bytes"].as_u64().unwrap() > 0);
    let here = printed(&PATH);
    let there = printed(&with(&["--from", &file(folder.path(), &facts)]));
    assert_eq!(changes(&here), changes(&there));
}

/// The numbered lines of a plan.
fn changes(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn json_can_be_read_back_as_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    let facts = file(folder.path(), &facts());
    let text = printed(&with(&["--from", &facts, "--json"]));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "linerate.plan/1");
    for key in ["linerate_version", "kernel", "command_line", "started_at"] {
        assert!(!document[key].is_null(), "{key}");
    }
    for key in ["kind", "key", "from", "to", "why", "effect", "risk", "source"] {
        assert!(document["changes"][0][key].is_string(), "{key}: {document}");
    }
    let plan: tuning::plan::Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(plan.changes.len(), 3);
    assert_eq!(plan.host.name, "server");
}

#[test]
fn other_notations_and_files_are_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let facts = file(folder.path(), &facts());
    let out = folder.path().join("linerate.conf");
    let silent = printed(&with(&["--from", &facts, "--format", "sysctl.d", "--output", out.to_str().unwrap()]));
    assert_eq!(silent, "");
    let written = fs::read_to_string(&out).unwrap();
    assert!(written.contains("\nnet.ipv4.tcp_congestion_control = bbr\n"), "{written}");
    for (format, part) in [
        ("ansible", "ansible.posix.sysctl:"),
        ("cloud-init", "#cloud-config\n"),
        ("nixos", "boot.kernel.sysctl"),
        ("kubernetes", "securityContext:"),
        ("containerfile", "--sysctl 'net.ipv4.tcp_rmem="),
    ] {
        assert!(printed(&with(&["--from", &facts, "--format", format])).contains(part), "{format}");
    }
}

#[test]
fn other_memory_leaves_tcp_mem_to_that_hosts_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let facts = file(folder.path(), &facts());
    let small = printed(&with(&["--from", &facts, "--memory", "1GiB"]));
    assert!(small.contains("bounded by a quarter of what tcp_mem allows"), "{small}");
    assert!(!small.contains("net.ipv4.tcp_mem ="), "{small}");
}

#[test]
fn wrong_input_is_named_with_the_way_to_mend_it() {
    let folder = tempfile::tempdir().unwrap();
    refused(&["--bandwidth", "1gbit", "--rtt", "80ms", "--role", "banana"], "web, proxy, bulk");
    refused(&["--bandwidth", "1gbps", "--rtt", "80ms", "--role", "web"], "mbit");
    refused(&["--bandwidth", "0gbit", "--rtt", "80ms", "--role", "web"], "bandwidth is zero");
    refused(&["--bandwidth", "1gbit"], "--rtt");
    refused(&with(&["--format", "banana"]), "sysctl.d");
    refused(
        &with(&["--from", "/nonexistent.json"]),
        "can't read /nonexistent.json: no such file or directory; check the name",
    );
    let broken = folder.path().join("broken.json");
    fs::write(&broken, "{").unwrap();
    refused(&with(&["--from", broken.to_str().unwrap()]), "it is no JSON");
    fs::write(&broken, "{\"kernel\": 6}").unwrap();
    refused(&with(&["--from", broken.to_str().unwrap()]), "--print-facts");
    fs::write(&broken, "{\"kernel\": \"6.1\", \"memory_bytes\": 0}").unwrap();
    refused(&with(&["--from", broken.to_str().unwrap()]), "how much memory");
    for (text, part) in [
        ("{\"schema\": \"linerate.lab/1\", \"results\": []}", "a document of `linerate lab`, which has no facts"),
        (
            "{\"schema\": \"linerate.audit/7\", \"linerate_version\": \"9.1.0\", \"facts\": {}}",
            "written by linerate 9.1.0",
        ),
        ("{\"schema\": \"linerate.audit/1\"}", "it has no `facts`"),
        ("[]", "no object with facts"),
        ("{\"kernel\": \"6.12\",\n \"memory_bytes\": \"16GiB\"}", "line 2 column"),
        ("{\"kernel\": \"banana\", \"memory_bytes\": 17179869184}", "`banana` is not a kernel version"),
    ] {
        fs::write(&broken, text).unwrap();
        refused(&with(&["--from", broken.to_str().unwrap()]), part);
    }
    refused(&with(&["--from", folder.path().to_str().unwrap()]), "it is a folder");
    fs::write(&broken, [0xff, 0xfe, 0, 1]).unwrap();
    refused(&with(&["--from", broken.to_str().unwrap()]), "it is no UTF-8 text");
    refused(&with(&["--memory", "16"]), "less than any host has");
    refused(&["--bandwidth", "-1gbit", "--rtt", "80ms", "--role", "web"], "--bandwidth <RATE>");
    refused(&with(&["--json", "--format", "nixos"]), "--json");
}

#[test]
fn what_facts_do_not_say_is_not_passed_off_as_right() {
    let folder = tempfile::tempdir().unwrap();
    let empty = file(folder.path(), &json!({"kernel": "6.12.0", "memory_bytes": 17_179_869_184_u64}));
    let text = printed(&with(&["--from", &empty]));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Nothing to change in what is known."), "{text}");
    let note = "not known here, and so not planned for: net.ipv4.tcp_rmem, net.ipv4.tcp_wmem, \
                net.ipv4.tcp_congestion_control, net.core.default_qdisc";
    assert!(words.contains(note), "{text}");
    // A value of another form is as good as none.
    let mut odd = facts();
    odd["sysctls"]["net.ipv4.tcp_rmem"] = json!("4096 banana");
    let text = printed(&with(&["--from", &file(folder.path(), &odd)]));
    assert!(text.contains("not planned for: net.ipv4.tcp_rmem\n"), "{text}");
    let whole = printed(&with(&["--from", &file(folder.path(), &facts())]));
    assert!(!whole.contains("not known here"), "{whole}");
}

#[test]
fn facts_come_in_through_a_pipe_and_in_an_audits_document() {
    let folder = tempfile::tempdir().unwrap();
    let plain = printed(&with(&["--from", &file(folder.path(), &facts())]));
    let mut audit = json!({"schema": "linerate.audit/1", "linerate_version": "0.1.0", "findings": []});
    audit["facts"] = facts();
    audit["facts"]["devices"] = json!({"from": "netlink", "value": []});
    assert_eq!(printed(&with(&["--from", &file(folder.path(), &audit)])), plain);
    let mut child = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("plan")
        .args(with(&["--from", "-"]))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), facts().to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), plain);
}
