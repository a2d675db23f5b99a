//! What the kernel has counted, and how full its tables are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counters by `Group.Name`. Those that a kernel doesn't have are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(pub BTreeMap<String, u64>);

impl Counters {
    /// A counter; `None` where this kernel has none of that name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// How much each has grown since `earlier`. A counter that has shrunk was set back, and counts from zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = |(name, now): (&String, &u64)| {
            let before = earlier.0.get(name).copied().unwrap_or(0);
            (name.clone(), now.checked_sub(before).unwrap_or(*now))
        };
        Self(self.0.iter().map(grown).collect())
    }
}

/// One CPU's line of `/proc/net/softnet_stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftnetCpu {
    /// The CPU.
    pub cpu: u32,
    /// Packets.
    pub processed: u64,
    /// Dropped because `netdev_max_backlog` was reached.
    pub dropped: u64,
    /// Rounds that ended with work left.
    pub squeezed: u64,
    /// Dropped by the limit for one flow.
    pub flow_limited: u64,
}

/// Sockets and their memory: `/proc/net/sockstat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sockstat {
    /// TCP sockets of this namespace over IPv4.
    pub tcp_in_use: u64,
    /// TCP sockets that no program holds any more, of the whole host.
    pub tcp_orphans: u64,
    /// Connections in TIME_WAIT, of this namespace.
    pub tcp_time_wait: u64,
    /// TCP sockets of the whole host.
    pub tcp_allocated: u64,
    /// Memory of all TCP sockets of the host, in pages.
    pub tcp_memory_pages: u64,
    /// Memory of all UDP sockets of the host, in pages.
    pub udp_memory_pages: u64,
}

/// Tracked connections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conntrack {
    /// Connections now.
    pub count: u64,
    /// Connections at most.
    pub max: u64,
    /// Lists of the table.
    pub buckets: Option<u64>,
    /// Packets dropped because there was no room for their connection; `None` where the kernel doesn't show it.
    pub dropped: Option<u64>,
    /// Connections thrown away early to make room.
    pub early_dropped: Option<u64>,
    /// Connections that could not be entered.
    pub insert_failed: Option<u64>,
}

/// A UDP socket that has dropped packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpDrops {
    /// Its own port.
    pub port: u16,
    /// Packets dropped, mostly because its buffer was full.
    pub dropped: u64,
    /// Programs that hold it.
    #[serde(default)]
    pub owners: Vec<crate::Owner>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_counts_from_zero_after_a_reset() {
        let of = |pairs: &[(&str, u64)]| Counters(pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect());
        let grown = of(&[("a", 5), ("b", 2), ("c", 1)]).since(&of(&[("a", 3), ("b", 9)]));
        assert_eq!(grown, of(&[("a", 2), ("b", 2), ("c", 1)]));
    }
}
