//! From a plan and what is there to the steps of a transaction, or to the reasons against it.

use super::own::{self, DROP_IN, MARK, MODULES, UNIT, WANTED};
use super::store::{Standing, Transaction, standing};
use super::world::{Found, World};
use crate::catalogue::{Catalogue, Importance, Kind};
use crate::effective::root::{Entry, Root, Unreadable};
use crate::effective::{Applier, timeline};
use crate::journal::{Content, Ring, Step, Tree};
use crate::key::Key;
use crate::plan::{Change, ChangeKind, Host, PLAN_SCHEMA, Plan};

/// What starts the names of keys that a plan may set. Each is undone by one write: forwarding, for one, is not, since it changes what
/// redirects and router advertisements do on every interface.
const SET: [&str; 8] = [
    "net.core.",
    "net.ipv4.tcp_",
    "net.ipv4.udp_",
    "net.ipv4.ip_local_",
    "net.ipv4.neigh.default.gc_thresh",
    "net.ipv6.neigh.default.gc_thresh",
    "net.netfilter.nf_conntrack_",
    "net.mptcp.",
];

/// What is to be known besides the plan.
pub struct Check<'a, R: ?Sized> {
    /// This host.
    pub host: &'a Host,
    /// How it is known that this is a container, or another network namespace than the host's; `None`: it is the host.
    pub container: Option<String>,
    /// The files that set sysctls at boot.
    pub root: &'a R,
    /// The journals.
    pub transactions: &'a [Transaction],
    /// Whether nothing may outlive the boot.
    pub live_only: bool,
    /// The program that a unit may start; `Err`: why there is none. Only asked for where a unit is needed.
    pub exec: Result<String, String>,
    /// Whether systemd runs this system.
    pub systemd: bool,
}

/// A transaction that can be made.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Its steps, and whether each is for the next boot only. Empty: everything is as planned already.
    pub steps: Vec<(Step, bool)>,
    /// What to know.
    pub notes: Vec<String>,
}

/// A reason not to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A sentence: what, where, and how to mend it.
    pub why: String,
    /// Whether the plan itself is wrong, rather than this host another one.
    pub is_malformed: bool,
}

/// Disciplines without classes, which every role's plan is made of.
const KINDS: [&str; 8] = ["fq", "fq_codel", "cake", "sfq", "pie", "fq_pie", "pfifo_fast", "pfifo"];
/// What kernels and distributions put there by themselves.
const DEFAULTS: [&str; 3] = ["pfifo_fast", "fq_codel", "fq"];

struct Draft<'a, W, R: ?Sized> {
    world: &'a W,
    check: &'a Check<'a, R>,
    plan: &'a Plan,
    refusals: Vec<Refusal>,
    live: Vec<Step>,
    /// Changes that belong in the drop-in.
    lasting: Vec<&'a Change>,
    needs_unit: bool,
    notes: Vec<String>,
}

/// Looks at everything that a plan touches. Changes nothing.
///
/// # Errors
/// All reasons against it, at least one.
pub fn prepare<W: World, R: Root + ?Sized>(
    world: &W,
    plan: &Plan,
    check: &Check<'_, R>,
) -> Result<Prepared, Vec<Refusal>> {
    let mut draft = Draft {
        world,
        check,
        plan,
        refusals: Vec::new(),
        live: Vec::new(),
        lasting: Vec::new(),
        needs_unit: false,
        notes: Vec::new(),
    };
    draft.circumstances();
    if !draft.refusals.is_empty() {
        return Err(draft.refusals);
    }
    draft.changes();
    let mut steps = Vec::new();
    if draft.refusals.is_empty() {
        // Devices before the default: undone in reverse, the default is the old one again when the kernel gives it to a device.
        let (queues, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut draft.live).into_iter().partition(|step| matches!(step, Step::Queues { .. }));
        steps.extend(queues.into_iter().chain(others).map(|step| (step, false)));
        if !check.live_only {
            draft.files(&mut steps);
        }
    }
    if draft.refusals.is_empty() { Ok(Prepared { steps, notes: draft.notes }) } else { Err(draft.refusals) }
}

