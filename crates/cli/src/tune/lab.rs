//! The job with both ends in the lab: two namespaces and the emulated path of a scenario.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use host::netns::NetNs;
use lab::run::{Options as RunOptions, run_cell};
use measure::stats::percentile;
use measure::traffic::StopFlag;
use scenario::{Cell, Profile, Published, Scenario};
use serde::Serialize;
use tuning::plan::{Change, Plan, Target, plan};
use tuning::tune::{Ends, Event, Sample};
use units::{Duration, Rate};

use super::job::{Explore, Look};
use super::show::Line;
use super::{AVAILABLE, Arguments, CONTROL, text};
use crate::exit::Failure;
use crate::lab::{self as command, bbr3::ForTheRun};

/// One run, for the record.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    congestion_control: String,
    sysctls: BTreeMap<String, String>,
    flows: u16,
    seed: u64,
    #[serde(flatten)]
    sample: Sample,
    rtt_idle_ms: Option<f64>,
    receive_window_limited_share: f64,
    send_buffer_limited_share: f64,
    valid: bool,
    invalid_reason: Option<String>,
}

/// Both ends.
pub struct LabEnds {
    scenario: Scenario,
    published: Vec<Published>,
    cell: Cell,
    stop: Arc<AtomicBool>,
    line: Line,
    /// The control of new connections.
    control: String,
    /// The control that the ends begin with.
    usual_control: String,
    candidates: Vec<String>,
    /// Sysctls of both ends that the job has set.
    set: BTreeMap<String, String>,
    seed: u64,
    runs: Vec<Run>,
    /// Runs of the comparisons so far: two with the same seed make a pair.
    compared: u64,
    /// Programs that were loaded for the job.
    _bbr3: ForTheRun,
}

impl LabEnds {
    /// Reads the scenario and loads what the job may choose.
    ///
    /// # Errors
    /// A scenario that isn't one, or a machine that can't run the lab.
    pub fn start(arguments: &Arguments, name: &str, stop: Arc<AtomicBool>) -> Result<Self, Failure> {
        let mut scenario = command::load_plain(name)?;
        let overrides = scenario::Overrides {
            losses: arguments.loss.map(|loss| vec![loss]),
            duration: Some(arguments.duration),
            warmup: Some(arguments.warmup),
            seed: Some(arguments.seed),
            ..scenario::Overrides::default()
        };
        scenario = scenario.with_overrides(overrides).map_err(Failure::usage)?;
        let wanted = arguments.cc.clone().unwrap_or_else(|| vec!["bbr".to_owned(), "bbr3".to_owned()]);
        let template = scenario.profiles[0].clone();
        let mut with_controls = scenario.clone();
        with_controls.profiles =
            wanted.iter().map(|name| Profile { congestion_control: name.clone(), ..template.clone() }).collect();
        let bbr3 = command::bbr3::load_for(std::slice::from_ref(&with_controls))?;
        command::prerequisites()?;
        let mut candidates = Vec::new();
        for name in wanted {
            match host::cc::probe_version(&name) {
                Ok(_) => candidates.push(name),
                Err(error) if arguments.cc.is_some() => return Err(Failure::usage(error)),
                Err(_) => {}
            }
        }
        // The scenario's own stacks are what the job is to find by itself.
        scenario.profiles.truncate(1);
        scenario.sysctls.clear();
        let published = std::mem::take(&mut scenario.published);
        let cell = command::first_cell(&scenario)?;
        let usual_control = "cubic".to_owned();
        Ok(Self {
            scenario,
            published,
            cell,
            stop,
            line: Line::new(),
            control: usual_control.clone(),
            usual_control,
            candidates,
            set: BTreeMap::new(),
            seed: arguments.seed,
            runs: Vec::new(),
            compared: 0,
            _bbr3: bbr3,
        })
    }

    /// The scenario's name.
    pub fn name(&self) -> &str {
        &self.scenario.name
    }

    /// Every run that was made.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// How many of them the emulator could not carry in time.
    pub fn invalid_runs(&self) -> usize {
        self.runs.iter().filter(|run| !run.valid).count()
    }

    /// The last figure that the scenario's source publishes, in words.
    pub fn published(&self) -> Option<String> {
        let figure = self
            .published
            .iter()
            .rev()
            .find(|figure| figure.goodput.is_some() && figure.loss.is_none_or(|loss| loss == self.cell.loss))?;
        Some(format!("{}: {}", figure.label, figure.goodput?))
    }

    /// Whether somebody wants the job to end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The plan for what was found, by the facts of the near end.
    pub fn plan(&self, target: &Target, control: Option<&str>) -> Result<Plan, Failure> {
        let end = NetNs::create().map_err(Failure::failed)?;
        let mut facts = end.run(crate::plan::facts::of_this_host).map_err(Failure::failed)?;
        facts.sysctls.insert(CONTROL.to_owned(), self.usual_control.clone());
        // The plan proposes what it finds first; the choice has been made by measuring.
        facts.sysctls.insert(AVAILABLE.to_owned(), control.unwrap_or_default().to_owned());
        facts.modules.remove("tcp_bbr");
        plan(&facts, target).map_err(Failure::usage)
    }

