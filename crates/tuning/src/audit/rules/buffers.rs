//! What holds connections: the other end's window, our send buffer, our receive window; and switches that somebody turned off.

use facts::observed::{Group, Held};
use units::{Bytes, Duration, Rate};

use super::super::finding::{Finding, Severity};
use super::super::look::{Look, percent, time};
use crate::plan::window::{LARGEST_BUFFER, SEGMENT, SEGMENT_MEMORY, SHARE_OF_ALL, USUAL_START, scaled};
use crate::plan::window_share;

const SEND: &str = "net.ipv4.tcp_wmem";
const RECEIVE: &str = "net.ipv4.tcp_rmem";
/// Less busy time than this says nothing.
const LEAST_BUSY_US: u64 = 500_000;
/// From this share of busy time on it is worth a change, and from that on it is what limits the host.
const SOME: f64 = 0.05;
const MUCH: f64 = 0.20;

pub(super) fn judge(look: &mut Look<'_>) {
    switches(look);
    send_buffer(look);
    peer_window(look);
    receive_window(look);
    start_lowered(look);
}

/// Busy time and what held it: of the interval where there was one, else of the open connections' lives.
struct Busy<'a> {
    held: Held,
    when: String,
    from: &'a str,
    groups: &'a [Group],
    /// A round-trip time that stands for the connections.
    rtt_us: Option<u64>,
    bdp: Option<u64>,
}

fn busy<'a>(look: &Look<'a>) -> Option<Busy<'a>> {
    let facts = look.facts;
    let busy = match &facts.observed {
        Some(seen) => Busy {
            held: seen.total.held,
            when: format!("over {}", time(seen.seconds as u64)),
            from: "TCP_INFO of every connection",
            groups: &seen.ports,
            rtt_us: seen.total.rtt_us.map(|spread| spread.p50),
            bdp: seen.total.send_bdp_bytes,
        },
        None => {
            let connections = facts.host.connections.get()?;
            let largest = connections.largest_bdp.as_ref();
            Busy {
                held: connections.held,
                when: "over the lives of the open connections".to_owned(),
                from: &facts.host.connections.from,
                groups: &[],
                rtt_us: largest.map(|bdp| bdp.min_rtt_us.into()),
                bdp: largest.map(|bdp| bdp.bytes),
            }
        }
    };
    (busy.held.busy_us >= LEAST_BUSY_US).then_some(busy)
}

fn severity(share: f64) -> Option<Severity> {
    match share {
        share if share >= MUCH => Some(Severity::Error),
        share if share >= SOME => Some(Severity::Warning),
        _ => None,
    }
}

/// The third value that `key` should have: for `need` bytes, at least twice what is there, at most what memory allows; `None`: no more
/// is possible.
fn larger(look: &Look<'_>, key: &str, need: u64) -> Option<(String, u64)> {
    let there = look.numbers(key).filter(|there| there.len() == 3)?;
    let page = look.facts.plan.page_bytes.max(1);
    let all = look.numbers("net.ipv4.tcp_mem").and_then(|pages| pages.get(2).map(|most| most.saturating_mul(page)));
    let all = all.unwrap_or(look.facts.plan.memory_bytes / 32 * 3);
    let most = if all == 0 { LARGEST_BUFFER } else { (((all / SHARE_OF_ALL) >> 20) << 20).min(LARGEST_BUFFER) };
    let to = need.max(there[2].saturating_mul(2)).min(most);
    (to > there[2]).then(|| (format!("{} {} {to}", there[0], there[1]), to))
}

/// `1.69 s`, `5 h`.
fn span(us: u64) -> String {
    if us < 120_000_000 { Duration::from_micros(us).to_string() } else { time(us / 1_000_000) }
}

/// What one connection carries with so much payload in flight.
fn carried(payload: u64, rtt_us: u64) -> Rate {
    Rate::from_transfer(Bytes::new(payload), Duration::from_micros(rtt_us.max(1)))
}

/// Payload that a send buffer holds.
fn payload_of_send_buffer(bytes: u64) -> u64 {
    bytes / SEGMENT_MEMORY * SEGMENT
}

