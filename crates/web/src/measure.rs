use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use host::cc::CcVersion;
use host::netns::NetNs;
use units::{Bytes, Duration};

use crate::beacon::{Beacon, time};
use crate::browser::{Chromium, Running};
use crate::server::{Connection, Server, ServerConfig};
use crate::{Page, Protocol, WebError};

/// How often a waiting measurement looks whether it is to stop and whether the browser still runs.
const GLANCE: Duration = Duration::from_millis(50);

/// One series of page loads.
///
/// Of the kernel's memory of earlier connections (`ip tcp_metrics`) this crate does not clear anything: loads are only independent
/// of each other where `net.ipv4.tcp_no_metrics_save` is 1 in `far`.
#[derive(Debug)]
pub struct WebPlan<'a> {
    /// Where the browser runs.
    pub near: &'a NetNs,
    /// Where the server runs.
    pub far: &'a NetNs,
    /// An address of `far` that `near` reaches through the path.
    pub server_addr: IpAddr,
    /// The port to listen on; 0 for any that is free.
    pub port: u16,
    /// Which HTTP.
    pub protocol: Protocol,
    /// What the server's sockets run.
    pub congestion_control: String,
    /// How many loads, each with a new browser and an empty cache.
    pub loads: u32,
    /// The longest one load may take, the browser's start included.
    pub timeout: Duration,
    /// Set it to end early; what has been measured by then is kept.
    pub stop: &'a AtomicBool,
}

/// One load of the page. All times count from the start of the navigation, the connection's set-up included.
#[derive(Debug, Clone, PartialEq)]
pub struct PageLoad {
    /// First Contentful Paint (W3C Paint Timing): text or a picture is on the screen.
    pub fcp: Duration,
    /// Largest Contentful Paint, where the browser reported one.
    pub lcp: Option<Duration>,
    /// The document is parsed and the deferred scripts have run.
    pub dom_content_loaded: Duration,
    /// The load event: everything is there.
    pub load: Duration,
    /// The first byte of the document (`responseStart`).
    pub ttfb: Duration,
    /// What the server sent on all connections, with HTTP headers and TLS, without TCP and IP headers and retransmissions.
    pub bytes: Bytes,
    /// What the browser fetched, the document included.
    pub requests: usize,
    /// What the browser says it spoke (`nextHopProtocol`, an ALPN identifier), the same for every request.
    pub protocol: String,
    /// Read back from the server's accepted sockets, the same for all.
    pub congestion_control: CcVersion,
    /// Connections that carried a request.
    pub connections: usize,
    /// Segments that the server's TCP sent again, over all connections.
    pub retransmitted_segments: u64,
}

/// What a series of loads is at.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The browser is loading the page once without the path, so that its program is in memory.
    WarmingUp,
    /// The load of this number, from 1, has begun.
    Loading(u32),
    /// It has ended.
    Loaded(&'a PageLoad),
}

/// Loads the page as often as the plan says, one load after another.
///
/// Before the first one the browser loads the page from a server in its own namespace over `lo`: it brings the program and its
/// libraries into memory and touches the path with nothing.
///
/// Returns fewer loads than planned where `stop` was set. Where a load fails the ones before it have been given to `on_progress`.
///
/// # Errors
/// Any [`WebError`]. Nothing runs any more when it returns.
pub fn measure(plan: &WebPlan<'_>, mut on_progress: impl FnMut(Progress<'_>)) -> Result<Vec<PageLoad>, WebError> {
    let chromium = Chromium::find()?;
    let page = Page::standard();
    let server = Server::start(
        plan.far,
        page,
        &ServerConfig {
            address: plan.server_addr,
            port: plan.port,
            protocol: plan.protocol,
            congestion_control: Some(plan.congestion_control.clone()),
        },
    )?;
    on_progress(Progress::WarmingUp);
    if !warm_up(plan, &chromium, page)? {
        return Ok(Vec::new());
    }
    let mut loads = Vec::new();
    for number in 1..=plan.loads {
        on_progress(Progress::Loading(number));
        let Some((beacon, connections)) = load_once(plan, &chromium, &server, page, number)? else { break };
        let load = page_load(plan, number, &beacon, &connections)?;
        on_progress(Progress::Loaded(&load));
        loads.push(load);
    }
    Ok(loads)
}

