//! The emulator: one thread that drives the model of both directions in real time between two TUN devices.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use host::clock::Clock;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use path::{Counters, FlowId, LinkConfig};
use units::{Duration, Instant};

use crate::capture::Capture;
use crate::direction::{Direction, Outside};
use crate::frame::Classifier;
use crate::lateness::Lateness;
use crate::record::Record;
use crate::tun::Tun;

/// Frames read from one device before deliveries get their turn. Reading 64 KiB from cold memory takes some 20 us.
const INTAKE_BUDGET: u32 = 8;

/// After a wait, the last bit before something is due is spent awake: a virtual machine's processor needs 50 to 100 us to come back
/// from its halt. Only where the wait was long, so that this takes a small part of one processor at most.
const AWAKE: Duration = Duration::from_micros(120);
/// How many times longer than [`AWAKE`] a wait has to be for that.
const WORTH_WAKING_EARLY: u64 = 8;

/// A run is invalid where the p99.9 of lateness is above this and above [`LATE_SHARE_OF_RTT`] of the round-trip time.
pub const LATE_LIMIT: Duration = Duration::from_millis(2);
/// See [`LATE_LIMIT`]: one part in fifty, 2 %.
pub const LATE_SHARE_OF_RTT: u64 = 50;

/// What the emulator is to do.
pub struct EmulatorPlan {
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server to the client.
    pub down: LinkConfig,
    /// Seed of both directions' randomness.
    pub seed: u64,
    /// Which packets belong to which flow.
    pub classifier: Classifier,
    /// The flow whose packets' sojourn times are kept one by one.
    pub probe: Option<FlowId>,
    /// Length of the record's buckets.
    pub bucket: Duration,
    /// Deliveries that come closer together than this may share one wake-up, as with a NIC's interrupt moderation.
    /// What it delays is counted as lateness.
    pub batch: Duration,
    /// Keep every packet's fate.
    pub log_packets: bool,
    /// Where packets are captured, forward and back.
    pub capture: Option<[Capture; 2]>,
}

/// What one direction saw.
pub struct DirectionOutcome {
    /// Totals of the model.
    pub counters: Counters,
    /// Over time.
    pub record: Record,
    /// Upper bound of the wait between a packet's arrival and its reading.
    pub intake: Lateness,
    /// From due to written.
    pub lateness: Lateness,
    /// Anything outside the model.
    pub outside: Outside,
    /// Capture records left out.
    pub capture_left_out: u64,
}

/// What the emulator saw.
pub struct EmulatorOutcome {
    /// From the client to the server.
    pub up: DirectionOutcome,
    /// From the server to the client.
    pub down: DirectionOutcome,
    /// Why it ended early, where it did.
    pub error: Option<std::io::Error>,
    /// Whether the thread ran with real-time priority.
    pub realtime: bool,
    /// Most memory held for packets in flight, in bytes.
    pub memory_bytes: usize,
}

/// The running emulator. Dropping it stops it.
pub struct Emulator {
    stop: Arc<EventFd>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<EmulatorOutcome>>,
}

