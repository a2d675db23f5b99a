//! Connections from here to the server.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;

use host::clock::Clock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};
use units::Duration;

use super::{ClientPlan, TestError};
use crate::traffic::StopFlag;

/// Connects a socket that `prepare` has seen before, within `patience`; ends early when told to stop.
pub(super) fn connect(
    to: SocketAddr,
    from: Option<IpAddr>,
    patience: Duration,
    clock: Clock,
    stop: &StopFlag,
    prepare: impl FnOnce(&Socket) -> Result<(), TestError>,
) -> Result<Socket, TestError> {
    let failed = |source| TestError::Connect { address: to, source };
    let socket =
        Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), Some(Protocol::TCP)).map_err(failed)?;
    prepare(&socket)?;
    if let Some(from) = from {
        socket
            .bind(&SocketAddr::new(from, 0).into())
            .map_err(|source| TestError::Local { step: "use the local address", source })?;
    }
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(failed(error)),
        _ => {}
    }
    let until = clock.now() + patience;
    loop {
        let mut sockets = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut sockets, PollTimeout::from(20u8)) {
            Ok(ready) if ready > 0 => break,
            _ if stop.is_stopped() => return Err(TestError::Stopped),
            _ if clock.now() >= until => return Err(failed(io::ErrorKind::TimedOut.into())),
            _ => {}
        }
    }
    match socket.take_error() {
        Ok(None) => Ok(socket),
        Ok(Some(error)) | Err(error) => Err(failed(error)),
    }
}

/// The control connection: the first address that answers.
pub(super) fn control(plan: &ClientPlan) -> Result<(TcpStream, SocketAddr), TestError> {
    let mut last = TestError::BadPlan("no address to connect to".into());
    for address in &plan.servers {
        match connect(*address, plan.from, plan.patience, plan.clock, &plan.stop, |_| Ok(())) {
            Ok(socket) => return Ok((socket.into(), *address)),
            Err(TestError::Stopped) => return Err(TestError::Stopped),
            Err(error) => last = error,
        }
    }
    Err(last)
}
