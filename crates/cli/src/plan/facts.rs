//! Facts for a plan: of this host, read only.

use std::collections::BTreeMap;

use host::{container, inventory, qdisc, sysctl};
use tuning::Catalogue;
use tuning::catalogue::{Access, Importance};
use tuning::plan::{Facts, Interface, Presence, Softnet};
use units::Bytes;

use crate::document;

/// Modules that a plan may ask for, and a function each has.
const MODULES: [(&str, &str); 4] = [
    ("tcp_bbr", "bbr_main"),
    ("sch_fq", "fq_enqueue"),
    ("sch_fq_codel", "fq_codel_enqueue"),
    ("sch_cake", "cake_enqueue"),
];

/// This key is host-wide on every kernel so far, and other namespaces don't have it.
const OF_THE_HOST: &str = "net.core.netdev_max_backlog";

/// How it is known that this is not the host itself; `None`: it is.
pub fn not_the_host() -> Option<String> {
    match container::detect() {
        Some(container) => Some(format!("a {} container ({})", container.manager, container.evidence)),
        None if sysctl::read(OF_THE_HOST).is_err() => {
            Some(format!("another network namespace than the host's ({OF_THE_HOST} is not there)"))
        }
        None => None,
    }
}

/// Which host this is, and nothing more: the rest takes a hundred times as long.
pub fn identity() -> Facts {
    Facts {
        kernel: document::release(),
        memory_bytes: inventory::memory_bytes().unwrap_or(0),
        hostname: sysctl::read("kernel.hostname").unwrap_or_default(),
        machine: inventory::fingerprint(),
        container: not_the_host().is_some(),
        ..Facts::default()
    }
}

/// Reads this host. What can't be read is left out.
pub fn of_this_host() -> Facts {
    Facts {
        page_bytes: inventory::page_bytes(),
        sysctls: sysctls(),
        modules: MODULES
            .iter()
            .zip(inventory::presence(MODULES))
            .filter_map(|((module, _), there)| Some(((*module).to_owned(), presence(there?))))
            .collect(),
        interfaces: interfaces(),
        listening_ports: inventory::listening_ports(),
        neighbours: inventory::neighbours(),
        softnet: inventory::softnet().map(|(processed, dropped, squeezed)| Softnet { processed, dropped, squeezed }),
        ..identity()
    }
}

/// Every key that decides performance, and what a plan looks at besides.
fn sysctls() -> BTreeMap<String, String> {
    let more = ["net.ipv4.tcp_adv_win_scale", "net.netfilter.nf_conntrack_count"];
    let main = Catalogue::builtin()
        .knobs()
        .iter()
        .filter(|knob| knob.importance == Importance::Main && knob.access != Access::WriteOnly);
    let names = main.map(|knob| knob.name.replace('*', "default")).chain(more.map(str::to_owned));
    names.filter_map(|key| sysctl::read(&key).ok().map(|value| (key, value))).collect()
}

fn presence(there: inventory::Presence) -> Presence {
    match there {
        inventory::Presence::Present => Presence::Present,
        inventory::Presence::Loadable => Presence::Loadable,
        inventory::Presence::Absent => Presence::Absent,
    }
}

fn interfaces() -> Option<Vec<Interface>> {
    let all = qdisc::list().ok()?;
    let devices = inventory::devices_up().into_iter().filter_map(|(name, index, physical)| {
        let root = all.iter().find(|qdisc| qdisc.index == index && qdisc.root)?;
        let below = all.iter().filter(|qdisc| qdisc.index == index && !qdisc.root);
        let leaves = if root.kind == "mq" { below.map(|qdisc| qdisc.kind.clone()).collect() } else { Vec::new() };
        Some(Interface { name, qdisc: root.kind.clone(), leaves, configured: root.handle != 0, physical })
    });
    Some(devices.collect())
}

/// The same host with other memory: `tcp_mem`, which the kernel sizes by memory, is no longer known then.
pub fn with_memory(mut facts: Facts, memory: Bytes) -> Facts {
    if facts.memory_bytes != memory.as_u64() {
        facts.memory_bytes = memory.as_u64();
        facts.sysctls.remove("net.ipv4.tcp_mem");
    }
    facts
}
