//! Audits of hosts that show one thing each, of hosts that show nothing, and of the hosts of four public guides.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::server;
use facts::observed::{Bdp, Connections, Group, Held, Observed, PortUse};
use facts::{
    Channels, Configured, Conntrack, Control, Counters, Device, DeviceCounters, Fact, HostFacts, Listener, Owner,
    QdiscState, Rings, Sockstat, SoftnetCpu, Spread, System,
};
use proptest::prelude::*;
use tuning::audit::{Facts, Finding, Report, Severity, audit};
use tuning::plan::{self, Role, Target};

/// A device with one queue, as a cloud gives it.
fn eth0() -> Device {
    let qdisc = |kind: &str| QdiscState {
        kind: kind.to_owned(),
        handle: "0:".to_owned(),
        parent: "root".to_owned(),
        ..QdiscState::default()
    };
    Device {
        name: "eth0".to_owned(),
        index: 2,
        physical: true,
        up: true,
        mtu_bytes: 1500,
        tx_queue_frames: 1000,
        tx_queues: 1,
        rx_queues: 1,
        driver: Fact::known("ioctl", "virtio_net".to_owned()),
        rings: Fact::known("ioctl", Rings { rx: 256, rx_max: 256, tx: 256, tx_max: 256 }),
        offloads: ["tso", "gso", "gro"].map(|name| (name.to_owned(), true)).into(),
        counters: DeviceCounters { rx_packets: 10_000_000, tx_packets: 10_000_000, ..DeviceCounters::default() },
        qdiscs: vec![qdisc("fq_codel")],
        ..Device::default()
    }
}

/// Debian 13 as it is installed, with some traffic and no trouble.
fn quiet() -> Facts {
    let counters = [
        ("Tcp.OutSegs", 50_000_000),
        ("Tcp.RetransSegs", 20_000),
        ("Tcp.PassiveOpens", 400_000),
        ("TcpExt.ListenOverflows", 0),
        ("Udp.InDatagrams", 1_000_000),
        ("Udp.RcvbufErrors", 0),
    ];
    let host = HostFacts {
        system: System { uptime_seconds: Fact::known("/proc/uptime", 18_000), ..System::default() },
        controls: Fact::known("sysctl", vec![control("reno", false), control("cubic", true)]),
        devices: Fact::known("netlink", vec![eth0()]),
        counters: Fact::known(
            "/proc/net/netstat",
            Counters(counters.map(|(name, value)| (name.to_owned(), value)).into()),
        ),
        softnet_cpus: Fact::known(
            "/proc/net/softnet_stat",
            vec![SoftnetCpu { processed: 10_000_000, ..SoftnetCpu::default() }],
        ),
        sockstat: Fact::known("/proc/net/sockstat", Sockstat { tcp_memory_pages: 500, ..Sockstat::default() }),
        conntrack: Fact::missing("/proc/sys/net/netfilter", "not loaded"),
        listeners: Fact::known("netlink", Vec::new()),
        connections: Fact::known("netlink", Connections::default()),
        ..HostFacts::default()
    };
    Facts { plan: server(), host, ..Facts::default() }
}

fn control(name: &str, default: bool) -> Control {
    Control { name: name.to_owned(), kind: "kernel".to_owned(), bbr_version: None, allowed: true, default }
}

fn counted(facts: &mut Facts, name: &str, value: u64) {
    facts.host.counters.value.as_mut().unwrap().0.insert(name.to_owned(), value);
}

fn set(facts: &mut Facts, key: &str, value: &str) {
    facts.plan.sysctls.insert(key.to_owned(), value.to_owned());
}

fn ids(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.id.as_str()).collect()
}

#[track_caller]
fn only(facts: &Facts) -> Finding {
    let report = audit(facts);
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    report.findings.into_iter().next().unwrap()
}

