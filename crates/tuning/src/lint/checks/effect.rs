//! Settings that change nothing.

use std::collections::HashMap;

use crate::catalogue::Scope;
use crate::files::{Document, Format, Means, Span};
use crate::lint::Later;
use crate::lint::finding::{Edit, Fix};
use crate::lint::item::Item;
use crate::lint::rule::Severity;
use crate::lint::rules::effect::*;
use crate::lint::run::Run;

pub(super) fn check(run: &mut Run<'_>) {
    sysctl_conf(run);
    run.each_in_force(|run, index, item| {
        let Some(knob) = item.found.as_ref().map(|found| found.knob) else { return };
        let kernel = run.target.kernel;
        if !knob.exists_in(kernel) {
            return;
        }
        let is_container = run.target.is_container || item.setting.means == Means::Container;
        if is_container && knob.scope_in(kernel) != Scope::Namespace {
            let message = format!("`{}` belongs to the whole host: a container can't set it", item.key);
            run.say_about(&HOST_ONLY, index, item, item.setting.span, message).help("set it on the host");
            return;
        }
        if let Some(ignored) = knob.ignored.iter().find(|ignored| ignored.since.is_some_and(|since| since <= kernel)) {
            let fix = run.removal(item);
            let finding = run.say_about(
                &NO_LONGER_READ,
                index,
                item,
                item.setting.span,
                format!("the kernel does not look at `{}`: {}", item.key, ignored.when),
            );
            finding.fix = fix;
            return;
        }
        if item.key == "net.ipv4.tcp_congestion_control" && item.value.starts_with("bbr") {
            bbr(run, index, item, is_container);
        }
        if !knob.ignored.is_empty()
            && let Some(control) = control_of(run, item)
            && let Some(ignored) = knob.ignored_by(&control.0)
        {
            let fix = run.removal(item);
            let is_default = knob.default_in(kernel) == Some(item.normal_value().as_str());
            let anyway = if is_default { ", which is at its default anyway" } else { "" };
            let message = format!("{} does not look at `{}`{anyway}", control.0, item.key);
            let finding = run.say_about(&IGNORED_BY_CONTROL, index, item, item.setting.span, message);
            finding.related(control.1, control.2, "chosen here").help(format!("ignored: {}", ignored.when)).fix = fix;
            // Other connections may still have another control; for them the value counts.
            if !item.key.contains("pacing") {
                finding.severity(Severity::Note);
            }
            return;
        }
        // Values of single interfaces differ between distributions; saying one aloud is no mistake there.
        if !knob.is_pattern() && !run.is_told(index) && knob.default_in(kernel) == Some(item.normal_value().as_str()) {
            let fix = run.removal(item);
            let since = knob.default.iter().find(|d| d.value == item.normal_value()).and_then(|d| d.since);
            let since = since.map_or(String::new(), |since| format!(" since Linux {since}"));
            let finding =
                run.say_about(&IS_DEFAULT, index, item, item.setting.span, format!("is the kernel's default{since}"));
            finding.fix = fix;
        }
    });
}

fn bbr(run: &mut Run<'_>, index: usize, item: &Item<'_>, is_container: bool) {
    if is_container {
        run.say(
            &BBR_IN_CONTAINER,
            index,
            item,
            format!("a container does not load tcp_{}: where the host hasn't, it does not start (ENOENT)", item.value),
        )
        .help("load the module on the host: echo tcp_bbr > /etc/modules-load.d/bbr.conf");
    } else if item.value == "bbr" && !run.is_told(index) {
        run.say(&BBR_IS_V1, index, item, "`bbr` is BBRv1: no mainline kernel up to 7.2 has BBRv3")
            .help("open connections keep their congestion control; `linerate cc` tells which BBR a kernel has");
    }
}

/// The congestion control that the item's group chooses, and where.
fn control_of(run: &Run<'_>, item: &Item<'_>) -> Option<(String, usize, Span)> {
    let index = *run.with_key(item.group, "net.ipv4.tcp_congestion_control").last()?;
    let (document, setting) = run.place(index)?;
    let name = setting.value.split_whitespace().next().unwrap_or("").trim_matches(['"', '\'']);
    Some((name.to_owned(), document, setting.span))
}

/// Whether a later line of the same key takes an earlier one's place.
fn competes(document: &Document, item: &Item<'_>) -> bool {
    match &item.setting.means {
        Means::File => document.format != Format::Yaml,
        Means::Written { .. } => true,
        _ => false,
    }
}

/// More repetitions than this in one file are one finding: a block was pasted twice.
const MOST_REPEATED: usize = 5;

