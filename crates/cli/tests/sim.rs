//! `linerate sim` as its user runs it: no root, no namespaces.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate")).args(words).env("NO_COLOR", "1").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Exit code 2, a message that has all of `parts`, and nothing on standard output.
#[track_caller]
fn refused(words: &[&str], parts: &[&str]) {
    let output = run(words);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {message}");
    assert_eq!(text(&output.stdout), "", "{words:?}");
    for part in parts {
        assert!(message.contains(part), "{words:?} should say {part:?}: {message}");
    }
}

fn read_json(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

const SHORT: &[&str] = &["--duration", "5s", "--warmup", "1s"];

#[test]
fn a_scenario_is_simulated_and_says_so_in_table_page_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("a.json"), folder.path().join("a.html"));
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let output = run(&[&["sim", "transcontinental", "--cc", "cubic,bbr", "--loss", "0%,1.5%"], SHORT, &files].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("SIMULATED in virtual time"), "{}", text(&output.stdout));
    assert!(std::fs::read_to_string(&html).unwrap().contains("SIMULATED in virtual time"));
    let report = read_json(&json);
    assert_eq!((&report["schema"], &report["simulated"]), (&"linerate.sim/1".into(), &true.into()));
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    assert!(results.iter().all(|run| run["valid"] == true && run["emulator"]["kind"] == "simulator"));
    let goodput = |loss: f64, control: &str| {
        let run = results.iter().find(|run| run["loss"] == loss && run["congestion_control"] == control).unwrap();
        run["goodput_bps"].as_u64().unwrap()
    };
    assert!(goodput(0.015, "bbr") > 20 * goodput(0.015, "cubic"), "{results:#?}");
    assert!(!results[0]["flows"][0]["series"]["cwnd_segments"]["value"].as_array().unwrap().is_empty());
}

#[test]
fn the_same_seed_gives_the_same_figures_however_many_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let results = |name: &str, jobs: &str, seed: &str| {
        let file = folder.path().join(name);
        let words = ["sim", "cross-continental-lossy", "--repeat", "2", "--jobs", jobs, "--seed", seed, "--json"];
        let output = run(&[&words, &[file.to_str().unwrap()][..], SHORT].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let mut results = read_json(&file)["results"].clone();
        for run in results.as_array_mut().unwrap() {
            run.as_object_mut().unwrap().remove("started_after_s");
        }
        results
    };
    assert_eq!(results("a", "1", "7"), results("b", "4", "7"));
    assert_ne!(results("c", "2", "7"), results("d", "2", "8"));
}

#[test]
fn flows_and_sweeps_make_scenarios_of_their_own() {
    let words = ["sim", "shallow-buffer", "--cc", "reno", "--sweep", "flows=1,20", "--sweep", "rate=20mbit,40mbit"];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    let output = run(&[&words, SHORT, &["--queue", "1bdp", "--json", file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = read_json(&file);
    let names: Vec<_> = report["scenarios"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "shallow-buffer-1-flows-20000000bps",
            "shallow-buffer-1-flows-40000000bps",
            "shallow-buffer-20-flows-20000000bps",
            "shallow-buffer-20-flows-40000000bps"
        ]
    );
    let flows: Vec<usize> =
        report["results"].as_array().unwrap().iter().map(|run| run["flows"].as_array().unwrap().len()).collect();
    assert_eq!(flows, [1, 1, 20, 20]);
}

#[test]
fn a_simulated_report_can_be_held_against_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    let file = file.to_str().unwrap();
    assert!(run(&[&["sim", "policer", "--cc", "cubic", "--json", file], SHORT].concat()).status.success());
    let output = run(&["lab", "compare", file, file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("0 of"), "{}", text(&output.stdout));
    // Held against itself it is no further off than promised.
    let compared = run(&[&["sim", "compare-lab", "policer", "--cc", "cubic", "--lab", file], SHORT].concat());
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared.stderr));
    assert!(text(&compared.stdout).contains("within 10 % of the kernel"), "{}", text(&compared.stdout));
}

#[test]
fn what_can_not_be_simulated_is_refused_with_a_reason() {
    refused(&["sim", "celular-4g"], &["celular-4g", "cellular-4g"]);
    refused(&["sim"], &["SCENARIO"]);
    refused(&["sim", "policer", "--cc", "vegas"], &["vegas", "reno, cubic, bbr"]);
    refused(&["sim", "policer", "--sweep", "flows"], &["KEY=A,B"]);
    refused(&["sim", "policer", "--sweep", "flows=0"], &["1 to 60000"]);
    refused(&["sim", "policer", "--sweep", "colour=red"], &["flows, rate"]);
    refused(&["sim", "policer", "--sweep", "rate=0mbit"], &["rate"]);
    refused(&["sim", "policer", "--flows", "100000"], &["100000"]);
    refused(&["sim", "policer", "--pcap", "a.pcapng"], &["no packets to capture"]);
    refused(&["sim", "compare-lab", "policer", "--lab", "/nowhere.json"], &["/nowhere.json"]);
}

/// Without rights, and with no user namespace left to get them from.
#[test]
fn where_no_namespaces_are_allowed_lab_run_simulates_and_says_why() {
    testkit::require_root_or_skip!();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \
         {} lab run policer --cc cubic --duration 3s --warmup 1s --json {}",
        env!("CARGO_BIN_EXE_linerate"),
        file.display()
    );
    // Only the new user namespace's own limit is changed.
    let unshare = ["--user", "--map-root-user", "sh", "-c", &script];
    let output = Command::new("unshare").args(unshare).env("NO_COLOR", "1").output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("no experiment with this kernel is possible"), "{err}");
    assert!(out.contains("SIMULATED") && out.contains("max_user_namespaces"), "{out}");
    assert_eq!(read_json(&file)["simulated"], true);
}
