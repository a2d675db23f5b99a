//! Everything that sets sysctls at boot, one after the other, and what `sysctl --system` does later.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{Document, Format, Source, Span};

use super::apply::{Applied, Outcome, Write, apply};
use super::order::{ConfFile, State, files, files_of, single};
use super::reader::{Dialect, Line, read};
use super::root::{Root, read_file};
use super::{Distribution, tuned};

/// Who sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Applier {
    /// The kernel itself, from its command line.
    Kernel,
    /// systemd-sysctl.service.
    Systemd,
    /// `sysctl --system`.
    Procps,
    /// ufw, at boot and at each reload.
    Ufw,
    /// tuned's profile.
    Tuned,
    /// tuned, which applies the settings files once more behind its profile.
    TunedAgain,
}

impl Applier {
    /// As messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel command line",
            Self::Systemd => "systemd-sysctl",
            Self::Procps => "sysctl --system",
            Self::Ufw => "ufw",
            Self::Tuned => "tuned",
            Self::TunedAgain => "tuned (reapply_sysctl)",
        }
    }
}

/// A file of a step with its text, so that places can be told.
#[derive(Debug, Clone)]
pub struct StepFile {
    /// Path and state.
    pub file: ConfFile,
    /// Its text, where it is read.
    pub source: Option<Source>,
}

impl StepFile {
    /// `path:line` of a span.
    pub fn place(&self, span: Span) -> (String, usize) {
        (self.file.path.clone(), self.source.as_ref().map_or(0, |source| source.position(span.start).line))
    }
}

/// One applier's turn.
#[derive(Debug, Clone)]
pub struct Step {
    /// Who.
    pub applier: Applier,
    /// Its files, also those it passes over.
    pub files: Vec<StepFile>,
    /// What it does. [`Write::file`] is an index of `files`.
    pub applied: Applied,
}

/// Steps in the order of time.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One key at the end of a timeline.
#[derive(Debug, Clone)]
pub struct Verdict<'t> {
    /// The step that has the last word, and its write; `None`: every line is excluded.
    pub winner: Option<(&'t Step, &'t Write)>,
    /// Each step that means the key, with what becomes of it there.
    pub steps: Vec<(&'t Step, &'t Outcome)>,
}

impl Timeline {
    /// Every key that some step means, with who wins.
    pub fn verdicts(&self) -> BTreeMap<&str, Verdict<'_>> {
        let mut verdicts: BTreeMap<&str, Verdict<'_>> = BTreeMap::new();
        for step in &self.steps {
            for (key, outcome) in &step.applied.keys {
                let verdict = verdicts.entry(key).or_insert(Verdict { winner: None, steps: Vec::new() });
                verdict.steps.push((step, outcome));
                if let Some(write) = &outcome.winner {
                    verdict.winner = Some((step, write));
                }
            }
        }
        verdicts
    }
}

/// What happens at boot. `universe`: the keys that exist, for patterns.
pub fn boot(root: &(impl Root + ?Sized), universe: &[String]) -> Timeline {
    let mut steps = Vec::new();
    if let Some(step) = command_line(root) {
        steps.push(step);
    }
    steps.push(step(root, Applier::Systemd, Dialect::Systemd, files(root, Dialect::Systemd), universe));
    if let Some(file) = ufw(root) {
        steps.push(step(root, Applier::Ufw, Dialect::Procps, vec![file], universe));
    }
    let profiles = tuned::active(root);
    if !profiles.is_empty() {
        steps.push(tuned_step(profiles, &steps));
        if tuned::reapplies(root) {
            steps.push(step(root, Applier::TunedAgain, Dialect::Procps, tuned_files(root), universe));
        }
    }
    Timeline { steps }
}

/// What `sysctl --system` of procps does: the directories' files, then `/etc/sysctl.conf`.
pub fn sysctl_system(root: &(impl Root + ?Sized), universe: &[String], dialect: Dialect) -> Timeline {
    let mut list = files(root, dialect);
    list.extend(single(root, "/etc/sysctl.conf"));
    Timeline { steps: vec![step(root, Applier::Procps, dialect, list, universe)] }
}

/// The active tuned profiles' files, as documents; included ones before those that include them.
pub fn tuned_profiles(root: &(impl Root + ?Sized)) -> Vec<Document> {
    tuned::active(root).into_iter().map(|profile| profile.document).collect()
}

