//! What is well written but cannot be run.

use std::collections::BTreeSet;

use path::{Discipline, LinkConfig, LossModel, QueueLimit, RateModel};
use units::{Bytes, Duration, Probability, Rate};

use crate::cells::{is_pattern, one_way};
use crate::error::{Problem, Reason, ScenarioError, quoted};
use crate::queue::nominal_rate;
use crate::suggest::hint;
use crate::{FlowKind, Profile, Published, Scenario};

/// The kernel's largest name of a congestion control: TCP_CA_NAME_MAX, less its terminating zero (include/net/tcp.h).
const LONGEST_CONTROL: usize = 15;
const MOST_FLOWS: u64 = 1000;
const MOST_RUNS: u128 = 100_000;
/// IPv4 hosts accept 576 (RFC 791); 9000 is what jumbo frames carry.
const MTUS: std::ops::RangeInclusive<u16> = 576..=9000;

/// Every queue, bucket and quantum holds at least a full Ethernet packet, also where the ends' is smaller: the path model
/// (`LinkConfig::check`) asks for it.
const FULL_PACKET: u64 = 1500;
/// The fastest link the path model's arithmetic is made for.
const FASTEST: Rate = Rate::from_bps(1_000_000_000_000_000_000);
const MOST_BUCKETS: u32 = 65_536;
/// Beyond this RED's average hardly moves in any experiment.
const MOST_WEIGHT_SHIFT: u8 = 24;

/// A sentence about one value of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// The value's place as in the file: `path.loss[1]`.
    pub place: String,
    pub sentence: String,
}

struct Complaints(Vec<Complaint>);

impl Complaints {
    fn add(&mut self, place: impl Into<String>, sentence: impl Into<String>) {
        self.0.push(Complaint { place: place.into(), sentence: sentence.into() });
    }
}

impl Scenario {
    /// Refuses what cannot be run: rates of zero, a loss of 100 %, a queue that holds no packet, times that do not fit each other,
    /// names that are missing or taken twice. [`Scenario::cells`] and everything that makes a scenario calls it.
    ///
    /// # Errors
    /// One sentence for each problem, under the scenario's name.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let problem = |complaint: Complaint| Problem {
            origin: self.name.clone(),
            position: None,
            reason: Reason::Impossible(complaint.sentence),
        };
        let problems: Vec<_> = complaints(self).into_iter().map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(ScenarioError::new(problems)) }
    }
}

/// Everything that [`Scenario::check`] refuses, each with its place.
pub(crate) fn complaints(scenario: &Scenario) -> Vec<Complaint> {
    let mut out = Complaints(Vec::new());
    names(scenario, &mut out);
    paths(scenario, &mut out);
    queues(scenario, &mut out);
    flows(scenario, &mut out);
    profiles(scenario, &mut out);
    run(scenario, &mut out);
    published(scenario, &mut out);
    out.0
}

fn names(scenario: &Scenario, out: &mut Complaints) {
    let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
    if scenario.name.is_empty() || !scenario.name.chars().all(allowed) {
        let name = quoted(&scenario.name);
        out.add("name", format!("{name} is no scenario's name: it takes lower case letters, digits and \"-\""));
    }
    if scenario.title.trim().is_empty() || scenario.title.contains('\n') {
        out.add("title", "the title is one line of text");
    }
}

