//! Which settings survive a reboot, and which file wins.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::catalogue::Importance;
use crate::effective::timeline::Verdict;
use crate::effective::{Applier, Step, Timeline, Write};
use crate::{Catalogue, KernelVersion, Key};

/// A line that sets a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The value.
    pub value: String,
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Who applies it: `systemd-sysctl`, `ufw`, `tuned`, …
    pub by: String,
}

/// What becomes of a key at the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Live and at boot alike.
    Kept,
    /// Live it is neither the kernel's default nor what any file says: gone at the next boot.
    NotPersistent,
    /// A file says otherwise than what is live.
    NotLive,
    /// A file sets it at boot, but the key comes with a module that nothing loads before.
    TooLate,
    /// Only `/etc/sysctl.conf` sets it, which is not read at boot here.
    NotRead,
    /// The key is not there now.
    NoKey,
}

/// A key, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persistent {
    /// The key, with dots.
    pub key: String,
    /// What is live; `None`: the key is not there, or can't be read.
    pub live: Option<String>,
    /// The line that wins at boot.
    pub at_boot: Option<Line>,
    /// Lines that lose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losers: Vec<Line>,
    /// The kernel's default, where it is the same on every machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The module that the key comes with, where it matters here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// What becomes of it.
    pub fate: Fate,
}

/// What is known about the files.
pub struct Files<'a> {
    /// What happens at boot.
    pub boot: &'a Timeline,
    /// What `sysctl --system` does: it reads `/etc/sysctl.conf` in any case.
    pub system: &'a Timeline,
    /// Modules that are loaded before systemd-sysctl runs.
    pub modules: &'a BTreeSet<String>,
}

/// Every key of the catalogue that a file sets, and every one of the catalogue's main keys whose live value is not the kernel's default.
///
/// `live`: values by key with dots, whitespace normalised; at least those that the files set, as far as they can be read. `default_control`:
/// the catalogue does not know what a distribution's kernel was configured with, so that a congestion control never counts as set by hand.
pub fn persistence(
    files: &Files<'_>,
    live: &BTreeMap<String, String>,
    kernel: Option<KernelVersion>,
) -> Vec<Persistent> {
    let (boot, system) = (files.boot.verdicts(), files.system.verdicts());
    let mut all = BTreeMap::new();
    for path in boot.keys().chain(system.keys()) {
        let Ok(key) = Key::parse(path) else { continue };
        let name = key.to_string();
        // What files set of other parts of the kernel is not this program's matter.
        if Catalogue::builtin().lookup(&name).is_none() {
            continue;
        }
        all.entry(name.clone())
            .or_insert_with(|| of_files(&name, boot.get(path), system.get(path), files, live, kernel));
    }
    for (key, value) in live {
        if let Some(unsaved) = by_hand(key, value, kernel) {
            all.entry(key.clone()).or_insert(unsaved);
        }
    }
    all.into_values().collect()
}

fn of_files(
    key: &str,
    boot: Option<&Verdict<'_>>,
    system: Option<&Verdict<'_>>,
    files: &Files<'_>,
    live: &BTreeMap<String, String>,
    kernel: Option<KernelVersion>,
) -> Persistent {
    let winner = boot.and_then(|verdict| verdict.winner);
    let at_boot = winner.map(|(step, write)| line(step, write));
    let mut losers = Vec::new();
    for (step, outcome) in boot.map(|verdict| verdict.steps.as_slice()).unwrap_or_default() {
        losers.extend(outcome.losers.iter().map(|(write, _)| line(step, write)));
        let is_winner = winner.is_some_and(|(winner, _)| std::ptr::eq(winner, *step));
        losers.extend(outcome.winner.iter().filter(|_| !is_winner).map(|write| line(step, write)));
    }
    let found = Catalogue::builtin().lookup(key);
    let module = found.as_ref().and_then(|found| found.knob.module.clone());
    let default = found.and_then(|found| found.knob.default_in(kernel?).map(str::to_owned));
    let live = live.get(key).cloned();
    // A file that only `sysctl --system` reads.
    let unread = system.and_then(|verdict| verdict.winner).filter(|_| winner.is_none());
    let same = |line: &Line| live.as_deref().is_some_and(|live| same_value(live, &line.value));
    let late = module.as_ref().is_some_and(|module| !files.modules.contains(&module.replace('-', "_")));
    let by_systemd = winner.is_some_and(|(step, _)| matches!(step.applier, Applier::Systemd | Applier::Kernel));
    let fate = match (&at_boot, &live) {
        (None, _) => Fate::NotRead,
        (Some(_), None) => Fate::NoKey,
        (Some(line), Some(_)) if !same(line) => Fate::NotLive,
        // The kernel's own default at boot is what the file says: nothing is lost.
        (Some(line), Some(_)) if late && by_systemd && default.as_deref() != Some(&line.value) => Fate::TooLate,
        _ => Fate::Kept,
    };
    Persistent {
        key: key.to_owned(),
        live,
        at_boot: at_boot.or_else(|| unread.map(|(step, write)| line(step, write))),
        losers,
        default,
        module: module.filter(|_| late),
        fate,
    }
}

