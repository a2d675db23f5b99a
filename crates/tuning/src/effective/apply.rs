//! From lines to writes: what each applier leaves in the kernel, and which lines lose.
//!
//! systemd-sysctl (`sysctl.c`: parse_line, apply_all) first reads all lines into an ordered table: a later line of the same key
//! replaces the earlier one and moves to the end, unless the value is the same. Then it writes the table; a pattern is written to
//! every key that has no line of its own. `-key` without a value is an entry like any other, so it also takes back a setting.
//!
//! procps (`sysctl.c`: write_setting_list) writes every line in order; a pattern is written to every key for which the list has no
//! line with the same path, before or behind, and no exclusion; since 4.0.5 exclusions may be patterns. `-key` takes nothing back.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::files::Span;

use super::pattern::{is_pattern, matches, matches_across};
use super::reader::{Dialect, Line, simplified};

/// A value that an applier writes, and where it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The file's index in the list that was applied.
    pub file: usize,
    /// The line.
    pub span: Span,
    /// The value.
    pub value: String,
    /// The pattern of the line, where it is one.
    pub pattern: Option<String>,
    /// Whether a refusal is no failure.
    pub ignores_failure: bool,
}

/// Why a line's value doesn't stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// A later line of the same key takes its place before anything is written (systemd-sysctl).
    Replaced,
    /// It is written, and a later one overwrites it.
    Overwritten,
    /// It says the same as the winner.
    Same,
    /// It is a pattern, and the key has a line of its own, wherever that stands.
    OwnLine,
    /// It is taken back by `-key` without a value (systemd-sysctl), or is a pattern whose key is excluded.
    Excluded,
}

/// What becomes of one key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The value that stays; `None`: all were excluded.
    pub winner: Option<Write>,
    /// The others, in the order in which they lost.
    pub losers: Vec<(Write, Loss)>,
}

/// What an applier does: by the key's path under `/proc/sys`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Every key that some line means.
    pub keys: BTreeMap<String, Outcome>,
}

/// Applies files' lines in their order. `universe`: the keys that exist, to which patterns are expanded.
pub fn apply(dialect: Dialect, files: &[Vec<Line>], universe: &[String]) -> Applied {
    match dialect {
        Dialect::Systemd => systemd(files, universe),
        Dialect::Procps => procps(files, universe, str::eq),
        Dialect::Procps405 => procps(files, universe, matches_across),
    }
}

fn write(file: usize, line: &Line) -> Option<Write> {
    Some(Write {
        file,
        span: line.span,
        value: line.value.clone()?,
        pattern: line.is_pattern().then(|| line.path.clone()),
        ignores_failure: line.ignores_failure,
    })
}

/// An entry of systemd-sysctl's table.
struct Slot {
    path: String,
    value: Option<Write>,
    lost: Vec<(Write, Loss)>,
}

fn systemd(files: &[Vec<Line>], universe: &[String]) -> Applied {
    // `None`: replaced, and moved to the end.
    let mut slots: Vec<Option<Slot>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (file, line) in files.iter().enumerate().flat_map(|(file, lines)| lines.iter().map(move |line| (file, line))) {
        let new = write(file, line);
        let mut lost = Vec::new();
        if let Some(place) = places.get(line.path.as_str()) {
            let slot = &mut slots[*place];
            match slot {
                Some(existing) if existing.value.as_ref().map(|w| &w.value) == line.value.as_ref() => {
                    if let (Some(existing_write), Some(new)) = (&mut existing.value, new) {
                        existing_write.ignores_failure |= new.ignores_failure;
                        existing.lost.push((new, Loss::Same));
                    }
                    continue;
                }
                _ => {
                    if let Some(old) = slot.take() {
                        lost = old.lost;
                        let loss = if new.is_some() { Loss::Replaced } else { Loss::Excluded };
                        lost.extend(old.value.map(|write| (write, loss)));
                    }
                }
            }
        }
        places.insert(&line.path, slots.len());
        slots.push(Some(Slot { path: line.path.clone(), value: new, lost }));
    }
    let slots: Vec<Slot> = slots.into_iter().flatten().collect();
    let own: HashMap<&str, bool> = slots.iter().map(|slot| (slot.path.as_str(), slot.value.is_some())).collect();
    let mut applied = Applied::default();
    for slot in &slots {
        if !is_pattern(&slot.path) {
            let outcome = applied.keys.entry(slot.path.clone()).or_default();
            outcome.losers.extend(slot.lost.iter().cloned());
            if let Some(write) = &slot.value {
                put(outcome, write.clone());
            }
            continue;
        }
        let Some(pattern) = &slot.value else { continue };
        for key in universe.iter().filter(|key| matches(&slot.path, key)) {
            let outcome = applied.keys.entry(key.clone()).or_default();
            outcome.losers.extend(slot.lost.iter().cloned());
            match own.get(key.as_str()) {
                Some(true) => outcome.losers.push((pattern.clone(), Loss::OwnLine)),
                Some(false) => outcome.losers.push((pattern.clone(), Loss::Excluded)),
                None => put(outcome, pattern.clone()),
            }
        }
    }
    applied
}

