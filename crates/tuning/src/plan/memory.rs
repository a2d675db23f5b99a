//! `tcp_mem`: what all TCP sockets may hold, in pages.
//!
//! The kernel sizes it from memory at boot (`tcp_init_mem`, net/ipv4/tcp.c): a sixteenth of the free memory is the middle value, three
//! quarters of that the first, twice the first the third. That is left alone, unless somebody made it smaller.

use units::Bytes;

use super::draft::{Draft, Reasons};

const KEY: &str = "net.ipv4.tcp_mem";

/// What the kernel would have chosen, in pages: from all memory, a little more than from the free memory it looks at.
pub(crate) fn kernels_own(memory_bytes: u64, page_bytes: u64) -> [u64; 3] {
    let limit = (memory_bytes / page_bytes.max(1) / 16).max(128);
    let low = limit / 4 * 3;
    [low, limit, low * 2]
}

pub(super) fn plan(draft: &mut Draft<'_>) {
    let facts = draft.facts;
    let page = facts.page_bytes.max(1);
    let own = kernels_own(facts.memory_bytes, page);
    let bytes = |pages: u64| Bytes::new(pages.saturating_mul(page));
    let there = facts.numbers(KEY).filter(|there| there.len() == 3);
    draft.tcp_memory = Some(bytes(there.as_ref().map_or(own[2], |there| there[2])));
    let Some(there) = there else { return };
    // The kernel looks at free memory at boot, not at all memory: that and a rounding are no reason to change anything.
    let lowered = there[2] < own[2] / 4 * 3;
    if !lowered {
        let share = there[2].saturating_mul(page).saturating_mul(100) / facts.memory_bytes.max(1);
        draft.keep(
            KEY,
            format!(
                "pages: at most {} for all TCP sockets, {share} % of memory; the kernel's own size is about {}",
                bytes(there[2]),
                bytes(own[2])
            ),
        );
        return;
    }
    let memory = Bytes::new(facts.memory_bytes);
    let why = format!(
        "it is in pages of {page} bytes: {} pages are {} for all TCP sockets of a host with {memory}. The kernel itself takes \
         3/64, 1/16 and 3/32 of memory: {} for the third",
        there[2],
        bytes(there[2]),
        bytes(own[2]),
    );
    draft.tcp_memory = Some(bytes(own[2].max(there[2])));
    let effect = "connections are no longer squeezed and their packets dropped while memory is free";
    draft.raise(KEY, &own, Reasons { why, effect, risk: format!("TCP may then hold {} of memory", bytes(own[2])) }, "");
}