impl<'a, W: World, R: Root + ?Sized> Draft<'a, W, R> {
    fn refuse(&mut self, why: impl Into<String>) {
        self.refusals.push(Refusal { why: why.into(), is_malformed: false });
    }

    fn malformed(&mut self, why: impl Into<String>) {
        self.refusals.push(Refusal { why: why.into(), is_malformed: true });
    }

    /// Whether this is the host, and one that can be changed.
    fn circumstances(&mut self) {
        let (plan, check) = (self.plan, self.check);
        if plan.schema != PLAN_SCHEMA {
            self.malformed(format!("the plan is of schema {:?}, and this linerate knows {PLAN_SCHEMA}", plan.schema));
            return;
        }
        let (theirs, ours) = (&plan.host, check.host);
        let same =
            if theirs.id.is_empty() || ours.id.is_empty() { theirs.name == ours.name } else { theirs.id == ours.id };
        if !same {
            self.refuse(format!(
                "the plan was made for host {:?}, and this is {:?}: make one here, or for this host's facts",
                theirs.name, ours.name
            ));
        }
        if theirs.kernel != ours.kernel {
            self.refuse(format!(
                "the plan was made for Linux {}, and this host runs {}: make it anew",
                theirs.kernel, ours.kernel
            ));
        }
        if let Some(known) = &check.container {
            self.refuse(format!(
                "this is {known}: linerate changes nothing in one. `linerate plan --format kubernetes` and `--format containerfile` say what \
                 can be set for it, and from where"
            ));
        }
        if self.world.is_read_only("/proc/sys") {
            self.refuse("/proc/sys is mounted read-only here: nothing can be set");
        }
        if !check.live_only && self.world.is_read_only("/etc") {
            self.refuse("/etc is mounted read-only here, so nothing could be kept: --live-only sets values until the next restart");
        }
        for transaction in check.transactions {
            let id = transaction.id;
            match standing(transaction, &self.world.boot_id()) {
                Standing::Damaged => self.refuse(format!(
                    "the journal {} is damaged: `linerate rollback {id} --salvage` undoes what its whole lines name",
                    transaction.path
                )),
                Standing::Interrupted => self.refuse(format!(
                    "transaction {id} was interrupted: `linerate rollback {id}` undoes what it had done"
                )),
                Standing::Waiting if !self.world.is_watched(id) => self.refuse(format!(
                    "transaction {id} waits to be confirmed, and nobody watches it any more: it doesn't undo itself. \
                     `linerate rollback {id}` undoes it"
                )),
                Standing::Waiting => self.refuse(format!(
                    "transaction {id} waits to be confirmed: `linerate confirm` keeps it, `linerate rollback {id}` undoes it"
                )),
                _ => {}
            }
        }
    }

    fn changes(&mut self) {
        let plan = self.plan;
        for (index, change) in plan.changes.iter().enumerate() {
            if plan.changes[..index].iter().any(|earlier| earlier.kind == change.kind && earlier.key == change.key) {
                self.malformed(format!("change {}: {} is named twice", index + 1, change.key));
                continue;
            }
            match change.kind {
                ChangeKind::Sysctl => self.sysctl(index + 1, change),
                ChangeKind::Qdisc => self.queues(index + 1, change),
                ChangeKind::Ring => self.ring(index + 1, change),
            }
        }
    }