/// The value that a finding's fix sets.
#[track_caller]
fn fixed<'f>(finding: &'f Finding, key: &str) -> &'f str {
    let fix = finding.fix.as_ref().expect("a fix");
    &fix.settings.iter().find(|setting| setting.key == key).unwrap_or_else(|| panic!("no {key} in {fix:?}")).value
}

fn spread(value: u64) -> Option<Spread> {
    Some(Spread { count: 10, p50: value, p90: value, p99: value, max: value })
}

/// A minute on a path, with the shares of busy time that the three windows hold.
fn observed(rtt_ms: u64, sndbuf: f64, rwnd: f64, cwnd: f64, loss: f64, bdp: u64) -> Observed {
    const BUSY: f64 = 60e6;
    let part = |share: f64| (BUSY * share) as u64;
    let group = Group {
        name: "port 443".to_owned(),
        connections: 10,
        held: Held {
            busy_us: BUSY as u64,
            rwnd_limited_us: part(rwnd),
            sndbuf_limited_us: part(sndbuf),
            cwnd_limited_us: part(cwnd),
        },
        data_segments: 1_000_000,
        retransmitted_segments: (1e6 * loss) as u64,
        rtt_us: spread(rtt_ms * 1_000),
        min_rtt_us: spread(rtt_ms * 1_000),
        delivery_rate_bps: spread(2_000_000),
        send_bdp_bytes: Some(bdp),
        ..Group::default()
    };
    Observed {
        seconds: 60.0,
        wanted_seconds: 60.0,
        looks: 61,
        connections: 10,
        total: group.clone(),
        ports: vec![group],
        ..Observed::default()
    }
}

#[test]
fn a_host_without_trouble_has_no_findings() {
    assert_eq!(ids(&audit(&quiet())), Vec::<&str>::new());
    // And one of which nothing could be read has none either.
    assert_eq!(ids(&audit(&Facts::default())), Vec::<&str>::new());
}

#[test]
fn a_full_send_buffer_is_found_with_what_a_larger_one_would_gain() {
    let mut facts = quiet();
    facts.observed = Some(observed(80, 0.43, 0.0, 0.2, 0.0, 3_000_000));
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("send-buffer-limits", Severity::Error));
    assert!(finding.title.contains("43 %"), "{}", finding.title);
    // 2 x 3 MB x 2304 / 1448 in whole MiB; larger than twice the 4 MiB that are there.
    assert_eq!(fixed(&finding, "net.ipv4.tcp_wmem"), "4096 16384 10485760");
    assert!(finding.cost.contains("264 Mbit/s") && finding.cost.contains("659 Mbit/s"), "{}", finding.cost);
    facts.observed = Some(observed(80, 0.04, 0.0, 0.2, 0.0, 3_000_000));
    assert_eq!(ids(&audit(&facts)), Vec::<&str>::new(), "less than one part in twenty");
}

#[test]
fn without_an_observation_the_lives_of_the_open_connections_count() {
    let mut facts = quiet();
    let connections = facts.host.connections.value.as_mut().unwrap();
    connections.held = Held { busy_us: 10_000_000, sndbuf_limited_us: 1_000_000, ..Held::default() };
    connections.largest_bdp = Some(Bdp {
        bytes: 1_000_000,
        rate_bps: 100_000_000,
        min_rtt_us: 80_000,
        port: 443,
        remote: "192.0.2.1".parse().unwrap(),
    });
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("send-buffer-limits", Severity::Warning));
    assert!(finding.evidence[0].when.contains("lives of the open connections"));
}

#[test]
fn the_other_ends_window_is_not_this_hosts_to_change() {
    let mut facts = quiet();
    facts.observed = Some(observed(80, 0.0, 0.9, 0.05, 0.0, 1_000_000));
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("peer-window-limits", Severity::Warning));
    assert!(finding.fix.unwrap().settings.is_empty());
}

