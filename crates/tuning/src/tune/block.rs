//! A plan in the pieces that are tried one after the other.

use serde::{Deserialize, Serialize};

use crate::plan::{Change, ChangeKind, Plan};

/// Settings that only make sense together, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// The congestion control and the queue discipline that paces for it.
    Control,
    /// Sizes of the buffers of connections, and what switches windows and repairs on.
    Buffers,
    /// Queues of packets on their way in.
    Queues,
    /// What a transfer between two hosts can't show: accept queues, ports, tables of a forwarder.
    Rest,
}

impl Block {
    /// As it is written in output and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Buffers => "buffers",
            Self::Queues => "queues",
            Self::Rest => "rest",
        }
    }

    /// Whether a transfer between two hosts exercises it.
    pub fn shows_in_a_transfer(self) -> bool {
        self != Self::Rest
    }

    /// Where a change belongs.
    pub fn of(change: &Change) -> Self {
        if change.kind == ChangeKind::Qdisc {
            return Self::Control;
        }
        match change.key.as_str() {
            "net.core.default_qdisc"
            | "net.ipv4.tcp_congestion_control"
            | "net.ipv4.tcp_slow_start_after_idle"
            | "net.ipv4.tcp_notsent_lowat" => Self::Control,
            "net.ipv4.tcp_rmem"
            | "net.ipv4.tcp_wmem"
            | "net.ipv4.tcp_mem"
            | "net.ipv4.tcp_window_scaling"
            | "net.ipv4.tcp_sack"
            | "net.ipv4.tcp_timestamps"
            | "net.ipv4.tcp_moderate_rcvbuf"
            | "net.ipv4.tcp_adv_win_scale"
            | "net.core.rmem_max"
            | "net.core.wmem_max" => Self::Buffers,
            "net.core.netdev_max_backlog" | "net.core.netdev_budget" | "net.core.netdev_budget_usecs" => Self::Queues,
            _ => Self::Rest,
        }
    }
}

/// The changes of one block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which.
    pub block: Block,
    /// In the plan's order.
    pub changes: Vec<Change>,
}

/// The plan's changes by block, in the order to try them; blocks without changes are left out.
pub fn parts(plan: &Plan) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for change in &plan.changes {
        let block = Block::of(change);
        match parts.iter_mut().find(|part| part.block == block) {
            Some(part) => part.changes.push(change.clone()),
            None => parts.push(Part { block, changes: vec![change.clone()] }),
        }
    }
    parts.sort_by_key(|part| part.block);
    parts
}
