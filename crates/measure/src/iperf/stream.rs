//! One data connection of a test: a thread that sends or receives, and counters that others read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use host::cc::CcVersion;
use host::clock::Clock;
use host::tcp::TcpInfo;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use socket2::Socket;
use units::{Bytes, Duration, Instant, Rate};

use super::control::is_transient;
use crate::traffic::{Discard, Payload, TcpSample};

/// The longest sleep of a stream's thread, which bounds the time from a stop to its effect.
const SLICE_MS: u16 = 20;
const NOTHING: u64 = u64::MAX;
/// What a sender whose rate is limited queues at most beyond what is sent.
pub(super) const UNSENT: Bytes = Bytes::new(128 << 10);

/// How a stream's data is limited.
#[derive(Debug, Clone, Default)]
pub(super) struct Limits {
    /// Bytes that all senders of a direction may still send; `None`: no limit.
    pub(super) budget: Option<Arc<AtomicI64>>,
    /// What a receiver reads at most. A sender is limited by the pacing of its socket.
    pub(super) read_rate: Option<Rate>,
}

/// Bytes that all senders of a direction may send together, from the end of the warm-up; before that, as many as they can.
#[derive(Debug)]
pub(super) struct Budget {
    left: Arc<AtomicI64>,
    bytes: i64,
}

impl Budget {
    pub(super) fn new(bytes: Bytes, omit: Duration) -> Self {
        let bytes = i64::try_from(bytes.as_u64()).unwrap_or(i64::MAX / 2);
        // Far from the end, since what is taken and given back goes both ways.
        let first = if omit == Duration::ZERO { bytes } else { i64::MAX / 2 };
        Self { left: Arc::new(AtomicI64::new(first)), bytes }
    }

    /// The warm-up is over.
    pub(super) fn begin(&self) {
        self.left.store(self.bytes, Ordering::Relaxed);
    }

    pub(super) fn left(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.left)
    }
}

/// Processor time of a stream's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CpuTime {
    pub(super) user: Duration,
    pub(super) system: Duration,
}

#[derive(Debug)]
struct Shared {
    /// Payload that was sent or received.
    moved: AtomicU64,
    stop: AtomicBool,
    done: AtomicBool,
    thread: AtomicI32,
    cpu: Mutex<CpuTime>,
    error: Mutex<Option<String>>,
    /// A count of `moved` that somebody waits for.
    awaited: AtomicU64,
    reached: EventFd,
}

/// Wakes somebody when a stream's count has come to a value.
#[derive(Debug, Clone)]
pub(super) struct Watch(Arc<Shared>);

impl Watch {
    /// What the stream has moved so far.
    pub(super) fn moved(&self) -> u64 {
        self.0.moved.load(Ordering::SeqCst)
    }

    /// Makes [`Watch::fd`] readable once `count` was moved, which may be now.
    pub(super) fn await_count(&self, count: u64) {
        let _ = self.0.reached.read();
        self.0.awaited.store(count, Ordering::SeqCst);
        self.0.tell();
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.reached.as_fd()
    }
}

impl Shared {
    fn tell(&self) {
        let awaited = self.awaited.load(Ordering::SeqCst);
        if awaited != NOTHING && self.moved.load(Ordering::SeqCst) >= awaited {
            // Only who takes the value away tells, so that nobody is told twice.
            if self.awaited.compare_exchange(awaited, NOTHING, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                let _ = self.reached.write(1);
            }
        }
    }

    fn fail(&self, error: &io::Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.to_string());
    }
}

/// A data connection. Dropping it stops its thread and closes it.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: i64,
    pub(super) sends: bool,
    pub(super) cc_version: Option<CcVersion>,
    pub(super) samples: Vec<TcpSample>,
    /// Of receivers.
    pub(super) received: Vec<(Instant, Bytes)>,
    socket: Arc<Socket>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    baseline: Baseline,
    /// What had been moved when counting ended, where the stream goes on after that.
    frozen: Option<u64>,
}

/// Counters at the end of the warm-up.
#[derive(Debug, Clone, Copy, Default)]
struct Baseline {
    moved: u64,
    retransmitted: u32,
    cpu: Duration,
}

