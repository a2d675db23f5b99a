//! The job on this host: runs against a server elsewhere, changes through the transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use host::activity::Activity;
use host::clock::Clock;
use measure::iperf::client::{self, ClientPlan, Ending, Length, Progress, TestError};
use measure::iperf::wire::Direction as Sends;
use measure::traffic::StopFlag;
use report::bench::{BenchRun, PathEstimate};
use serde::Serialize;
use tuning::plan::{Change, Plan};
use tuning::tune::{Ends, Event, Sample};
use units::{Duration, Rate};

use super::job::{Explore, Look};
use super::show::Line;
use super::{Arguments, Direction, text};
use crate::bench::{fill, read_token};
use crate::change::Trials;
use crate::exit::Failure;

/// One run, for the record.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    started_after_s: f64,
    /// What the sending sockets ran, as they were read back.
    congestion_control: Option<String>,
    streams: u32,
    /// Keys that were changed for a trial at that time.
    changed: Vec<String>,
    #[serde(flatten)]
    pub sample: Sample,
    pub rtt_idle_ms: Option<f64>,
    receive_window_limited_share: Option<f64>,
    send_buffer_limited_share: Option<f64>,
    cpu_busy_share: Option<f64>,
    #[serde(skip)]
    pub path: Option<PathEstimate>,
    valid: bool,
    invalid_reason: Option<String>,
}

/// Who is at the other end.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Peer {
    pub name: String,
    pub address: String,
    /// `None`: it is no linerate.
    pub linerate_version: Option<String>,
    pub kernel: Option<String>,
}

/// This host and the server.
pub struct HostEnds {
    client: ClientPlan,
    stop: Arc<AtomicBool>,
    pub line: Line,
    pub candidates: Vec<String>,
    usual_control: String,
    /// `None`: nothing may be changed.
    pub trials: Option<Trials>,
    /// The plan that blocks are parts of.
    pub plan: Option<Plan>,
    changed: Vec<String>,
    pub runs: Vec<Run>,
    pub peer: Peer,
    began: std::time::Instant,
    /// Why no further run can be made.
    pub failure: Option<Failure>,
}

impl HostEnds {
    /// # Errors
    /// A token that can't be read.
    pub fn new(
        arguments: &Arguments,
        name: &str,
        servers: Vec<std::net::SocketAddr>,
        stop: Arc<AtomicBool>,
        trials: Option<Trials>,
    ) -> Result<Self, Failure> {
        let real = &arguments.real;
        let client = ClientPlan {
            servers,
            from: None,
            direction: match real.direction {
                Direction::Forward => Sends::Forward,
                Direction::Reverse => Sends::Reverse,
                Direction::Both => Sends::Both,
            },
            streams: 1,
            length: Length::Time(arguments.duration - arguments.warmup),
            omit: arguments.warmup,
            congestion_control: None,
            rate: None,
            sample_every: Duration::from_millis(10),
            probe: true,
            token: real.token_file.as_deref().map(read_token).transpose()?,
            patience: Duration::from_secs(10),
            version: env!("CARGO_PKG_VERSION").into(),
            clock: Clock::start(),
            stop: StopFlag::from(stop.clone()),
        };
        Ok(Self {
            client,
            stop,
            line: Line::new(),
            candidates: Vec::new(),
            usual_control: host::cc::default_control().map_err(Failure::failed)?,
            trials,
            plan: None,
            changed: Vec::new(),
            runs: Vec::new(),
            peer: Peer { name: name.to_owned(), ..Peer::default() },
            began: std::time::Instant::now(),
            failure: None,
        })
    }

    /// Whether a signal came.
    pub fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// One run; `control`: of its sockets only, `None`: what the host gives them.
    ///
    /// # Errors
    /// Where it gave no figure.
    pub fn one(&mut self, control: Option<&str>, streams: u16) -> Result<Run, Failure> {
        let client = ClientPlan {
            congestion_control: control.map(str::to_owned),
            streams: streams.into(),
            clock: Clock::start(),
            ..self.client.clone()
        };
        let started_after = self.began.elapsed();
        let before = Activity::read();
        let line = &self.line;
        let outcome = client::run(&client, &mut |progress| line.now(&words(progress)));
        let outcome = outcome.map_err(|error| self.failed(&error))?;
        match &outcome.ending {
            Ending::Complete => {}
            Ending::Stopped => return Err(self.failed(&TestError::Stopped)),
            Ending::Broken(why) => {
                return Err(Failure::failed(format_args!("{}: the run broke: {why}", self.peer.name)));
            }
        }
        if self.peer.address.is_empty() {
            self.peer.address = outcome.server.to_string();
            self.peer.linerate_version = outcome.hello.as_ref().map(|hello| hello.linerate_version.clone());
            self.peer.kernel = outcome.hello.as_ref().map(|hello| hello.kernel.clone());
        }
        let cpu_busy_share = Activity::read().since(&before).busy_share();
        let report = fill::run(&client, &outcome, 0, started_after);
        let run = self.record(report, streams, cpu_busy_share)?;
        self.runs.push(run.clone());
        Ok(run)
    }

