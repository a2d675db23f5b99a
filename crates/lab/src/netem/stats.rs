//! A qdisc's own account of itself, out of an rtnetlink message.

use netlink_packet_core::Nla;
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcOption, TcStats2};
use units::Bytes;

use super::options::{ETHERNET_HEADER, KIND, Netem};

const TCA_OPTIONS: u16 = 2;
const TCA_STATS_PKT64: u16 = 8;

/// What a qdisc counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QdiscStats {
    /// Packets that left it.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: Bytes,
    /// Packets it dropped, for whatever reason.
    pub dropped: u64,
    /// Packets inside.
    pub backlog_packets: u32,
    /// Their IP bytes.
    pub backlog_bytes: Bytes,
}

impl QdiscStats {
    /// Reads `TCA_STATS2` of a message about a qdisc on an Ethernet device; `None` where it has none.
    pub fn of(message: &TcMessage) -> Option<Self> {
        let stats = message.attributes.iter().find_map(|attribute| match attribute {
            TcAttribute::Stats2(stats) => Some(stats),
            _ => None,
        })?;
        let mut found = Self::default();
        let (mut sent, mut inside) = (0, 0);
        for part in stats {
            match part {
                TcStats2::Basic(basic) => {
                    sent = basic.bytes;
                    found.sent_packets = found.sent_packets.max(u64::from(basic.packets));
                }
                TcStats2::Queue(queue) => {
                    found.backlog_packets = queue.qlen;
                    found.dropped = u64::from(queue.drops);
                    inside = u64::from(queue.backlog);
                }
                // Given where the packets no longer fit into 32 bits.
                TcStats2::Other(nla) if nla.kind() == TCA_STATS_PKT64 && nla.value_len() == 8 => {
                    let mut value = [0; 8];
                    nla.emit_value(&mut value);
                    found.sent_packets = u64::from_ne_bytes(value);
                }
                _ => {}
            }
        }
        found.sent_bytes = ip_bytes(sent, found.sent_packets);
        found.backlog_bytes = ip_bytes(inside, u64::from(found.backlog_packets));
        Some(found)
    }
}

fn ip_bytes(frame_bytes: u64, frames: u64) -> Bytes {
    Bytes::new(frame_bytes).saturating_sub(ETHERNET_HEADER.saturating_mul(frames))
}

/// The options of a message about a netem qdisc; `None` for another kind, or where they can't be read.
pub fn options_of(message: &TcMessage) -> Option<Netem> {
    let is_netem =
        message.attributes.iter().any(|attribute| matches!(attribute, TcAttribute::Kind(kind) if kind == KIND));
    if !is_netem {
        return None;
    }
    message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Options(options) => options.iter().find_map(|option| match option {
            TcOption::Other(nla) if nla.kind() == TCA_OPTIONS => {
                let mut value = vec![0; nla.value_len()];
                nla.emit_value(&mut value);
                Netem::from_options(&value).ok()
            }
            _ => None,
        }),
        _ => None,
    })
}
