//! Tables that fill: tracked connections, ephemeral ports, TIME_WAIT, neighbours.

use units::Bytes;

use super::super::finding::{Finding, Severity};
use super::super::look::{Look, percent, plural, share};
use crate::plan::accept::{FIRST_PORT, LAST_PORT, port_list, port_text};
use crate::plan::forward::{BUCKET, ENTRY, SHARE};

const MAX: &str = "net.netfilter.nf_conntrack_max";
const BUCKETS: &str = "net.netfilter.nf_conntrack_buckets";
const PORTS: &str = "net.ipv4.ip_local_port_range";
const RESERVED: &str = "net.ipv4.ip_local_reserved_ports";
const REUSE: &str = "net.ipv4.tcp_tw_reuse";
const TIME_WAIT: &str = "net.ipv4.tcp_max_tw_buckets";

pub(super) fn judge(look: &mut Look<'_>) {
    conntrack(look);
    chains(look);
    ports(look);
    time_wait(look);
    neighbours(look);
}

fn conntrack(look: &mut Look<'_>) {
    let Some(table) = look.facts.host.conntrack.get() else { return };
    let from = look.facts.host.conntrack.from.clone();
    let (dropped, early) = (table.dropped.unwrap_or(0), table.early_dropped.unwrap_or(0));
    let used = share(table.count, table.max);
    // Four fifths: a burst of a quarter more fills it.
    let filling = table.max > 0 && used >= 0.8;
    if dropped == 0 && early == 0 && !filling {
        return;
    }
    let (severity, title) = if dropped > 0 {
        (
            Severity::Error,
            format!("The table of tracked connections was full: {} dropped", plural(dropped, "packet", "packets")),
        )
    } else if used >= 0.95 {
        (Severity::Error, format!("The table of tracked connections is {} full", percent(used)))
    } else if filling {
        (Severity::Warning, format!("The table of tracked connections is {} full", percent(used)))
    } else {
        (
            Severity::Warning,
            format!(
                "{} made room for others before their time",
                plural(early, "tracked connection", "tracked connections")
            ),
        )
    };
    let mut finding = Finding::new("conntrack-full", severity, 960, title)
        .shows(format!("{} of {} entries in use", table.count, table.max), "now", from.clone())
        .costs("new connections fail while open ones go on (\"nf_conntrack: table full, dropping packet\")");
    if dropped > 0 || early > 0 {
        finding = finding.shows(format!("drop {dropped}, early_drop {early}"), look.since_boot(), from);
    }
    let most = look.facts.plan.memory_bytes / SHARE / (ENTRY + BUCKET);
    let page = look.facts.plan.page_bytes.max(BUCKET) / BUCKET;
    let wanted = table.count.max(table.max / 2 + 1).saturating_mul(2).checked_next_power_of_two().unwrap_or(u64::MAX);
    let to = wanted.min(if most == 0 { u64::MAX } else { most }).min(1 << 30);
    let finding = if to > table.max {
        let mut settings = vec![(MAX, to.to_string())];
        // Buckets first: the table is rebuilt while it is still the smaller one.
        if table.buckets.is_some_and(|buckets| buckets < to) {
            settings.insert(0, (BUCKETS, to.next_multiple_of(page).to_string()));
        }
        finding.set(
            &settings,
            format!(
                "full, it takes {} that can't be swapped. At boot the keys come with the module: name nf_conntrack in \
                 /etc/modules-load.d too. Established connections are kept for five days unless \
                 nf_conntrack_tcp_timeout_established says less; rules with `notrack` need no table at all",
                Bytes::new(to.saturating_mul(ENTRY + BUCKET))
            ),
        )
    } else {
        finding.fix("", "it is as large as a sixteenth of memory allows: track less (`notrack`), or shorten nf_conntrack_tcp_timeout_established")
    };
    look.find(finding.source("net/netfilter/nf_conntrack_core.c (early_drop, __nf_conntrack_alloc); Documentation/networking/nf_conntrack-sysctl.rst"));
}

/// Each connection stands in two lists.
fn chains(look: &mut Look<'_>) {
    let Some(table) = look.facts.host.conntrack.get() else { return };
    let Some(buckets) = table.buckets.filter(|buckets| *buckets > 0) else { return };
    let (now, full) = (share(table.count.saturating_mul(2), buckets), share(table.max.saturating_mul(2), buckets));
    // From four in a list on each packet searches noticeably longer than the two that the kernel's own sizes come to.
    if now < 4.0 && full < 8.0 {
        return;
    }
    let severity = if now >= 4.0 { Severity::Warning } else { Severity::Note };
    let page = look.facts.plan.page_bytes.max(BUCKET) / BUCKET;
    let to = table.max.min(1 << 30).next_multiple_of(page);
    look.find(
        Finding::new(
            "conntrack-buckets",
            severity,
            450,
            format!("The table of tracked connections has {buckets} lists for up to {} connections", table.max),
        )
        .shows(
            format!("{now:.1} entries in a list now, {full:.1} when it is full"),
            "now",
            look.facts.host.conntrack.from.clone(),
        )
        .costs("every packet searches one list")
        .set(
            &[(BUCKETS, to.to_string())],
            format!(
                "{} at once; only in the first network namespace. nf_conntrack_max alone does not change it",
                Bytes::new(to * BUCKET)
            ),
        )
        .source("net/netfilter/nf_conntrack_core.c (nf_conntrack_hash_resize, nf_conntrack_init_start)"),
    );
}

