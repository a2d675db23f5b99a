//! What a host shows, as plain values: read by others, or written by hand for a host that isn't there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts about one host. Everything but the kernel and the memory may be missing: what isn't known isn't planned for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// Memory of the host.
    pub memory_bytes: u64,
    /// The host's name.
    #[serde(default)]
    pub hostname: String,
    /// A fingerprint of its machine-id.
    #[serde(default)]
    pub machine: String,
    /// Size of a page; 4096 where not said.
    #[serde(default = "usual_page")]
    pub page_bytes: u64,
    /// Values of sysctl keys, by name with dots, whitespace normalised.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// Whether this kernel has modules (`tcp_bbr`, `sch_fq`, …). Those not named are not known.
    #[serde(default)]
    pub modules: BTreeMap<String, Presence>,
    /// Network devices that are up, without `lo`. `None`: not looked at.
    #[serde(default)]
    pub interfaces: Option<Vec<Interface>>,
    /// Ports on which something listens over TCP. `None`: not looked at.
    #[serde(default)]
    pub listening_ports: Option<Vec<u16>>,
    /// Entries of the neighbour table (IPv4).
    #[serde(default)]
    pub neighbours: Option<u64>,
    /// What the receive soft interrupt counted since boot.
    #[serde(default)]
    pub softnet: Option<Softnet>,
    /// Whether this was read in a container or another network namespace than the host's.
    #[serde(default)]
    pub container: bool,
}

fn usual_page() -> u64 {
    4096
}

/// Whether a kernel has a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// Built in or loaded.
    Present,
    /// It can be loaded.
    Loadable,
    /// The kernel has none.
    Absent,
}

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kind of its root queue discipline: `mq`, `fq_codel`, `noqueue`.
    pub qdisc: String,
    /// The kinds of the disciplines below `mq`; empty for others.
    #[serde(default)]
    pub leaves: Vec<String>,
    /// Whether somebody set the root by hand: its handle isn't the kernel's own 0.
    #[serde(default)]
    pub configured: bool,
    /// Whether there is hardware behind it.
    #[serde(default)]
    pub physical: bool,
}

/// Sums over all CPUs of `/proc/net/softnet_stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Softnet {
    /// Packets.
    pub processed: u64,
    /// Packets dropped because `netdev_max_backlog` was reached.
    pub dropped: u64,
    /// Rounds that ended with work left.
    pub squeezed: u64,
}

impl Facts {
    /// A key's value.
    pub fn sysctl(&self, key: &str) -> Option<&str> {
        self.sysctls.get(key).map(String::as_str)
    }

    /// A key's value as numbers; `None` where it isn't known or holds something else.
    pub fn numbers(&self, key: &str) -> Option<Vec<u64>> {
        let fields: Result<Vec<u64>, _> = self.sysctl(key)?.split_whitespace().map(str::parse).collect();
        fields.ok().filter(|fields| !fields.is_empty())
    }

    /// A key's first number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.numbers(key)?.first().copied()
    }

    /// Whether the kernel can use a module; `None`: not known.
    pub fn has(&self, module: &str) -> Option<bool> {
        self.modules.get(module).map(|presence| *presence != Presence::Absent)
    }
}
