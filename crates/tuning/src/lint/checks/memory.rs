//! Buffers and their limits, with the arithmetic.

use crate::lint::amount::{PAGE, bytes};
use crate::lint::item::Item;
use crate::lint::rule::Severity;
use crate::lint::rules::danger::{MEMORY_CAP, MEMORY_EXHAUSTION};
use crate::lint::rules::habit::{START_LOWERED, START_RAISED};
use crate::lint::rules::values::UNIT;
use crate::lint::run::Run;

pub(super) fn check(run: &mut Run<'_>) {
    run.each_in_force(|run, index, item| match item.key.as_str() {
        "net.ipv4.tcp_mem" | "net.ipv4.udp_mem" => pages(run, index, item),
        "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem" => triple(run, index, item),
        "net.core.rmem_default" | "net.core.wmem_default" => every_socket(run, index, item),
        _ => {}
    });
}

/// More than any host has: bytes were meant.
const BEYOND_EVERY_HOST: i128 = 1 << 40;

/// The kernel's own third value of tcp_mem: 3/32 of memory (`net/ipv4/tcp.c`, tcp_init_mem); udp_mem has twice that.
fn own_share(protocol: &str, memory: i128) -> i128 {
    memory * if protocol == "UDP" { 6 } else { 3 } / 32
}

fn pages(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let [low, _, high] = item.numbers[..] else { return };
    let protocol = if item.key.contains("udp") { "UDP" } else { "TCP" };
    let cap = high * PAGE;
    let memory = run.target.memory.map(|memory| i128::from(memory.as_u64()));
    let fix = run.removal(item);
    let advice = "take the line out: the kernel sizes it from memory at boot";
    if cap >= BEYOND_EVERY_HOST || memory.is_some_and(|memory| cap > 2 * memory) {
        let host = memory.map_or(String::new(), |memory| format!(" on a host of {}", bytes(memory)));
        let message = format!(
            "{} in pages: the third value allows {protocol} {}{host}; bytes were meant, it seems",
            item.key,
            bytes(cap)
        );
        let finding = run.say(&UNIT, index, item, message);
        finding.help(advice).fix = fix;
    } else if low < 8192 && high / low.max(1) >= 64 {
        let message = format!(
            "{} in pages: pressure begins at {}, and the third value is {}; this looks like the bytes of tcp_rmem",
            item.key,
            bytes(low * PAGE),
            bytes(cap)
        );
        let finding = run.say(&UNIT, index, item, message);
        finding.help(advice).fix = fix;
    } else if let Some(memory) = memory {
        let own = own_share(protocol, memory);
        if cap < own * 9 / 10 {
            let message = format!(
                "caps all {protocol} sockets of the host together at {}; by itself the kernel gives {} of its {}",
                bytes(cap),
                bytes(own),
                bytes(memory)
            );
            let finding = run.say(&MEMORY_CAP, index, item, message);
            finding.help(advice).fix = fix;
        } else if cap > memory / 2 {
            let message = format!("lets {protocol} take {} of the host's {}", bytes(cap), bytes(memory));
            run.say(&MEMORY_EXHAUSTION, index, item, message).help(advice);
        }
    } else if cap < 64 << 30 {
        // From here on a host gets less than by itself: share = 3/32 of memory.
        let from = cap * 32 / if protocol == "UDP" { 6 } else { 3 };
        let message = format!(
            "caps all {protocol} sockets of the host together at {}: less than the kernel's own value from {} of memory on",
            bytes(cap),
            bytes(from)
        );
        let finding = run.say(&MEMORY_CAP, index, item, message);
        finding.severity(if cap < 4 << 30 { Severity::Error } else { Severity::Warning });
        finding.help(advice).fix = fix;
    } else {
        run.say(&MEMORY_EXHAUSTION, index, item, format!("lets {protocol} take {}", bytes(cap))).help(advice);
    }
}

/// A buffer of a single connection that is larger than nearly every path needs: 10 Gbit/s x 200 ms, twice over.
const LARGEST_SENSIBLE: i128 = 512 << 20;

/// The second value from which many connections are a lot of memory.
const LARGE_START: i128 = 1 << 20;

fn triple(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let [_, start, most] = item.numbers[..] else { return };
    if most > i128::from(i32::MAX) {
        return;
    }
    let text = run.text(item.document);
    let receives = item.key.ends_with("rmem");
    let usual = if receives { 131_072 } else { 16_384 };
    let span = item.word_span(text, 1);
    if start >= LARGE_START {
        let message =
            format!("every connection starts with {}: 10,000 of them are {}", bytes(start), bytes(start * 10_000));
        run.say_about(&MEMORY_EXHAUSTION, index, item, span, message)
            .help(format!("leave the second value at {usual}: buffers grow by themselves up to the third"))
            .replace(format!("write {usual}"), span, usual.to_string());
    } else if receives && start < usual && most >= usual {
        let message = format!("lowers the start of every receive buffer from {usual} to {start}");
        run.say_about(&START_LOWERED, index, item, span, message)
            .help("87380 was the default until Linux 4.19; keep 131072")
            .replace("write 131072", span, usual.to_string());
    } else if start > usual {
        let times = start / usual;
        let message = format!(
            "every connection starts with {} instead of {}: {times} times the memory of an idle one",
            bytes(start),
            bytes(usual)
        );
        run.say_about(&START_RAISED, index, item, span, message)
            .help(format!("leave the second value at {usual}: buffers grow by themselves up to the third"))
            .replace(format!("write {usual}"), span, usual.to_string());
    }
    if most > LARGEST_SENSIBLE {
        let span = item.word_span(text, 2);
        let message =
            format!("one connection may take {}: with a slow peer, 32 of them take {}", bytes(most), bytes(most * 32));
        run.say_about(&MEMORY_EXHAUSTION, index, item, span, message)
            .help("size it as twice bandwidth x RTT: 250 MB for 10 Gbit/s at 100 ms");
    }
}

fn every_socket(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    if let Some(size) = item.number().filter(|size| *size >= 16 << 20 && *size <= i128::from(i32::MAX)) {
        let message = format!(
            "each UDP, raw and Unix socket without a setting of its own may hold {}; TCP doesn't look at it",
            bytes(size)
        );
        run.say(&MEMORY_EXHAUSTION, index, item, message)
            .help("raise net.core.rmem_max and let the program that needs it ask");
    }
}
