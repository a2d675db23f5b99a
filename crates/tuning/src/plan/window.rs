//! Buffers of connections: how much has to be in flight, and how much memory the kernel counts for it.

use units::Bytes;

use super::draft::{Draft, Reasons};
use super::{Facts, bdp};
use crate::kernel::KernelVersion;

const RECEIVE: &str = "net.ipv4.tcp_rmem";
const SEND: &str = "net.ipv4.tcp_wmem";
/// Bytes of data in a segment of an Ethernet path with timestamps.
pub(crate) const SEGMENT: u64 = 1448;
/// What the kernel counts for such a segment when it sizes the send buffer (`tcp_sndbuf_expand`, net/ipv4/tcp_input.c): the packet's
/// memory rounded up to a power of two, and its descriptor.
pub(crate) const SEGMENT_MEMORY: u64 = 2304;
/// The largest window TCP can announce: 65535 x 2^14 (RFC 7323).
pub(crate) const LARGEST_WINDOW: u64 = 65_535 << 14;
/// The kernel keeps buffer sizes in an `int`, and the largest whole number of MiB in it is this.
pub(crate) const LARGEST_BUFFER: u64 = (i32::MAX as u64 >> 20) << 20;
/// What a connection may take at most of what all together may.
pub(crate) const SHARE_OF_ALL: u64 = 4;
/// The kernel's own size at the start of a receive buffer.
pub(crate) const USUAL_START: u64 = 131_072;

/// Which share of the receive buffer a kernel offers as window, as numerator and denominator.
///
/// Before 6.6 `tcp_adv_win_scale` says so. From then on each connection's share is measured; it starts at one half, which is
/// also about what packets of 1500 bytes come to (`TCP_DEFAULT_SCALING_RATIO`, include/net/tcp.h, 6.12 and 7.2).
pub fn window_share(kernel: KernelVersion, facts: &Facts) -> (u64, u64) {
    if kernel >= KernelVersion::new(6, 6) {
        return (1, 2);
    }
    let scale = facts.sysctl("net.ipv4.tcp_adv_win_scale").and_then(|text| text.parse::<i32>().ok());
    match scale.unwrap_or(1).clamp(-31, 31) {
        // buffer - buffer / 2^n
        scale @ 1.. => ((1 << scale) - 1, 1 << scale),
        // buffer / 2^-n
        scale => (1, 1 << -scale),
    }
}

/// `value * up / down`, rounded up to a whole MiB. Saturates.
pub(crate) fn scaled(value: u64, up: u64, down: u64) -> u64 {
    const MIB: u128 = 1 << 20;
    let bytes = (u128::from(value) * u128::from(up)).div_ceil(u128::from(down.max(1)));
    u64::try_from(bytes.div_ceil(MIB).saturating_mul(MIB)).unwrap_or(u64::MAX)
}

pub(super) fn plan(draft: &mut Draft<'_>) {
    let role = draft.target.role;
    if !role.sends() && !role.receives() {
        draft.note(
            "a router ends no connections: the buffers of TCP are left alone. The hosts at both ends need a plan of their own",
        );
        return;
    }
    switches(draft);
    if role.receives() {
        receive(draft);
    }
    if role.sends() {
        send(draft);
    }
    for key in ["net.core.rmem_max", "net.core.wmem_max"] {
        draft.keep(key, "bounds only programs that set SO_RCVBUF or SO_SNDBUF themselves, not TCP's own sizing");
    }
}

/// The largest buffer of one connection, and what bounds it.
fn most(draft: &Draft<'_>) -> (u64, &'static str) {
    let of_all = draft.tcp_memory.map_or(u64::MAX, |all| ((all.as_u64() / SHARE_OF_ALL) >> 20) << 20);
    if of_all < LARGEST_BUFFER {
        (of_all, "a quarter of what tcp_mem allows all TCP sockets together")
    } else {
        (LARGEST_BUFFER, "the largest size the kernel takes")
    }
}

fn receive(draft: &mut Draft<'_>) {
    let Some(there) = draft.facts.numbers(RECEIVE).filter(|there| there.len() == 3) else { return };
    let (up, down) = window_share(draft.kernel, draft.facts);
    let product = bdp(draft.target).as_u64();
    let window = product.saturating_mul(2).min(LARGEST_WINDOW);
    let need = scaled(window, down, up);
    let (most, bound) = most(draft);
    let to = need.min(most);
    let target = draft.target;
    let mut why = format!(
        "{} x {} = {} in flight, and as much again while a lost packet is repaired: a window of {}. Linux {} offers {up}/{down} of the \
         buffer as window: {}",
        target.bandwidth,
        target.rtt,
        Bytes::new(product),
        Bytes::new(window),
        draft.kernel,
        Bytes::new(need),
    );
    if product.saturating_mul(2) > LARGEST_WINDOW {
        why += &format!(
            ". TCP's largest window is {}, so that one connection can't fill this path",
            Bytes::new(LARGEST_WINDOW)
        );
    }
    capped(draft, RECEIVE, need, to.max(there[2]), bound, &mut why, (up, down));
    let start = if there[1] < USUAL_START {
        why += &format!(". The second value, {}, was lowered: the kernel starts with {USUAL_START}", there[1]);
        USUAL_START
    } else {
        there[1]
    };
    let enough = enough(need, there[2], bound);
    let risk = worst_case(draft, to.max(there[2]));
    let effect = "one connection can receive at the path's rate";
    let reasons = Reasons { why, effect, risk };
    draft.raise(RECEIVE, &[there[0], start, to.max(start)], reasons, &enough);
}