#[test]
fn losses_that_hold_cubic_ask_for_bbr_and_short_paths_do_not() {
    let mut facts = quiet();
    facts.observed = Some(observed(80, 0.0, 0.0, 0.9, 0.005, 20_000));
    let report = audit(&facts);
    let finding = &report.findings[0];
    assert_eq!(finding.id, "loss-limits-cubic");
    assert_eq!(fixed(finding, "net.ipv4.tcp_congestion_control"), "bbr");
    assert!(finding.cost.contains("RFC 9438"));
    facts.observed = Some(observed(2, 0.0, 0.0, 0.9, 0.005, 20_000));
    assert!(!ids(&audit(&facts)).contains(&"loss-limits-cubic"));
    facts.observed = Some(observed(80, 0.0, 0.0, 0.9, 0.005, 20_000));
    set(&mut facts, "net.ipv4.tcp_congestion_control", "bbr");
    assert!(!ids(&audit(&facts)).contains(&"loss-limits-cubic"));
    facts.plan.modules.clear();
    set(&mut facts, "net.ipv4.tcp_congestion_control", "cubic");
    let report = audit(&facts);
    assert_eq!(report.findings[0].fix.as_ref().unwrap().command, "linerate cc load", "this kernel has no BBR");
}

fn nginx(backlog: u32, queued: u32, configured: Option<u64>) -> Listener {
    Listener {
        address: "0.0.0.0".parse().unwrap(),
        port: 80,
        queued,
        backlog: Some(backlog),
        owners: vec![Owner { pid: 12, name: "nginx".to_owned() }],
        configured: Some(Configured {
            program: "nginx".to_owned(),
            file: "/etc/nginx/sites-enabled/default".to_owned(),
            line: 22,
            text: configured.map_or("listen 80;".to_owned(), |backlog| format!("listen 80 backlog={backlog};")),
            backlog: configured,
        }),
        inode: 0,
    }
}

#[test]
fn overflows_name_the_line_of_the_servers_configuration() {
    let mut facts = quiet();
    counted(&mut facts, "TcpExt.ListenOverflows", 900);
    facts.host.listeners.value = Some(vec![nginx(511, 0, None)]);
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("listen-overflows", Severity::Error));
    let fix = finding.fix.unwrap();
    assert!(fix.settings.is_empty(), "somaxconn allows 4096 already: {fix:?}");
    assert!(
        fix.note.contains("/etc/nginx/sites-enabled/default:22: `listen 80;` becomes `listen 80 backlog=4096;`"),
        "{}",
        fix.note
    );
    // One that has all that somaxconn allows needs more of that too.
    facts.host.listeners.value = Some(vec![nginx(4096, 0, Some(65_535))]);
    let finding = only(&facts);
    assert_eq!(fixed(&finding, "net.core.somaxconn"), "8192");
    counted(&mut facts, "TcpExt.ListenOverflows", 3);
    assert_eq!(only(&facts).severity, Severity::Warning, "three in 400,000");
}

#[test]
fn a_queue_that_is_full_now_comes_before_everything() {
    let mut facts = quiet();
    counted(&mut facts, "TcpExt.ListenOverflows", 900);
    facts.host.listeners.value = Some(vec![nginx(511, 512, None)]);
    facts.observed = Some(observed(80, 0.5, 0.0, 0.2, 0.0, 3_000_000));
    let report = audit(&facts);
    assert_eq!(ids(&report)[..3], ["listener-queue-full", "listen-overflows", "send-buffer-limits"]);
}

#[test]
fn a_raised_somaxconn_that_nobody_uses_is_told() {
    let mut facts = quiet();
    set(&mut facts, "net.core.somaxconn", "8192");
    facts.host.listeners.value = Some(vec![nginx(511, 0, None)]);
    assert_eq!(only(&facts).id, "somaxconn-unused");
}

