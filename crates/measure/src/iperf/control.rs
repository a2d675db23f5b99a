//! A control connection: whole messages within a time, or a reason.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use host::clock::Clock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};
use units::{Duration, Instant};

use super::wire::{self, State, WireError};
use crate::traffic::StopFlag;

/// The longest sleep, which bounds the time from a stop to its effect.
const SLICE: Duration = Duration::from_millis(20);

/// Why a message did not come or go.
#[derive(Debug, thiserror::Error)]
pub(super) enum ControlError {
    /// The peer closed the connection.
    #[error("closed the connection while {0}")]
    Closed(&'static str),
    /// Nothing, or not all of it, within the time.
    #[error("did not answer in time while {0}")]
    TimedOut(&'static str),
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
    /// What came is no message.
    #[error("broke the protocol while {0}: {1}")]
    Wire(&'static str, WireError),
    /// A byte that is no state.
    #[error("broke the protocol while {0}: no state has the number {1}")]
    NoState(&'static str, i8),
    /// The kernel's error.
    #[error("connection broken while {0}: {1}")]
    Io(&'static str, io::Error),
}

/// One end of a control connection.
#[derive(Debug)]
pub(super) struct Control {
    socket: TcpStream,
    clock: Clock,
    stop: StopFlag,
}

impl Control {
    pub(super) fn new(socket: TcpStream, clock: Clock, stop: StopFlag) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // States are single bytes that must not wait for an acknowledgement.
        socket.set_nodelay(true)?;
        Ok(Self { socket, clock, stop })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// From now on only time ends a wait: for the last words after a stop.
    pub(super) fn ignore_stop(&mut self) {
        self.stop = StopFlag::new();
    }

    /// Waits until the socket is ready, at most until `until`; whether it is.
    fn wait(&self, flags: PollFlags, until: Instant) -> bool {
        let left = self.clock.until(until).min(SLICE);
        // Rounded up, so that a wait does not end as a busy loop.
        let millis = u16::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
        let mut sockets = [PollFd::new(self.socket.as_fd(), flags)];
        matches!(poll(&mut sockets, PollTimeout::from(millis)), Ok(ready) if ready > 0)
    }

    fn check(&self, until: Instant, doing: &'static str) -> Result<(), ControlError> {
        if self.stop.is_stopped() {
            return Err(ControlError::Stopped);
        }
        if self.clock.now() >= until { Err(ControlError::TimedOut(doing)) } else { Ok(()) }
    }

    fn read(&mut self, mut into: &mut [u8], until: Instant, doing: &'static str) -> Result<(), ControlError> {
        while !into.is_empty() {
            match self.socket.read(into) {
                Ok(0) => return Err(ControlError::Closed(doing)),
                Ok(count) => into = &mut into[count..],
                Err(error) if is_transient(&error) => {
                    self.check(until, doing)?;
                    self.wait(PollFlags::POLLIN, until);
                }
                Err(error) => return Err(ControlError::Io(doing, error)),
            }
        }
        Ok(())
    }

    /// Sends all of it within `patience`.
    pub(super) fn send(
        &mut self,
        mut bytes: &[u8],
        patience: Duration,
        doing: &'static str,
    ) -> Result<(), ControlError> {
        let until = self.clock.now() + patience;
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_transient(&error) => {
                    self.check(until, doing)?;
                    self.wait(PollFlags::POLLOUT, until);
                }
                Err(error) => return Err(ControlError::Io(doing, error)),
            }
        }
        Ok(())
    }

    pub(super) fn send_state(&mut self, state: State, patience: Duration) -> Result<(), ControlError> {
        self.send(&[state.byte()], patience, "sending a state")
    }

    pub(super) fn send_json<T: Serialize>(
        &mut self,
        value: &T,
        patience: Duration,
        doing: &'static str,
    ) -> Result<(), ControlError> {
        self.send(&wire::framed(value), patience, doing)
    }

    /// Reads exactly these bytes within `patience`.
    pub(super) fn bytes<const N: usize>(
        &mut self,
        patience: Duration,
        doing: &'static str,
    ) -> Result<[u8; N], ControlError> {
        let mut bytes = [0; N];
        self.read(&mut bytes, self.clock.now() + patience, doing)?;
        Ok(bytes)
    }

    /// The next state, waiting at most `patience`; `None`: none came.
    pub(super) fn poll_state(
        &mut self,
        patience: Duration,
        doing: &'static str,
    ) -> Result<Option<State>, ControlError> {
        let until = self.clock.now() + patience;
        let mut byte = [0];
        loop {
            match self.socket.read(&mut byte) {
                Ok(0) => return Err(ControlError::Closed(doing)),
                Ok(_) => {
                    let state = State::from_byte(byte[0]);
                    return state.map(Some).ok_or(ControlError::NoState(doing, byte[0] as i8));
                }
                Err(error) if is_transient(&error) => {
                    if self.stop.is_stopped() {
                        return Err(ControlError::Stopped);
                    }
                    if self.clock.now() >= until {
                        return Ok(None);
                    }
                    self.wait(PollFlags::POLLIN, until);
                }
                Err(error) => return Err(ControlError::Io(doing, error)),
            }
        }
    }

    pub(super) fn state(&mut self, patience: Duration, doing: &'static str) -> Result<State, ControlError> {
        self.poll_state(patience, doing)?.ok_or(ControlError::TimedOut(doing))
    }

    /// Reads JSON of at most `most` bytes within `patience`. Memory grows with what comes, not with what was announced.
    pub(super) fn json<T: for<'a> Deserialize<'a>>(
        &mut self,
        most: usize,
        patience: Duration,
        doing: &'static str,
    ) -> Result<T, ControlError> {
        const STEP: usize = 64 << 10;
        let until = self.clock.now() + patience;
        let mut length = [0; 4];
        self.read(&mut length, until, doing)?;
        let length = wire::json_length(length, most).map_err(|error| ControlError::Wire(doing, error))?;
        let mut text = Vec::new();
        while text.len() < length {
            let from = text.len();
            text.resize(length.min(from + STEP), 0);
            self.read(&mut text[from..], until, doing)?;
        }
        wire::parse(&text).map_err(|error| ControlError::Wire(doing, error))
    }
}

pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
