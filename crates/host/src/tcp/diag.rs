//! All TCP sockets of a namespace, one after the other, without keeping them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use facts::socket::{Info, Memory, Sample};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use super::TcpInfo;
use crate::netlink::{attributes, dump, u16_at, u32_at};

/// linux/sock_diag.h, linux/inet_diag.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// `struct inet_diag_req_v2` and `struct inet_diag_msg`.
const REQUEST: usize = 56;
const MESSAGE: usize = 72;

/// States to ask for: one bit for each of include/net/tcp_states.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct States(pub u32);

impl States {
    /// All of them.
    pub const ALL: Self = Self(u32::MAX);
    /// Listeners only.
    pub const LISTEN: Self = Self(1 << facts::socket::LISTEN);
    /// Those that can carry data: established, FIN_WAIT_1, CLOSE_WAIT, CLOSING, LAST_ACK.
    pub const WITH_DATA: Self = Self(1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11);
}

/// Gives every TCP socket of the calling thread's namespace in one of `states` to `each`, with its memory, congestion control and
/// TCP_INFO, over both IP versions. The kernel loads `tcp_diag` for it where that is a module.
///
/// A socket that comes or goes meanwhile may be missing, and one that moves between the kernel's tables may come twice.
///
/// # Errors
/// What netlink says; `ENOENT` where the kernel has no socket diagnostics for TCP.
pub fn each_socket(states: States, mut each: impl FnMut(&Sample)) -> io::Result<()> {
    for family in [libc::AF_INET, libc::AF_INET6] {
        let result = dump(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, &request(family as u8, states), |kind, body| {
            if kind == SOCK_DIAG_BY_FAMILY
                && let Some(sample) = sample(body)
            {
                each(&sample);
            }
        });
        match result {
            // A kernel without IPv6.
            Err(error) if family == libc::AF_INET6 && error.raw_os_error() == Some(libc::ENOENT) => {}
            other => other?,
        }
    }
    Ok(())
}

fn request(family: u8, states: States) -> [u8; REQUEST] {
    let mut body = [0; REQUEST];
    body[0] = family;
    body[1] = libc::IPPROTO_TCP as u8;
    body[2] = [INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO].iter().fold(0, |bits, bit| bits | 1 << (bit - 1));
    body[4..8].copy_from_slice(&states.0.to_ne_bytes());
    body
}

fn sample(body: &[u8]) -> Option<Sample> {
    let family = *body.first()?;
    let port = |at: usize| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = body.get(at..at + 16)?.try_into().ok()?;
        Some(if i32::from(family) == libc::AF_INET {
            Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()
        } else {
            // A socket for both versions that talks IPv4 belongs to that network.
            Ipv6Addr::from(bytes).to_canonical()
        })
    };
    let local = SocketAddr::new(address(8)?, port(4)?);
    let remote = SocketAddr::new(address(24)?, port(6)?);
    let mut sample = Sample::new(*body.get(1)?, local, remote);
    sample.cookie = u64::from(u32_at(body, 44)?) | u64::from(u32_at(body, 48)?) << 32;
    sample.receive_queue = u32_at(body, 56)?;
    sample.send_queue = u32_at(body, 60)?;
    sample.inode = u32_at(body, 68)?;
    for (kind, value) in attributes(body.get(MESSAGE..)?) {
        match kind {
            INET_DIAG_INFO => sample.info = TcpInfo::from_bytes(value).map(|info| reduced(&info)),
            INET_DIAG_CONG => {
                let length = value.len().min(sample.control.len());
                sample.control[..length].copy_from_slice(&value[..length]);
            }
            INET_DIAG_SKMEMINFO => sample.memory = memory(value),
            _ => {}
        }
    }
    Some(sample)
}

/// `SK_MEMINFO_RCVBUF`, `SK_MEMINFO_SNDBUF` and `SK_MEMINFO_DROPS` of linux/sock_diag.h.
fn memory(value: &[u8]) -> Option<Memory> {
    Some(Memory {
        receive_buffer: u32_at(value, 4)?,
        send_buffer: u32_at(value, 12)?,
        drops: u32_at(value, 32).unwrap_or(0),
    })
}

