//! What the next boot changes.

use super::super::finding::{Finding, Severity};
use super::super::look::{Look, plural};
use super::super::persistence::{Fate, Line, Persistent};
use crate::Catalogue;
use crate::catalogue::Importance;

/// More would be a list, which `--verbose` and JSON have.
const SHOWN: usize = 5;

pub(super) fn judge(look: &mut Look<'_>) {
    not_live(look);
    too_late(look);
    not_read(look);
    not_persistent(look);
}

/// Keys of the network that decide performance: what else files set is not this program's matter.
fn of<'a>(look: &Look<'a>, fate: Fate) -> Vec<&'a Persistent> {
    let matters = |one: &&Persistent| {
        one.fate == fate
            && Catalogue::builtin().lookup(&one.key).is_some_and(|found| found.knob.importance == Importance::Main)
    };
    look.facts.persistence.iter().filter(matters).collect()
}

fn place(line: &Line) -> String {
    format!("{}:{} ({})", line.file, line.line, line.by)
}

fn show(mut finding: Finding, list: &[&Persistent], text: impl Fn(&Persistent) -> String) -> Finding {
    for one in list.iter().take(SHOWN) {
        let from = one.at_boot.as_ref().map_or_else(|| Look::sysctl(&one.key), place);
        finding = finding.shows(text(one), "now", from);
    }
    if list.len() > SHOWN {
        finding = finding.shows(format!("and {} more", list.len() - SHOWN), "now", "`linerate lint --effective`");
    }
    finding
}

fn live(one: &Persistent) -> &str {
    one.live.as_deref().unwrap_or("")
}

fn not_live(look: &mut Look<'_>) {
    let list = of(look, Fate::NotLive);
    if list.is_empty() {
        return;
    }
    let title = match list.as_slice() {
        [one] => format!("{} is set by a file, and has another value", one.key),
        _ => format!("{} settings of files are not what is live", list.len()),
    };
    let finding = Finding::new("not-live", Severity::Warning, 470, title);
    let finding = show(finding, &list, |one| {
        let (value, file) = one.at_boot.as_ref().map_or(("", ""), |line| (line.value.as_str(), line.file.as_str()));
        format!("{} is {}, and {file} says {value}", one.key, live(one))
    })
    .costs("either the kernel refused the value, something changed it since, or the file was written and never applied: the next boot changes this host");
    let settings: Vec<(&str, String)> = list
        .iter()
        .take(SHOWN)
        .filter_map(|one| Some((one.key.as_str(), one.at_boot.as_ref()?.value.clone())))
        .collect();
    look.find(
        finding
            .set(&settings, "where the file is right; where the live value is, put it into a file that comes later. `linerate lint --effective KEY` says who wins")
            .source("sysctl.d(5)"),
    );
}

fn too_late(look: &mut Look<'_>) {
    let list = of(look, Fate::TooLate);
    let Some(first) = list.first() else { return };
    let module = first.module.clone().unwrap_or_default();
    let finding = Finding::new(
        "set-before-its-module",
        Severity::Warning,
        460,
        format!(
            "{} at boot before the module that {} with",
            plural(list.len() as u64, "key is set", "keys are set"),
            if list.len() == 1 { "it comes" } else { "they come" }
        ),
    );
    let finding = show(finding, &list, |one| format!("{}: module {}", one.key, one.module.as_deref().unwrap_or("")));
    look.find(
        finding
            .costs("the key is not there yet when systemd-sysctl runs, and the line is passed over: after a reboot the kernel's default holds")
            .fix(
                format!("echo {module} > /etc/modules-load.d/{module}.conf"),
                "modules-load.d is read before sysctl.d. A kernel with the module built in needs nothing",
            )
            .source("systemd-modules-load.service(8); sysctl.d(5)"),
    );
}

fn not_read(look: &mut Look<'_>) {
    let list = of(look, Fate::NotRead);
    let Some(first) = list.first() else { return };
    let file = first.at_boot.as_ref().map_or("/etc/sysctl.conf", |line| line.file.as_str()).to_owned();
    let finding = Finding::new(
        "file-not-read-at-boot",
        Severity::Warning,
        465,
        format!(
            "{} only in {file}, which is not read at boot here",
            plural(list.len() as u64, "setting stands", "settings stand")
        ),
    );
    let finding = show(finding, &list, |one| {
        format!("{}: {} says {}", one.key, file, one.at_boot.as_ref().map_or("", |line| line.value.as_str()))
    });
    look.find(
        finding
            .costs("systemd-sysctl reads the directories only; `sysctl --system` and `sysctl -p` read this file, so that it seems to work until the next boot")
            .fix(format!("mv {file} /etc/sysctl.d/99-sysctl.conf"), "after `linerate lint` has judged it")
            .source("sysctl.d(5); systemd issue 8360"),
    );
}

fn not_persistent(look: &mut Look<'_>) {
    let list = of(look, Fate::NotPersistent);
    if list.is_empty() {
        return;
    }
    let title = match list.as_slice() {
        [one] => format!("{} was set by hand: it is gone after a reboot", one.key),
        _ => format!("{} settings were made by hand: they are gone after a reboot", list.len()),
    };
    let finding = Finding::new("not-persistent", Severity::Note, 320, title);
    let finding = show(finding, &list, |one| {
        format!(
            "{} is {}, the kernel's default {}, and no file sets it",
            one.key,
            live(one),
            one.default.as_deref().unwrap_or("")
        )
    });
    let lines: Vec<String> = list.iter().map(|one| format!("'{} = {}'", one.key, live(one))).collect();
    look.find(
        finding
            .costs("after the next boot this host is another one. Programs (Docker, Kubernetes, a VPN) set some of them each time they start")
            .fix(format!("printf '%s\\n' {} > /etc/sysctl.d/99-zz-kept.conf", lines.join(" ")), "only what should stay")
            .source("sysctl.d(5)"),
    );
}
