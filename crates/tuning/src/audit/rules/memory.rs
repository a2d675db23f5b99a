//! Memory of all TCP sockets together, and sockets that nobody holds.

use units::Bytes;

use super::super::finding::{Finding, Severity};
use super::super::look::{Look, percent, plural, share};
use crate::plan::memory::kernels_own;

const KEY: &str = "net.ipv4.tcp_mem";
const ORPHANS: &str = "net.ipv4.tcp_max_orphans";

pub(super) fn judge(look: &mut Look<'_>) {
    pressure(look);
    lowered(look);
    orphans(look);
    pruned(look);
}

/// `tcp_mem` in bytes, and how it should be.
fn marks(look: &Look<'_>) -> Option<([u64; 3], [u64; 3])> {
    let page = look.facts.plan.page_bytes.max(1);
    let there: [u64; 3] = look.numbers(KEY)?.try_into().ok()?;
    let own = kernels_own(look.facts.plan.memory_bytes, page);
    Some((there, own))
}

fn text(pages: [u64; 3]) -> String {
    format!("{} {} {}", pages[0], pages[1], pages[2])
}

fn pressure(look: &mut Look<'_>) {
    let pressures = look.count("TcpExt.TCPMemoryPressures");
    let page = look.facts.plan.page_bytes.max(1);
    let used = look.facts.host.sockstat.get().map(|sockets| sockets.tcp_memory_pages);
    let Some((there, own)) = marks(look) else { return };
    let now = used.filter(|used| *used >= there[1]);
    if pressures == 0 && now.is_none() {
        return;
    }
    let severity = if now.is_some() { Severity::Error } else { Severity::Warning };
    let title = match now {
        Some(_) => "TCP is out of memory: buffers shrink and connections slow down now".to_owned(),
        None => format!("TCP ran out of memory {}", plural(pressures, "time", "times")),
    };
    let mut finding = Finding::new("tcp-memory-pressure", severity, 970, title)
        .shows(
            format!(
                "{} in use; pressure from {} on, at most {}",
                Bytes::new(used.unwrap_or(0).saturating_mul(page)),
                Bytes::new(there[1].saturating_mul(page)),
                Bytes::new(there[2].saturating_mul(page))
            ),
            "now",
            format!("{}, sysctl {KEY}", look.facts.host.sockstat.from),
        )
        .costs("windows stop growing, receive buffers shrink, and beyond the limit packets are dropped and connections fail");
    if pressures > 0 {
        finding = finding.shows(format!("TCPMemoryPressures {pressures}"), look.since_boot(), look.counters_from());
    }
    let to = [own[0].max(there[0]), own[1].max(there[1]), own[2].max(there[2])];
    let finding = if to != there && look.facts.plan.memory_bytes > 0 {
        finding.set(&[(KEY, text(to))], "in pages; the kernel's own share of this host's memory. Smaller buffers (tcp_rmem, tcp_wmem), or tcp_notsent_lowat, need less of it")
    } else {
        finding.fix("", "the limit is the kernel's own share of memory or more: fewer or smaller buffers (tcp_rmem, tcp_wmem, tcp_notsent_lowat), or more memory")
    };
    look.find(finding.source("net/core/sock.c (__sk_mem_raise_allocated); net/ipv4/tcp.c (tcp_enter_memory_pressure)"));
}

/// Somebody made it smaller: pasted lists often take pages for bytes.
fn lowered(look: &mut Look<'_>) {
    let Some((there, own)) = marks(look) else { return };
    if look.facts.plan.memory_bytes == 0 || there[2] >= own[2] / 4 * 3 {
        return;
    }
    let page = look.facts.plan.page_bytes.max(1);
    look.find(
        Finding::new(
            "tcp-memory-lowered",
            Severity::Warning,
            620,
            format!("All TCP sockets together may hold {} of memory only", Bytes::new(there[2].saturating_mul(page))),
        )
        .shows(
            format!(
                "{KEY} is {} pages of {page} bytes: {} of memory; the kernel's own limit would be {}",
                there[2],
                percent(share(there[2].saturating_mul(page), look.facts.plan.memory_bytes)),
                Bytes::new(own[2].saturating_mul(page))
            ),
            "now",
            Look::sysctl(KEY),
        )
        .costs("with many busy connections TCP runs out of memory while the host has some")
        .set(&[(KEY, text(own))], "the values are pages, not bytes: lists that take them for bytes are common")
        .source("net/ipv4/tcp.c (tcp_init_mem); Documentation/networking/ip-sysctl.rst (tcp_mem)"),
    );
}

