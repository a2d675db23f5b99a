//! What the kernel hands over on a TUN device with `IFF_VNET_HDR`: a virtio header (virtio 1.2, 5.1.6), then an IP packet that
//! may be a segmentation-offload burst of up to 64 KiB. A burst is looked at as the packets it stands for, and written back as the
//! runs of it that survived.

use path::{Ecn, FlowId};
use units::Bytes;

/// Length of `struct virtio_net_hdr` as TUN uses it by default.
pub const VNET_LEN: usize = 10;
/// Virtio header and the largest IP packet.
pub const MAX_FRAME: usize = VNET_LEN + 65_535 + 64;
/// Virtio header, IPv6 header and the longest TCP header, with room for extension headers.
const MAX_HEADER: usize = VNET_LEN + 256;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// A frame that is not a whole IP packet. The kernel does not send such; it is counted and left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an IP packet that agrees with its virtio header")]
pub struct Malformed;

/// What is known of a frame after one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of IP and transport headers, repeated by every packet of a burst.
    header: u16,
    /// Offset of the transport header from the IP header.
    transport: u16,
    /// Payload bytes of each packet but the last; 0: not a burst.
    gso_size: u16,
    /// Payload bytes of the whole frame.
    payload: u32,
    /// Packets that the frame stands for.
    segments: u16,
    gso_type: u8,
    protocol: u8,
    version: u8,
    /// ECN bits of all its packets.
    pub ecn: Ecn,
    /// Source and destination port; 0 without ports.
    pub ports: (u16, u16),
    /// Hash over addresses, protocol and ports.
    pub hash: u32,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

impl Frame {
    /// Looks at a frame: virtio header, then IP.
    ///
    /// # Errors
    /// [`Malformed`], where lengths or types disagree.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (vnet, ip) = bytes.split_at_checked(VNET_LEN).ok_or(Malformed)?;
        let gso_type = vnet[1] & !GSO_ECN;
        let gso_size = u16::from_ne_bytes([vnet[4], vnet[5]]);
        let first = *ip.first().ok_or(Malformed)?;
        let (version, transport, protocol, traffic_class, addresses) = match first >> 4 {
            4 if ip.len() >= 20 => (4, usize::from(first & 0x0f) * 4, ip[9], ip[1], &ip[12..20]),
            6 if ip.len() >= 40 => (6, 40, ip[6], (ip[0] << 4) | (ip[1] >> 4), &ip[8..40]),
            _ => return Err(Malformed),
        };
        // The first fragment has ports and later ones do not; none of our traffic is fragmented, others' is passed on.
        let fragment = version == 4 && u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff != 0;
        let (transport_len, ports) = match protocol {
            TCP if !fragment => {
                let offset = *ip.get(transport + 12).ok_or(Malformed)? >> 4;
                (usize::from(offset) * 4, (be16(ip, transport), be16(ip, transport + 2)))
            }
            UDP if !fragment => (8, (be16(ip, transport), be16(ip, transport + 2))),
            _ => (0, (Some(0), Some(0))),
        };
        let ports = (ports.0.ok_or(Malformed)?, ports.1.ok_or(Malformed)?);
        let header = transport + transport_len;
        let payload = ip.len().checked_sub(header).ok_or(Malformed)?;
        let burst = match gso_type {
            GSO_NONE => false,
            GSO_TCPV4 | GSO_TCPV6 => protocol == TCP || return Err(Malformed),
            GSO_UDP_L4 => protocol == UDP || return Err(Malformed),
            _ => return Err(Malformed),
        };
        let (gso_size, segments) = match (burst, gso_size) {
            (false, _) => (0, 1),
            (true, 0) => return Err(Malformed),
            (true, size) => (size, payload.div_ceil(usize::from(size)).max(1)),
        };
        if header + VNET_LEN > MAX_HEADER {
            return Err(Malformed);
        }
        Ok(Self {
            header: header as u16,
            transport: transport as u16,
            gso_size,
            payload: payload as u32,
            segments: segments as u16,
            gso_type,
            protocol,
            version,
            ecn: match traffic_class & 3 {
                0 => Ecn::NotEct,
                1 => Ecn::Ect1,
                2 => Ecn::Ect0,
                _ => Ecn::Ce,
            },
            ports,
            hash: flow_hash(addresses, protocol, ports),
        })
    }

    /// How many packets the frame stands for.
    pub fn segments(&self) -> u16 {
        self.segments
    }

    /// IP length of packet `index`.
    pub fn segment_size(&self, index: u16) -> Bytes {
        Bytes::new(u64::from(self.header) + (self.payload_of(index, 1).1 - self.payload_of(index, 1).0) as u64)
    }

    /// Offsets of the payload of `count` packets from `first`, in payload bytes.
    fn payload_of(&self, first: u16, count: u16) -> (usize, usize) {
        if self.gso_size == 0 {
            return (0, self.payload as usize);
        }
        let size = usize::from(self.gso_size);
        let end = (usize::from(first) + usize::from(count)) * size;
        (usize::from(first) * size, end.min(self.payload as usize))
    }

    /// Whether the frame carries a transport payload (TCP pure acknowledgements do not).
    pub fn carries_data(&self) -> bool {
        self.payload > 0
    }

    /// The header and payload to write for packets `first .. first + count` of the frame at `bytes`, marked CE where `ce`.
    /// Sequence number, lengths, flags and checksums are those the packets would have had as segments of their own.
    pub fn run<'a>(&self, bytes: &'a [u8], first: u16, count: u16, ce: bool, header: &mut HeaderBuf) -> &'a [u8] {
        let ip_at = VNET_LEN;
        let whole = VNET_LEN + usize::from(self.header);
        header.len = whole;
        let h = &mut header.bytes[..whole];
        h.copy_from_slice(&bytes[..whole]);
        let (from, to) = self.payload_of(first, count);
        let payload = &bytes[whole + from..whole + to];
        if self.gso_size > 0 {
            self.rewrite_burst(h, first, count, payload.len());
        }
        let re_marked = ce && self.ecn != Ecn::Ce;
        if re_marked {
            if self.version == 4 { h[ip_at + 1] |= 3 } else { h[ip_at + 1] |= 0x30 }
        }
        if self.version == 4 && (re_marked || self.gso_size > 0) {
            write_ipv4_checksum(&mut h[ip_at..ip_at + usize::from(self.transport)]);
        }
        payload
    }

    fn rewrite_burst(&self, h: &mut [u8], first: u16, count: u16, payload_len: usize) {
        let transport_at = VNET_LEN + usize::from(self.transport);
        let ip_len = usize::from(self.header) + payload_len;
        let transport_len = ip_len - usize::from(self.transport);
        let still_burst = payload_len > usize::from(self.gso_size);
        h[0] = NEEDS_CSUM;
        if !still_burst {
            h[1] = GSO_NONE;
            h[4..6].fill(0);
        }
        let csum_offset: u16 = if self.protocol == TCP { 16 } else { 6 };
        h[2..4].copy_from_slice(&self.header.to_ne_bytes());
        h[6..8].copy_from_slice(&self.transport.to_ne_bytes());
        h[8..10].copy_from_slice(&csum_offset.to_ne_bytes());
        let ip = &mut h[VNET_LEN..];
        if self.version == 4 {
            ip[2..4].copy_from_slice(&(ip_len as u16).to_be_bytes());
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(first);
            ip[4..6].copy_from_slice(&id.to_be_bytes());
        } else {
            ip[4..6].copy_from_slice(&((ip_len - 40) as u16).to_be_bytes());
        }
        let pseudo = pseudo_header_sum(ip, self.version, self.protocol, transport_len);
        let t = &mut h[transport_at..];
        if self.protocol == TCP {
            let skipped = u32::from(first) * u32::from(self.gso_size);
            let seq = u32::from_be_bytes([t[4], t[5], t[6], t[7]]).wrapping_add(skipped);
            t[4..8].copy_from_slice(&seq.to_be_bytes());
            if first + count < self.segments {
                t[13] &= !(TCP_FIN | TCP_PSH);
            }
            if first > 0 {
                t[13] &= !TCP_CWR;
            }
            t[16..18].copy_from_slice(&pseudo.to_be_bytes());
        } else {
            t[4..6].copy_from_slice(&(transport_len as u16).to_be_bytes());
            t[6..8].copy_from_slice(&pseudo.to_be_bytes());
        }
    }
}

