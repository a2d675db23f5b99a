//! What is there against what the journals say, and what a boot has to set again.

use std::collections::BTreeMap;

use super::act;
use super::own::{self, DROP_IN};
use super::prepare::{in_force, is_untouched};
use super::store::{Standing, Transaction, standing};
use super::world::{Found, World};
use crate::Catalogue;
use crate::effective::Root;
use crate::effective::timeline::{self, Timeline};
use crate::journal::{Journal, Ring, Step};
use crate::key::Key;

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `live`, `boot`, `file`, `device` or `journal`.
    pub kind: &'static str,
    /// A key, a path, a device, a journal.
    pub what: String,
    /// What is there.
    pub found: String,
    /// What should be.
    pub wanted: String,
    /// Why, as far as it shows.
    pub why: String,
}

/// What the transactions in force have made of the host; later ones win.
#[derive(Debug, Default)]
struct Wanted {
    sysctls: BTreeMap<String, Value>,
    queues: BTreeMap<String, Vec<String>>,
    rings: Vec<(String, Ring, u32, u32)>,
}

#[derive(Debug)]
struct Value {
    old: Option<String>,
    new: String,
}

/// Whether live changes of a transaction should be there in this boot.
fn holds_live(journal: &Journal, standing: Standing, boot_id: &str) -> bool {
    match standing {
        Standing::Kept => journal.begin.boot_id == boot_id || !journal.begin.live_only,
        Standing::Waiting => true,
        _ => false,
    }
}

fn wanted(transactions: &[Transaction], boot_id: &str) -> Wanted {
    let mut wanted = Wanted::default();
    for (key, new) in in_force(transactions, DROP_IN).map(own::settings).unwrap_or_default() {
        wanted.sysctls.insert(key, Value { old: None, new });
    }
    for transaction in transactions {
        let Ok(journal) = &transaction.journal else { continue };
        if !holds_live(journal, standing(transaction, boot_id), boot_id) {
            continue;
        }
        for (step, _) in &journal.steps {
            match step {
                Step::Sysctl { key, old, new } => {
                    wanted.sysctls.insert(key.clone(), Value { old: Some(old.clone()), new: new.clone() });
                }
                Step::Queues { device, new, .. } => {
                    wanted.queues.insert(device.clone(), new.clone());
                }
                Step::Ring { device, ring, old, new } => {
                    wanted.rings.retain(|(there, which, ..)| (there, which) != (device, ring));
                    wanted.rings.push((device.clone(), *ring, *old, *new));
                }
                _ => {}
            }
        }
    }
    wanted
}

