//! The delay beside and inside the loaded flows, between two linerate ends.
//!
//! Beside them: one TCP connection that carries a 16-byte question 20 times a second and its answer (*pings*), and short connections
//! that are opened, ask once and are closed (*foreign probes*). Inside a loaded flow: how long it takes until the application at the other
//! end has read what was just handed to the flow's socket. No byte of the flow is special: its place in the stream is asked for
//! over the probe's connection. Towards the server the question is "tell me when you have read byte N", from the server it
//! is "where are you", and the client waits until it has read that far itself.
//!
//! Working latency is what draft-ietf-ippm-responsiveness (revision 09) makes of foreign probes and those inside the flow, in its case of
//! TCP without TLS. Different from the draft: the load is the test's own flows rather than a search for saturation, and the figures
//! are over the whole measured part instead of its last four seconds.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::thread::JoinHandle;

use host::clock::Clock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use units::{Duration, Instant};

use super::control::is_transient;
use super::stream::Watch;
use super::wire::{COOKIE_LENGTH, Cookie, QUESTION_LENGTH, Question, QuestionKind};
use crate::stats::percentile;
use crate::traffic::StopFlag;

/// From one ping to the next.
const PING_EVERY: Duration = Duration::from_millis(50);
/// From one foreign probe, or one inside the flow, to the next, where they are answered sooner.
const PROBE_EVERY: Duration = Duration::from_millis(100);
/// The longest wait for one answer; what takes longer counts as lost.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pings before the load: so many, or as many as fit into the time.
const IDLE_PINGS: usize = 20;
const IDLE_TIME: Duration = Duration::from_secs(2);
/// The last byte of the cookie of a connection for questions, and of one that asks once.
pub(super) const FOR_QUESTIONS: u8 = b'q';
pub(super) const FOREIGN: u8 = b'f';

/// One probe on a connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignProbe {
    /// When it began.
    pub at: Instant,
    /// TCP's handshake.
    pub connect: Duration,
    /// A question and its answer after that.
    pub answer: Duration,
}

/// What all probes met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencyOutcome {
    /// Round-trip times before the load.
    pub idle: Vec<Duration>,
    /// When each ping was sent, and its round-trip time.
    pub pings: Vec<(Instant, Duration)>,
    /// On connections of their own.
    pub foreign: Vec<ForeignProbe>,
    /// When each was asked, and how long the loaded flow took.
    pub in_flow: Vec<(Instant, Duration)>,
    /// Probes without an answer in [`PATIENCE`], or at the end of the test.
    pub lost: usize,
}

/// Round trips per minute under load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Responsiveness {
    /// On connections of their own.
    pub foreign_rpm: f64,
    /// Inside the loaded flow.
    pub loaded_rpm: f64,
    /// Their mean: the figure that is called responsiveness.
    pub rpm: f64,
}

impl LatencyOutcome {
    /// Responsiveness over the probes from `from` to `to`; `None` where one of the kinds has none.
    pub fn responsiveness(&self, from: Instant, to: Instant) -> Option<Responsiveness> {
        let inside = |at: &Instant| (from..=to).contains(at);
        let foreign: Vec<&ForeignProbe> = self.foreign.iter().filter(|probe| inside(&probe.at)).collect();
        let connect = trimmed_mean_ms(foreign.iter().map(|probe| probe.connect).collect())?;
        let answer = trimmed_mean_ms(foreign.iter().map(|probe| probe.answer).collect())?;
        let in_flow = self.in_flow.iter().filter(|(at, _)| inside(at)).map(|(_, time)| *time).collect();
        // Section "For the TCP-Only Case".
        let foreign_rpm = 60_000.0 / ((connect + answer) / 2.0);
        let loaded_rpm = 60_000.0 / trimmed_mean_ms(in_flow)?;
        Some(Responsiveness { foreign_rpm, loaded_rpm, rpm: f64::midpoint(foreign_rpm, loaded_rpm) })
    }
}

/// The mean without what lies above the 95th percentile, in milliseconds; `None` for nothing.
fn trimmed_mean_ms(times: Vec<Duration>) -> Option<f64> {
    let most = percentile(&times, 95.0)?;
    let kept: Vec<f64> = times.into_iter().filter(|time| *time <= most).map(Duration::as_millis_f64).collect();
    // A clock of nanoseconds does not give zero for a round trip; a guard all the same.
    Some((kept.iter().sum::<f64>() / kept.len() as f64).max(1e-6))
}

