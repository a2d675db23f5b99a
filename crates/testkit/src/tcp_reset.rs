use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use host::netns::NetNs;
use socket2::{Domain, Protocol, Socket, Type};

/// `ETH_P_ALL` of linux/if_ether.h.
const ETH_P_ALL: u16 = 3;
/// Length of the Ethernet header, which `lo` has too.
const ETHERNET: usize = 14;

/// Breaks an IPv4 connection as a middlebox would: waits for a packet from `server_port` in this namespace and sends the client a
/// reset that carries its sequence number. Works where the server sends nothing but acknowledgements, so that the number holds.
///
/// # Panics
/// Where no such packet passes within `patience`, or the namespace allows no packet sockets.
pub fn reset_connection_from(namespace: &NetNs, server_port: u16, patience: Duration) {
    namespace.run(|| reset_here(server_port, patience)).expect("enter the namespace");
}

fn reset_here(server_port: u16, patience: Duration) {
    let all = Protocol::from(i32::from(ETH_P_ALL.to_be()));
    let listen = Socket::new(Domain::PACKET, Type::RAW, Some(all)).expect("open a packet socket");
    listen.set_read_timeout(Some(patience)).expect("set a timeout");
    let deadline = Instant::now() + patience;
    let mut frame = [0; 65_600];
    while Instant::now() < deadline {
        let Ok(length) = std::io::Read::read(&mut &listen, &mut frame) else { break };
        let Some(packet) = frame[..length].get(ETHERNET..) else { continue };
        if let Some((reset, to)) = reset_for(packet, server_port) {
            let send = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)));
            let sent = send.and_then(|socket| socket.send_to(&reset, &SocketAddrV4::new(to, 0).into()));
            sent.expect("send the reset");
            return;
        }
    }
    panic!("no packet from port {server_port} passed within {patience:?}");
}

/// An IPv4 packet that resets the connection which `packet` belongs to, from the same side, and where it goes. `None` for anything
/// but TCP from `server_port` after the handshake.
fn reset_for(packet: &[u8], server_port: u16) -> Option<(Vec<u8>, Ipv4Addr)> {
    const ACK: u8 = 0x10;
    const SYN: u8 = 0x02;
    const RST: u8 = 0x04;
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let tcp = packet.get(header..header + 20)?;
    let is_tcp4 = packet[0] >> 4 == 4 && packet[9] == 6;
    if !is_tcp4 || tcp[..2] != server_port.to_be_bytes() || tcp[13] & (ACK | SYN) != ACK {
        return None;
    }
    let (from, to) = (&packet[12..16], &packet[16..20]);
    // The kernel fills in the IP header's length, identification and checksum (raw(7)).
    let mut reset = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
    reset.extend(from);
    reset.extend(to);
    let mut segment = [0; 20];
    segment[..8].copy_from_slice(&tcp[..8]);
    segment[12] = 5 << 4;
    segment[13] = RST;
    let pseudo = [from, to, &[0, 6, 0, 20]].concat();
    let sum = checksum(&[pseudo.as_slice(), &segment].concat());
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    reset.extend(segment);
    Some((reset, Ipv4Addr::new(to[0], to[1], to[2], to[3])))
}

/// The Internet checksum, RFC 1071, of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
