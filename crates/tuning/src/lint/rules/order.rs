//! Rules about who wins, and what stays.

use crate::lint::rule::{Kind, Rule, Severity, example};

pub(in crate::lint) const RULES: &[&Rule] =
    &[&EARLY_NAME, &NOT_PERSISTENT, &REPLACES_FILE, &APPENDS, &BUSYBOX, &SUFFIX];

pub(in crate::lint) static EARLY_NAME: Rule = Rule {
    id: "LR080",
    name: "early-name",
    kind: Kind::Order,
    severity: Severity::Warning,
    weight: 40,
    summary: "a file that is read before those it should overrule",
    why: "Files are read in the order of their base names, over all directories, and the last one wins. systemd brings 50-default.conf, distributions bring 50- to 60-: a file of your own is called 90- or 99-.",
    example: example(
        "sysctl.d/10-bbr.conf",
        "kernel=6.12",
        "net.core.default_qdisc = fq_codel\n",
        "net.ipv4.tcp_mtu_probing = 1\n",
    ),
};

pub(in crate::lint) static NOT_PERSISTENT: Rule = Rule {
    id: "LR081",
    name: "not-persistent",
    kind: Kind::Order,
    severity: Severity::Note,
    weight: 25,
    summary: "gone after a reboot",
    why: "`sysctl -w` and writes to /proc/sys hold until the next boot. To keep them, write a file in /etc/sysctl.d too.",
    example: example(
        "tune.sh",
        "kernel=6.12",
        "sysctl -w net.ipv4.tcp_mtu_probing=1\n",
        "sysctl -w net.ipv4.tcp_mtu_probing=1\necho 'net.ipv4.tcp_mtu_probing = 1' > /etc/sysctl.d/90-mine.conf\n",
    ),
};

pub(in crate::lint) static REPLACES_FILE: Rule = Rule {
    id: "LR082",
    name: "replaces-sysctl-conf",
    kind: Kind::Order,
    severity: Severity::Error,
    weight: 75,
    summary: "the script overwrites /etc/sysctl.conf",
    why: "`>` throws away what the administrator and the distribution had in it. Write a file of your own in /etc/sysctl.d.",
    example: example(
        "tune.sh",
        "kernel=6.12",
        "cat > /etc/sysctl.conf <<EOF\nnet.ipv4.tcp_mtu_probing = 1\nEOF\n",
        "cat > /etc/sysctl.d/90-mine.conf <<EOF\nnet.ipv4.tcp_mtu_probing = 1\nEOF\n",
    ),
};

pub(in crate::lint) static APPENDS: Rule = Rule {
    id: "LR083",
    name: "appends-each-time",
    kind: Kind::Order,
    severity: Severity::Note,
    weight: 20,
    summary: "each run appends the lines once more",
    why: "Running the script twice leaves the settings twice, and after an edit two that contradict each other. Write a file of your own with `>`.",
    example: example(
        "tune.sh",
        "kernel=6.12",
        "echo 'net.ipv4.tcp_mtu_probing = 1' >> /etc/sysctl.conf\n",
        "echo 'net.ipv4.tcp_mtu_probing = 1' > /etc/sysctl.d/90-mine.conf\n",
    ),
};

pub(in crate::lint) static BUSYBOX: Rule = Rule {
    id: "LR084",
    name: "busybox-stops",
    kind: Kind::Order,
    severity: Severity::Warning,
    weight: 60,
    summary: "BusyBox stops at the first line that fails",
    why: "Its `sysctl -p` ends at the first key that isn't there or refuses the value; nothing behind it is applied.",
    example: example(
        "sysctl.conf",
        "kernel=6.12,busybox",
        "net.ipv4.tcp_tw_recycle = 1\nnet.ipv4.tcp_mtu_probing = 1\n",
        "net.ipv4.tcp_mtu_probing = 1\n",
    ),
};

pub(in crate::lint) static SUFFIX: Rule = Rule {
    id: "LR085",
    name: "not-a-conf-file",
    kind: Kind::Order,
    severity: Severity::Error,
    weight: 80,
    summary: "a file in sysctl.d without `.conf` at the end",
    why: "Only files whose name ends in .conf are read.",
    example: example("etc/sysctl.d/90-net", "kernel=6.12", "net.ipv4.tcp_mtu_probing = 1\n", ""),
};
