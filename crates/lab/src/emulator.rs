//! The emulator: drives the model of both directions in real time between two TUN devices, with a thread for each.
//!
//! The two directions share nothing but the devices. Writing an acknowledgement runs the sender's TCP in the writing thread, writing
//! data the receiver's; with one thread for both, a 10 Gbit/s path needs more than one processor has.

use std::io;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
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
    pub error: Option<io::Error>,
    /// Whether both threads ran with real-time priority.
    pub realtime: bool,
    /// Most memory held for packets in flight, in bytes.
    pub memory_bytes: usize,
}

/// The running emulator. Dropping it stops it.
pub struct Emulator {
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<Seen>>,
}

/// Why an emulator could not start.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The path is impossible.
    #[error(transparent)]
    Config(#[from] path::ConfigError),
    /// The system refused something.
    #[error("emulator: {0}")]
    Io(#[from] io::Error),
}

impl Emulator {
    /// Starts the threads between the two devices.
    ///
    /// # Errors
    /// Where the path is impossible or a thread can't start; nothing runs then.
    pub fn start(plan: EmulatorPlan, client: &Tun, server: &Tun, clock: Clock) -> Result<Self, EmulatorError> {
        let stop = Arc::new(Stop {
            flag: AtomicBool::new(false),
            event: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).map_err(io::Error::from)?,
        });
        let [capture_up, capture_down] = plan.capture.map_or([None, None], |pair| pair.map(Some));
        let ends = [(&plan.up, client, server, capture_up), (&plan.down, server, client, capture_down)];
        let mut emulator = Self { stop, threads: Vec::new() };
        for (seed, (config, near, far, capture)) in (plan.seed.wrapping_mul(2)..).zip(ends) {
            let record = Record::new(plan.bucket, plan.probe, plan.log_packets);
            let direction =
                Direction::new(config, seed, near.clone(), far.clone(), plan.classifier.clone(), record, capture)?;
            let engine = Engine { clock, batch: plan.batch, near: near.clone(), stop: emulator.stop.clone() };
            let thread =
                std::thread::Builder::new().name("emulator".to_owned()).spawn(move || engine.run(direction))?;
            emulator.threads.push(thread);
        }
        Ok(emulator)
    }

    /// Stops the threads and takes what they saw.
    pub fn finish(mut self) -> EmulatorOutcome {
        self.stop.set();
        let mut seen = self.threads.drain(..).map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let (up, down) = (seen.next(), seen.next());
        let (up, down) = up.zip(down).expect("start makes two threads, and only finish and drop take them");
        EmulatorOutcome {
            error: up.error.or(down.error),
            realtime: up.realtime && down.realtime,
            memory_bytes: up.memory_bytes + down.memory_bytes,
            up: up.direction,
            down: down.direction,
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.set();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Asks the threads to end: the flag for one that is busy, the event for one that waits.
struct Stop {
    flag: AtomicBool,
    event: EventFd,
}

impl Stop {
    fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
        // An eventfd counter only refuses at 2^64 - 2.
        let _ = self.event.write(1);
    }
}

/// What one thread saw.
struct Seen {
    direction: DirectionOutcome,
    error: Option<io::Error>,
    realtime: bool,
    memory_bytes: usize,
}

/// One thread.
struct Engine {
    clock: Clock,
    batch: Duration,
    near: Tun,
    stop: Arc<Stop>,
}

impl Engine {
    fn run(self, mut direction: Direction) -> Seen {
        let realtime = prefer_this_thread();
        let mut memory_bytes = 0;
        let result = self.drive(&mut direction, &mut memory_bytes);
        Seen { direction: outcome(direction), error: result.err(), realtime, memory_bytes }
    }

    fn drive(&self, direction: &mut Direction, memory_bytes: &mut usize) -> io::Result<()> {
        let clock = || self.clock.now();
        let mut earliest_wake = Instant::ZERO;
        // What the thread got up early for.
        let mut awake_for = None;
        loop {
            let more = direction.intake(INTAKE_BUDGET, clock)?;
            let now = clock();
            if now >= earliest_wake {
                if direction.advance(now) {
                    earliest_wake = now + self.batch;
                }
                *memory_bytes = (*memory_bytes).max(direction.allocated());
            }
            if more {
                // The stop is looked for without a system call.
                if self.stop.flag.load(Ordering::Relaxed) {
                    return Ok(());
                }
                continue;
            }
            let wake = direction.next_event().map(|at| at.max(earliest_wake));
            let timeout = match wake.map(|at| at.since(clock())) {
                Some(pause) if pause > AWAKE * WORTH_WAKING_EARLY => {
                    awake_for = wake;
                    Some(pause - AWAKE)
                }
                Some(pause) if awake_for == wake && pause <= AWAKE => Some(Duration::ZERO),
                pause => pause,
            };
            if self.wait(timeout)? {
                return Ok(());
            }
            direction.awake(clock());
        }
    }

    /// Waits for a frame, the stop or the timeout; true at the stop.
    fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let mut fds = [
            PollFd::new(self.near.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.stop.event.as_fd(), PollFlags::POLLIN),
        ];
        let timeout = timeout.map(|t| TimeSpec::from_duration(t.into()));
        match ppoll(&mut fds, timeout, None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fds[1].revents().is_some_and(|events| events.contains(PollFlags::POLLIN)))
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