#[test]
fn conntrack_grows_with_its_buckets_and_names_the_module() {
    let mut facts = quiet();
    let table =
        Conntrack { count: 250_000, max: 262_144, buckets: Some(262_144), dropped: Some(9), ..Conntrack::default() };
    facts.host.conntrack = Fact::known("/proc", table.clone());
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("conntrack-full", Severity::Error));
    assert_eq!(fixed(&finding, "net.netfilter.nf_conntrack_max"), "524288");
    assert_eq!(fixed(&finding, "net.netfilter.nf_conntrack_buckets"), "524288");
    let fix = finding.fix.unwrap();
    assert!(fix.command.find("buckets") < fix.command.find("conntrack_max"), "{}", fix.command);
    assert!(fix.note.contains("/etc/modules-load.d"));
    facts.host.conntrack = Fact::known("/proc", Conntrack { count: 1_000, dropped: Some(0), ..table });
    assert_eq!(ids(&audit(&facts)), Vec::<&str>::new());
}

#[test]
fn ports_are_reserved_before_the_range_is_widened() {
    let mut facts = quiet();
    let used = PortUse {
        local: "10.0.0.1".parse().unwrap(),
        remote: "10.0.0.2".parse().unwrap(),
        remote_port: 5432,
        used: 27_000,
        time_wait: 20_000,
    };
    set(&mut facts, "net.ipv4.tcp_tw_reuse", "2");
    facts.host.connections.value.as_mut().unwrap().ports = vec![used];
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("ephemeral-ports", Severity::Error));
    let fix = finding.fix.as_ref().unwrap();
    let keys: Vec<&str> = fix.settings.iter().map(|setting| setting.key.as_str()).collect();
    assert_eq!(keys, ["net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_tw_reuse"]);
    assert_eq!(fixed(&finding, "net.ipv4.ip_local_reserved_ports"), "11211,50051");
    assert_eq!(fixed(&finding, "net.ipv4.ip_local_port_range"), "10240 65535");
}

#[test]
fn a_ring_grows_only_where_packets_were_missed_and_it_can() {
    let mut facts = quiet();
    let device = &mut facts.host.devices.value.as_mut().unwrap()[0];
    device.counters.rx_missed = 5_000;
    device.rings = Fact::known("ioctl", Rings { rx: 256, rx_max: 4096, tx: 256, tx_max: 4096 });
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("device-misses", Severity::Error));
    assert_eq!(finding.fix.unwrap().command, "ethtool -G eth0 rx 1024");
    facts.host.devices.value.as_mut().unwrap()[0].rings =
        Fact::known("ioctl", Rings { rx: 256, rx_max: 256, ..Rings::default() });
    assert_eq!(only(&facts).fix.unwrap().command, "", "virtio has no more");
}

#[test]
fn one_fq_above_many_queues_is_a_mistake_and_a_shaper_is_not() {
    let mut facts = quiet();
    set(&mut facts, "net.core.default_qdisc", "fq");
    let many = |kind: &str| {
        let mut device = eth0();
        device.tx_queues = 8;
        device.channels = Fact::known("ioctl", Channels { combined: 8, combined_max: 8, ..Channels::default() });
        device.qdiscs[0].kind = kind.to_owned();
        device.qdiscs[0].handle = "8001:".to_owned();
        device
    };
    facts.host.devices.value = Some(vec![many("fq")]);
    let finding = only(&facts);
    assert_eq!(finding.id, "mq-replaced");
    assert_eq!(finding.fix.unwrap().command, "tc qdisc replace dev eth0 root handle 1: mq");
    for kind in ["htb", "cake", "mq"] {
        facts.host.devices.value = Some(vec![many(kind)]);
        assert_eq!(ids(&audit(&facts)), Vec::<&str>::new(), "{kind}");
    }
    let mut single = many("fq");
    single.channels = Fact::known("ioctl", Channels { combined: 1, combined_max: 8, ..Channels::default() });
    facts.host.devices.value = Some(vec![single]);
    assert_eq!(ids(&audit(&facts)), Vec::<&str>::new(), "only one of its queues is in use");
}

