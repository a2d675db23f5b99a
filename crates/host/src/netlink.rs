//! Netlink messages, taken apart without trust in their lengths.

use std::io;

use netlink_sys::{Socket, SocketAddr};

/// linux/netlink.h
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const HEADER: usize = 16;
/// The kernel makes a dump's datagrams as large as the largest buffer it was given, up to this (`netlink_recvmsg`,
/// net/netlink/af_netlink.c): fewer system calls.
const LARGEST_DATAGRAM: usize = 32 << 10;

/// Asks for everything of one kind, and gives each answer's body to `each`.
///
/// # Errors
/// What the kernel answers, or a message that is cut off.
pub(crate) fn dump(protocol: isize, kind: u16, body: &[u8], mut each: impl FnMut(u16, &[u8])) -> io::Result<()> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut request = Vec::with_capacity(HEADER + body.len());
    request.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    socket.send(&request, 0)?;
    let mut buffer = Vec::with_capacity(LARGEST_DATAGRAM);
    loop {
        buffer.clear();
        let length = socket.recv(&mut buffer, libc::MSG_TRUNC)?;
        if length > buffer.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a netlink datagram is larger than any should be"));
        }
        if messages(&buffer, &mut each)? {
            return Ok(());
        }
    }
}

/// Gives the messages of one datagram to `each`. True at the dump's end.
pub(crate) fn messages(mut bytes: &[u8], each: &mut impl FnMut(u16, &[u8])) -> io::Result<bool> {
    let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "a netlink message is cut off");
    if bytes.is_empty() {
        return Err(cut());
    }
    while !bytes.is_empty() {
        let length = u32_at(bytes, 0).ok_or_else(cut)? as usize;
        let kind = u16_at(bytes, 4).ok_or_else(cut)?;
        let body = bytes.get(HEADER..length).ok_or_else(cut)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = u32_at(body, 0).ok_or_else(cut)? as i32;
                return if code == 0 { Ok(true) } else { Err(io::Error::from_raw_os_error(code.saturating_neg())) };
            }
            kind => each(kind, body),
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The attributes in `bytes`, as kind and value, up to the first that can't be one. The bits that mark nesting and byte order are
/// taken off the kind.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Text up to its first NUL.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn messages_are_given_up_to_the_end_of_the_dump() {
        let mut seen = Vec::new();
        let mut each = |kind: u16, body: &[u8]| seen.push((kind, body.to_vec()));
        assert!(!messages(&[message(20, b"abc"), message(21, b"")].concat(), &mut each).unwrap());
        assert!(messages(&message(NLMSG_DONE, &[0; 4]), &mut each).unwrap());
        assert_eq!(seen, [(20, b"abc".to_vec()), (21, Vec::new())]);
    }

    #[test]
    fn cut_messages_and_refusals_are_errors() {
        let whole = message(20, &[1; 12]);
        for length in 0..whole.len() {
            assert!(messages(&whole[..length], &mut |_, _| {}).is_err(), "cut at {length}");
        }
        let refused = messages(&message(NLMSG_ERROR, &(-libc::EPERM).to_ne_bytes()), &mut |_, _| {});
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn attributes_end_at_the_first_that_is_none() {
        let mut bytes = vec![7, 0, 1, 0, b'f', b'q', 0, 0];
        bytes.extend([5, 0, 2, 0x80, 9, 0, 0, 0]);
        bytes.extend([3, 0, 3, 0]);
        let all: Vec<_> = attributes(&bytes).collect();
        assert_eq!(all, [(1, b"fq\0".as_slice()), (2, [9].as_slice())]);
        assert_eq!(text(all[0].1), "fq");
        assert_eq!(attributes(&[0, 0, 0, 0]).count(), 0);
    }
}
