//! The way out: queue disciplines of devices.

use facts::{Device, QdiscState};

use super::super::finding::{Finding, Severity};
use super::super::look::{Look, percent, plural, share};

const DEFAULT: &str = "net.core.default_qdisc";

pub(super) fn judge(look: &mut Look<'_>) {
    for device in look.facts.host.devices.get().into_iter().flatten() {
        if !device.physical || !device.up {
            continue;
        }
        replaced(look, device);
        not_default(look, device);
        one_long_queue(look, device);
        no_queue(look, device);
        drops(look, device);
    }
}

/// Set by the kernel itself, and not somebody's choice.
fn is_usual(kind: &str) -> bool {
    matches!(kind, "pfifo_fast" | "fq_codel" | "fq" | "pfifo")
}

/// Disciplines that bound a rate or sort by somebody's rules: never to be touched.
fn shapes(kind: &str) -> bool {
    matches!(
        kind,
        "htb"
            | "hfsc"
            | "tbf"
            | "cake"
            | "cake_mq"
            | "taprio"
            | "etf"
            | "cbs"
            | "netem"
            | "mqprio"
            | "drr"
            | "ets"
            | "prio"
            | "multiq"
    )
}

/// Queues that the device uses.
fn queues(device: &Device) -> u32 {
    match device.channels.get() {
        Some(channels) if (channels.combined, channels.tx) != (0, 0) => channels.combined.saturating_add(channels.tx),
        _ => device.tx_queues,
    }
}

/// Somebody put one discipline above all queues: `tc qdisc replace dev … root fq`.
fn replaced(look: &mut Look<'_>, device: &Device) {
    let Some(root) = device.root() else { return };
    let queues = queues(device);
    if queues < 2 || root.kind == "mq" || shapes(&root.kind) || root.kind == "noqueue" || root.kind == "clsact" {
        return;
    }
    look.find(
        Finding::new(
            "mq-replaced",
            Severity::Warning,
            660,
            format!("{} has {queues} queues and one {} for all of them", device.name, root.kind),
        )
        .shows(
            format!("root {} ({}), {queues} queues in use", root.kind, root.handle),
            "now",
            look.facts.host.devices.from.clone(),
        )
        .costs("all CPUs take turns at one lock to send; the card's queues go unused")
        .fix(
            format!("tc qdisc replace dev {} root handle 1: mq", device.name),
            "mq gives each queue default_qdisc; the device stops for a moment",
        )
        .source("net/sched/sch_mq.c; Documentation/networking/multiqueue.rst"),
    );
}

/// `default_qdisc` holds for devices that come up later.
fn not_default(look: &mut Look<'_>, device: &Device) {
    let Some(default) = look.facts.plan.sysctl(DEFAULT).map(str::to_owned) else { return };
    let Some(root) = device.root() else { return };
    let (others, all): (Vec<&QdiscState>, usize) = if root.kind == "mq" {
        (device.leaves().filter(|leaf| leaf.kind != default).collect(), device.leaves().count())
    } else {
        let other = root.kind != default && queues(device) < 2;
        (if other { vec![root] } else { Vec::new() }, 1)
    };
    // pfifo_fast as the default is what a kernel without a choice has, and what somebody chose for the device is theirs.
    if others.is_empty()
        || default == "pfifo_fast"
        || !others.iter().all(|qdisc| matches!(qdisc.kind.as_str(), "pfifo_fast" | "fq_codel"))
    {
        return;
    }
    let command = if root.kind == "mq" {
        format!("tc qdisc replace dev {} root handle 1: mq", device.name)
    } else {
        format!("tc qdisc replace dev {} root {default}", device.name)
    };
    let kinds: std::collections::BTreeSet<&str> = others.iter().map(|qdisc| qdisc.kind.as_str()).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    look.find(
        Finding::new(
            "default-qdisc-not-in-use",
            Severity::Warning,
            410,
            format!("{DEFAULT} is {default}, but {} sends through {}", device.name, kinds.join(" and ")),
        )
        .shows(
            format!("{} of {all} queue disciplines of {} are {}", others.len(), device.name, kinds.join(" and ")),
            "now",
            look.facts.host.devices.from.clone(),
        )
        .costs("the setting does nothing for this device: it holds for devices that come up after it")
        .fix(
            command,
            if root.kind == "mq" {
                "keeps mq and gives each queue default_qdisc; the device stops for a moment, and waiting packets are lost"
            } else {
                "waiting packets are lost; or reboot"
            },
        )
        .source("net/sched/sch_generic.c (attach_default_qdiscs); net/sched/sch_mq.c"),
    );
}

