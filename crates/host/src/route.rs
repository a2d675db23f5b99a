//! The congestion control of a route: the one scoped default that needs no permission beyond the namespace's own.
//!
//! `net.ipv4.tcp_congestion_control` of a namespace other than the first refuses every control that is not marked unrestricted
//! (`net/ipv4/tcp_cong.c`, Linux 6.18). The route metric `RTAX_CC_ALGO` does not: both connecting and accepting
//! sockets of the route start with it.

use std::net::Ipv4Addr;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Why the route was not changed.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// No such device in this namespace.
    #[error("no network device {0} in this namespace")]
    NoDevice(String),
    /// The kernel does not have the control, or can't load it.
    #[error("this kernel has no congestion control \"{0}\" for a route")]
    UnknownControl(String),
    /// Netlink itself.
    #[error("route of {device}: {source}")]
    Io {
        /// The device.
        device: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// Gives the connected route `network`/`prefix` over `device` in the calling thread's namespace the congestion control `control`:
/// what new sockets of that route use, unless they choose themselves. `source` is the device's own address.
///
/// # Errors
/// [`RouteError`]; the route is unchanged then.
pub fn set_congestion_control(
    device: &str,
    network: Ipv4Addr,
    prefix: u8,
    source: Ipv4Addr,
    control: &str,
) -> Result<(), RouteError> {
    let io = |source| RouteError::Io { device: device.to_owned(), source };
    let index = nix::net::if_::if_nametoindex(device).map_err(|_| RouteError::NoDevice(device.to_owned()))?;
    let mut route = RouteMessage::default();
    route.header = RouteHeader {
        address_family: AddressFamily::Inet,
        destination_prefix_length: prefix,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Kernel,
        scope: RouteScope::Link,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    route.attributes = vec![
        RouteAttribute::Destination(RouteAddress::Inet(network)),
        RouteAttribute::PrefSource(RouteAddress::Inet(source)),
        RouteAttribute::Oif(index),
        RouteAttribute::Metrics(vec![RouteMetric::CcAlgo(control.to_owned())]),
    ];
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(RouteNetlinkMessage::NewRoute(route)));
    message.finalize();
    match request(&message).map_err(io)? {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => {
            Err(RouteError::UnknownControl(control.to_owned()))
        }
        Err(error) => Err(io(error)),
    }
}

/// Sends one request and waits for its acknowledgement. The inner result is the kernel's answer.
pub(crate) fn request(message: &NetlinkMessage<RouteNetlinkMessage>) -> std::io::Result<std::io::Result<()>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut buffer = vec![0; message.buffer_len()];
    message.serialize(&mut buffer);
    socket.send(&buffer, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(std::io::Error::other)?;
    Ok(match answer.payload {
        NetlinkPayload::Error(error) => match error.code {
            None => Ok(()),
            Some(code) => Err(std::io::Error::from_raw_os_error(-code.get())),
        },
        other => Err(std::io::Error::other(format!("unexpected answer: {other:?}"))),
    })
}
