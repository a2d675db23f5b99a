//! Rules about lines that can't be read as they were meant.

use crate::lint::rule::{Kind, Rule, Severity, conf, example};

pub(in crate::lint) const RULES: &[&Rule] = &[
    &NOT_A_SETTING,
    &COMMAND,
    &QUOTED,
    &INLINE_COMMENT,
    &HIDDEN,
    &JOINED,
    &SECTION,
    &EMPTY,
    &OPERATOR,
    &PROC_PATH,
    &ENCODING,
    &UNREADABLE,
    &BROKEN,
    &LINE_END,
    &LONG_LINE,
];

pub(in crate::lint) static NOT_A_SETTING: Rule = Rule {
    id: "LR001",
    name: "not-a-setting",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 60,
    summary: "a line without `=`",
    why: "Neither systemd-sysctl nor `sysctl -p` takes a line without `=` for a setting: both skip it with a message that few people see, and apply the rest. Write `key = value`.",
    example: conf("net.core.somaxconn 8192\n", "net.core.somaxconn = 8192\n"),
};

pub(in crate::lint) static COMMAND: Rule = Rule {
    id: "LR002",
    name: "command-in-file",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 65,
    summary: "a command as a line of a settings file",
    why: "A settings file is not a script: `sysctl -w key=value`, `echo` and heredoc marks are not run. Either write the setting alone, or run the commands in a shell.",
    example: conf(
        "sysctl -w net.core.rmem_max=8388608\n",
        "# sysctl -w net.core.rmem_max=8388608\nnet.core.rmem_max = 8388608\nnet.core.wmem_max = 8388608\n",
    ),
};

pub(in crate::lint) static QUOTED: Rule = Rule {
    id: "LR003",
    name: "quoted-value",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 70,
    summary: "quotes that become a part of the value",
    why: "In a settings file quotes have no meaning: the kernel gets them as a part of the value and refuses it (EINVAL). In a tuned profile and behind `sysctl -w` in a shell they are right.",
    example: conf("net.ipv4.tcp_rmem = \"4096 131072 67108864\"\n", "net.ipv4.tcp_rmem = 4096 131072 67108864\n"),
};

pub(in crate::lint) static INLINE_COMMENT: Rule = Rule {
    id: "LR004",
    name: "comment-behind-value",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 70,
    summary: "a comment behind a value becomes a part of it",
    why: "A `#` starts a comment only at the start of a line. Behind a name the kernel looks for a name that holds the comment, and answers ENOENT; behind a number it stops reading at the blank, so that the number counts and the habit bites the next time. Put the comment on a line of its own.",
    example: conf("net.core.default_qdisc = fq_codel # pacing\n", "# pacing\nnet.core.default_qdisc = fq_codel\n"),
};

pub(in crate::lint) static HIDDEN: Rule = Rule {
    id: "LR005",
    name: "hidden-character",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 70,
    summary: "a character nobody sees",
    why: "Text copied from web pages brings zero-width characters, non-breaking blanks and byte order marks. They become a part of the key or the value, and the kernel knows neither.",
    example: conf("\u{200b}net.ipv4.tcp_mtu_probing = 1\n", "net.ipv4.tcp_mtu_probing = 1\n"),
};

pub(in crate::lint) static JOINED: Rule = Rule {
    id: "LR006",
    name: "several-on-one-line",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 65,
    summary: "several settings on one line",
    why: "A line is one setting: everything behind the first `=` is its value, `;` included. The first key is refused or cut, the others are not set.",
    example: conf(
        "net.ipv4.tcp_mtu_probing = 1; net.ipv4.tcp_slow_start_after_idle = 0\n",
        "net.ipv4.tcp_mtu_probing = 1\nnet.ipv4.tcp_slow_start_after_idle = 0\n",
    ),
};

pub(in crate::lint) static SECTION: Rule = Rule {
    id: "LR007",
    name: "section-in-file",
    kind: Kind::Syntax,
    severity: Severity::Warning,
    weight: 30,
    summary: "a section in a file that has none",
    why: "`[sysctl]` belongs in a tuned profile. A settings file has no sections: the line is skipped with a message.",
    example: conf("[sysctl]\nnet.ipv4.tcp_mtu_probing = 1\n", "net.ipv4.tcp_mtu_probing = 1\n"),
};

