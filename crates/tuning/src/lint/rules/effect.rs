//! Rules about settings that change nothing.

use crate::lint::rule::{Kind, Rule, Severity, conf, example};

pub(in crate::lint) const RULES: &[&Rule] = &[
    &OVERRIDDEN,
    &REPEATED,
    &IS_DEFAULT,
    &IGNORED_BY_CONTROL,
    &NO_LONGER_READ,
    &HOST_ONLY,
    &SYSCTL_CONF,
    &BBR_IS_V1,
    &BBR_IN_CONTAINER,
];

pub(in crate::lint) static OVERRIDDEN: Rule = Rule {
    id: "LR012",
    name: "overridden",
    kind: Kind::NoEffect,
    severity: Severity::Warning,
    weight: 50,
    summary: "another line sets the same key to another value",
    why: "The last one wins: within a file the last line, between files the last base name, whatever directory it is in. procps writes both in turn, systemd-sysctl only the last.",
    example: conf(
        "net.ipv4.tcp_mtu_probing = 1\nnet.ipv4.tcp_mtu_probing = 2\n",
        "net.ipv4.tcp_mtu_probing = 1\nnet.ipv4.tcp_slow_start_after_idle = 0\n",
    ),
};

pub(in crate::lint) static REPEATED: Rule = Rule {
    id: "LR013",
    name: "repeated",
    kind: Kind::NoEffect,
    severity: Severity::Note,
    weight: 10,
    summary: "the same line twice",
    why: "The second says what the first says. Blocks that were pasted twice hide which one is in force once somebody changes one of them.",
    example: conf(
        "net.ipv4.tcp_mtu_probing = 1\nnet/ipv4/tcp_mtu_probing=1\n",
        "net.ipv4.tcp_mtu_probing = 1\nnet.ipv6.conf.all.forwarding = 0\n",
    ),
};

pub(in crate::lint) static IS_DEFAULT: Rule = Rule {
    id: "LR040",
    name: "default-value",
    kind: Kind::NoEffect,
    severity: Severity::Note,
    weight: 5,
    summary: "the kernel's default",
    why: "It changes nothing on a kernel of this version, and stays behind when a later one has a better default.",
    example: conf("net.ipv4.tcp_window_scaling = 1\n", "net.ipv4.tcp_mtu_probing = 1\n"),
};

pub(in crate::lint) static IGNORED_BY_CONTROL: Rule = Rule {
    id: "LR041",
    name: "ignored-by-congestion-control",
    kind: Kind::NoEffect,
    severity: Severity::Warning,
    weight: 45,
    summary: "a key the chosen congestion control does not look at",
    why: "BBR sets its own pacing rate; tcp_pacing_ss_ratio and tcp_pacing_ca_ratio are for controls that don't.",
    example: conf(
        "net.ipv4.tcp_congestion_control = bbr\nnet.ipv4.tcp_pacing_ss_ratio = 300\n",
        "net.ipv4.tcp_congestion_control = cubic\nnet.ipv4.tcp_pacing_ss_ratio = 300\n",
    ),
};

pub(in crate::lint) static NO_LONGER_READ: Rule = Rule {
    id: "LR042",
    name: "without-effect",
    kind: Kind::NoEffect,
    severity: Severity::Warning,
    weight: 40,
    summary: "a key the kernel keeps and no longer looks at",
    why: "The file is still there so that old scripts don't fail.",
    example: conf("net.ipv4.tcp_fack = 1\n", "net.ipv4.tcp_dsack = 0\n"),
};

pub(in crate::lint) static HOST_ONLY: Rule = Rule {
    id: "LR043",
    name: "host-only-key",
    kind: Kind::NoEffect,
    severity: Severity::Error,
    weight: 70,
    summary: "a key of the whole host, in a container",
    why: "Containers have a network namespace of their own, in which this key is missing or read-only. Docker and Kubernetes refuse to start the container. Set it on the host.",
    example: example(
        "compose.yaml",
        "kernel=6.12",
        "services:\n  web:\n    sysctls:\n      net.core.rmem_max: 8388608\n",
        "services:\n  web:\n    sysctls:\n      net.core.somaxconn: 8192\n",
    ),
};

pub(in crate::lint) static SYSCTL_CONF: Rule = Rule {
    id: "LR044",
    name: "sysctl-conf-not-read",
    kind: Kind::NoEffect,
    severity: Severity::Error,
    weight: 85,
    summary: "/etc/sysctl.conf, where nobody reads it at boot",
    why: "systemd-sysctl never reads /etc/sysctl.conf; the link /etc/sysctl.d/99-sysctl.conf made it work. Debian 13 and Ubuntu 26.04 don't have the link. Move the settings to a file in /etc/sysctl.d.",
    example: example("etc/sysctl.conf", "debian-13", "net.ipv4.tcp_mtu_probing = 1\n", "# moved to sysctl.d\n"),
};

pub(in crate::lint) static BBR_IS_V1: Rule = Rule {
    id: "LR045",
    name: "bbr-is-version-1",
    kind: Kind::NoEffect,
    severity: Severity::Note,
    weight: 25,
    summary: "`bbr` is BBRv1 in every mainline kernel",
    why: "BBRv3 is in no mainline kernel up to 7.2, whatever a guide says; the value of this key does not tell the version. `linerate cc` finds out which one a kernel has.",
    example: conf("net.ipv4.tcp_congestion_control = bbr\n", "net.ipv4.tcp_congestion_control = cubic\n"),
};

pub(in crate::lint) static BBR_IN_CONTAINER: Rule = Rule {
    id: "LR046",
    name: "congestion-control-in-container",
    kind: Kind::NoEffect,
    severity: Severity::Warning,
    weight: 45,
    summary: "a congestion control that only the host can load",
    why: "In a container the write does not load the module: where the host hasn't loaded it, the key refuses the value with ENOENT and the container does not start.",
    example: example(
        "compose.yaml",
        "kernel=6.12",
        "services:\n  web:\n    sysctls:\n      net.ipv4.tcp_congestion_control: bbr\n",
        "services:\n  web:\n    sysctls:\n      net.ipv4.tcp_congestion_control: reno\n",
    ),
};
