//! The questions of tuning guides' troubleshooting chapters, answered from evidence.
//!
//! [`answer`] is a pure function: what the host shows, what `verify` found and what short runs gave in, one [`Answer`] for each question
//! out. What the evidence does not say is "not known", with what would say it.

mod host;
mod run;

use serde::{Deserialize, Serialize};
use units::Rate;

use crate::audit::Facts;
use crate::transaction::Finding;

/// What a question comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is so.
    Yes,
    /// It isn't.
    No,
    /// The evidence does not say.
    NotKnown,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Its name, the same in every version: `back-to-cubic`.
    pub id: String,
    /// As people ask it.
    pub question: String,
    /// The answer.
    pub verdict: Verdict,
    /// Whether something is wrong that can be mended: a path that is filled to the brim is an answer, and no fault.
    pub wrong: bool,
    /// The numbers it rests on.
    pub evidence: Vec<String>,
    /// What to do; with [`Verdict::NotKnown`], how to find out.
    pub advice: Vec<String>,
}

/// What one CPU did during a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Its number.
    pub number: u32,
    /// The share of its time with work, from 0 to 1.
    pub busy_share: f64,
    /// The share in soft interrupts.
    pub softirq_share: f64,
}

/// One short run over the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Whether this host sent.
    pub sent: bool,
    /// Connections at the same time.
    pub streams: u32,
    /// Application bits per second that arrived.
    pub goodput_bps: u64,
    /// What the sending sockets ran.
    pub congestion_control: Option<String>,
    /// Payload sent again, of all sent.
    pub retransmitted_share: Option<f64>,
    /// Share of the senders' busy time in which the receiver's window held them; `None`: the sender's sockets did not tell.
    pub receive_window_share: Option<f64>,
    /// … in which their send buffer held them.
    pub send_buffer_share: Option<f64>,
    /// RTT without load, or the least that was seen.
    pub rtt_ms: Option<f64>,
    /// 95th percentile of the RTT while it ran.
    pub rtt_loaded_ms: Option<f64>,
    /// Bottleneck bandwidth, where a queue showed it.
    pub bottleneck_bps: Option<u64>,
    /// Kind of loss as the estimate of crate `measure` names it: `none`, `random`, `policed`, …
    pub loss_kind: Option<String>,
    /// What tells so.
    pub because: Option<String>,
    /// CPUs of this host meanwhile.
    pub cpus: Vec<Cpu>,
    /// Processor seconds per second of the server's process; `None`: it did not tell.
    pub server_cpu_share: Option<f64>,
}

/// Everything the answers rest on.
pub struct Evidence<'a> {
    /// What the host shows.
    pub facts: &'a Facts,
    /// What `linerate verify` finds.
    pub verify: &'a [Finding],
    /// Whether a transaction of linerate's is in force.
    pub applied: bool,
    /// Runs over the path; empty where none was made.
    pub runs: &'a [Run],
}

/// Answers all questions, always in this order.
pub fn answer(evidence: &Evidence<'_>) -> Vec<Answer> {
    vec![
        run::no_improvement(evidence),
        host::back_to_cubic(evidence),
        host::key_not_found(evidence),
        run::one_core(evidence),
        run::receiver_buffers(evidence),
        run::send_buffer(evidence),
        run::elsewhere(evidence),
    ]
}

/// The number of a key that has three, by place.
fn number(facts: &Facts, key: &str, place: usize) -> Option<u64> {
    facts.plan.numbers(key)?.get(place).copied()
}

fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

impl Answer {
    fn new(id: &str, question: &str) -> Self {
        Self {
            id: id.to_owned(),
            question: question.to_owned(),
            verdict: Verdict::No,
            wrong: false,
            evidence: Vec::new(),
            advice: Vec::new(),
        }
    }

    fn shows(&mut self, what: impl Into<String>) {
        self.evidence.push(what.into());
    }

    fn wrong(&mut self, advice: impl Into<String>) {
        (self.verdict, self.wrong) = (Verdict::Yes, true);
        self.advise(advice);
    }

    /// Once, however many runs ask for it.
    fn advise(&mut self, advice: impl Into<String>) {
        let advice = advice.into();
        if !self.advice.contains(&advice) {
            self.advice.push(advice);
        }
    }

    fn not_known(mut self, how: impl Into<String>) -> Self {
        self.verdict = Verdict::NotKnown;
        self.advice.push(how.into());
        self
    }
}