pub(in crate::lint) static EMPTY: Rule = Rule {
    id: "LR008",
    name: "empty-key-or-value",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 55,
    summary: "nothing before or behind `=`",
    why: "Without a key nothing is set; without a value most keys refuse the write, and text keys are emptied.",
    example: conf("net.core.default_qdisc =\n", "net.core.default_qdisc = fq_codel\n"),
};

pub(in crate::lint) static OPERATOR: Rule = Rule {
    id: "LR009",
    name: "wrong-operator",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 65,
    summary: "`=>`, `:=` or `==` in place of `=`",
    why: "Only `=` parts key and value here; what stands before or behind it becomes a part of one of them. `=>` (only raise) is tuned's.",
    example: conf("net.core.rmem_max => 8388608\n", "net.core.rmem_max = 8388608\nnet.core.wmem_max = 8388608\n"),
};

pub(in crate::lint) static PROC_PATH: Rule = Rule {
    id: "LR010",
    name: "proc-path",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 65,
    summary: "`/proc/sys/` as a part of the key",
    why: "Keys are relative to /proc/sys: this one would be /proc/sys/proc/sys/….",
    example: conf("/proc/sys/net/ipv4/tcp_mtu_probing = 1\n", "net/ipv4/tcp_mtu_probing = 1\n"),
};

pub(in crate::lint) static ENCODING: Rule = Rule {
    id: "LR014",
    name: "encoding",
    kind: Kind::Syntax,
    severity: Severity::Warning,
    weight: 40,
    summary: "the file is not UTF-8",
    why: "The appliers read bytes. UTF-16 has a NUL in every character: nothing of such a file is applied. In another 8-bit encoding only comments may hold more than ASCII.",
    example: conf("# grüße\nnet.ipv4.tcp_mtu_probing = 1\n", "# grüße\nnet.ipv4.tcp_mtu_probing = 1\n"),
};

pub(in crate::lint) static UNREADABLE: Rule = Rule {
    id: "LR015",
    name: "not-text",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 90,
    summary: "the file is no text",
    why: "It holds control characters as only binary files do. Nothing of it was judged.",
    example: conf("\0\u{1}\u{2}\u{3}\u{4}\u{5}", "# \tnet\n"),
};

pub(in crate::lint) static BROKEN: Rule = Rule {
    id: "LR016",
    name: "broken-structure",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 60,
    summary: "YAML, a quote or a heredoc that doesn't end",
    why: "From here on the file can't be read as what it is; what stands before is judged.",
    example: example(
        "tasks.yaml",
        "kernel=6.12",
        "sysctls:\n  net.ipv4.tcp_mtu_probing: 1\n  x: [\n",
        "sysctls:\n  net.ipv4.tcp_mtu_probing: 1\n",
    ),
};

pub(in crate::lint) static LINE_END: Rule = Rule {
    id: "LR017",
    name: "lone-carriage-return",
    kind: Kind::Syntax,
    severity: Severity::Warning,
    weight: 35,
    summary: "a carriage return inside a line",
    why: "systemd-sysctl starts a new line there, procps goes on with the value. Line ends of two characters, as Windows writes them, are fine for both.",
    example: conf(
        "net.ipv4.tcp_mtu_probing = 1\rnet.ipv4.tcp_slow_start_after_idle = 0\n",
        "net.ipv4.tcp_mtu_probing = 1\r\nnet.ipv4.tcp_slow_start_after_idle = 0\r\n",
    ),
};

pub(in crate::lint) static LONG_LINE: Rule = Rule {
    id: "LR018",
    name: "long-line",
    kind: Kind::Syntax,
    severity: Severity::Error,
    weight: 50,
    summary: "a line of more than 1 MiB",
    why: "systemd-sysctl stops reading the file there.",
    example: conf("#\n", "# short\n"),
};