/// Lines whose place another takes. Comes before what judges values: those of a loser don't matter.
pub(super) fn duplicates(run: &mut Run<'_>) {
    let order = file_order(run.documents);
    let mut repeated: Vec<Vec<(usize, Span, usize)>> = vec![Vec::new(); run.documents.len()];
    let items = std::mem::take(&mut run.items);
    run.each_group(&items, |run, group| {
        let mut live: Vec<usize> =
            group.iter().copied().filter(|i| competes(&run.documents[items[*i].document], &items[*i])).collect();
        live.sort_by_key(|i| (order[items[*i].document], *i));
        let same_target = |a: &Item<'_>, b: &Item<'_>| match (&a.setting.means, &b.setting.means) {
            (Means::Written { target: a, .. }, Means::Written { target: b, .. }) => a == b,
            (Means::File, Means::File) => true,
            _ => false,
        };
        for (place, index) in live.iter().enumerate() {
            let item = &items[*index];
            let Some(winner) =
                live[place + 1..].iter().rev().map(|i| &items[*i]).find(|other| same_target(item, other))
            else {
                continue;
            };
            let source = &run.documents[winner.document].source;
            let line = source.position(winner.setting.span.start).line;
            let is_same_file = winner.document == item.document;
            let at = if is_same_file {
                format!("line {line}")
            } else {
                format!("{}:{line}", run.documents[winner.document].name)
            };
            if item.normal_value() == winner.normal_value() {
                if is_same_file {
                    run.mark_as_lost(*index);
                    repeated[item.document].push((*index, item.setting.span, line));
                }
                continue;
            }
            if item.setting.only_raises
                || winner.setting.only_raises
                || item.setting.is_dynamic
                || winner.setting.is_dynamic
            {
                continue;
            }
            let fix = run.removal(item);
            let message = format!("{at} sets it to {} and wins", shown(&winner.normal_value()));
            run.mark_as_lost(*index);
            let finding = run.say_about(&OVERRIDDEN, *index, item, item.setting.span, message);
            finding.related(winner.document, winner.setting.span, "this one is in force");
            finding.help(if is_same_file {
                "systemd-sysctl applies only the last, procps both in turn"
            } else {
                "files are read in the order of their base names, over all directories"
            });
            if is_same_file {
                finding.fix = fix;
            }
        }
    });
    for (document, list) in repeated.into_iter().enumerate() {
        let (Some(first), Some(last)) = (list.first(), list.last()) else { continue };
        if list.len() > MOST_REPEATED {
            let edits: Vec<Edit> =
                list.iter().filter_map(|(i, ..)| run.removal(&items[*i])).flat_map(|fix| fix.edits).collect();
            let message = format!(
                "{} settings of this file stand in it twice; the later ones begin at line {}",
                list.len(),
                list.iter().map(|r| r.2).min().unwrap_or(0)
            );
            let finding = run.say_at(&REPEATED, document, first.1, message);
            finding.related(document, last.1, "up to here");
            finding.fix = Some(Fix { title: "take the earlier ones out".to_owned(), edits });
            continue;
        }
        for (index, span, line) in list {
            let fix = run.removal(&items[index]);
            run.say_about(&REPEATED, index, &items[index], span, format!("line {line} says the same")).fix = fix;
        }
    }
    run.items = items;
}

/// Lines that another program overrules at boot, behind the files: tuned's profile, or tuned with the files themselves.
pub(super) fn later(run: &mut Run<'_>) {
    let later: HashMap<&str, &Later> = run.surroundings.later.iter().map(|later| (later.key.as_str(), later)).collect();
    if later.is_empty() {
        return;
    }
    run.each_in_force(|run, index, item| {
        let Some(found) = &item.found else { return };
        let Some(last) = later.get(found.key.path()) else { return };
        let document = &run.documents[item.document];
        let place = document.position(item.setting.span).line;
        let is_itself = document.name == last.file && place == last.line;
        if is_itself || item.setting.means != Means::File || item.normal_value() == last.value {
            return;
        }
        let message = format!(
            "at boot {} sets it to {} behind this and wins: {}:{}",
            last.by,
            shown(&last.value),
            last.file,
            last.line
        );
        run.mark_as_lost(index);
        run.say_about(&OVERRIDDEN, index, item, item.setting.span, message)
            .help("`linerate lint --effective` shows who sets what, in which order");
    });
}

fn shown(value: &str) -> String {
    let short: String = value.chars().take(40).collect();
    if short.len() < value.len() { format!("`{short}…`") } else { format!("`{short}`") }
}

/// For each document its place in the order of reading: by base name, and where two are equal as given.
fn file_order(documents: &[Document]) -> Vec<usize> {
    let base = |document: &Document| document.name.rsplit('/').next().unwrap_or("").to_owned();
    let mut places: Vec<usize> = (0..documents.len()).collect();
    // ufw has its turn behind all others.
    places.sort_by_key(|i| (documents[*i].format == Format::Ufw, base(&documents[*i]), *i));
    let mut order = vec![0; documents.len()];
    for (place, index) in places.into_iter().enumerate() {
        order[index] = place;
    }
    order
}

/// /etc/sysctl.conf, where nobody reads it.
fn sysctl_conf(run: &mut Run<'_>) {
    let distribution = run.target.distribution.clone();
    let skips = distribution.as_ref().is_some_and(|d| d.skips_sysctl_conf());
    for index in 0..run.documents.len() {
        let document = &run.documents[index];
        let is_it = document.format == Format::SysctlD
            && document.name.rsplit('/').next() == Some("sysctl.conf")
            && !document.name.ends_with("sysctl.d/sysctl.conf");
        let is_link = run.documents.iter().any(|d| d.name.ends_with("/99-sysctl.conf"));
        let names_it =
            |means: &Means| matches!(means, Means::Written { target, .. } if target.ends_with("/etc/sysctl.conf"));
        let Some(setting) = document.settings.iter().find(|s| is_it || names_it(&s.means)) else { continue };
        if skips && !is_link {
            let name = distribution.as_ref().map(ToString::to_string).unwrap_or_default();
            run.say_at(
                &SYSCTL_CONF,
                index,
                setting.span,
                format!("{name} does not read /etc/sysctl.conf at boot: nothing of this survives one"),
            )
            .help("move the settings to /etc/sysctl.d/90-local.conf");
        } else if distribution.is_none() && !is_it {
            run.say_at(
                &SYSCTL_CONF,
                index,
                setting.span,
                "Debian 13 and Ubuntu 26.04 do not read /etc/sysctl.conf at boot",
            )
            .severity(Severity::Note)
            .help("write a file of your own in /etc/sysctl.d");
        }
    }
}