/// Room for one rewritten header.
#[derive(Debug)]
pub struct HeaderBuf {
    bytes: [u8; MAX_HEADER],
    len: usize,
}

impl Default for HeaderBuf {
    fn default() -> Self {
        Self { bytes: [0; MAX_HEADER], len: 0 }
    }
}

impl HeaderBuf {
    /// The header as [`Frame::run`] left it: virtio, IP, transport.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Which flow of the experiment a packet belongs to.
#[derive(Debug, Clone)]
pub struct Classifier {
    first_port: u16,
    flows: u16,
    probe: Option<FlowId>,
}

impl Classifier {
    /// Flow k (from 1) of `flows` has the server port `first_port + k - 1`; every datagram of UDP is one of `probe`, where there is one.
    pub fn new(first_port: u16, flows: u16, probe: Option<FlowId>) -> Self {
        Self { first_port, flows, probe }
    }

    /// The flow of a frame's packets, by either port; 0 for others.
    pub fn flow(&self, frame: &Frame) -> FlowId {
        if frame.protocol == UDP
            && let Some(probe) = self.probe
        {
            return probe;
        }
        let of = |port: u16| port.checked_sub(self.first_port).filter(|k| *k < self.flows).map(|k| FlowId(k + 1));
        of(frame.ports.1).or_else(|| of(frame.ports.0)).unwrap_or_default()
    }
}

fn flow_hash(addresses: &[u8], protocol: u8, ports: (u16, u16)) -> u32 {
    let mut hash = u64::from(protocol) | u64::from(ports.0) << 8 | u64::from(ports.1) << 24;
    for part in addresses.chunks_exact(4) {
        let word = u32::from_ne_bytes([part[0], part[1], part[2], part[3]]);
        hash = (hash ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (hash >> 32) as u32
}

/// RFC 1071 sum, folded, not complemented.
fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn sum16(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|b| u32::from(u16::from_be_bytes([b[0], b[1]]))).sum()
}

fn write_ipv4_checksum(ip: &mut [u8]) {
    ip[10..12].fill(0);
    let checksum = !folded(sum16(ip));
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The sum that `NEEDS_CSUM` expects in the checksum field: pseudo-header only, not complemented.
fn pseudo_header_sum(ip: &[u8], version: u8, protocol: u8, transport_len: usize) -> u16 {
    let addresses = if version == 4 { &ip[12..20] } else { &ip[8..40] };
    folded(sum16(addresses) + u32::from(protocol) + transport_len as u32)
}

#[cfg(test)]
mod tests;
