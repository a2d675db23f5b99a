//! One cell of a scenario file, as the lab runs it.

use path::record::Record;
use path::{Counters, FlowId};
use scenario::{Cell, ExpandedFlow, FlowKind, Scenario};
use units::{Bytes, Duration, Instant};

use crate::controllers::{UnknownController, controller};
use crate::outcome::FlowOutcome;
use crate::receiver::AckPolicy;
use crate::source::Traffic;
use crate::window::Buffers;
use crate::world::{FlowConfig, ProbeConfig, ProbeSample, World, WorldConfig, WorldError};

/// As the lab: 20 probes a second, samples and time buckets of 100 ms.
const PROBE_EVERY: Duration = Duration::from_millis(50);
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// With more flows than this their states over time are not kept: nobody looks at so many.
const MOST_SAMPLED: usize = 1000;
/// Wait for a probe on the idle path: longer than any round trip that scenarios allow.
const IDLE_PATIENCE: Duration = Duration::from_secs(600);

/// How the ends of a cell behave, beyond what the scenario says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// When receivers acknowledge. The default is that of the lab's ends, which get what arrives within 50 µs together.
    pub acks: AckPolicy,
    /// Most segments in one burst; `None`: as Linux sizes it.
    pub burst: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { acks: AckPolicy { coalesce: Duration::from_micros(50), ..AckPolicy::default() }, burst: None }
    }
}