fn orphans(look: &mut Look<'_>) {
    let killed = look.count("TcpExt.TCPAbortOnMemory");
    let Some(most) = look.number(ORPHANS).filter(|most| *most > 0) else { return };
    let now = look.facts.host.sockstat.get().map_or(0, |sockets| sockets.tcp_orphans);
    // The kernel begins at half for connections that cause trouble (tcp_check_oom, shift 1).
    if killed == 0 && now.saturating_mul(2) < most {
        return;
    }
    let finding = Finding::new(
        "orphans",
        Severity::Warning,
        600,
        if killed > 0 {
            format!(
                "{} aborted for want of memory, or because too many had no program any more",
                plural(killed, "connection was", "connections were")
            )
        } else {
            format!("{now} connections have no program any more, {most} may")
        },
    )
    .shows(format!("TCPAbortOnMemory {killed}"), look.since_boot(), look.counters_from())
    .shows(
        format!("{now} orphans, {most} may be"),
        "now",
        format!("{}, sysctl {ORPHANS}", look.facts.host.sockstat.from),
    )
    .costs("such connections end with a reset, and the other end loses what was not yet acknowledged");
    let finding = if now.saturating_mul(2) >= most {
        finding
            .set(&[(ORPHANS, most.saturating_mul(2).to_string())], "each may hold up to 64 KiB that can't be swapped")
    } else {
        finding.fix("", "see tcp-memory-pressure")
    };
    look.find(finding.source("net/ipv4/tcp_timer.c (tcp_out_of_resources); net/ipv4/tcp.c (tcp_check_oom)"));
}

fn pruned(look: &mut Look<'_>) {
    let names =
        ["TcpExt.RcvPruned", "TcpExt.OfoPruned", "TcpExt.TCPRcvQDrop", "TcpExt.PruneCalled", "TcpExt.TCPRcvCollapsed"];
    let [pruned, out_of_order, dropped, called, collapsed] = names.map(|name| look.count(name));
    let lost = pruned.saturating_add(dropped).saturating_add(out_of_order);
    if lost == 0 && called == 0 {
        return;
    }
    // Pruning without loss only costs CPU.
    let severity = if lost > 0 { Severity::Warning } else { Severity::Note };
    let title = if lost > 0 {
        format!(
            "{} thrown away again: receive buffers were full",
            plural(lost, "received packet was", "received packets were")
        )
    } else {
        format!("Receive buffers were full and packed together {}", plural(called, "time", "times"))
    };
    let finding = Finding::new("receive-buffers-pruned", severity, 720, title)
        .shows(
            format!("RcvPruned {pruned}, OfoPruned {out_of_order}, TCPRcvQDrop {dropped}, PruneCalled {called}, TCPRcvCollapsed {collapsed}"),
            look.since_boot(),
            look.counters_from(),
        )
        .costs("thrown-away packets have to be sent again; packing costs CPU time");
    let there = look.numbers("net.ipv4.tcp_rmem").filter(|there| there.len() == 3);
    let finding = match there {
        Some(there) => finding.fix(
            "linerate audit --observe 60s",
            format!(
                "programs read too slowly, or buffers (tcp_rmem {} {} {}) are small for what arrives at once: the observation tells which",
                there[0], there[1], there[2]
            ),
        ),
        None => finding,
    };
    look.find(finding.source("net/ipv4/tcp_input.c (tcp_prune_queue, tcp_try_rmem_schedule)"));
}
