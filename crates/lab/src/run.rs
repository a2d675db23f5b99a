//! One cell of a scenario, from making the two ends to the figures.

use std::mem::take;
use std::path::Path;

use host::cc;
use host::clock::Clock;
use host::netns::NetNs;
use host::tcp::SetCongestionControlError;
use measure::probe::{ProbeError, ProbePath, ProbePlan};
use measure::traffic::{End, FlowKind, FlowPlan, Progress, StopFlag, TrafficError, TrafficOutcome, TrafficPlan};
use scenario::{Cell, ExpandedFlow, Scenario};
use units::{Bytes, Duration};

use crate::capture;
use crate::emulator::{EmulatorOutcome, LATE_LIMIT, LATE_SHARE_OF_RTT};
use crate::netem::{NetemError, NetemOutcome, NetemSession};
use crate::session::{DataFrom, FIRST_PORT, Session, SessionError, Setup};
use crate::world::{CLIENT, LeftAlone, SERVER};

/// 20 probes a second through the bottleneck's queue: 0.03 % of 50 Mbit/s.
const PROBE: ProbePlan = ProbePlan { interval: Duration::from_millis(50), from: End::Client };
/// TCP_INFO and goodput series.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Probes for the idle round-trip time.
const IDLE_PROBES: u32 = 5;

/// What to do with one cell besides running it.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// Capture the packets of both directions into this file.
    pub pcap: Option<&'a Path>,
    /// Keep every packet's fate; the model only.
    pub log_packets: bool,
    /// What carries the packets.
    pub carrier: Carrier,
    /// Ends the run early where it becomes true; what was measured is kept.
    pub stop: StopFlag,
}

