//! Settings that do harm.

use crate::lint::item::Item;
use crate::lint::rule::Severity;
use crate::lint::rules::conflict::FORWARDING_OFF;
use crate::lint::rules::danger::*;
use crate::lint::run::Run;

pub(super) fn check(run: &mut Run<'_>) {
    run.each_in_force(|run, index, item| {
        if item.found.is_none() {
            return;
        }
        if let [first, last] = item.numbers[..]
            && item.key == "net.ipv4.ip_local_port_range"
        {
            service_ports(run, index, item, first, last);
        }
        if let Some(number) = item.number() {
            security(run, index, item, number);
            cripples(run, index, item, number);
            drops(run, index, item, number);
            locks_out(run, index, item, number);
            if item.key == "net.ipv4.tcp_ecn" && matches!(number, 1 | 3 | 4) {
                run.say(
                    &ECN,
                    index,
                    item,
                    "asks for ECN on every outgoing connection: some paths break, and BBRv1 does not look at marks",
                )
                .help("2, the default, answers those who ask; 1 pays where a queue of your own path marks");
            }
        }
    });
}

fn service_ports(run: &mut Run<'_>, index: usize, item: &Item<'_>, first: i128, last: i128) {
    const USUAL: i128 = 32_768;
    if !(1..USUAL).contains(&first) || last > 65_535 || run.sets(item.group, "net.ipv4.ip_local_reserved_ports") {
        return;
    }
    let message =
        format!("an outgoing connection may take any port from {first} on, also one a service listens on later");
    let finding = run.say(&SERVICE_PORTS, index, item, message);
    finding.help("name the services' ports: net.ipv4.ip_local_reserved_ports = 3306,5432,8080");
    // Few services listen above 10000.
    if first >= 10_000 {
        finding.severity(Severity::Note);
    }
}

/// The key's last part, and for keys of interfaces nothing more is needed.
fn last<'i>(item: &'i Item<'_>) -> &'i str {
    item.key.rsplit('.').next().unwrap_or("")
}

fn security(run: &mut Run<'_>, index: usize, item: &Item<'_>, number: i128) {
    let is_conf = item.key.contains(".conf.");
    let what = match (last(item), number) {
        ("tcp_syncookies", 0) => "a SYN flood of a few megabits shuts the server down",
        ("accept_source_route", 1..) if is_conf => "a sender may choose the route of its packets, past filters",
        ("accept_redirects", 1..) if is_conf => "anybody on the segment may redirect this host's traffic",
        ("icmp_echo_ignore_broadcasts", 0) => "the host answers pings to broadcasts, which amplifies attacks",
        ("randomize_va_space", 0 | 1) => "programs get predictable addresses",
        ("protected_hardlinks" | "protected_symlinks", 0) => {
            "links in shared directories can be used to attack others' programs"
        }
        ("mmap_min_addr", 0) => "a null pointer in the kernel becomes a way in",
        ("suid_dumpable", 1) => "core dumps of privileged programs can be read by their users",
        ("unprivileged_bpf_disabled", 0) => "every user may load BPF programs",
        ("route_localnet", 1) if is_conf => {
            "services that listen on 127.0.0.1 can be reached from outside where no filter stands before"
        }
        _ => return,
    };
    let is_note = last(item) == "accept_redirects" && item.key.contains("ipv6");
    let finding = run.say(&SECURITY, index, item, format!("switches a protection off: {what}"));
    if is_note {
        finding.severity(Severity::Note);
    }
}