/// The cookie that a connection for probes opens with.
pub(super) fn probe_cookie(cookie: &Cookie, kind: u8) -> Cookie {
    let mut cookie = *cookie;
    cookie.0[COOKIE_LENGTH - 1] = kind;
    cookie
}

/// Connections for questions, before the test runs.
#[derive(Debug)]
pub(super) struct Prober {
    server: SocketAddr,
    cookie: Cookie,
    pings: TcpStream,
    questions: TcpStream,
    clock: Clock,
    stop: StopFlag,
}

/// Where probes inside the flow go: a stream of the client that sends, or one that receives, and its place among those.
#[derive(Debug, Clone)]
pub(super) struct LoadedFlow {
    pub(super) place: u16,
    pub(super) sends: bool,
    pub(super) watch: Watch,
}

/// Probes on their threads.
#[derive(Debug)]
pub(super) struct Probing {
    stop: StopFlag,
    pings: Option<JoinHandle<LatencyOutcome>>,
    others: Option<JoinHandle<LatencyOutcome>>,
}

impl Prober {
    /// Opens both connections.
    pub(super) fn open(server: SocketAddr, cookie: Cookie, clock: Clock, patience: Duration) -> io::Result<Self> {
        let open = || {
            let mut connection = TcpStream::connect_timeout(&server, patience.into())?;
            connection.set_nodelay(true)?;
            connection.write_all(&probe_cookie(&cookie, FOR_QUESTIONS).0)?;
            connection.set_nonblocking(true)?;
            Ok::<TcpStream, io::Error>(connection)
        };
        Ok(Self { server, cookie, pings: open()?, questions: open()?, clock, stop: StopFlag::new() })
    }

    /// Measures the path without load; empty where nothing was answered.
    pub(super) fn idle(&mut self, stop: &StopFlag) -> Vec<Duration> {
        let until = self.clock.now() + IDLE_TIME;
        let mut times = Vec::new();
        // The first shares its way with the cookie and the server's work of taking the connection, so it is left out.
        for number in 0..=IDLE_PINGS {
            if stop.is_stopped() || (self.clock.now() >= until && !times.is_empty()) {
                break;
            }
            let asked = self.clock.now();
            let question = Question { kind: QuestionKind::Ping, stream: 0, number: number as u32, value: 0 };
            if ask(&mut self.pings, question, self.clock, stop).is_none() {
                break;
            }
            if number > 0 {
                times.push(self.clock.now().since(asked));
            }
        }
        times
    }

    /// Begins to probe beside and inside the load. The threads start in the caller's network namespace.
    pub(super) fn start(self, flow: Option<LoadedFlow>) -> io::Result<Probing> {
        let stop = self.stop.clone();
        let Self { server, cookie, pings, questions, clock, .. } = self;
        let told = stop.clone();
        let pings = spawn("probe-pings", move || ping(&pings, clock, &told))?;
        let told = stop.clone();
        let foreign = probe_cookie(&cookie, FOREIGN);
        let others = spawn("probe-others", move || {
            let mut outcome = LatencyOutcome::default();
            let mut questions = questions;
            let mut next = clock.now();
            while !told.is_stopped() {
                probe_foreign(server, &foreign, clock, &mut outcome);
                if let Some(flow) = &flow {
                    probe_in_flow(&mut questions, flow, clock, &told, &mut outcome);
                }
                next = (next + PROBE_EVERY).max(clock.now());
                pause(clock, next, &told);
            }
            outcome
        })?;
        Ok(Probing { stop, pings: Some(pings), others: Some(others) })
    }
}

impl Probing {
    /// Ends probing. What has no answer yet is left out where it is young, and lost otherwise.
    pub(super) fn finish(mut self) -> LatencyOutcome {
        self.stop.stop();
        let join = |thread: Option<JoinHandle<LatencyOutcome>>| match thread.map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => LatencyOutcome::default(),
        };
        let (pings, others) = (join(self.pings.take()), join(self.others.take()));
        LatencyOutcome { pings: pings.pings, lost: pings.lost + others.lost, ..others }
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

fn spawn<T: Send + 'static>(name: &str, f: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(f)
}

/// Sleeps until `until`, in slices that see a stop.
fn pause(clock: Clock, until: Instant, stop: &StopFlag) {
    while !stop.is_stopped() && clock.now() < until {
        std::thread::sleep(clock.until(until).min(Duration::from_millis(20)).into());
    }
}

fn ready(fd: BorrowedFd<'_>, wait: Duration) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    let millis = u16::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
    matches!(poll(&mut fds, PollTimeout::from(millis)), Ok(count) if count > 0)
}

