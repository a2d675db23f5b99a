//! TCP flows between two network namespaces, and what they did.
//!
//! [`run`] drives every flow of a [`TrafficPlan`] from a few threads, each with one epoll loop: one per end, and one more where an
//! end has both bulk receivers and anything else. Sockets are non-blocking; a thousand flows need no more threads than one.
//!
//! Senders hand over large blocks by reference, receivers discard in the kernel, so that most of the processor is left to the path
//! between them: see [`FlowOutcome`] for what is counted and where. At the end every socket is closed with a reset, so that nothing
//! lingers, not even after SIGKILL.

mod agenda;
mod half;
mod outcome;
mod payload;
mod plan;
mod worker;

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;

use host::tcp::TcpMemory;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use units::{Bytes, Duration};

use crate::probe;
use half::{Half, Report, Shared, Tools};
use worker::{Times, Worker};

pub use outcome::{FlowError, FlowOutcome, Progress, TcpSample, TrafficOutcome};
pub(crate) use payload::{BLOCK, Discard, Payload};
pub use plan::{End, FlowKind, FlowPlan, StopFlag, TrafficError, TrafficPlan};

type Reports = Vec<(usize, End, Report)>;

/// Runs a plan to its end and returns what happened. `on_progress` is called about every `sample_every`, on the calling thread.
///
/// # Errors
/// [`TrafficError`] where nothing could run. A flow that fails is an error in its own outcome, and the others go on.
pub fn run(plan: &TrafficPlan, on_progress: &mut dyn FnMut(Progress)) -> Result<TrafficOutcome, TrafficError> {
    plan.check()?;
    allow_open_files(plan.flows.len())?;
    let flows = Arc::new(plan.flows.clone());
    let shared: Vec<Arc<Shared>> = flows.iter().map(|_| Arc::default()).collect();
    let total = Arc::new(AtomicU64::new(0));
    // Workers and probes end when this is set, so also when this function is left by a panic in `on_progress`.
    let abandoned = Arc::new(AtomicBool::new(false));
    let _abandon = SetOnDrop(Arc::clone(&abandoned));

    let probe = plan.probe.map(|probe| probe::Prober::open(&probe_path(plan), probe)).transpose()?;
    let payload = Payload::new().map_err(step("make the payload"))?;
    let mut workers = Workers::default();
    for (end, group) in groups(plan, &shared) {
        let tools =
            Tools { clock: plan.clock, payload: payload.clone(), discard: Discard::new(), total: Arc::clone(&total) };
        let worker = Worker {
            halves: group,
            plans: Arc::clone(&flows),
            tools,
            sample_every: plan.sample_every,
            stop: plan.stop.clone(),
            abandoned: Arc::clone(&abandoned),
        };
        workers.spawn(plan, end, worker)?;
    }
    workers.wait_until_ready()?;

    let start = plan.clock.now();
    let times = Times { start, end: start + plan.duration };
    workers.go(times);
    let probe = probe.map(|prober| prober.start(plan.stop.clone(), plan.clock)).transpose();
    let probe = probe.map_err(step("start the probe's thread"))?;
    let mut memory = MemoryWatch::new();
    while workers.working(plan.sample_every) {
        memory.look();
        on_progress(Progress {
            elapsed: plan.clock.now().since(start),
            duration: plan.duration,
            received: Bytes::new(total.load(Ordering::Relaxed)),
            running: shared.iter().filter(|flow| !flow.is_over()).count(),
        });
        if workers.threads.is_empty() && (plan.clock.now() >= times.end || plan.stop.is_stopped()) {
            break;
        }
    }
    memory.look();
    let ended_at = plan.clock.now();
    let reports = workers.join()?;
    let probes = probe.map(probe::RunningProbe::finish);
    Ok(TrafficOutcome {
        started_at: start,
        ended_at,
        partial: plan.stop.is_stopped() && ended_at < times.end,
        memory_pressure: memory.pressure,
        flows: merge(plan, reports),
        probes,
    })
}

fn step(step: &'static str) -> impl FnOnce(io::Error) -> TrafficError {
    move |source| TrafficError::Step { step, source }
}

fn probe_path(plan: &TrafficPlan) -> probe::ProbePath<'_> {
    probe::ProbePath {
        client: &plan.client,
        server: &plan.server,
        client_addr: plan.client_addr,
        server_addr: plan.server_addr,
    }
}

/// The halves of all flows, by the threads that will drive them.
fn groups(plan: &TrafficPlan, shared: &[Arc<Shared>]) -> Vec<(End, Vec<Half>)> {
    let mut groups = Vec::new();
    for end in [End::Server, End::Client] {
        let halves = plan.flows.iter().zip(shared).enumerate().map(|(index, (flow, shared))| {
            Half::new(index, end, flow, (plan.client_addr, plan.server_addr), Arc::clone(shared))
        });
        let (patient, others): (Vec<Half>, Vec<Half>) = halves.partition(Half::is_patient);
        groups.extend([patient, others].into_iter().filter(|group| !group.is_empty()).map(|group| (end, group)));
    }
    groups
}

#[derive(Default)]
struct Workers {
    threads: Vec<JoinHandle<io::Result<Reports>>>,
    start: Vec<Sender<Times>>,
    ready: Vec<Receiver<io::Result<()>>>,
    /// Nothing is ever sent: it disconnects when the last worker has ended.
    ended: Option<Receiver<()>>,
    working: Option<Sender<()>>,
}

