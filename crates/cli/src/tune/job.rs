//! What the job does before it tries anything, the same over a real path and in the lab.

use measure::stats::median;
use tuning::plan::{Change, ChangeKind, Place, Plan};
use tuning::tune::Limits;
use units::Rate;

use super::show::Line;
use super::{CONTROL, Path};
use crate::exit::Failure;

/// Connections at the same time by which a path's bandwidth is looked for: one may be held by its buffers.
const MANY: [u16; 3] = [1, 4, 16];
/// More connections are tried while they carry this much more.
const MORE: f64 = 1.1;
/// Runs with each control before one is chosen.
const TRIALS: u64 = 2;

/// A run that is to find out about the path.
pub struct Look {
    /// Application bits per second that arrived.
    pub carried_bps: f64,
    /// Round-trip time without load; `None` where nothing measured it.
    pub rtt_ms: Option<f64>,
}

/// What can look.
pub trait Explore {
    /// Where progress is shown.
    fn line(&mut self) -> &mut Line;

    /// Controls to choose from.
    fn candidates(&self) -> &[String];

    /// The control that is there.
    fn usual_control(&self) -> &str;

    /// One run with so many connections of a control, nothing else changed.
    ///
    /// # Errors
    /// Where it gave no figure.
    fn look(&mut self, control: &str, flows: u16, trial: u64) -> Result<Look, Failure>;
}

/// Measures what the path carries and its RTT: with more and more connections, until more carry no more.
///
/// # Errors
/// Where a run gave no figure, or nothing measured the RTT.
pub fn find_path(ends: &mut impl Explore, known: Option<Rate>) -> Result<(Path, Chosen), Failure> {
    ends.line().doing("Looking at the path".to_owned());
    let control = ends.candidates().first().map_or(ends.usual_control(), String::as_str).to_owned();
    let mut rtts = Vec::new();
    let mut best: Option<(f64, u16)> = None;
    let mut alone = 0.0;
    for flows in MANY {
        let look = ends.look(&control, flows, 0)?;
        let carried = look.carried_bps;
        rtts.extend(look.rtt_ms);
        ends.line().ran(&format!("{flows} x {control}: {}", Rate::from_bps(carried as u64)));
        if flows == 1 {
            alone = carried;
        }
        let before = best.map_or(0.0, |(most, _)| most);
        if carried > before {
            best = Some((carried, flows));
        }
        if known.is_some() || carried < before * MORE {
            break;
        }
    }
    let rtt_ms = rtts.iter().copied().reduce(f64::min);
    let rtt_ms = rtt_ms.ok_or_else(|| Failure::failed("no probe came back: the path's RTT is not known"))?;
    let (most, flows) = best.ok_or_else(|| Failure::failed("no data arrived: the path's bandwidth is not known"))?;
    let path = match known {
        Some(rate) => Path { bandwidth_bps: rate.as_bps(), bandwidth_from: "given".to_owned(), rtt_ms },
        None => Path {
            bandwidth_bps: most as u64,
            bandwidth_from: format!(
                "{flows} {} with {control}{}",
                if flows == 1 { "connection" } else { "connections" },
                if flows == 1 { "" } else { " together" }
            ),
            rtt_ms,
        },
    };
    Ok((path, Chosen { control, carried_bps: alone }))
}

/// A congestion control, and what one connection with it carried.
pub struct Chosen {
    /// Its name.
    pub control: String,
    /// Application bits per second.
    pub carried_bps: f64,
}

/// The candidate that carries most, by the median of a few runs; `None` where there is none. `first`: what looking at the path showed.
///
/// # Errors
/// Where a run gave no figure.
pub fn choose_control(ends: &mut impl Explore, first: Chosen) -> Result<Option<Chosen>, Failure> {
    let candidates = ends.candidates().to_vec();
    let [_, _, ..] = &candidates[..] else { return Ok(candidates.first().map(|_| first)) };
    ends.line().doing(format!("Choosing between {}", candidates.join(" and ")));
    let mut best: Option<Chosen> = None;
    for control in candidates {
        let mut carried = Vec::new();
        for trial in 0..TRIALS {
            carried.push(ends.look(&control, 1, trial)?.carried_bps);
        }
        let carried_bps = median(&carried).unwrap_or_default();
        ends.line().ran(&format!("{control}: {}", Rate::from_bps(carried_bps as u64)));
        if best.as_ref().is_none_or(|best| carried_bps > best.carried_bps) {
            best = Some(Chosen { control, carried_bps });
        }
    }
    Ok(best)
}

/// Proposes the chosen control where the plan, which knows nothing of this path's losses, sees no need of it, and where one connection was
/// seen to carry so much more that a harm would be worth it. `usual`: what is there, and what one connection carried with it.
pub fn propose_measured(plan: &mut Plan, usual: &Chosen, chosen: Option<&Chosen>) {
    let Some(chosen) = chosen else { return };
    let worth = chosen.carried_bps >= usual.carried_bps * (1.0 + Limits::default().worth);
    let planned = plan.changes.iter().any(|change| change.key == CONTROL);
    if planned || !worth || chosen.control == usual.control || !matches!(usual.control.as_str(), "cubic" | "reno") {
        return;
    }
    let rate = |one: &Chosen| Rate::from_bps(one.carried_bps as u64);
    plan.kept.retain(|kept| kept.key != CONTROL);
    plan.changes.insert(
        0,
        Change {
            kind: ChangeKind::Sysctl,
            key: CONTROL.to_owned(),
            from: usual.control.clone(),
            to: chosen.control.clone(),
            place: Place::Namespace,
            why: format!(
                "measured on this path: one connection with {} carried {}, with {} {}",
                chosen.control,
                rate(chosen),
                usual.control,
                rate(usual)
            ),
            effect: "what this path loses no longer decides the rate of new connections; those that are open keep their control"
                .to_owned(),
            risk: "takes more than its share beside CUBIC where queues are short, and retransmits more".to_owned(),
            source: "linerate tune".to_owned(),
        },
    );
}
