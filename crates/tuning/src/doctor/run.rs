//! Questions about a path: answered by runs over it, or by what connections show.

use super::{Answer, Cpu, Evidence, Run, Verdict, number, percent, rate};
use crate::audit::persistence::Fate;
use crate::plan::window_share;

/// From this share of a sender's time on, what held it is what limits it.
const HELD: f64 = 0.2;
/// A CPU with so much work has no room for more.
const FULL: f64 = 0.9;
/// The path's rate is reached with this share of it: headers take a twentieth.
const FILLED: f64 = 0.85;
/// CUBIC and Reno are held by losses from this share on, on paths of some milliseconds.
const LOSSY: f64 = 0.0005;

/// Several connections that carry less than so many times what one does carry no more.
const NO_MORE: f64 = 1.15;
/// … and more than so many times, clearly more.
const MORE: f64 = 1.3;

const NEEDS_A_RUN: &str = "name a host where `linerate serve` (or `iperf3 -s`) runs: `linerate doctor HOST` measures";

fn direction(run: &Run) -> &'static str {
    if run.sent { "sending" } else { "receiving" }
}

fn of<'a>(evidence: &Evidence<'a>, sent: bool) -> Option<&'a Run> {
    evidence.runs.iter().find(|run| run.sent == sent && run.streams == 1)
}

fn many<'a>(evidence: &Evidence<'a>) -> Option<&'a Run> {
    evidence.runs.iter().find(|run| run.streams > 1)
}

fn describe(run: &Run) -> String {
    let control = run.congestion_control.as_deref().map_or_else(String::new, |name| format!(" with {name}"));
    let rtt = run.rtt_ms.map_or_else(String::new, |rtt| format!(", RTT {rtt:.1} ms"));
    let again =
        run.retransmitted_share.map_or_else(String::new, |share| format!(", {:.2} % sent again", share * 100.0));
    let streams = if run.streams == 1 { String::new() } else { format!(" over {} connections", run.streams) };
    format!("{}{streams}: {}{control}{rtt}{again}", direction(run), rate(run.goodput_bps))
}

/// Whether what was set does not reach the connections that should profit.
pub(super) fn no_improvement(evidence: &Evidence<'_>) -> Answer {
    let mut answer = Answer::new("no-improvement", "Are there settings that connections don't use?");
    let control = evidence.facts.plan.sysctl("net.ipv4.tcp_congestion_control").unwrap_or_default();
    if let Some(connections) = evidence.facts.host.connections.get() {
        let others: Vec<String> = connections
            .controls
            .iter()
            .filter(|(name, _)| *name != control)
            .map(|(name, n)| format!("{n} on {name}"))
            .collect();
        let all: u64 = connections.controls.values().sum();
        if all == 0 {
            answer.shows(format!("no connection is open; a new one gets {control}"));
        } else if others.is_empty() {
            answer.shows(format!("all {all} open connections use {control}"));
        } else {
            answer.shows(format!("of {all} open connections {} (default now: {control})", others.join(", ")));
            answer.wrong(
                "connections and listening sockets keep the congestion control that they began with: restart the programs, or wait until they connect anew",
            );
        }
    }
    for run in evidence.runs.iter().filter(|run| run.sent && run.streams == 1) {
        answer.shows(describe(run));
        if let Some(ran) = run.congestion_control.as_deref().filter(|ran| *ran != control) {
            answer.wrong(format!(
                "a new connection to that host ran {ran}: a route (`ip route … congctl`) or a program chooses it"
            ));
        }
    }
    for finding in evidence.verify {
        answer.shows(format!("{} is {} instead of {}: {}", finding.what, finding.found, finding.wanted, finding.why));
    }
    if !evidence.verify.is_empty() {
        answer.wrong("not everything is as linerate applied it: `linerate verify`");
    }
    let stale: Vec<&str> = evidence
        .facts
        .persistence
        .iter()
        .filter(|one| one.fate == Fate::NotLive && one.at_boot.is_some() && one.key.starts_with("net."))
        .map(|one| one.key.as_str())
        .collect();
    if !stale.is_empty() {
        answer.shows(format!(
            "files set {} that {} another value now",
            stale.join(", "),
            if stale.len() == 1 { "has" } else { "have" }
        ));
        answer.wrong(
            "the files were written and not applied, or somebody set them back: `sysctl --system`, then look again",
        );
    }
    if answer.evidence.is_empty() {
        return answer.not_known(NEEDS_A_RUN);
    }
    answer
}

