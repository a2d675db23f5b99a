//! `linerate bench` and `serve` as their users run them.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// One measurement at a time: they share two cores.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn linerate(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(words).env("NO_COLOR", "1");
    command
}

fn run(words: &[&str]) -> Output {
    linerate(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `serve` on a port of the kernel's choice, on loopback.
struct Serve {
    child: Child,
    out: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Serve {
    fn start(words: &[&str]) -> Self {
        let all = [&["serve", "--json", "--port", "0"], words].concat();
        let mut child = linerate(&all).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let head: Value = serde_json::from_str(&line).unwrap();
        for key in ["schema", "linerate_version", "kernel", "command_line", "started_at", "limits"] {
            assert!(head.get(key).is_some(), "{key} is missing: {line}");
        }
        let address = head["addresses"][0].as_str().unwrap().parse().unwrap();
        Self { child, out, address }
    }

    fn port(&self) -> String {
        self.address.port().to_string()
    }

    /// Ends it as systemd would; what it logged.
    fn stop(mut self) -> Vec<Value> {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        let mut log = String::new();
        self.out.read_to_string(&mut log).unwrap();
        assert!(self.child.wait().unwrap().success());
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_json(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn a_comparison_of_two_controls_gives_a_table_a_document_and_a_page() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("r.json"), folder.path().join("r.html"));
    let serve = Serve::start(&[]);
    let output = run(&[
        "bench",
        "127.0.0.1",
        "-p",
        &serve.port(),
        "-t",
        "1",
        "-O",
        "0",
        "-b",
        "50mbit",
        "--cc",
        "cubic,reno",
        "--repeat",
        "2",
        "--seed",
        "7",
        &format!("--json={}", json.display()),
        "--html",
        html.to_str().unwrap(),
    ]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    for part in ["cubic", "reno", "seed 7", "linerate 0.1.0", "limited by", "path: "] {
        assert!(out.contains(part), "{part} is missing: {out}");
    }
    let report = read_json(&json);
    assert_eq!(report["schema"], "linerate.bench/1");
    assert_eq!((report["partial"].as_bool(), report["settings"]["seed"].as_u64()), (Some(false), Some(7)));
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    for run in results {
        assert_eq!(run["valid"], true, "{}", run["invalid_reason"]);
        let direction = &run["directions"][0];
        assert_eq!(direction["congestion_control"], run["congestion_control"]);
        assert_eq!(direction["goodput_from"], "receiver");
        let goodput = direction["goodput_bps"].as_f64().unwrap();
        assert!((goodput - 50e6).abs() < 10e6, "{goodput}");
        assert!(run["responsiveness"]["rpm"].as_f64().unwrap() > 0.0);
        // iperf3's own keys, where its users look for them.
        let own = &run["iperf3"];
        let received = own["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
        assert!((received - goodput).abs() < 0.02 * goodput, "{received} {goodput}");
        assert_eq!(own["start"]["test_start"]["protocol"], "TCP");
        assert!(!own["intervals"].as_array().unwrap().is_empty());
    }
    assert_eq!(report["summary"].as_array().unwrap().len(), 2);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg"), "{}", &page[..200.min(page.len())]);
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing is fetched");
    let log = serve.stop();
    assert_eq!(
        log.iter().filter(|line| line["event"] == "ended" && line["ending"] == "complete").count(),
        4,
        "{log:?}"
    );

    // Two runs each can't show a difference, and a file against itself is a mistake.
    let compared = run(&["bench", "compare", json.to_str().unwrap(), "--json"]);
    assert_eq!(compared.status.code(), Some(1), "{}", text(&compared.stderr));
    let comparison: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(comparison["comparison"]["figures"][0]["verdict"], "too-few-runs");
    assert_eq!(comparison["comparison"]["paired"], true);
    let same = format!("{}:cubic", json.display());
    let refused = run(&["bench", "compare", &same, &same]);
    assert_eq!(refused.status.code(), Some(2));
    let missing = run(&["bench", "compare", &format!("{}:bbr", json.display()), &same]);
    assert!(text(&missing.stderr).contains("cubic, reno"), "{}", text(&missing.stderr));
}

/// A report with so many runs of these goodputs.
fn report(name: &str, goodputs: &[(&str, &[f64])]) -> Value {
    let mut results = Vec::new();
    for (control, values) in goodputs {
        for (repeat, bps) in values.iter().enumerate() {
            results.push(serde_json::json!({
                "congestion_control": control, "repeat": repeat, "started_after_s": 0.0, "duration_s": 10.0, "valid": true,
                "invalid_reason": null, "rtt_idle_ms": null, "rtt_under_load_ms": null, "latency_in_flow_ms": null,
                "responsiveness": null, "probes_lost": null, "iperf3": {}, "rtt_series_ms": { "time_s": [], "value": [] },
                "cpu": { "client_s": 1.0, "server_s": null, "client_s_per_gb": 1.0, "server_s_per_gb": null },
                "directions": [{
                    "direction": "forward", "congestion_control": control, "congestion_control_version": null,
                    "goodput_bps": *bps as u64, "goodput_from": "receiver", "bytes": 1, "retransmitted_segments": 0,
                    "retransmitted_share": 0.0, "limited_by": null, "path": null, "streams": [],
                    "goodput_series_bps": { "time_s": [], "value": [] }, "srtt_series_ms": { "time_s": [], "value": [] },
                    "cwnd_series_segments": { "time_s": [], "value": [] },
                    "retransmitted_series_segments": { "time_s": [], "value": [] }
                }]
            }));
        }
    }
    serde_json::json!({
        "schema": "linerate.bench/1", "linerate_version": "0.1.0", "kernel": "k", "command_line": [], "started_at": "2026-01-01T00:00:00Z",
        "partial": false, "partial_reason": null, "warnings": [], "results": results, "summary": [],
        "server": { "name": name, "address": "192.0.2.1:5201", "linerate_version": null, "kernel": null },
        "settings": { "direction": "forward", "streams": 1, "duration_s": 10.0, "bytes": null, "omit_s": 1.0, "rate_bps": null,
            "congestion_controls": goodputs.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "repeats": 8, "seed": 1 },
    })
}

#[test]
fn a_difference_is_told_from_none_by_exit_code_and_words() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, value: &Value| {
        let file = folder.path().join(name);
        std::fs::write(&file, value.to_string()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    // A path that drifts by half, on which one is always 3 % better.
    let drift = [100.0, 90.0, 80.0, 70.0, 60.0, 95.0, 85.0, 50.0].map(|mbit| mbit * 1e6);
    let better = drift.map(|bps| bps * 1.03);
    let file = write("a.json", &report("far", &[("cubic", &drift), ("bbr", &better)]));
    let paired = run(&["bench", "compare", &file]);
    assert_eq!(paired.status.code(), Some(1));
    let said = text(&paired.stdout);
    assert!(said.contains("differs") && said.contains("8 pairs"), "{said}");
    // As sets of two files the drift hides it.
    let other = write("b.json", &report("far", &[("bbr", &better)]));
    let sets = run(&["bench", "compare", &format!("{file}:cubic"), &other]);
    assert_eq!(sets.status.code(), Some(0), "{}", text(&sets.stdout));
    assert!(text(&sets.stdout).contains("No difference seen"), "{}", text(&sets.stdout));
    // Unless they are said to be pairs.
    assert_eq!(run(&["bench", "compare", &format!("{file}:cubic"), &other, "--paired"]).status.code(), Some(1));
    let empty = write("c.json", &serde_json::json!({"schema": "linerate.lab/1"}));
    let refused = run(&["bench", "compare", &file, &empty]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("linerate.lab/1"), "{}", text(&refused.stderr));
}

#[test]
fn mistakes_are_answered_before_anything_runs() {
    for (words, code, parts) in [
        (&["bench", "no-such-host.invalid"][..], 2, &["no-such-host.invalid", "name server"][..]),
        (&["bench", "127.0.0.1", "--cc", "nosuch"], 2, &["nosuch", "cubic"]),
        (&["bench", "127.0.0.1", "--cc", "cubic,cubic"], 2, &["twice"]),
        (&["bench", "127.0.0.1", "-6"], 2, &["no IPv6 address"]),
        (&["bench", "127.0.0.1", "-R", "--bidir"], 2, &["cannot be used with"]),
        (&["bench", "127.0.0.1", "-O", "1500ms"], 2, &["whole seconds"]),
        (&["bench", "127.0.0.1", "--token-file", "/dev/null"], 2, &["at least 16"]),
        (&["bench", "127.0.0.1", "--html", "/nonexistent/x.html"], 2, &["/nonexistent"]),
        (&["bench", "127.0.0.1", "-p", "1", "--connect-timeout", "2s"], 4, &["refused", "linerate serve"]),
        (&["bench"], 2, &["HOST"]),
        (&["serve", "--bind", "192.0.2.77"], 4, &["192.0.2.77"]),
    ] {
        let output = run(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{words:?} should say {part:?}: {said}");
        }
    }
}

#[test]
fn ctrl_c_keeps_and_marks_what_was_measured() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json");
    let serve = Serve::start(&[]);
    let words = [
        "bench",
        "127.0.0.1",
        "-p",
        &serve.port(),
        "-t",
        "60",
        "-O",
        "0",
        "-b",
        "20mbit",
        &format!("--json={}", json.display()),
    ];
    let child = linerate(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The server says when data flows.
    let mut serve = serve;
    let mut line = String::new();
    while !line.contains("\"started\"") {
        line.clear();
        assert!(serve.out.read_line(&mut line).unwrap() > 0);
    }
    std::thread::sleep(std::time::Duration::from_millis(700));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("PARTIAL"), "{}", text(&output.stdout));
    let report = read_json(&json);
    assert_eq!(report["partial"], true);
    assert!(report["partial_reason"].as_str().unwrap().contains("signal"), "{report}");
    let run = &report["results"][0];
    assert_eq!(run["valid"], false);
    assert_eq!(run["directions"][0]["goodput_from"], "acknowledged");
    assert!(run["directions"][0]["goodput_bps"].as_f64().unwrap() > 10e6);
    let log = serve.stop();
    assert!(log.iter().any(|line| line["event"] == "ended" && line["ending"] == "client"), "{log:?}");
}