    fn one(&mut self, control: &str, flows: u16, seed: u64) -> Result<Run, Failure> {
        let mut scenario = self.scenario.clone();
        scenario.flows.truncate(1);
        scenario.flows[0].count = flows;
        scenario.flows[0].congestion_control = None;
        // A transfer that ends early has nothing to say about the rest of the run.
        scenario.flows[0].kind = scenario::FlowKind::Bulk { bytes: None };
        let mut cell = self.cell.clone();
        cell.seed = seed;
        cell.profile.congestion_control = control.to_owned();
        cell.profile.sysctls = self.set.clone().into_iter().collect();
        let options = RunOptions { stop: StopFlag::from(self.stop.clone()), ..RunOptions::default() };
        let line = &self.line;
        let outcome = run_cell(&scenario, &cell, &options, &mut |progress| {
            line.now(&Rate::from_transfer(progress.received, progress.elapsed).to_string());
        })
        .map_err(Failure::failed)?;
        let traffic = &outcome.traffic;
        let window = (traffic.started_at + scenario.run.warmup, traffic.ended_at);
        let goodput = traffic.flows.iter().filter_map(|flow| flow.goodput(window.0, window.1));
        let goodput_bps = goodput.map(|rate| rate.as_bps() as f64).sum();
        let probes = traffic.probes.iter().flat_map(|probes| &probes.samples);
        let loaded: Vec<Duration> =
            probes.filter(|probe| probe.sent_at >= window.0).filter_map(|probe| probe.rtt).collect();
        let last = || traffic.flows.iter().filter_map(|flow| flow.samples.last());
        let again: u64 = last().map(|sample| u64::from(sample.retransmitted_segments)).sum();
        let sent: u64 = last().map(|sample| u64::from(sample.delivered_segments)).sum::<u64>() + again;
        let busy: f64 = last().map(|sample| sample.busy.as_secs_f64()).sum();
        let share = |of: f64| if busy > 0.0 { of / busy } else { 0.0 };
        let run = Run {
            congestion_control: control.to_owned(),
            sysctls: self.set.clone(),
            flows,
            seed,
            sample: Sample {
                goodput_bps,
                rtt_loaded_ms: percentile(&loaded, 95.0).map(Duration::as_millis_f64),
                retransmitted_share: if sent > 0 { again as f64 / sent as f64 } else { 0.0 },
            },
            rtt_idle_ms: outcome.idle_rtt.map(Duration::as_millis_f64),
            receive_window_limited_share: share(last().map(|sample| sample.rwnd_limited.as_secs_f64()).sum()),
            send_buffer_limited_share: share(last().map(|sample| sample.sndbuf_limited.as_secs_f64()).sum()),
            valid: outcome.invalid.is_empty(),
            invalid_reason: (!outcome.invalid.is_empty()).then(|| outcome.invalid.join("; ")),
        };
        self.runs.push(run.clone());
        Ok(run)
    }
}

impl Explore for LabEnds {
    fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    fn candidates(&self) -> &[String] {
        &self.candidates
    }

    fn usual_control(&self) -> &str {
        &self.usual_control
    }

    fn look(&mut self, control: &str, flows: u16, trial: u64) -> Result<Look, Failure> {
        let run = self.one(control, flows, self.seed + trial)?;
        Ok(Look { carried_bps: run.sample.goodput_bps, rtt_ms: run.rtt_idle_ms })
    }
}

impl Ends for LabEnds {
    type Error = Failure;

    fn measure(&mut self) -> Result<Sample, Failure> {
        // Both runs of a pair meet the same randomness.
        let seed = self.seed + self.compared / 2;
        self.compared += 1;
        let control = self.control.clone();
        Ok(self.one(&control, 1, seed)?.sample)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Failure> {
        for change in changes {
            if change.key == CONTROL {
                self.control.clone_from(&change.to);
            } else {
                self.set.insert(change.key.clone(), change.to.clone());
            }
        }
        Ok(())
    }

    fn undo(&mut self, changes: &[Change]) -> Result<(), Failure> {
        for change in changes {
            if change.key == CONTROL {
                self.control.clone_from(&self.usual_control);
            } else {
                self.set.remove(&change.key);
            }
        }
        Ok(())
    }

    fn stopped(&self) -> bool {
        Self::stopped(self)
    }

    fn tell(&mut self, event: Event<'_>) {
        match event {
            Event::Compare { block, again, pairs } => self.line.doing(text::comparing(block, again, pairs)),
            Event::Run { with, sample } => self.line.ran(&text::run(with, sample)),
        }
    }
}
