//! One socket of one flow: what it does when it may send, when something came, and when its time is up.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use host::cc::CcVersion;
use host::clock::Clock;
use host::tcp::{self, TcpInfo};
use nix::sys::epoll::EpollFlags;
use socket2::{Domain, Protocol, Socket, Type};
use units::{Bytes, Duration, Instant};

use super::outcome::{FlowError, TcpSample};
use super::payload::{Discard, Payload};
use super::plan::{End, FlowKind, FlowPlan};

/// What the two halves of a flow know of each other.
#[derive(Debug, Default)]
pub(super) struct Shared {
    over: AtomicBool,
}

impl Shared {
    /// Whether one half has ended the flow. It says so before it closes, so that the other can tell this from a broken connection.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    fn set_over(&self) {
        self.over.store(true, Ordering::Release);
    }
}

/// What a worker lends its halves.
pub(super) struct Tools {
    pub(super) clock: Clock,
    pub(super) payload: Payload,
    pub(super) discard: Discard,
    /// Payload received by all flows, for progress.
    pub(super) total: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Sends a bulk flow; `left` is `None` where only time ends it.
    Source { left: Option<u64>, finished: bool },
    /// Receives a bulk flow; `expected` as above.
    Sink { expected: Option<u64> },
    /// Asks and waits.
    Requester { request: u64, response: u64, pause: Duration, turn: Turn },
    /// Waits and answers.
    Responder { request: u64, response: u64, turn: Turn },
}

/// Where a request/response flow stands, seen from one half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Sending { left: u64 },
    Receiving { left: u64 },
    Pausing { until: Instant },
}

enum Phase {
    /// A client before its start, or a server whose listening failed.
    Idle,
    Listening(Socket),
    Connecting(Socket),
    Running(Socket),
    Over,
}

/// Why a half stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It received everything.
    Complete,
    /// Its time was up.
    TimeUp,
    /// Somebody asked, or the other half ended the flow.
    Told,
}

/// What one half has to tell.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) connect_at: Option<Instant>,
    pub(super) cc_version: Option<CcVersion>,
    pub(super) finished_at: Option<Instant>,
    pub(super) last_byte_at: Option<Instant>,
    pub(super) received: u64,
    pub(super) received_series: Vec<(Instant, Bytes)>,
    pub(super) samples: Vec<TcpSample>,
    pub(super) request_latencies: Vec<Duration>,
    pub(super) error: Option<FlowError>,
}

pub(super) struct Half {
    /// Position of the flow in the plan.
    pub(super) flow: usize,
    pub(super) end: End,
    role: Role,
    phase: Phase,
    congestion_control: String,
    from: IpAddr,
    server: SocketAddr,
    shared: Arc<Shared>,
    starts_at: Instant,
    ends_at: Instant,
    asked_at: Instant,
    report: Report,
}

impl Half {
    pub(super) fn new(
        flow: usize,
        end: End,
        plan: &FlowPlan,
        addresses: (IpAddr, IpAddr),
        shared: Arc<Shared>,
    ) -> Self {
        let sends = plan.data_from == end;
        let role = match plan.kind {
            FlowKind::Bulk { bytes } => {
                let bytes = bytes.map(Bytes::as_u64);
                if sends { Role::Source { left: bytes, finished: false } } else { Role::Sink { expected: bytes } }
            }
            FlowKind::RequestResponse { request, response, pause } => {
                let (request, response) = (request.as_u64(), response.as_u64());
                if sends {
                    Role::Requester { request, response, pause, turn: Turn::Sending { left: request } }
                } else {
                    Role::Responder { request, response, turn: Turn::Receiving { left: request } }
                }
            }
        };
        Self {
            flow,
            end,
            role,
            phase: Phase::Idle,
            congestion_control: plan.congestion_control.clone(),
            from: addresses.0,
            server: SocketAddr::new(addresses.1, plan.server_port),
            shared,
            starts_at: Instant::MAX,
            ends_at: Instant::MAX,
            asked_at: Instant::ZERO,
            report: Report::default(),
        }
    }

    /// Whether this half only receives in bulk, so that serving it a little later does no harm.
    pub(super) fn is_patient(&self) -> bool {
        matches!(self.role, Role::Sink { .. })
    }

