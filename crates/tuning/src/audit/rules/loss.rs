//! Retransmissions: how many, whether they were needed, and what the congestion control makes of them.

use facts::observed::Group;
use units::{Duration, Rate};

use super::super::finding::{Finding, Severity};
use super::super::look::{Look, percent, plural, share, time};
use crate::plan::control::{WIDE_MS, cubic_rate};

const CONTROL: &str = "net.ipv4.tcp_congestion_control";
/// Two in a hundred mean that something on the path is broken or far too small; a half already costs CUBIC most of a long path.
const MUCH: f64 = 0.02;
const SOME: f64 = 0.005;
/// Fewer segments say nothing about a ratio.
const LEAST_SEGMENTS: u64 = 10_000;

pub(super) fn judge(look: &mut Look<'_>) {
    retransmissions(look);
    spurious(look);
    window_limited(look);
    options(look);
}

/// Segments sent and retransmitted, over the interval where there was one and it says enough, else since boot.
fn segments(look: &Look<'_>) -> (u64, u64, String) {
    if let Some(seen) = &look.facts.observed {
        let of = |name: &str| seen.counters.get(name).unwrap_or(0);
        if of("Tcp.OutSegs") >= LEAST_SEGMENTS / 10 {
            return (of("Tcp.OutSegs"), of("Tcp.RetransSegs"), format!("over {}", time(seen.seconds as u64)));
        }
    }
    (look.count("Tcp.OutSegs"), look.count("Tcp.RetransSegs"), look.since_boot())
}

fn retransmissions(look: &mut Look<'_>) {
    let (sent, again, when) = segments(look);
    // OutSegs leaves retransmissions out (net/ipv4/tcp_output.c, __tcp_transmit_skb and __tcp_retransmit_skb).
    let part = share(again, sent.saturating_add(again));
    if sent < LEAST_SEGMENTS / 10 || part < SOME {
        return;
    }
    let severity = if part >= MUCH { Severity::Error } else { Severity::Warning };
    let mut finding =
        Finding::new("retransmissions", severity, 780, format!("{} of all segments are sent again", percent(part)))
            .shows(format!("RetransSegs {again}, OutSegs {sent}"), when.clone(), look.counters_from());
    if let Some(seen) = &look.facts.observed {
        let mut networks: Vec<&Group> = seen.networks.iter().filter(|group| group.retransmitted_segments > 0).collect();
        networks.sort_by_key(|group| core::cmp::Reverse(group.retransmitted_segments));
        for group in networks.iter().take(2) {
            finding = finding.shows(
                format!(
                    "{}: {} of {} data segments",
                    group.name,
                    percent(share(group.retransmitted_segments, group.data_segments)),
                    group.data_segments
                ),
                when.clone(),
                "TCP_INFO of every connection",
            );
        }
    }
    let timeouts = look.count("TcpExt.TCPTimeouts");
    finding = finding.shows(format!("TCPTimeouts {timeouts}"), look.since_boot(), look.counters_from());
    let observed = look.facts.observed.is_some();
    look.find(
        finding
            .costs("each loss costs CUBIC three tenths of its window; from about one in a hundred on the path itself is in trouble")
            .fix(
                if observed { "" } else { "linerate audit --observe 60s" },
                "one network only: its path; all of them: this host's uplink, a policer, or a queue that is too short. The observation \
                 tells which networks it is",
            )
            .source("RFC 9438; net/ipv4/tcp_output.c"),
    );
}

/// Retransmissions that the other end had no need of, by its own word (RFC 3708).
fn spurious(look: &mut Look<'_>) {
    let again = look.count("Tcp.RetransSegs");
    let needless = look.count("TcpExt.TCPDSACKRecv").saturating_add(look.count("TcpExt.TCPDSACKOfoRecv"));
    let timers = look.count("TcpExt.TCPSpuriousRTOs");
    let part = share(needless, again);
    // One in five is more than delayed acknowledgements at the end of a transfer (tail loss probes) come to.
    if again < 1_000 || part < 0.2 {
        return;
    }
    look.find(
        Finding::new(
            "spurious-retransmissions",
            Severity::Note,
            330,
            format!("{} of the retransmissions were not needed", percent(part.min(1.0))),
        )
        .shows(
            format!("TCPDSACKRecv and TCPDSACKOfoRecv {needless}, TCPSpuriousRTOs {timers}, RetransSegs {again}"),
            look.since_boot(),
            look.counters_from(),
        )
        .costs("capacity, and window where the sender took them for losses")
        .fix("", "reordering on the path (several links, wireless), or delay that jumps: nothing that a sysctl of this host cures")
        .source("RFC 3708; RFC 8985; net/ipv4/tcp_input.c (tcp_dsack_seen)"),
    );
}