    fn sysctl(&mut self, number: usize, change: &'a Change) {
        let wrong = |why: &str| format!("change {number}, {:?}: {why}", change.key);
        let key = match Key::parse(&change.key) {
            Ok(key) if key.to_string() == change.key => key,
            Ok(key) => return self.malformed(wrong(&format!("write it as {key}"))),
            Err(why) => return self.malformed(wrong(&why.to_string())),
        };
        let normal = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ") == text;
        if change.to.is_empty()
            || !normal(&change.to)
            || !normal(&change.from)
            || change.to.chars().any(char::is_control)
        {
            return self.malformed(wrong("a value is one line, its fields parted by single blanks"));
        }
        let Some(found) = Catalogue::builtin().lookup_key(&key) else {
            return self.malformed(wrong("no key that linerate knows: `linerate knobs` lists those it does"));
        };
        if found.knob.importance == Importance::Other {
            return self.malformed(wrong("no matter of the network's performance: linerate doesn't set it"));
        }
        if !SET.iter().any(|family| change.key.starts_with(family)) {
            return self.malformed(wrong(
                "linerate sets keys of TCP, UDP, queues, neighbours and connection tracking only: writing others, such as those \
                 that forward, filter or disable, has effects that no rollback takes back",
            ));
        }
        let value = match self.world.sysctl(&change.key) {
            Ok(Some(value)) => value,
            Ok(None) => {
                let module = found.knob.module.as_ref();
                let because = module.map_or(String::new(), |module| {
                    format!(
                        ": the module {module} brings it, and is not loaded. Load it (modprobe {module}) and plan anew"
                    )
                });
                return self.refuse(wrong(&format!("this kernel has no such key{because}")));
            }
            Err(error) => return self.refuse(wrong(&error.to_string())),
        };
        // By reading and not by the plan: what nobody changed needs no second look at the plan.
        if value != change.to {
            if value != change.from {
                return self.refuse(wrong(&format!(
                    "it is {value} now, and the plan saw {}: somebody has changed it since, so plan anew",
                    if change.from.is_empty() { "nothing" } else { &change.from }
                )));
            }
            if let (Kind::Bytes | Kind::Pages | Kind::Packets, Some(why)) =
                (found.knob.kind, lowers(&value, &change.to))
            {
                return self.refuse(wrong(&format!("{why}: linerate lowers no size that is there")));
            }
            self.live.push(Step::Sysctl { key: change.key.clone(), old: value, new: change.to.clone() });
        }
        self.needs_unit |= found.instance.is_some_and(|instance| !matches!(instance.as_str(), "all" | "default"));
        if change.key == "net.ipv4.tcp_congestion_control" && change.to == "bbr3" && !self.check.live_only {
            self.bbr3();
        }
        self.lasting.push(change);
    }

    /// `bbr3` is a BPF program here, which something has to load before the key is set.
    fn bbr3(&mut self) {
        let unit = "/etc/systemd/system/linerate-bbr3.service";
        if matches!(self.world.look(unit), Ok(Found::Nothing) | Err(_)) && !self.world_has_bbr3_module() {
            self.refuse(
                "bbr3 is loaded, but not at boot, so the next boot could not choose it: `linerate cc enable` first, or --live-only",
            );
        }
    }

    fn world_has_bbr3_module(&self) -> bool {
        matches!(self.check.root.entry("/sys/module/tcp_bbr3"), Ok(Some(_)))
    }