fn reduced(info: &TcpInfo) -> Info {
    let raw = info.raw();
    Info {
        options: raw.options,
        app_limited: info.delivery_rate_app_limited(),
        rtt_us: raw.rtt,
        min_rtt_us: (raw.min_rtt != u32::MAX).then_some(raw.min_rtt),
        receiver_rtt_us: raw.rcv_rtt,
        delivery_rate: raw.delivery_rate,
        busy_us: raw.busy_time,
        rwnd_limited_us: raw.rwnd_limited,
        sndbuf_limited_us: raw.sndbuf_limited,
        unsent: raw.notsent_bytes,
        mss: raw.snd_mss,
        cwnd_segments: raw.snd_cwnd,
        unacked_segments: raw.unacked,
        bytes_acked: raw.bytes_acked,
        bytes_received: raw.bytes_received,
        data_segments_out: raw.data_segs_out,
        retransmitted_segments: raw.total_retrans,
        spurious_segments: raw.dsack_dups,
        send_window: raw.snd_wnd,
        receive_window: raw.rcv_wnd,
    }
}

/// Listeners from `/proc/net/tcp` or `tcp6`: without their backlog, which stands nowhere in it.
pub fn listeners_in_table(table: &str) -> Vec<Sample> {
    let one = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        if state != "0A" {
            return None;
        }
        let (_, waiting) = fields.next()?.split_once(':')?;
        let inode = fields.nth(4)?.parse().ok()?;
        let mut sample = Sample::new(facts::socket::LISTEN, hex_address(local)?, hex_address(remote)?);
        sample.receive_queue = u32::from_str_radix(waiting, 16).ok()?;
        sample.inode = inode;
        Some(sample)
    };
    table.lines().skip(1).filter_map(one).collect()
}

/// `0100007F:1F90`: words of four bytes in the machine's order.
fn hex_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let mut bytes = [0; 16];
            for part in 0..4 {
                bytes[part * 4..part * 4 + 4].copy_from_slice(&word(part * 8)?);
            }
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// Whether a message is one of a socket that can be read: for tests with any bytes.
#[doc(hidden)]
pub fn exercise(bytes: &[u8]) {
    let _ = crate::netlink::messages(bytes, &mut |_, body| {
        let _ = sample(body);
    });
    let _ = sample(bytes);
    let _ = u16_at(bytes, usize::MAX);
    drop(listeners_in_table(&String::from_utf8_lossy(bytes)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(family: i32) -> Vec<u8> {
        let mut body = vec![0; MESSAGE];
        body[0] = family as u8;
        body[1] = 1;
        body[4..8].copy_from_slice(&[1, 187, 0x30, 0x39]);
        body[8..12].copy_from_slice(&[192, 0, 2, 1]);
        body[24..28].copy_from_slice(&[198, 51, 100, 7]);
        body[44..52].copy_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0]);
        body[56..60].copy_from_slice(&9u32.to_ne_bytes());
        body[68..72].copy_from_slice(&4711u32.to_ne_bytes());
        body.extend([10, 0, 4, 0]);
        body.extend(b"cubic\0\0\0");
        body.extend([40, 0, 7, 0]);
        for word in [0u32, 131_072, 0, 16_384, 0, 0, 0, 0, 3] {
            body.extend(word.to_ne_bytes());
        }
        body
    }

    #[test]
    fn a_socket_is_read_with_its_ends_control_and_memory() {
        let sample = sample(&body(libc::AF_INET)).unwrap();
        assert_eq!(sample.local, "192.0.2.1:443".parse().unwrap());
        assert_eq!(sample.remote, "198.51.100.7:12345".parse().unwrap());
        assert_eq!((sample.cookie, sample.receive_queue, sample.inode), (1 | 2 << 32, 9, 4711));
        assert_eq!(sample.control_name(), "cubic");
        assert_eq!(sample.memory, Some(Memory { receive_buffer: 131_072, send_buffer: 16_384, drops: 3 }));
    }

    #[test]
    fn a_mapped_address_is_the_one_it_maps() {
        let mut body = body(libc::AF_INET6);
        body[8..24].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 9).to_ipv6_mapped().octets());
        assert_eq!(sample(&body).unwrap().local.ip(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9)));
    }

    #[test]
    fn cut_messages_are_none_and_never_a_panic() {
        let whole = body(libc::AF_INET);
        for length in 0..MESSAGE {
            assert_eq!(sample(&whole[..length]), None, "{length}");
        }
        for length in MESSAGE..whole.len() {
            assert!(sample(&whole[..length]).is_some(), "{length}");
        }
    }

    #[test]
    fn listeners_are_found_in_the_table_too() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 4711 1 0 100 0\n   \
             1: 0100007F:0016 0200007F:1234 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n";
        let found = listeners_in_table(table);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].local, "127.0.0.1:8080".parse().unwrap());
        assert_eq!((found[0].receive_queue, found[0].inode), (3, 4711));
    }
}