    /// Whether the flow's data comes from this half, which then has its TCP samples and proves its congestion control.
    fn sends_data(&self) -> bool {
        matches!(self.role, Role::Source { .. } | Role::Requester { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    pub(super) fn received(&self) -> u64 {
        self.report.received
    }

    pub(super) fn socket(&self) -> Option<&Socket> {
        match &self.phase {
            Phase::Listening(socket) | Phase::Connecting(socket) | Phase::Running(socket) => Some(socket),
            Phase::Idle | Phase::Over => None,
        }
    }

    pub(super) fn into_report(self) -> Report {
        self.report
    }

    /// What epoll should wake for.
    pub(super) fn interest(&self) -> EpollFlags {
        match (&self.phase, self.role) {
            (Phase::Listening(_), _) => EpollFlags::EPOLLIN,
            (Phase::Connecting(_), _) => EpollFlags::EPOLLOUT,
            // Errors and the peer's reset are always reported.
            (Phase::Running(_), Role::Source { finished: true, .. }) => EpollFlags::empty(),
            (Phase::Running(_), Role::Source { .. }) => EpollFlags::EPOLLOUT,
            (Phase::Running(_), Role::Sink { .. }) => EpollFlags::EPOLLIN,
            (Phase::Running(_), Role::Requester { turn, .. } | Role::Responder { turn, .. }) => match turn {
                Turn::Sending { .. } => EpollFlags::EPOLLOUT,
                Turn::Receiving { .. } => EpollFlags::EPOLLIN,
                Turn::Pausing { .. } => EpollFlags::empty(),
            },
            (Phase::Idle | Phase::Over, _) => EpollFlags::empty(),
        }
    }

    /// When this half wants to be woken whatever its socket says.
    pub(super) fn due(&self) -> Instant {
        match (&self.phase, self.role) {
            (Phase::Over, _) => Instant::MAX,
            (Phase::Idle, _) if self.end == End::Client => self.starts_at.min(self.ends_at),
            (Phase::Running(_), Role::Requester { turn: Turn::Pausing { until }, .. }) => until.min(self.ends_at),
            _ => self.ends_at,
        }
    }

    /// Fixes the flow's times once the traffic's start is known.
    pub(super) fn schedule(&mut self, plan: &FlowPlan, start: Instant, end: Instant) {
        self.starts_at = start + plan.start;
        self.ends_at = plan.duration.map_or(end, |duration| (self.starts_at + duration).min(end));
    }

    /// Opens the server's listening socket.
    pub(super) fn listen(&mut self) {
        match self.try_listen() {
            Ok(socket) => self.phase = Phase::Listening(socket),
            Err(error) => self.fail(error),
        }
    }

    fn try_listen(&self) -> Result<Socket, FlowError> {
        let failed = |error: io::Error| FlowError::Listen { reason: error.to_string() };
        let socket = self.open().map_err(failed)?;
        self.give_congestion_control(&socket)?;
        socket.set_reuse_address(true).map_err(failed)?;
        socket.bind(&self.server.into()).map_err(failed)?;
        socket.listen(1).map_err(failed)?;
        Ok(socket)
    }

    fn open(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(self.server), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        abort_on_close(&socket)?;
        Ok(socket)
    }

    fn give_congestion_control(&self, socket: &Socket) -> Result<(), FlowError> {
        tcp::set_congestion_control(socket, &self.congestion_control)
            .map_err(|error| FlowError::CongestionControl { reason: error.to_string() })
    }

    /// Starts the client's connection.
    fn connect(&mut self, tools: &Tools) {
        match self.try_connect(tools) {
            Ok(socket) => self.phase = Phase::Connecting(socket),
            Err(error) => self.fail(error),
        }
    }

    fn try_connect(&mut self, tools: &Tools) -> Result<Socket, FlowError> {
        let failed = |error: io::Error| FlowError::Connect { reason: error.to_string() };
        let socket = self.open().map_err(failed)?;
        self.give_congestion_control(&socket)?;
        socket.bind(&SocketAddr::new(self.from, 0).into()).map_err(failed)?;
        self.report.connect_at = Some(tools.clock.now());
        match socket.connect(&self.server.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(failed(error)),
            _ => Ok(socket),
        }
    }

    /// The connection stands: reads back what it runs and begins.
    fn begin(&mut self, socket: Socket, tools: &mut Tools) {
        let prepared = match self.role {
            Role::Requester { .. } | Role::Responder { .. } => socket.set_tcp_nodelay(true),
            Role::Source { .. } | Role::Sink { .. } => Ok(()),
        };
        let version = prepared.and_then(|()| CcVersion::of(&socket));
        let now = tools.clock.now();
        match version {
            Ok(version) if self.sends_data() => self.report.cc_version = Some(version),
            Ok(_) => {}
            Err(error) => return self.fail(broken(&error)),
        }
        self.phase = Phase::Running(socket);
        if !matches!(self.role, Role::Source { .. } | Role::Responder { .. }) {
            self.report.received_series.push((now, Bytes::ZERO));
        }
        self.asked_at = now;
        self.send(tools);
    }

    /// Its socket is ready for `events`.
    pub(super) fn on_ready(&mut self, events: EpollFlags, tools: &mut Tools) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Listening(listener) => match listener.accept() {
                Ok((socket, _)) => match socket.set_nonblocking(true).and_then(|()| abort_on_close(&socket)) {
                    Ok(()) => self.begin(socket, tools),
                    Err(error) => self.fail(broken(&error)),
                },
                Err(error) if is_transient(&error) => self.phase = Phase::Listening(listener),
                Err(error) => self.fail(broken(&error)),
            },
            Phase::Connecting(socket) => match socket.take_error() {
                Ok(None) => self.begin(socket, tools),
                Ok(Some(error)) | Err(error) => self.fail(FlowError::Connect { reason: error.to_string() }),
            },
            Phase::Running(socket) => {
                self.phase = Phase::Running(socket);
                let failed = events.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP);
                match self.role {
                    // A source reads nothing, so that only this tells it of the other end's close.
                    Role::Source { .. } if failed => self.on_hang_up(tools),
                    _ if events.contains(EpollFlags::EPOLLOUT) && !failed => self.send(tools),
                    _ => self.receive(tools),
                }
            }
            idle_or_over => self.phase = idle_or_over,
        }
    }

