//! TCP sockets.

use core::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// `TCP_ESTABLISHED` of include/net/tcp_states.h.
pub const ESTABLISHED: u8 = 1;
/// `TCP_TIME_WAIT`.
pub const TIME_WAIT: u8 = 6;
/// `TCP_LISTEN`.
pub const LISTEN: u8 = 10;

/// One TCP socket at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The kernel's number for it, never used twice while the machine runs.
    pub cookie: u64,
    /// Its state (include/net/tcp_states.h).
    pub state: u8,
    /// Its own address and port.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
    /// The inode by which `/proc/PID/fd` names it; 0 where no program holds it.
    pub inode: u32,
    /// Bytes not yet read by the program; of a listener, connections that wait for accept(2).
    pub receive_queue: u32,
    /// Bytes sent and not acknowledged; of a listener, its backlog.
    pub send_queue: u32,
    /// Its congestion control's name, filled with zeros; all zero where it has none.
    pub control: [u8; 16],
    /// Its memory.
    pub memory: Option<Memory>,
    /// What TCP_INFO tells.
    pub info: Option<Info>,
}

impl Sample {
    /// A socket without anything known.
    pub fn new(state: u8, local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            cookie: 0,
            state,
            local,
            remote,
            inode: 0,
            receive_queue: 0,
            send_queue: 0,
            control: [0; 16],
            memory: None,
            info: None,
        }
    }

    /// The congestion control's name; empty where it has none.
    pub fn control_name(&self) -> &str {
        let end = self.control.iter().position(|byte| *byte == 0).unwrap_or(self.control.len());
        core::str::from_utf8(&self.control[..end]).unwrap_or("")
    }
}

/// Memory of a socket, in bytes (`INET_DIAG_SKMEMINFO`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Its receive buffer's limit.
    pub receive_buffer: u32,
    /// Its send buffer's limit.
    pub send_buffer: u32,
    /// Packets it has dropped.
    pub drops: u32,
}

/// The part of `struct tcp_info` that an audit looks at. Times are in microseconds, sizes in bytes, rates in bytes per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Info {
    /// `TCPI_OPT_*` bits.
    pub options: u8,
    /// Whether the last delivery rate was limited by the program.
    pub app_limited: bool,
    /// Smoothed round-trip time; 0: none yet.
    pub rtt_us: u32,
    /// Least round-trip time; `None`: none yet.
    pub min_rtt_us: Option<u32>,
    /// Round-trip time as the receiver sees it; 0: none yet.
    pub receiver_rtt_us: u32,
    /// Latest delivery rate.
    pub delivery_rate: u64,
    /// Time with data outstanding.
    pub busy_us: u64,
    /// Part of it held by the peer's receive window.
    pub rwnd_limited_us: u64,
    /// Part of it held by the send buffer.
    pub sndbuf_limited_us: u64,
    /// Bytes queued and never sent.
    pub unsent: u32,
    /// Payload of a full segment.
    pub mss: u32,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Segments sent and not acknowledged.
    pub unacked_segments: u32,
    /// Payload acknowledged.
    pub bytes_acked: u64,
    /// Payload received.
    pub bytes_received: u64,
    /// Segments with data sent, retransmissions included.
    pub data_segments_out: u32,
    /// Segments retransmitted.
    pub retransmitted_segments: u32,
    /// Duplicate SACKs received: retransmissions that were not needed.
    pub spurious_segments: u32,
    /// The peer's window.
    pub send_window: u32,
    /// Our window; 0 before Linux 6.2.
    pub receive_window: u32,
}

/// Timestamps were agreed on.
pub const OPTION_TIMESTAMPS: u8 = 1;
/// Selective acknowledgements were agreed on.
pub const OPTION_SACK: u8 = 2;
/// Window scaling was agreed on.
pub const OPTION_WINDOW_SCALING: u8 = 4;
/// ECN was agreed on.
pub const OPTION_ECN: u8 = 8;
/// A packet with an ECN mark came.
pub const OPTION_ECN_SEEN: u8 = 16;

/// A TCP listener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// Where it listens.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Connections that wait for accept(2).
    pub queued: u32,
    /// How many may wait: what the program asked for, bounded by `somaxconn`. `None` where the kernel doesn't show it.
    pub backlog: Option<u32>,
    /// Programs that hold it; empty where they could not be found.
    #[serde(default)]
    pub owners: Vec<Owner>,
    /// The line of the program's configuration that decides the backlog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<Configured>,
    /// The inode, to find the owners.
    #[serde(skip)]
    pub inode: u32,
}

/// A program that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// Its name (`comm`).
    pub name: String,
}

/// A line of a server's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    /// `nginx`, `haproxy`.
    pub program: String,
    /// The file, as the program sees it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// The backlog it names; `None`: the program's own default.
    #[serde(default)]
    pub backlog: Option<u64>,
}