/// Why a cell could not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The path or its ends.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The traffic.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The path by netem.
    #[error(transparent)]
    Netem(#[from] NetemError),
    /// The probe before the flows.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The capture file.
    #[error("can't write {file}: {reason}")]
    Capture {
        /// As it was given.
        file: String,
        /// What went wrong.
        reason: String,
    },
    /// A namespace.
    #[error(transparent)]
    NetNs(#[from] host::netns::NetNsError),
    /// A congestion control that the kernel does not have or does not give.
    #[error(transparent)]
    Control(#[from] SetCongestionControlError),
}

/// Everything that one run of a cell gave.
pub struct CellOutcome {
    /// What the ends saw.
    pub traffic: TrafficOutcome,
    /// What the path saw.
    pub path: PathSeen,
    /// RTT before the flows started, median.
    pub idle_rtt: Option<Duration>,
    /// Packets dropped by the devices, outside the model.
    pub device_drops: u64,
    /// Sysctls that belong to the whole host and were left alone.
    pub left_alone: Vec<LeftAlone>,
    /// Sysctls as the kernel shows them after setting.
    pub applied: Vec<(String, String)>,
    /// Why the figures must not be used; empty for a valid run.
    pub invalid: Vec<String>,
    /// Records written to the capture file and left out, or why it is not whole.
    pub captured: Option<Result<(u64, u64), String>>,
}

/// What carried the packets, and its account of them.
pub enum PathSeen {
    /// Our own model in real time.
    Model(Box<EmulatorOutcome>),
    /// The kernel's netem.
    Netem(Box<NetemOutcome>),
}

impl PathSeen {
    /// The model's account, where it was the model.
    pub fn model(&self) -> Option<&EmulatorOutcome> {
        match self {
            Self::Model(seen) => Some(seen),
            Self::Netem(_) => None,
        }
    }
}

/// What carries the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Carrier {
    /// Our own model in real time, every packet accounted for.
    #[default]
    Model,
    /// The kernel's netem.
    Netem,
}

/// A path that is up, by either.
enum Up {
    Model(Session),
    Netem(NetemSession),
}

/// What is left when it is down.
struct Down {
    path: PathSeen,
    device_drops: u64,
    left_alone: Vec<LeftAlone>,
    applied: Vec<(String, String)>,
}

impl Up {
    fn start(carrier: Carrier, setup: Setup<'_>) -> Result<Self, RunError> {
        Ok(match carrier {
            Carrier::Model => Self::Model(Session::start(setup)?),
            Carrier::Netem => Self::Netem(NetemSession::start(setup)?),
        })
    }

    fn ends(&self) -> (&NetNs, &NetNs) {
        match self {
            Self::Model(session) => (&session.world.client, &session.world.server),
            Self::Netem(session) => (&session.client, &session.server),
        }
    }

    fn clock(&self) -> Clock {
        match self {
            Self::Model(session) => session.clock,
            Self::Netem(session) => session.clock,
        }
    }

    fn finish(self) -> Result<Down, RunError> {
        match self {
            Self::Model(session) => {
                let (world, seen) = session.finish();
                Ok(Down {
                    device_drops: world.device_drops().map_err(SessionError::from)?,
                    path: PathSeen::Model(Box::new(seen)),
                    left_alone: world.left_alone,
                    applied: world.applied,
                })
            }
            Self::Netem(mut session) => {
                let (left_alone, applied) = (take(&mut session.left_alone), take(&mut session.applied));
                let seen = session.finish()?;
                Ok(Down {
                    device_drops: seen.device_dropped,
                    path: PathSeen::Netem(Box::new(seen)),
                    left_alone,
                    applied,
                })
            }
        }
    }
}

/// Runs one cell of `scenario`.
///
/// # Errors
/// [`RunError`]; nothing is left behind.
pub fn run_cell(
    scenario: &Scenario,
    cell: &Cell,
    options: &Options<'_>,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<CellOutcome, RunError> {
    let flows = scenario.expanded_flows();
    let mut sysctls = scenario.sysctls.clone();
    sysctls.extend(cell.profile.sysctls.iter().cloned());
    let (capture, writer) = match options.pcap {
        None => (None, None),
        Some(file) => {
            let failed = |error| RunError::Capture { file: file.display().to_string(), reason: reason(&error) };
            let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let (captures, writer) = capture::open(file, since_1970).map_err(failed)?;
            (Some(captures), Some(writer))
        }
    };
    let session = Up::start(
        options.carrier,
        Setup {
            forward: &cell.forward,
            back: &cell.back,
            data_from: DataFrom::Client,
            seed: cell.seed,
            mtu: scenario.path.mtu,
            sysctls: &sysctls,
            flows: flows.len() as u16,
            probe: true,
            log_packets: options.log_packets,
            capture,
        },
    )?;
    let (client, server) = session.ends();
    check_controls(client, &flows, cell)?;
    let plan = traffic_plan(&session, &flows, scenario, cell, options);
    let ends = ProbePath { client, server, client_addr: CLIENT.into(), server_addr: SERVER.into() };
    let idle = measure::probe::idle_rtt(&ends, PROBE, IDLE_PROBES, session.clock(), &options.stop)?;
    let mut idle: Vec<Duration> = idle.samples.iter().filter_map(|sample| sample.rtt).collect();
    idle.sort();
    let idle_rtt = idle.get(idle.len() / 2).copied();
    let traffic = measure::traffic::run(&plan, on_progress)?;
    let Down { path, device_drops, left_alone, applied } = session.finish()?;
    let captured = match writer {
        None => None,
        Some(writer) => {
            let left_out = path.model().map_or(0, |seen| seen.up.capture_left_out + seen.down.capture_left_out);
            // The figures are worth keeping when the disk is full.
            Some(writer.finish().map(|written| (written, left_out)).map_err(|error| reason(&error)))
        }
    };
    let invalid = why_invalid(&traffic, &path, device_drops, cell.rtt);
    Ok(CellOutcome { traffic, path, idle_rtt, device_drops, left_alone, applied, invalid, captured })
}

/// The library calls every error of the system one of reading.
fn reason(error: &pcap_file::PcapError) -> String {
    match error {
        pcap_file::PcapError::IoError(error) => error.to_string(),
        other => other.to_string(),
    }
}

fn check_controls(client: &NetNs, flows: &[ExpandedFlow], cell: &Cell) -> Result<(), RunError> {
    let wanted = flows.iter().map(|flow| flow.congestion_control.as_ref().unwrap_or(&cell.profile.congestion_control));
    for name in wanted {
        client.run(|| cc::probe_version(name))??;
    }
    Ok(())
}

fn traffic_plan(
    session: &Up,
    flows: &[ExpandedFlow],
    scenario: &Scenario,
    cell: &Cell,
    options: &Options<'_>,
) -> TrafficPlan {
    let plans = flows.iter().zip(FIRST_PORT..).map(|(flow, server_port)| FlowPlan {
        label: flow.label.clone(),
        kind: match flow.kind {
            scenario::FlowKind::Bulk { bytes } => FlowKind::Bulk { bytes },
            scenario::FlowKind::RequestResponse { request, response, pause } => {
                FlowKind::RequestResponse { request, response, pause }
            }
        },
        congestion_control: flow.congestion_control.clone().unwrap_or_else(|| cell.profile.congestion_control.clone()),
        start: flow.start,
        duration: flow.duration,
        server_port,
        data_from: End::Client,
    });
    let (client, server) = session.ends();
    TrafficPlan {
        client: client.clone(),
        server: server.clone(),
        client_addr: CLIENT.into(),
        server_addr: SERVER.into(),
        flows: plans.collect(),
        duration: scenario.run.duration,
        sample_every: SAMPLE_EVERY,
        probe: Some(PROBE),
        clock: session.clock(),
        stop: options.stop.clone(),
    }
}

/// Why a run's figures must not be used.
fn why_invalid(traffic: &TrafficOutcome, path: &PathSeen, device_drops: u64, rtt: Duration) -> Vec<String> {
    let mut why = match path {
        PathSeen::Model(seen) => late_or_lossy(seen, device_drops, rtt),
        PathSeen::Netem(seen) => netem_lossy(seen),
    };
    if traffic.memory_pressure {
        why.push("TCP ran short of the host's net.ipv4.tcp_mem".to_owned());
    }
    for flow in &traffic.flows {
        match &flow.error {
            Some(error) => why.push(format!("flow {}: {error}", flow.label)),
            None if flow.received == Bytes::ZERO => {
                why.push(format!("flow {}: no data arrived; give it a longer --duration", flow.label));
            }
            None => {}
        }
    }
    why
}

/// Why netem makes a run invalid: packets lost elsewhere than at the bottleneck.
fn netem_lossy(seen: &NetemOutcome) -> Vec<String> {
    let mut why = Vec::new();
    if seen.device_dropped > 0 {
        why.push(format!(
            "the kernel dropped {} packets between the hops (net.core.netdev_max_backlog)",
            seen.device_dropped
        ));
    }
    let lines = seen.up.delay_line_dropped + seen.down.delay_line_dropped;
    if lines > 0 {
        why.push(format!("the delay lines dropped {lines} packets"));
    }
    why
}

/// Why the emulation itself makes a run invalid: lateness over the limit for this round-trip time, or packets lost outside the model.
pub fn late_or_lossy(emulator: &EmulatorOutcome, device_drops: u64, rtt: Duration) -> Vec<String> {
    let mut why = Vec::new();
    let limit = LATE_LIMIT.max(rtt / LATE_SHARE_OF_RTT);
    let late = [&emulator.up, &emulator.down].map(|direction| direction.lateness.quantile(0.999));
    let worst = late[0].max(late[1]);
    if worst > limit {
        why.push(format!("the emulator was late: {worst} at p99.9, {limit} is allowed"));
    }
    let lost: u64 = [&emulator.up, &emulator.down].map(|d| d.outside.refused + d.outside.malformed).iter().sum();
    if lost > 0 {
        why.push(format!("{lost} packets were lost outside the path"));
    }
    if device_drops > 0 {
        why.push(format!("the devices dropped {device_drops} packets before the path saw them"));
    }
    if let Some(error) = &emulator.error {
        why.push(format!("the emulator ended early: {error}"));
    }
    why
}
