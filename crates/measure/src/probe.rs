//! Small datagrams through the same queue as the flows: what delay a packet meets there.
//!
//! Both ends of an experiment run on one machine and one clock, so that one-way delays are exact: from just before send(2) to the
//! kernel's own time stamp of the arrival (`SO_TIMESTAMPNS`), which a busy receiver does not delay. That stamp is of `CLOCK_REALTIME`;
//! it becomes an instant of the experiment by its age at the moment it is read, with both clocks read together. The error is the
//! time between these two reads: under a microsecond, and bounded by [`BRACKET`] because a read that took longer is repeated. A step
//! of the time of day between arrival and reading would show as an age out of bounds, and then the time of reading is taken.
//!
//! The round-trip time is the sum of the two one-way delays: the time that the echoing thread takes to answer is not in it.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use host::clock::Clock;
use host::netns::{NetNs, NetNsError};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, Socket, Type};
use units::{Duration, Instant};

use crate::traffic::{End, StopFlag};

/// The longest that reading two clocks together may take.
const BRACKET: Duration = Duration::from_micros(5);
/// Payload of a probe: with IPv4 and UDP headers 92 bytes, over the 64 of the smallest Ethernet frame.
const SIZE: usize = 64;
const MAGIC: [u8; 8] = *b"LRprobe1";
/// The longest wait for answers after the last probe.
const GRACE: Duration = Duration::from_secs(2);
/// The longest sleep, which bounds the time from a stop to its effect.
const PATIENCE: Duration = Duration::from_millis(20);

/// How to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbePlan {
    /// From one probe to the next; 50 ms is usual: 20 packets a second do not load a path of 1 Mbit/s.
    pub interval: Duration,
    /// The end that sends probes. Choose the one that sends the data, to meet the same queue.
    pub from: End,
}

impl Default for ProbePlan {
    fn default() -> Self {
        Self { interval: Duration::from_millis(50), from: End::Client }
    }
}

/// Where probes run.
#[derive(Debug, Clone, Copy)]
pub struct ProbePath<'a> {
    /// The client's namespace.
    pub client: &'a NetNs,
    /// The server's namespace; may be the same.
    pub server: &'a NetNs,
    /// The client's address.
    pub client_addr: IpAddr,
    /// The server's address.
    pub server_addr: IpAddr,
}

/// What one probe met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSample {
    /// Just before it was sent.
    pub sent_at: Instant,
    /// Until it arrived at the other end; `None`: it never did.
    pub one_way: Option<Duration>,
    /// That and the answer's way back; `None`: one of the two was lost.
    pub rtt: Option<Duration>,
}

/// What all probes met, in the order they were sent. Those too young to be called lost when probing ended are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeOutcome {
    /// One per probe.
    pub samples: Vec<ProbeSample>,
    /// Probes without an answer.
    pub lost: usize,
}

impl ProbeOutcome {
    /// The round-trip times of those that were answered, sent from `from` to `to`.
    pub fn rtts(&self, from: Instant, to: Instant) -> Vec<Duration> {
        let sent_then = self.samples.iter().filter(|sample| (from..=to).contains(&sample.sent_at));
        sent_then.filter_map(|sample| sample.rtt).collect()
    }
}

/// Why probing could not start.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NetNsError),
    /// A socket could not be set up.
    #[error("set up the probe's socket at {address}: {source}")]
    Socket {
        /// Its address.
        address: IpAddr,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Sends `count` probes over a path with nothing else on it, and waits for the last answer.
///
/// # Errors
/// [`ProbeError`] where the sockets can't be set up; losses are in the outcome.
pub fn idle_rtt(
    path: &ProbePath<'_>,
    plan: ProbePlan,
    count: u32,
    clock: Clock,
    stop: &StopFlag,
) -> Result<ProbeOutcome, ProbeError> {
    let prober = Prober::open(path, plan)?;
    Ok(Probing::new(prober, clock, Some(count)).run(&|| stop.is_stopped(), &|| false))
}

/// The two sockets, ready to be used from any thread.
#[derive(Debug)]
pub(crate) struct Prober {
    plan: ProbePlan,
    origin: Socket,
    echo: Socket,
}

impl Prober {
    pub(crate) fn open(path: &ProbePath<'_>, plan: ProbePlan) -> Result<Self, ProbeError> {
        let client = open_at(path.client, path.client_addr)?;
        let server = open_at(path.server, path.server_addr)?;
        for (one, two, address) in [(&client, &server, path.client_addr), (&server, &client, path.server_addr)] {
            let connected = two.local_addr().and_then(|peer| one.connect(&peer));
            connected.map_err(|source| ProbeError::Socket { address, source })?;
        }
        let (origin, echo) = match plan.from {
            End::Client => (client, server),
            End::Server => (server, client),
        };
        Ok(Self { plan, origin, echo })
    }

    pub(crate) fn start(self, stop: StopFlag, clock: Clock) -> io::Result<RunningProbe> {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let thread = std::thread::Builder::new().name("probe".into()).spawn(move || {
            Probing::new(self, clock, None).run(&|| stop.is_stopped(), &|| seen.load(Ordering::Relaxed))
        })?;
        Ok(RunningProbe { done, thread: Some(thread) })
    }
}

fn open_at(namespace: &NetNs, address: IpAddr) -> Result<Socket, ProbeError> {
    let open = || {
        let at = SocketAddr::new(address, 0);
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        socket.bind(&at.into())?;
        Ok(socket)
    };
    namespace.run(open)?.map_err(|source| ProbeError::Socket { address, source })
}

/// A probe on its own thread. Dropping it ends the thread too.
#[derive(Debug)]
pub(crate) struct RunningProbe {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<ProbeOutcome>>,
}

impl RunningProbe {
    /// Sends no more, and waits a little for answers on their way.
    pub(crate) fn finish(mut self) -> ProbeOutcome {
        self.done.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => ProbeOutcome::default(),
        }
    }
}

