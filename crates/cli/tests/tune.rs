//! `linerate tune --lab` as its user runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// One experiment at a time: they share the CPUs.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tune(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.arg("tune").args(words).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> Output {
    tune(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A scenario file of a path that any machine carries.
fn scenario(folder: &Path, rtt: &str, loss: &str) -> PathBuf {
    let file = folder.join("own-path.toml");
    let toml = format!(
        "name = \"own-path\"\ntitle = \"A path of the test\"\nabout = \"A path of the test\"\n\n[path]\nrate = \"20mbit\"\nrtt = \"{rtt}\"\nqueue = \"1bdp\"\nloss = \"{loss}\"\n\n\
         [[profile]]\nname = \"cubic\"\ncongestion_control = \"cubic\"\n\n[[flow]]\nlabel = \"bulk\"\n"
    );
    std::fs::write(&file, toml).unwrap();
    file
}

const SHORT: [&str; 6] = ["--duration", "1s", "--warmup", "200ms", "--cc", "bbr"];

#[test]
fn a_dry_run_measures_the_path_prints_the_plan_and_tries_nothing() {
    testkit::require_root_or_skip!();
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "40ms", "1%");
    let json = folder.path().join("out.json");
    let words =
        [&["--lab", file.to_str().unwrap(), "--dry-run", "--json", json.to_str().unwrap()][..], &SHORT].concat();
    let output = run(&words);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("To try, control") && err.contains("tcp_congestion_control = bbr"), "{err}");
    assert!(!err.contains("without:"), "{err}");
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(document["schema"], "linerate.tune/1");
    assert!(document.get("outcome").is_none());
    for key in
        ["linerate_version", "kernel", "command_line", "started_at", "lab", "seed", "path", "plan", "limits", "runs"]
    {
        assert!(!document[key].is_null(), "{key}: {document}");
    }
    let rtt = document["path"]["rtt_ms"].as_f64().unwrap();
    assert!((38.0..60.0).contains(&rtt), "{rtt}");
}

#[test]
fn the_whole_job_on_a_lossy_path_keeps_bbr_and_says_what_to_set_on_a_host() {
    testkit::require_root_or_skip!();
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "40ms", "1%");
    let json = folder.path().join("out.json");
    let output = run(&[&["--lab", file.to_str().unwrap(), "--json", json.to_str().unwrap()][..], &SHORT].concat());
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    // A run that a busy machine made invalid is said to be one, by exit code 1.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{out}{err}");
    assert!(
        out.contains("kept, it helped") && out.contains("Before:") && out.contains("To set the same on a host"),
        "{out}{err}"
    );
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let block = &document["outcome"]["blocks"][0];
    assert_eq!(
        (&block["block"], &block["outcome"], &block["why"]),
        (&"control".into(), &"kept".into(), &"helped".into())
    );
    assert!(document["outcome"]["judgement"]["goodput_ratio"][0].as_f64().unwrap() > 1.5, "{document}");
}

#[test]
fn on_a_clean_short_path_nothing_is_worth_changing() {
    testkit::require_root_or_skip!();
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "2ms", "0%");
    // Where the machine was too busy to carry the path in time, the job says that its figures are none, and is done again; the last one
    // counts all the same, since a busy machine is no reason to change a host.
    for left in (0..3).rev() {
        let output = run(&[&["--lab", file.to_str().unwrap()][..], &SHORT].concat());
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let invalid = output.status.code() == Some(1) && out.contains("invalid by the lab's own rules");
        if invalid && left > 0 {
            continue;
        }
        assert!(invalid || output.status.code() == Some(0), "{out}{err}");
        assert!(out.contains("Nothing is worth changing on this path."), "{out}{err}");
        assert!(!out.contains("To set the same"), "{out}");
        return;
    }
}

#[test]
fn ctrl_c_ends_the_job_with_what_was_decided_by_then() {
    testkit::require_root_or_skip!();
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(folder.path(), "40ms", "1%");
    let log = std::fs::File::create(folder.path().join("err")).unwrap();
    let words = [&["--lab", file.to_str().unwrap(), "--json"][..], &SHORT].concat();
    // The value of --json would be the next word.
    let words: Vec<&str> = words.iter().filter(|word| **word != "--json").copied().chain(["--json"]).collect();
    let child = tune(&words).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !std::fs::read_to_string(folder.path().join("err")).unwrap().contains("without:") {
        assert!(Instant::now() < deadline, "no run ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["outcome"]["partial"], true);
    assert_eq!(document["outcome"]["blocks"][0]["outcome"], "not-tried");
}

#[test]
fn what_is_wrong_is_said_before_anything_starts() {
    for (words, says) in [
        (&["--lab", "celular-4g"][..], "cellular-4g"),
        (&[][..], "--peer"),
        (&["--lab", "cellular-4g", "--peer", "far"][..], "cannot be used with"),
        (&["--lab", "cellular-4g", "--yes"][..], "cannot be used with"),
        (&["--lab", "cellular-4g", "--pairs", "5"][..], "6..=100"),
        (&["--lab", "cellular-4g", "--duration", "2s", "--warmup", "2s"][..], "leaves nothing"),
        (&["--lab", "cellular-4g", "--json", "/nowhere/at/all.json"][..], "/nowhere"),
    ] {
        let output = run(words);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {err}");
        assert!(err.contains(says), "{words:?} should say {says:?}: {err}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}
