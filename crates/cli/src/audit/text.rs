//! An audit for people: the lines that matter most, then each finding with its evidence, cost and fix; notes as one line each.

use std::fmt::Write;

use facts::Fact;
use tuning::audit::{Facts, Finding, Report, Severity};

use crate::wrap;

/// The report in at most `width` columns. `all`: notes in full too.
pub fn render(facts: &Facts, report: &Report, all: bool, width: usize) -> String {
    let width = width.min(110);
    let mut out = String::new();
    let serious = report.findings.iter().filter(|finding| finding.severity > Severity::Note).count();
    for finding in report.findings.iter().take(serious.min(3)) {
        out += &wrap::hanging(&format!("{:8} ", finding.severity.name()), &finding.title, width);
    }
    let unread = unread(facts);
    if serious == 0 {
        let bounds = if unread.is_empty() { "" } else { ", as far as it could be read" };
        out += &format!("Nothing was found that limits this host{bounds}.\n");
    }
    if !unread.is_empty() {
        out += &wrap::hanging("Not read: ", &unread.join("; "), width);
    }
    out += &wrap::hanging("", &headline(facts, report), width);
    for (number, finding) in report.findings.iter().enumerate() {
        if finding.severity > Severity::Note || all {
            out.push('\n');
            out += &whole(number + 1, finding, width);
        }
    }
    let notes: Vec<&Finding> = report.findings.iter().skip(serious).collect();
    if !all && !notes.is_empty() {
        out += "\nTo know (--verbose says more):\n";
        for note in notes {
            out += &wrap::hanging("  - ", &format!("{} [{}]", note.title, note.id), width);
        }
    }
    out += &next_steps(facts, width);
    out
}

/// What an audit usually rests on and could not be read here, each with its place and reason. A connection table that no module keeps is none.
fn unread(facts: &Facts) -> Vec<String> {
    fn check<T>(out: &mut Vec<String>, what: &str, fact: &Fact<T>, empty: impl Fn(&T) -> bool) {
        let why = match &fact.value {
            Some(value) if empty(value) => "nothing in it could be read",
            Some(_) => return,
            // A saved audit that does not speak of it.
            None if fact.from.is_empty() => return,
            None => fact.missing.as_deref().unwrap_or("no reason is known"),
        };
        out.push(format!("{what} ({}: {why})", fact.from));
    }
    let host = &facts.host;
    let mut out = Vec::new();
    // Read here, not out of a document that does not speak of them.
    if facts.plan.sysctls.is_empty() && !host.controls.from.is_empty() {
        out.push("sysctls (/proc/sys)".to_owned());
    }
    check(&mut out, "congestion controls", &host.controls, Vec::is_empty);
    check(&mut out, "devices", &host.devices, Vec::is_empty);
    check(&mut out, "counters of the protocols", &host.counters, |counters| counters.0.is_empty());
    check(&mut out, "receive counters of the CPUs", &host.softnet_cpus, Vec::is_empty);
    check(&mut out, "sockets' memory", &host.sockstat, |_| false);
    check(&mut out, "listeners", &host.listeners, |_| false);
    check(&mut out, "connections", &host.connections, |_| false);
    out
}

/// Which host, and how much was found.
fn headline(facts: &Facts, report: &Report) -> String {
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let mut parts = vec![
        if facts.plan.hostname.is_empty() { "this host".to_owned() } else { facts.plan.hostname.clone() },
        format!("Linux {}", facts.plan.kernel),
    ];
    let system = &facts.host.system;
    parts.extend(system.distribution.get().cloned());
    for kind in [&system.virtualisation, &system.container] {
        parts.extend(kind.get().filter(|name| !name.is_empty()).cloned());
    }
    let number = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    format!(
        "{}: {}, {}, {}.",
        parts.join(", "),
        number(count(Severity::Error), "error", "errors"),
        number(count(Severity::Warning), "warning", "warnings"),
        number(count(Severity::Note), "note", "notes"),
    )
}

fn whole(number: usize, finding: &Finding, width: usize) -> String {
    let mut out = wrap::hanging(
        &format!("{number}. "),
        &format!("{}: {} [{}]", finding.severity.name(), finding.title, finding.id),
        width,
    );
    for (index, evidence) in finding.evidence.iter().enumerate() {
        let heading = if index == 0 { "shown by" } else { "" };
        let text = format!("{} ({}; {})", evidence.what, evidence.when, evidence.from);
        out += &wrap::hanging(&format!("   {heading:9}"), &text, width);
    }
    if !finding.cost.is_empty() {
        out += &wrap::hanging("   costs    ", &finding.cost, width);
    }
    if let Some(fix) = &finding.fix {
        let mut heading = "   fix      ";
        if !fix.command.is_empty() {
            // A command is never broken: it is to be copied.
            let _ = writeln!(out, "{heading}{}", fix.command);
            heading = "            ";
        }
        if !fix.note.is_empty() {
            out += &wrap::hanging(heading, &fix.note, width);
        }
    }
    if !finding.source.is_empty() {
        out += &wrap::hanging("   source   ", &finding.source, width);
    }
    out
}

fn next_steps(facts: &Facts, width: usize) -> String {
    let text = match &facts.observed {
        None => "What holds the connections of this host now: `linerate audit --observe 60s`. All facts: `--verbose`, `--json`.".to_owned(),
        Some(seen) => {
            let partial = if seen.partial { ", ended before its time (partial)" } else { "" };
            let failed = match (&seen.failure, seen.failed_looks) {
                (Some(why), count) if count > 0 => format!(" {count} looks failed: {why}."),
                _ => String::new(),
            };
            format!(
                "Observed for {:.1} of {:.1} s{partial}: {} looks, {} connections.{failed}",
                seen.seconds, seen.wanted_seconds, seen.looks, seen.connections
            )
        }
    };
    format!("\n{}", wrap::hanging("", &text, width))
}
