//! `linerate audit` as its user runs it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use host::netns::NetNs;
use host::tcp::TcpInfo;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{Backlog, listen, setsockopt, sockopt};
use nix::unistd::Pid;
use serde_json::{Value, json};
use testkit::Ends;

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

fn run(words: &[&str]) -> Output {
    Command::new(PROGRAM).arg("audit").args(words).env("NO_COLOR", "1").output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn ids(document: &Value) -> Vec<&str> {
    document["findings"].as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap()).collect()
}

/// A server with a full queue, a lowered tcp_mem and a note.
fn facts() -> Value {
    json!({
        "kernel": "6.12.0",
        "memory_bytes": 17_179_869_184_u64,
        "hostname": "server",
        "sysctls": {
            "net.core.somaxconn": "4096",
            "net.ipv4.tcp_rmem": "4096 131072 6291456",
            "net.ipv4.tcp_wmem": "4096 16384 4194304",
            "net.ipv4.tcp_mem": "65536 131072 262144",
            "net.ipv4.tcp_congestion_control": "bbr",
            "net.ipv4.tcp_available_congestion_control": "reno cubic bbr",
        },
        "system": {
            "distribution": {"from": "/etc/os-release", "value": "Debian GNU/Linux 13 (trixie)"},
            "uptime_seconds": {"from": "/proc/uptime", "value": 18_000},
        },
        "controls": {"from": "sysctl", "value": [{"name": "bbr", "kind": "kernel", "bbr_version": 1, "allowed": true, "default": true}]},
        "counters": {"from": "/proc/net/netstat", "value": {"TcpExt.ListenOverflows": 900, "TcpExt.ListenDrops": 901, "Tcp.PassiveOpens": 40_000}},
        "listeners": {"from": "netlink", "value": [{
            "address": "0.0.0.0", "port": 80, "queued": 512, "backlog": 511,
            "owners": [{"pid": 12, "name": "nginx"}],
            "configured": {"program": "nginx", "file": "/etc/nginx/nginx.conf", "line": 7, "text": "listen 80;", "backlog": null},
        }]},
    })
}