impl Drop for RunningProbe {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
    }
}

/// The loop over both sockets.
struct Probing {
    prober: Prober,
    clock: Clock,
    left: Option<u32>,
    samples: Vec<ProbeSample>,
    /// Numbers of probes without an answer, oldest first.
    open: VecDeque<usize>,
    longest_rtt: Option<Duration>,
}

impl Probing {
    fn new(prober: Prober, clock: Clock, count: Option<u32>) -> Self {
        Self { prober, clock, left: count, samples: Vec::new(), open: VecDeque::new(), longest_rtt: None }
    }

    fn run(mut self, stopped: &dyn Fn() -> bool, done: &dyn Fn() -> bool) -> ProbeOutcome {
        let mut next = self.clock.now();
        let mut ended: Option<Instant> = None;
        loop {
            let now = self.clock.now();
            if stopped() {
                break;
            }
            if ended.is_none() && (done() || self.left == Some(0)) {
                ended = Some(now);
            }
            let mut wake_at = now + PATIENCE;
            match ended {
                Some(end) if self.open.is_empty() || now >= end + self.patience().min(GRACE) => break,
                Some(_) => {}
                None => {
                    if now >= next {
                        self.send();
                        // An absolute schedule; what was missed is not made up for, since a burst would measure itself.
                        while next <= now {
                            next += self.prober.plan.interval;
                        }
                    }
                    wake_at = wake_at.min(next);
                }
            }
            self.wait(wake_at);
            while let Some((message, arrived)) = receive(&self.prober.echo, self.clock) {
                self.echo(message, arrived);
            }
            while let Some((message, arrived)) = receive(&self.prober.origin, self.clock) {
                self.take_answer(message, arrived);
            }
        }
        self.outcome()
    }

    /// How old a probe must be to count as lost.
    fn patience(&self) -> Duration {
        self.longest_rtt.map_or(GRACE, |rtt| rtt * 2 + Duration::from_millis(50))
    }

    fn wait(&self, until: Instant) {
        let mut sockets = [&self.prober.origin, &self.prober.echo].map(|s| PollFd::new(s.as_fd(), PollFlags::POLLIN));
        let timeout = TimeSpec::from_duration(self.clock.until(until).into());
        // Whatever it says, sockets are read and the clock is looked at next.
        let _ = ppoll(&mut sockets, Some(timeout), None);
    }

    fn send(&mut self) {
        let number = self.samples.len();
        let mut message = [0; SIZE];
        message[..8].copy_from_slice(&MAGIC);
        message[8..16].copy_from_slice(&(number as u64).to_le_bytes());
        let sent_at = self.clock.now();
        message[16..24].copy_from_slice(&sent_at.as_nanos().to_le_bytes());
        // A probe that the host itself refuses is one that got lost.
        let _ = self.prober.origin.send(&message);
        self.samples.push(ProbeSample { sent_at, one_way: None, rtt: None });
        self.open.push_back(number);
        self.left = self.left.map(|left| left - 1);
    }

    /// A probe arrived: notes its delay and sends the answer, with the time it leaves.
    fn echo(&mut self, message: [u8; SIZE], arrived: Instant) {
        let Some(sample) = self.samples.get_mut(number_of(&message)) else { return };
        // A duplicate counts no more, but is answered all the same, as any echo server would.
        sample.one_way.get_or_insert(arrived.since(sample.sent_at));
        let mut answer = message;
        answer[24..32].copy_from_slice(&self.clock.now().as_nanos().to_le_bytes());
        let _ = self.prober.echo.send(&answer);
    }

