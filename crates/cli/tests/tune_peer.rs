//! `linerate tune --peer` over an emulated path: the near end is a network namespace whose `/proc/sys/net` is what is changed, and a folder
//! that stands for the machine's files; at the far end runs `linerate serve`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use host::sysctl;
use lab::session::{DataFrom, Session, Setup};
use lab::world::SERVER;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use path::RateModel;
use scenario::{AdHoc, Scenario};
use serde_json::Value;

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");
const CONTROL: &str = "net.ipv4.tcp_congestion_control";
const KEYS: [&str; 5] = [
    CONTROL,
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_mtu_probing",
];

/// A path, a server and a folder.
struct Bench {
    session: Session,
    server: Child,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(rate: &str, rtt: &str, loss: &str) -> Self {
        let mut parts = AdHoc::new(RateModel::Constant(rate.parse().unwrap()), rtt.parse().unwrap());
        parts.loss = loss.parse().unwrap();
        let scenario = Scenario::ad_hoc(parts).unwrap();
        let cell = scenario.cells().unwrap().remove(0);
        let session = Session::start(Setup {
            forward: &cell.forward,
            back: &cell.back,
            data_from: DataFrom::Client,
            seed: 1,
            mtu: scenario.path.mtu,
            sysctls: &[],
            flows: 0,
            probe: false,
            log_packets: false,
            capture: None,
        })
        .unwrap();
        // Not by the lab's own way, a route that chooses: it would have the last word. And not CUBIC, which a kernel may keep from namespaces.
        session.world.client.run(|| sysctl::write(CONTROL, "reno").unwrap()).unwrap();
        let mut serve = session.world.server.command(LINERATE);
        let server =
            serve.args(["serve", "--json", "--bind", &SERVER.to_string()]).stdout(Stdio::piped()).spawn().unwrap();
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for name in ["etc/sysctl.d", "var/lib", "etc/systemd/system"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("etc/sysctl.d/10-own.conf"), "net.ipv4.tcp_sack = 1\n").unwrap();
        let mut bench = Self { session, server, folder };
        // Its first line says that it listens.
        let out = bench.server.stdout.as_mut().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        assert!(line.contains("listening"), "{line}");
        bench
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn tune(&self, more: &[&str]) -> Command {
        let mut command = self.session.world.client.command(LINERATE);
        command.args([
            "tune",
            "--peer",
            &SERVER.to_string(),
            "--yes",
            "--in-namespace",
            "--duration",
            "1s",
            "--warmup",
            "0s",
        ]);
        command.args(["--cc", "bbr", "--root", self.root().to_str().unwrap()]).args(more).stdin(Stdio::null());
        command
    }

    fn linerate(&self, words: &[&str]) -> Output {
        let root = self.root().to_str().unwrap();
        self.session.world.client.command(LINERATE).args(words).args(["--root", root]).output().unwrap()
    }

    fn key(&self, key: &str) -> String {
        self.session.world.client.run(|| sysctl::read(key).unwrap()).unwrap()
    }

    /// Keys and files, with the mode of each.
    fn picture(&self) -> BTreeMap<String, String> {
        let mut picture: BTreeMap<String, String> = KEYS.iter().map(|key| ((*key).to_owned(), self.key(key))).collect();
        walk(self.root(), &mut picture);
        picture
    }

    /// Starts a job and waits until it tries a block.
    fn until_it_tries(&self, more: &[&str]) -> Child {
        let mut child = self.tune(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.key(CONTROL) != "bbr" {
            assert!(Instant::now() < deadline, "nothing is tried");
            assert!(child.try_wait().unwrap().is_none(), "it ended: {:?}", child.wait_with_output());
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn walk(folder: &Path, picture: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if path.is_dir() {
            walk(&path, picture);
            picture.insert(name, "directory".into());
        } else {
            picture.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn without_journals(mut picture: BTreeMap<String, String>) -> BTreeMap<String, String> {
    picture.retain(|path, _| !path.contains("/var/lib/linerate"));
    picture
}

#[test]
fn on_a_lossy_path_bbr_is_kept_as_one_transaction_that_rollback_undoes_to_the_byte() {
    testkit::require_root_or_skip!();
    let bench = Bench::new("30mbit", "40ms", "1%");
    let before = bench.picture();
    let json = bench.root().join("../").join(format!("{}.json", bench.root().file_name().unwrap().to_string_lossy()));
    let output = bench.tune(&["--json", json.to_str().unwrap()]).output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(
        out.contains("kept, it helped") && out.contains("Before:") && out.contains("linerate rollback"),
        "{out}{err}"
    );
    let document: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    fs::remove_file(&json).unwrap();
    assert_eq!(document["schema"], "linerate.tune/1");
    assert_eq!(document["result"], "kept");
    assert_eq!(document["outcome"]["blocks"][0]["outcome"], "kept");
    assert!(document["outcome"]["judgement"]["goodput_ratio"][0].as_f64().unwrap() > 2.0, "{document}");
    for key in ["idle", "baseline", "path", "plan", "runs", "limits", "peer", "transaction"] {
        assert!(!document[key].is_null(), "{key}");
    }
    assert_eq!(bench.key(CONTROL), "bbr");
    let id = document["transaction"].as_u64().unwrap().to_string();
    let history = text(&bench.linerate(&["history"]).stdout);
    assert!(
        history.contains("measured by tune") && !history.contains("tune tries"),
        "only what is kept is in it: {history}"
    );
    let verify = bench.linerate(&["verify"]);
    assert_eq!(verify.status.code(), Some(0), "{}", text(&verify.stdout));
    let rollback = bench.linerate(&["rollback", &id]);
    assert!(rollback.status.success(), "{rollback:?}");
    assert_eq!(without_journals(bench.picture()), before);
}

#[test]
fn on_a_clean_short_path_nothing_is_worth_changing_and_the_host_is_as_before_to_the_byte() {
    testkit::require_root_or_skip!();
    let bench = Bench::new("30mbit", "2ms", "0%");
    let before = bench.picture();
    let output = bench.tune(&[]).output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(out.contains("Nothing is worth changing"), "{out}{err}");
    assert_eq!(bench.picture(), before, "not even an empty folder of journals is left");
}

#[test]
fn killed_in_the_middle_rollback_puts_back_what_was_tried_and_no_other_job_begins_before() {
    testkit::require_root_or_skip!();
    let bench = Bench::new("30mbit", "40ms", "1%");
    let before = bench.picture();
    let mut child = bench.until_it_tries(&[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(bench.key(CONTROL), "bbr");
    let again = bench.tune(&[]).output().unwrap();
    assert_eq!(again.status.code(), Some(3), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("linerate rollback"), "{}", text(&again.stderr));
    let rollback = bench.linerate(&["rollback"]);
    assert!(rollback.status.success(), "{rollback:?}");
    assert_eq!(without_journals(bench.picture()), before);
}

#[test]
fn a_peer_that_dies_in_the_middle_leaves_the_host_as_before_and_what_was_measured() {
    testkit::require_root_or_skip!();
    let mut bench = Bench::new("30mbit", "40ms", "1%");
    let before = bench.picture();
    let child = bench.until_it_tries(&[]);
    bench.server.kill().unwrap();
    bench.server.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(4), "{out}{err}");
    assert!(out.contains("Stopped before the end") && err.contains(&SERVER.to_string()), "{out}{err}");
    assert_eq!(bench.picture(), before);
}

#[test]
fn ctrl_c_puts_everything_back_and_marks_what_was_measured_as_partial() {
    testkit::require_root_or_skip!();
    let bench = Bench::new("30mbit", "40ms", "1%");
    let before = bench.picture();
    let child = bench.until_it_tries(&["--json"]);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["outcome"]["partial"], true);
    assert!(!document["runs"].as_array().unwrap().is_empty());
    assert_eq!(bench.picture(), before);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_measured() {
    testkit::require_root_or_skip!();
    let bench = Bench::new("30mbit", "2ms", "0%");
    let before = bench.picture();
    let run = |words: &[&str]| {
        let mut command = bench.session.world.client.command(LINERATE);
        let output = command
            .arg("tune")
            .args(words)
            .args(["--root", bench.root().to_str().unwrap()])
            .stdin(Stdio::null())
            .output();
        let output = output.unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let server = SERVER.to_string();
    let (code, err) = run(&["--peer", &server, "--yes"]);
    assert!(code == Some(3) && err.contains("namespace"), "a namespace is not the host: {code:?} {err}");
    let (code, err) = run(&["--peer", &server]);
    assert!(code == Some(3) && err.contains("--yes"), "nobody is there to ask: {code:?} {err}");
    let (code, err) = run(&["--peer", &format!("{server}:5999"), "--yes", "--in-namespace"]);
    assert!(code == Some(4) && err.contains("linerate serve"), "no server there: {code:?} {err}");
    for (words, says) in [
        (vec!["--peer", "nowhere.invalid", "--yes"], "nowhere.invalid"),
        (vec!["--peer", &server, "--yes", "--warmup", "1500ms"], "whole seconds"),
        (vec!["--peer", &server, "--yes", "--confirm", "2h"], "1s to 1h"),
        (vec!["--peer", "far:0", "--yes"], "HOST:PORT"),
        (vec!["--peer", &server, "--yes", "--cc", "nocontrol"], "nocontrol"),
        (vec!["--peer", &server, "--lab", "cellular-4g"], "cannot be used with"),
    ] {
        let mut words = words;
        words.push("--in-namespace");
        let (code, err) = run(&words);
        assert!(code == Some(2) && err.contains(says), "{words:?}: {code:?} {err}");
    }
    assert_eq!(bench.picture(), before);
}
