//! Everything an audit looks at, read only. Nothing here starts a program, and nothing judges.
//!
//! | module | what |
//! | --- | --- |
//! | [`tree`] | files of this machine, or of a folder with a copy of another's |
//! | [`system`] | distribution, virtualisation, containers, permissions, congestion controls |
//! | [`counters`] | protocol counters, soft interrupts, socket memory, tracked connections |
//! | [`devices`], [`ethtool`] | devices with their queue disciplines, rings and offloads |
//! | [`listeners`] | who listens with which backlog |
//!
//! All that belongs to a network namespace is read for the calling thread's.

pub mod counters;
pub mod devices;
pub mod ethtool;
pub mod listeners;
pub mod system;
pub mod tree;

use std::time::{SystemTime, UNIX_EPOCH};

use facts::{Fact, Forbidden, HostFacts};

pub use tree::Tree;

/// Reads all but the connections, which [`each_socket`](crate::tcp::diag::each_socket) gives one by one.
pub fn read(tree: &Tree) -> HostFacts {
    let mut facts = HostFacts {
        read_at_unix_seconds: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        system: system::read(tree),
        controls: system::controls(tree),
        devices: if tree.is_this_host() { devices::read() } else { Fact::missing("netlink", "not this host") },
        counters: counters::read(tree),
        softnet_cpus: counters::softnet(tree),
        sockstat: counters::sockstat(tree),
        conntrack: counters::conntrack(tree),
        listeners: listeners::read(tree),
        ..HostFacts::default()
    };
    let (udp_drops, hidden) = listeners::owners(tree, &mut facts.listeners);
    facts.udp_drops = udp_drops;
    if hidden > 0 {
        facts.system.forbidden.push(Forbidden {
            what: "finding the programs behind some sockets".to_owned(),
            why: format!(
                "{hidden} processes of others can't be looked into (run it as root; or /proc is mounted with hidepid)"
            ),
        });
    }
    facts
}

/// Any bytes in place of everything that is read: for tests, which ask only that nothing panics.
#[doc(hidden)]
pub fn exercise(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    counters::exercise(&text);
    system::exercise(&text);
    devices::exercise(bytes);
    crate::tcp::diag::exercise(bytes);
}
