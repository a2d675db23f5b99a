//! The rtnetlink messages that make the path: devices, addresses, neighbours, routes and qdiscs.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::DefaultNla;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::options::{KIND, Netem};

const TCA_OPTIONS: u16 = 2;

/// The handle of every qdisc made here, `1:`.
const HANDLE: TcHandle = TcHandle { major: 1, minor: 0 };

/// A link-layer address.
pub type Mac = [u8; 6];

/// One end of a veth pair.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The device's name.
    pub name: &'a str,
    /// Its address.
    pub mac: Mac,
}

fn end(end: End<'_>, mtu: u16) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(end.name.to_owned()),
        LinkAttribute::Address(end.mac.to_vec()),
        LinkAttribute::Mtu(u32::from(mtu)),
    ];
    message
}

/// A veth pair whose second end lies in another namespace.
pub fn veth(here: End<'_>, there: End<'_>, namespace: BorrowedFd<'_>, mtu: u16) -> RouteNetlinkMessage {
    let mut peer = end(there, mtu);
    peer.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
    let mut message = end(here, mtu);
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    RouteNetlinkMessage::NewLink(message)
}

/// Brings a device up; with `split`, packets of several segments are cut into single ones before they enter it.
pub fn up(index: u32, split: bool) -> RouteNetlinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    if split {
        message.attributes.push(LinkAttribute::GsoMaxSegs(1));
    }
    RouteNetlinkMessage::SetLink(message)
}

/// Asks for a device.
pub fn get_link(index: u32) -> RouteNetlinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    RouteNetlinkMessage::GetLink(message)
}

/// `address`/`prefix` for a device, with the connected route that goes with it.
pub fn address(index: u32, address: Ipv4Addr, prefix: u8) -> RouteNetlinkMessage {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = prefix;
    message.header.index = index;
    message.attributes = vec![AddressAttribute::Local(address.into()), AddressAttribute::Address(address.into())];
    RouteNetlinkMessage::NewAddress(message)
}

/// `address` has `mac`, for ever: no packet of address resolution ever crosses the path.
pub fn neighbour(index: u32, address: Ipv4Addr, mac: Mac) -> RouteNetlinkMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    message.attributes = vec![
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)),
        NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
    ];
    RouteNetlinkMessage::NewNeighbour(message)
}

/// `destination` lies behind a device.
pub fn route(index: u32, destination: Ipv4Addr) -> RouteNetlinkMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: 32,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Link,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Destination(RouteAddress::Inet(destination)), RouteAttribute::Oif(index)];
    RouteNetlinkMessage::NewRoute(message)
}

fn qdisc(index: u32, handle: TcHandle, parent: TcHandle, attributes: Vec<TcAttribute>) -> TcMessage {
    // An index is above zero and below 2^31 (dev_new_index in net/core/dev.c).
    let header = TcHeader { index: index.cast_signed(), handle, parent, ..TcHeader::default() };
    TcMessage::from_parts(header, attributes)
}

/// netem as the root qdisc of a device.
pub fn add_netem(index: u32, netem: &Netem) -> RouteNetlinkMessage {
    let attributes =
        vec![TcAttribute::Kind(KIND.to_owned()), TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, netem.to_options()))];
    RouteNetlinkMessage::NewQueueDiscipline(qdisc(index, HANDLE, TcHandle::ROOT, attributes))
}

