//! The whole job over `lo` in a namespace of the test's own: server, Chromium, the page's report, and nothing left behind.

mod common;

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

use host::netns::NetNs;
use linerate_web::browser::Chromium;
use linerate_web::{Page, PageLoad, Progress, Protocol, WebError, WebPlan, measure};
use units::{Bytes, Duration};

/// Set in the copy of this program that is to be killed: it measures instead of testing.
const VICTIM: &str = "LINERATE_WEB_TEST_VICTIM";

/// A namespace, where there is a browser to put into it.
fn namespace() -> Option<NetNs> {
    match Chromium::find() {
        Ok(_) => common::namespace(),
        Err(error @ WebError::NoBrowser { .. }) => common::skip(&error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

fn plan<'a>(namespace: &'a NetNs, protocol: Protocol, stop: &'a AtomicBool) -> WebPlan<'a> {
    WebPlan {
        near: namespace,
        far: namespace,
        server_addr: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        protocol,
        congestion_control: "reno".into(),
        loads: 2,
        timeout: Duration::from_secs(60),
        stop,
    }
}

fn assert_empty(namespace: &NetNs) {
    assert_eq!(common::processes_in(namespace.inode().expect("an inode")), Vec::<String>::new());
}

/// Two loads, each checked for what holds on any machine.
fn load(protocol: Protocol) -> Option<Vec<PageLoad>> {
    let namespace = namespace()?;
    let mut steps = Vec::new();
    let loads = measure(&plan(&namespace, protocol, &AtomicBool::new(false)), |progress| {
        steps.push(match progress {
            Progress::WarmingUp => "warm-up",
            Progress::Loading(_) => "loading",
            Progress::Loaded(_) => "loaded",
        });
    })
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(steps, ["warm-up", "loading", "loaded", "loading", "loaded"]);
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
    assert_empty(&namespace);
    Some(loads)
}

#[test]
fn chromium_loads_the_whole_page_over_http1_on_several_connections() {
    let Some(loads) = load(Protocol::Http1) else { return };
    // Chromium opens at most six to one host.
    assert!(loads.iter().all(|load| (2..=6).contains(&load.connections)), "{loads:?}");
}

#[test]
fn chromium_loads_the_whole_page_over_http2_on_one_connection() {
    let Some(loads) = load(Protocol::Http2) else { return };
    assert!(loads.iter().all(|load| load.connections == 1), "{loads:?}");
}

#[test]
fn a_load_that_takes_too_long_is_an_error_and_nothing_of_it_remains() {
    let Some(namespace) = namespace() else { return };
    let stop = AtomicBool::new(false);
    let hasty = WebPlan { timeout: Duration::from_millis(1), ..plan(&namespace, Protocol::Http1, &stop) };
    let error = measure(&hasty, |_| {}).expect_err("no browser starts in a millisecond");
    assert!(matches!(error, WebError::Timeout { load: 0, .. }), "{error}");
    assert_empty(&namespace);
}

#[test]
fn a_measurement_that_is_stopped_ends_at_once_with_what_it_has() {
    let Some(namespace) = namespace() else { return };
    let stop = AtomicBool::new(false);
    let endless = WebPlan { loads: 1_000, ..plan(&namespace, Protocol::Http1, &stop) };
    let loads = measure(&endless, |progress| {
        if let Progress::Loading(2) = progress {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    assert_eq!(loads.unwrap_or_else(|error| panic!("{error}")).len(), 1);
    assert_empty(&namespace);
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
    let namespace = NetNs::create().expect("a namespace");
    let inode = namespace.inode().expect("an inode");
    let stop = AtomicBool::new(false);
    let endless = WebPlan { loads: u32::MAX, ..plan(&namespace, Protocol::Http1, &stop) };
    let result = measure(&endless, |progress| {
        if let Progress::Loading(1) = progress {
            println!("\nloading in {inode}");
        }
    });
    println!("\nended in {inode}: {}", result.expect_err("it is endless"));
}

#[test]
fn killing_the_measurement_with_sigkill_takes_every_browser_process_along() {
    if namespace().is_none() {
        return;
    }
    let mut victim = victim(None).spawn().expect("a copy of this program");
    let output = BufReader::new(victim.stdout.take().expect("its output"));
    let inode: u64 = output
        .lines()
        .find_map(|line| line.expect("a line").strip_prefix("loading in ").map(str::to_owned))
        .and_then(|inode| inode.parse().ok())
        .expect("the namespace of the victim");
    let deadline = Instant::now() + std::time::Duration::from_secs(30);
    let is_page = |process: &String| process.contains("--type=renderer");
    while !common::processes_in(inode).iter().any(is_page) {
        assert!(Instant::now() < deadline, "no browser appeared: {:?}", common::processes_in(inode));
        thread::yield_now();
    }
    victim.kill().expect("kill the victim");
    victim.wait().expect("the victim's end");
    while !common::processes_in(inode).is_empty() {
        assert!(Instant::now() < deadline, "left behind: {:?}", common::processes_in(inode));
        thread::yield_now();
    }
}

#[test]
fn a_browser_that_ends_by_itself_is_reported_with_its_last_words() {
    let Some(_) = namespace() else { return };
    let output = victim(Some("/bin/ls")).output().expect("a copy of this program");
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("the browser ended before the page was loaded"), "{output}");
    assert!(output.contains("unrecognized option") && output.contains("--headless"), "the words of ls: {output}");
}