fn ports(look: &mut Look<'_>) {
    let Some(connections) = look.facts.host.connections.get() else { return };
    let Some(range) = look.numbers(PORTS).filter(|range| range.len() == 2 && range[0] <= range[1]) else { return };
    let Some(most) = connections.ports.first() else { return };
    let reserved = look.facts.plan.sysctl(RESERVED).unwrap_or("").to_owned();
    let in_range = |port: &u16| (range[0]..=range[1]).contains(&u64::from(*port));
    let have = (range[1] - range[0])
        .saturating_add(1)
        .saturating_sub(port_list(&reserved).iter().filter(|port| in_range(port)).count() as u64);
    let used = share(most.used, have);
    // Looking for a free port takes longer the fewer there are; from nine tenths on connect(2) may fail.
    let severity = match used {
        used if used >= 0.9 => Severity::Error,
        used if used >= 0.6 => Severity::Warning,
        _ => return,
    };
    let mut finding = Finding::new(
        "ephemeral-ports",
        severity,
        940,
        format!(
            "{} of the ports for connections to {} port {} are in use",
            percent(used),
            most.remote,
            most.remote_port
        ),
    )
    .shows(
        format!("{} of {have} ports, {} of them in TIME_WAIT", most.used, most.time_wait),
        "now",
        look.facts.host.connections.from.clone(),
    )
    .shows(format!("{PORTS} is {} {}", range[0], range[1]), "now", Look::sysctl(PORTS))
    .costs("connect(2) searches longer for a free port, and fails with EADDRNOTAVAIL when there is none");
    let mut settings = Vec::new();
    let (first, last) = (range[0].min(FIRST_PORT), range[1].max(LAST_PORT));
    let mut note = Vec::new();
    if (first, last) != (range[0], range[1])
        && let Some(listening) = &look.facts.plan.listening_ports
    {
        let mut keep: Vec<u16> =
            listening.iter().copied().filter(|port| (first..=last).contains(&u64::from(*port))).collect();
        keep.extend(port_list(&reserved));
        keep.sort_unstable();
        keep.dedup();
        if port_text(&keep) != reserved {
            settings.push((RESERVED, port_text(&keep)));
            note.push("the ports of this host's own services are reserved first".to_owned());
        }
        settings.push((PORTS, format!("{first} {last}")));
    }
    let waiting = share(most.time_wait, most.used);
    if waiting >= 0.5
        && look.number(REUSE).is_some_and(|value| value != 1)
        && look.number("net.ipv4.tcp_timestamps") != Some(0)
    {
        settings.push((REUSE, "1".to_owned()));
        note.push(
            "tcp_tw_reuse lets connections to elsewhere take a port over from TIME_WAIT after a second, by timestamps"
                .to_owned(),
        );
    }
    note.push(
        "better: keep connections open and reuse them, or spread them over more addresses of either end".to_owned(),
    );
    let note = note.join("; ");
    finding = if settings.is_empty() { finding.fix("", note) } else { finding.set(&settings, note) };
    look.find(finding.source("net/ipv4/inet_hashtables.c (__inet_hash_connect); ip(7)"));
}

fn time_wait(look: &mut Look<'_>) {
    let overflows = look.count("TcpExt.TCPTimeWaitOverflow");
    if overflows == 0 {
        return;
    }
    let most = look.number(TIME_WAIT).unwrap_or(0);
    let now = look.facts.host.sockstat.get().map_or(0, |sockets| sockets.tcp_time_wait);
    let finding = Finding::new(
        "time-wait-overflow",
        Severity::Warning,
        500,
        format!("{} ended without TIME_WAIT: there were too many", plural(overflows, "connection", "connections")),
    )
    .shows(format!("TCPTimeWaitOverflow {overflows}"), look.since_boot(), look.counters_from())
    .shows(format!("{now} in TIME_WAIT, {most} may be"), "now", format!("{}, sysctl {TIME_WAIT}", look.facts.host.sockstat.from))
    .costs("late packets of an old connection can then fall into a new one between the same ports, and an end whose last acknowledgement was lost gets a reset");
    let to = most.max(now).saturating_mul(2).clamp(65_536, 1 << 22);
    let finding = if to > most {
        finding.set(&[(TIME_WAIT, to.to_string())], format!("about 250 bytes each: {}", Bytes::new(to * 250)))
    } else {
        finding.fix("", "it is large enough for any host: keep connections open and reuse them")
    };
    look.find(finding.source("net/ipv4/inet_timewait_sock.c (inet_twsk_alloc)"));
}

fn neighbours(look: &mut Look<'_>) {
    let (Some(count), Some(most)) = (look.facts.plan.neighbours, look.number("net.ipv4.neigh.default.gc_thresh3"))
    else {
        return;
    };
    if count.saturating_mul(5) < most.saturating_mul(4) {
        return;
    }
    // Larger tables nobody has, and the kernel's number is an `int`.
    let to = count.min(1 << 28).saturating_mul(4).next_power_of_two().max(1_024);
    look.find(
        Finding::new(
            "neighbour-table",
            Severity::Warning,
            650,
            format!("The table of neighbours is {} full", percent(share(count, most))),
        )
        .shows(
            format!("{count} IPv4 neighbours, {most} may be"),
            "now",
            "/proc/net/arp, sysctl net.ipv4.neigh.default.gc_thresh3",
        )
        .costs("beyond it packets to new neighbours are lost (\"neighbour table overflow\")")
        .set(
            &[
                ("net.ipv4.neigh.default.gc_thresh3", to.to_string()),
                ("net.ipv4.neigh.default.gc_thresh2", (to / 2).to_string()),
                ("net.ipv4.neigh.default.gc_thresh1", (to / 4).to_string()),
            ],
            format!("a scan of the segment fills up to {}", Bytes::new(to.saturating_mul(512))),
        )
        .source("net/core/neighbour.c (neigh_alloc)"),
    );
}