    fn queues(&mut self, number: usize, change: &Change) {
        let wrong = |why: &str| format!("change {number}, {:?}: {why}", change.key);
        let Some((device, place)) = change.key.split_once(' ') else {
            return self.malformed(wrong("a discipline's place is `DEVICE root` or `DEVICE leaves`"));
        };
        let to: Vec<String> = change.to.split(' ').map(str::to_owned).collect();
        if !matches!(place, "root" | "leaves") || !is_device(device) {
            return self.malformed(wrong("a discipline's place is `DEVICE root` or `DEVICE leaves`"));
        }
        if let Some(kind) = to.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            return self.malformed(wrong(&format!("{kind:?} is none of {}", KINDS.join(", "))));
        }
        let tree = match self.world.queues(device) {
            Ok(Some(tree)) => tree,
            Ok(None) => {
                return self.refuse(wrong(
                    "there is no such device: it was renamed or taken out since the plan was made, so plan anew",
                ));
            }
            Err(error) => return self.refuse(wrong(&error.to_string())),
        };
        let kinds = if tree.root == "mq" { tree.leaves.clone() } else { vec![tree.root.clone()] };
        if super::act::has_kinds(&tree, &to) && (tree.root == "mq") == (place == "leaves") {
            self.needs_unit = true;
            return;
        }
        if tree.handle != 0 || !kinds.iter().all(|kind| DEFAULTS.contains(&kind.as_str())) {
            return self.refuse(wrong(&format!(
                "{device} has {}{}: somebody has set that, and linerate replaces only what the kernel puts there by itself",
                tree.root,
                if tree.handle == 0 { String::new() } else { format!(" (handle {:x}:)", tree.handle) }
            )));
        }
        let fits = if place == "leaves" {
            tree.root == "mq" && to.len() == kinds.len()
        } else {
            tree.root != "mq" && to.len() == 1
        };
        if !fits || change.from != kinds.join(" ") {
            return self.refuse(wrong(&format!(
                "{device} has {} with {} now, and the plan saw {}: plan anew",
                tree.root,
                kinds.join(" "),
                change.from
            )));
        }
        if kinds.iter().any(|kind| *kind != kinds[0]) {
            return self
                .refuse(wrong("its queues have different disciplines, which no rollback could give back exactly"));
        }
        self.needs_unit = true;
        self.live.push(Step::Queues { device: device.to_owned(), old: tree, new: to });
    }

    fn ring(&mut self, number: usize, change: &Change) {
        let wrong = |why: &str| format!("change {number}, {:?}: {why}", change.key);
        let (device, ring) = match change.key.split_once(' ') {
            Some((device, "rx")) if is_device(device) => (device, Ring::Rx),
            Some((device, "tx")) if is_device(device) => (device, Ring::Tx),
            _ => return self.malformed(wrong("a ring is `DEVICE rx` or `DEVICE tx`")),
        };
        let Ok(to) = change.to.parse::<u32>() else { return self.malformed(wrong("a ring's size is a number")) };
        let (size, most) = match self.world.ring(device, ring) {
            Ok(Some(found)) => found,
            Ok(None) => return self.refuse(wrong("there is no such device, or it has no rings that can be set")),
            Err(error) => return self.refuse(wrong(&error.to_string())),
        };
        self.needs_unit = true;
        if size == to {
            return;
        }
        if size.to_string() != change.from {
            return self.refuse(wrong(&format!("it is {size} now, and the plan saw {}: plan anew", change.from)));
        }
        if to > most || to < size {
            return self
                .refuse(wrong(&format!("{to} is not between {size}, which is there, and {most}, the most it can be")));
        }
        self.live.push(Step::Ring { device: device.to_owned(), ring, old: size, new: to });
    }

    /// The steps for the next boot.
    fn files(&mut self, steps: &mut Vec<(Step, bool)>) {
        let mut made: Vec<String> = Vec::new();
        if let Some((earlier, new)) = self.drop_in() {
            self.wins(&new);
            self.put(steps, &mut made, DROP_IN, earlier, new);
        }
        let loaded = timeline::modules_loaded_at_boot(self.check.root);
        let mut modules: Vec<String> = self.lasting.iter().filter_map(|change| own::modules_of(&change.key)).collect();
        modules.retain(|module| !loaded.contains(module));
        if !modules.is_empty()
            && let Some(earlier) = self.own_file(MODULES)
        {
            let new = own::modules(earlier.as_deref(), &modules);
            self.put(steps, &mut made, MODULES, earlier, new);
        }
        if self.needs_unit {
            self.unit(steps, &mut made);
        }
    }

    /// The drop-in as it is and as it will be; `None`: nothing to write.
    fn drop_in(&mut self) -> Option<(Option<String>, String)> {
        let earlier = self.own_file(DROP_IN)?;
        let there = earlier.as_deref().map(own::settings).unwrap_or_default();
        let new = |change: &&&Change| !there.contains(&(change.key.clone(), change.to.clone()));
        let fresh: Vec<&Change> = self.lasting.iter().filter(new).copied().collect();
        if fresh.is_empty() {
            return None;
        }
        let text = own::drop_in(earlier.as_deref(), self.plan, &fresh);
        Some((earlier, text))
    }

    fn unit(&mut self, steps: &mut Vec<(Step, bool)>, made: &mut Vec<String>) {
        if !self.check.systemd {
            self.notes.push(
                "this machine was not started by systemd: have your own boot scripts run `linerate boot` once the network is configured"
                    .to_owned(),
            );
            return;
        }
        let Some(earlier) = self.own_file(UNIT) else { return };
        let exec = match &self.check.exec {
            Ok(exec) => exec,
            Err(why) => return self.refuse(format!("a unit is needed that sets devices again at boot: {why}")),
        };
        let new = own::unit(exec);
        if earlier.as_deref() != Some(&new) {
            self.put(steps, made, UNIT, earlier, new);
        }
        let target = UNIT.to_owned();
        match self.world.look(WANTED) {
            Ok(Found::Nothing) => {
                self.folders(steps, made, WANTED);
                steps.push((Step::Link { path: WANTED.to_owned(), target }, true));
            }
            Ok(Found::Link(there)) if there == target => {}
            Ok(_) => self.refuse(format!("{WANTED} is there and is not linerate's")),
            Err(error) => self.refuse(format!("{WANTED}: {error}")),
        }
    }

    fn put(
        &mut self,
        steps: &mut Vec<(Step, bool)>,
        made: &mut Vec<String>,
        path: &str,
        old: Option<String>,
        new: String,
    ) {
        if old.as_deref() == Some(&new) {
            return;
        }
        self.folders(steps, made, path);
        let mode = match self.world.look(path) {
            Ok(Found::File { mode, .. }) => mode,
            _ => 0o644,
        };
        let old = old.map(|text| Content { text, mode });
        steps.push((Step::File { path: path.to_owned(), old, new: Content { text: new, mode: 0o644 } }, true));
    }

    /// Steps for the directories above a path that aren't there.
    fn folders(&mut self, steps: &mut Vec<(Step, bool)>, made: &mut Vec<String>, path: &str) {
        let above = path.match_indices('/').skip(1).map(|(at, _)| &path[..at]);
        for folder in above {
            if !made.iter().any(|one| one == folder) && matches!(self.world.look(folder), Ok(Found::Nothing)) {
                made.push(folder.to_owned());
                steps.push((Step::Folder { path: folder.to_owned() }, true));
            }
        }
    }

    /// The text of a file of linerate's, `Some(None)` where there is none. A file that isn't as some transaction left it is refused.
    fn own_file(&mut self, path: &str) -> Option<Option<String>> {
        let text = match self.world.look(path) {
            Ok(Found::Nothing) => return Some(None),
            Ok(Found::File { bytes, own: true, .. }) => String::from_utf8(bytes).ok(),
            Ok(_) => None,
            Err(error) => {
                self.refuse(format!("{path}: {error}"));
                return None;
            }
        };
        let Some(text) = text.filter(|text| own::is_own(text)) else {
            self.refuse(format!("{path} is there and was not written by `linerate apply` (its first line would be {MARK:?}): move it away"));
            return None;
        };
        if in_force(self.check.transactions, path) == Some(text.as_str()) {
            return Some(Some(text));
        }
        self.refuse(format!(
            "{path} is not as linerate left it, or its journal is gone: compare it with `linerate verify`, and move it away"
        ));
        None
    }

    /// Whether the drop-in would have the last word at boot for each of its keys.
    fn wins(&mut self, text: &str) {
        let with = WithFile { below: self.check.root, path: DROP_IN, text };
        let settings = own::settings(text);
        let keys: Vec<String> =
            settings.iter().filter_map(|(key, _)| Some(Key::parse(key).ok()?.path().to_owned())).collect();
        let boot = timeline::boot(&with, &keys);
        let verdicts = boot.verdicts();
        let system = timeline::sysctl_system(&with, &keys, crate::effective::Dialect::Procps);
        let later = system.verdicts();
        for ((key, value), path) in settings.iter().zip(&keys) {
            let winner = verdicts.get(path.as_str()).and_then(|verdict| verdict.winner);
            let Some((step, write)) = winner else {
                self.refuse(format!("{key}: a line that excludes it keeps {DROP_IN} from setting it at boot"));
                continue;
            };
            let (place, line) = step.files[write.file].place(write.span);
            let normal = write.value.split_whitespace().collect::<Vec<_>>().join(" ");
            if place != DROP_IN && normal != *value {
                let fix = match step.applier {
                    Applier::Ufw => "ufw sets it again at every boot and reload, so change it there",
                    Applier::Tuned | Applier::TunedAgain => {
                        "tuned sets it again whenever its profile is applied, so change it there"
                    }
                    _ => "it is read later, so take the line out there",
                };
                self.refuse(format!("{key}: {place}:{line} sets it to {normal} ({}): {fix}", step.applier.name()));
            } else if let Some((step, write)) = later.get(path.as_str()).and_then(|verdict| verdict.winner) {
                let (place, line) = step.files[write.file].place(write.span);
                if place != DROP_IN && write.value.trim() != value {
                    self.notes.push(format!(
                        "{place}:{line} sets {key} too. The boot does not read it, but `sysctl --system` does, and then it wins"
                    ));
                }
            }
        }
    }
}

