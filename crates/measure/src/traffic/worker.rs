//! The event loop that drives one end's sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::{SigSet, Signal};
use units::{Bytes, Duration, Instant, Rate};

use super::agenda::Agenda;
use super::half::{Half, Report, Tools};
use super::plan::{End, FlowPlan, StopFlag};

/// The longest wait, which bounds the time from a stop to its effect.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long a worker with nothing but receivers waits between two rounds at high rates, so that each round finds more: at
/// 10 Gbit/s this saves two thirds of the receiver's processor time.
const BREATHER: Duration = Duration::from_micros(250);
/// The rate above which it does. Below, single packets count and every one is served as it comes.
const BREATHER_ABOVE: Rate = Rate::from_mbps(100);
/// The time over which that rate is taken.
const RATE_WINDOW: Duration = Duration::from_millis(5);

/// When the traffic runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) start: Instant,
    pub(super) end: Instant,
}

pub(super) struct Worker {
    pub(super) halves: Vec<Half>,
    pub(super) plans: Arc<Vec<FlowPlan>>,
    pub(super) tools: Tools,
    pub(super) sample_every: Duration,
    pub(super) stop: StopFlag,
    /// Set when the caller has gone away.
    pub(super) abandoned: Arc<AtomicBool>,
}

/// What a half last told epoll.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Registered {
    descriptor: i32,
    interest: EpollFlags,
}

impl Worker {
    /// Opens the listening sockets, says so through `ready`, waits for the times, and runs until every half is over.
    pub(super) fn run(
        mut self,
        ready: &Sender<io::Result<()>>,
        times: &Receiver<Times>,
    ) -> io::Result<Vec<(usize, End, Report)>> {
        // sendfile on a broken connection raises it, and has no flag against that.
        let mut pipe = SigSet::empty();
        pipe.add(Signal::SIGPIPE);
        let epoll = pipe.thread_block().and_then(|()| Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC));
        let epoll = match epoll {
            Ok(epoll) => epoll,
            Err(error) => {
                let _ = ready.send(Err(error.into()));
                return Ok(Vec::new());
            }
        };
        for half in self.halves.iter_mut().filter(|half| half.end == End::Server) {
            half.listen();
        }
        // The other side of both channels only goes away when the whole run does.
        if ready.send(Ok(())).is_ok()
            && let Ok(times) = times.recv()
        {
            self.serve(&epoll, times)?;
        }
        Ok(self.halves.into_iter().map(|half| (half.flow, half.end, half.into_report())).collect())
    }

    fn serve(&mut self, epoll: &Epoll, times: Times) -> io::Result<()> {
        let mut registered = vec![None; self.halves.len()];
        for (index, half) in self.halves.iter_mut().enumerate() {
            half.schedule(&self.plans[half.flow], times.start, times.end);
            register(epoll, index, half, &mut registered[index])?;
        }
        let mut agenda = Agenda::new(self.halves.iter().map(Half::due));
        let mut next_sample = times.start + self.sample_every;
        let mut next_look = times.start;
        let mut pace = Pace::new(&self.halves, times.start);
        let mut events = vec![EpollEvent::empty(); 256];
        while !self.halves.iter().all(Half::is_over) {
            let wake_at = agenda.next().min(next_sample).min(next_look);
            let count = match epoll.wait(&mut events, timeout(self.tools.clock.until(wake_at))) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(error.into()),
            };
            for event in &events[..count] {
                let index = event.data() as usize;
                self.halves[index].on_ready(event.events(), &mut self.tools);
                self.settle(epoll, index, &mut registered, &mut agenda)?;
            }
            let now = self.tools.clock.now();
            while let Some(index) = agenda.take_due(now) {
                self.halves[index].wake(now, &mut self.tools);
                self.settle(epoll, index, &mut registered, &mut agenda)?;
            }
            if now >= next_sample {
                self.halves.iter_mut().for_each(|half| half.sample(self.tools.clock.now()));
                while next_sample <= now {
                    next_sample += self.sample_every;
                }
            }
            if now >= next_look {
                next_look = now + PATIENCE;
                if self.stop.is_stopped() || self.abandoned.load(Ordering::Relaxed) {
                    self.halves.iter_mut().for_each(|half| half.stop(&mut self.tools));
                }
                // The other half of a flow may have ended it.
                for index in 0..self.halves.len() {
                    self.halves[index].wake(now, &mut self.tools);
                    self.settle(epoll, index, &mut registered, &mut agenda)?;
                }
            } else if count > 0 && pace.is_fast(now, &self.halves) {
                std::thread::sleep(BREATHER.into());
            }
        }
        Ok(())
    }

    /// Carries a half's changed wishes to epoll and the agenda.
    fn settle(
        &self,
        epoll: &Epoll,
        index: usize,
        registered: &mut [Option<Registered>],
        agenda: &mut Agenda,
    ) -> io::Result<()> {
        agenda.set(index, self.halves[index].due());
        register(epoll, index, &self.halves[index], &mut registered[index])
    }
}

fn register(epoll: &Epoll, index: usize, half: &Half, registered: &mut Option<Registered>) -> io::Result<()> {
    let wish = half.socket().map(|socket| Registered { descriptor: socket.as_raw_fd(), interest: half.interest() });
    if wish == *registered {
        return Ok(());
    }
    if let (Some(socket), Some(wish)) = (half.socket(), wish) {
        let mut event = EpollEvent::new(wish.interest, index as u64);
        // A closed socket has left epoll by itself, and its number may have come back as the accepted one.
        match epoll.modify(socket.as_fd(), &mut event) {
            Err(Errno::ENOENT) => epoll.add(socket.as_fd(), event)?,
            other => other?,
        }
    }
    *registered = wish;
    Ok(())
}

/// Rounds up: epoll counts in milliseconds, and waking early would only mean waking twice.
fn timeout(wait: Duration) -> EpollTimeout {
    let milliseconds = wait.as_nanos().div_ceil(1_000_000);
    EpollTimeout::try_from(u32::try_from(milliseconds).unwrap_or(u32::MAX).min(i32::MAX as u32))
        .unwrap_or(EpollTimeout::ZERO)
}

/// Whether a worker may take a breather between two rounds.
struct Pace {
    /// Only where every half is a receiver of bulk data: anything else is served at once.
    patient: bool,
    window_start: Instant,
    received: u64,
    fast: bool,
}

impl Pace {
    fn new(halves: &[Half], now: Instant) -> Self {
        Self { patient: halves.iter().all(Half::is_patient), window_start: now, received: 0, fast: false }
    }

    fn is_fast(&mut self, now: Instant, halves: &[Half]) -> bool {
        let window = now.since(self.window_start);
        if self.patient && window >= RATE_WINDOW {
            let received = halves.iter().map(Half::received).sum();
            self.fast = Rate::from_transfer(Bytes::new(received - self.received), window) > BREATHER_ABOVE;
            (self.window_start, self.received) = (now, received);
        }
        self.fast
    }
}
