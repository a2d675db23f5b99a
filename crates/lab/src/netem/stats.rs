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

#[cfg(test)]
mod tests {
    use netlink_packet_core::{DefaultNla, NetlinkMessage, NetlinkPayload};
    use netlink_packet_route::RouteNetlinkMessage;
    use units::{Duration, Rate};

    use super::super::options::{Loss, Serializer};
    use super::*;

    /// What Linux 6.12.117 answered about a bottleneck of 10 Mbit/s while 669 packets waited in it.
    #[rustfmt::skip]
    const ANSWER: &[u8] = &[
        0x10, 1, 0, 0, 0x24, 0, 0, 0, 8, 0, 0, 0, 0x53, 0x38, 0xb9, 0xc0,  // nlmsghdr: RTM_NEWQDISC
        0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0,  // tcmsg: device 2, handle 1:, root
        0x0a, 0, 1, 0, 0x6e, 0x65, 0x74, 0x65, 0x6d, 0, 0, 0,  // TCA_KIND
        0x7c, 0, 2, 0, 0, 0, 0, 0, 0x10, 0x27, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  // TCA_OPTIONS: tc_netem_qopt
        0x0c, 0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0,  // LATENCY64
        0x0c, 0, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0,  // JITTER64
        0x10, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  // CORR
        0x0c, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0,  // REORDER
        0x0c, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0,  // CORRUPT
        0x14, 0, 6, 0, 0xd0, 0x12, 0x13, 0, 0xf2, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0,  // RATE
        0x0c, 0, 0x0e, 0, 2, 0x75, 0x4f, 0x5b, 0x4c, 0x1f, 0xea, 0x30,  // PRNG_SEED
        5, 0, 0x0c, 0, 0, 0, 0, 0,  // TCA_HW_OFFLOAD
        0x30, 0, 7, 0,  // TCA_STATS2
        0x14, 0, 1, 0, 0x5e, 0x31, 0x56, 0, 0, 0, 0, 0, 0x93, 0x0e, 0, 0, 0, 0, 0, 0,  // TCA_STATS_BASIC
        0x18, 0, 3, 0, 0x9d, 2, 0, 0, 0x82, 0x74, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  // TCA_STATS_QUEUE
        0x2c, 0, 3, 0, 0x5e, 0x31, 0x56, 0, 0, 0, 0, 0, 0x93, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x9d, 2, 0, 0, 0x82, 0x74, 0x0f, 0, 0, 0, 0, 0,  // TCA_STATS
    ];

    fn parse(bytes: &[u8]) -> Result<TcMessage, String> {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).map_err(|error| error.to_string())?;
        match message.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(message)) => Ok(message),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_kernels_answer_about_a_bottleneck_is_understood() {
        let message = parse(ANSWER).unwrap();
        let stats = QdiscStats {
            sent_packets: 3_731,
            sent_bytes: Bytes::new(3_731 * 1_500),
            dropped: 0,
            backlog_packets: 669,
            backlog_bytes: Bytes::new(669 * 1_500),
        };
        assert_eq!(QdiscStats::of(&message), Some(stats));
        let netem = Netem {
            latency: Duration::ZERO,
            limit: 10_000,
            loss: Loss::None,
            rate: Some(Serializer::new(Rate::from_mbps(10), Bytes::ZERO)),
            // The kernel's own, since there is no loss.
            seed: Some(0x30ea1f4c5b4f7502),
        };
        assert_eq!(options_of(&message), Some(netem));
    }

    #[test]
    fn an_answer_that_is_cut_off_or_about_another_kind_is_not() {
        let mut short = ANSWER[..ANSWER.len() - 20].to_vec();
        let length = short.len() as u32;
        short[..4].copy_from_slice(&length.to_ne_bytes());
        assert!(parse(&short).is_err());
        let mut other = ANSWER.to_vec();
        // "netem" becomes "nftem".
        other[41] = b'f';
        assert_eq!(options_of(&parse(&other).unwrap()), None);
        let mut without = parse(ANSWER).unwrap();
        without.attributes.retain(|attribute| !matches!(attribute, TcAttribute::Stats2(_)));
        assert_eq!(QdiscStats::of(&without), None);
    }

    #[test]
    fn more_packets_than_32_bits_hold_are_counted() {
        let mut message = parse(ANSWER).unwrap();
        let many = 5_000_000_000_u64;
        for attribute in &mut message.attributes {
            if let TcAttribute::Stats2(stats) = attribute {
                stats.push(TcStats2::Other(DefaultNla::new(TCA_STATS_PKT64, many.to_ne_bytes().to_vec())));
            }
        }
        assert_eq!(QdiscStats::of(&message).unwrap().sent_packets, many);
    }
}