fn one_long_queue(look: &mut Look<'_>, device: &Device) {
    let Some(root) = device.root() else { return };
    let long = |kind: &str| matches!(kind, "pfifo_fast" | "pfifo" | "bfifo");
    let found = if root.kind == "mq" {
        device.leaves().next().is_some() && device.leaves().all(|leaf| long(&leaf.kind))
    } else {
        long(&root.kind)
    };
    let default = look.facts.plan.sysctl(DEFAULT).unwrap_or("");
    // Where another default waits, that finding says it all.
    if !found || !matches!(default, "" | "pfifo_fast" | "pfifo") {
        return;
    }
    let better = ["fq", "fq_codel"].into_iter().find(|kind| look.facts.plan.has(&format!("sch_{kind}")) == Some(true));
    let finding = Finding::new(
        "one-long-queue",
        Severity::Note,
        340,
        format!(
            "{} sends through pfifo_fast: one queue for all, as long as {} frames",
            device.name, device.tx_queue_frames
        ),
    )
    .shows(
        format!("{}; {} frames may wait", root.kind, device.tx_queue_frames),
        "now",
        look.facts.host.devices.from.clone(),
    )
    .costs("where this device is the bottleneck, short answers wait behind large transfers");
    let finding = match better {
        Some(kind) => finding.set(
            &[(DEFAULT, kind.to_owned())],
            "holds for devices that come up later: reboot, or replace the discipline by hand. fq for a host that sends, fq_codel for one that forwards",
        ),
        None => finding.fix("", "this kernel has neither fq nor fq_codel that is known to be there"),
    };
    look.find(finding.source("net/sched/sch_generic.c; RFC 8290"));
}

fn no_queue(look: &mut Look<'_>, device: &Device) {
    if device.root().is_none_or(|root| root.kind != "noqueue") {
        return;
    }
    look.find(
        Finding::new(
            "no-queue",
            Severity::Warning,
            360,
            format!("{} has hardware and no queue discipline", device.name),
        )
        .shows("root noqueue", "now", look.facts.host.devices.from.clone())
        .costs("a burst that the card can't take at once is dropped")
        .fix(
            format!(
                "ip link set {0} txqueuelen 1000 && tc qdisc replace dev {0} root {1}",
                device.name,
                look.facts.plan.sysctl(DEFAULT).unwrap_or("fq_codel")
            ),
            "a queue length of 0 when the device came up is what brings noqueue",
        )
        .source("net/sched/sch_generic.c (attach_one_default_qdisc)"),
    );
}

/// Drops where nobody asked for a bound: the device is the bottleneck, or its queue is too short.
fn drops(look: &mut Look<'_>, device: &Device) {
    let Some(root) = device.root() else { return };
    let (dropped, sent) = match root.kind.as_str() {
        "mq" => device.leaves().fold((0u64, 0u64), |sum, leaf| {
            (sum.0.saturating_add(leaf.dropped), sum.1.saturating_add(leaf.sent_packets))
        }),
        _ => (root.dropped, root.sent_packets),
    };
    let part = share(dropped, sent.saturating_add(dropped));
    // A queue that works as it should drops now and then; one in a thousand is a bottleneck.
    if part < 1e-3 || dropped < 100 {
        return;
    }
    let shaped = shapes(&root.kind);
    look.find(
        Finding::new(
            "qdisc-drops",
            if shaped { Severity::Note } else { Severity::Warning },
            440,
            format!(
                "{} on the way out of {}",
                plural(dropped, "packet was dropped", "packets were dropped"),
                device.name
            ),
        )
        .shows(
            format!("{} {}: {dropped} of {} ({})", root.kind, root.handle, sent.saturating_add(dropped), percent(part)),
            "since the discipline was set up",
            look.facts.host.devices.from.clone(),
        )
        .costs(if shaped {
            "that is how a shaper bounds its rate"
        } else {
            "this device is a bottleneck at times, or programs send in bursts longer than its queue"
        })
        .fix(
            "",
            if is_usual(&root.kind) {
                "more bandwidth, or pacing (fq, BBR); a longer queue only delays"
            } else {
                "see who set it up, and for which rate"
            },
        )
        .source("net/sched/sch_generic.c"),
    );
}
