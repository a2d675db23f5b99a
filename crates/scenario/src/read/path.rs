//! `[path]` and `[path.back]`.

use path::{CoDel, Discipline, LinkConfig, LossModel, Policer, QueueConfig, QueueLimit, RateModel, Red, Reorder};
use toml::de::DeValue;
use units::{Bytes, Duration, Instant, Probability};

use super::section::{Item, Notes, Section};
use super::{FileSource, keys};
use crate::check::full_packet;
use crate::error::{Reason, quoted};
use crate::queue::thousandths;
use crate::suggest::hint;
use crate::trace::parse_trace;
use crate::{PathSpec, QueueSpec};

/// Ethernet's.
const MTU: u16 = 1500;
const ONE_BDP: QueueSpec = QueueSpec::BdpMilli(1000);
/// Queue of a direction without a bottleneck: it never fills, and only has to be valid.
const WITHOUT_RATE: QueueSpec = QueueSpec::Packets(1000);

/// RFC 8289 sections 4.2 and 4.3.
const CODEL: CoDel = CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
/// RFC 8290 section 4.1.2.
const FQ_CODEL_BUCKETS: u32 = 1024;
/// Floyd, "RED: Discussions of Setting Parameters" (1997): max_p 0.1, max_th three times min_th, w_q 0.002 (here 1/512).
const RED_MAX_PROBABILITY: Probability = Probability::from_ppb(100_000_000);
const RED_MAX_OF_MIN: u64 = 3;
const RED_WEIGHT_SHIFT: u8 = 9;

pub(super) fn read(notes: &mut Notes<'_>, top: &Section<'_, '_>, files: &dyn FileSource) -> PathSpec {
    let Some(path) = top.table(notes, "path", "[path]", keys::PATH) else {
        if top.item(notes, "path").is_none() {
            top.missing(notes, "path");
        }
        return PathSpec::plain(RateModel::Unlimited, Duration::ZERO);
    };
    let mtu = path.integer(notes, "mtu").unwrap_or(MTU);
    let overhead = path.quantity(notes, "overhead").unwrap_or(Bytes::ZERO);
    let packet = full_packet(mtu, overhead);
    let rate =
        path.required(notes, "rate").and_then(|item| read_rate(notes, &item, files)).unwrap_or(RateModel::Unlimited);
    let rtts = path.required(notes, "rtt").and_then(|item| item.quantities(notes)).unwrap_or_default();
    let mean_burst_milli = read_mean_burst(notes, &path);
    let (loss, losses) = read_losses(notes, &path, mean_burst_milli);
    let default_queue = if rate == RateModel::Unlimited { WITHOUT_RATE } else { ONE_BDP };
    let queues =
        path.item(notes, "queue").map_or(Some(vec![default_queue]), |item| item.quantities(notes)).unwrap_or_default();
    let forward = read_link(notes, &path, rate, loss, overhead, packet);
    let (back, back_queue) = read_back(notes, &path, overhead, mtu, files);
    PathSpec { forward, back, rtts, losses, mean_burst_milli, queues, back_queue, mtu }
}

fn read_back(
    notes: &mut Notes<'_>,
    path: &Section<'_, '_>,
    overhead: Bytes,
    mtu: u16,
    files: &dyn FileSource,
) -> (LinkConfig, QueueSpec) {
    let Some(back) = path.table(notes, "back", "[path.back]", keys::BACK) else {
        return (LinkConfig { overhead, ..clear_link(RateModel::Unlimited) }, WITHOUT_RATE);
    };
    let overhead = back.quantity(notes, "overhead").unwrap_or(overhead);
    let rate = back.item(notes, "rate").and_then(|item| read_rate(notes, &item, files)).unwrap_or(RateModel::Unlimited);
    let mean_burst_milli = read_mean_burst(notes, &back);
    let (pattern, losses) = read_losses(notes, &back, mean_burst_milli);
    let loss = match (pattern, losses.as_slice()) {
        (LossModel::None, [average]) => loss_model(*average, mean_burst_milli),
        (pattern, _) => {
            if losses.len() > 1 {
                let place = back.item(notes, "loss").map_or(0, |item| item.offset);
                let sentence = "only the loss of [path] can be a list; [path.back] has one".to_owned();
                notes.problem(place, Reason::Impossible(sentence));
            }
            pattern
        }
    };
    let default_queue = if rate == RateModel::Unlimited { WITHOUT_RATE } else { ONE_BDP };
    let queue = back.quantity(notes, "queue").unwrap_or(default_queue);
    let packet = full_packet(mtu, overhead);
    (read_link(notes, &back, rate, loss, overhead, packet), queue)
}