    fn on_hang_up(&mut self, tools: &mut Tools) {
        let error = self.socket().and_then(|socket| socket.take_error().ok().flatten());
        let error = error.unwrap_or_else(|| ErrorKind::ConnectionReset.into());
        self.on_error(&error, tools);
    }

    /// An error of the running connection, which may be nothing but the other half's planned close.
    fn on_error(&mut self, error: &io::Error, tools: &mut Tools) {
        if is_transient(error) {
        } else if tools.clock.now() >= self.ends_at {
            self.finish(Ending::TimeUp, tools);
        } else if self.shared.is_over() {
            self.finish(Ending::Told, tools);
        } else {
            self.take_final_counts(tools);
            self.fail(broken(error));
        }
    }

    /// Sends what its role has to send, as far as the socket takes it in one call.
    fn send(&mut self, tools: &mut Tools) {
        let Phase::Running(socket) = &self.phase else { return };
        let sent = match &mut self.role {
            Role::Source { finished: true, .. } | Role::Sink { .. } => return,
            Role::Source { left, finished } => {
                let sent = match *left {
                    Some(0) => Ok(0),
                    most => tools.payload.send(socket, most.unwrap_or(u64::MAX)),
                };
                if let (Ok(sent), Some(left)) = (&sent, left) {
                    *left -= sent;
                    if *left == 0 {
                        *finished = true;
                        // It fails only where the connection is gone, which epoll reports next.
                        let _ = socket.shutdown(Shutdown::Write);
                    }
                }
                sent
            }
            Role::Requester { response: next, turn, .. } | Role::Responder { request: next, turn, .. } => {
                let Turn::Sending { left } = turn else { return };
                let sent = tools.payload.send(socket, *left);
                if let Ok(sent) = &sent {
                    *left -= sent;
                    if *left == 0 {
                        *turn = Turn::Receiving { left: *next };
                    }
                }
                sent
            }
        };
        if let Err(error) = sent {
            self.on_error(&error, tools);
        }
    }

    /// Takes what came, in one call.
    fn receive(&mut self, tools: &mut Tools) {
        let Phase::Running(socket) = &self.phase else { return };
        let most = match self.role {
            Role::Source { .. } => return,
            Role::Sink { .. } => u64::MAX,
            Role::Requester { turn: Turn::Receiving { left }, .. } => left,
            Role::Responder { turn: Turn::Receiving { left }, .. } => left,
            // Nothing is expected: what there is can only be the connection's end.
            Role::Requester { .. } | Role::Responder { .. } => 1,
        };
        match tools.discard.receive(socket, most) {
            Ok(0) => self.on_end_of_data(tools),
            Ok(count) => self.on_data(count, tools),
            Err(error) => self.on_error(&error, tools),
        }
    }

    fn on_data(&mut self, count: u64, tools: &mut Tools) {
        let now = tools.clock.now();
        match &mut self.role {
            Role::Source { .. } => {}
            Role::Sink { .. } => self.count(count, now, tools),
            Role::Requester { pause, turn, .. } => {
                let Turn::Receiving { left } = turn else { return };
                *left = left.saturating_sub(count);
                if *left == 0 {
                    *turn = Turn::Pausing { until: now + *pause };
                    self.report.request_latencies.push(now.since(self.asked_at));
                }
                self.count(count, now, tools);
                self.wake(now, tools);
            }
            Role::Responder { response, turn, .. } => {
                let Turn::Receiving { left } = turn else { return };
                *left = left.saturating_sub(count);
                if *left == 0 {
                    *turn = Turn::Sending { left: *response };
                    self.send(tools);
                }
            }
        }
    }

