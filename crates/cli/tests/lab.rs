//! `linerate lab` as its user runs it.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// One experiment at a time: they share two cores.
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

const SHORT: &[&str] = &["--duration", "2s", "--warmup", "500ms"];

#[test]
fn an_unknown_scenario_is_answered_with_the_nearest_name() {
    refused(&["lab", "run", "celular-4g"], &["celular-4g", "cellular-4g"]);
}

#[test]
fn an_unknown_congestion_control_is_answered_with_those_there_are() {
    testkit::require_root_or_skip!();
    refused(&["lab", "run", "cellular-4g", "--cc", "bbrplus"], &["bbrplus", "reno"]);
}

#[test]
fn impossible_paths_are_refused_before_anything_starts() {
    refused(&["lab", "path", "--rate", "0mbit", "--rtt", "10ms"], &["rate"]);
    refused(&["lab", "path", "--rate", "10mbit", "--rtt", "10ms", "--loss", "100%"], &["loss"]);
    refused(&["lab", "path", "--rate", "10mbit", "--rtt", "10ms", "--queue", "1kB"], &["queue", "packet"]);
    refused(&["lab", "path", "--rate", "400gbit", "--rtt", "10s"], &["memory"]);
    refused(&["lab", "path", "--rate", "10mbps", "--rtt", "10ms"], &["mbit"]);
    refused(&["lab", "path", "--rate", "10mbit", "--rtt", "10"], &["unit"]);
    refused(&["lab", "path", "--rate", "10mbit", "--rtt", "10ms", "--burst", "0.5"], &["burst"]);
}

#[test]
fn a_broken_scenario_file_is_named_with_line_and_nearest_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(
        &file,
        "name = \"mine\"\ntitle = \"t\"\n[path]\nrate = \"10mbit\"\nrtt = \"10ms\"\nquue = \"1bdp\"\n",
    )
    .unwrap();
    refused(&["lab", "run", file.to_str().unwrap()], &["mine.toml:6", "quue", "queue"]);
    refused(&["lab", "run", folder.path().join("none.toml").to_str().unwrap()], &["none.toml", "No such file"]);
}

#[test]
fn a_broken_trace_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.trace"), "1\n2\nabc\n").unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, "name = \"mine\"\ntitle = \"t\"\n[path]\nrate = { trace = \"t.trace\" }\nrtt = \"10ms\"\n")
        .unwrap();
    refused(&["lab", "run", file.to_str().unwrap()], &["t.trace:3", "abc"]);
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_minutes_of_measuring() {
    refused(&["lab", "run", "cellular-4g", "--json", "/nonexistent/x.json"], &["/nonexistent/x.json"]);
    refused(&["lab", "run", "cellular-4g", "--html", "/"], &["is a folder"]);
}

#[test]
fn the_list_is_the_same_for_people_and_programs() {
    let people = text(&run(&["lab", "list"]).stdout);
    let programs: Value = serde_json::from_slice(&run(&["lab", "list", "--json"]).stdout).unwrap();
    let names: Vec<&str> =
        programs["scenarios"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(people.lines().count(), names.len());
    assert!(names.iter().all(|name| people.contains(name)));
    assert!(names.contains(&"transcontinental") && names.contains(&"rate-drop"));
}

#[test]
fn a_run_gives_a_table_a_page_a_capture_and_json_that_say_the_same() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut words = vec!["lab", "path", "--rate", "20mbit", "--rtt", "20ms", "--loss", "1%", "--cc", "cubic,bbr"];
    words.extend(SHORT);
    let (json, html, pcap) = (path("r.json"), path("r.html"), path("r.pcapng"));
    std::os::unix::fs::symlink("elsewhere.html", &html).unwrap();
    words.extend(["--json", &json, "--html", &html, "--pcap", &pcap]);
    let output = run(&words);
    // 1: a busy machine made a run invalid, which is what the figures then say.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
    let report = read_json(Path::new(&json));
    assert_eq!(report["schema"], "linerate.lab/1");
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        assert!(result["drops"]["random"].as_u64().unwrap() > 0, "one in a hundred of some thousand packets is lost");
        assert!(result["flows"][0]["goodput_bps"].as_f64().unwrap() > 1e5);
        assert!((19.0..30.0).contains(&result["rtt_idle_ms"].as_f64().unwrap()));
        assert_eq!(result["flows"][0]["congestion_control"], result["congestion_control"]);
        assert_eq!(result["valid"].as_bool().unwrap(), result["invalid_reason"].is_null());
    }
    let bbr = results.iter().find(|r| r["congestion_control"] == "bbr").unwrap();
    assert!(bbr["congestion_control_version"].as_str().unwrap().starts_with("BBRv"));
    let table = text(&output.stdout);
    assert!(table.contains("cubic") && table.contains("20 Mbit/s"), "{table}");
    assert!(std::fs::read_to_string(&html).unwrap().contains("<svg"));
    assert!(std::fs::symlink_metadata(&html).unwrap().is_symlink(), "the page went to what the link leads to");
    // Two runs: two captures with numbers, each with drops and their reason.
    for number in 1..=2 {
        let capture = std::fs::read(path(&format!("r-{number}.pcapng"))).unwrap();
        assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        assert!(capture.windows(20).any(|w| w == b"dropped: random loss"));
    }
    let same = run(&["lab", "compare", &json, &json]);
    // Only valid runs are compared, and with none of them there is nothing to say.
    let any_valid = results.iter().any(|result| result["valid"].as_bool().unwrap());
    let expected = if any_valid { Some(0) } else { Some(1) };
    assert_eq!(same.status.code(), expected, "a report does not differ from itself: {}", text(&same.stdout));
    assert_eq!(text(&same.stderr).contains("Nothing was compared"), !any_valid);
}