#[test]
fn a_default_discipline_that_no_device_has_is_told_leaf_by_leaf() {
    let mut facts = quiet();
    set(&mut facts, "net.core.default_qdisc", "fq");
    assert_eq!(only(&facts).fix.unwrap().command, "tc qdisc replace dev eth0 root fq");
    let device = &mut facts.host.devices.value.as_mut().unwrap()[0];
    device.tx_queues = 2;
    device.qdiscs[0].kind = "mq".to_owned();
    for (number, kind) in [(1, "fq"), (2, "fq_codel")] {
        let leaf = QdiscState {
            kind: kind.to_owned(),
            handle: "0:".to_owned(),
            parent: format!("0:{number}"),
            ..QdiscState::default()
        };
        device.qdiscs.push(leaf);
    }
    let finding = only(&facts);
    assert_eq!(finding.id, "default-qdisc-not-in-use");
    assert!(finding.evidence[0].what.starts_with("1 of 2"), "{:?}", finding.evidence);
}

#[test]
fn tcp_mem_that_took_pages_for_bytes_is_put_right() {
    let mut facts = quiet();
    set(&mut facts, "net.ipv4.tcp_mem", "65536 131072 262144");
    let finding = only(&facts);
    assert_eq!(finding.id, "tcp-memory-lowered");
    assert_eq!(fixed(&finding, "net.ipv4.tcp_mem"), "196608 262144 393216");
}

#[test]
fn other_controls_than_the_default_are_counted_on_live_connections() {
    let mut facts = quiet();
    set(&mut facts, "net.ipv4.tcp_congestion_control", "bbr");
    let controls = &mut facts.host.connections.value.as_mut().unwrap().controls;
    controls.extend([("cubic".to_owned(), 30), ("bbr".to_owned(), 10)]);
    let finding = only(&facts);
    assert_eq!(finding.id, "other-control-in-use");
    assert!(finding.title.starts_with("75 %"), "{}", finding.title);
    facts.host.connections.value.as_mut().unwrap().controls.insert("bbr".to_owned(), 40);
    assert_eq!(ids(&audit(&facts)), Vec::<&str>::new());
}

#[test]
fn devices_without_hardware_are_left_alone() {
    let mut facts = quiet();
    set(&mut facts, "net.core.default_qdisc", "fq");
    let device = &mut facts.host.devices.value.as_mut().unwrap()[0];
    device.physical = false;
    device.counters.rx_missed = 1_000_000;
    device.offloads.insert("gro".to_owned(), false);
    device.qdiscs[0].dropped = 1_000_000;
    assert_eq!(ids(&audit(&facts)), Vec::<&str>::new());
}

#[test]
fn half_open_requests_ask_for_the_key_that_bounds_them() {
    let mut facts = quiet();
    counted(&mut facts, "TcpExt.TCPReqQFullDrop", 70);
    set(&mut facts, "net.ipv4.tcp_syncookies", "1");
    assert!(only(&facts).fix.unwrap().settings.is_empty(), "the listener's backlog bounds them");
    set(&mut facts, "net.ipv4.tcp_syncookies", "0");
    let finding = only(&facts);
    assert_eq!(fixed(&finding, "net.ipv4.tcp_syncookies"), "1");
    assert_eq!(fixed(&finding, "net.ipv4.tcp_max_syn_backlog"), "4096");
}

#[test]
fn dctcp_for_every_destination_is_an_error() {
    let mut facts = quiet();
    set(&mut facts, "net.ipv4.tcp_congestion_control", "dctcp");
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("dctcp-is-default", Severity::Error));
}

#[test]
fn a_container_is_told_what_only_the_host_can_do() {
    let mut facts = quiet();
    facts.host.system.container = Fact::known("/run/systemd/container", "lxc".to_owned());
    facts.host.system.forbidden =
        vec![facts::Forbidden { what: "setting host-wide sysctls".to_owned(), why: "another namespace".to_owned() }];
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("container", Severity::Note));
    assert!(finding.evidence[1].what.contains("host-wide sysctls"));
}