fn paths(scenario: &Scenario, out: &mut Complaints) {
    let path = &scenario.path;
    if !MTUS.contains(&path.mtu) {
        let sentence = format!("an mtu of {} is outside {} to {} bytes", path.mtu, MTUS.start(), MTUS.end());
        out.add("path.mtu", sentence);
    }
    distinct(&path.rtts, "path.rtt", "round-trip time", out);
    distinct(&path.losses, "path.loss", "loss", out);
    distinct(&path.queues, "path.queue", "queue", out);
    let swept = if is_pattern(&path.forward.loss) { &[] } else { path.losses.as_slice() };
    for (index, loss) in swept.iter().enumerate() {
        average_loss(*loss, path.mean_burst_milli, &format!("path.loss[{index}]"), "path.mean_burst", out);
    }
    let shortest = shortest_rtt(scenario);
    link(&path.forward, "path", path.mtu, one_way(shortest).0, out);
    link(&path.back, "path.back", path.mtu, one_way(shortest).1, out);
    match &path.back.loss {
        LossModel::Independent(average) => average_loss(*average, None, "path.back.loss", "", out),
        LossModel::Burst { average, mean_burst_milli } => {
            average_loss(*average, Some(*mean_burst_milli), "path.back.loss", "path.back.mean_burst", out);
        }
        _ => {}
    }
}

/// Complains about an empty list and about values that stand in it twice: their cells would be the same.
fn distinct<T: PartialEq + ToString>(values: &[T], place: &str, what: &str, out: &mut Complaints) {
    if values.is_empty() {
        out.add(place, format!("the path needs at least one {what}"));
    }
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            out.add(format!("{place}[{index}]"), format!("{what} {} stands in the list twice", value.to_string()));
        }
    }
}

fn average_loss(
    average: Probability,
    mean_burst_milli: Option<u32>,
    place: &str,
    burst_place: &str,
    out: &mut Complaints,
) {
    if average == Probability::ONE {
        out.add(place, "a loss of 100% lets nothing through");
        return;
    }
    let Some(milli) = mean_burst_milli else { return };
    if milli < 1000 {
        let sentence = format!("a mean burst of {} packets is shorter than one packet", f64::from(milli) / 1000.0);
        out.add(burst_place, sentence);
        return;
    }
    // Between bursts at least one packet arrives: loss / (1 - loss) is at most the mean burst.
    let (lost, kept) = (u64::from(average.as_ppb()), u64::from(Probability::ONE.as_ppb() - average.as_ppb()));
    if lost * 1000 > kept * u64::from(milli) {
        let least = (lost * 1000).div_ceil(kept);
        let sentence = format!(
            "an average loss of {average} needs a mean burst of at least {} packets, for at least one packet arrives between bursts",
            least as f64 / 1000.0
        );
        out.add(place, sentence);
    }
}

/// What both directions have in common. `delay` is the shortest one-way delay.
fn link(config: &LinkConfig, place: &str, mtu: u16, delay: Duration, out: &mut Complaints) {
    let packet = full_packet(mtu, config.overhead);
    rate_model(&config.rate, &format!("{place}.rate"), out);
    match &config.loss {
        LossModel::Periodic { every, .. } if *every < 2 => {
            out.add(
                format!("{place}.loss"),
                format!("a loss of every {every}. packet lets nothing through; write at least 2"),
            );
        }
        LossModel::List(numbers) => {
            if let Some(pair) = numbers.windows(2).find(|pair| pair[0] >= pair[1]) {
                let sentence =
                    format!("lost packets are listed in rising order: {} stands before {}", pair[0], pair[1]);
                out.add(format!("{place}.loss"), sentence);
            }
        }
        _ => {}
    }
    if let Some(reorder) = &config.reorder
        && reorder.advance > delay
    {
        let sentence = format!("a packet cannot be {} early on a way of {delay}", reorder.advance);
        out.add(format!("{place}.reorder.advance"), sentence);
    }
    if let Some(policer) = &config.policer {
        rate(policer.rate, &format!("{place}.policer.rate"), out);
        if policer.burst < packet {
            let sentence = format!("a policer's burst of {} is less than one packet of {packet}", policer.burst);
            out.add(format!("{place}.policer.burst"), sentence);
        }
    }
    aqm(config, place, packet, out);
}

/// The largest packet of a direction, link-layer bytes included.
pub(crate) fn full_packet(mtu: u16, overhead: Bytes) -> Bytes {
    Bytes::new(u64::from(mtu).max(FULL_PACKET)) + overhead
}