fn procps(files: &[Vec<Line>], universe: &[String], excludes: fn(&str, &str) -> bool) -> Applied {
    let lines: Vec<(usize, &Line)> =
        files.iter().enumerate().flat_map(|(file, lines)| lines.iter().map(move |line| (file, line))).collect();
    let literal: HashSet<&str> = lines.iter().map(|(_, line)| line.path.as_str()).collect();
    let excluded: Vec<&str> =
        lines.iter().filter(|(_, line)| line.value.is_none()).map(|(_, line)| line.path.as_str()).collect();
    let mut applied = Applied::default();
    for (file, line) in &lines {
        let Some(new) = write(*file, line) else { continue };
        if !line.is_pattern() {
            put(applied.keys.entry(simplified(&line.path)).or_default(), new);
            continue;
        }
        for key in universe.iter().filter(|key| matches(&simplified(&line.path), key)) {
            let outcome = applied.keys.entry(key.clone()).or_default();
            if excluded.iter().any(|exclusion| excludes(exclusion, key)) {
                outcome.losers.push((new.clone(), Loss::Excluded));
            } else if literal.contains(key.as_str()) {
                outcome.losers.push((new.clone(), Loss::OwnLine));
            } else {
                put(outcome, new.clone());
            }
        }
    }
    applied
}

/// A value is written: the one before loses.
fn put(outcome: &mut Outcome, write: Write) {
    if let Some(old) = outcome.winner.replace(write) {
        let is_same = outcome.winner.as_ref().is_some_and(|new| new.value == old.value);
        outcome.losers.push((old, if is_same { Loss::Same } else { Loss::Overwritten }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader;
    use super::*;

    fn winners(dialect: Dialect, files: &[&str]) -> Vec<String> {
        let universe: Vec<String> =
            ["all", "default", "eth0", "lo"].iter().map(|i| format!("net/ipv4/conf/{i}/rp_filter")).collect();
        let lines: Vec<_> = files.iter().map(|text| reader::read(text, dialect)).collect();
        let applied = apply(dialect, &lines, &universe);
        applied
            .keys
            .iter()
            .map(|(key, outcome)| {
                let short = key.trim_start_matches("net/ipv4/conf/");
                format!("{short}={}", outcome.winner.as_ref().map_or("-", |w| &w.value))
            })
            .collect()
    }

    #[test]
    fn a_pattern_gives_way_to_a_line_of_its_own_wherever_that_stands() {
        for dialect in [Dialect::Systemd, Dialect::Procps, Dialect::Procps405] {
            assert_eq!(
                winners(
                    dialect,
                    &["net.ipv4.conf.eth0.rp_filter=0\n", "net.ipv4.conf.*.rp_filter=1\n-net.ipv4.conf.lo.rp_filter\n"]
                ),
                ["all/rp_filter=1", "default/rp_filter=1", "eth0/rp_filter=0", "lo/rp_filter=-"],
                "{dialect:?}"
            );
        }
    }

    #[test]
    fn an_exclusion_takes_a_setting_back_only_with_systemd() {
        let files = ["net.a=1\n", "-net.a\n"];
        assert_eq!(winners(Dialect::Systemd, &files), ["net/a=-"]);
        assert_eq!(winners(Dialect::Procps, &files), ["net/a=1"]);
    }

    #[test]
    fn an_exclusion_by_pattern_works_only_with_procps_since_4_0_5() {
        let files = ["net.ipv4.conf.*.rp_filter=1\n-net.ipv4.conf.e*.rp_filter\n"];
        assert!(winners(Dialect::Systemd, &files).contains(&"eth0/rp_filter=1".to_owned()));
        assert!(winners(Dialect::Procps, &files).contains(&"eth0/rp_filter=1".to_owned()));
        assert!(winners(Dialect::Procps405, &files).contains(&"eth0/rp_filter=-".to_owned()));
    }

    #[test]
    fn losers_say_why_they_lost() {
        let lines = |dialect| vec![reader::read("a.b=1\na.b=2\na.b=2\n", dialect)];
        let losses = |dialect| {
            let applied = apply(dialect, &lines(dialect), &[]);
            applied.keys["a/b"].losers.iter().map(|(write, loss)| (write.value.clone(), *loss)).collect::<Vec<_>>()
        };
        assert_eq!(losses(Dialect::Systemd), [("1".to_owned(), Loss::Replaced), ("2".to_owned(), Loss::Same)]);
        assert_eq!(losses(Dialect::Procps), [("1".to_owned(), Loss::Overwritten), ("2".to_owned(), Loss::Same)]);
    }
}