/// Compares live values, files and devices with the journals. Changes nothing.
pub fn verify<W: World, R: Root + ?Sized>(world: &W, root: &R, transactions: &[Transaction]) -> Vec<Finding> {
    let boot_id = world.boot_id();
    let mut findings = Vec::new();
    for transaction in transactions {
        let found = standing(transaction, &boot_id);
        let fix = match (found, &transaction.journal) {
            (Standing::Damaged, Err(damage)) => {
                format!("{damage}; `linerate rollback {} --salvage` undoes what its whole lines name", transaction.id)
            }
            (Standing::Waiting, Ok(_)) if !world.is_watched(transaction.id) => {
                format!("nobody watches it, so it doesn't undo itself: `linerate rollback {}` does", transaction.id)
            }
            (Standing::Interrupted, _) => format!("`linerate rollback {}` undoes what it had done", transaction.id),
            _ => continue,
        };
        findings.push(Finding {
            kind: "journal",
            what: format!("transaction {}", transaction.id),
            found: found.name().to_owned(),
            wanted: if found == Standing::Waiting { "watched" } else { "whole" }.to_owned(),
            why: fix,
        });
    }
    let wanted = wanted(transactions, &boot_id);
    let keys: Vec<String> =
        wanted.sysctls.keys().filter_map(|key| Some(Key::parse(key).ok()?.path().to_owned())).collect();
    let boot = timeline::boot(root, &keys);
    let restarted = transactions.iter().filter_map(|t| t.journal.as_ref().ok()).all(|j| j.begin.boot_id != boot_id);
    let files = files(world, transactions, &boot_id);
    let drop_in_is_whole = in_force(transactions, DROP_IN).is_some() && !files.iter().any(|f| f.what == DROP_IN);
    for (key, value) in &wanted.sysctls {
        let path = Key::parse(key).map(|key| key.path().to_owned()).unwrap_or_default();
        let winner = winner(&boot, &path);
        let mut finding = |kind, found: String, why: String| {
            findings.push(Finding { kind, what: key.clone(), found, wanted: value.new.clone(), why });
        };
        let other = winner.as_ref().filter(|winner| winner.value != value.new);
        match world.sysctl(key) {
            Ok(Some(live)) if live == value.new => {
                if let (Some(other), true) = (other, drop_in_is_whole) {
                    let Winner { place, who, value } = other;
                    finding(
                        "boot",
                        value.clone(),
                        format!("it holds now, but at the next boot {place} sets it to {value} ({who})"),
                    );
                }
            }
            Ok(Some(live)) => {
                let why = match (other, restarted) {
                    (Some(other), true) => {
                        format!("it did not survive the restart: {} sets it ({})", other.place, other.who)
                    }
                    (_, true) if in_force(transactions, DROP_IN).is_some() && !drop_in_is_whole => {
                        format!("it did not survive the restart: {DROP_IN} is not as linerate left it")
                    }
                    (_, true) => late_reason(key),
                    (_, false) => "somebody has set it since".to_owned(),
                };
                finding("live", live, why);
            }
            Ok(None) => finding("live", "no such key".to_owned(), late_reason(key)),
            Err(error) => finding("live", error.to_string(), "it can't be read".to_owned()),
        }
    }
    findings.extend(files);
    for path in own::orphans(world, transactions) {
        findings.push(Finding {
            kind: "file",
            what: path,
            found: "written by linerate".to_owned(),
            wanted: "not there".to_owned(),
            why: "no journal tells of it, so what it sets can't be put back; `linerate uninstall` removes the file"
                .to_owned(),
        });
    }
    devices(world, &wanted, &mut findings);
    findings
}

/// Who has the last word on a key at boot.
struct Winner {
    place: String,
    who: &'static str,
    value: String,
}

fn winner(boot: &Timeline, path: &str) -> Option<Winner> {
    let verdicts = boot.verdicts();
    let (step, write) = verdicts.get(path)?.winner?;
    let (place, line) = step.files[write.file].place(write.span);
    let value = write.value.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(Winner { place: format!("{place}:{line}"), who: step.applier.name(), value })
}

/// Why a key that the drop-in sets can have another value after a boot.
fn late_reason(key: &str) -> String {
    match own::modules_of(key) {
        Some(module) => {
            format!("the module {module}, which brings the key, was loaded or reloaded after systemd-sysctl had run")
        }
        None if is_per_device(key) => "the device came up, or was configured, after systemd-sysctl had run".to_owned(),
        None => "something that is no settings file has set it since the boot".to_owned(),
    }
}

fn is_per_device(key: &str) -> bool {
    let found = Catalogue::builtin().lookup(key);
    found.is_some_and(|found| found.instance.is_some_and(|instance| !matches!(instance.as_str(), "all" | "default")))
}

/// Files that are not as the transactions in force have left them.
fn files<W: World>(world: &W, transactions: &[Transaction], boot_id: &str) -> Vec<Finding> {
    let mut last: BTreeMap<&str, &Step> = BTreeMap::new();
    for transaction in transactions {
        if standing(transaction, boot_id) != Standing::Kept {
            continue;
        }
        let steps = transaction.journal.as_ref().map(|journal| journal.steps.as_slice()).unwrap_or_default();
        last.extend(steps.iter().filter(|(_, lasting)| *lasting).map(|(step, _)| (step.what(), step)));
    }
    let mut findings = Vec::new();
    for (path, step) in last {
        let found = match world.look(path) {
            Ok(Found::Nothing) => "not there".to_owned(),
            Ok(found) => {
                let same = match (step, &found) {
                    (Step::File { new, .. }, Found::File { bytes, .. }) => bytes == new.text.as_bytes(),
                    (Step::Link { target, .. }, Found::Link(there)) => there == target,
                    (Step::Folder { .. }, Found::Folder { .. }) => true,
                    _ => false,
                };
                if same {
                    continue;
                }
                "changed".to_owned()
            }
            Err(error) => error.to_string(),
        };
        let why = "somebody has changed or removed it since".to_owned();
        findings.push(Finding {
            kind: "file",
            what: path.to_owned(),
            found,
            wanted: "as linerate left it".to_owned(),
            why,
        });
    }
    findings
}

