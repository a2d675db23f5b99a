use std::collections::BTreeMap;
use std::io;

use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};

/// How many sockets use one congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ControlUsers {
    /// Sockets with a connection, those that are closing included.
    pub connections: u64,
    /// Listening sockets.
    pub listeners: u64,
}

/// linux/sock_diag.h, linux/inet_diag.h, linux/netlink.h.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const INET_DIAG_CONG: u16 = 4;
/// `TCP_LISTEN` of net/tcp_states.h.
const LISTEN: u8 = 10;
const HEADER: usize = 16;
/// `struct inet_diag_req_v2`.
const REQUEST: usize = 56;
/// `struct inet_diag_msg`.
const MESSAGE: usize = 72;

/// The TCP sockets of the calling thread's namespace, by congestion control. Sockets that have none any more (TIME_WAIT) or not yet
/// (SYN_RECV) are not counted.
///
/// # Errors
/// What netlink says; `ENOENT` where the kernel has no socket diagnostics for TCP (module `tcp_diag`).
pub fn control_users() -> io::Result<BTreeMap<String, ControlUsers>> {
    let mut users = BTreeMap::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        match dump(family as u8, &mut users) {
            // A kernel without IPv6.
            Err(error) if family == libc::AF_INET6 && error.raw_os_error() == Some(libc::ENOENT) => {}
            other => other?,
        }
    }
    Ok(users)
}

fn request(family: u8) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + REQUEST];
    bytes[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    let body = &mut bytes[HEADER..];
    body[0] = family;
    body[1] = libc::IPPROTO_TCP as u8;
    body[2] = 1 << (INET_DIAG_CONG - 1);
    // Every state.
    body[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
    bytes
}

fn dump(family: u8, users: &mut BTreeMap<String, ControlUsers>) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(family), 0)?;
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        if count(&datagram, users)? {
            return Ok(());
        }
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Adds the sockets of one datagram; `true` after the last one.
fn count(mut datagram: &[u8], users: &mut BTreeMap<String, ControlUsers>) -> io::Result<bool> {
    let garbled = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's socket diagnostics can't be read");
    if datagram.is_empty() {
        return Err(garbled());
    }
    while !datagram.is_empty() {
        let length = word(datagram, 0).ok_or_else(garbled)? as usize;
        let kind = short(datagram, 4).ok_or_else(garbled)?;
        let body = datagram.get(HEADER..length).ok_or_else(garbled)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = word(body, 0).ok_or_else(garbled)? as i32;
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            SOCK_DIAG_BY_FAMILY => {
                let state = *body.get(1).ok_or_else(garbled)?;
                if let Some(name) = control_in(body.get(MESSAGE..).ok_or_else(garbled)?) {
                    let entry = users.entry(name).or_default();
                    *if state == LISTEN { &mut entry.listeners } else { &mut entry.connections } += 1;
                }
            }
            _ => {}
        }
        // Messages begin at multiples of four.
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The congestion control among a socket's attributes.
fn control_in(mut attributes: &[u8]) -> Option<String> {
    while !attributes.is_empty() {
        let length = usize::from(short(attributes, 0)?);
        let value = attributes.get(4..length)?;
        if short(attributes, 2)? == INET_DIAG_CONG {
            let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
            return Some(String::from_utf8_lossy(&value[..end]).into_owned());
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn socket(state: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![0; MESSAGE];
        body[1] = state;
        for (kind, value) in attributes {
            body.extend((4 + value.len() as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        message(SOCK_DIAG_BY_FAMILY, &body)
    }

    #[test]
    fn sockets_are_counted_by_control_and_listeners_apart() {
        let bytes = [
            socket(1, &[(8, &[0]), (INET_DIAG_CONG, b"bbr3\0")]),
            socket(LISTEN, &[(INET_DIAG_CONG, b"cubic\0")]),
            socket(6, &[(8, &[0])]),
            socket(1, &[(INET_DIAG_CONG, b"bbr3\0"), (200, &[1, 2, 3, 4, 5])]),
        ]
        .concat();
        let mut users = BTreeMap::new();
        assert!(!count(&bytes, &mut users).unwrap());
        assert!(count(&message(NLMSG_DONE, &[0; 4]), &mut users).unwrap());
        assert_eq!(users["bbr3"], ControlUsers { connections: 2, listeners: 0 });
        assert_eq!(users["cubic"], ControlUsers { connections: 0, listeners: 1 });
        assert_eq!(users.len(), 2);
    }

    #[test]
    fn what_the_kernel_refuses_is_an_error() {
        let refused = count(&message(NLMSG_ERROR, &(-libc::ENOENT).to_ne_bytes()), &mut BTreeMap::new());
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn cut_and_garbled_messages_end_in_an_error_and_never_in_a_loop() {
        let whole = socket(1, &[(INET_DIAG_CONG, b"bbr3\0")]);
        for length in 0..whole.len() - 4 {
            let mut users = BTreeMap::new();
            assert!(count(&whole[..length], &mut users).is_err() || users.is_empty(), "cut at {length}");
        }
        for length in [0_u32, 3, 15] {
            let mut bad = whole.clone();
            bad[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(count(&bad, &mut BTreeMap::new()).is_err(), "{length}");
        }
        for length in [0_u16, 3, u16::MAX] {
            let mut bad = whole.clone();
            bad[HEADER + MESSAGE..HEADER + MESSAGE + 2].copy_from_slice(&length.to_ne_bytes());
            let mut users = BTreeMap::new();
            assert!(!count(&bad, &mut users).unwrap() && users.is_empty(), "{length}");
        }
    }
}