/// Whether it was finished, and not stopped.
fn warm_up(plan: &WebPlan<'_>, chromium: &Chromium, page: &'static Page) -> Result<bool, WebError> {
    let config = ServerConfig {
        address: match plan.server_addr {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        },
        port: 0,
        protocol: plan.protocol,
        congestion_control: None,
    };
    let server = Server::start(plan.near, page, &config)?;
    Ok(load_once(plan, chromium, &server, page, 0)?.is_some())
}

/// One load with a browser of its own; `None` where it was stopped. Number 0 is the warm-up.
fn load_once(
    plan: &WebPlan<'_>,
    chromium: &Chromium,
    server: &Server,
    page: &Page,
    number: u32,
) -> Result<Option<(Beacon, Vec<Connection>)>, WebError> {
    let run = number.to_string();
    let browser = chromium.open(plan.near, &server.url(Some(&run)), server.key_pin())?;
    let outcome = wait_for_report(plan, server, page, number, browser)?;
    let connections = server.end_connections()?;
    let Some(report) = outcome else { return Ok(None) };
    let beacon = Beacon::parse(&report)?;
    let mut problems = beacon.problems(page);
    if beacon.run != run {
        problems.push(format!("it reports as load {}", beacon.run));
    }
    if let Some(found) = beacon.other_protocol(plan.protocol) {
        return Err(WebError::WrongProtocol { load: number, wanted: plan.protocol, found: found.to_owned() });
    }
    if !problems.is_empty() {
        return Err(WebError::Incomplete { load: number, what: problems.join("; ") });
    }
    Ok(Some((beacon, connections)))
}

/// The page's report, `None` where the measurement is to stop. Either way the browser is gone afterwards.
fn wait_for_report(
    plan: &WebPlan<'_>,
    server: &Server,
    page: &Page,
    number: u32,
    mut browser: Running,
) -> Result<Option<Vec<u8>>, WebError> {
    let started = Instant::now();
    loop {
        if let Some(report) = server.next_beacon(GLANCE)? {
            browser.stop()?;
            return Ok(Some(report));
        }
        if plan.stop.load(Ordering::Relaxed) {
            browser.stop()?;
            return Ok(None);
        }
        if let Some(status) = browser.ended()? {
            let last_words = browser.stop()?;
            return Err(WebError::BrowserEnded { status, last_words });
        }
        if Duration::from(started.elapsed()) >= plan.timeout {
            let sent = server.sent();
            browser.stop()?;
            server.end_connections()?;
            return Err(WebError::Timeout { load: number, after: plan.timeout, sent, of: page.size() });
        }
    }
}

fn page_load(
    plan: &WebPlan<'_>,
    number: u32,
    beacon: &Beacon,
    connections: &[Connection],
) -> Result<PageLoad, WebError> {
    let used: Vec<&Connection> = connections.iter().filter(|connection| connection.requests > 0).collect();
    let wrong = used.iter().find(|connection| connection.congestion_control.name != plan.congestion_control);
    let Some(first) = wrong.or(used.first()) else {
        return Err(WebError::Incomplete { load: number, what: "no connection carried it".into() });
    };
    if wrong.is_some() {
        return Err(WebError::WrongCongestionControl {
            load: number,
            wanted: plan.congestion_control.clone(),
            found: first.congestion_control.name.clone(),
        });
    }
    Ok(PageLoad {
        fcp: time(beacon.first_contentful_paint_ms),
        lcp: beacon.largest_contentful_paint_ms.map(time),
        dom_content_loaded: time(beacon.dom_content_loaded_ms),
        load: time(beacon.load_ms),
        ttfb: time(beacon.response_start_ms),
        bytes: used.iter().map(|connection| connection.sent).fold(Bytes::ZERO, |sum, sent| sum + sent),
        requests: beacon.resources.len(),
        protocol: plan.protocol.alpn().to_owned(),
        congestion_control: first.congestion_control.clone(),
        connections: used.len(),
        retransmitted_segments: used.iter().map(|connection| connection.retransmitted_segments).sum(),
    })
}