/// Asks and waits for the answer with the same number; `None`: none came in time, or the connection is gone.
fn ask(connection: &mut TcpStream, question: Question, clock: Clock, stop: &StopFlag) -> Option<Question> {
    connection.write_all(&question.bytes()).ok()?;
    let until = clock.now() + PATIENCE;
    let mut answer = [0; QUESTION_LENGTH];
    let mut have = 0;
    while clock.now() < until && !stop.is_stopped() {
        match connection.read(&mut answer[have..]) {
            Ok(0) => return None,
            Ok(count) => have += count,
            Err(error) if is_transient(&error) => {
                ready(connection.as_fd(), clock.until(until).min(Duration::from_millis(50)));
            }
            Err(_) => return None,
        }
        if have == QUESTION_LENGTH {
            have = 0;
            match Question::from_bytes(answer) {
                Some(answer) if answer.number == question.number && answer.kind == question.kind => {
                    return Some(answer);
                }
                // An answer to what was given up.
                _ => {}
            }
        }
    }
    None
}

/// Pings on an absolute schedule, several under way at once where the delay is long.
fn ping(mut connection: &TcpStream, clock: Clock, stop: &StopFlag) -> LatencyOutcome {
    let mut outcome = LatencyOutcome::default();
    let mut sent: Vec<(Instant, bool)> = Vec::new();
    let mut next = clock.now();
    let mut answer = [0; QUESTION_LENGTH];
    let mut have = 0;
    // Numbers of pings before the load are lower.
    let base = 1_000;
    while !stop.is_stopped() {
        let now = clock.now();
        if now >= next {
            let number = base + sent.len() as u32;
            let question = Question { kind: QuestionKind::Ping, stream: 0, number, value: 0 };
            // 16 bytes fit unless thousands wait already.
            if connection.write_all(&question.bytes()).is_err() {
                break;
            }
            sent.push((now, false));
            while next <= now {
                next += PING_EVERY;
            }
        }
        ready(connection.as_fd(), clock.until(next).min(Duration::from_millis(20)));
        loop {
            match connection.read(&mut answer[have..]) {
                Ok(0) => {
                    outcome.lost = sent.iter().filter(|(_, answered)| !answered).count();
                    return outcome;
                }
                Ok(count) => have += count,
                Err(_) => break,
            }
            if have == QUESTION_LENGTH {
                have = 0;
                let now = clock.now();
                let number = Question::from_bytes(answer).and_then(|answer| answer.number.checked_sub(base));
                if let Some((at, answered)) = number.and_then(|number| sent.get_mut(number as usize))
                    && !*answered
                {
                    *answered = true;
                    outcome.pings.push((*at, now.since(*at)));
                }
            }
        }
    }
    let longest = outcome.pings.iter().map(|(_, rtt)| *rtt).max().unwrap_or(PATIENCE);
    let young = clock.now().saturating_sub_duration(longest * 2);
    outcome.lost = sent.iter().filter(|(at, answered)| !answered && *at < young).count();
    outcome
}

/// `Instant` minus `Duration`, which units leaves out because few need it.
trait Earlier {
    fn saturating_sub_duration(self, span: Duration) -> Instant;
}

impl Earlier for Instant {
    fn saturating_sub_duration(self, span: Duration) -> Instant {
        Instant::from_nanos(self.as_nanos().saturating_sub(span.as_nanos()))
    }
}

fn probe_foreign(server: SocketAddr, cookie: &Cookie, clock: Clock, outcome: &mut LatencyOutcome) {
    let probe = || {
        let at = clock.now();
        let mut connection = TcpStream::connect_timeout(&server, PATIENCE.into()).ok()?;
        let connected = clock.now();
        connection.set_nodelay(true).ok()?;
        connection.set_read_timeout(Some(PATIENCE.into())).ok()?;
        connection.write_all(&cookie.0).ok()?;
        connection.read_exact(&mut [0]).ok()?;
        let answer = clock.now().since(connected);
        // The probe's end is no part of what is measured, and a reset leaves nothing behind at either end.
        let _ = socket2::SockRef::from(&connection).set_linger(Some(std::time::Duration::ZERO));
        Some(ForeignProbe { at, connect: connected.since(at), answer })
    };
    match probe() {
        Some(probe) => outcome.foreign.push(probe),
        None => outcome.lost += 1,
    }
}