/// What the latest transaction in force has made of a file.
pub(super) fn in_force<'t>(transactions: &'t [Transaction], path: &str) -> Option<&'t str> {
    transactions.iter().rev().filter_map(|transaction| transaction.journal.as_ref().ok()).find_map(|journal| {
        let step = journal.steps.iter().find_map(|(step, _)| match step {
            Step::File { path: there, new, .. } if there == path => Some(new.text.as_str()),
            _ => None,
        });
        step.filter(|_| journal.kept && journal.closed.is_none())
    })
}

/// Whether some number becomes smaller, as words.
fn lowers(from: &str, to: &str) -> Option<String> {
    let numbers =
        |text: &str| text.split_whitespace().map(|field| field.parse::<u64>().ok()).collect::<Option<Vec<_>>>();
    let (old, new) = (numbers(from)?, numbers(to)?);
    // The largest number means that there is no limit, which is no size (tcp_notsent_lowat).
    let lower = old.iter().zip(&new).find(|(old, new)| new < old && **old != u64::from(u32::MAX))?;
    Some(format!("{} would become {}", lower.0, lower.1))
}

/// dev_valid_name() of the kernel.
fn is_device(name: &str) -> bool {
    !name.is_empty()
        && name.len() < 16
        && !matches!(name, "." | "..")
        && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control())
}

/// A tree of files with one more in it.
struct WithFile<'a, R: ?Sized> {
    below: &'a R,
    path: &'a str,
    text: &'a str,
}

impl<R: Root + ?Sized> Root for WithFile<'_, R> {
    fn entry(&self, path: &str) -> Result<Option<Entry>, Unreadable> {
        if path == self.path {
            return Ok(Some(Entry::File));
        }
        let entry = self.below.entry(path)?;
        let above = self.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        Ok(entry.or(above.then_some(Entry::Directory)))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Unreadable> {
        if path == self.path { Ok(self.text.as_bytes().to_vec()) } else { self.below.read(path) }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Unreadable> {
        let mut names = match self.below.entry(path)? {
            Some(_) => self.below.list(path)?,
            None => Vec::new(),
        };
        let own = self.path.rsplit_once('/').filter(|(folder, _)| *folder == path).map(|(_, name)| name.to_owned());
        names.extend(own.filter(|own| !names.contains(own)));
        Ok(names)
    }
}

/// A tree as it is right after the kernel has made it.
pub(super) fn is_untouched(tree: &Tree) -> bool {
    tree.handle == 0
}
