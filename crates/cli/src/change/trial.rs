//! Changes for a trial: each a transaction of its own, of live values only, so that a `tune` that is killed leaves nothing that
//! `linerate rollback` (or a restart) does not undo. What was only tried leaves no journal; what is kept is one transaction.

use std::path::PathBuf;

use apply::{Live, Lock};
use tuning::journal::{Begin, JOURNAL_FORMAT};
use tuning::plan::{Change, ChangeKind, Host, Plan};
use tuning::transaction::{
    self, Check, Failed, Found, Prepared, Refusal, Request, STATE, Standing, Transaction, World, standing,
};
use units::Duration;

pub use tuning::transaction::Ended;

use super::apply_live::Disk;
use super::{load, lock, render};
use crate::exit::Failure;

/// How the purpose of a trial's journal begins.
const PURPOSE: &str = "tune tries ";

/// Whether a transaction is a trial's.
pub fn is_trial(transaction: &Transaction) -> bool {
    transaction.journal.as_ref().is_ok_and(|journal| journal.begin.purpose.starts_with(PURPOSE))
}

/// Where the machine is.
#[derive(clap::Args, Debug, Clone)]
pub struct Place {
    /// A folder that stands for the machine's files
    #[arg(long, value_name = "DIR", default_value = "/", hide = true, conflicts_with = "lab")]
    root: PathBuf,
    /// Act in a network namespace other than the host's
    #[arg(long, hide = true, conflicts_with = "lab")]
    pub in_namespace: bool,
}

/// The right to try changes on this host, and what is tried at present.
pub struct Trials {
    live: Live,
    place: Place,
    container: Option<String>,
    made: Vec<Made>,
    /// Whether the state directory is this trial's, to be taken away with it.
    fresh: bool,
    _lock: Lock,
}

/// Changes that are set.
struct Made {
    /// `None`: they were so already.
    id: Option<u32>,
    changes: Vec<(ChangeKind, String)>,
}

fn name(change: &Change) -> (ChangeKind, String) {
    (change.kind, change.key.clone())
}

impl Trials {
    /// Takes the lock and looks whether this host may be changed at all.
    ///
    /// # Errors
    /// Without root, while another linerate is at work, and where something stands against it as with `apply`.
    pub fn begin(place: &Place) -> Result<Self, Failure> {
        if !nix::unistd::geteuid().is_root() {
            return Err(Failure::refused(
                "only root may change the host: run it with sudo, or look first with --dry-run",
            ));
        }
        if !place.root.is_dir() {
            return Err(Failure::usage(format_args!("{} is no folder", place.root.display())));
        }
        let mut live = Live::new(&place.root).with_guard(super::apply::guard_command(&place.root)?);
        let fresh = matches!(live.look(STATE), Ok(Found::Nothing));
        let lock = lock(&mut live, "tune")?;
        let container = if place.in_namespace { None } else { crate::plan::facts::not_the_host() };
        let trials = Self { live, place: place.clone(), container, made: Vec::new(), fresh, _lock: lock };
        let boot_id = trials.live.boot_id();
        let all = load(&trials.live)?;
        if all.iter().any(|one| is_trial(one) && standing(one, &boot_id) != Standing::Closed) {
            return Err(Failure::refused(
                "an earlier `linerate tune` was killed while it tried something: `linerate rollback` puts that back first",
            ));
        }
        Ok(trials)
    }

    /// The steps that a plan needs on this host now, or why it can't be.
    ///
    /// # Errors
    /// What `apply` would refuse too.
    pub fn check(&self, plan: &Plan, live_only: bool) -> Result<Prepared, Failure> {
        let transactions = load(&self.live)?;
        let disk = Disk::new(&self.place.root);
        let host = Host { ..plan.host.clone() };
        let check = Check {
            host: &host,
            container: self.container.clone(),
            root: &disk,
            transactions: &transactions,
            live_only,
            exec: crate::installed::own_program(),
            systemd: self.live.has_systemd() || !self.live.is_machine(),
        };
        transaction::prepare(&self.live, plan, &check).map_err(|refusals| refused(&refusals))
    }

    /// Sets changes for a trial: all of them or, with an error, none.
    ///
    /// # Errors
    /// Where one can't be set; what was set is undone, or the failure says what is not.
    pub fn set(&mut self, plan: &Plan, changes: &[Change]) -> Result<(), Failure> {
        let part = Plan { changes: changes.to_vec(), ..plan.clone() };
        let prepared = self.check(&part, true)?;
        let changes: Vec<_> = changes.iter().map(name).collect();
        if prepared.steps.is_empty() {
            self.made.push(Made { id: None, changes });
            return Ok(());
        }
        let keys: Vec<&str> = changes.iter().map(|(_, key)| key.as_str()).collect();
        let begin = begin(&part, format!("{PURPOSE}{}", keys.join(", ")), None, true);
        match transaction::apply(&mut self.live, Request { begin, steps: prepared.steps }) {
            Ok(Ended::Kept { id } | Ended::Waiting { id, .. }) => {
                self.made.push(Made { id: Some(id), changes });
                Ok(())
            }
            Err(failed) => Err(failure(failed)),
        }
    }

