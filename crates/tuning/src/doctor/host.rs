//! Questions that need no run.

use super::{Answer, Evidence};
use crate::audit::persistence::{Fate, Persistent};

const CONTROL: &str = "net.ipv4.tcp_congestion_control";
/// More keys would be a list.
const SHOWN: usize = 6;

fn line(one: &Persistent) -> String {
    one.at_boot.as_ref().map_or_else(
        || "no file sets it".to_owned(),
        |line| format!("{}:{} sets {} ({})", line.file, line.line, line.value, line.by),
    )
}

/// Whether the congestion control that somebody chose is not there, or won't be after the next boot.
pub(super) fn back_to_cubic(evidence: &Evidence<'_>) -> Answer {
    let mut answer = Answer::new(
        "back-to-cubic",
        "Is the congestion control back to the default, or will the next boot take it back?",
    );
    let Some(live) = evidence.facts.plan.sysctl(CONTROL) else {
        return answer.not_known("net.ipv4.tcp_congestion_control can't be read here");
    };
    answer.shows(format!("new connections use {live}"));
    for finding in evidence.verify.iter().filter(|finding| finding.what.contains(CONTROL)) {
        answer.shows(format!("linerate set it to {}, and it is {}: {}", finding.wanted, finding.found, finding.why));
        answer.wrong("`linerate verify` says what did it; `linerate rollback` and a new apply put it in order");
    }
    let Some(one) = evidence.facts.persistence.iter().find(|one| one.key == CONTROL) else {
        answer.shows("no file sets it");
        return answer;
    };
    answer.shows(line(one));
    for loser in &one.losers {
        answer.shows(format!("{}:{} says {}, and a later line wins", loser.file, loser.line, loser.value));
    }
    let wanted = one.at_boot.as_ref().map_or("", |line| line.value.as_str());
    match one.fate {
        Fate::NotLive if is_missing(evidence, wanted) => {
            answer.wrong(format!(
                "this kernel has no {wanted} registered: the module is not loaded (modprobe tcp_{wanted}), or, for bbr3, `linerate cc load` and `linerate cc enable`"
            ));
        }
        Fate::NotLive => answer.wrong(format!(
            "`sysctl -w {CONTROL}={wanted}` sets what the file says now; where another program sets it back, change it there"
        )),
        Fate::TooLate => answer.wrong(format!(
            "the module comes after the sysctls at boot: `echo {} > /etc/modules-load.d/linerate.conf`",
            one.module.as_deref().unwrap_or("tcp_bbr")
        )),
        Fate::NotRead => answer.wrong("that file is not read at boot here: move the line into /etc/sysctl.d"),
        Fate::NotPersistent => {
            answer.wrong("it was set by hand and goes with the next boot: `linerate plan` and `linerate apply` keep it");
        }
        Fate::Kept | Fate::NoKey => {}
    }
    if !one.losers.is_empty() && one.losers.iter().any(|loser| loser.value != wanted) && !answer.wrong {
        answer.wrong("two files disagree, and the later one wins: take the other line out. `linerate lint --effective` shows the order");
    }
    answer
}

/// Whether the kernel is known not to have a control registered.
fn is_missing(evidence: &Evidence<'_>, name: &str) -> bool {
    evidence.facts.host.controls.get().is_some_and(|there| there.iter().all(|control| control.name != name))
}

/// Whether files set keys that are not there.
pub(super) fn key_not_found(evidence: &Evidence<'_>) -> Answer {
    let mut answer = Answer::new(
        "key-not-found",
        "Do files set keys that this kernel does not have (\"No such file or directory\")?",
    );
    let missing = |one: &&Persistent| matches!(one.fate, Fate::NoKey | Fate::TooLate) && one.at_boot.is_some();
    let list: Vec<&Persistent> = evidence.facts.persistence.iter().filter(missing).collect();
    for one in list.iter().take(SHOWN) {
        let why = match (&one.module, one.fate) {
            (Some(module), Fate::TooLate) => format!("it comes with the module {module}, which is loaded later"),
            (Some(module), _) => format!("it comes with the module {module}, which is not loaded"),
            (None, _) => "this kernel knows no such key".to_owned(),
        };
        answer.shows(format!("{}: {}; {why}", one.key, line(one)));
    }
    if list.len() > SHOWN {
        answer.shows(format!("and {} more", list.len() - SHOWN));
    }
    let mut modules: Vec<&str> = list.iter().filter_map(|one| one.module.as_deref()).collect();
    modules.sort_unstable();
    modules.dedup();
    if !modules.is_empty() {
        answer.wrong(format!(
            "load before sysctls are set: `printf '%s\\n' {} > /etc/modules-load.d/sysctl-keys.conf`",
            modules.join(" ")
        ));
    }
    if list.iter().any(|one| one.module.is_none()) {
        answer.wrong("`linerate lint FILE` says of each key when it came, when it went, or what it is spelled like");
    }
    if list.is_empty() {
        answer.shows("every key that a file sets at boot is there");
    }
    answer
}