impl Stream {
    /// Over a connection that stands. Nothing moves before [`Stream::start`].
    pub(super) fn new(id: i64, sends: bool, socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let cc_version = if sends { Some(CcVersion::of(&socket)?) } else { None };
        let shared = Shared {
            moved: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            done: AtomicBool::new(false),
            thread: AtomicI32::new(0),
            cpu: Mutex::default(),
            error: Mutex::new(None),
            awaited: AtomicU64::new(NOTHING),
            reached: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?,
        };
        Ok(Self {
            id,
            sends,
            cc_version,
            samples: Vec::new(),
            received: Vec::new(),
            socket: Arc::new(socket),
            shared: Arc::new(shared),
            thread: None,
            baseline: Baseline::default(),
            frozen: None,
        })
    }

    /// Begins to send or receive, on a thread in the caller's network namespace.
    pub(super) fn start(&mut self, payload: &Payload, limits: Limits, clock: Clock) -> io::Result<()> {
        let (socket, shared, payload) = (Arc::clone(&self.socket), Arc::clone(&self.shared), payload.clone());
        let sends = self.sends;
        let name = if sends { "bench-send" } else { "bench-receive" };
        self.thread = Some(std::thread::Builder::new().name(name.into()).spawn(move || {
            shared.thread.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
            let result = if sends {
                send(&socket, &shared, &payload, &limits)
            } else {
                receive(&socket, &shared, &limits, clock)
            };
            if let Err(error) = result {
                shared.fail(&error);
            }
            if let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) {
                let time =
                    |time: nix::sys::time::TimeVal| Duration::from_micros(time.num_microseconds().unsigned_abs());
                *shared.cpu.lock().unwrap_or_else(PoisonError::into_inner) =
                    CpuTime { user: time(usage.user_time()), system: time(usage.system_time()) };
            }
            shared.done.store(true, Ordering::Release);
        })?);
        Ok(())
    }

    pub(super) fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.shared))
    }

    /// Whether its thread has come to an end by itself: the connection is over, or its budget.
    pub(super) fn is_done(&self) -> bool {
        self.shared.done.load(Ordering::Acquire)
    }

    pub(super) fn moved(&self) -> u64 {
        self.shared.moved.load(Ordering::Relaxed)
    }

    /// What was moved after the warm-up.
    pub(super) fn counted(&self) -> Bytes {
        Bytes::new(self.frozen.unwrap_or_else(|| self.moved()).saturating_sub(self.baseline.moved))
    }

    /// Segments sent again after the warm-up, as the last sample has it.
    pub(super) fn retransmitted(&self) -> u32 {
        self.samples.last().map_or(0, |last| last.retransmitted_segments.saturating_sub(self.baseline.retransmitted))
    }

    pub(super) fn error(&self) -> Option<String> {
        self.shared.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn mss(&self) -> Option<Bytes> {
        TcpInfo::of(&*self.socket).ok().map(|info| info.mss())
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether everything that was sent is acknowledged.
    pub(super) fn is_delivered(&self) -> bool {
        TcpInfo::of(&*self.socket).map_or(true, |info| info.unsent() == Bytes::ZERO && info.raw().unacked == 0)
    }

    /// Reads the counters for the series.
    pub(super) fn sample(&mut self, now: Instant) {
        if self.sends {
            if let Ok(info) = TcpInfo::of(&*self.socket) {
                self.samples.push(TcpSample::new(now, &info));
            }
        } else {
            self.received.push((now, Bytes::new(self.moved())));
        }
    }

    /// The warm-up is over: everything counts from here.
    pub(super) fn begin_counting(&mut self, now: Instant) {
        self.sample(now);
        self.baseline = Baseline {
            moved: self.moved(),
            retransmitted: self.samples.last().map_or(0, |sample| sample.retransmitted_segments),
            cpu: self.cpu_total(),
        };
    }

    fn cpu_total(&self) -> Duration {
        let thread = self.shared.thread.load(Ordering::Relaxed);
        if thread != 0 && !self.is_done() {
            // CPUCLOCK_SCHED of one thread (include/linux/posix-timers.h): readable from any thread of the process.
            let clock = ClockId::from_raw((!thread << 3) | 0b110);
            if let Ok(time) = clock_gettime(clock) {
                return std::time::Duration::from(time).into();
            }
        }
        let ended = *self.shared.cpu.lock().unwrap_or_else(PoisonError::into_inner);
        ended.user + ended.system
    }

    /// Processor time of its thread after the warm-up, in the proportion of user and system of the whole.
    pub(super) fn cpu(&self) -> CpuTime {
        let counted = self.cpu_total().saturating_sub(self.baseline.cpu);
        let whole = *self.shared.cpu.lock().unwrap_or_else(PoisonError::into_inner);
        let all = (whole.user + whole.system).as_nanos().max(1);
        let user = Duration::from_nanos(
            (u128::from(counted.as_nanos()) * u128::from(whole.user.as_nanos()) / u128::from(all)) as u64,
        );
        CpuTime { user, system: counted.saturating_sub(user) }
    }

    /// Asks the thread to end, without waiting.
    pub(super) fn ask_to_stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the thread and takes the last sample. The connection stays open.
    pub(super) fn stop(&mut self, clock: Clock) {
        self.ask_to_stop();
        self.join();
        self.sample(clock.now());
    }

    /// Nothing counts from here, though data may go on.
    pub(super) fn freeze(&mut self, now: Instant) {
        self.sample(now);
        self.frozen = Some(self.received.last().map_or_else(|| self.moved(), |(_, bytes)| bytes.as_u64()));
    }

    /// Says that no more comes, behind what is queued: a receiver that waits for a whole block must not wait for ever.
    pub(super) fn end_data(&self) {
        // It fails only where the connection is gone.
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    /// Ends the thread of a frozen stream.
    pub(super) fn stop_quietly(&mut self) {
        self.ask_to_stop();
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            // A panic of it was told by `stop`, or something else is wrong already.
            let _ = thread.join();
        }
    }
}

fn wait(socket: &Socket, flags: PollFlags) {
    let mut sockets = [PollFd::new(socket.as_fd(), flags)];
    // Whatever it says, the socket is tried next.
    let _ = poll(&mut sockets, PollTimeout::from(SLICE_MS));
}

fn send(socket: &Socket, shared: &Shared, payload: &Payload, limits: &Limits) -> io::Result<()> {
    while !shared.stop.load(Ordering::Relaxed) {
        let mut most = crate::traffic::BLOCK as u64;
        if let Some(budget) = &limits.budget {
            // Taken before it is sent, and what the socket did not take is given back, so that several senders never send too much.
            let left = budget.fetch_sub(most as i64, Ordering::Relaxed);
            if left <= 0 {
                budget.fetch_add(most as i64, Ordering::Relaxed);
                // Others may give something back.
                if budget.load(Ordering::Relaxed) <= 0 {
                    return Ok(());
                }
                continue;
            }
            let beyond = most.saturating_sub(left as u64);
            budget.fetch_add(beyond as i64, Ordering::Relaxed);
            most -= beyond;
        }
        let sent = payload.send(socket, most);
        if let Some(budget) = &limits.budget {
            let taken = *sent.as_ref().unwrap_or(&0);
            budget.fetch_add((most - taken) as i64, Ordering::Relaxed);
        }
        match sent {
            Ok(count) => {
                shared.moved.fetch_add(count, Ordering::SeqCst);
            }
            Err(error) if is_transient(&error) => wait(socket, PollFlags::POLLOUT),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn receive(socket: &Socket, shared: &Shared, limits: &Limits, clock: Clock) -> io::Result<()> {
    let mut discard = Discard::new();
    let started = clock.now();
    // What has arrived and was not read when the time is up does not count: it was not read in that time.
    while !shared.stop.load(Ordering::Relaxed) {
        let mut most = u64::MAX;
        if let Some(rate) = limits.read_rate {
            let allowed = rate.bytes_in(clock.now().since(started) + Duration::from_millis(50)).as_u64();
            most = allowed.saturating_sub(shared.moved.load(Ordering::Relaxed));
            // A millisecond's worth at once, not a few bytes as soon as they are allowed.
            if most <= rate.bytes_in(Duration::from_millis(1)).as_u64() {
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            }
        }
        match discard.receive(socket, most) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                shared.moved.fetch_add(count, Ordering::SeqCst);
                if shared.awaited.load(Ordering::SeqCst) != NOTHING {
                    shared.tell();
                }
            }
            Err(error) if is_transient(&error) => wait(socket, PollFlags::POLLIN),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
