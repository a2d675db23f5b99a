//! Everything an audit rests on, read from this host.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use facts::{Fact, HostFacts, Listener};
use host::audit::{Tree, listeners};
use host::sysctl;
use host::tcp::diag::{States, each_socket};
use tuning::audit::persistence::{Files, persistence};
use tuning::audit::{Facts, Persistent, Tally, servers};
use tuning::effective::{Dialect, timeline};
use tuning::plan;

use crate::lint::disk::Disk;
use crate::lint::effective::universe;

/// Reads this host. What can't be read stands in the facts with the reason.
pub fn this_host() -> Facts {
    let tree = Tree::of_this_host();
    let plan = crate::plan::facts::of_this_host();
    let mut host = host::audit::read(&tree);
    configured(&tree, &mut host);
    host.connections = connections(&plan, &host);
    let persistence = kept(&plan);
    Facts { plan, host, persistence, observed: None }
}

/// What sizes connections and tells their directions.
pub struct Bounds {
    /// Ports with listeners.
    pub listening: Vec<u16>,
    /// `tcp_rmem`'s third value; the largest number where it isn't known.
    pub largest_receive_buffer: u64,
}

impl Bounds {
    /// Reads them.
    pub fn read() -> Self {
        let rmem = sysctl::read("net.ipv4.tcp_rmem").unwrap_or_default();
        Self {
            listening: host::inventory::listening_ports().unwrap_or_default(),
            largest_receive_buffer: rmem.split(' ').nth(2).and_then(|text| text.parse().ok()).unwrap_or(u64::MAX),
        }
    }
}

fn connections(plan: &plan::Facts, host: &HostFacts) -> Fact<facts::Connections> {
    let from = "netlink SOCK_DIAG_BY_FAMILY (TCP_INFO, memory, congestion control)";
    let range = plan.numbers("net.ipv4.ip_local_port_range").unwrap_or_default();
    let port = |at: usize| range.get(at).and_then(|port| u16::try_from(*port).ok());
    let listening = host.listeners.get().into_iter().flatten().map(|listener| listener.port);
    let rmem = plan.numbers("net.ipv4.tcp_rmem").and_then(|rmem| rmem.get(2).copied()).unwrap_or(u64::MAX);
    // Without a known range no port is an ephemeral one.
    let range = (port(0).unwrap_or(u16::MAX), port(1).unwrap_or(0));
    let mut tally = Tally::new(range, listening, rmem);
    match each_socket(States::ALL, |sample| tally.add(sample)) {
        Ok(()) => Fact::known(from, tally.finish()),
        Err(error) if error.raw_os_error() == Some(nix::libc::ENOENT) => {
            Fact::missing(from, "this kernel has no socket diagnostics for TCP (module tcp_diag)")
        }
        Err(error) => Fact::missing(from, error),
    }
}

/// Finds the lines of nginx's and HAProxy's configuration, as those programs see their files.
fn configured(tree: &Tree, host: &mut HostFacts) {
    let Some(all) = host.listeners.value.as_mut() else { return };
    let mut lines: HashMap<u32, Vec<servers::Listen>> = HashMap::new();
    for Listener { address, port, owners, configured, .. } in all {
        let Some(owner) = owners.iter().find(|owner| matches!(owner.name.as_str(), "nginx" | "haproxy")) else {
            continue;
        };
        let lines = lines.entry(owner.pid).or_insert_with(|| {
            // Its own root: it may run in a container of its own, in this network namespace.
            let root = Disk::new(Path::new(&format!("/proc/{}/root", owner.pid)));
            let words = listeners::command_line(tree, owner.pid);
            let files = servers::files_of(&root, &owner.name, &words).unwrap_or_default();
            match owner.name.as_str() {
                "nginx" => files.first().map(|file| servers::nginx(&root, file)).unwrap_or_default(),
                _ => servers::haproxy(&root, &files),
            }
        });
        *configured = servers::for_listener(lines, *address, *port).cloned();
    }
}

/// What becomes of each setting at the next boot.
fn kept(plan: &plan::Facts) -> Vec<Persistent> {
    let disk = Disk::new(Path::new("/"));
    let universe = universe(&disk);
    let boot = timeline::boot(&disk, &universe);
    let system = timeline::sysctl_system(&disk, &universe, Dialect::Procps);
    let modules = built_in(timeline::modules_loaded_at_boot(&disk));
    let mut live: BTreeMap<String, String> = plan.sysctls.clone();
    for path in boot.verdicts().keys().chain(system.verdicts().keys()) {
        let Ok(key) = tuning::Key::parse(path) else { continue };
        let key = key.to_string();
        if let std::collections::btree_map::Entry::Vacant(entry) = live.entry(key)
            && let Ok(value) = sysctl::read(path)
        {
            entry.insert(value);
        }
    }
    let files = Files { boot: &boot, system: &system, modules: &modules };
    persistence(&files, &live, plan.kernel.parse().ok())
}

/// With the modules that are part of the kernel, which are there before any file is read.
fn built_in(mut modules: std::collections::BTreeSet<String>) -> std::collections::BTreeSet<String> {
    for module in ["nf_conntrack", "br_netfilter", "tcp_bbr", "ip_vs", "mptcp", "sctp", "bridge"] {
        // A loaded module has a state; one that is built in has a folder at most.
        let folder = Path::new("/sys/module").join(module);
        if folder.exists() && !folder.join("initstate").exists() {
            modules.insert(module.to_owned());
        }
    }
    modules
}