fn cripples(run: &mut Run<'_>, index: usize, item: &Item<'_>, number: i128) {
    let (what, right) = match (item.key.as_str(), number) {
        ("net.ipv4.tcp_window_scaling", 0) => ("caps every connection at 64 KiB per round trip: 5 Mbit/s at 100 ms", 1),
        ("net.ipv4.tcp_sack", 0) => (
            "without selective acknowledgements one lost packet costs a round trip each, and RACK and BBR work blind",
            1,
        ),
        ("net.ipv4.tcp_timestamps", 0) => {
            ("no RTT per packet and no protection against wrapped sequence numbers; saves 12 bytes a packet", 1)
        }
        ("net.ipv4.tcp_moderate_rcvbuf", 0) => {
            ("receive buffers no longer grow: every connection keeps tcp_rmem's second value", 1)
        }
        ("net.ipv4.ip_no_pmtu_disc", 1) => ("packets are fragmented instead of sized to the path", 0),
        ("net.ipv4.tcp_recovery", 0) => ("switches RACK off, with which losses are found", 1),
        _ => return,
    };
    let severity = match last(item) {
        "tcp_timestamps" | "ip_no_pmtu_disc" | "tcp_recovery" => Severity::Warning,
        _ => Severity::Error,
    };
    run.say(&CRIPPLES, index, item, what).severity(severity).replace(
        format!("write {right}"),
        item.setting.value_span,
        right.to_string(),
    );
}

fn drops(run: &mut Run<'_>, index: usize, item: &Item<'_>, number: i128) {
    let what = match (item.key.as_str(), number) {
        ("net.netfilter.nf_conntrack_tcp_timeout_established", 1..7440) => {
            "forgets connections that are idle for less than two hours, the usual time before keep-alive: they hang"
        }
        ("net.ipv4.tcp_max_tw_buckets", 0..16_384) => {
            "connections in TIME-WAIT are thrown away early: late packets may end up in new ones"
        }
        ("net.ipv4.tcp_abort_on_overflow", 1) => "a short burst becomes refused connections instead of a retry",
        ("net.ipv4.tcp_retries2", 1..8) => "connections end after an outage of seconds",
        ("net.ipv4.tcp_syn_retries", 0..3) => "connect() gives up after a few seconds of loss",
        ("net.ipv4.tcp_synack_retries", 0..2) => "clients on lossy paths are refused",
        ("net.ipv4.tcp_fin_timeout", 0..5) => "connections that close late are cut",
        ("net.ipv4.ip_default_ttl", 1..32) => "packets die before they reach far hosts",
        ("net.netfilter.nf_conntrack_max", 0..16_384) => "new connections are dropped beyond it: \"table full\"",
        _ => return,
    };
    run.say(&DROPS, index, item, what);
}

fn locks_out(run: &mut Run<'_>, index: usize, item: &Item<'_>, number: i128) {
    let is_all =
        item.found.as_ref().and_then(|f| f.instance.as_deref()).is_some_and(|i| matches!(i, "all" | "default"));
    let forwards = run.target.forwards();
    match (item.key.as_str(), number) {
        ("net.ipv4.ip_forward", 0) | ("net.ipv4.conf.all.forwarding", 0) | ("net.ipv6.conf.all.forwarding", 0)
            if forwards =>
        {
            run.say(
                &FORWARDING_OFF,
                index,
                item,
                "this host forwards packets of others: without forwarding they stay here",
            );
        }
        ("net.ipv4.icmp_echo_ignore_all", 1) => {
            run.say(
                &LOCKS_OUT,
                index,
                item,
                "the host no longer answers pings: health checks and monitoring take it for dead",
            )
            .severity(Severity::Note);
        }
        (key, 1) if key.ends_with(".disable_ipv6") && is_all => {
            run.say(
                &LOCKS_OUT,
                index,
                item,
                "ends every IPv6 connection at once, also the one you may be working over",
            );
        }
        (key, 1) if key.ends_with(".rp_filter") && forwards => {
            run.say(
                &LOCKS_OUT,
                index,
                item,
                "strict reverse-path filtering on a router drops what comes in by another way than the answer goes out",
            )
            .help("2 (loose) drops only what has no route at all");
        }
        ("net.ipv4.conf.all.arp_ignore", 8) => {
            run.say(
                &LOCKS_OUT,
                index,
                item,
                "the host answers no ARP request: it falls off the network as neighbours forget it",
            );
        }
        _ => {}
    }
}