/// Modules that are loaded before systemd-sysctl runs: `modules-load.d(5)`, and Debian's `/etc/modules`.
pub fn modules_loaded_at_boot(root: &(impl Root + ?Sized)) -> BTreeSet<String> {
    let directories = [
        "/etc/modules-load.d",
        "/run/modules-load.d",
        "/usr/local/lib/modules-load.d",
        "/usr/lib/modules-load.d",
        "/lib/modules-load.d",
    ];
    let mut list = files_of(root, &directories, Dialect::Systemd);
    list.extend(single(root, "/etc/modules"));
    let mut modules = BTreeSet::new();
    for file in list.iter().filter(|file| matches!(file.state, State::Read { .. })) {
        let bytes = read_file(root, &file.path).ok().flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let names = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
        modules.extend(names.map(|line| line.split_whitespace().next().unwrap_or("").replace('-', "_")));
    }
    modules
}

/// The distribution in the tree.
pub fn distribution(root: &(impl Root + ?Sized)) -> Option<Distribution> {
    let read = |path| read_file(root, path).ok().flatten();
    let bytes = read("/etc/os-release").or_else(|| read("/usr/lib/os-release"))?;
    Some(Distribution::from_os_release(&String::from_utf8_lossy(&bytes)))
}

fn step(
    root: &(impl Root + ?Sized),
    applier: Applier,
    dialect: Dialect,
    list: Vec<ConfFile>,
    universe: &[String],
) -> Step {
    let mut lines: Vec<Vec<Line>> = Vec::new();
    let mut files = Vec::new();
    for mut file in list {
        let mut source = None;
        if let State::Read { target } = &file.state {
            match root.read(target) {
                Ok(bytes) => source = Some(Source::of_bytes(&bytes)),
                Err(why) => file.state = State::Unreadable(why.0),
            }
        }
        lines.push(source.as_ref().map(|source| read(source.text(), dialect)).unwrap_or_default());
        files.push(StepFile { file, source });
    }
    Step { applier, files, applied: apply(dialect, &lines, universe) }
}

/// ufw's file, where ufw is switched on.
fn ufw(root: &(impl Root + ?Sized)) -> Option<ConfFile> {
    let setting = |path: &str, key: &str| {
        let bytes = read_file(root, path).ok().flatten()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let value = text.lines().filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix('=')).next_back()?;
        Some(value.trim_matches(['"', '\'', ' ']).to_owned())
    };
    let is_on = setting("/etc/ufw/ufw.conf", "ENABLED").is_some_and(|value| value.eq_ignore_ascii_case("yes"));
    let path = setting("/etc/default/ufw", "IPT_SYSCTL").unwrap_or_else(|| "/etc/ufw/sysctl.conf".to_owned());
    is_on.then(|| single(root, &path)).flatten()
}

fn command_line(root: &(impl Root + ?Sized)) -> Option<Step> {
    let path = "/proc/cmdline";
    let bytes = read_file(root, path).ok().flatten()?;
    let document = Document::parse(path, &bytes, Some(Format::CommandLine));
    let step = document_step(Applier::Kernel, vec![(path.to_owned(), document)], &[]);
    (!step.applied.keys.is_empty()).then_some(step)
}

fn tuned_step(profiles: Vec<tuned::Profile>, before: &[Step]) -> Step {
    document_step(Applier::Tuned, profiles.into_iter().map(|p| (p.path, p.document)).collect(), before)
}

/// A step out of documents whose settings come one after the other; `>` raises what earlier steps set.
fn document_step(applier: Applier, documents: Vec<(String, Document)>, before: &[Step]) -> Step {
    let mut applied = Applied::default();
    let mut files = Vec::new();
    for (index, (path, document)) in documents.into_iter().enumerate() {
        for setting in &document.settings {
            let Ok(key) = crate::Key::parse(&setting.key) else { continue };
            let old = applied.keys.get(key.path()).and_then(|outcome| outcome.winner.as_ref());
            let old =
                old.or_else(|| before.iter().rev().find_map(|step| step.applied.keys.get(key.path())?.winner.as_ref()));
            let number = |text: &str| text.trim().parse::<i64>().ok();
            let stays = setting.only_raises
                && old
                    .and_then(|old| number(&old.value))
                    .zip(number(&setting.value))
                    .is_some_and(|(old, new)| old >= new);
            if stays {
                continue;
            }
            let write = Write {
                file: index,
                span: setting.span,
                value: setting.value.clone(),
                pattern: None,
                ignores_failure: setting.ignores_failure,
            };
            let outcome = applied.keys.entry(key.path().to_owned()).or_default();
            if let Some(old) = outcome.winner.replace(write) {
                outcome.losers.push((old, super::Loss::Overwritten));
            }
        }
        let state = State::Read { target: path.clone() };
        files.push(StepFile { file: ConfFile { path, state }, source: Some(document.source) });
    }
    Step { applier, files, applied }
}