impl Workers {
    fn spawn(&mut self, plan: &TrafficPlan, end: End, worker: Worker) -> Result<(), TrafficError> {
        let (namespace, name) = match end {
            End::Client => (&plan.client, "traffic-client"),
            End::Server => (&plan.server, "traffic-server"),
        };
        if self.ended.is_none() {
            let (working, ended) = mpsc::channel();
            (self.ended, self.working) = (Some(ended), Some(working));
        }
        let working = self.working.clone();
        let (go, times) = mpsc::channel();
        let (ready, wait_ready) = mpsc::channel();
        let thread = namespace.spawn(name, move || {
            let _working = working;
            worker.run(&ready, &times)
        });
        self.threads.push(thread.map_err(step("start a traffic thread"))?);
        self.start.push(go);
        self.ready.push(wait_ready);
        Ok(())
    }

    fn wait_until_ready(&self) -> Result<(), TrafficError> {
        for ready in &self.ready {
            match ready.recv() {
                Ok(result) => result.map_err(step("start a traffic thread"))?,
                // It panicked, which is told when it is joined.
                Err(_) => continue,
            }
        }
        Ok(())
    }

    fn go(&mut self, times: Times) {
        self.working = None;
        for start in &self.start {
            // A worker that is gone already tells why when it is joined.
            let _ = start.send(times);
        }
    }

    /// Waits for `time` or the end of the last worker; whether any still works.
    fn working(&self, time: Duration) -> bool {
        match &self.ended {
            Some(ended) => !matches!(ended.recv_timeout(time.into()), Err(RecvTimeoutError::Disconnected)),
            // Without flows there are no workers: the probe alone runs, and this thread looks at the clock for it.
            None => {
                std::thread::sleep(time.min(Duration::from_millis(20)).into());
                true
            }
        }
    }

    fn join(self) -> Result<Reports, TrafficError> {
        let mut reports = Vec::new();
        for thread in self.threads {
            match thread.join() {
                Ok(result) => reports.extend(result.map_err(step("drive the flows"))?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(reports)
    }
}

/// Puts the two halves of every flow together.
fn merge(plan: &TrafficPlan, reports: Reports) -> Vec<FlowOutcome> {
    let mut halves: Vec<(Report, Report)> = plan.flows.iter().map(|_| Default::default()).collect();
    for (flow, end, report) in reports {
        match end {
            End::Client => halves[flow].0 = report,
            End::Server => halves[flow].1 = report,
        }
    }
    plan.flows.iter().zip(halves).map(|(flow, (client, server))| outcome(flow, client, server)).collect()
}

fn outcome(flow: &FlowPlan, client: Report, server: Report) -> FlowOutcome {
    let started_at = client.connect_at;
    let (sender, other) = match flow.data_from {
        End::Client => (client, server),
        End::Server => (server, client),
    };
    let Report { cc_version, samples, request_latencies, .. } = sender;
    let error = sender.error.or(other.error);
    // Whoever asks also receives what counts.
    let asks = matches!(flow.kind, FlowKind::RequestResponse { .. });
    let (received, received_series, finished_at, last_byte_at) = if asks {
        (sender.received, sender.received_series, sender.finished_at, sender.last_byte_at)
    } else {
        (other.received, other.received_series, other.finished_at, other.last_byte_at)
    };
    let completion = match flow.kind {
        FlowKind::Bulk { bytes: Some(_) } => finished_at.zip(started_at).map(|(end, start)| end.since(start)),
        _ => None,
    };
    FlowOutcome {
        label: flow.label.clone(),
        congestion_control: flow.congestion_control.clone(),
        cc_version,
        started_at,
        finished_at: finished_at.filter(|_| error.is_none()),
        completion,
        received: Bytes::new(received),
        last_byte_at,
        received_series,
        samples,
        request_latencies,
        error,
    }
}

/// Raises the soft limit on open files as far as `flows` need it.
fn allow_open_files(flows: usize) -> Result<(), TrafficError> {
    // Listening, connecting and accepted socket of each flow; epoll, pipes of sendfile, channels.
    allow_files(3 * flows as u64 + 64)
}

/// Raises the soft limit on open files as far as `more` than there are now need it.
pub(crate) fn allow_files(more: u64) -> Result<(), TrafficError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|errno| step("read RLIMIT_NOFILE")(errno.into()))?;
    let open = fs::read_dir("/proc/self/fd").map_or(64, Iterator::count) as u64;
    match soft_limit(open + more, soft, hard)? {
        Some(raised) => {
            setrlimit(Resource::RLIMIT_NOFILE, raised, hard).map_err(|errno| step("raise RLIMIT_NOFILE")(errno.into()))
        }
        None => Ok(()),
    }
}

/// The soft limit to set for `needed` open files; `None` where there is nothing to do.
fn soft_limit(needed: u64, soft: u64, hard: u64) -> Result<Option<u64>, TrafficError> {
    match needed {
        _ if needed <= soft => Ok(None),
        _ if needed <= hard => Ok(Some(needed)),
        _ => Err(TrafficError::TooManyFiles { needed, hard }),
    }
}

/// Notes whether TCP's memory, which the whole host shares, ran short.
struct MemoryWatch {
    pressure: bool,
}

impl MemoryWatch {
    fn new() -> Self {
        // Above the low mark the kernel may still be in a state of pressure that something else brought about.
        Self { pressure: TcpMemory::read().is_some_and(|memory| memory.used >= memory.low) }
    }

    fn look(&mut self) {
        self.pressure = self.pressure || TcpMemory::read().is_some_and(|memory| memory.used >= memory.pressure);
    }
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_open_files_is_raised_as_far_as_needed_and_allowed() {
        assert!(matches!(soft_limit(1_000, 1_024, 4_096), Ok(None)));
        assert!(matches!(soft_limit(3_000, 1_024, 4_096), Ok(Some(3_000))));
        let error = soft_limit(5_000, 1_024, 4_096).unwrap_err().to_string();
        assert!(error.contains("5000") && error.contains("4096") && error.contains("ulimit"), "{error}");
    }
}