    fn count(&mut self, count: u64, now: Instant, tools: &Tools) {
        self.report.received += count;
        self.report.last_byte_at = Some(now);
        tools.total.fetch_add(count, Ordering::Relaxed);
    }

    fn on_end_of_data(&mut self, tools: &mut Tools) {
        match self.role {
            Role::Sink { expected: Some(expected) } if self.report.received == expected => {
                self.report.last_byte_at.get_or_insert(tools.clock.now());
                self.finish(Ending::Complete, tools);
            }
            _ if self.shared.is_over() => self.finish(Ending::Told, tools),
            _ => {
                self.take_final_counts(tools);
                self.fail(FlowError::EndedEarly);
            }
        }
    }

    /// Does what is due by the clock.
    pub(super) fn wake(&mut self, now: Instant, tools: &mut Tools) {
        if self.is_over() {
        } else if now >= self.ends_at {
            match self.phase {
                Phase::Idle | Phase::Connecting(_) if self.end == End::Client => self.fail(FlowError::NeverConnected),
                _ => self.finish(Ending::TimeUp, tools),
            }
        } else if self.shared.is_over() {
            self.finish(Ending::Told, tools);
        } else if matches!(self.phase, Phase::Idle) && self.end == End::Client && now >= self.starts_at {
            self.connect(tools);
        } else if let Role::Requester { request, turn, .. } = &mut self.role
            && let Turn::Pausing { until } = *turn
            && now >= until
        {
            *turn = Turn::Sending { left: *request };
            self.asked_at = tools.clock.now();
            self.send(tools);
        }
    }

    /// Reads counters for the series, and the proof of what the socket runs.
    pub(super) fn sample(&mut self, now: Instant) {
        let Phase::Running(socket) = &self.phase else { return };
        if !matches!(self.role, Role::Source { .. } | Role::Responder { .. }) {
            self.report.received_series.push((now, Bytes::new(self.report.received)));
        }
        if self.sends_data() {
            if let Ok(info) = TcpInfo::of(socket) {
                self.report.samples.push(TcpSample::new(now, &info));
            }
            let ran = tcp::congestion_control(socket).unwrap_or_default();
            if ran != self.congestion_control && self.report.error.is_none() {
                let wanted = self.congestion_control.clone();
                self.report.error = Some(FlowError::WrongCongestionControl { wanted, ran });
            }
        }
    }

    /// Ends the half because somebody asked for it.
    pub(super) fn stop(&mut self, tools: &mut Tools) {
        self.finish(Ending::Told, tools);
    }

    fn finish(&mut self, ending: Ending, tools: &mut Tools) {
        if self.is_over() {
            return;
        }
        let connected = matches!(self.phase, Phase::Running(_));
        self.take_final_counts(tools);
        let on_time = match self.role {
            Role::Sink { expected: Some(_) } | Role::Source { left: Some(_), .. } => ending == Ending::Complete,
            _ => ending == Ending::TimeUp,
        };
        if on_time && connected {
            let at = if ending == Ending::Complete { self.report.last_byte_at } else { None };
            self.report.finished_at = at.or_else(|| Some(tools.clock.now()));
        }
        self.shared.set_over();
        self.phase = Phase::Over;
    }

    /// The last entry of every series, after taking what has arrived and was not read yet.
    fn take_final_counts(&mut self, tools: &mut Tools) {
        // A bound, since data may come as fast as it is read.
        const ROUNDS: usize = 64;
        let Phase::Running(socket) = &self.phase else { return };
        if let Role::Sink { .. } = self.role {
            let mut rest = 0;
            for _ in 0..ROUNDS {
                match tools.discard.receive(socket, u64::MAX) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => rest += count,
                }
            }
            if rest > 0 {
                self.count(rest, tools.clock.now(), tools);
            }
        }
        self.sample(tools.clock.now());
    }

    fn fail(&mut self, error: FlowError) {
        self.report.error.get_or_insert(error);
        self.shared.set_over();
        self.phase = Phase::Over;
    }
}

/// Makes close(2), and the end of the process by whatever cause, abort the connection with a reset. Otherwise the kernel would
/// keep the socket, with up to a BDP of unsent data from the host's TCP memory, for minutes after its path is gone.
fn abort_on_close(socket: &Socket) -> io::Result<()> {
    socket.set_linger(Some(std::time::Duration::ZERO))
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn broken(error: &io::Error) -> FlowError {
    FlowError::Broken { reason: error.to_string() }
}
