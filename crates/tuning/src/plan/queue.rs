//! Queues of this host: what paces and shares on the way out, and what waits for a CPU on the way in.

use super::draft::{Draft, Reasons};
use super::{Change, ChangeKind, Place, Role};

const DEFAULT: &str = "net.core.default_qdisc";
const BACKLOG: &str = "net.core.netdev_max_backlog";
const BUDGET: &str = "net.core.netdev_budget";
const BUDGET_TIME: &str = "net.core.netdev_budget_usecs";

/// What this role wants, where the kernel has it, and why.
struct Wish {
    kinds: &'static [&'static str],
    why: &'static str,
    effect: &'static str,
}

fn wish(role: Role) -> Wish {
    if role.forwards() {
        return Wish {
            kinds: &["fq_codel"],
            why: "a host that forwards mixes flows it does not pace: its queue has to share and to stay short",
            effect: "no flow makes the others wait; queues stay near 5 ms",
        };
    }
    if role.serves() || role == Role::Bulk {
        return Wish {
            kinds: &["fq"],
            why: "a host that sends many or fast flows paces each: fq does it with one timer per queue instead of one per socket",
            effect: "less CPU for pacing, and no bursts into the first short queue of the path",
        };
    }
    Wish {
        kinds: &["fq_codel"],
        why: "pfifo_fast is one long queue: a large transfer makes everything else wait",
        effect: "short answers pass large transfers",
    }
}

/// Defaults of kernels and distributions: what is none of these was chosen by somebody.
fn is_usual(kind: &str) -> bool {
    matches!(kind, "pfifo_fast" | "fq_codel")
}

pub(super) fn plan(draft: &mut Draft<'_>) {
    discipline(draft);
    backlog(draft);
}

fn discipline(draft: &mut Draft<'_>) {
    let Some(there) = draft.facts.sysctl(DEFAULT) else { return };
    let role = draft.target.role;
    let wish = wish(role);
    let good =
        |kind: &str| wish.kinds.contains(&kind) || matches!(kind, "fq" | "cake") && !role.forwards() || kind == "cake";
    if good(there) {
        draft.keep(DEFAULT, "what this role wants");
    } else if !is_usual(there) {
        draft.keep(DEFAULT, "somebody chose it");
    } else if !role.forwards() && !role.serves() && role != Role::Bulk && there == "fq_codel" {
        draft.keep(DEFAULT, "shares between flows and keeps queues short");
    } else {
        let known = |kind: &&&str| draft.facts.has(&format!("sch_{kind}")).unwrap_or(false);
        match wish.kinds.iter().find(known) {
            Some(kind) => {
                let reasons = Reasons {
                    why: wish.why.to_owned(),
                    effect: wish.effect,
                    risk: "holds for devices that come up from now on; an unknown name is refused".to_owned(),
                };
                draft.set(DEFAULT, kind, reasons);
            }
            None => {
                let names = wish.kinds.join(" or ");
                let absent = wish.kinds.iter().all(|kind| draft.facts.has(&format!("sch_{kind}")) == Some(false));
                let why =
                    if absent { "but this kernel has none" } else { "but it isn't known whether this kernel has it" };
                draft.keep(DEFAULT, format!("{names} would be better here, {why}"));
            }
        }
    }
    let to = draft.planned(DEFAULT).unwrap_or_default().to_owned();
    if good(&to) {
        devices(draft, &to, &wish);
    }
}

/// Devices that are up keep their discipline: each needs a change of its own.
fn devices(draft: &mut Draft<'_>, to: &str, wish: &Wish) {
    let Some(interfaces) = &draft.facts.interfaces else { return };
    for device in interfaces.iter().filter(|device| device.physical && !device.configured) {
        let (key, from) = if device.qdisc == "mq" {
            let old: Vec<&str> = device.leaves.iter().map(String::as_str).filter(|leaf| *leaf != to).collect();
            if old.is_empty() || !old.iter().all(|leaf| is_usual(leaf)) {
                continue;
            }
            (format!("{} leaves", device.name), device.leaves.join(" "))
        } else if is_usual(&device.qdisc) && device.qdisc != to {
            (format!("{} root", device.name), device.qdisc.clone())
        } else {
            continue;
        };
        let value = if device.qdisc == "mq" { vec![to; device.leaves.len()].join(" ") } else { to.to_owned() };
        draft.push(Change {
            kind: ChangeKind::Qdisc,
            key,
            from,
            to: value,
            place: Place::Host,
            why: format!("default_qdisc changes no device that is up; {}", wish.why),
            effect: wish.effect.to_owned(),
            risk: "packets that wait at that moment are lost; mq stays where it is, only its queues change".to_owned(),
            source: "net/sched/sch_generic.c; net/sched/sch_mq.c".to_owned(),
        });
    }
}

/// Only where the kernel has counted drops or squeezes: a usual network card doesn't use the backlog at all.
fn backlog(draft: &mut Draft<'_>) {
    let Some(counted) = draft.facts.softnet else { return };
    if counted.dropped > 0 {
        // What 10 ms bring at this rate in packets of 1500 bytes.
        let burst = draft.target.bandwidth.as_bps() / 8 / 1500 / 100;
        let to = burst.clamp(2_000, 16_384).next_multiple_of(1_000).min(16_384);
        let why = format!(
            "since boot {} packets were dropped because {BACKLOG} was reached (/proc/net/softnet_stat, second column); 10 ms at {} are \
             {burst} packets",
            counted.dropped, draft.target.bandwidth
        );
        let effect = "bursts through RPS, veth or a tunnel wait instead of being dropped";
        let risk = format!("up to {to} packets wait for one CPU");
        draft.raise(
            BACKLOG,
            &[to],
            Reasons { why, effect, risk },
            "the drops that were counted came before, or more would only wait",
        );
    } else {
        draft.keep(BACKLOG, "no packet was dropped here since boot (/proc/net/softnet_stat, second column)");
    }
    let often = counted.squeezed.saturating_mul(1_000) > counted.processed;
    if often {
        let why = format!(
            "the receive loop ended {} times with work left, for {} packets (/proc/net/softnet_stat, third column)",
            counted.squeezed, counted.processed
        );
        let effect = "fewer rounds for the same packets";
        let reasons = || Reasons { why: why.clone(), effect, risk: String::new() };
        draft.raise(BUDGET, &[600], reasons(), "twice the usual budget already");
        draft.raise(BUDGET_TIME, &[16_000], reasons(), "twice the usual time already");
    } else {
        draft.keep(BUDGET, "the receive loop seldom ends with work left (/proc/net/softnet_stat, third column)");
    }
}