fn devices<W: World>(world: &W, wanted: &Wanted, findings: &mut Vec<Finding>) {
    let mut add = |device: &str, found: String, wanted: String, why: &str| {
        findings.push(Finding { kind: "device", what: device.to_owned(), found, wanted, why: why.to_owned() });
    };
    for (device, kinds) in &wanted.queues {
        match world.queues(device) {
            Ok(Some(tree)) if act::has_kinds(&tree, kinds) => {}
            Ok(Some(tree)) => {
                let why = if is_untouched(&tree) {
                    "the kernel has put its default there: the device came up anew before the default was set"
                } else {
                    "somebody has set another one since"
                };
                add(device, format!("{} {}", tree.root, tree.leaves.join(" ")).trim().to_owned(), kinds.join(" "), why);
            }
            Ok(None) => add(device, "no such device".to_owned(), kinds.join(" "), "it was renamed or taken out"),
            Err(error) => add(device, error.to_string(), kinds.join(" "), "it can't be read"),
        }
    }
    for (device, ring, _, new) in &wanted.rings {
        match world.ring(device, *ring) {
            Ok(Some((size, _))) if size == *new => {}
            Ok(found) => {
                let found = found.map_or("no such ring".to_owned(), |(size, _)| size.to_string());
                add(device, found, new.to_string(), "the driver was loaded anew, or somebody has set it since");
            }
            Err(error) => add(device, error.to_string(), new.to_string(), "it can't be read"),
        }
    }
}

/// What the boot has set again, or could not.
#[derive(Debug)]
pub struct Late {
    /// A key or a device.
    pub what: String,
    /// The value.
    pub to: String,
    /// Whether it worked.
    pub result: Result<(), String>,
}

/// Sets again what a boot has reset: keys of modules and devices, disciplines, rings. Only where the value is the one from before the
/// transaction, or the kernel's own: whatever else stands there, somebody wants.
pub fn late<W: World>(world: &mut W, transactions: &[Transaction]) -> Vec<Late> {
    let wanted = wanted(transactions, &world.boot_id());
    let mut done = Vec::new();
    let mut add = |what: &str, to: String, result: Result<(), act::StepError>| {
        done.push(Late { what: what.to_owned(), to, result: result.map_err(|error| error.to_string()) });
    };
    for (key, Value { old, new }) in wanted.sysctls {
        let live = world.sysctl(&key).ok().flatten();
        if (own::modules_of(&key).is_none() && !is_per_device(&key))
            || live.is_none()
            || live != old
            || live.as_ref() == Some(&new)
        {
            continue;
        }
        let step = Step::Sysctl { key: key.clone(), old: live.unwrap_or_default(), new: new.clone() };
        add(&key, new, act::make(world, &step));
    }
    for (device, new) in wanted.queues {
        let Ok(Some(old)) = world.queues(&device) else { continue };
        let kinds = if old.root == "mq" { old.leaves.len() } else { 1 };
        if act::has_kinds(&old, &new) || !is_untouched(&old) || old.root == "noqueue" || kinds != new.len() {
            continue;
        }
        let to = new.join(" ");
        let step = Step::Queues { device: device.clone(), old, new };
        add(&device, to, act::make(world, &step));
    }
    for (device, ring, old, new) in wanted.rings {
        if !matches!(world.ring(&device, ring), Ok(Some((size, most))) if size == old && new <= most) {
            continue;
        }
        let step = Step::Ring { device: device.clone(), ring, old, new };
        add(&device, new.to_string(), act::make(world, &step));
    }
    done
}