#[test]
fn every_evidence_names_its_time_and_place() {
    let mut facts = quiet();
    counted(&mut facts, "TcpExt.ListenOverflows", 900);
    counted(&mut facts, "TcpExt.PruneCalled", 9);
    counted(&mut facts, "Udp.RcvbufErrors", 9_000);
    facts.observed = Some(observed(80, 0.3, 0.3, 0.3, 0.03, 3_000_000));
    let report = audit(&facts);
    assert!(report.findings.len() >= 5, "{:?}", ids(&report));
    for evidence in report.findings.iter().flat_map(|finding| &finding.evidence) {
        assert!(!evidence.when.is_empty() && !evidence.from.is_empty(), "{evidence:?}");
    }
    assert!(report.findings.iter().any(|finding| finding.evidence[0].when == "since boot (5 h)"));
    assert!(report.findings.iter().any(|finding| finding.evidence[0].when == "over 60 s"));
}

#[test]
fn observed_reception_at_a_full_buffer_grows_it() {
    let mut facts = quiet();
    let mut seen = observed(100, 0.0, 0.0, 0.0, 0.0, 0);
    seen.total.receiving_looks = 100;
    seen.total.receive_window_limited_looks = 60;
    seen.total.receive_bdp_bytes = Some(3_000_000);
    facts.observed = Some(seen);
    let finding = only(&facts);
    assert_eq!((finding.id.as_str(), finding.severity), ("receive-buffer-limits", Severity::Error));
    // Twice 3 MB over one half, in whole MiB; less than twice what is there.
    assert_eq!(fixed(&finding, "net.ipv4.tcp_rmem"), "4096 131072 12582912");
    facts.observed.as_mut().unwrap().total.receive_window_limited_looks = 4;
    assert_eq!(ids(&audit(&facts)), Vec::<&str>::new(), "four looks are chance");
}

/// What the audit's fixes and the plan propose together: key and value.
fn proposals(facts: &Facts, role: Role, rate: &str, rtt: &str, connections: Option<u64>) -> BTreeMap<String, String> {
    let target = Target { bandwidth: rate.parse().unwrap(), rtt: rtt.parse().unwrap(), role, connections };
    let mut all = BTreeMap::new();
    for change in plan::plan(&facts.plan, &target).unwrap().changes {
        all.insert(change.key, change.to);
    }
    for finding in audit(facts).findings {
        let settings = finding.fix.map(|fix| fix.settings).unwrap_or_default();
        all.extend(settings.into_iter().map(|setting| (setting.key, setting.value)));
    }
    all
}

/// What the guides have people set and nothing justifies: defaults, obsolete values, switches that a path may not carry.
const MISTAKES: [&str; 9] = [
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.core.rmem_max",
];

#[track_caller]
fn check(all: &BTreeMap<String, String>, steps: &[&str]) {
    let keys: BTreeSet<&str> = all.keys().map(String::as_str).collect();
    for step in steps {
        assert!(keys.contains(step), "{step} is not proposed: {all:#?}");
    }
    for mistake in MISTAKES {
        assert!(!keys.contains(mistake), "{mistake} is proposed: {all:#?}");
    }
    // The first values stay the kernel's.
    for (key, start) in [("net.ipv4.tcp_rmem", "4096 131072 "), ("net.ipv4.tcp_wmem", "4096 16384 ")] {
        assert!(all.get(key).is_none_or(|value| value.starts_with(start)), "{all:#?}");
    }
}

