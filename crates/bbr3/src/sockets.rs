//! The monitor record of every socket, through sock_diag(7): what `ss --bpf-maps` does (iproute2 6.11 and later).
//!
//! include/uapi/linux/inet_diag.h and sock_diag.h; net/core/bpf_sk_storage.c (6.18).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};

use crate::Monitor;
use crate::running::{Running, RunningError};

/// A socket of this network namespace, and what BBRv3 knows of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// This end.
    pub local: (IpAddr, u16),
    /// The other end.
    pub remote: (IpAddr, u16),
    /// Inode of its descriptor; none where its process has closed it.
    pub inode: Option<u32>,
    /// SO_COOKIE.
    pub cookie: u64,
    /// As of the end of its last round trip.
    pub monitor: Monitor,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLA_F_NESTED: u16 = 0x8000;
const NLA_TYPE_MASK: u16 = 0x3fff;
const INET_DIAG_REQ_SK_BPF_STORAGES: u16 = 2;
const SK_DIAG_BPF_STORAGE_REQ_MAP_FD: u16 = 1;
const INET_DIAG_SK_BPF_STORAGES: u16 = 20;
const SK_DIAG_BPF_STORAGE: u16 = 1;
const SK_DIAG_BPF_STORAGE_MAP_VALUE: u16 = 3;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// Every state in which there is a connection: all but LISTEN (10) and CLOSE (7); 3 is SYN_RECV.
const STATES: u32 = 0xfff & !(1 << 10) & !(1 << 7);
/// `struct inet_diag_msg`.
const MESSAGE: usize = 72;

/// Every socket of the calling thread's network namespace that has this program's storage.
///
/// # Errors
/// [`RunningError`]: looking into BPF storage needs CAP_BPF.
pub fn sockets(running: &Running) -> Result<Vec<Socket>, RunningError> {
    let map = running.map("bbr3_state")?;
    let diag = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag)
        .map_err(|error| RunningError::io("open a sock_diag socket")(error.into()))?;
    bind(diag.as_raw_fd(), &NetlinkAddr::new(0, 0))
        .map_err(|error| RunningError::io("bind a sock_diag socket")(error.into()))?;
    let mut found = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let asked = request(family, map.as_fd().as_raw_fd() as u32);
        sendto(diag.as_raw_fd(), &asked, &NetlinkAddr::new(0, 0), MsgFlags::empty())
            .map_err(|error| RunningError::io("ask sock_diag")(error.into()))?;
        read_dump(|buffer| recv(diag.as_raw_fd(), buffer, MsgFlags::empty()).map_err(io::Error::from), &mut found)
            .map_err(RunningError::io("read sock_diag's answer"))?;
    }
    Ok(found)
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn request(family: u8, map: u32) -> Vec<u8> {
    let wanted = attribute(SK_DIAG_BPF_STORAGE_REQ_MAP_FD, &map.to_ne_bytes());
    let mut body = vec![family, IPPROTO_TCP, 0, 0];
    body.extend(STATES.to_ne_bytes());
    body.resize(56, 0);
    body.extend(attribute(INET_DIAG_REQ_SK_BPF_STORAGES | NLA_F_NESTED, &wanted));
    let mut message = ((body.len() + 16) as u32).to_ne_bytes().to_vec();
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// Messages up to the end of a dump.
fn read_dump(mut receive: impl FnMut(&mut [u8]) -> io::Result<usize>, found: &mut Vec<Socket>) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = receive(&mut buffer)?;
        let mut rest = &buffer[..length];
        while let Some(length) =
            word(rest, 0).map(|length| length as usize).filter(|length| (16..=rest.len()).contains(length))
        {
            let kind = half(rest, 4).unwrap_or_default();
            let body = &rest[16..length];
            match kind {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => {
                    let code = word(body, 0).unwrap_or_default() as i32;
                    return Err(io::Error::from_raw_os_error(-code));
                }
                _ => found.extend(read_socket(body)),
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

fn read_socket(body: &[u8]) -> Option<Socket> {
    let attributes = body.get(MESSAGE..)?;
    let storages = find(attributes, INET_DIAG_SK_BPF_STORAGES)?;
    let value = find(find(storages, SK_DIAG_BPF_STORAGE)?, SK_DIAG_BPF_STORAGE_MAP_VALUE)?;
    let address = |at: usize| {
        let bytes: [u8; 16] = body.get(at..at + 16)?.try_into().ok()?;
        match body[0] {
            AF_INET => Some(IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))),
            AF_INET6 => Some(Ipv6Addr::from(bytes).to_canonical()),
            _ => None,
        }
    };
    let port = |at: usize| Some(u16::from_be_bytes(*body.get(at..)?.first_chunk()?));
    Some(Socket {
        local: (address(8)?, port(4)?),
        remote: (address(24)?, port(6)?),
        inode: word(body, 68).filter(|inode| *inode != 0),
        cookie: u64::from(word(body, 44)?) | u64::from(word(body, 48)?) << 32,
        monitor: Monitor::from_bytes(value).ok()?,
    })
}

/// The value of the first attribute of this kind.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(half(attributes, 0)?);
        let value = attributes.get(4..length)?;
        if half(attributes, 2)? & NLA_TYPE_MASK == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0_u16..25) {
            let _ = find(&bytes, kind);
            let _ = read_socket(&bytes);
            let mut message = ((bytes.len() + 16) as u32).to_ne_bytes().to_vec();
            message.extend(kind.to_ne_bytes());
            message.extend([0; 10]);
            message.extend(&bytes);
            let mut answers = vec![message].into_iter();
            let _ = read_dump(
                |buffer| {
                    let answer = answers.next().ok_or(io::ErrorKind::UnexpectedEof)?;
                    buffer[..answer.len()].copy_from_slice(&answer);
                    Ok(answer.len())
                },
                &mut Vec::new(),
            );
        }
    }
}