#[test]
#[cfg(feature = "bpf")]
fn bbr3_is_loaded_for_the_run_and_gone_afterwards() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let available = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    if available().contains("bbr3") {
        eprintln!("SKIPPED: somebody has loaded bbr3 on this machine already");
        return;
    }
    let mut words = vec!["lab", "path", "--rate", "20mbit", "--rtt", "20ms", "--cc", "bbr3"];
    words.extend(SHORT);
    words.extend(["--json", "-"]);
    let output = run(&words);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("Loaded BBRv3"), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = &report["results"][0];
    assert_eq!(result["flows"][0]["congestion_control"], "bbr3");
    assert_eq!(result["congestion_control_version"], "BPF");
    assert!(result["flows"][0]["goodput_bps"].as_f64().unwrap() > 1e7, "more than half of the link: {result}");
    assert!(!available().contains("bbr3"), "it is taken out again");
}

/// Starts a run that would take a minute, and waits until its traffic flows.
fn long_run(json: &str) -> Child {
    use std::io::{BufRead, BufReader};
    let mut child = linerate(&[
        "lab",
        "path",
        "--rate",
        "10mbit",
        "--rtt",
        "10ms",
        "--duration",
        "60s",
        "--cc",
        "cubic,bbr",
        "--json",
        json,
    ])
    .stderr(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // The first line names the first run; a device in another namespace shows that it is under way.
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("run 1 of 2"), "{line}");
    while !has_emulator(child.id()) {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::yield_now();
    }
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    child
}

fn has_emulator(pid: u32) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    tasks
        .flatten()
        .any(|task| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "emulator"))
}

fn links() -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir("/sys/class/net")
        .unwrap()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn signal(child: &Child, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_marks_it_partial() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json");
    let before = links();
    let child = long_run(json.to_str().unwrap());
    signal(&child, nix::sys::signal::Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "found something: the report is partial");
    let report = read_json(&json);
    assert_eq!(report["partial"], true);
    assert_eq!(report["results"].as_array().unwrap().len(), 1, "the run in progress is kept");
    assert_eq!(report["results"][0]["valid"], false);
    assert_eq!(links(), before);
}

#[test]
fn kill_9_leaves_no_device_and_no_process() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let folder = tempfile::tempdir().unwrap();
    let before = links();
    let mut child = long_run(folder.path().join("r.json").to_str().unwrap());
    signal(&child, nix::sys::signal::Signal::SIGKILL);
    child.wait().unwrap();
    assert_eq!(links(), before);
    assert!(!Path::new(&format!("/proc/{}", child.id())).exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no half-written file");
}

#[test]
fn a_shell_command_runs_at_the_near_end_and_its_exit_code_is_passed_on() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let output =
        run(&["lab", "shell", "cellular-4g", "--", "sh", "-c", "cat /proc/net/dev; echo $LINERATE_SERVER; exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let seen = text(&output.stdout);
    assert!(seen.contains("path0") && seen.contains("198.18.0.2"), "{seen}");
    let missing = run(&["lab", "shell", "cellular-4g", "--", "/nonexistent/program"]);
    assert_eq!(missing.status.code(), Some(127), "as a shell says it");
    assert!(text(&missing.stderr).contains("/nonexistent/program"));
    // The near end waits until the far one has closed its end of a pipe, which it does as it exits.
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let pipe = pipe.to_str().unwrap();
    let (failing, waiting) = (format!("sh -c 'exec 3>{pipe}; exit 3'"), format!("cat {pipe}"));
    let far = run(&["lab", "shell", "cellular-4g", "--far", &failing, "--", "sh", "-c", &waiting]);
    let message = text(&far.stderr);
    assert!(message.contains("had ended by itself") && message.contains('3'), "{message}");
}

#[test]
fn options_of_a_measurement_mean_nothing_to_a_shell() {
    refused(&["lab", "shell", "cellular-4g", "--repeat", "3", "--", "true"], &["--repeat", "leave it out"]);
    refused(&["lab", "shell", "cellular-4g", "--duration", "3s", "--", "true"], &["--duration"]);
}

#[test]
fn a_negative_value_is_answered_as_a_value() {
    refused(&["lab", "run", "cellular-4g", "--loss", "-1%"], &["-1%"]);
    refused(&["lab", "run", "cellular-4g", "--buffers", "4GiB"], &["--buffers", "2GiB"]);
    refused(&["lab", "run", "cellular-4g", "--repeat", "-1"], &["-1", "1..=1000"]);
}

#[test]
fn without_the_device_the_message_says_what_is_missing() {
    testkit::require_root_or_skip!();
    let _one = alone();
    let mut words = vec!["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    // The program's own folder may be closed to others: hand over a copy.
    let folder =
        tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    let copy = folder.path().join("linerate");
    std::fs::copy(env!("CARGO_BIN_EXE_linerate"), &copy).unwrap();
    let copy = copy.to_str().unwrap();
    words.extend([
        copy,
        "lab",
        "path",
        "--rate",
        "5mbit",
        "--rtt",
        "10ms",
        "--duration",
        "1s",
        "--warmup",
        "200ms",
        "--cc",
        "reno",
    ]);
    let output = Command::new("setpriv").args(&words).current_dir("/").output().unwrap();
    let message = text(&output.stderr);
    match output.status.code() {
        // Where user namespaces and the device are open to all, it works.
        Some(0 | 1) => assert!(text(&output.stdout).contains("reno"), "{message}"),
        code => {
            assert_eq!(code, Some(4), "{message}");
            assert!(message.contains("/dev/net/tun") || message.contains("user namespace"), "{message}");
            assert!(message.contains("sudo"), "how to get it: {message}");
        }
    }
}