    fn take_answer(&mut self, message: [u8; SIZE], arrived: Instant) {
        let number = number_of(&message);
        let Some(sample) = self.samples.get_mut(number) else { return };
        let left_echo = Instant::from_nanos(u64_at(&message, 24));
        if let (Some(there), None) = (sample.one_way, sample.rtt) {
            let rtt = there + arrived.since(left_echo);
            sample.rtt = Some(rtt);
            self.longest_rtt = self.longest_rtt.max(Some(rtt));
            self.open.retain(|open| *open != number);
        }
    }

    fn outcome(self) -> ProbeOutcome {
        let (now, patience) = (self.clock.now(), self.patience());
        let is_decided =
            |sample: &ProbeSample| sample.rtt.is_some() || now.since(sample.sent_at) >= patience.min(GRACE);
        let samples: Vec<_> = self.samples.into_iter().filter(is_decided).collect();
        let lost = samples.iter().filter(|sample| sample.rtt.is_none()).count();
        ProbeOutcome { samples, lost }
    }
}

fn number_of(message: &[u8; SIZE]) -> usize {
    usize::try_from(u64_at(message, 8)).unwrap_or(usize::MAX)
}

fn u64_at(message: &[u8; SIZE], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&message[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// The next of our messages waiting at a socket and when it arrived.
fn receive(socket: &Socket, clock: Clock) -> Option<([u8; SIZE], Instant)> {
    let mut message = [0; SIZE];
    let mut control = nix::cmsg_space!(TimeSpec);
    loop {
        let mut into = [IoSliceMut::new(&mut message)];
        // Errors are either "nothing there" or an ICMP message about a lost probe, which clears itself by being read.
        let received = recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut control), MsgFlags::MSG_DONTWAIT).ok()?;
        let stamp = received.cmsgs().ok().and_then(|mut all| {
            all.find_map(|one| match one {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
                _ => None,
            })
        });
        let whole = received.bytes == SIZE;
        let arrived = arrival(clock, stamp);
        if whole && message[..8] == MAGIC {
            return Some((message, arrived));
        }
    }
}

/// The instant of a kernel time stamp.
fn arrival(clock: Clock, stamp: Option<TimeSpec>) -> Instant {
    let (now, time_of_day) = both_clocks(clock);
    let age = stamp.and_then(|stamp| time_of_day.checked_sub(nanos(stamp)));
    match age {
        // The longest that a message may have waited for this thread; more means that the time of day was set.
        Some(age) if age < 10_000_000_000 => Instant::from_nanos(now.as_nanos().saturating_sub(age)),
        _ => now,
    }
}

/// The experiment's clock and the time of day in nanoseconds, read together.
fn both_clocks(clock: Clock) -> (Instant, u64) {
    let mut attempt = 0;
    loop {
        let before = clock.now();
        let time_of_day = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanos);
        let after = clock.now();
        attempt += 1;
        if after.since(before) < BRACKET || attempt == 5 {
            return (before + after.since(before) / 2, time_of_day);
        }
    }
}

fn nanos(time: TimeSpec) -> u64 {
    u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn realtime_ago(nanoseconds: i64) -> TimeSpec {
        let now = clock_gettime(ClockId::CLOCK_REALTIME).unwrap();
        TimeSpec::from_duration(std::time::Duration::from_nanos(
            u64::try_from(i64::try_from(nanos(now)).unwrap() - nanoseconds).unwrap(),
        ))
    }

    #[test]
    fn a_kernel_stamp_becomes_the_instant_it_was_taken() {
        let clock = Clock::start();
        let clock_start_ago = clock.now();
        let stamp = realtime_ago(0);
        // Whatever time passes before it is read, the instant stays within that of the two reads next to it.
        let read = arrival(clock, Some(stamp));
        let after = clock.now();
        let slack = Duration::from_micros(5);
        assert!(read + slack >= clock_start_ago && read <= after + slack, "{clock_start_ago} {read} {after}");
    }

    #[test]
    fn a_stamp_from_the_future_or_long_ago_is_not_believed() {
        let clock = Clock::start();
        for stamp in [None, Some(realtime_ago(-3_600_000_000_000)), Some(realtime_ago(3_600_000_000_000))] {
            let before = clock.now();
            let read = arrival(clock, stamp);
            assert!(read >= before && read <= clock.now());
        }
    }
}