fn send_buffer(look: &mut Look<'_>) {
    let Some(busy) = busy(look) else { return };
    let share = busy.held.share(busy.held.sndbuf_limited_us);
    let Some(severity) = severity(share) else { return };
    let mut finding = Finding::new(
        "send-buffer-limits",
        severity,
        900 + (share * 40.0) as u32,
        format!("The send buffer holds connections back for {} of the time they have data outstanding", percent(share)),
    )
    .shows(
        format!(
            "{} busy, {} of it without room in the send buffer",
            span(busy.held.busy_us),
            span(busy.held.sndbuf_limited_us)
        ),
        busy.when.clone(),
        busy.from,
    );
    for group in worst(busy.groups, |held| held.sndbuf_limited_us) {
        finding = finding.shows(
            format!("{}: {}{}", group.name, percent(group.held.share(group.held.sndbuf_limited_us)), rtt_of(group)),
            busy.when.clone(),
            busy.from,
        );
    }
    let there = look.numbers(SEND).filter(|there| there.len() == 3);
    let need = scaled(busy.bdp.unwrap_or(0).saturating_mul(2), SEGMENT_MEMORY, SEGMENT);
    let more = larger(look, SEND, need);
    if let Some(there) = &there {
        finding = finding.shows(format!("{SEND} is {} {} {}", there[0], there[1], there[2]), "now", Look::sysctl(SEND));
    }
    finding = match (&there, &more, busy.rtt_us) {
        (Some(there), Some((_, to)), Some(rtt)) => finding.costs(format!(
            "a connection with an RTT of {} carries at most about {} with a send buffer of {}; {} would let it carry about {}, if \
             nothing else holds it",
            Duration::from_micros(rtt),
            carried(payload_of_send_buffer(there[2]), rtt),
            Bytes::new(there[2]),
            Bytes::new(*to),
            carried(payload_of_send_buffer(*to), rtt),
        )),
        _ => finding.costs("data waits in the program while the path has room"),
    };
    finding = match more {
        Some((value, _)) => finding.set(
            &[(SEND, value)],
            "new connections grow into it. A program that sets SO_SNDBUF itself stays at its own size, and at net.core.wmem_max: \
             its own configuration has to change then",
        ),
        None => finding.fix("", "tcp_wmem's third value is as large as memory allows: more memory, or several connections"),
    };
    look.find(finding.source("tcp(7), TCP_INFO tcpi_sndbuf_limited; net/ipv4/tcp_output.c (tcp_chrono_start); net/ipv4/tcp_input.c (tcp_sndbuf_expand)"));
}

fn rtt_of(group: &Group) -> String {
    group.rtt_us.map_or_else(String::new, |rtt| format!(", RTT {} (median)", Duration::from_micros(rtt.p50)))
}

/// The two groups with the most time held so, where they have any.
fn worst(groups: &[Group], part: impl Fn(&Held) -> u64) -> Vec<&Group> {
    let mut groups: Vec<&Group> = groups.iter().filter(|group| part(&group.held) > 0).collect();
    groups.sort_by_key(|group| core::cmp::Reverse(part(&group.held)));
    groups.truncate(2);
    groups
}

fn peer_window(look: &mut Look<'_>) {
    let Some(busy) = busy(look) else { return };
    let share = busy.held.share(busy.held.rwnd_limited_us);
    let Some(severity) = severity(share) else { return };
    let mut finding = Finding::new(
        "peer-window-limits",
        // Not for this host to change.
        severity.min(Severity::Warning),
        790 + (share * 40.0) as u32,
        format!(
            "The other ends' receive windows hold connections back for {} of the time they have data outstanding",
            percent(share)
        ),
    )
    .shows(
        format!(
            "{} busy, {} of it without room in the other end's window",
            span(busy.held.busy_us),
            span(busy.held.rwnd_limited_us)
        ),
        busy.when.clone(),
        busy.from,
    );
    for group in worst(busy.groups, |held| held.rwnd_limited_us) {
        finding = finding.shows(
            format!("{}: {}{}", group.name, percent(group.held.share(group.held.rwnd_limited_us)), rtt_of(group)),
            busy.when.clone(),
            busy.from,
        );
    }
    look.find(
        finding
            .costs("no setting of this host changes it: the other end's buffer is too small for the path, or its program reads too slowly")
            .fix("", "on the other end: `linerate audit --observe 60s`; where its receive buffer is what limits, raise its tcp_rmem")
            .source("tcp(7), TCP_INFO tcpi_rwnd_limited; net/ipv4/tcp_output.c (tcp_chrono_start)"),
    );
}

