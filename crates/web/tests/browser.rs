//! The whole job between namespaces of the test's own: server, Chromium, the page's report, and nothing left behind.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{fs, thread};

use host::netns::NetNs;
use linerate_web::browser::Chromium;
use linerate_web::{Page, PageLoad, Progress, Protocol, WebError, WebPlan, measure};
use testkit::{Ends, require_root_or_skip};
use units::{Bytes, Duration};

/// Set in the copy of this program that is to be killed: it measures instead of testing.
const VICTIM: &str = "LINERATE_WEB_TEST_VICTIM";

/// Returns from the test where there is no browser or no right to make namespaces; with `CI=true` that is a failure.
macro_rules! require_browser_or_skip {
    () => {
        require_root_or_skip!();
        if let Err(error) = Chromium::find() {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "may not be skipped when CI=true: {error}");
            eprintln!("SKIPPED: {error}");
            return;
        }
    };
}

fn plan<'a>(ends: &'a Ends, protocol: Protocol, stop: &'a dyn Fn() -> bool) -> WebPlan<'a> {
    WebPlan {
        near: &ends.client,
        far: &ends.server,
        server_addr: ends.server_addr,
        port: 0,
        protocol,
        congestion_control: "reno".into(),
        loads: 2,
        timeout: Duration::from_secs(60),
        stop,
    }
}

/// Processes in the network namespace `inode`, except this one, by their command lines.
fn processes_in(inode: u64) -> Vec<String> {
    let wanted = format!("net:[{inode}]");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc is there").flatten() {
        let process = entry.path();
        let is_there = fs::read_link(process.join("ns/net")).is_ok_and(|link| link.to_string_lossy() == wanted);
        if is_there && entry.file_name().to_string_lossy() != std::process::id().to_string() {
            found.push(fs::read_to_string(process.join("cmdline")).unwrap_or_default().replace('\0', " "));
        }
    }
    found
}

fn assert_nothing_runs_in(namespace: &NetNs) {
    assert_eq!(processes_in(namespace.inode().expect("an inode")), Vec::<String>::new());
}

/// Two loads, each checked for what holds on any machine.
fn load(protocol: Protocol) -> Vec<PageLoad> {
    let ends = Ends::over_veth();
    let mut steps = Vec::new();
    let loads = measure(&plan(&ends, protocol, &|| false), |progress| {
        steps.push(match progress {
            Progress::WarmingUp => "warm-up",
            Progress::Baseline(load) => {
                assert_eq!(load.requests, Page::standard().resources().len());
                "baseline"
            }
            Progress::Loading(_) => "loading",
            Progress::Loaded(_) => "loaded",
        });
    })
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(steps, ["warm-up", "baseline", "loading", "loaded", "loading", "loaded"]);
    assert_eq!(loads.len(), 2);
    for load in &loads {
        assert_eq!(load.protocol, protocol.alpn());
        assert_eq!(load.congestion_control.name, "reno");
        assert_eq!(load.requests, Page::standard().resources().len());
        assert!(Duration::ZERO < load.ttfb && load.ttfb < load.dom_content_loaded, "{load:?}");
        assert!(load.dom_content_loaded <= load.load && load.ttfb < load.fcp, "{load:?}");
        assert!(load.lcp.is_some_and(|lcp| lcp >= load.fcp), "{load:?}");
        let page = Page::standard().size();
        assert!(page < load.bytes && load.bytes < page + Bytes::new(50_000), "headers and TLS are little: {load:?}");
    }
    assert_nothing_runs_in(&ends.client);
    loads
}

#[test]
fn chromium_loads_the_whole_page_over_http1_on_several_connections() {
    require_browser_or_skip!();
    let loads = load(Protocol::Http1);
    // Chromium opens at most six to one host.
    assert!(loads.iter().all(|load| (2..=6).contains(&load.connections)), "{loads:?}");
}

#[test]
fn chromium_loads_the_whole_page_over_http2_on_one_connection() {
    require_browser_or_skip!();
    let loads = load(Protocol::Http2);
    assert!(loads.iter().all(|load| load.connections == 1), "{loads:?}");
}

#[test]
fn a_load_that_takes_too_long_is_an_error_and_nothing_of_it_remains() {
    require_browser_or_skip!();
    let ends = Ends::on_loopback();
    let hasty = WebPlan { timeout: Duration::from_millis(1), ..plan(&ends, Protocol::Http1, &|| false) };
    let error = measure(&hasty, |_| {}).expect_err("no browser starts in a millisecond");
    assert!(matches!(error, WebError::Timeout { load: 0, .. }), "{error}");
    assert_nothing_runs_in(&ends.client);
}

#[test]
fn a_measurement_that_is_stopped_ends_at_once_with_what_it_has() {
    require_browser_or_skip!();
    let ends = Ends::on_loopback();
    let asked = AtomicBool::new(false);
    let stop = || asked.load(Ordering::Relaxed);
    let endless = WebPlan { loads: 1_000, ..plan(&ends, Protocol::Http1, &stop) };
    let loads = measure(&endless, |progress| {
        if let Progress::Loading(2) = progress {
            asked.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(loads.unwrap_or_else(|error| panic!("{error}")).len(), 1);
    assert_nothing_runs_in(&ends.client);
}

/// Runs this program again as a process that measures endlessly, with `browser` as Chromium where one is given.
fn victim(browser: Option<&str>) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program's path"));
    command.args(["--exact", "the_measurement_to_be_killed", "--nocapture"]).env(VICTIM, "1");
    if let Some(browser) = browser {
        command.env("CHROMIUM", browser);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

#[test]
fn the_measurement_to_be_killed() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let ends = Ends::on_loopback();
    let inode = ends.client.inode().expect("an inode");
    let endless = WebPlan { loads: u32::MAX, ..plan(&ends, Protocol::Http1, &|| false) };
    let result = measure(&endless, |progress| {
        if let Progress::Loading(1) = progress {
            println!("\nloading in {inode}");
        }
    });
    println!("\nended in {inode}: {}", result.expect_err("it is endless"));
}

#[test]
fn killing_the_measurement_with_sigkill_takes_every_browser_process_along() {
    require_browser_or_skip!();
    let mut victim = victim(None).spawn().expect("a copy of this program");
    let output = BufReader::new(victim.stdout.take().expect("its output"));
    let inode: u64 = output
        .lines()
        .find_map(|line| line.expect("a line").strip_prefix("loading in ").map(str::to_owned))
        .and_then(|inode| inode.parse().ok())
        .expect("the namespace of the victim");
    let deadline = Instant::now() + std::time::Duration::from_secs(30);
    let is_page = |process: &String| process.contains("--type=renderer");
    while !processes_in(inode).iter().any(is_page) {
        assert!(Instant::now() < deadline, "no browser appeared: {:?}", processes_in(inode));
        thread::yield_now();
    }
    victim.kill().expect("kill the victim");
    victim.wait().expect("the victim's end");
    while !processes_in(inode).is_empty() {
        assert!(Instant::now() < deadline, "left behind: {:?}", processes_in(inode));
        thread::yield_now();
    }
}

#[test]
fn a_browser_that_ends_by_itself_is_reported_with_its_last_words() {
    require_browser_or_skip!();
    let output = victim(Some("/bin/ls")).output().expect("a copy of this program");
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("the browser ended before the page was loaded"), "{output}");
    assert!(output.contains("unrecognized option") && output.contains("--headless"), "the words of ls: {output}");
}