fn file(folder: &Path, value: &Value) -> String {
    let file = folder.join("facts.json");
    fs::write(&file, value.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_saved_audit_is_judged_with_the_lines_that_matter_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = file(folder.path(), &facts());
    let output = run(&["--from", &file]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let expected = include_str!("data/audit-text.txt");
    assert_eq!(text, expected, "{text}");
    assert!(text.lines().filter(|line| !line.contains("sysctl -w")).all(|line| line.chars().count() <= 110), "{text}");
}

#[test]
fn json_has_the_head_findings_and_facts_that_can_be_judged_again_and_planned_with() {
    let folder = tempfile::tempdir().unwrap();
    let first = file(folder.path(), &facts());
    let output = run(&["--from", &first, "--json"]);
    let document: Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(document["schema"], "linerate.audit/1");
    for key in ["linerate_version", "kernel", "command_line", "started_at"] {
        assert!(document.get(key).is_some(), "{key}");
    }
    assert_eq!(ids(&document)[..2], ["listener-queue-full", "listen-overflows"]);
    assert_eq!(document["summary"]["errors"], 2);
    let saved = file(folder.path(), &document);
    let again: Value = serde_json::from_str(&text(&run(&["--from", &saved, "--json"]))).unwrap();
    assert_eq!(again["findings"], document["findings"]);
    let plan = Command::new(PROGRAM)
        .args(["plan", "--from", &saved, "--bandwidth", "1gbit", "--rtt", "80ms", "--role", "bulk"])
        .output()
        .unwrap();
    assert_eq!(plan.status.code(), Some(0), "{}", String::from_utf8_lossy(&plan.stderr));
    assert!(String::from_utf8_lossy(&plan.stdout).contains("net.ipv4.tcp_rmem"));
}

#[test]
fn a_host_with_notes_only_is_clean_and_bad_input_is_usage() {
    let folder = tempfile::tempdir().unwrap();
    let clean = file(folder.path(), &json!({"kernel": "6.12.0", "memory_bytes": 1 << 30}));
    let output = run(&["--from", &clean]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output).starts_with("Nothing was found that limits this host.\n"), "{}", text(&output));
    let broken = folder.path().join("broken.json");
    for (content, part) in [("{", "no JSON"), ("[]", "no facts"), (r#"{"facts": {"kernel": 7}}"#, "no facts")] {
        fs::write(&broken, content).unwrap();
        let output = run(&["--from", broken.to_str().unwrap()]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{content}: {message}");
        assert!(message.contains(part), "{content}: {message}");
    }
    for words in [
        vec!["--from", "/nowhere"],
        vec!["--observe", "0s"],
        vec!["--observe", "1s", "--every", "0s"],
        vec!["--every", "1s"],
    ] {
        assert_eq!(run(&words).status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn this_host_is_read_without_an_error() {
    let output = run(&["--json"]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let document: Value = serde_json::from_str(&text(&output)).unwrap();
    let facts = &document["facts"];
    assert!(facts["kernel"].as_str().is_some_and(|kernel| !kernel.is_empty()));
    assert!(facts["counters"]["value"]["Tcp.OutSegs"].is_u64(), "{}", facts["counters"]);
    assert!(facts["devices"]["value"].as_array().is_some_and(|all| all.iter().any(|device| device["name"] == "lo")));
    assert!(run(&["--verbose"]).status.code().is_some_and(|code| code < 2));
}

fn inside(space: &NetNs, words: &[&str]) -> Value {
    let mut command = space.command(PROGRAM);
    let output = command.arg("audit").arg("--json").args(words).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_queue_that_really_overflows_is_found_with_its_program() {
    testkit::require_root_or_skip!();
    let space = NetNs::create().unwrap();
    let (listener, _clients) = space
        .run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listen(&listener.as_fd(), Backlog::new(1).unwrap()).unwrap();
            let at = listener.local_addr().unwrap();
            let patience = Duration::from_millis(300);
            // Two fit; the third's last step of the handshake is dropped, and the fourth's request.
            let clients: Vec<_> = (0..4).map(|_| TcpStream::connect_timeout(&at, patience)).collect();
            (listener, clients)
        })
        .unwrap();
    let document = inside(&space, &[]);
    assert!(ids(&document).contains(&"listener-queue-full"), "{:#}", document["findings"]);
    assert!(ids(&document).contains(&"listen-overflows"), "{:#}", document["findings"]);
    let listeners = document["facts"]["listeners"]["value"].as_array().unwrap();
    assert_eq!(listeners[0]["port"], listener.local_addr().unwrap().port());
    assert_eq!(listeners[0]["owners"][0]["pid"], std::process::id());
}

/// A flow of the client's namespace that an audit observes.
enum Flow {
    /// A send buffer that holds far less than the path, and room at the other end for all that comes through meanwhile, read or not.
    SmallSendBuffer,
    /// A program at the other end that reads nothing.
    NoReader,
}

/// A path of the lab, 60 ms long: data has to be under way for a buffer to hold it until it is acknowledged.
fn long_path() -> lab::session::Session {
    let parts =
        scenario::AdHoc::new(path::RateModel::Constant(units::Rate::from_mbps(200)), units::Duration::from_millis(60));
    let scenario = scenario::Scenario::ad_hoc(parts).unwrap();
    let cell = scenario.cells().unwrap().remove(0);
    lab::session::Session::start(lab::session::Setup {
        forward: &cell.forward,
        back: &cell.back,
        data_from: lab::session::DataFrom::Client,
        seed: 1,
        mtu: scenario.path.mtu,
        sysctls: &[],
        flows: 0,
        probe: false,
        log_packets: false,
        capture: None,
    })
    .unwrap()
}

fn observed(flow: &Flow) -> Value {
    match flow {
        Flow::SmallSendBuffer => {
            let session = long_path();
            let (client, server) = (session.world.client.clone(), session.world.server.clone());
            let document = observed_between(&client, &server, lab::world::SERVER.into(), flow);
            session.finish();
            document
        }
        Flow::NoReader => {
            let ends = Ends::over_veth();
            observed_between(&ends.client, &ends.server, ends.server_addr, flow)
        }
    }
}

fn observed_between(near: &NetNs, far: &NetNs, address: std::net::IpAddr, flow: &Flow) -> Value {
    let listener = far.run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
    if let Flow::SmallSendBuffer = flow {
        setsockopt(&listener, sockopt::RcvBufForce, &(64 << 20)).unwrap();
    }
    let to = listener.local_addr().unwrap();
    let client = near.run(|| TcpStream::connect(to).unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    if let Flow::SmallSendBuffer = flow {
        setsockopt(&client, sockopt::SndBuf, &32_768).unwrap();
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let data = [0; 65_536];
            let mut sender = &client;
            while !stop.load(Ordering::Relaxed) {
                if sender.write_all(&data).is_err() {
                    break;
                }
            }
        });
        // The flow is in the state that is meant, whatever else the machine has to do.
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let info = TcpInfo::of(&client).unwrap();
            let reached = match flow {
                Flow::SmallSendBuffer => info.sndbuf_limited() > units::Duration::from_millis(50),
                Flow::NoReader => info.send_window() == Some(units::Bytes::new(0)),
            };
            if reached {
                break;
            }
            assert!(Instant::now() < deadline, "{info:?}");
            thread::sleep(Duration::from_millis(5));
        }
        let document = inside(near, &["--observe", "1500ms", "--every", "250ms"]);
        stop.store(true, Ordering::Relaxed);
        // Ends a write that waits for a reader.
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
        document
    })
}

#[test]
fn a_flow_held_by_its_send_buffer_and_one_held_by_its_reader_are_told_apart() {
    testkit::require_root_or_skip!();
    let share = |document: &Value, part: &str| {
        let held = &document["facts"]["observed"]["total"]["held"];
        held[part].as_f64().unwrap() / held["busy_us"].as_f64().unwrap().max(1.0)
    };
    let document = observed(&Flow::SmallSendBuffer);
    assert!(share(&document, "sndbuf_limited_us") > 0.2, "{:#}", document["facts"]["observed"]);
    assert!(ids(&document).contains(&"send-buffer-limits"), "{:?}", ids(&document));
    assert!(!ids(&document).contains(&"peer-window-limits"), "{:?}", ids(&document));
    let document = observed(&Flow::NoReader);
    assert!(share(&document, "rwnd_limited_us") > 0.8, "{:#}", document["facts"]["observed"]);
    assert!(ids(&document).contains(&"peer-window-limits"), "{:?}", ids(&document));
    assert!(!ids(&document).contains(&"send-buffer-limits"), "{:?}", ids(&document));
}

#[test]
fn ctrl_c_ends_an_observation_and_shows_what_was_seen_as_partial() {
    testkit::require_root_or_skip!();
    let space = NetNs::create().unwrap();
    let mut command = space.command(PROGRAM);
    command.args(["audit", "--json", "--observe", "10min"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("looking at all connections for 600 s"), "{line}");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{out}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["facts"]["observed"]["partial"], true);
    assert_eq!(document["facts"]["observed"]["wanted_seconds"], 600.0);
}

#[test]
fn no_program_is_started() {
    // Whatever is looked up by name is not there to be found.
    let output = Command::new(PROGRAM).args(["audit", "--json"]).env("PATH", "/nowhere").output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
}
