//! Rules about keys that are not there.

use crate::lint::rule::{Kind, Rule, Severity, conf, example};

pub(in crate::lint) const RULES: &[&Rule] = &[&UNKNOWN, &MISSPELT, &REMOVED, &NEWER, &DOTS, &READ_ONLY, &NEEDS_MODULE];

pub(in crate::lint) static UNKNOWN: Rule = Rule {
    id: "LR020",
    name: "unknown-key",
    kind: Kind::Name,
    severity: Severity::Note,
    weight: 35,
    summary: "a key that Linux 6.1 to 7.2 does not have",
    why: "It is well formed, but no kernel this version of linerate knows has it, nor a common module. A patched or newer kernel may.",
    example: conf("net.ipv4.tcp_turbo_boost_mode = 1\n", "net.ipv4.tcp_mtu_probing = 1\n"),
};

pub(in crate::lint) static MISSPELT: Rule = Rule {
    id: "LR021",
    name: "misspelt-key",
    kind: Kind::Name,
    severity: Severity::Error,
    weight: 75,
    summary: "a key that is close to one that exists",
    why: "Nothing is set: `sysctl` says \"cannot stat\", systemd-sysctl says it in the log.",
    example: conf("net.core.rmem_defualt = 1048576\n", "net.core.rmem_default = 1048576\n"),
};

pub(in crate::lint) static REMOVED: Rule = Rule {
    id: "LR022",
    name: "removed-key",
    kind: Kind::Name,
    severity: Severity::Error,
    weight: 70,
    summary: "a key that this kernel no longer has",
    why: "Kernels drop keys whose feature is gone. `sysctl -p` fails with \"cannot stat\", and people learn to overlook its errors.",
    example: conf("net.ipv4.tcp_tw_recycle = 1\n", "net.ipv4.tcp_tw_reuse = 2\n"),
};

pub(in crate::lint) static NEWER: Rule = Rule {
    id: "LR023",
    name: "not-yet-there",
    kind: Kind::Name,
    severity: Severity::Warning,
    weight: 45,
    summary: "a key that only newer kernels have",
    why: "Nothing is set on the target's kernel.",
    example: example(
        "sysctl.d/60-net.conf",
        "kernel=5.10",
        "net.ipv4.tcp_plb_enabled = 1\n",
        "net.ipv4.tcp_mtu_probing = 1\n",
    ),
};

pub(in crate::lint) static DOTS: Rule = Rule {
    id: "LR024",
    name: "interface-dots",
    kind: Kind::Name,
    severity: Severity::Error,
    weight: 60,
    summary: "an interface with a dot in its name, written with dots",
    why: "`net.ipv4.conf.eth0.100.x` means conf/eth0/100/x, which isn't there. Write `net.ipv4.conf.eth0/100.x` or `net/ipv4/conf/eth0.100/x`.",
    example: conf("net.ipv4.conf.eth0.100.rp_filter = 2\n", "net.ipv4.conf.eth0/100.rp_filter = 2\n"),
};

pub(in crate::lint) static READ_ONLY: Rule = Rule {
    id: "LR025",
    name: "read-only-key",
    kind: Kind::Name,
    severity: Severity::Error,
    weight: 50,
    summary: "a key that can only be read",
    why: "The kernel shows it and takes no value.",
    example: conf(
        "net.ipv4.tcp_available_congestion_control = bbr\n",
        "net.ipv4.tcp_allowed_congestion_control = reno cubic bbr\n",
    ),
};

pub(in crate::lint) static NEEDS_MODULE: Rule = Rule {
    id: "LR026",
    name: "needs-module",
    kind: Kind::Name,
    severity: Severity::Warning,
    weight: 55,
    summary: "a key of a module that is not loaded when sysctls are applied",
    why: "systemd-sysctl runs early. The key of a module that is loaded later (by a firewall, by Docker) isn't there yet, and the setting is skipped in silence. Name the module in /etc/modules-load.d.",
    example: example(
        "sysctl.d/91-conntrack.conf",
        "kernel=6.12",
        "net.netfilter.nf_conntrack_tcp_loose = 0\n",
        "net.ipv4.tcp_mtu_probing = 1\n",
    ),
};