fn rate(rate: Rate, place: &str, out: &mut Complaints) {
    if rate == Rate::ZERO {
        out.add(place, "a rate of 0 lets nothing through");
    } else if rate > FASTEST {
        out.add(place, format!("a rate of {rate} is above the largest, {FASTEST}"));
    }
}

fn rate_model(model: &RateModel, place: &str, out: &mut Complaints) {
    match model {
        RateModel::Unlimited => {}
        RateModel::Constant(constant) => rate(*constant, place, out),
        RateModel::Steps(steps) => {
            if steps.first().is_none_or(|(at, _)| at.as_nanos() != 0) {
                out.add(format!("{place}.steps"), "the first step of a rate is at \"0s\"");
            }
            for (index, pair) in steps.windows(2).enumerate() {
                if pair[0].0 >= pair[1].0 {
                    let sentence = format!("the step at {} follows one at {}; times rise", pair[1].0, pair[0].0);
                    out.add(format!("{place}.steps[{}]", index + 1), sentence);
                }
            }
            for (index, (_, step)) in steps.iter().enumerate() {
                rate(*step, &format!("{place}.steps[{index}]"), out);
            }
        }
        RateModel::Trace(trace) => {
            let rises = trace.opportunities_ms.is_sorted();
            if !rises || trace.opportunities_ms.last().is_none_or(|last| *last == 0) {
                out.add(place, "a trace has rising times, the last above 0 ms");
            }
        }
    }
}

fn aqm(config: &LinkConfig, place: &str, packet: Bytes, out: &mut Complaints) {
    let here = format!("{place}.aqm");
    if config.queue.ecn && config.queue.discipline == Discipline::DropTail {
        let sentence = "ecn = true marks where an aqm would drop, and drop-tail never does; set aqm or mark_above";
        out.add(format!("{place}.ecn"), sentence);
    }
    let codel = match &config.queue.discipline {
        Discipline::DropTail => None,
        Discipline::CoDel(codel) => Some(codel),
        Discipline::FqCoDel { codel, buckets, quantum } => {
            if !(1..=MOST_BUCKETS).contains(buckets) {
                out.add(format!("{here}.buckets"), format!("fq-codel has 1 to {MOST_BUCKETS} buckets, not {buckets}"));
            }
            if *quantum < packet {
                let sentence = format!("a quantum of {quantum} is less than one packet of {packet}");
                out.add(format!("{here}.quantum"), sentence);
            }
            Some(codel)
        }
        Discipline::Red(red) => {
            if red.min >= red.max {
                let sentence = format!("red's min of {} is not below its max of {}", red.min, red.max);
                out.add(format!("{here}.min"), sentence);
            }
            if red.max_probability == Probability::ZERO {
                out.add(format!("{here}.max_probability"), "red with a max_probability of 0 never drops");
            }
            if red.weight_shift > MOST_WEIGHT_SHIFT {
                let sentence = format!(
                    "a weight_shift of {} hardly moves the average; write at most {MOST_WEIGHT_SHIFT}",
                    red.weight_shift
                );
                out.add(format!("{here}.weight_shift"), sentence);
            }
            None
        }
    };
    if let Some(codel) = codel
        && (codel.target == Duration::ZERO || codel.target > codel.interval)
    {
        let sentence =
            format!("codel's target of {} is not above 0 and up to its interval of {}", codel.target, codel.interval);
        out.add(format!("{here}.target"), sentence);
    }
}

