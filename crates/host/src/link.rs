//! A network device's transmit queue length, by netlink: the ioctl for it asks for rights in the first user namespace.

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};

use crate::route::request;

/// Sets how many frames the device `name` of the calling thread's namespace queues (`IFLA_TXQLEN`).
///
/// # Errors
/// `NotFound` where there is no such device, and what the kernel answers.
pub fn set_tx_queue_len(name: &str, frames: u32) -> std::io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = nix::net::if_::if_nametoindex(name)?;
    link.attributes.push(LinkAttribute::TxQueueLen(frames));
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(RouteNetlinkMessage::SetLink(link)));
    message.finalize();
    request(&message)?
}
