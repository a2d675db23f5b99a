//! The queue disciplines of this namespace's devices, read and set by netlink.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

const RTM_GETQDISC: u16 = 38;
const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const TCA_KIND: u16 = 1;
/// `nlmsghdr` and `tcmsg`, in bytes.
const NLMSG_HEADER: usize = 16;
const TC_HEADER: usize = 20;
/// The parent of a device's first discipline.
const TC_H_ROOT: u32 = u32::MAX;

/// One queue discipline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// The device's index.
    pub index: u32,
    /// `fq_codel`, `mq`, `noqueue`, …
    pub kind: String,
    /// Its handle; 0 where the kernel put it there by itself.
    pub handle: u32,
    /// Whether it is the device's first one.
    pub root: bool,
    /// The class it hangs below, where it isn't the first one.
    pub parent: u32,
}

/// All queue disciplines of the calling thread's namespace.
///
/// # Errors
/// What the kernel answers, or a message that is cut off.
pub fn list() -> io::Result<Vec<Qdisc>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut request = vec![0; NLMSG_HEADER + TC_HEADER];
    request[..4].copy_from_slice(&((NLMSG_HEADER + TC_HEADER) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
    request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    socket.send(&request, 0)?;
    let mut found = Vec::new();
    loop {
        let (answer, _) = socket.recv_from_full()?;
        if parse(&answer, &mut found)? {
            return Ok(found);
        }
    }
}

/// Gives a device a first discipline, in place of the one it has, with the handle `major:`. The device is stopped for a moment, and
/// packets that wait in the old one are lost.
///
/// # Errors
/// What the kernel answers: `ENOENT` for a kind it doesn't have.
pub fn set_root(index: u32, major: u16, kind: &str) -> io::Result<()> {
    change(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, index, u32::from(major) << 16, TC_H_ROOT, kind)
}

/// Gives queue `queue` (from 0) of the `mq` with the handle `major:` a discipline; the others go on.
///
/// # Errors
/// What the kernel answers: `ENOENT` for a kind it doesn't have, or where there is no such `mq`.
pub fn set_leaf(index: u32, major: u16, queue: u16, kind: &str) -> io::Result<()> {
    let parent = u32::from(major) << 16 | (u32::from(queue) + 1);
    change(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, index, 0, parent, kind)
}

/// Takes a device's first discipline away; the kernel puts its default there. One that is the kernel's own can't be taken away.
///
/// # Errors
/// What the kernel answers: `ENOENT` where the first discipline is the kernel's own.
pub fn delete_root(index: u32) -> io::Result<()> {
    change(RTM_DELQDISC, 0, index, 0, TC_H_ROOT, "")
}

fn change(kind: u16, flags: u16, index: u32, handle: u32, parent: u32, name: &str) -> io::Result<()> {
    let mut body = vec![0; 4];
    for word in [index, handle, parent, 0] {
        body.extend(word.to_ne_bytes());
    }
    if !name.is_empty() {
        body.extend((name.len() as u16 + 5).to_ne_bytes());
        body.extend(TCA_KIND.to_ne_bytes());
        body.extend(name.as_bytes());
        body.push(0);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let mut request = ((NLMSG_HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    request.extend(kind.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_ACK | flags).to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    // An acknowledgement is an error of code 0.
    parse(&answer, &mut Vec::new()).map(drop)
}

/// Takes the disciplines out of one datagram. True at the dump's end.
fn parse(mut bytes: &[u8], found: &mut Vec<Qdisc>) -> io::Result<bool> {
    let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "a netlink message is cut off");
    while !bytes.is_empty() {
        let length = u32_at(bytes, 0).ok_or_else(cut)? as usize;
        let kind = u16_at(bytes, 4).ok_or_else(cut)?;
        let message = bytes.get(NLMSG_HEADER..length).ok_or_else(cut)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = u32_at(message, 0).ok_or_else(cut)? as i32;
                return if code == 0 { Ok(true) } else { Err(io::Error::from_raw_os_error(-code)) };
            }
            RTM_NEWQDISC => found.push(discipline(message).ok_or_else(cut)?),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// `tcmsg` (linux/rtnetlink.h) and the attribute with the kind.
fn discipline(message: &[u8]) -> Option<Qdisc> {
    let (index, handle, parent) = (u32_at(message, 4)?, u32_at(message, 8)?, u32_at(message, 12)?);
    let mut rest = message.get(TC_HEADER..)?;
    let mut kind = String::new();
    while let (Some(length), Some(attribute)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let value = rest.get(4..usize::from(length))?;
        if attribute == TCA_KIND {
            kind = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Qdisc { index, kind, handle, root: parent == TC_H_ROOT, parent })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((NLMSG_HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }

    fn fq(parent: u32) -> Vec<u8> {
        let mut body = vec![0; 4];
        for word in [2u32, 0x8001_0000, parent, 0] {
            body.extend(word.to_ne_bytes());
        }
        body.extend(7u16.to_ne_bytes());
        body.extend(TCA_KIND.to_ne_bytes());
        body.extend(b"fq\0\0");
        body
    }

    #[test]
    fn disciplines_are_read_up_to_the_end_of_the_dump() {
        let mut found = Vec::new();
        let mut bytes = message(RTM_NEWQDISC, &fq(TC_H_ROOT));
        bytes.extend(message(RTM_NEWQDISC, &fq(0x8001_0001)));
        assert!(!parse(&bytes, &mut found).unwrap());
        assert!(parse(&message(NLMSG_DONE, &[0; 4]), &mut found).unwrap());
        assert_eq!(found.iter().map(|q| q.root).collect::<Vec<_>>(), [true, false]);
        assert_eq!((found[0].kind.as_str(), found[0].index, found[0].handle), ("fq", 2, 0x8001_0000));
    }

    #[test]
    fn cut_messages_and_the_kernels_refusal_are_errors() {
        let whole = message(RTM_NEWQDISC, &fq(TC_H_ROOT));
        for length in 1..whole.len() - 4 {
            assert!(parse(&whole[..length], &mut Vec::new()).is_err(), "{length}");
        }
        let refused = parse(&message(NLMSG_ERROR, &(-libc::EPERM).to_ne_bytes()), &mut Vec::new());
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM));
    }
}