/// Asks for the qdisc that [`add_netem`] made.
pub fn get_qdisc(index: u32) -> RouteNetlinkMessage {
    RouteNetlinkMessage::GetQueueDiscipline(qdisc(index, HANDLE, TcHandle::UNSPEC, vec![]))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST};
    use units::{Bytes, Duration, Rate};

    use super::super::options::{Loss, Serializer};
    use super::super::rtnl::encode;
    use super::*;

    const CREATE: u16 = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;

    /// What follows the netlink header, whose length, type, flags and sequence number are looked at here.
    #[track_caller]
    fn body(message: RouteNetlinkMessage, kind: u16) -> Vec<u8> {
        let bytes = encode(message, CREATE, 9);
        let mut header = (bytes.len() as u32).to_ne_bytes().to_vec();
        header.extend(kind.to_ne_bytes());
        header.extend([0x05, 0x06, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[..16], header);
        bytes[16..].to_vec()
    }

    #[test]
    #[rustfmt::skip]
    fn a_netem_qdisc_is_asked_for_as_the_root_of_its_device() {
        let netem = Netem {
            latency: Duration::ZERO,
            limit: 30,
            loss: Loss::None,
            rate: Some(Serializer::new(Rate::from_mbps(1), Bytes::new(14))),
            seed: None,
        };
        assert_eq!(body(add_netem(5, &netem), 36), [
            0, 0, 0, 0,  5, 0, 0, 0,  0, 0, 1, 0,  0xff, 0xff, 0xff, 0xff,  0, 0, 0, 0, // tcmsg: device 5, handle 1:, root
            10, 0, 1, 0,  b'n', b'e', b't', b'e', b'm', 0,  0, 0,                     // TCA_KIND
            60, 0, 2, 0,                                                              // TCA_OPTIONS: 24 + 12 + 20 and its header
            0, 0, 0, 0,  30, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
            12, 0, 10, 0,  0, 0, 0, 0, 0, 0, 0, 0,
            20, 0, 6, 0,  0x48, 0xe8, 0x01, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0, // 125,000 B/s, frames as they are
        ]);
        assert_eq!(body(get_qdisc(5), 38), [0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    #[rustfmt::skip]
    fn a_veth_pair_is_asked_for_with_its_far_end_in_another_namespace() {
        let namespace = std::fs::File::open("/dev/null").unwrap();
        let fd = namespace.as_raw_fd() as u8;
        let (here, there) = (End { name: "path0", mac: [2, 0, 0, 0, 0, 1] }, End { name: "left", mac: [2, 0, 0, 0, 0, 2] });
        assert_eq!(body(veth(here, there, namespace.as_fd(), 1_500), 16), [
            0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,               // ifinfomsg
            10, 0, 3, 0,  b'p', b'a', b't', b'h', b'0', 0,  0, 0,            // IFLA_IFNAME
            10, 0, 1, 0,  2, 0, 0, 0, 0, 1,  0, 0,                           // IFLA_ADDRESS
            8, 0, 4, 0,  0xdc, 0x05, 0, 0,                                   // IFLA_MTU
            80, 0, 18, 0,                                                    // IFLA_LINKINFO
            9, 0, 1, 0,  b'v', b'e', b't', b'h', 0,  0, 0, 0,                // IFLA_INFO_KIND
            64, 0, 2, 0,                                                     // IFLA_INFO_DATA
            60, 0, 1, 0,                                                     // VETH_INFO_PEER
            0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
            9, 0, 3, 0,  b'l', b'e', b'f', b't', 0,  0, 0, 0,
            10, 0, 1, 0,  2, 0, 0, 0, 0, 2,  0, 0,
            8, 0, 4, 0,  0xdc, 0x05, 0, 0,
            8, 0, 28, 0,  fd, 0, 0, 0,                                       // IFLA_NET_NS_FD
        ]);
    }

    #[test]
    #[rustfmt::skip]
    fn a_device_comes_up_and_splits_where_it_is_told_to() {
        let up_only = [0, 0, 0, 0,  7, 0, 0, 0,  1, 0, 0, 0,  1, 0, 0, 0];
        assert_eq!(body(up(7, false), 19), up_only);
        assert_eq!(body(up(7, true), 19), [&up_only[..], &[8, 0, 40, 0,  1, 0, 0, 0]].concat()); // IFLA_GSO_MAX_SEGS
    }

    #[test]
    #[rustfmt::skip]
    fn addresses_neighbours_and_routes_are_asked_for_by_device() {
        let client = Ipv4Addr::new(198, 18, 0, 1);
        assert_eq!(body(address(7, client, 24), 20), [
            2, 24, 0, 0,  7, 0, 0, 0,                                        // ifaddrmsg: AF_INET, /24, global scope
            8, 0, 2, 0,  198, 18, 0, 1,                                      // IFA_LOCAL
            8, 0, 1, 0,  198, 18, 0, 1,                                      // IFA_ADDRESS
        ]);
        assert_eq!(body(neighbour(7, client, [2, 0, 0, 0, 3, 1]), 28), [
            2, 0, 0, 0,  7, 0, 0, 0,  0x80, 0, 0, 0,                         // ndmsg: AF_INET, NUD_PERMANENT
            8, 0, 1, 0,  198, 18, 0, 1,                                      // NDA_DST
            10, 0, 2, 0,  2, 0, 0, 0, 3, 1,  0, 0,                           // NDA_LLADDR
        ]);
        assert_eq!(body(route(7, client), 24), [
            2, 32, 0, 0,  254, 4, 253, 1,  0, 0, 0, 0,                       // rtmsg: AF_INET, /32, main, static, link, unicast
            8, 0, 1, 0,  198, 18, 0, 1,                                      // RTA_DST
            8, 0, 4, 0,  7, 0, 0, 0,                                         // RTA_OIF
        ]);
    }
}
