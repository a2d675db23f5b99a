//! From a scenario to the runs it stands for.

use path::{FlowId, LinkConfig, LossModel, QueueLimit, RateModel};
use units::{Bytes, Duration, Probability, Rate};

use crate::error::{Reason, ScenarioError};
use crate::queue::{highest_rate, nominal_rate};
use crate::read::loss_model;
use crate::{Cell, FlowKind, QueueSpec, Scenario};

/// One flow of a run: what [`crate::FlowSpec`] says with its count and stagger worked out.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpandedFlow {
    /// Its number in the path, from 1.
    pub id: FlowId,
    /// Which of [`Scenario::flows`] it comes from.
    pub spec: usize,
    /// Its name in tables; `cubic-1`, `cubic-2` where there are several alike.
    pub label: String,
    /// What it sends.
    pub kind: FlowKind,
    /// Its own congestion control; `None`: the profile's.
    pub congestion_control: Option<String>,
    /// Its own round-trip time; `None`: the cell's.
    pub rtt: Option<Duration>,
    /// When it starts, after the experiment's start.
    pub start: Duration,
    /// How long it sends; `None`: to the end.
    pub duration: Option<Duration>,
}

impl Scenario {
    /// Every flow of a run, in the order of the file.
    pub fn expanded_flows(&self) -> Vec<ExpandedFlow> {
        let mut flows = Vec::new();
        for (spec, flow) in self.flows.iter().enumerate() {
            for number in 0..flow.count {
                let label = if flow.count == 1 { flow.label.clone() } else { format!("{}-{}", flow.label, number + 1) };
                flows.push(ExpandedFlow {
                    id: FlowId(u16::try_from(flows.len() + 1).unwrap_or(u16::MAX)),
                    spec,
                    label,
                    kind: flow.kind,
                    congestion_control: flow.congestion_control.clone(),
                    rtt: flow.rtt,
                    start: flow.start + flow.stagger * u64::from(number),
                    duration: flow.duration,
                });
            }
        }
        flows
    }

    /// Every run, in the order to make them: all combinations once, then all of them again for the next repeat, with the
    /// profile changing fastest. What drifts on the machine then meets all variants alike. Repeat k of every combination has
    /// the seed `seed + k`, so that variants meet the same randomness.
    ///
    /// # Errors
    /// What [`Scenario::check`] refuses.
    pub fn cells(&self) -> Result<Vec<Cell>, ScenarioError> {
        self.check()?;
        let mut cells = Vec::new();
        for repeat in 0..self.run.repeats {
            for rtt in &self.path.rtts {
                for loss in &self.path.losses {
                    for queue in &self.path.queues {
                        let (forward, back) = self.links(*rtt, *loss, *queue)?;
                        cells.extend(self.profiles.iter().map(|profile| Cell {
                            profile: profile.clone(),
                            rtt: *rtt,
                            loss: *loss,
                            queue: *queue,
                            queue_limit: forward.queue.limit,
                            repeat,
                            seed: self.run.seed + u64::from(repeat),
                            forward: forward.clone(),
                            back: back.clone(),
                        }));
                    }
                }
            }
        }
        Ok(cells)
    }

    /// As [`Scenario::cells`], for a machine that has `memory` for what is on the path.
    ///
    /// # Errors
    /// In addition, a combination whose bandwidth-delay product and queue are larger than `memory`.
    pub fn cells_within(&self, memory: Bytes) -> Result<Vec<Cell>, ScenarioError> {
        let cells = self.cells()?;
        for cell in &cells {
            let needed = self.memory_needed(cell);
            if needed > memory {
                let sentence = format!(
                    "an rtt of {} with a queue of {} holds up to {needed} on the path, more than the {memory} there are",
                    cell.rtt, cell.queue
                );
                return Err(ScenarioError::one(&self.name, Reason::Impossible(sentence)));
            }
        }
        Ok(cells)
    }

    /// What the path of `cell` holds when it is full: of each direction that has a rate, the bandwidth-delay product at its
    /// highest rate and its longest flow's round-trip time, and the queue. The ends' own buffers come on top.
    pub fn memory_needed(&self, cell: &Cell) -> Bytes {
        let rtt = self.flows.iter().filter_map(|flow| flow.rtt).chain([cell.rtt]).max().unwrap_or(cell.rtt);
        let hold = |link: &LinkConfig| {
            let Some(rate) = highest_rate(&link.rate) else { return Bytes::ZERO };
            let queue = match link.queue.limit {
                QueueLimit::Bytes(bytes) => bytes,
                QueueLimit::Packets(packets) => {
                    (Bytes::new(u64::from(self.path.mtu)) + link.overhead).saturating_mul(u64::from(packets))
                }
            };
            rate.bdp(rtt + link.jitter) + queue
        };
        hold(&cell.forward) + hold(&cell.back)
    }

    /// Both directions of one combination, complete.
    fn links(
        &self,
        rtt: Duration,
        loss: Probability,
        queue: QueueSpec,
    ) -> Result<(LinkConfig, LinkConfig), ScenarioError> {
        let (mut forward, mut back) = (self.path.forward.clone(), self.path.back.clone());
        (forward.delay, back.delay) = one_way(rtt);
        for flow in self.expanded_flows() {
            if let Some(own) = flow.rtt {
                let (there, here) = one_way(own);
                forward.flow_delay.push((flow.id, there));
                back.flow_delay.push((flow.id, here));
            }
        }
        if !is_pattern(&forward.loss) {
            forward.loss = loss_model(loss, self.path.mean_burst_milli);
        }
        forward.queue.limit = self.limit(queue, &forward.rate, rtt)?;
        back.queue.limit = self.limit(self.path.back_queue, &back.rate, rtt)?;
        Ok((forward, back))
    }

    fn limit(&self, queue: QueueSpec, rate: &RateModel, rtt: Duration) -> Result<QueueLimit, ScenarioError> {
        let rate: Option<Rate> = nominal_rate(rate);
        queue.limit(rate, rtt).ok_or_else(|| {
            ScenarioError::one(&self.name, Reason::Impossible(format!("a queue of {queue} needs a rate")))
        })
    }
}

/// Whether the loss is fixed packet by packet, and so not by the swept average.
pub(crate) fn is_pattern(loss: &LossModel) -> bool {
    matches!(loss, LossModel::Periodic { .. } | LossModel::List(_))
}

/// The delays of both directions, `(forward, back)`: half each, an odd nanosecond forward.
pub(crate) fn one_way(rtt: Duration) -> (Duration, Duration) {
    let back = rtt / 2;
    (rtt - back, back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_ways_add_up_to_the_round_trip_and_the_odd_nanosecond_goes_forward() {
        let nanos = Duration::from_nanos;
        assert_eq!(one_way(nanos(7)), (nanos(4), nanos(3)));
        assert_eq!(one_way(nanos(8)), (nanos(4), nanos(4)));
        assert_eq!(one_way(nanos(0)), (nanos(0), nanos(0)));
    }
}
