//! Rules about values the kernel refuses or reads otherwise.

use crate::lint::rule::{Kind, Rule, Severity, conf};

pub(in crate::lint) const RULES: &[&Rule] =
    &[&NOT_A_NUMBER, &OUT_OF_RANGE, &ARITY, &UNIT, &CHOICE, &CONTROL, &DESCENDING, &PORTS, &QDISC];

pub(in crate::lint) static NOT_A_NUMBER: Rule = Rule {
    id: "LR030",
    name: "not-a-number",
    kind: Kind::Value,
    severity: Severity::Error,
    weight: 70,
    summary: "text or a suffix where the kernel wants a number",
    why: "The kernel knows no K, M or G and no decimals. It refuses the value (EINVAL), or reads up to the suffix.",
    example: conf(
        "net.core.rmem_max = 16M\nnet.core.wmem_max = 16777216\n",
        "net.core.rmem_max = 16777216\nnet.core.wmem_max = 16777216\n",
    ),
};

pub(in crate::lint) static OUT_OF_RANGE: Rule = Rule {
    id: "LR031",
    name: "out-of-range",
    kind: Kind::Value,
    severity: Severity::Error,
    weight: 75,
    summary: "a number the kernel does not accept",
    why: "The write fails with EINVAL and the old value stays. Of several numbers in one key those before the bad one are changed all the same.",
    example: conf("net.ipv4.tcp_rmem = 4096 131072 4294967296\n", "net.ipv4.tcp_rmem = 4096 131072 67108864\n"),
};

pub(in crate::lint) static ARITY: Rule = Rule {
    id: "LR032",
    name: "wrong-number-of-values",
    kind: Kind::Value,
    severity: Severity::Error,
    weight: 65,
    summary: "too many or too few values",
    why: "Values that are missing stay as they are; values too many are refused or dropped.",
    example: conf("net.ipv4.tcp_rmem = 67108864\n", "net.ipv4.tcp_rmem = 4096 131072 67108864\n"),
};

pub(in crate::lint) static UNIT: Rule = Rule {
    id: "LR033",
    name: "wrong-unit",
    kind: Kind::Value,
    severity: Severity::Error,
    weight: 95,
    summary: "a number in another unit than the key's",
    why: "tcp_mem and udp_mem are pages of 4096 bytes, not bytes. Bytes in them mean 4096 times too much, which takes away the protection; a list of tcp_rmem in them starts memory pressure at 16 MiB.",
    example: conf("net.ipv4.tcp_mem = 94500000 915000000 927000000\n", "# the kernel sizes tcp_mem by itself\n"),
};

pub(in crate::lint) static CHOICE: Rule = Rule {
    id: "LR034",
    name: "unknown-choice",
    kind: Kind::Value,
    severity: Severity::Error,
    weight: 65,
    summary: "a value that means nothing for this key",
    why: "The kernel knows a few values here, and this is none of them.",
    example: conf("net.ipv4.conf.all.rp_filter = 3\n", "net.ipv4.conf.all.rp_filter = 2\n"),
};

pub(in crate::lint) static CONTROL: Rule = Rule {
    id: "LR035",
    name: "no-such-congestion-control",
    kind: Kind::Value,
    severity: Severity::Error,
    weight: 80,
    summary: "a congestion control this kernel does not have",
    why: "The write fails with ENOENT and the kernel goes on with the one it had, usually cubic. bbrplus, bbr2, tsunami, nanqinlang and the like are out of tree; `bbr` needs tcp_bbr.",
    example: conf("net.ipv4.tcp_congestion_control = bbrplus\n", "net.ipv4.tcp_congestion_control = bbr\n"),
};

pub(in crate::lint) static DESCENDING: Rule = Rule {
    id: "LR036",
    name: "not-ascending",
    kind: Kind::Value,
    severity: Severity::Error,
    weight: 60,
    summary: "values that should rise and don't",
    why: "These keys hold a least, a usual and a largest value, or the first and the last port.",
    example: conf("net.ipv4.tcp_wmem = 4096 67108864 4194304\n", "net.ipv4.tcp_wmem = 4096 16384 67108864\n"),
};

pub(in crate::lint) static PORTS: Rule = Rule {
    id: "LR037",
    name: "port-list",
    kind: Kind::Value,
    severity: Severity::Error,
    weight: 60,
    summary: "a list of ports in another form than the kernel's",
    why: "ip_local_reserved_ports takes ports and ranges joined by commas: `8080,9000-9100`.",
    example: conf(
        "net.ipv4.ip_local_reserved_ports = 8080 9000\n",
        "net.ipv4.ip_local_reserved_ports = 8080,9000-9100\n",
    ),
};

pub(in crate::lint) static QDISC: Rule = Rule {
    id: "LR038",
    name: "no-such-qdisc",
    kind: Kind::Value,
    severity: Severity::Error,
    weight: 70,
    summary: "a queue discipline that does not exist",
    why: "The write fails with ENOENT and the default stays.",
    example: conf("net.core.default_qdisc = fqcodel\n", "net.core.default_qdisc = fq_codel\n"),
};
