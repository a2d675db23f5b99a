//! An rtnetlink socket, one request at a time.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

/// The kernel answers within the system call, unless it waits for another one's lock.
const ANSWER_WITHIN_SECONDS: i64 = 10;

/// A socket that stays in the network namespace it was opened in, whichever thread uses it.
pub struct Rtnl {
    socket: Socket,
    sequence: u32,
}

impl Rtnl {
    /// Opens one in the calling thread's namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // An answer that does not come must not hold a run for ever.
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(ANSWER_WITHIN_SECONDS))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Makes what `message` says, and waits until it is made.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn create(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.send(message, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)?;
        match self.answer()? {
            None => Ok(()),
            Some(other) => Err(io::Error::other(format!("unexpected answer: {other:?}"))),
        }
    }

    /// Asks for one object.
    ///
    /// # Errors
    /// The kernel's answer where that is not the object.
    pub fn get(&mut self, message: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        // Without "echo", kernels tell of a qdisc only to those who listen to all changes (tc_get_qdisc in net/sched/sch_api.c, 6.12).
        self.send(message, NLM_F_REQUEST | NLM_F_ECHO)?;
        self.answer()?.ok_or_else(|| io::Error::other("an acknowledgement instead of an answer"))
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let bytes = encode(message, flags, self.sequence);
        self.socket.send(&bytes, 0).map(drop)
    }

    fn answer(&self) -> io::Result<Option<RouteNetlinkMessage>> {
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes).map_err(io::Error::other)?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::Error(error) => match error.code {
                    None => Ok(None),
                    Some(code) => Err(io::Error::from_raw_os_error(-code.get())),
                },
                NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
                other => Err(io::Error::other(format!("unexpected answer: {other:?}"))),
            };
        }
    }
}

/// The bytes of one request.
pub fn encode(message: RouteNetlinkMessage, flags: u16, sequence: u32) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}