    /// Takes changes back that were set for a trial.
    ///
    /// # Errors
    /// Where one can't be taken back, or somebody else has changed it meanwhile.
    pub fn unset(&mut self, changes: &[Change]) -> Result<(), Failure> {
        let names: Vec<_> = changes.iter().map(name).collect();
        self.take_back(|made| made.changes.iter().all(|change| names.contains(change)))
    }

    /// Takes back everything that is tried.
    ///
    /// # Errors
    /// As [`unset`](Self::unset); what can be is taken back all the same.
    pub fn put_back(&mut self) -> Result<(), Failure> {
        self.take_back(|_| true)
    }

    fn take_back(&mut self, which: impl Fn(&Made) -> bool) -> Result<(), Failure> {
        let mut result = Ok(());
        // The last one first, as `rollback --all`.
        for index in (0..self.made.len()).rev() {
            if which(&self.made[index]) {
                let made = self.made.remove(index);
                if let Some(id) = made.id {
                    result = result.and(self.undo(id));
                }
            }
        }
        result
    }

    fn undo(&mut self, id: u32) -> Result<(), Failure> {
        let all = load(&self.live)?;
        let missing =
            || Failure::not_undone(format_args!("the journal of trial {id} is gone: what it set may still be"));
        let transaction = all.iter().find(|transaction| transaction.id == id).ok_or_else(missing)?;
        let undone = transaction::roll_back(&mut self.live, transaction, false, "it was a trial")
            .map_err(|damage| Failure::not_undone(format_args!("{}: {damage}", transaction.path)))?;
        if !undone.is_complete() || undone.journal.is_some() {
            return Err(Failure::not_undone(render::failure("a trial could not be taken back", &undone)));
        }
        let left: String = undone.left().map(render::left).collect();
        if !left.is_empty() {
            return Err(Failure::failed(format_args!("somebody else changes the host while it is tuned:{left}")));
        }
        // Nobody needs to read that something was tried; a journal that stays does no harm.
        let _ = transaction::forget(&mut self.live, id);
        Ok(())
    }

    /// Makes one lasting transaction of what the plan holds, in place of what is tried.
    ///
    /// # Errors
    /// Where it can't be made: then nothing is set any more, or the failure says what is.
    pub fn keep(&mut self, plan: &Plan, confirm: Option<Duration>, live_only: bool) -> Result<Option<Ended>, Failure> {
        self.put_back()?;
        let prepared = self.check(plan, live_only)?;
        if prepared.steps.is_empty() {
            return Ok(None);
        }
        let patience = super::apply::patience(confirm)?;
        let begin = begin(plan, format!("{}, measured by tune", super::apply::purpose(plan)), patience, live_only);
        let ended = transaction::apply(&mut self.live, Request { begin, steps: prepared.steps }).map_err(failure)?;
        Ok(Some(ended))
    }

    /// Seconds until a deadline.
    pub fn seconds_left(&self, deadline_ns: u64) -> u64 {
        super::seconds_left(&self.live, deadline_ns)
    }
}

impl Drop for Trials {
    fn drop(&mut self) {
        // Only on the way out of an error that came before the job's own end.
        let _ = self.put_back();
        if self.fresh && transaction::load(&self.live).is_ok_and(|all| all.is_empty()) {
            let _ = transaction::uninstall_files(&mut self.live);
        }
    }
}

fn begin(plan: &Plan, purpose: String, confirm_ns: Option<u64>, live_only: bool) -> Begin {
    Begin {
        format: JOURNAL_FORMAT.to_owned(),
        plan: super::apply::fingerprint(plan),
        purpose,
        kernel: plan.host.kernel.clone(),
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        confirm_ns,
        live_only,
        ..Begin::default()
    }
}

fn refused(refusals: &[Refusal]) -> Failure {
    let sentences: Vec<&str> = refusals.iter().map(|refusal| refusal.why.as_str()).collect();
    match sentences.as_slice() {
        [one] => Failure::refused(format_args!("this host can't be changed: {one}")),
        many => Failure::refused(
            many.iter().fold("this host can't be changed:".to_owned(), |text, why| text + "\n  - " + why),
        ),
    }
}

fn failure(failed: Failed) -> Failure {
    match failed {
        Failed::Step { cause, undone, .. } => {
            let text = render::failure(&cause, &undone);
            if undone.is_complete() { Failure::failed(text) } else { Failure::not_undone(text) }
        }
        other => Failure::failed(other),
    }
}