/// Why a cell can't be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A congestion control that only a kernel has.
    #[error(transparent)]
    Controller(#[from] UnknownController),
    /// The path or the flows.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A sysctl's value.
    #[error("{key} = {value}: expected {expected}")]
    Sysctl {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
}

/// Everything that one run of a cell gave.
#[derive(Debug)]
pub struct CellOutcome {
    /// Each flow, in the scenario's order.
    pub flows: Vec<FlowOutcome>,
    /// Payload that each had received as the warm-up ended.
    pub received_at_warmup: Vec<Bytes>,
    /// The end of the run: its time, or when all amounts had arrived.
    pub ended: Instant,
    /// The scenario's warm-up.
    pub warmup: Instant,
    /// Totals of the data direction.
    pub counters: Counters,
    /// What happened at the bottleneck over time.
    pub record: Record,
    /// The probe.
    pub probes: Vec<ProbeSample>,
    /// Round-trip time of the probe before any load.
    pub idle_rtt: Option<Duration>,
    /// Sysctls of the scenario that change nothing here.
    pub without_effect: Vec<String>,
    /// Packets that entered a link, or left one.
    pub packet_events: u64,
    /// A stop was asked for before the end.
    pub stopped_early: bool,
}

/// Runs one cell of `scenario`. `progress` is told the time reached and the payload delivered so far, every tenth of a virtual second; where
/// it answers false, the run ends there.
///
/// # Errors
/// [`RunError`].
pub fn run_cell(
    scenario: &Scenario,
    cell: &Cell,
    options: &Options,
    progress: &mut dyn FnMut(Duration, Bytes) -> bool,
) -> Result<CellOutcome, RunError> {
    let ends = Ends::of(scenario, cell)?;
    let expanded = scenario.expanded_flows();
    let flows: Vec<FlowConfig> =
        expanded.iter().map(|flow| flow_config(flow, cell, &ends, options)).collect::<Result<_, _>>()?;
    // As in the lab.
    let probe = FlowId(flows.len() as u16 + 1);
    let (count, all_end) = (flows.len(), expanded.iter().all(ends_by_itself));
    let mut world = World::new(WorldConfig {
        forward: vec![cell.forward.clone()],
        back: vec![cell.back.clone()],
        flows,
        mtu: scenario.path.mtu,
        seed: cell.seed,
        bucket: SAMPLE_EVERY,
        sample_every: (count <= MOST_SAMPLED).then_some(SAMPLE_EVERY),
        probe: Some(ProbeConfig { every: PROBE_EVERY, from: Instant::ZERO, flow: probe }),
    })?;
    let idle_rtt = idle_rtt(cell, scenario.path.mtu, probe)?;
    let (warmup, end) = (Instant::ZERO + scenario.run.warmup, Instant::ZERO + scenario.run.duration);
    let mut stopped_early = false;
    let mut received_at_warmup = vec![Bytes::ZERO; count];
    let mut reached = Instant::ZERO;
    while reached < end && !stopped_early && !(all_end && world.is_done()) {
        let before = reached;
        reached = (reached + SAMPLE_EVERY).min(end);
        if before <= warmup && warmup <= reached {
            world.run(warmup);
            received_at_warmup = (0..count).map(|flow| world.received(flow)).collect();
        }
        world.run(reached);
        let total = (0..count).fold(Bytes::ZERO, |sum, flow| sum + world.received(flow));
        stopped_early = !progress(reached.since(Instant::ZERO), total);
    }
    let record = world.records().next().cloned();
    Ok(CellOutcome {
        flows: (0..count).map(|flow| world.outcome(flow)).collect(),
        received_at_warmup,
        ended: world.now(),
        warmup,
        counters: world.forward_counters().first().copied().unwrap_or_default(),
        record: record.unwrap_or_else(|| Record::new(SAMPLE_EVERY, None, false)),
        probes: world.probes().to_vec(),
        idle_rtt,
        without_effect: ends.without_effect,
        packet_events: world.packet_events(),
        stopped_early,
    })
}

fn ends_by_itself(flow: &ExpandedFlow) -> bool {
    matches!(flow.kind, FlowKind::Bulk { bytes: Some(_) })
}

/// The probe's round trip with nothing else on the path.
fn idle_rtt(cell: &Cell, mtu: u16, flow: FlowId) -> Result<Option<Duration>, WorldError> {
    let mut forward = cell.forward.clone();
    forward.loss = path::LossModel::None;
    let mut world = World::new(WorldConfig {
        forward: vec![forward],
        back: vec![cell.back.clone()],
        flows: Vec::new(),
        mtu,
        seed: cell.seed,
        bucket: SAMPLE_EVERY,
        sample_every: None,
        probe: Some(ProbeConfig { every: IDLE_PATIENCE, from: Instant::ZERO, flow }),
    })?;
    world.run(Instant::ZERO + (IDLE_PATIENCE - Duration::from_nanos(1)));
    Ok(world.probes().first().map(|probe| probe.rtt))
}

fn flow_config(
    flow: &ExpandedFlow,
    cell: &Cell,
    ends: &Ends,
    options: &Options,
) -> Result<FlowConfig, UnknownController> {
    let name = flow.congestion_control.as_ref().unwrap_or(&cell.profile.congestion_control);
    // Each flow's random choices are its own, and the same in every variant.
    let seed = cell.seed.wrapping_mul(0x0001_0000).wrapping_add(u64::from(flow.id.0));
    let answers = matches!(flow.kind, FlowKind::RequestResponse { .. });
    Ok(FlowConfig {
        controller: controller(name, seed)?,
        response_controller: answers.then(|| controller(name, !seed)).transpose()?,
        traffic: match flow.kind {
            FlowKind::Bulk { bytes } => Traffic::Bulk { bytes },
            FlowKind::RequestResponse { request, response, pause } => {
                Traffic::RequestResponse { request, response, pause }
            }
        },
        start: Instant::ZERO + flow.start,
        stop: flow.duration.map(|duration| Instant::ZERO + flow.start + duration),
        buffers: ends.buffers,
        acks: options.acks,
        burst: options.burst,
        ecn: ends.ecn,
    })
}

/// What the scenario's sysctls make of the two ends.
struct Ends {
    buffers: Buffers,
    ecn: bool,
    without_effect: Vec<String>,
}

impl Ends {
    fn of(scenario: &Scenario, cell: &Cell) -> Result<Self, RunError> {
        let mut ends = Self { buffers: Buffers::default(), ecn: false, without_effect: Vec::new() };
        for (key, value) in scenario.sysctls.iter().chain(&cell.profile.sysctls) {
            let bad = |expected| RunError::Sysctl { key: key.clone(), value: value.clone(), expected };
            match key.replace('/', ".").as_str() {
                "net.ipv4.tcp_rmem" => {
                    let [_, initial, most] = three(value).ok_or_else(|| bad("three sizes in bytes"))?;
                    (ends.buffers.receive_initial, ends.buffers.receive_most) = (initial, most);
                }
                "net.ipv4.tcp_wmem" => {
                    let [_, _, most] = three(value).ok_or_else(|| bad("three sizes in bytes"))?;
                    ends.buffers.send_most = most;
                }
                "net.ipv4.tcp_ecn" => {
                    let mode: u32 = value.trim().parse().map_err(|_| bad("a number"))?;
                    ends.ecn = mode == 1;
                }
                // Simulated ends remember nothing, and have no IPv6.
                "net.ipv4.tcp_no_metrics_save" | "net.ipv6.conf.all.disable_ipv6" => {}
                _ if !ends.without_effect.contains(key) => ends.without_effect.push(key.clone()),
                _ => {}
            }
        }
        Ok(ends)
    }
}

fn three(text: &str) -> Option<[Bytes; 3]> {
    let mut values = text.split_whitespace().map(|word| word.parse::<u64>().ok().map(Bytes::new));
    let three = [values.next()??, values.next()??, values.next()??];
    values.next().is_none().then_some(three)
}