fn receive_window(look: &mut Look<'_>) {
    /// Fewer looks are chance.
    const LEAST_LOOKS: u64 = 5;
    let Some(seen) = &look.facts.observed else { return };
    let (limited, looks) = (seen.total.receive_window_limited_looks, seen.total.receiving_looks);
    let share = super::super::look::share(limited, looks);
    let Some(severity) = severity(share).filter(|_| limited >= LEAST_LOOKS) else { return };
    let Some(there) = look.numbers(RECEIVE).filter(|there| there.len() == 3) else { return };
    let when = format!("over {}", time(seen.seconds as u64));
    let (up, down) = look.kernel.map_or((1, 2), |kernel| window_share(kernel, &look.facts.plan));
    let bdp = seen.total.receive_bdp_bytes.unwrap_or(0);
    let mut finding = Finding::new(
        "receive-buffer-limits",
        severity,
        890 + (share * 40.0) as u32,
        format!("The receive buffer is full-grown and holds back {} of what comes in", percent(share)),
    )
    .shows(
        format!(
            "{limited} of {looks} looks at receiving connections found the buffer at tcp_rmem's third value and the window used up \
             within a round trip; up to {} came within one",
            Bytes::new(bdp)
        ),
        when.clone(),
        "TCP_INFO and memory of every connection",
    )
    .shows(format!("{RECEIVE} is {} {} {}", there[0], there[1], there[2]), "now", Look::sysctl(RECEIVE));
    let rtt = seen.total.min_rtt_us.map(|spread| spread.p50).filter(|rtt| *rtt > 0);
    let more = larger(look, RECEIVE, scaled(bdp.saturating_mul(2), down, up));
    if let (Some(rtt), Some((_, to))) = (rtt, &more) {
        finding = finding.costs(format!(
            "a connection with an RTT of {} receives at most about {}; with {} about {}, if nothing else holds it",
            Duration::from_micros(rtt),
            carried(there[2] / down * up, rtt),
            Bytes::new(*to),
            carried(*to / down * up, rtt),
        ));
    } else {
        finding = finding.costs("senders wait for our window while the path has room");
    }
    finding = match more {
        Some((value, _)) => finding.set(
            &[(RECEIVE, value)],
            "new connections grow into it; a program that sets SO_RCVBUF itself stays at its own size",
        ),
        None => {
            finding.fix("", "tcp_rmem's third value is as large as memory allows: more memory, or several connections")
        }
    };
    look.find(
        finding
            .source("net/ipv4/tcp_input.c (tcp_rcv_space_adjust); Documentation/networking/ip-sysctl.rst (tcp_rmem)"),
    );
}

fn switches(look: &mut Look<'_>) {
    let connections = look.facts.host.connections.get().map_or(0, |connections| connections.remote_established);
    for (key, severity, title, cost) in [
        (
            "net.ipv4.tcp_window_scaling",
            Severity::Error,
            "Window scaling is off: no window is larger than 64 KiB",
            "65535 bytes each round trip: 52 Mbit/s at 10 ms, 5.2 Mbit/s at 100 ms",
        ),
        (
            "net.ipv4.tcp_sack",
            Severity::Error,
            "Selective acknowledgements are off",
            "each further loss in a window costs a round trip more, and BBR and RACK work without their evidence",
        ),
        (
            "net.ipv4.tcp_moderate_rcvbuf",
            Severity::Error,
            "Receive buffers do not grow: tcp_moderate_rcvbuf is off",
            "every connection stays at tcp_rmem's second value, whatever its path",
        ),
        (
            "net.ipv4.tcp_timestamps",
            Severity::Warning,
            "Timestamps are off",
            "round-trip times are measured less often, and at high rates old packets can't be told from new ones",
        ),
    ] {
        if look.facts.plan.sysctl(key) != Some("0") {
            continue;
        }
        let short = key.rsplit('.').next().unwrap_or(key).trim_start_matches("tcp_").replace('_', "-");
        look.find(
            Finding::new(&format!("{short}-off"), severity, 850, title)
                .shows(format!("{key} is 0; {connections} connections are open"), "now", Look::sysctl(key))
                .costs(cost)
                .set(&[(key, "1".to_owned())], "it is the kernel's default; holds for new connections")
                .source("RFC 7323; RFC 2018; Documentation/networking/ip-sysctl.rst"),
        );
    }
}

/// The popular 87380 is what kernels began with before 4.20.
fn start_lowered(look: &mut Look<'_>) {
    let Some(there) = look.numbers(RECEIVE).filter(|there| there.len() == 3 && there[1] < USUAL_START) else { return };
    look.find(
        Finding::new(
            "receive-start-lowered",
            Severity::Warning,
            300,
            format!("Receive buffers begin with {} bytes instead of {USUAL_START}", there[1]),
        )
        .shows(format!("{RECEIVE} is {} {} {}", there[0], there[1], there[2]), "now", Look::sysctl(RECEIVE))
        .costs("new connections announce a smaller first window and take longer to reach their rate")
        .set(
            &[(RECEIVE, format!("{} {USUAL_START} {}", there[0], there[2].max(USUAL_START)))],
            "131072 is the kernel's own value since 4.20; 87380 comes from old lists",
        )
        .source("net/ipv4/tcp.c (tcp_init)"),
    );
}