/// Why an emulator could not start.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The path is impossible.
    #[error(transparent)]
    Config(#[from] path::ConfigError),
    /// The system refused something.
    #[error("emulator: {0}")]
    Io(#[from] std::io::Error),
}

impl Emulator {
    /// Starts the thread between the two devices.
    ///
    /// # Errors
    /// Where the path is impossible or the thread can't start.
    pub fn start(plan: EmulatorPlan, client: &Tun, server: &Tun, clock: Clock) -> Result<Self, EmulatorError> {
        let stop = Arc::new(
            EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map_err(std::io::Error::from)?,
        );
        let record = || Record::new(plan.bucket, plan.probe, plan.log_packets);
        let [capture_up, capture_down] = plan.capture.map_or([None, None], |pair| pair.map(Some));
        let up = Direction::new(
            &plan.up,
            plan.seed.wrapping_mul(2),
            client.clone(),
            server.clone(),
            plan.classifier.clone(),
            record(),
            capture_up,
        )?;
        let down = Direction::new(
            &plan.down,
            plan.seed.wrapping_mul(2).wrapping_add(1),
            server.clone(),
            client.clone(),
            plan.classifier.clone(),
            record(),
            capture_down,
        )?;
        let stopping = Arc::new(AtomicBool::new(false));
        let engine = Engine {
            stopping: stopping.clone(),
            clock,
            batch: plan.batch,
            client: client.clone(),
            server: server.clone(),
            stop: stop.clone(),
        };
        let thread = std::thread::Builder::new().name("emulator".to_owned()).spawn(move || engine.run(up, down))?;
        Ok(Self { stop, stopping, thread: Some(thread) })
    }

    /// Stops the thread and takes what it saw.
    pub fn finish(mut self) -> EmulatorOutcome {
        self.signal();
        let thread = self.thread.take().expect("only finish and drop take the thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn signal(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        // An eventfd counter only refuses at 2^64 - 2.
        let _ = self.stop.write(1);
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.signal();
            let _ = thread.join();
        }
    }
}

struct Engine {
    stopping: Arc<AtomicBool>,
    clock: Clock,
    batch: Duration,
    client: Tun,
    server: Tun,
    stop: Arc<EventFd>,
}

impl Engine {
    fn run(self, mut up: Direction, mut down: Direction) -> EmulatorOutcome {
        let realtime = prefer_this_thread();
        let mut memory_bytes = 0;
        let result = self.drive(&mut up, &mut down, &mut memory_bytes);
        EmulatorOutcome { up: outcome(up), down: outcome(down), error: result.err(), realtime, memory_bytes }
    }

    fn drive(&self, up: &mut Direction, down: &mut Direction, memory_bytes: &mut usize) -> std::io::Result<()> {
        let clock = || self.clock.now();
        let mut earliest_wake = Instant::ZERO;
        // What the thread got up early for.
        let mut awake_for = None;
        loop {
            let more_up = up.intake(INTAKE_BUDGET, clock)?;
            let more_down = down.intake(INTAKE_BUDGET, clock)?;
            let now = clock();
            if now >= earliest_wake {
                // Acknowledgements first: they are few and short, and the sender waits for them.
                down.advance(now);
                up.advance(now);
                earliest_wake = now + self.batch;
                *memory_bytes = (*memory_bytes).max(up.allocated() + down.allocated());
            }
            let next = match (up.next_event(), down.next_event()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (one, other) => one.or(other),
            };
            let wake = next.map(|at| at.max(earliest_wake));
            let pause = wake.map(|at| at.since(clock()));
            let timeout = match pause {
                Some(pause) if pause > AWAKE * WORTH_WAKING_EARLY => {
                    awake_for = wake;
                    Some(pause - AWAKE)
                }
                Some(pause) if awake_for == wake && pause <= AWAKE => Some(Duration::ZERO),
                pause => pause,
            };
            // While there is more to read, the stop is looked for without a system call.
            let stopped =
                if more_up || more_down { self.stopping.load(Ordering::Relaxed) } else { self.wait(timeout)? };
            if stopped {
                return Ok(());
            }
        }
    }

    /// Waits for a frame, the stop or the timeout; true at the stop.
    fn wait(&self, timeout: Option<Duration>) -> std::io::Result<bool> {
        let mut fds = [
            PollFd::new(self.client.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.server.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.stop.as_fd(), PollFlags::POLLIN),
        ];
        let timeout = timeout.map(|t| TimeSpec::from_duration(t.into()));
        match ppoll(&mut fds, timeout, None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fds[2].revents().is_some_and(|events| events.contains(PollFlags::POLLIN)))
    }
}

fn outcome(direction: Direction) -> DirectionOutcome {
    let counters = direction.counters();
    let output = direction.output;
    DirectionOutcome {
        counters,
        intake: direction.intake,
        lateness: output.lateness,
        outside: output.outside,
        capture_left_out: output.capture.as_ref().map_or(0, Capture::left_out),
        record: output.record,
    }
}

/// Real-time priority where allowed, and timers as sharp as the kernel has them. Only this thread is changed.
fn prefer_this_thread() -> bool {
    // A refusal only costs accuracy, which the emulator measures anyway.
    let _ = nix::sys::prctl::set_timerslack(1);
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: `parameter` outlives the call, and thread id 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameter) == 0 }
}