/// Every queue at every round-trip time, in both directions.
fn queues(scenario: &Scenario, out: &mut Complaints) {
    let path = &scenario.path;
    let back = std::slice::from_ref(&path.back_queue);
    for (place, listed, config, specs) in
        [("path.queue", true, &path.forward, path.queues.as_slice()), ("path.back.queue", false, &path.back, back)]
    {
        let packet = full_packet(path.mtu, config.overhead);
        let rate = nominal_rate(&config.rate);
        if rate == Some(Rate::ZERO) {
            // Already complained about.
            continue;
        }
        for (index, spec) in specs.iter().enumerate() {
            let place = if listed { format!("{place}[{index}]") } else { place.to_owned() };
            for rtt in &path.rtts {
                let sentence = match spec.limit(rate, *rtt) {
                    None => format!("a queue of {spec} needs a rate; without one write it in packets or bytes"),
                    Some(QueueLimit::Packets(0)) => "a queue of 0 packets holds nothing".to_owned(),
                    Some(QueueLimit::Bytes(bytes)) if bytes < packet => {
                        format!("a queue of {spec} ({bytes} at an rtt of {rtt}) is less than one packet of {packet}")
                    }
                    Some(_) => continue,
                };
                out.add(place, sentence);
                break;
            }
        }
    }
}

fn flows(scenario: &Scenario, out: &mut Complaints) {
    if scenario.flows.is_empty() {
        out.add("flow", "a scenario needs at least one flow");
    }
    let count: u64 = scenario.flows.iter().map(|flow| u64::from(flow.count)).sum();
    if count > MOST_FLOWS {
        out.add("flow", format!("{count} flows are more than {MOST_FLOWS}"));
        return;
    }
    let end = scenario.run.duration;
    for (index, flow) in scenario.flows.iter().enumerate() {
        let place = |key: &str| format!("flow[{index}].{key}");
        if flow.count == 0 {
            out.add(place("count"), "a count of 0 makes no flow");
        }
        match flow.kind {
            FlowKind::Bulk { bytes: Some(Bytes::ZERO) } => {
                out.add(place("bytes"), "a transfer of 0 bytes measures nothing")
            }
            FlowKind::Bulk { .. } => {}
            FlowKind::RequestResponse { request, response, .. } => {
                for (key, size) in [("request", request), ("response", response)] {
                    if size == Bytes::ZERO {
                        out.add(place(key), format!("a {key} of 0 bytes cannot be sent"));
                    }
                }
            }
        }
        if let Some(name) = &flow.congestion_control {
            control(name, place("congestion_control"), out);
        }
        let last = flow.start + flow.stagger * u64::from(flow.count.saturating_sub(1));
        if last >= end {
            let key = if flow.start >= end { "start" } else { "stagger" };
            out.add(place(key), format!("a flow that starts at {last} misses the run, which ends at {end}"));
        }
        if flow.duration == Some(Duration::ZERO) {
            out.add(place("duration"), "a flow of 0 s sends nothing");
        }
    }
    let mut labels = BTreeSet::new();
    for flow in scenario.expanded_flows() {
        let index = flow.spec;
        if flow.label.trim().is_empty() || flow.label.contains('\n') {
            out.add(format!("flow[{index}].label"), "a flow's label is one line of text");
        } else if !labels.insert(flow.label.clone()) {
            let sentence = format!("two flows are labelled {}; give one another label", quoted(&flow.label));
            out.add(format!("flow[{index}].label"), sentence);
        }
    }
}

fn control(name: &str, place: String, out: &mut Complaints) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > LONGEST_CONTROL || !name.chars().all(allowed) {
        let sentence = format!(
            "{} is no congestion control's name: 1 to {LONGEST_CONTROL} letters, digits, \"-\" and \"_\"",
            quoted(name)
        );
        out.add(place, sentence);
    }
}

fn profiles(scenario: &Scenario, out: &mut Complaints) {
    if scenario.profiles.is_empty() {
        out.add("profile", "a scenario needs at least one profile");
    }
    sysctls(&scenario.sysctls, "sysctl", out);
    for (index, profile) in scenario.profiles.iter().enumerate() {
        let place = |key: &str| format!("profile[{index}].{key}");
        if profile.name.trim().is_empty() || profile.name.contains('\n') {
            out.add(place("name"), "a profile's name is one line of text");
        } else if scenario.profiles[..index].iter().any(|other| other.name == profile.name) {
            let sentence = format!("two profiles are named {}; give one another name", quoted(&profile.name));
            out.add(place("name"), sentence);
        }
        control(&profile.congestion_control, place("congestion_control"), out);
        sysctls(&profile.sysctls, &place("sysctl"), out);
    }
}

