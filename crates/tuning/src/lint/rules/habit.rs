//! Rules about copied habits.

use crate::lint::rule::{Kind, Rule, Severity, conf};

pub(in crate::lint) const RULES: &[&Rule] =
    &[&POPULAR, &START_LOWERED, &START_RAISED, &LOWERED, &LOWAT, &FQ, &NOT_AUTOTUNING, &NEEDS_PROGRAM];

pub(in crate::lint) static POPULAR: Rule = Rule {
    id: "LR070",
    name: "copied-value",
    kind: Kind::Habit,
    severity: Severity::Note,
    weight: 15,
    summary: "a value that is copied from list to list",
    why: "Lists on the web carry it without the reason for which it was once right.",
    example: conf("net.ipv4.tcp_fin_timeout = 15\n", "net.ipv4.tcp_fin_timeout = 45\n"),
};

pub(in crate::lint) static START_LOWERED: Rule = Rule {
    id: "LR071",
    name: "lowers-the-start",
    kind: Kind::Habit,
    severity: Severity::Warning,
    weight: 50,
    summary: "the second value of tcp_rmem lowered to an old default",
    why: "87380 was the kernel's default until 4.19. Today's is 131072: the old value makes every connection start with a smaller window, which costs a round trip or two on every transfer.",
    example: conf("net.ipv4.tcp_rmem = 4096 87380 67108864\n", "net.ipv4.tcp_rmem = 4096 131072 67108864\n"),
};

pub(in crate::lint) static START_RAISED: Rule = Rule {
    id: "LR072",
    name: "raises-the-start",
    kind: Kind::Habit,
    severity: Severity::Note,
    weight: 20,
    summary: "every connection starts with a larger buffer",
    why: "The second value is what each connection starts with. Buffers grow by themselves up to the third value where a connection needs it; a larger start costs memory for each idle one.",
    example: conf("net.ipv4.tcp_wmem = 4096 65536 67108864\n", "net.ipv4.tcp_wmem = 4096 16384 67108864\n"),
};

pub(in crate::lint) static LOWERED: Rule = Rule {
    id: "LR073",
    name: "lowers-the-default",
    kind: Kind::Habit,
    severity: Severity::Warning,
    weight: 50,
    summary: "less than the kernel's default",
    why: "Copied from a list that was made for an older kernel, the value takes away what newer kernels give.",
    example: conf("net.core.somaxconn = 1024\n", "net.core.somaxconn = 8192\n"),
};

pub(in crate::lint) static LOWAT: Rule = Rule {
    id: "LR074",
    name: "tiny-notsent-lowat",
    kind: Kind::Habit,
    severity: Severity::Warning,
    weight: 45,
    summary: "tcp_notsent_lowat so small that fast paths starve",
    why: "A program is woken when less than this is unsent. 16 KiB is gone in 0.13 ms at 1 Gbit/s: the program has to be woken thousands of times a second, and the path idles in between. 131072 keeps the use of it.",
    example: conf("net.ipv4.tcp_notsent_lowat = 16384\n", "net.ipv4.tcp_notsent_lowat = 131072\n"),
};

pub(in crate::lint) static FQ: Rule = Rule {
    id: "LR075",
    name: "fq-is-a-choice",
    kind: Kind::Habit,
    severity: Severity::Note,
    weight: 20,
    summary: "fq is not needed by BBR, and changes no device that is up",
    why: "TCP paces itself since 4.13; fq does it with less CPU on hosts that send much. The default holds for devices that come up later; multi-queue devices keep mq and take it for their queues. `tc qdisc replace dev X root fq` throws mq away. A router wants fq_codel or cake.",
    example: conf("net.core.default_qdisc = fq\n", "net.core.default_qdisc = fq_codel\n"),
};

pub(in crate::lint) static NOT_AUTOTUNING: Rule = Rule {
    id: "LR076",
    name: "does-not-bound-autotuning",
    kind: Kind::Habit,
    severity: Severity::Note,
    weight: 20,
    summary: "rmem_max and wmem_max don't bound TCP's own buffers",
    why: "They bound what a program asks for with SO_RCVBUF and SO_SNDBUF; TCP's autotuning stops at the third value of tcp_rmem and tcp_wmem, whatever they are.",
    example: conf(
        "net.core.rmem_max = 67108864\nnet.core.wmem_max = 67108864\nnet.ipv4.tcp_rmem = 4096 131072 67108864\n",
        "net.core.rmem_max = 7500000\nnet.core.wmem_max = 7500000\n",
    ),
};

pub(in crate::lint) static NEEDS_PROGRAM: Rule = Rule {
    id: "LR078",
    name: "needs-the-program",
    kind: Kind::Habit,
    severity: Severity::Note,
    weight: 20,
    summary: "nothing changes until programs ask for it",
    why: "Fast Open for servers (tcp_fastopen with 2 in it) and a larger somaxconn do nothing by themselves: the program has to ask for them, and to listen anew. Some paths drop connections with Fast Open and cost a timeout each, and its data can be replayed.",
    example: conf("net.ipv4.tcp_fastopen = 3\n", "net.ipv4.tcp_fastopen = 1\n"),
};
