//! One cell of a scenario, from making the two ends to the figures.

use std::path::Path;

use host::cc;
use host::tcp::SetCongestionControlError;
use measure::probe::{ProbeError, ProbePath, ProbePlan};
use measure::traffic::{End, FlowKind, FlowPlan, Progress, StopFlag, TrafficError, TrafficOutcome, TrafficPlan};
use scenario::{Cell, ExpandedFlow, Scenario};
use units::{Duration, Instant};

use crate::capture;
use crate::emulator::{DirectionOutcome, EmulatorOutcome, LATE_LIMIT, LATE_SHARE_OF_RTT};
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
    /// Keep every packet's fate.
    pub log_packets: bool,
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
    /// The probe before the flows.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The capture file.
    #[error("{file}: {source}")]
    Capture {
        /// As it was given.
        file: String,
        /// What went wrong.
        source: pcap_file::PcapError,
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
    /// What the emulator saw.
    pub emulator: EmulatorOutcome,
    /// RTT before the flows started, median.
    pub idle_rtt: Option<Duration>,
    /// Packets dropped by the devices, outside the model.
    pub device_drops: u64,
    /// Sysctls that belong to the whole host and were left alone.
    pub left_alone: Vec<LeftAlone>,
    /// Sysctls as the kernel shows them after setting.
    pub applied: Vec<(String, String)>,
    /// When the flows' time began, on the emulator's clock.
    pub started: Instant,
    /// Why the figures must not be used; empty for a valid run.
    pub invalid: Vec<String>,
    /// Records written to the capture file, and left out.
    pub captured: Option<(u64, u64)>,
}

impl CellOutcome {
    /// The data direction as the emulator saw it.
    pub fn forward(&self) -> &DirectionOutcome {
        &self.emulator.up
    }

    /// The direction of acknowledgements.
    pub fn back(&self) -> &DirectionOutcome {
        &self.emulator.down
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
            let failed = |source| RunError::Capture { file: file.display().to_string(), source };
            let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let (captures, writer) = capture::open(file, since_1970).map_err(failed)?;
            (Some(captures), Some(writer))
        }
    };
    let session = Session::start(Setup {
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
    })?;
    check_controls(&session, &flows, cell)?;
    let plan = traffic_plan(&session, &flows, scenario, cell, options);
    let ends = ProbePath {
        client: &session.world.client,
        server: &session.world.server,
        client_addr: CLIENT.into(),
        server_addr: SERVER.into(),
    };
    let idle = measure::probe::idle_rtt(&ends, PROBE, IDLE_PROBES, session.clock, &options.stop)?;
    let mut idle: Vec<Duration> = idle.samples.iter().filter_map(|sample| sample.rtt).collect();
    idle.sort();
    let idle_rtt = idle.get(idle.len() / 2).copied();
    let started = session.clock.now();
    let traffic = measure::traffic::run(&plan, on_progress)?;
    let (world, emulator) = session.finish();
    let device_drops = world.device_drops().map_err(SessionError::from)?;
    let captured = match writer {
        None => None,
        Some(writer) => {
            let file = options.pcap.map(|f| f.display().to_string()).unwrap_or_default();
            let written = writer.finish().map_err(|source| RunError::Capture { file, source })?;
            Some((written, emulator.up.capture_left_out + emulator.down.capture_left_out))
        }
    };
    let mut outcome = CellOutcome {
        traffic,
        emulator,
        idle_rtt,
        device_drops,
        left_alone: world.left_alone,
        applied: world.applied,
        started,
        invalid: Vec::new(),
        captured,
    };
    outcome.invalid = why_invalid(&outcome, cell.rtt);
    Ok(outcome)
}

fn check_controls(session: &Session, flows: &[ExpandedFlow], cell: &Cell) -> Result<(), RunError> {
    let wanted = flows.iter().map(|flow| flow.congestion_control.as_ref().unwrap_or(&cell.profile.congestion_control));
    for name in wanted {
        session.world.client.run(|| cc::probe_version(name))??;
    }
    Ok(())
}

fn traffic_plan(
    session: &Session,
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
    TrafficPlan {
        client: session.world.client.clone(),
        server: session.world.server.clone(),
        client_addr: CLIENT.into(),
        server_addr: SERVER.into(),
        flows: plans.collect(),
        duration: scenario.run.duration,
        sample_every: SAMPLE_EVERY,
        probe: Some(PROBE),
        clock: session.clock,
        stop: options.stop.clone(),
    }
}

/// Why a run's figures must not be used.
fn why_invalid(outcome: &CellOutcome, rtt: Duration) -> Vec<String> {
    let mut why = late_or_lossy(&outcome.emulator, outcome.device_drops, rtt);
    if outcome.traffic.memory_pressure {
        why.push("TCP ran short of the host's net.ipv4.tcp_mem".to_owned());
    }
    for flow in &outcome.traffic.flows {
        if let Some(error) = &flow.error {
            why.push(format!("flow {}: {error}", flow.label));
        }
    }
    why
}

/// Why the emulation itself makes a run invalid: lateness over the limit for this round-trip time, or packets lost outside the model.
pub fn late_or_lossy(emulator: &EmulatorOutcome, device_drops: u64, rtt: Duration) -> Vec<String> {
    let mut why = Vec::new();
    let limit = LATE_LIMIT.max(rtt / LATE_SHARE_OF_RTT);
    for (name, direction) in [("upward", &emulator.up), ("downward", &emulator.down)] {
        let late = direction.lateness.quantile(0.999);
        if late > limit {
            why.push(format!("the emulator was late: {late} at p99.9 {name}, {limit} is allowed"));
        }
        let lost = direction.outside.refused + direction.outside.malformed;
        if lost > 0 {
            why.push(format!("{lost} packets were lost outside the path {name}"));
        }
    }
    if device_drops > 0 {
        why.push(format!("the devices dropped {device_drops} packets before the path saw them"));
    }
    if let Some(error) = &emulator.error {
        why.push(format!("the emulator ended early: {error}"));
    }
    why
}
