//! What a host shows, as plain values. `host` reads them, `tuning` judges them, and neither knows the other.
//!
//! Every value says where it was looked for, and a value that is missing says why ([`Fact`]). Units stand in the names, as in the JSON
//! that these types become.
//!
//! | module | what |
//! | --- | --- |
//! | [`fact`] | a value with its place, or the reason why there is none |
//! | [`system`] | distribution, virtualisation, what is forbidden here, congestion controls |
//! | [`device`] | network devices, their queues, rings, offloads and queue disciplines |
//! | [`counters`] | what the kernel has counted since boot, and how full its tables are |
//! | [`socket`] | one TCP socket, and listeners with their programs |
//! | [`observed`] | what many looks at all sockets add up to |
#![forbid(unsafe_code)]

pub mod counters;
pub mod device;
pub mod fact;
pub mod observed;
pub mod socket;
pub mod system;

use serde::{Deserialize, Serialize};

pub use counters::{Conntrack, Counters, Sockstat, SoftnetCpu, UdpDrops};
pub use device::{Channels, Device, DeviceCounters, QdiscState, Rings};
pub use fact::Fact;
pub use observed::{Connections, Group, Observed, PortUse, Spread};
pub use socket::{Configured, Info, Listener, Memory, Owner, Sample};
pub use system::{Control, Forbidden, System};

/// Everything that was read from one host at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// When, in seconds since 1970.
    pub read_at_unix_seconds: u64,
    /// The machine and its rules.
    pub system: System,
    /// Congestion controls, told apart by what they do.
    pub controls: Fact<Vec<Control>>,
    /// Network devices of this namespace, `lo` included.
    pub devices: Fact<Vec<Device>>,
    /// Counters of the protocols since boot: `Tcp.RetransSegs`, `TcpExt.ListenDrops`, `Udp6.RcvbufErrors`.
    pub counters: Fact<Counters>,
    /// What each CPU's receive soft interrupt has counted.
    pub softnet_cpus: Fact<Vec<SoftnetCpu>>,
    /// Sockets and their memory.
    pub sockstat: Fact<Sockstat>,
    /// Tracked connections.
    pub conntrack: Fact<Conntrack>,
    /// UDP sockets that have dropped something.
    pub udp_drops: Fact<Vec<UdpDrops>>,
    /// TCP listeners, with their programs.
    pub listeners: Fact<Vec<Listener>>,
    /// What all connections together show at one look.
    pub connections: Fact<Connections>,
}