/// The congestion window holds the connections, on a lossy long path, under a control that takes every loss for congestion.
fn window_limited(look: &mut Look<'_>) {
    let Some(seen) = &look.facts.observed else { return };
    let held = seen.total.held;
    let part = held.share(held.cwnd_limited_us);
    let loss = share(seen.total.retransmitted_segments, seen.total.data_segments);
    let Some(rtt) = seen.total.min_rtt_us.map(|spread| Duration::from_micros(spread.p50)) else { return };
    let control = look.facts.plan.sysctl(CONTROL).unwrap_or("").to_owned();
    let takes_loss = matches!(control.as_str(), "cubic" | "reno");
    // Half of the time and one loss in 50,000: less is what a window is for. 500 ms of busy time say too little about it.
    if part < 0.5 || held.busy_us < 500_000 || loss < 2e-5 || rtt.as_millis() < WIDE_MS || !takes_loss {
        return;
    }
    let reached = cubic_rate(rtt, loss);
    let now = seen.total.delivery_rate_bps.map(|spread| Rate::from_bps(spread.p50));
    let mut finding = Finding::new(
        "loss-limits-cubic",
        if part >= 0.8 { Severity::Error } else { Severity::Warning },
        880,
        format!("Losses keep the congestion window small: it holds connections for {} of their busy time", percent(part)),
    )
    .shows(
        format!(
            "{} of data segments lost or sent again, least RTT {rtt} (median), {control}{}",
            percent(loss),
            now.map_or_else(String::new, |rate| format!(", delivery rate {rate} (median)"))
        ),
        format!("over {}", time(seen.seconds as u64)),
        "TCP_INFO of every connection",
    )
    .costs(format!(
        "with this loss and RTT CUBIC comes to about {reached} for each connection (RFC 9438, 5.1), whatever the path carries; BBR goes by \
         the measured rate"
    ));
    let controls = look.facts.host.controls.get();
    let bbr = ["bbr3", "bbr"]
        .into_iter()
        .find(|name| controls.is_some_and(|all| all.iter().any(|control| control.name == *name)));
    let loadable = look.facts.plan.has("tcp_bbr") == Some(true);
    finding = match bbr.or(loadable.then_some("bbr")) {
        Some(name) => finding.set(
            &[(CONTROL, name.to_owned())],
            "for new connections; open ones keep theirs. It takes more than its share beside CUBIC where queues are short: measure before and \
             after (`linerate lab path` with these numbers shows what to expect)",
        ),
        None => finding.fix("linerate cc load", "this kernel has no BBR; BBRv3 can be loaded as a BPF program"),
    };
    look.find(finding.source("RFC 9438, 5.1; draft-ietf-ccwg-bbr"));
}

/// What most peers do not agree to is taken away on the way.
fn options(look: &mut Look<'_>) {
    let Some(connections) = look.facts.host.connections.get() else { return };
    let all = connections.remote_established;
    // Fewer than twenty are a handful of odd clients.
    if all < 20 {
        return;
    }
    let on = |key: &str| look.facts.plan.sysctl(key) != Some("0");
    for (have, key, name) in [
        (connections.window_scaling, "net.ipv4.tcp_window_scaling", "window scaling"),
        (connections.sack, "net.ipv4.tcp_sack", "selective acknowledgements"),
        (connections.timestamps, "net.ipv4.tcp_timestamps", "timestamps"),
    ] {
        let without = all - have.min(all);
        // Many Windows clients offer no timestamps; the others are missing from hardly any.
        let most = if name == "timestamps" { 0.9 } else { 0.2 };
        if !on(key) || share(without, all) < most {
            continue;
        }
        look.find(
            Finding::new(
                "options-stripped",
                if name == "timestamps" { Severity::Note } else { Severity::Warning },
                610,
                format!("{} without {name}", plural(without, "connection works", "connections work")),
            )
            .shows(format!("{without} of {all} connections, and {key} is on"), "now", look.facts.host.connections.from.clone())
            .costs("such connections are slow on long or lossy paths")
            .fix("", "a firewall or load balancer on the way that takes TCP options out (a SYN proxy, normalisation), or many old clients")
            .source("RFC 7323; RFC 2018"),
        );
    }
}
