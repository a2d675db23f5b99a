//! Tables of a host that forwards: connections that are tracked, and neighbours.

use units::Bytes;

use super::Role;
use super::draft::{Draft, Reasons};

const MAX: &str = "net.netfilter.nf_conntrack_max";
const COUNT: &str = "net.netfilter.nf_conntrack_count";
const BUCKETS: &str = "net.netfilter.nf_conntrack_buckets";
const NEIGHBOURS: [&str; 3] =
    ["net.ipv4.neigh.default.gc_thresh1", "net.ipv4.neigh.default.gc_thresh2", "net.ipv4.neigh.default.gc_thresh3"];

/// Memory of one tracked connection, in bytes: `struct nf_conn` (256) and its extensions.
pub(crate) const ENTRY: u64 = 320;
/// Memory of one bucket: a pointer.
pub(crate) const BUCKET: u64 = 8;
/// What tracking may take of memory at most: one sixteenth.
pub(crate) const SHARE: u64 = 16;
/// The largest power of two in the kernel's `int`.
const LARGEST: u64 = 1 << 30;

pub(super) fn plan(draft: &mut Draft<'_>) {
    let role = draft.target.role;
    if role.forwards() || role == Role::Proxy {
        tracking(draft);
        neighbours(draft);
    }
    if role == Role::Router && draft.facts.sysctl("net.ipv4.ip_forward") == Some("0") {
        draft.note("net.ipv4.ip_forward is 0: this host does not forward. That is for its administrator to decide, together with a firewall");
    }
}

fn tracking(draft: &mut Draft<'_>) {
    let Some(most) = draft.facts.number(MAX) else {
        draft.note("connections are not tracked here (nf_conntrack is not loaded): nothing to size");
        return;
    };
    let count = draft.facts.number(COUNT).unwrap_or(0);
    let asked = draft.target.connections.unwrap_or(0);
    let used = asked.max(count);
    // Twice the use, and a power of two, so that a little more use asks for nothing new.
    let wanted = used.saturating_mul(2).checked_next_power_of_two().unwrap_or(u64::MAX);
    let bound = (draft.facts.memory_bytes / SHARE / (ENTRY + BUCKET)).min(LARGEST);
    let need = if used.saturating_mul(5) > most.saturating_mul(3) { wanted.min(bound) } else { most };
    let why = format!(
        "{used} connections {} against room for {most}; twice that, rounded up, is {wanted}",
        if asked >= count { "are asked for" } else { "are tracked now" }
    );
    let memory = Bytes::new(need.saturating_mul(ENTRY + BUCKET));
    let reasons = Reasons {
        why,
        effect: "new connections are not dropped (\"nf_conntrack: table full\")",
        risk: format!(
            "full, the table takes {memory} ({ENTRY} bytes for each connection, {BUCKET} for its bucket), which can't be swapped"
        ),
    };
    draft.raise(MAX, &[need], reasons, "more than five thirds of what is used or asked for");
    if need < wanted && need > most {
        draft.note(format!("{MAX} is bounded by a sixteenth of memory, and by what the kernel takes: {need}"));
    }
    let Some(buckets) = draft.facts.number(BUCKETS) else { return };
    let most = draft.planned(MAX).and_then(|text| text.parse().ok()).unwrap_or(most);
    if buckets >= most / 2 {
        draft.keep(
            BUCKETS,
            format!(
                "lists of {} places at most on average: two places for each connection",
                (most * 2).div_ceil(buckets.max(1))
            ),
        );
        return;
    }
    let why = format!(
        "each of {most} connections takes two places in {buckets} lists: {} in each, and every packet searches one",
        (most * 2).div_ceil(buckets.max(1))
    );
    // The kernel rounds up to whole pages of pointers, and shows that.
    let need = most.next_multiple_of(draft.facts.page_bytes.max(BUCKET) / BUCKET);
    let reasons = Reasons {
        why,
        effect: "a packet finds its connection in a list of two",
        risk: format!("{} at once, and the table is locked while it is built", Bytes::new(need * BUCKET)),
    };
    draft.raise(BUCKETS, &[need], reasons, "");
}

fn neighbours(draft: &mut Draft<'_>) {
    let Some(count) = draft.facts.neighbours else { return };
    let Some(most) = draft.facts.number(NEIGHBOURS[2]) else { return };
    if count.saturating_mul(2) <= most {
        draft.keep(NEIGHBOURS[2], format!("{count} neighbours, and room for {most}"));
        return;
    }
    let need = count.min(1 << 28).saturating_mul(4).next_power_of_two().max(1_024);
    let why = format!(
        "{count} neighbours now, and room for {most}: beyond it packets are lost (\"neighbour table overflow\")"
    );
    for (key, size) in NEIGHBOURS.into_iter().zip([need / 4, need / 2, need]) {
        let reasons = Reasons {
            why: why.clone(),
            effect: "every neighbour has its entry",
            risk: format!("a scan of the segment fills up to {}", Bytes::new(need * 512)),
        };
        draft.raise(key, &[size], reasons, "large enough");
    }
}
