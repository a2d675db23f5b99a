//! The congestion control, and what starts and stops a sender.

use units::{Duration, Rate};

use super::Role;
use super::draft::{Draft, Reasons};
use super::window::SEGMENT;

const CONTROL: &str = "net.ipv4.tcp_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
const AFTER_IDLE: &str = "net.ipv4.tcp_slow_start_after_idle";
const UNSENT: &str = "net.ipv4.tcp_notsent_lowat";

/// From this on a path is a wide-area one, on which BBR was measured to help.
pub(crate) const WIDE_MS: u64 = 10;
/// One packet in so many is lost even on a good wide-area path.
const GOOD_PATH: f64 = 1e-5;

pub(super) fn plan(draft: &mut Draft<'_>) {
    let role = draft.target.role;
    if role.serves() || role == Role::Bulk {
        control(draft);
    }
    if role.serves() {
        after_idle(draft);
        unsent(draft);
    }
}

/// CUBIC's mean rate where one packet in `1 / loss` is lost, by RFC 9438, 5.1: the larger of its own window and Reno's.
pub(crate) fn cubic_rate(rtt: Duration, loss: f64) -> Rate {
    let rtt = rtt.as_secs_f64();
    // (C (3 + b) / (4 (1 - b)))^(1/4) with C = 0.4 and b = 0.7.
    let cubic = 1.054 * rtt.powf(0.75) / loss.powf(0.75);
    let reno = (1.5 / loss).sqrt();
    let bits = cubic.max(reno) * SEGMENT as f64 * 8.0 / rtt;
    Rate::from_bps(if bits.is_finite() { bits as u64 } else { u64::MAX })
}

fn control(draft: &mut Draft<'_>) {
    let Some(there) = draft.facts.sysctl(CONTROL) else { return };
    if !matches!(there, "cubic" | "reno") {
        draft.keep(CONTROL, "somebody chose it");
        return;
    }
    let rtt = draft.target.rtt;
    if rtt.as_millis() < WIDE_MS {
        draft.keep(
            CONTROL,
            format!("{there} fills paths of {rtt} well; BBR is for wide-area paths, {WIDE_MS} ms and more"),
        );
        return;
    }
    let reached = cubic_rate(rtt, GOOD_PATH);
    if reached >= draft.target.bandwidth {
        draft.keep(CONTROL, format!("even where one packet in 100,000 is lost, CUBIC reaches {reached} at {rtt}"));
        return;
    }
    let names: Vec<&str> = draft.facts.sysctl(AVAILABLE).unwrap_or("").split_whitespace().collect();
    let registered = ["bbr3", "bbr"].into_iter().find(|name| names.contains(name));
    let loadable = || draft.facts.has("tcp_bbr").filter(|there| *there).map(|_| "bbr");
    let Some(to) = registered.or_else(loadable) else {
        draft.keep(CONTROL, "this kernel has no BBR that is registered or known to be loadable");
        return;
    };
    let loads = if registered.is_none() { "; writing the name loads the module" } else { "" };
    let why = format!(
        "one packet lost in 100,000, as on a good wide-area path, holds CUBIC at {reached} with an RTT of {rtt} (RFC 9438, 5.1); \
         {} are asked for. BBR goes by the measured rate{loads}",
        draft.target.bandwidth
    );
    let reasons = Reasons {
        why,
        effect: "random loss no longer decides the rate of new connections; those that are open keep their control",
        risk: "takes more than its share beside CUBIC where queues are short, and retransmits more; measure before and after"
            .to_owned(),
    };
    draft.set(CONTROL, to, reasons);
}

fn after_idle(draft: &mut Draft<'_>) {
    let Some(there) = draft.facts.sysctl(AFTER_IDLE) else { return };
    if there == "0" {
        return;
    }
    if draft.planned(CONTROL).is_some_and(|control| control.starts_with("bbr")) {
        draft.keep(AFTER_IDLE, "BBR decides by itself how to go on after a pause, and does not look at it");
        return;
    }
    let rtt = draft.target.rtt;
    if rtt.as_millis() < WIDE_MS {
        draft.keep(AFTER_IDLE, format!("a new start costs a few round trips of {rtt} only"));
        return;
    }
    // Ten segments, doubled each round trip.
    let segments = super::bdp(draft.target).as_u64() / SEGMENT;
    let rounds = (segments / 10).max(1).ilog2() + 1;
    let why = format!(
        "after a pause of a retransmission timeout a connection starts again from 10 segments: about {rounds} round trips, {}, to \
         the {segments} of this path",
        rtt * u64::from(rounds)
    );
    let effect = "connections that are reused after a pause go on at their rate";
    draft.set(AFTER_IDLE, "0", Reasons { why, effect, risk: String::new() });
}

/// Unsent data of many connections, where their send buffers together are more than the host allows.
fn unsent(draft: &mut Draft<'_>) {
    const TO: u64 = 131_072;
    let (Some(connections), Some(memory)) = (draft.target.connections, draft.tcp_memory) else { return };
    let Some(there) = draft.facts.number(UNSENT) else { return };
    let each = draft
        .planned("net.ipv4.tcp_wmem")
        .and_then(|wmem| wmem.split_whitespace().nth(2)?.parse().ok())
        .unwrap_or(0u64);
    let all = each.saturating_mul(connections);
    // Only where nobody has set it: a limit of any size was somebody's choice.
    if there < u64::from(u32::MAX) || all <= memory.as_u64() {
        return;
    }
    let why = format!(
        "{connections} connections x {} of send buffer are {}, and tcp_mem allows {memory}: what programs write ahead of the network \
         is what fills it",
        units::Bytes::new(each),
        units::Bytes::new(all)
    );
    let reasons = Reasons {
        why,
        effect: "a program hands over data about as fast as it is sent, and can still change its mind about the rest",
        risk: format!(
            "a program that wakes up less than once per {} sent can't keep a connection busy",
            units::Bytes::new(TO)
        ),
    };
    draft.set(UNSENT, &TO.to_string(), reasons);
}