/// Everything of one direction that is never swept.
fn read_link(
    notes: &mut Notes<'_>,
    section: &Section<'_, '_>,
    rate: RateModel,
    loss: LossModel,
    overhead: Bytes,
    packet: Bytes,
) -> LinkConfig {
    let discipline =
        section.item(notes, "aqm").and_then(|item| read_aqm(notes, &item, packet)).unwrap_or(Discipline::DropTail);
    let clear = clear_link(rate);
    LinkConfig {
        jitter: section.quantity(notes, "jitter").unwrap_or(Duration::ZERO),
        reorder: read_reorder(notes, section),
        duplicate: section.quantity(notes, "duplicate").unwrap_or(Probability::ZERO),
        loss,
        policer: read_policer(notes, section),
        queue: QueueConfig {
            discipline,
            ecn: section.boolean(notes, "ecn").unwrap_or(false),
            mark_above: section.quantity(notes, "mark_above"),
            ..clear.queue
        },
        overhead,
        ..clear
    }
}

/// A link that only has a rate. Delay, and queue where it matters, are filled in per cell.
pub(crate) fn clear_link(rate: RateModel) -> LinkConfig {
    LinkConfig {
        rate,
        delay: Duration::ZERO,
        flow_delay: Vec::new(),
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss: LossModel::None,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Packets(1000),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

impl PathSpec {
    /// A path with a rate and a round-trip time and every other key at its default.
    pub(crate) fn plain(rate: RateModel, rtt: Duration) -> Self {
        let queue = if rate == RateModel::Unlimited { WITHOUT_RATE } else { ONE_BDP };
        Self {
            forward: clear_link(rate),
            back: clear_link(RateModel::Unlimited),
            rtts: vec![rtt],
            losses: vec![Probability::ZERO],
            mean_burst_milli: None,
            queues: vec![queue],
            back_queue: WITHOUT_RATE,
            mtu: MTU,
        }
    }
}

/// The loss of a cell by its average.
pub(crate) fn loss_model(average: Probability, mean_burst_milli: Option<u32>) -> LossModel {
    match mean_burst_milli {
        _ if average == Probability::ZERO => LossModel::None,
        None => LossModel::Independent(average),
        Some(mean_burst_milli) => LossModel::Burst { average, mean_burst_milli },
    }
}

fn read_rate(notes: &mut Notes<'_>, item: &Item<'_, '_>, files: &dyn FileSource) -> Option<RateModel> {
    const EXPECTED: &str =
        "a rate in quotes, such as \"200mbit\", or { steps = [[\"0s\", \"100mbit\"], …] }, or { trace = \"file\" }";
    match item.value() {
        DeValue::String(text) if text == "unlimited" => return Some(RateModel::Unlimited),
        DeValue::Table(_) => {}
        DeValue::String(_) => return item.quantity(notes).map(RateModel::Constant),
        _ => {
            item.wrong_type(notes, EXPECTED);
            return None;
        }
    }
    let table = item.table(notes, item.path.clone().as_str(), keys::RATE, EXPECTED)?;
    match (table.item(notes, "steps"), table.item(notes, "trace")) {
        (Some(steps), None) => read_steps(notes, &steps).map(RateModel::Steps),
        (None, Some(trace)) => {
            let name = trace.text(notes, "a file's name in quotes")?;
            let trace = match files.read(name) {
                Ok(text) => parse_trace(&text, name),
                Err(why) => {
                    trace.bad(notes, name, why);
                    return None;
                }
            };
            match trace {
                Ok(trace) => Some(RateModel::Trace(trace)),
                Err(error) => {
                    notes.problems_elsewhere(&error);
                    None
                }
            }
        }
        (steps, _) => {
            let sentence = match steps {
                Some(_) => "a rate has either steps or a trace",
                None => "a rate needs steps or a trace",
            };
            notes.problem(item.offset, Reason::Impossible(sentence.to_owned()));
            None
        }
    }
}

fn read_steps(notes: &mut Notes<'_>, item: &Item<'_, '_>) -> Option<Vec<(Instant, units::Rate)>> {
    const EXPECTED: &str = "a list of pairs of time and rate, such as [[\"0s\", \"100mbit\"], [\"10s\", \"10mbit\"]]";
    let DeValue::Array(array) = item.value() else {
        item.wrong_type(notes, EXPECTED);
        return None;
    };
    item.elements(notes, array)
        .iter()
        .map(|step| {
            let pair = match step.value() {
                DeValue::Array(pair) => step.elements(notes, pair),
                _ => Vec::new(),
            };
            let [at, rate] = pair.as_slice() else {
                notes.problem(
                    step.offset,
                    Reason::Impossible("a step is a pair of time and rate, such as [\"10s\", \"10mbit\"]".to_owned()),
                );
                return None;
            };
            let at: Option<Duration> = at.quantity(notes);
            Some((Instant::ZERO + at?, rate.quantity(notes)?))
        })
        .collect()
}

/// The swept averages; with a loss by pattern, the pattern and its average.
fn read_losses(
    notes: &mut Notes<'_>,
    section: &Section<'_, '_>,
    mean_burst_milli: Option<u32>,
) -> (LossModel, Vec<Probability>) {
    let none = (LossModel::None, vec![Probability::ZERO]);
    let Some(item) = section.item(notes, "loss") else { return none };
    if !matches!(item.value(), DeValue::Table(_)) {
        return (LossModel::None, item.quantities(notes).unwrap_or_default());
    }
    let Some(table) = item.table(notes, &item.path, keys::LOSS, "") else { return none };
    if mean_burst_milli.is_some() {
        let sentence = "mean_burst belongs to a loss given as a probability, not to a pattern".to_owned();
        notes.problem(item.offset, Reason::Impossible(sentence));
    }
    match (table.integer::<u64>(notes, "every"), table.item(notes, "packets")) {
        (Some(every), None) => {
            let offset = table.integer(notes, "offset").unwrap_or(0);
            (LossModel::Periodic { every, offset }, vec![one_in(every)])
        }
        (None, Some(packets)) if table.item(notes, "offset").is_none() => {
            let DeValue::Array(array) = packets.value() else {
                packets.wrong_type(notes, "a list of packet numbers, such as [10, 11]");
                return none;
            };
            let numbers = packets.elements(notes, array).iter().filter_map(|item| item.integer(notes)).collect();
            (LossModel::List(numbers), vec![Probability::ZERO])
        }
        _ => {
            let sentence = "a loss pattern is either { every = 100, offset = 0 } or { packets = [10, 11] }".to_owned();
            notes.problem(item.offset, Reason::Impossible(sentence));
            none
        }
    }
}

/// The average of a loss of every `every`-th packet.
fn one_in(every: u64) -> Probability {
    Probability::from_ppb(u32::try_from(1_000_000_000 / every.max(1)).unwrap_or(u32::MAX))
}

fn read_mean_burst(notes: &mut Notes<'_>, section: &Section<'_, '_>) -> Option<u32> {
    let item = section.item(notes, "mean_burst")?;
    let number = match item.value() {
        DeValue::Integer(integer) => integer.to_string(),
        DeValue::Float(float) => float.to_string(),
        _ => {
            item.wrong_type(notes, "a number of packets without quotes, such as 2.5");
            return None;
        }
    };
    let milli = thousandths(&number);
    if milli.is_none() {
        item.bad(notes, &number, "a number of packets with at most three decimals, below 4294967, is needed here");
    }
    milli
}

fn read_reorder(notes: &mut Notes<'_>, section: &Section<'_, '_>) -> Option<Reorder> {
    let item = section.item(notes, "reorder")?;
    let expected = "{ probability = \"1%\", advance = \"5ms\" }";
    let table = item.table(notes, &item.path, keys::REORDER, expected)?;
    let probability = table.required(notes, "probability").and_then(|item| item.quantity(notes));
    let advance = table.required(notes, "advance").and_then(|item| item.quantity(notes));
    Some(Reorder { probability: probability?, advance: advance? })
}

fn read_policer(notes: &mut Notes<'_>, section: &Section<'_, '_>) -> Option<Policer> {
    let item = section.item(notes, "policer")?;
    let expected = "{ rate = \"20mbit\", burst = \"100kB\" }";
    let table = item.table(notes, &item.path, keys::POLICER, expected)?;
    let rate = table.required(notes, "rate").and_then(|item| item.quantity(notes));
    let burst = table.required(notes, "burst").and_then(|item| item.quantity(notes));
    Some(Policer { rate: rate?, burst: burst? })
}

fn read_aqm(notes: &mut Notes<'_>, item: &Item<'_, '_>, packet: Bytes) -> Option<Discipline> {
    const KINDS: &[&str] = &["drop-tail", "codel", "fq-codel", "red"];
    const EXPECTED: &str = "the name of one in quotes, such as \"fq-codel\", or { kind = \"fq-codel\", … }";
    let (kind, place) = match item.value() {
        DeValue::String(kind) => (kind.as_ref(), item.offset),
        DeValue::Table(table) => match table.get("kind") {
            Some(kind) => match kind.get_ref() {
                DeValue::String(text) => (text.as_ref(), kind.span().start),
                // Opened for its keys; the wrong type is noted there.
                _ => {
                    let section = item.table(notes, &item.path, keys::AQM, EXPECTED)?;
                    section.text(notes, "kind");
                    return None;
                }
            },
            None => {
                item.table(notes, &item.path, keys::AQM, EXPECTED)?.missing(notes, "kind");
                return None;
            }
        },
        _ => {
            item.wrong_type(notes, EXPECTED);
            return None;
        }
    };
    let known = match kind {
        "drop-tail" => keys::AQM_DROP_TAIL,
        "codel" => keys::AQM_CODEL,
        "fq-codel" => keys::AQM_FQ_CODEL,
        "red" => keys::AQM_RED,
        _ => {
            let text = quoted(kind);
            notes.problem(place, Reason::UnknownName { text, what: "an aqm", hint: hint(kind, KINDS) });
            return None;
        }
    };
    // A name alone is a table without parameters.
    let table = match item.value() {
        DeValue::Table(_) => item.table(notes, &format!("{} of kind \"{kind}\"", item.path), known, EXPECTED),
        _ => None,
    };
    let table = table.as_ref();
    let mut codel = || CoDel {
        target: table.and_then(|t| t.quantity(notes, "target")).unwrap_or(CODEL.target),
        interval: table.and_then(|t| t.quantity(notes, "interval")).unwrap_or(CODEL.interval),
    };
    Some(match kind {
        "codel" => Discipline::CoDel(codel()),
        "fq-codel" => Discipline::FqCoDel {
            codel: codel(),
            buckets: table.and_then(|t| t.integer(notes, "buckets")).unwrap_or(FQ_CODEL_BUCKETS),
            quantum: table.and_then(|t| t.quantity(notes, "quantum")).unwrap_or(packet),
        },
        "red" => {
            let Some(table) = table else {
                let sentence =
                    "red needs its thresholds: { kind = \"red\", min = \"30kB\", max = \"90kB\" }".to_owned();
                notes.problem(item.offset, Reason::Impossible(sentence));
                return None;
            };
            let min: Bytes = table.required(notes, "min").and_then(|item| item.quantity(notes))?;
            Discipline::Red(Red {
                min,
                max: table.quantity(notes, "max").unwrap_or(min.saturating_mul(RED_MAX_OF_MIN)),
                max_probability: table.quantity(notes, "max_probability").unwrap_or(RED_MAX_PROBABILITY),
                weight_shift: table.integer(notes, "weight_shift").unwrap_or(RED_WEIGHT_SHIFT),
            })
        }
        _ => Discipline::DropTail,
    })
}