#[test]
fn the_guides_hosts_get_their_steps_where_something_justifies_them_and_none_of_their_mistakes() {
    // G0: Ubuntu, 120 ms, 1.5 % loss; G3: 80 ms, four loss rates.
    for (rtt, rate) in [(120, "200mbit"), (80, "1gbit")] {
        let mut facts = quiet();
        facts.observed = Some(observed(rtt, 0.0, 0.0, 0.95, 0.015, 100_000));
        let all = proposals(&facts, Role::Bulk, rate, &format!("{rtt}ms"), None);
        check(
            &all,
            &[
                "net.ipv4.tcp_congestion_control",
                "net.core.default_qdisc",
                "eth0 root",
                "net.ipv4.tcp_rmem",
                "net.ipv4.tcp_wmem",
            ],
        );
        assert_eq!(all["net.ipv4.tcp_congestion_control"], "bbr");
    }
    // G1: cellular, 65 ms, 2 % loss: the product of that path fits into the buffers that are there.
    let mut facts = quiet();
    facts.observed = Some(observed(65, 0.0, 0.0, 0.95, 0.02, 20_000));
    let all = proposals(&facts, Role::Web, "30mbit", "65ms", None);
    check(&all, &["net.ipv4.tcp_congestion_control", "net.core.default_qdisc"]);
    assert!(!all.contains_key("net.ipv4.tcp_rmem"), "{all:#?}");
    // G2: a proxy with something wrong in every block of the guide.
    let mut facts = quiet();
    counted(&mut facts, "TcpExt.ListenOverflows", 5_000);
    facts.host.listeners.value = Some(vec![nginx(4096, 100, Some(4096))]);
    facts.host.softnet_cpus.value =
        Some(vec![SoftnetCpu { processed: 9_000_000, dropped: 4_000, ..SoftnetCpu::default() }]);
    facts.host.conntrack =
        Fact::known("/proc", Conntrack { count: 240_000, max: 262_144, buckets: Some(65_536), ..Conntrack::default() });
    set(&mut facts, "net.ipv4.tcp_tw_reuse", "2");
    let ports = PortUse {
        local: "10.0.0.1".parse().unwrap(),
        remote: "10.0.0.2".parse().unwrap(),
        remote_port: 8080,
        used: 26_000,
        time_wait: 25_000,
    };
    facts.host.connections.value.as_mut().unwrap().ports = vec![ports];
    let device = &mut facts.host.devices.value.as_mut().unwrap()[0];
    device.counters.rx_missed = 9_000;
    device.rings = Fact::known("ioctl", Rings { rx: 256, rx_max: 4096, tx: 256, tx_max: 4096 });
    facts.observed = Some(observed(100, 0.5, 0.0, 0.3, 0.0, 6_000_000));
    let all = proposals(&facts, Role::Proxy, "1gbit", "100ms", None);
    check(
        &all,
        &[
            "net.core.somaxconn",
            "net.core.netdev_max_backlog",
            "net.ipv4.ip_local_port_range",
            "net.ipv4.ip_local_reserved_ports",
            "net.ipv4.tcp_tw_reuse",
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_wmem",
            "net.ipv4.tcp_congestion_control",
            "net.netfilter.nf_conntrack_max",
            "net.netfilter.nf_conntrack_buckets",
        ],
    );
    let report = audit(&facts);
    let commands: Vec<&str> =
        report.findings.iter().filter_map(|finding| Some(finding.fix.as_ref()?.command.as_str())).collect();
    assert!(commands.contains(&"ethtool -G eth0 rx 1024"), "{commands:#?}");
    assert!(report.findings.iter().all(|finding| !finding.evidence.is_empty() && !finding.source.is_empty()));
}

#[test]
fn the_same_hosts_without_that_evidence_get_nothing_from_an_audit() {
    let mut facts = quiet();
    facts.host.listeners.value = Some(vec![nginx(511, 0, None)]);
    facts.host.conntrack =
        Fact::known("/proc", Conntrack { count: 300, max: 262_144, buckets: Some(262_144), ..Conntrack::default() });
    facts.observed = Some(observed(100, 0.0, 0.01, 0.1, 0.0, 100_000));
    assert_eq!(ids(&audit(&facts)), Vec::<&str>::new());
}