fn probe_in_flow(
    questions: &mut TcpStream,
    flow: &LoadedFlow,
    clock: Clock,
    stop: &StopFlag,
    outcome: &mut LatencyOutcome,
) {
    let number = (outcome.in_flow.len() + outcome.lost) as u32;
    let asked = clock.now();
    let until = asked + PATIENCE;
    let value = flow.watch.moved();
    let kind = if flow.sends { QuestionKind::Reached } else { QuestionKind::Written };
    let question = Question { kind, stream: flow.place, number, value };
    let answered = ask(questions, question, clock, stop).is_some_and(|answer| {
        if flow.sends {
            return true;
        }
        flow.watch.await_count(answer.value);
        while clock.now() < until && !stop.is_stopped() {
            if ready(flow.watch.fd(), clock.until(until).min(Duration::from_millis(20))) {
                return true;
            }
        }
        false
    });
    if answered {
        outcome.in_flow.push((asked, clock.now().since(asked)));
    } else if !stop.is_stopped() {
        outcome.lost += 1;
    }
}

/// A server's side of one connection for questions: answers until it is closed or told to stop.
///
/// `streams` are those that the server receives and those that it sends, each in their order, once they stand. At most one question waits for a
/// stream to come somewhere; another replaces it.
pub(super) fn answer(mut connection: TcpStream, streams: &OnceLock<(Vec<Watch>, Vec<Watch>)>, stop: &dyn Fn() -> bool) {
    if connection.set_nodelay(true).is_err() {
        return;
    }
    let mut bytes = [0; QUESTION_LENGTH];
    let mut have = 0;
    let mut awaited: Option<(Question, &Watch)> = None;
    while !stop() {
        let mut fds = vec![PollFd::new(connection.as_fd(), PollFlags::POLLIN)];
        if let Some((_, watch)) = &awaited {
            fds.push(PollFd::new(watch.fd(), PollFlags::POLLIN));
        }
        let _ = poll(&mut fds, PollTimeout::from(50u8));
        let is_reached = fds.get(1).and_then(PollFd::any).unwrap_or(false);
        drop(fds);
        if is_reached && let Some((question, watch)) = awaited.take() {
            let answer = Question { value: watch.moved(), ..question };
            if connection.write_all(&answer.bytes()).is_err() {
                return;
            }
        }
        match connection.read(&mut bytes[have..]) {
            Ok(0) => return,
            Ok(count) => have += count,
            Err(error) if is_transient(&error) => continue,
            Err(_) => return,
        }
        if have < QUESTION_LENGTH {
            continue;
        }
        have = 0;
        let Some(question) = Question::from_bytes(bytes) else { return };
        let place = usize::from(question.stream);
        let answer = match question.kind {
            QuestionKind::Ping => question,
            QuestionKind::Written => {
                let Some(watch) = streams.get().and_then(|(_, sent)| sent.get(place)) else { return };
                Question { value: watch.moved(), ..question }
            }
            QuestionKind::Reached => {
                let Some(watch) = streams.get().and_then(|(received, _)| received.get(place)) else { return };
                watch.await_count(question.value);
                awaited = Some((question, watch));
                continue;
            }
        };
        // A client that does not read its answers is not waited for.
        if connection.write_all(&answer.bytes()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn responsiveness_is_that_of_the_draft() {
        let at = |n: u64| Instant::from_nanos(n * 1_000_000);
        let foreign = (0..20).map(|n| ForeignProbe { at: at(n), connect: ms(20), answer: ms(40) }).collect();
        // 19 of 100 ms and one of 10 s, which the trimmed mean leaves out.
        let in_flow = (0..20).map(|n| (at(n), if n == 7 { ms(10_000) } else { ms(100) })).collect();
        let outcome = LatencyOutcome { foreign, in_flow, ..LatencyOutcome::default() };
        let found = outcome.responsiveness(Instant::ZERO, at(100)).unwrap();
        // 60000 / ((20 + 40) / 2) = 2000; 60000 / 100 = 600; the mean of both is 1300.
        assert!((found.foreign_rpm - 2000.0).abs() < 1e-9, "{found:?}");
        assert!((found.loaded_rpm - 600.0).abs() < 1e-9, "{found:?}");
        assert!((found.rpm - 1300.0).abs() < 1e-9, "{found:?}");
        assert_eq!(outcome.responsiveness(at(50), at(100)), None, "nothing was probed then");
    }

    #[test]
    fn without_probes_inside_the_flow_there_is_no_responsiveness() {
        let foreign = vec![ForeignProbe { at: Instant::ZERO, connect: ms(20), answer: ms(20) }];
        let outcome = LatencyOutcome { foreign, ..LatencyOutcome::default() };
        assert_eq!(outcome.responsiveness(Instant::ZERO, Instant::MAX), None);
    }
}