    fn record(&self, report: BenchRun, streams: u16, cpu_busy_share: Option<f64>) -> Result<Run, Failure> {
        if let Some(why) = &report.invalid_reason {
            return Err(Failure::failed(format_args!("{}: {why}", self.peer.name)));
        }
        let directions = &report.directions;
        let goodput_bps = directions.iter().filter_map(|direction| direction.goodput_bps).sum::<u64>() as f64;
        let shares: Vec<f64> = directions.iter().filter_map(|direction| direction.retransmitted_share).collect();
        let first = directions.first();
        let limited = first.and_then(|direction| direction.limited_by.as_ref());
        let path = first.and_then(|direction| direction.path.clone());
        Ok(Run {
            started_after_s: report.started_after_s,
            congestion_control: first.and_then(|direction| direction.congestion_control.clone()),
            streams: streams.into(),
            changed: self.changed.clone(),
            sample: Sample {
                goodput_bps,
                rtt_loaded_ms: report.rtt_under_load_ms.as_ref().map(|rtt| rtt.p95),
                retransmitted_share: shares.iter().copied().fold(0.0, f64::max),
            },
            // An iperf3 server answers no probes, and on a busy host a probe waits for a CPU: the least that was seen.
            rtt_idle_ms: [
                report.rtt_idle_ms.as_ref().map(|rtt| rtt.p50),
                path.as_ref().and_then(|path| path.min_rtt_ms),
            ]
            .into_iter()
            .flatten()
            .reduce(f64::min),
            receive_window_limited_share: limited.map(|limited| limited.receive_window),
            send_buffer_limited_share: limited.map(|limited| limited.send_buffer),
            cpu_busy_share,
            path,
            valid: report.valid,
            invalid_reason: report.invalid_reason,
        })
    }

    fn failed(&self, error: &TestError) -> Failure {
        let sentence = format!("{}: {error}", self.peer.name);
        match error {
            TestError::BadPlan(_) => Failure::usage(sentence),
            TestError::Stopped => Failure::found("stopped by a signal"),
            _ => Failure::failed(sentence),
        }
    }

    /// Takes back whatever is tried at present.
    ///
    /// # Errors
    /// Where that can't be done.
    pub fn put_back(&mut self) -> Result<(), Failure> {
        self.changed.clear();
        self.trials.as_mut().map_or(Ok(()), Trials::put_back)
    }

    fn tried(&mut self) -> Result<(&mut Trials, &Plan), Failure> {
        match (&mut self.trials, &self.plan) {
            (Some(trials), Some(plan)) => Ok((trials, plan)),
            _ => Err(Failure::failed("nothing may be changed in a dry run")),
        }
    }
}

fn words(progress: Progress) -> String {
    match progress {
        Progress::Waiting => "waiting for the server".to_owned(),
        Progress::Idle => "the path without load".to_owned(),
        Progress::Running { elapsed, forward, reverse, .. } => {
            Rate::from_transfer(forward + reverse, elapsed).to_string()
        }
    }
}

impl Explore for HostEnds {
    fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    fn candidates(&self) -> &[String] {
        &self.candidates
    }

    fn usual_control(&self) -> &str {
        &self.usual_control
    }

    fn look(&mut self, control: &str, flows: u16, _: u64) -> Result<Look, Failure> {
        let run = self.one(Some(control), flows)?;
        Ok(Look { carried_bps: run.sample.goodput_bps, rtt_ms: run.rtt_idle_ms })
    }
}

impl Ends for HostEnds {
    type Error = Failure;

    fn measure(&mut self) -> Result<Sample, Failure> {
        match self.one(None, 1) {
            Ok(run) => Ok(run.sample),
            // What was decided by now is worth keeping: the job ends as if it had been stopped, and what this run gave is not looked at.
            Err(failure) => {
                self.failure = Some(failure);
                Ok(Sample::default())
            }
        }
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Failure> {
        let (trials, plan) = self.tried()?;
        trials.set(plan, changes)?;
        self.changed.extend(changes.iter().map(|change| change.key.clone()));
        Ok(())
    }

    fn undo(&mut self, changes: &[Change]) -> Result<(), Failure> {
        self.tried()?.0.unset(changes)?;
        self.changed.retain(|key| changes.iter().all(|change| change.key != *key));
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.failure.is_some() || self.interrupted()
    }

    fn tell(&mut self, event: Event<'_>) {
        match event {
            Event::Compare { block, again, pairs } => self.line.doing(text::comparing(block, again, pairs)),
            Event::Run { with, sample } if self.failure.is_none() => self.line.ran(&text::run(with, sample)),
            Event::Run { .. } => {}
        }
    }
}