fn send(draft: &mut Draft<'_>) {
    let Some(there) = draft.facts.numbers(SEND).filter(|there| there.len() == 3) else { return };
    let product = bdp(draft.target).as_u64();
    let need = scaled(product.saturating_mul(2), SEGMENT_MEMORY, SEGMENT);
    let (most, bound) = most(draft);
    let to = need.min(most);
    let target = draft.target;
    let mut why = format!(
        "{} x {} = {} in flight; the kernel keeps twice the window in the buffer and counts {SEGMENT_MEMORY} bytes for a segment of \
         {SEGMENT}: {}",
        target.bandwidth,
        target.rtt,
        Bytes::new(product),
        Bytes::new(need),
    );
    capped(draft, SEND, need, to.max(there[2]), bound, &mut why, (SEGMENT, SEGMENT_MEMORY));
    let enough = enough(need, there[2], bound);
    let risk = worst_case(draft, to.max(there[2]));
    let effect = "one connection can send at the path's rate";
    draft.raise(SEND, &[there[0], there[1], to], Reasons { why, effect, risk }, &enough);
}

/// Why a size that is there stays.
fn enough(need: u64, there: u64, bound: &str) -> String {
    if there >= need {
        return format!("its third value covers the {} that this path needs", Bytes::new(need));
    }
    format!("this path needs {}, and {} is {bound} or more already", Bytes::new(need), Bytes::new(there))
}

/// Says what a connection reaches where its buffer is bounded.
fn capped(draft: &mut Draft<'_>, key: &str, need: u64, to: u64, bound: &str, why: &mut String, share: (u64, u64)) {
    if to >= need {
        return;
    }
    let window = Bytes::new((u128::from(to) * u128::from(share.0) / u128::from(share.1)) as u64 / 2);
    let reached = units::Rate::from_transfer(window, draft.target.rtt);
    let text = format!(
        "{} is bounded by {bound}: {}, enough for about {reached} per connection at {}",
        key.rsplit('.').next().unwrap_or(key),
        Bytes::new(to),
        draft.target.rtt
    );
    *why += &format!(". Bounded by {bound}: {}", Bytes::new(to));
    draft.note(format!("{text}; more memory, or several connections, would carry more"));
}

/// What all connections could hold at worst, against what the host allows.
fn worst_case(draft: &Draft<'_>, each: u64) -> String {
    let connections = draft.target.connections.unwrap_or(1);
    let all = Bytes::new(each.saturating_mul(connections));
    let plural = if connections == 1 { "connection" } else { "connections" };
    let bound = match draft.tcp_memory {
        Some(bound) if bound < all => format!("; tcp_mem stops all TCP sockets together at {bound}"),
        Some(bound) => format!(", below the {bound} that tcp_mem allows"),
        None => String::new(),
    };
    format!("at worst {connections} {plural} x {} = {all}{bound}", Bytes::new(each))
}

/// What every connection needs and somebody has turned off.
fn switches(draft: &mut Draft<'_>) {
    let rate = |window: u64| units::Rate::from_transfer(Bytes::new(window), draft.target.rtt);
    let (small, start) = (rate(65_535), rate(65_535 / 2));
    let rtt = draft.target.rtt;
    for (key, why, effect) in [
        (
            "net.ipv4.tcp_window_scaling",
            format!("without it a window is at most 65535 bytes: {small} at {rtt}"),
            "windows larger than 64 KiB",
        ),
        (
            "net.ipv4.tcp_sack",
            "without it each lost packet of a window costs a round trip".to_owned(),
            "losses are repaired within one round trip",
        ),
        (
            "net.ipv4.tcp_timestamps",
            "without it the RTT is measured once per window, and at high rates old packets can't be told from new ones"
                .to_owned(),
            "better RTT measurement, protection against old packets",
        ),
        (
            "net.ipv4.tcp_moderate_rcvbuf",
            format!("without it every receive buffer stays at tcp_rmem's second value: about {start} at {rtt}"),
            "receive buffers grow with the path",
        ),
    ] {
        if draft.facts.sysctl(key) == Some("0") {
            draft.set(key, "1", Reasons { why, effect, risk: "none known: it is the kernel's default".to_owned() });
        }
    }
}
