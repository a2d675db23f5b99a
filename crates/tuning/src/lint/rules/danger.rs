//! Rules about settings that do harm.

use crate::lint::rule::{Kind, Rule, Severity, conf, example};

pub(in crate::lint) const RULES: &[&Rule] =
    &[&NAT, &SERVICE_PORTS, &MEMORY_CAP, &MEMORY_EXHAUSTION, &SECURITY, &ECN, &CRIPPLES, &DCTCP, &DROPS, &LOCKS_OUT];

pub(in crate::lint) static NAT: Rule = Rule {
    id: "LR060",
    name: "breaks-clients-behind-nat",
    kind: Kind::Danger,
    severity: Severity::Error,
    weight: 100,
    summary: "drops clients that share an address",
    why: "tcp_tw_recycle = 1 drops connections whose timestamps are older than the last ones of the same address: clients behind NAT, at random.",
    example: example(
        "sysctl.d/60-net.conf",
        "kernel=4.9",
        "net.ipv4.tcp_tw_recycle = 1\n",
        "net.ipv4.tcp_tw_recycle = 0\n",
    ),
};

pub(in crate::lint) static SERVICE_PORTS: Rule = Rule {
    id: "LR061",
    name: "takes-service-ports",
    kind: Kind::Danger,
    severity: Severity::Warning,
    weight: 60,
    summary: "outgoing connections may take a service's port",
    why: "A wider range of local ports lets an outgoing connection sit on a port that a service wants to listen on, and the service then does not start. Name those ports in net.ipv4.ip_local_reserved_ports.",
    example: conf(
        "net.ipv4.ip_local_port_range = 1024 65535\n",
        "net.ipv4.ip_local_port_range = 1024 65535\nnet.ipv4.ip_local_reserved_ports = 3306,5432,8080,9090-9100\n",
    ),
};

pub(in crate::lint) static MEMORY_CAP: Rule = Rule {
    id: "LR062",
    name: "caps-tcp-memory",
    kind: Kind::Danger,
    severity: Severity::Error,
    weight: 95,
    summary: "less memory for all TCP sockets than the kernel would give",
    why: "tcp_mem's third value is the most that all TCP sockets of the host hold together; beyond it packets are dropped, and connections stall. The kernel gives about 9 % of memory. Leave it out unless the log says \"TCP: out of memory\".",
    example: conf("net.ipv4.tcp_mem = 65536 131072 262144\n", "# the kernel sizes tcp_mem by itself\n"),
};

pub(in crate::lint) static MEMORY_EXHAUSTION: Rule = Rule {
    id: "LR063",
    name: "exhausts-memory",
    kind: Kind::Danger,
    severity: Severity::Warning,
    weight: 65,
    summary: "buffers that can take all memory",
    why: "Buffers are per connection, and what a peer doesn't take stays in them.",
    example: conf("net.ipv4.tcp_rmem = 4096 16777216 67108864\n", "net.ipv4.tcp_rmem = 4096 131072 67108864\n"),
};

pub(in crate::lint) static SECURITY: Rule = Rule {
    id: "LR064",
    name: "weakens-security",
    kind: Kind::Danger,
    severity: Severity::Warning,
    weight: 60,
    summary: "switches a protection off",
    why: "It is no matter of speed, and lists that carry it do not say what it opens.",
    example: conf("net.ipv4.tcp_syncookies = 0\n", "net.ipv4.tcp_syncookies = 1\n"),
};

pub(in crate::lint) static ECN: Rule = Rule {
    id: "LR065",
    name: "asks-for-ecn",
    kind: Kind::Danger,
    severity: Severity::Warning,
    weight: 40,
    summary: "asks for ECN on every outgoing connection",
    why: "It helps where a queue on the path marks packets. Some paths drop or bend connections that ask for it; distributions that made it the default took it back. BBRv1 does not look at marks. The default, 2, answers those who ask.",
    example: conf("net.ipv4.tcp_ecn = 1\n", "net.ipv4.tcp_ecn = 2\n"),
};

pub(in crate::lint) static CRIPPLES: Rule = Rule {
    id: "LR066",
    name: "cripples-tcp",
    kind: Kind::Danger,
    severity: Severity::Error,
    weight: 85,
    summary: "switches a part of TCP off that it needs for speed",
    why: "Window scaling, selective acknowledgements, timestamps and buffers that size themselves are what makes TCP fast on long paths.",
    example: conf("net.ipv4.tcp_sack = 0\n", "net.ipv4.tcp_sack = 1\n"),
};

pub(in crate::lint) static DCTCP: Rule = Rule {
    id: "LR067",
    name: "data-centre-control",
    kind: Kind::Danger,
    severity: Severity::Error,
    weight: 80,
    summary: "a congestion control for data centres only",
    why: "dctcp expects every queue on the path to mark early. On the Internet it fills queues and pushes others aside.",
    example: conf("net.ipv4.tcp_congestion_control = dctcp\n", "net.ipv4.tcp_congestion_control = cubic\n"),
};

pub(in crate::lint) static DROPS: Rule = Rule {
    id: "LR068",
    name: "drops-connections",
    kind: Kind::Danger,
    severity: Severity::Warning,
    weight: 55,
    summary: "connections end sooner than they have to",
    why: "The value gives up on connections, or forgets them, while their peers still count on them.",
    example: conf(
        "net.netfilter.nf_conntrack_tcp_timeout_established = 600\n",
        "net.netfilter.nf_conntrack_tcp_timeout_established = 86400\n",
    ),
};

pub(in crate::lint) static LOCKS_OUT: Rule = Rule {
    id: "LR069",
    name: "locks-out",
    kind: Kind::Danger,
    severity: Severity::Warning,
    weight: 70,
    summary: "may cut the connection you are working over",
    why: "Settings that stop answering or receiving take effect at once, also for the session that sets them.",
    example: conf("net.ipv6.conf.all.disable_ipv6 = 1\n", "net.ipv6.conf.all.forwarding = 0\n"),
};
