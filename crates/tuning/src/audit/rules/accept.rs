//! Listeners: queues of connections that wait for their program.

use facts::Listener;

use super::super::finding::{Finding, Severity};
use super::super::look::{Look, percent, plural, share};
use crate::plan::accept::USUAL_LISTEN;

const LISTEN: &str = "net.core.somaxconn";
/// nginx's own (`NGX_LISTEN_BACKLOG`).
const NGINX_OWN: u64 = 511;
/// One in a thousand is more than a moment of overload since boot.
const OFTEN: f64 = 1e-3;

pub(super) fn judge(look: &mut Look<'_>) {
    full_now(look);
    overflows(look);
    half_open(look);
    unused(look);
}

fn listeners<'a>(look: &Look<'a>) -> &'a [Listener] {
    look.facts.host.listeners.get().map_or(&[], Vec::as_slice)
}

/// `nginx (port 443)`, `port 443`.
fn name(listener: &Listener) -> String {
    match listener.owners.first() {
        Some(owner) => format!("{} ({}, port {})", owner.name, owner.pid, listener.port),
        None => format!("port {}", listener.port),
    }
}

/// What a program may ask for at present.
fn bound(look: &Look<'_>) -> u64 {
    look.number(LISTEN).unwrap_or(USUAL_LISTEN)
}

/// How to give a listener a longer queue.
fn fix(look: &Look<'_>, finding: Finding, listeners: &[&Listener]) -> Finding {
    let bound = bound(look);
    let to = bound.max(USUAL_LISTEN);
    let mut settings = Vec::new();
    let at_the_bound =
        listeners.iter().any(|listener| listener.backlog.is_some_and(|backlog| u64::from(backlog) >= bound));
    let to = if at_the_bound && bound < 65_535 { to.saturating_mul(2).min(65_535) } else { to };
    if to > bound {
        settings.push((LISTEN, to.to_string()));
    }
    let mut notes = Vec::new();
    for listener in listeners {
        notes.push(match &listener.configured {
            Some(line) if line.program == "nginx" => format!(
                "{}:{}: `{}` becomes `{}`, then `nginx -s reload`",
                line.file,
                line.line,
                line.text,
                nginx_line(&line.text, to)
            ),
            Some(line) => format!(
                "{}:{}: `{}` gets `backlog {to}`, then reload {}",
                line.file, line.line, line.text, line.program
            ),
            None => format!(
                "{} has to ask for {to} in listen(2), by its own configuration, and to listen anew",
                name(listener)
            ),
        });
    }
    notes.dedup();
    let note = notes.join("; ");
    if settings.is_empty() { finding.fix("", note) } else { finding.set(&settings, note) }
}

/// nginx's line with another backlog.
fn nginx_line(text: &str, to: u64) -> String {
    let words: Vec<&str> = text.trim_end_matches(';').split(' ').filter(|word| !word.starts_with("backlog=")).collect();
    format!("{} backlog={to};", words.join(" "))
}

fn full_now(look: &mut Look<'_>) {
    /// Queues shorter than this fill by a handful of clients, which says little.
    const LEAST: u32 = 16;
    for listener in listeners(look) {
        let Some(backlog) = listener.backlog else { continue };
        // The kernel lets in one more than the backlog (sk_acceptq_is_full, include/net/sock.h).
        let full = listener.queued > backlog;
        let filling = backlog >= LEAST && u64::from(listener.queued) * 5 >= u64::from(backlog) * 4;
        if !(full || filling) {
            continue;
        }
        let severity = if full { Severity::Error } else { Severity::Warning };
        let title = if full {
            format!("The queue of {} is full: new connections are dropped now", name(listener))
        } else {
            format!("The queue of {} is filling", name(listener))
        };
        let finding = Finding::new("listener-queue-full", severity, 990, title)
            .shows(
                format!("{} connections wait to be accepted, {backlog} may", listener.queued),
                "now",
                look.facts.host.listeners.from.clone(),
            )
            .costs("a dropped client tries again after a second, then three, then seven: seconds for its user. A longer queue bridges \
                    bursts; where the program is always too slow, it only waits longer");
        let finding = fix(look, finding, &[listener]);
        look.find(
            finding
                .source("listen(2); net/ipv4/tcp_input.c (tcp_conn_request); include/net/sock.h (sk_acceptq_is_full)"),
        );
    }
}