/// What tuned applies once more: `/run` before `/etc`, where a file of the same name in `/etc` stands in for it, and
/// `/etc/sysctl.conf` last (tuned `plugin_sysctl.py`, reapply_sysctl). Not what packages bring under `/usr/lib`.
fn tuned_files(root: &(impl Root + ?Sized)) -> Vec<ConfFile> {
    let mut list = files_of(root, &["/etc/sysctl.d", "/run/sysctl.d"], Dialect::Procps);
    list.extend(single(root, "/etc/sysctl.conf"));
    list
}

#[cfg(test)]
mod tests {
    use super::super::root::MemoryRoot;
    use super::*;

    fn who(timeline: &Timeline, key: &str) -> (Applier, String) {
        let verdicts = timeline.verdicts();
        let (step, write) = verdicts[key].winner.unwrap();
        (step.applier, write.value.clone())
    }

    const KEY: &str = "net/core/somaxconn";

    #[test]
    fn the_old_file_counts_at_boot_only_through_its_link() {
        let root = MemoryRoot::new()
            .file("/etc/sysctl.conf", "net.core.somaxconn=1\n")
            .file("/etc/sysctl.d/50.conf", "net.core.somaxconn=2");
        assert_eq!(who(&boot(&root, &[]), KEY), (Applier::Systemd, "2".to_owned()));
        assert_eq!(who(&sysctl_system(&root, &[], Dialect::Procps), KEY), (Applier::Procps, "1".to_owned()));
        let linked = root.link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf");
        assert_eq!(who(&boot(&linked, &[]), KEY), (Applier::Systemd, "1".to_owned()));
    }

    #[test]
    fn ufw_has_a_later_word_where_it_is_switched_on() {
        let root = MemoryRoot::new()
            .file("/etc/sysctl.d/50.conf", "net.core.somaxconn=2")
            .file("/etc/ufw/sysctl.conf", "net/core/somaxconn=3\n")
            .file("/etc/ufw/ufw.conf", "ENABLED=no\n");
        assert_eq!(who(&boot(&root, &[]), KEY).0, Applier::Systemd);
        let on = root.file("/etc/ufw/ufw.conf", "# x\nENABLED=yes\n");
        assert_eq!(who(&boot(&on, &[]), KEY), (Applier::Ufw, "3".to_owned()));
    }

    #[test]
    fn tuned_has_the_last_word_unless_it_applies_the_files_once_more() {
        let root = MemoryRoot::new()
            .file("/etc/tuned/active_profile", "mine\n")
            .file("/etc/tuned/mine/tuned.conf", "[main]\ninclude=throughput\n[sysctl]\nnet.core.somaxconn=>2048\n")
            .file(
                "/usr/lib/tuned/throughput/tuned.conf",
                "[main]\nsummary=x\n[sysctl]\nnet.core.rmem_max=7\nnet.core.somaxconn=4000\n",
            );
        assert_eq!(who(&boot(&root, &[]), KEY), (Applier::Tuned, "4000".to_owned()));
        let with = root.file("/etc/sysctl.conf", "net.core.somaxconn=5\n");
        assert_eq!(who(&boot(&with, &[]), KEY), (Applier::TunedAgain, "5".to_owned()));
        let off = with.file("/etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n");
        assert_eq!(who(&boot(&off, &[]), KEY).0, Applier::Tuned);
        assert_eq!(who(&boot(&off, &[]), "net/core/rmem_max").1, "7");
    }

    #[test]
    fn the_command_line_comes_first_and_modules_are_those_of_modules_load_d() {
        let root = MemoryRoot::new()
            .file("/proc/cmdline", "quiet sysctl.net.core.somaxconn=9\n")
            .file("/etc/modules-load.d/x.conf", "# c\nnf_conntrack\n")
            .file("/etc/modules", "br-netfilter\n");
        assert_eq!(who(&boot(&root, &[]), KEY), (Applier::Kernel, "9".to_owned()));
        assert_eq!(modules_loaded_at_boot(&root).into_iter().collect::<Vec<_>>(), ["br_netfilter", "nf_conntrack"]);
    }
}
