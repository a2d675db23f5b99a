//! Network devices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Fact;

/// A network device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// `veth`, `bridge`, `bond`, …; empty where the kernel says none, as for hardware.
    pub kind: String,
    /// Whether there is hardware behind it, emulated hardware included.
    pub physical: bool,
    /// Whether it is up and has a carrier.
    pub up: bool,
    /// Bytes of payload in a frame.
    pub mtu_bytes: u32,
    /// Frames that its queue discipline may hold by default.
    pub tx_queue_frames: u32,
    /// Queues towards the wire.
    pub tx_queues: u32,
    /// Queues from the wire.
    pub rx_queues: u32,
    /// The driver's name.
    pub driver: Fact<String>,
    /// Bits per second of the link.
    pub speed_bps: Fact<u64>,
    /// `full`, `half`.
    pub duplex: Fact<String>,
    /// Descriptors of the rings, and their maxima.
    pub rings: Fact<Rings>,
    /// Queues that are used, and their maxima.
    pub channels: Fact<Channels>,
    /// Offloads by their short names (`tso`, `gso`, `gro`, `rx-checksum`, …) and whether they are on.
    pub offloads: BTreeMap<String, bool>,
    /// What it has counted.
    pub counters: DeviceCounters,
    /// Its queue disciplines, as the kernel lists them.
    pub qdiscs: Vec<QdiscState>,
}

impl Device {
    /// Its first queue discipline.
    pub fn root(&self) -> Option<&QdiscState> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent == "root")
    }

    /// The disciplines below `mq`, each at one queue.
    pub fn leaves(&self) -> impl Iterator<Item = &QdiscState> {
        let major = self.root().filter(|root| root.kind == "mq").map(|root| root.handle.clone());
        self.qdiscs.iter().filter(move |qdisc| {
            major.as_ref().is_some_and(|major| qdisc.parent != "root" && qdisc.parent.starts_with(major.as_str()))
        })
    }
}

/// Descriptors of a device's rings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// For reception, now.
    pub rx: u32,
    /// For reception, at most.
    pub rx_max: u32,
    /// For sending, now.
    pub tx: u32,
    /// For sending, at most.
    pub tx_max: u32,
}

/// Queues of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// Reception only.
    pub rx: u32,
    /// Sending only.
    pub tx: u32,
    /// Both.
    pub combined: u32,
    /// Both, at most.
    pub combined_max: u32,
}

/// What a device has counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceCounters {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Bad packets received.
    pub rx_errors: u64,
    /// Problems while sending.
    pub tx_errors: u64,
    /// Received and thrown away, for want of memory, or because nobody wanted the protocol.
    pub rx_dropped: u64,
    /// Not sent.
    pub tx_dropped: u64,
    /// Missed because the host had no free descriptor.
    pub rx_missed: u64,
    /// The device's own buffer ran over.
    pub rx_fifo_errors: u64,
    /// Longer or shorter than they should be.
    pub rx_frame_errors: u64,
    /// Wrong checksum on the wire.
    pub rx_crc_errors: u64,
    /// Carrier lost while sending.
    pub tx_carrier_errors: u64,
}

/// A queue discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QdiscState {
    /// `fq_codel`, `mq`, `htb`, …
    pub kind: String,
    /// `8001:`; `0:` where the kernel put it there by itself.
    pub handle: String,
    /// `root`, `ingress`, or the class it hangs below (`8001:2`).
    pub parent: String,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Times it held a packet back to keep a rate.
    pub overlimits: u64,
    /// Packets the device gave back.
    pub requeues: u64,
    /// Bytes that wait.
    pub backlog_bytes: u64,
    /// Packets that wait.
    pub backlog_packets: u64,
}