#[test]
fn an_audits_facts_are_read_back_and_by_a_plan() {
    let mut facts = quiet();
    facts.observed = Some(observed(80, 0.43, 0.0, 0.2, 0.0, 3_000_000));
    facts.host.listeners.value = Some(vec![nginx(511, 512, None)]);
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts);
    assert_eq!(serde_json::from_str::<plan::Facts>(&text).unwrap(), facts.plan);
}

/// Every finding has its place in the documentation, and the documentation has no other.
#[test]
fn every_finding_is_documented() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/audit/rules");
    let mut known: BTreeSet<String> =
        ["window-scaling-off", "sack-off", "moderate-rcvbuf-off", "timestamps-off"].map(str::to_owned).into();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for part in text.split("Finding::new(").skip(1) {
            let part = part.trim_start();
            known.extend(part.strip_prefix('"').and_then(|rest| rest.split('"').next()).map(str::to_owned));
        }
    }
    assert!(known.len() > 35, "{known:?}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md")).unwrap();
    let documented: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned))
        .filter(|name| !name.starts_with('-'))
        .collect();
    assert_eq!(known, documented);
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..4, 0u64..1_000_000, any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_numbers_make_it_panic_and_the_order_is_by_severity(
        numbers in proptest::collection::vec(number(), 40),
        shares in proptest::collection::vec(0.0..1.0f64, 4),
    ) {
        let mut next = numbers.iter().copied().cycle();
        let mut next = || next.next().unwrap();
        let mut facts = quiet();
        for name in ["TcpExt.ListenOverflows", "TcpExt.TCPReqQFullDrop", "TcpExt.PruneCalled", "TcpExt.TCPRcvQDrop", "TcpExt.TCPMemoryPressures",
            "TcpExt.TCPTimeWaitOverflow", "TcpExt.TCPAbortOnMemory", "Tcp.RetransSegs", "Tcp.OutSegs", "TcpExt.TCPDSACKRecv", "Udp.RcvbufErrors",
            "Udp.SndbufErrors", "Udp.InDatagrams"] {
            counted(&mut facts, name, next());
        }
        for key in ["net.core.somaxconn", "net.ipv4.tcp_max_orphans", "net.ipv4.tcp_max_tw_buckets", "net.core.netdev_max_backlog"] {
            set(&mut facts, key, &next().to_string());
        }
        for key in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem"] {
            set(&mut facts, key, &format!("{} {} {}", next(), next(), next()));
        }
        set(&mut facts, "net.ipv4.ip_local_port_range", &format!("{} {}", next(), next()));
        facts.plan.memory_bytes = next();
        facts.plan.page_bytes = next();
        facts.host.conntrack = Fact::known("x", Conntrack { count: next(), max: next(), buckets: Some(next()), dropped: Some(next()), early_dropped: Some(next()), insert_failed: None });
        facts.host.softnet_cpus.value = Some(vec![SoftnetCpu { cpu: 0, processed: next(), dropped: next(), squeezed: next(), flow_limited: 0 }]);
        facts.host.connections.value.as_mut().unwrap().ports =
            vec![PortUse { local: "::1".parse().unwrap(), remote: "::2".parse().unwrap(), remote_port: 1, used: next(), time_wait: next() }];
        facts.host.listeners.value = Some(vec![nginx(next() as u32, next() as u32, Some(next()))]);
        let device = &mut facts.host.devices.value.as_mut().unwrap()[0];
        device.counters.rx_missed = next() / 4;
        device.counters.rx_crc_errors = next() / 4;
        device.qdiscs[0].dropped = next() / 2;
        device.qdiscs[0].sent_packets = next() / 2;
        facts.observed = Some(observed(next() % 1_000_000, shares[0], shares[1], shares[2], shares[3], next()));
        let report = audit(&facts);
        for pair in report.findings.windows(2) {
            prop_assert!(pair[0].severity >= pair[1].severity);
        }
    }
}