fn sysctls(sysctls: &[(String, String)], place: &str, out: &mut Complaints) {
    for (index, (name, value)) in sysctls.iter().enumerate() {
        let place = format!("{place}.{name}");
        // The name becomes a path below /proc/sys: nothing in it may lead elsewhere.
        let allowed =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if !name.starts_with("net.") {
            let sentence = format!("sysctl {} is no network setting; names start with \"net.\"", quoted(name));
            out.add(place.as_str(), sentence);
        } else if !name.split('.').all(allowed) {
            out.add(place.as_str(), format!("{} is no sysctl's name", quoted(name)));
        } else if sysctls[..index].iter().any(|(other, _)| other == name) {
            out.add(place.as_str(), format!("sysctl {} is set twice", quoted(name)));
        }
        if value.is_empty() || value.chars().any(|c| c.is_control() && c != '\t') {
            out.add(place.as_str(), format!("sysctl {} needs a value on one line", quoted(name)));
        }
        if name == "net.ipv4.tcp_congestion_control" {
            let sentence = "the congestion control is the profile's congestion_control, not a sysctl";
            out.add(place.as_str(), sentence);
        }
    }
}

fn run(scenario: &Scenario, out: &mut Complaints) {
    let run = &scenario.run;
    if run.duration <= run.warmup {
        let sentence = format!("a run of {} is not longer than its warm-up of {}", run.duration, run.warmup);
        out.add("run.duration", sentence);
    }
    if run.repeats == 0 {
        out.add("run.repeats", "0 repeats measure nothing");
    }
    if run.seed.checked_add(u64::from(run.repeats)).is_none() {
        out.add("run.seed", format!("a seed of {} leaves no room for the seeds of repeats", run.seed));
    }
    let runs =
        [scenario.profiles.len(), scenario.path.rtts.len(), scenario.path.losses.len(), scenario.path.queues.len()]
            .iter()
            .fold(u128::from(run.repeats), |product, length| product.saturating_mul(*length as u128));
    if runs > MOST_RUNS {
        out.add("run.repeats", format!("{runs} runs are more than {MOST_RUNS}"));
    }
}

fn published(scenario: &Scenario, out: &mut Complaints) {
    for (index, figures) in scenario.published.iter().enumerate() {
        let place = |key: &str| format!("published[{index}].{key}");
        if !scenario.profiles.iter().any(|profile| profile.name == figures.profile) {
            let known: Vec<&str> = scenario.profiles.iter().map(|profile: &Profile| profile.name.as_str()).collect();
            let sentence =
                format!("no profile is named {}; {}", quoted(&figures.profile), hint(&figures.profile, &known));
            out.add(place("profile"), sentence);
        }
        if let Some(loss) = figures.loss
            && !scenario.path.losses.contains(&loss)
        {
            out.add(place("loss"), format!("a loss of {loss} is not among the path's"));
        }
        if !figures.has_figure() {
            out.add(format!("published[{index}]"), "a published entry needs at least one figure");
        }
    }
}

impl Published {
    /// Whether it says anything at all.
    pub(crate) fn has_figure(&self) -> bool {
        self.goodput.is_some()
            || self.rtt_under_load.is_some()
            || self.queueing_delay.is_some()
            || self.completion.is_some()
            || self.retransmissions.is_some()
            || self.first_contentful_paint.is_some()
    }
}

/// The shortest round-trip time of any flow in any cell.
fn shortest_rtt(scenario: &Scenario) -> Duration {
    let own = scenario.flows.iter().filter_map(|flow| flow.rtt);
    scenario.path.rtts.iter().copied().chain(own).min().unwrap_or(Duration::ZERO)
}