/// A main key whose live value is neither a file's nor the kernel's default.
fn by_hand(key: &str, value: &str, kernel: Option<KernelVersion>) -> Option<Persistent> {
    // What a distribution's kernel was configured with, the catalogue can't know.
    if matches!(key, "net.ipv4.tcp_congestion_control" | "net.core.default_qdisc") {
        return None;
    }
    let found = Catalogue::builtin().lookup(key)?;
    let default = found.knob.default_in(kernel?)?;
    let settable = found.knob.access == crate::catalogue::Access::ReadWrite;
    let main = found.knob.importance == Importance::Main;
    (settable && main && !same_value(value, default)).then(|| Persistent {
        key: key.to_owned(),
        live: Some(value.to_owned()),
        at_boot: None,
        losers: Vec::new(),
        default: Some(default.to_owned()),
        module: None,
        fate: Fate::NotPersistent,
    })
}

fn line(step: &Step, write: &Write) -> Line {
    let (file, line) = step.files[write.file].place(write.span);
    let value = write.value.split_whitespace().collect::<Vec<_>>().join(" ");
    Line { value, file, line, by: step.applier.name().to_owned() }
}

/// Whether the kernel shows `live` after `written`: blanks don't matter, a comment behind numbers neither, and what a file leaves out of
/// several numbers stays as it was.
fn same_value(live: &str, written: &str) -> bool {
    let (mut live, mut written) = (live.split_whitespace(), written.split_whitespace());
    loop {
        match (live.next(), written.next()) {
            (None, None) => return true,
            (Some(live), Some(written)) if live == written => {}
            // 0x10 and 010 are numbers too.
            (Some(live), Some(written)) if number(live).is_some() && number(live) == number(written) => {}
            (Some(live), None) => return number(live).is_some(),
            (None, Some(written)) => return written.starts_with('#'),
            _ => return false,
        }
    }
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => i64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effective::{Dialect, MemoryRoot, timeline};

    fn judged(root: &MemoryRoot, live: &[(&str, &str)]) -> BTreeMap<String, Persistent> {
        let boot = timeline::boot(root, &[]);
        let system = timeline::sysctl_system(root, &[], Dialect::Procps);
        let modules = timeline::modules_loaded_at_boot(root);
        let files = Files { boot: &boot, system: &system, modules: &modules };
        let live = live.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let all = persistence(&files, &live, Some(KernelVersion::new(6, 12)));
        all.into_iter().map(|one| (one.key.clone(), one)).collect()
    }

    #[test]
    fn every_fate_has_its_case() {
        let root = MemoryRoot::new()
            .file("/etc/sysctl.d/10-a.conf", "net.core.somaxconn=8192\nnet.core.rmem_max=1\n")
            .file(
                "/etc/sysctl.d/90-b.conf",
                "net.core.rmem_max=2\nnet.netfilter.nf_conntrack_max = 1048576\nnet.ipv4.tcp_plb_enabled=1\n",
            )
            .file("/etc/sysctl.conf", "net.ipv4.tcp_slow_start_after_idle=0\n");
        let live = [
            ("net.core.somaxconn", "8192"),
            ("net.core.rmem_max", "212992"),
            ("net.netfilter.nf_conntrack_max", "1048576"),
            ("net.ipv4.tcp_slow_start_after_idle", "0"),
            ("net.ipv4.tcp_max_tw_buckets", "5"),
            ("net.ipv4.tcp_sack", "0"),
            ("net.ipv4.tcp_timestamps", "1"),
        ];
        let all = judged(&root, &live);
        let fate = |key: &str| all[key].fate;
        assert_eq!(fate("net.core.somaxconn"), Fate::Kept);
        assert_eq!(fate("net.core.rmem_max"), Fate::NotLive);
        assert_eq!(fate("net.netfilter.nf_conntrack_max"), Fate::TooLate);
        assert_eq!(fate("net.ipv4.tcp_slow_start_after_idle"), Fate::NotRead);
        assert_eq!(fate("net.ipv4.tcp_sack"), Fate::NotPersistent);
        assert_eq!(fate("net.ipv4.tcp_plb_enabled"), Fate::NoKey);
        assert!(!all.contains_key("net.ipv4.tcp_timestamps"));
        let rmem = &all["net.core.rmem_max"];
        assert_eq!((rmem.at_boot.as_ref().unwrap().line, rmem.losers[0].value.as_str()), (1, "1"));
        assert_eq!(all["net.netfilter.nf_conntrack_max"].module.as_deref(), Some("nf_conntrack"));
    }

    #[test]
    fn a_module_that_is_loaded_at_boot_is_in_time() {
        let root = MemoryRoot::new()
            .file("/etc/sysctl.d/90-b.conf", "net.netfilter.nf_conntrack_max = 1048576\n")
            .file("/etc/modules-load.d/c.conf", "nf_conntrack\n");
        let all = judged(&root, &[("net.netfilter.nf_conntrack_max", "1048576")]);
        assert_eq!(all["net.netfilter.nf_conntrack_max"].fate, Fate::Kept);
    }

    #[test]
    fn values_are_compared_as_the_kernel_reads_them() {
        assert!(same_value("4096 131072 6291456", "4096\t131072   6291456"));
        assert!(same_value("4096 131072 6291456", "4096 131072"));
        assert!(same_value("16", "0x10"));
        assert!(same_value("1", "1 # on"));
        assert!(!same_value("cubic", "bbr"));
        assert!(!same_value("cubic", ""));
        assert!(!same_value("4096", "4097"));
    }
}