/// Whether one CPU has no room left while others have.
pub(super) fn one_core(evidence: &Evidence<'_>) -> Answer {
    let mut answer = Answer::new("one-core", "Is one CPU at 100 %?");
    if evidence.runs.is_empty() {
        return answer.not_known(NEEDS_A_RUN);
    }
    for run in evidence.runs {
        let Some(worst) = run.cpus.iter().max_by(|a, b| a.busy_share.total_cmp(&b.busy_share)) else { continue };
        answer.shows(format!(
            "{} {}: CPU {} is {} busy, {} in soft interrupts; all {} CPUs: {}",
            direction(run),
            rate(run.goodput_bps),
            worst.number,
            percent(worst.busy_share),
            percent(worst.softirq_share),
            run.cpus.len(),
            run.cpus.iter().map(|cpu| percent(cpu.busy_share)).collect::<Vec<_>>().join(", "),
        ));
        if worst.busy_share < FULL {
            continue;
        }
        answer.wrong(advice(worst, &run.cpus));
    }
    if answer.evidence.is_empty() {
        return answer.not_known("/proc/stat can't be read here");
    }
    answer
}

fn advice(worst: &Cpu, all: &[Cpu]) -> String {
    if all.iter().all(|cpu| cpu.busy_share >= FULL) {
        return "all CPUs are busy: this machine carries no more, whatever is set. Fewer copies (sendfile, larger segments, offloads) or more CPUs help"
            .to_owned();
    }
    if worst.softirq_share >= 0.5 {
        return format!(
            "CPU {} handles the packets: more queues of the network card, or RPS (`linerate audit` says which)",
            worst.number
        );
    }
    "one thread does the work: several connections in several threads, or a program that encrypts and copies less"
        .to_owned()
}

/// Whether a receiver's window holds its sender.
pub(super) fn receiver_buffers(evidence: &Evidence<'_>) -> Answer {
    let mut answer = Answer::new("receiver-buffers", "Are the receiver's buffers too small?");
    for run in evidence.runs.iter().filter(|run| run.streams == 1) {
        let Some(share) = run.receive_window_share else { continue };
        let who = if run.sent { "the other host's" } else { "this host's" };
        answer.shows(format!(
            "{} {}: {who} window held the sender {} of the time",
            direction(run),
            rate(run.goodput_bps),
            percent(share)
        ));
        if share < HELD {
            continue;
        }
        answer.wrong(if run.sent {
            "raise tcp_rmem's third value on the other host (`linerate plan` there), or make the program there read faster".to_owned()
        } else {
            "raise tcp_rmem's third value here: `linerate plan --role bulk`, or `linerate tune --direction reverse`".to_owned()
        });
    }
    let own = of(evidence, false).or_else(|| of(evidence, true)).and_then(|run| window(evidence, run));
    if let Some((words, short)) = own {
        answer.shows(words);
        if short && answer.verdict != Verdict::Yes && of(evidence, false).is_some() {
            answer.wrong("raise tcp_rmem's third value here: `linerate plan --role bulk`");
        }
    }
    match evidence.facts.host.connections.get().map(|connections| connections.receive_buffers_full) {
        Some(full) if full > 0 => {
            answer
                .shows(format!("{full} open connections have used their receive buffer up to tcp_rmem's third value"));
            answer.wrong("raise tcp_rmem's third value here: `linerate audit` has the figures");
        }
        Some(_) if evidence.runs.is_empty() => answer.shows("no open connection has used up its receive buffer"),
        _ => {}
    }
    let measured = evidence.runs.iter().any(|run| run.receive_window_share.is_some());
    if !measured && answer.verdict == Verdict::No {
        return answer.not_known(NEEDS_A_RUN);
    }
    answer
}

/// What this host's largest receive window carries on a path, and whether that is less than the path's rate.
fn window(evidence: &Evidence<'_>, run: &Run) -> Option<(String, bool)> {
    let largest = number(evidence.facts, "net.ipv4.tcp_rmem", 2)?;
    let rtt = run.rtt_ms.filter(|rtt| *rtt > 0.0)?;
    let kernel = evidence.facts.plan.kernel.parse().ok()?;
    let (up, down) = window_share(kernel, &evidence.facts.plan);
    let carries = (largest as f64 * up as f64 / down as f64 * 8.0 / (rtt / 1e3)) as u64;
    let wide = run.bottleneck_bps.is_some_and(|bottleneck| carries < bottleneck);
    Some((format!("tcp_rmem here allows {} for receiving with this RTT", rate(carries)), wide))
}

