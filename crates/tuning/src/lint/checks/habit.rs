//! Copied habits.

use crate::catalogue::{Importance, Kind};
use crate::lint::amount::bytes;
use crate::lint::item::Item;
use crate::lint::rule::Severity;
use crate::lint::rules::habit::*;
use crate::lint::run::Run;

pub(super) fn check(run: &mut Run<'_>) {
    run.each_in_force(|run, index, item| {
        if item.setting.is_dynamic || item.found.is_none() {
            return;
        }
        match item.key.as_str() {
            "net.core.default_qdisc" => return fq(run, index, item),
            "net.ipv4.tcp_notsent_lowat" => lowat(run, index, item),
            "net.core.rmem_max" | "net.core.wmem_max" => not_autotuning(run, index, item),
            "net.ipv4.tcp_fastopen" => fast_open(run, index, item),
            "net.core.somaxconn" => backlog(run, index, item),
            _ => {}
        }
        lowered(run, index, item);
        if !run.is_told(index) {
            popular(run, index, item);
        }
    });
}

fn fq(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    if item.value != "fq" || run.is_told(index) {
        return;
    }
    let forwards = run.target.forwards();
    if forwards {
        run.say(&FQ, index, item, "fq paces what this host sends itself; a host that forwards wants fq_codel or cake")
            .severity(Severity::Warning);
    } else {
        run.say(&FQ, index, item, "BBR does not need fq since 4.13; devices that are up keep what they have")
            .help("it saves CPU where this host sends much; keep `mq` on multi-queue devices and set fq on its queues");
    }
}

fn lowat(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    if let Some(size) = item.number().filter(|size| (1..65_536).contains(size)) {
        // How long it lasts at 1 Gbit/s, in microseconds.
        let lasts = size * 8 / 1000;
        run.say(
            &LOWAT,
            index,
            item,
            format!("{} is sent in {lasts} µs at 1 Gbit/s: the program can't refill it that often", bytes(size)),
        )
        .help("131072 serves the same purpose")
        .replace("write 131072", item.setting.value_span, "131072");
    }
}

fn not_autotuning(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let buffers = if item.key.ends_with("rmem_max") { "net.ipv4.tcp_rmem" } else { "net.ipv4.tcp_wmem" };
    let is_first = run.with_key(item.group, &item.key).first() == Some(&index);
    if is_first && run.sets(item.group, buffers) {
        let what = if item.key.ends_with("rmem_max") { "SO_RCVBUF" } else { "SO_SNDBUF" };
        run.say(
            &NOT_AUTOTUNING,
            index,
            item,
            format!("bounds what programs ask for with {what}, not TCP's own growth: that is {buffers}'s third value"),
        );
    }
}

fn fast_open(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    if item.number().is_some_and(|n| n & 2 != 0) && !run.is_told(index) {
        run.say(
            &NEEDS_PROGRAM,
            index,
            item,
            "lets servers take data in the SYN: programs have to ask for it, and some paths drop it",
        );
    }
}

fn backlog(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let default = item.found.as_ref().and_then(|found| found.knob.default_in(run.target.kernel)?.parse::<i128>().ok());
    if item.number().zip(default).is_some_and(|(value, default)| value > default) {
        run.say(
            &NEEDS_PROGRAM,
            index,
            item,
            "a program has to ask for as much (nginx: `listen … backlog=`), and to listen anew",
        );
    }
}

/// Keys of which another rule says all there is to say, or whose value alone is no mistake.
const JUDGED_ELSEWHERE: [&str; 4] = [
    "net.core.somaxconn",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.ipv4.ip_local_port_range",
];

/// Keys where less than the default is a loss.
const MORE_IS_MORE: [&str; 9] = [
    "net.core.somaxconn",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.core.optmem_max",
    "net.ipv4.tcp_limit_output_bytes",
    "fs.nr_open",
    "kernel.threads-max",
];

fn lowered(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let Some(knob) = item.found.as_ref().map(|found| found.knob) else { return };
    let Some(default) = knob.default_in(run.target.kernel) else { return };
    let amount = |n: i128| if knob.kind == Kind::Bytes { bytes(n) } else { n.to_string() };
    let kernel = run.target.kernel;
    if MORE_IS_MORE.contains(&item.key.as_str()) {
        let (Some(value), Ok(default)) = (item.number(), default.parse::<i128>()) else { return };
        if value < default && value >= 0 {
            let fix = run.removal(item);
            let message = format!("lowers it: the default of Linux {kernel} is {}", amount(default));
            let finding = run.say(&LOWERED, index, item, message);
            finding.help("take the line out, or raise it").fix = fix;
        }
    } else if matches!(item.key.as_str(), "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem") {
        let most = default.split_whitespace().nth(2).and_then(|n| n.parse::<i128>().ok());
        if let (Some(most), [_, _, value]) = (most, &item.numbers[..])
            && *value < most
        {
            let text = run.text(item.document);
            let span = item.word_span(text, 2);
            let (value, default) = (amount(*value), amount(most));
            let message = format!("buffers may grow to {value} only: the default of Linux {kernel} is {default}");
            run.say_about(&LOWERED, index, item, span, message).replace(
                format!("write {most}"),
                span,
                most.to_string(),
            );
        }
    }
}

fn popular(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let Some(knob) = item.found.as_ref().map(|found| found.knob) else { return };
    let Some(popular) = &knob.popular else { return };
    let value = item.normal_value();
    if JUDGED_ELSEWHERE.contains(&item.key.as_str()) {
        return;
    }
    if !popular.values.is_empty() && !popular.values.contains(&value) {
        return;
    }
    let default = knob.default_in(run.target.kernel);
    let meaning = |value: &str| {
        knob.choices.iter().find(|c| c.value == value).map(|c| format!(" ({})", c.means)).unwrap_or_default()
    };
    let default = default.map(|d| format!("the default is {d}{}", meaning(d))).unwrap_or_default();
    let finding = run.say(&POPULAR, index, item, popular.why.trim_end_matches('.').to_owned());
    match &popular.instead {
        Some(instead) if default.is_empty() => finding.help(format!("instead: {instead}")),
        Some(instead) => finding.help(format!("instead: {instead}; {default}")),
        None if !default.is_empty() => finding.help(default),
        None => finding,
    };
    // The same words as for the network would make a list of forty lines of what is harmless.
    if knob.importance == Importance::Other {
        finding.severity(Severity::Note);
    }
}
