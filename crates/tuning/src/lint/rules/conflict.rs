//! Rules about settings that don't go together.

use crate::lint::rule::{Kind, Rule, Severity, conf, example};

pub(in crate::lint) const RULES: &[&Rule] = &[&REUSE_NEEDS_TIMESTAMPS, &ONE_SIDED, &CONNTRACK_BUCKETS, &FORWARDING_OFF];

pub(in crate::lint) static REUSE_NEEDS_TIMESTAMPS: Rule = Rule {
    id: "LR050",
    name: "reuse-without-timestamps",
    kind: Kind::Conflict,
    severity: Severity::Error,
    weight: 70,
    summary: "tcp_tw_reuse without timestamps",
    why: "tcp_tw_reuse tells old packets from new ones by their timestamps; without them it reuses nothing.",
    example: conf("net.ipv4.tcp_timestamps = 0\nnet.ipv4.tcp_tw_reuse = 1\n", "net.ipv4.tcp_tw_reuse = 1\n"),
};

pub(in crate::lint) static ONE_SIDED: Rule = Rule {
    id: "LR051",
    name: "one-sided-buffers",
    kind: Kind::Conflict,
    severity: Severity::Warning,
    weight: 50,
    summary: "buffers raised in one direction only",
    why: "A list that raises the largest receive buffer a program may ask for and leaves the send buffer alone, or the other way round, does half of what it says.",
    example: conf(
        "net.core.rmem_max = 67108864\nnet.ipv4.tcp_rmem = 4096 131072 67108864\n",
        "net.core.rmem_max = 67108864\nnet.core.wmem_max = 67108864\nnet.ipv4.tcp_rmem = 4096 131072 67108864\n",
    ),
};

pub(in crate::lint) static CONNTRACK_BUCKETS: Rule = Rule {
    id: "LR052",
    name: "conntrack-without-buckets",
    kind: Kind::Conflict,
    severity: Severity::Warning,
    weight: 50,
    summary: "many tracked connections in few buckets",
    why: "nf_conntrack_max alone makes lists long: the table keeps the buckets it got from memory, at most 262144, and every packet searches its list. Set net.netfilter.nf_conntrack_buckets (or `options nf_conntrack hashsize=`) to about as many.",
    example: conf(
        "net.netfilter.nf_conntrack_max = 1048576\n",
        "net.netfilter.nf_conntrack_max = 1048576\nnet.netfilter.nf_conntrack_buckets = 1048576\n",
    ),
};

pub(in crate::lint) static FORWARDING_OFF: Rule = Rule {
    id: "LR053",
    name: "router-without-forwarding",
    kind: Kind::Conflict,
    severity: Severity::Error,
    weight: 85,
    summary: "forwarding switched off where packets are forwarded",
    why: "A router, a container host or a Kubernetes node whose forwarding is off cuts everything behind it.",
    example: example(
        "sysctl.d/60-net.conf",
        "kernel=6.12,role=kubernetes-node",
        "net.ipv4.ip_forward = 0\n",
        "net.ipv4.ip_forward = 1\n",
    ),
};