/// Whether this host's send buffer holds it.
pub(super) fn send_buffer(evidence: &Evidence<'_>) -> Answer {
    let mut answer = Answer::new("send-buffer", "Is this host's send buffer too small?");
    let Some((run, share)) = of(evidence, true).and_then(|run| Some((run, run.send_buffer_share?))) else {
        return answer.not_known(NEEDS_A_RUN);
    };
    answer.shows(format!("sending {}: the send buffer held it {} of the time", rate(run.goodput_bps), percent(share)));
    if let Some(largest) = number(evidence.facts, "net.ipv4.tcp_wmem", 2) {
        answer.shows(format!("tcp_wmem's third value is {}", units::Bytes::new(largest)));
    }
    if share >= HELD {
        answer.wrong("raise tcp_wmem's third value: `linerate plan --role bulk`, or `linerate tune --peer` measures whether it helps");
    }
    answer
}

/// Whether something else than this host's settings is the limit.
pub(super) fn elsewhere(evidence: &Evidence<'_>) -> Answer {
    let mut answer =
        Answer::new("elsewhere", "Is the limit elsewhere: the path, the plan that is paid for, the other host?");
    if evidence.runs.is_empty() {
        return answer.not_known(NEEDS_A_RUN);
    }
    for run in evidence.runs {
        answer.shows(describe(run));
        if let Some(bottleneck) = run.bottleneck_bps {
            let share = run.goodput_bps as f64 / bottleneck.max(1) as f64;
            answer.shows(format!(
                "{}: the bottleneck carries {}, and {} of it arrives",
                direction(run),
                rate(bottleneck),
                percent(share)
            ));
            // Losses that no queue explains leave room, whatever one sender reached; but where four carry no more, there is none.
            let kind = run.loss_kind.as_deref();
            let by_the_path = kind.is_none_or(|kind| matches!(kind, "none" | "queue-overflow" | "policed"));
            let no_more = of(evidence, run.sent).zip(many(evidence)).is_some_and(|(one, many)| {
                many.sent == run.sent && (many.goodput_bps as f64) < one.goodput_bps as f64 * NO_MORE
            });
            if share >= FILLED && (by_the_path || no_more) {
                // Nothing is wrong: there is nothing left to win.
                answer.verdict = Verdict::Yes;
                answer.advise(format!(
                    "the path is filled when {}: no setting of this host makes it wider",
                    direction(run)
                ));
            }
        }
        if let (Some(kind), Some(because)) = (&run.loss_kind, &run.because) {
            answer.shows(format!("losses when {}: {kind} ({because})", direction(run)));
            if kind == "policed" {
                answer.wrong("something on the way drops what is above a rate: ask the provider which rate is paid for, and shape to it");
            }
        }
        if let Some(share) = run.server_cpu_share.filter(|share| *share >= FULL) {
            answer.shows(format!("the server used {} of a CPU", percent(share)));
            answer.wrong(
                "the other host's CPU may be the limit: measure against another one, or with several connections",
            );
        }
        let loss_based = run.congestion_control.as_deref().is_some_and(|name| matches!(name, "cubic" | "reno"));
        let lossy = run.retransmitted_share.is_some_and(|share| share >= LOSSY);
        if loss_based && lossy && run.loss_kind.as_deref() == Some("random") && run.sent {
            answer.advise(
                "losses that are not a full queue's hold CUBIC: BBR goes by the measured rate (`linerate tune --peer` measures what it gives)",
            );
        }
    }
    if let Some(many) = many(evidence)
        && let Some(one) = of(evidence, many.sent)
        && many.goodput_bps as f64 > one.goodput_bps as f64 * MORE
    {
        answer.shows(format!(
            "{} connections carry {:.1} times what one does: the path has room, and what holds one connection is its losses or its ends",
            many.streams,
            many.goodput_bps as f64 / one.goodput_bps.max(1) as f64
        ));
    }
    if answer.verdict == Verdict::No && evidence.runs.iter().all(|run| run.bottleneck_bps.is_none()) {
        answer.shows("no queue built up: the runs did not reach the path's limit");
    }
    answer
}
