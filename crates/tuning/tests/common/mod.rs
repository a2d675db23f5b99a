//! Hosts for tests of plans.

use std::collections::BTreeMap;

use tuning::plan::{Facts, Interface, Presence, Softnet};

const GIB: u64 = 1 << 30;

/// A server as Debian 13 installs it: 16 GiB, kernel 6.12, one card with one queue.
pub fn server() -> Facts {
    let sysctls = [
        ("net.core.default_qdisc", "fq_codel"),
        ("net.core.netdev_budget", "300"),
        ("net.core.netdev_budget_usecs", "8000"),
        ("net.core.netdev_max_backlog", "1000"),
        ("net.core.rmem_max", "212992"),
        ("net.core.wmem_max", "212992"),
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.ip_forward", "0"),
        ("net.ipv4.ip_local_port_range", "32768 60999"),
        ("net.ipv4.ip_local_reserved_ports", ""),
        ("net.ipv4.neigh.default.gc_thresh1", "128"),
        ("net.ipv4.neigh.default.gc_thresh2", "512"),
        ("net.ipv4.neigh.default.gc_thresh3", "1024"),
        ("net.ipv4.tcp_adv_win_scale", "1"),
        ("net.ipv4.tcp_available_congestion_control", "reno cubic"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
        ("net.ipv4.tcp_max_syn_backlog", "1024"),
        ("net.ipv4.tcp_mem", "188721 251629 377442"),
        ("net.ipv4.tcp_moderate_rcvbuf", "1"),
        ("net.ipv4.tcp_notsent_lowat", "4294967295"),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("net.ipv4.tcp_sack", "1"),
        ("net.ipv4.tcp_slow_start_after_idle", "1"),
        ("net.ipv4.tcp_timestamps", "1"),
        ("net.ipv4.tcp_window_scaling", "1"),
        ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ];
    Facts {
        kernel: "6.12.117+deb13-amd64".to_owned(),
        memory_bytes: 16 * GIB,
        hostname: "server".to_owned(),
        machine: String::new(),
        page_bytes: 4096,
        sysctls: sysctls.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        modules: ["tcp_bbr", "sch_fq", "sch_fq_codel", "sch_cake"]
            .into_iter()
            .map(|name| (name.to_owned(), Presence::Loadable))
            .collect::<BTreeMap<_, _>>(),
        interfaces: Some(vec![Interface {
            name: "eth0".to_owned(),
            qdisc: "fq_codel".to_owned(),
            leaves: Vec::new(),
            configured: false,
            physical: true,
        }]),
        listening_ports: Some(vec![22, 8080, 11211, 50051]),
        neighbours: Some(12),
        softnet: Some(Softnet { processed: 1_000_000, dropped: 0, squeezed: 3 }),
        container: false,
    }
}
