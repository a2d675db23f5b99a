//! `linerate cc trace` as its user runs it, on a program loaded under a name of its own.
#![cfg(feature = "bpf")]

#[path = "../../bbr3/tests/common/mod.rs"]
mod common;

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{load, shaped, transfer};
use serde_json::Value;
use testkit::require_root_or_skip;

fn trace(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(["cc", "trace"]).args(words).env("NO_COLOR", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What it printed while a connection was busy for two seconds, ended by Ctrl-C.
fn while_busy(control: &str, words: &[&str]) -> Output {
    let ends = shaped("60mbit", 60_000);
    let mut child = Some(trace(words).spawn().unwrap());
    let pid = nix::unistd::Pid::from_raw(child.as_ref().unwrap().id() as i32);
    transfer(&ends, control, Duration::from_secs(2), || {});
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    child.take().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_busy_connection_shows_its_states_and_ctrl_c_ends_it_cleanly() {
    require_root_or_skip!();
    let loaded = load(|_| {});
    let output = while_busy(loaded.name(), &["--name", loaded.name()]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(out.contains("10.77.0.1:") && out.contains("> 10.77.0.2:"), "{out}");
    for change in ["DOWN > CRUISE", "CRUISE > REFILL", "REFILL > UP", "UP > DOWN"] {
        assert!(out.contains(change), "{change}: {out}");
    }
    assert!(err.ends_with(" transitions, 0 events dropped\n"), "{err}");
}

#[test]
fn json_is_one_object_a_line_with_units_in_the_names() {
    require_root_or_skip!();
    let loaded = load(|_| {});
    let output = while_busy(loaded.name(), &["--name", loaded.name(), "--json", "--dst", "10.77.0.2"]);
    assert_eq!(text(&output.stderr), "");
    let lines: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["schema"], "linerate.cc-trace/1");
    for key in ["linerate_version", "kernel", "command_line", "started_at"] {
        assert!(!lines[0][key].is_null(), "{key}");
    }
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["dropped_events"]), (&"end".into(), &0.into()));
    assert!(lines.iter().any(|line| line["type"] == "socket"));
    let transition = lines.iter().find(|line| line["to"] == "PROBE_BW_UP").expect("a probe");
    assert_eq!(transition["from"], "PROBE_BW_REFILL");
    assert!(transition["bandwidth_bps"].as_u64().unwrap() > 10_000_000, "{transition}");
}

#[test]
fn a_recording_can_be_replayed_and_a_process_can_be_chosen() {
    require_root_or_skip!();
    let loaded = load(|_| {});
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("acks");
    let (me, path) = (std::process::id().to_string(), file.to_str().unwrap());
    // This process's sockets are in a namespace that the process itself is not in: choosing it by its number finds none.
    let output = while_busy(loaded.name(), &["--name", loaded.name(), "--pid", &me]);
    assert_eq!(text(&output.stdout), "", "{}", text(&output.stderr));
    let output = while_busy(loaded.name(), &["--name", loaded.name(), "--record", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let recording = bbr3::recording::Recording::open(std::fs::File::open(&file).unwrap()).unwrap();
    assert_eq!(recording.header().name, loaded.name());
    let calls = recording.filter(|event| matches!(event, Ok(bbr3::Event::Call(_)))).count();
    assert!(calls > 500, "{calls}");
}

#[test]
fn what_is_not_loaded_and_who_does_not_exist_is_said() {
    require_root_or_skip!();
    let output = trace(&["--name", "nobody"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("no BBRv3 of linerate is loaded as \"nobody\""), "{}", text(&output.stderr));
    let output = trace(&["--pid", "4194305"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "linerate: there is no process 4194305\n");
}