fn overflows(look: &mut Look<'_>) {
    let Some(overflows) = look.counter("TcpExt.ListenOverflows").filter(|count| *count > 0) else { return };
    let (accepted, drops) = (look.count("Tcp.PassiveOpens"), look.count("TcpExt.ListenDrops"));
    let part = share(overflows, accepted.saturating_add(overflows));
    let severity = if part >= OFTEN { Severity::Error } else { Severity::Warning };
    let mut finding = Finding::new(
        "listen-overflows",
        severity,
        950,
        format!("{} found the queue of their program full", plural(overflows, "connection", "connections")),
    )
    .shows(
        format!(
            "ListenOverflows {overflows}, ListenDrops {drops}, accepted {accepted}: {} of those that came",
            percent(part)
        ),
        look.since_boot(),
        look.counters_from(),
    );
    // Which one it was, the kernel doesn't tell: the shortest queues of servers come first.
    let mut candidates: Vec<&Listener> =
        listeners(look).iter().filter(|listener| !listener.address.is_loopback()).collect();
    if candidates.is_empty() {
        candidates = listeners(look).iter().collect();
    }
    candidates.sort_by_key(|listener| (core::cmp::Reverse(listener.queued), listener.backlog));
    candidates.truncate(3);
    for listener in &candidates {
        let backlog = listener.backlog.map_or_else(|| "an unknown number".to_owned(), |backlog| backlog.to_string());
        finding = finding.shows(
            format!("{}: {} wait, {backlog} may", name(listener), listener.queued),
            "now",
            look.facts.host.listeners.from.clone(),
        );
    }
    finding =
        finding.costs("a dropped client tries again after a second, then three, then seven: seconds for its user");
    finding = fix(look, finding, &candidates[..candidates.len().min(2)]);
    look.find(finding.source("net/ipv4/tcp_ipv4.c (tcp_v4_syn_recv_sock: LINUX_MIB_LISTENOVERFLOWS)"));
}

fn half_open(look: &mut Look<'_>) {
    let (dropped, cookies) = (look.count("TcpExt.TCPReqQFullDrop"), look.count("TcpExt.TCPReqQFullDoCookies"));
    let cookies_off = look.facts.plan.sysctl("net.ipv4.tcp_syncookies") == Some("0");
    if dropped > 0 {
        let finding = Finding::new(
            "syn-drops",
            Severity::Warning,
            700,
            format!(
                "{} dropped because too many were half open",
                plural(dropped, "connection request was", "connection requests were")
            ),
        )
        .shows(format!("TCPReqQFullDrop {dropped}"), look.since_boot(), look.counters_from())
        .costs("a dropped client tries again after a second");
        let finding = if cookies_off {
            let there = look.number("net.ipv4.tcp_max_syn_backlog").unwrap_or(1_024);
            finding.set(
                &[
                    ("net.ipv4.tcp_syncookies", "1".to_owned()),
                    ("net.ipv4.tcp_max_syn_backlog", there.saturating_mul(2).max(4_096).to_string()),
                ],
                "without SYN cookies only three quarters of tcp_max_syn_backlog are used; with them a full queue is answered all the same",
            )
        } else {
            finding.fix(
                "",
                "half-open connections are bounded by the listener's backlog: raise that, as for listen-overflows",
            )
        };
        look.find(finding.source("net/ipv4/tcp_input.c (tcp_conn_request); include/net/inet_connection_sock.h (inet_csk_reqsk_queue_is_full)"));
    } else if cookies > 0 {
        look.find(
            Finding::new(
                "syn-cookies-sent",
                Severity::Note,
                200,
                format!("{} answered with a SYN cookie: too many were half open", plural(cookies, "connection request was", "connection requests were")),
            )
            .shows(format!("TCPReqQFullDoCookies {cookies}"), look.since_boot(), look.counters_from())
            .costs("such a connection works, without window scaling and SACK where the client sends no timestamps. A flood looks the same")
            .fix("", "where it was no flood, a larger backlog of the listener makes room for more half-open connections")
            .source("net/ipv4/syncookies.c; net/ipv4/tcp_input.c (tcp_conn_request)"),
        );
    }
}

/// `somaxconn` was raised, and nobody asks for more.
fn unused(look: &mut Look<'_>) {
    let Some(bound) = look.number(LISTEN).filter(|bound| *bound > USUAL_LISTEN) else { return };
    let short: Vec<&Listener> = listeners(look)
        .iter()
        .filter(|listener| {
            let asked = listener.configured.as_ref().map(|line| line.backlog.unwrap_or(NGINX_OWN));
            asked.is_some() && listener.backlog.is_some_and(|backlog| u64::from(backlog) < USUAL_LISTEN)
        })
        .collect();
    let Some(first) = short.first() else { return };
    let mut finding = Finding::new(
        "somaxconn-unused",
        Severity::Warning,
        400,
        format!("{LISTEN} was raised to {bound}, and {} asks for {} only", name(first), first.backlog.unwrap_or(0)),
    );
    for listener in short.iter().take(3) {
        finding = finding.shows(
            format!("{}: backlog {}", name(listener), listener.backlog.unwrap_or(0)),
            "now",
            look.facts.host.listeners.from.clone(),
        );
    }
    finding = finding.costs("the raised value changes nothing for it");
    let lines: Vec<&Listener> = short.into_iter().take(3).collect();
    let finding = fix(look, finding, &lines);
    look.find(finding.source("listen(2): the smaller of backlog and somaxconn holds"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginxs_line_keeps_its_other_words() {
        assert_eq!(nginx_line("listen 443 ssl backlog=511 reuseport;", 8192), "listen 443 ssl reuseport backlog=8192;");
        assert_eq!(nginx_line("listen 80;", 4096), "listen 80 backlog=4096;");
    }
}
