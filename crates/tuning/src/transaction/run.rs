//! Apply, confirm, roll back.

use super::act::{self, Circumstances, Fate, StepError};
use super::file;
use super::own;
use super::store::{self, Pen, STATE, Standing, StoreError, Transaction, standing};
use super::world::{Found, World};
use crate::journal::{Begin, Damage, Journal, Left, Record, Step};

/// What to do as one transaction.
#[derive(Debug, Clone)]
pub struct Request {
    /// What the journal says of it; its number and boot are filled in.
    pub begin: Begin,
    /// The steps, and whether each is for the next boot only.
    pub steps: Vec<(Step, bool)>,
}

/// How an apply or a confirmation ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All is made and stays.
    Kept {
        /// The transaction's number.
        id: u32,
    },
    /// The live changes are made and wait for `confirm`.
    Waiting {
        /// The transaction's number.
        id: u32,
        /// `CLOCK_BOOTTIME` when they are undone.
        deadline_ns: u64,
    },
}

/// Why it didn't, and what is left of it.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Before anything was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The guard could not be started, so nothing was changed.
    #[error("nothing was changed, since what would undo it could not be started: {0}")]
    Guard(std::io::Error),
    /// A step failed.
    #[error("{cause}")]
    Step {
        /// The transaction's number.
        id: u32,
        /// Which, and why.
        cause: String,
        /// What became of the others.
        undone: Box<Undone>,
    },
    /// Its time is over.
    #[error("the time to confirm transaction {id} is over: {advice}")]
    Late {
        /// The transaction's number.
        id: u32,
        /// What to do.
        advice: String,
    },
    /// There is no transaction that waits to be confirmed.
    #[error("{0}")]
    NothingWaits(String),
}

/// What became of the steps of a transaction that was undone, the last step first.
#[derive(Debug, Default)]
pub struct Undone {
    /// The transaction's number.
    pub id: u32,
    /// Each step that was begun, and its fate.
    pub fates: Vec<(Step, Fate)>,
    /// Why the journal could not be closed, though everything is undone.
    pub journal: Option<String>,
    /// What could not be read of a damaged journal, so that steps of which nothing is known may still be in force.
    pub unreadable: Option<String>,
    /// Files of linerate's that are still there then.
    pub remains: Vec<String>,
}

impl Undone {
    /// What could not be undone.
    pub fn failures(&self) -> impl Iterator<Item = (&Step, &StepError)> {
        self.fates.iter().filter_map(|(step, fate)| match fate {
            Fate::Failed(why) => Some((step, why)),
            _ => None,
        })
    }

    /// What somebody else has changed since, and was left.
    pub fn left(&self) -> impl Iterator<Item = &Left> {
        self.fates.iter().filter_map(|(_, fate)| match fate {
            Fate::Changed(left) => Some(left),
            _ => None,
        })
    }

    /// Steps whose device or key is gone: taken out, or there under another name and then still as linerate made it.
    pub fn gone(&self) -> impl Iterator<Item = &Step> {
        self.fates.iter().filter(|(_, fate)| matches!(fate, Fate::Gone)).map(|(step, _)| step)
    }

    /// Whether everything is as it was, or somebody else's.
    pub fn is_complete(&self) -> bool {
        self.failures().next().is_none() && self.unreadable.is_none()
    }
}

/// Makes the state directory; it may be there.
fn make_state<W: World>(world: &mut W) -> Result<(), StoreError> {
    for (folder, mode) in [("/var", 0o755), ("/var/lib", 0o755), (STATE, 0o700)] {
        if matches!(world.look(folder).map_err(store::io("read", folder))?, Found::Nothing) {
            world.make_folder(folder, mode).map_err(store::io("make", folder))?;
        }
    }
    Ok(())
}

/// Makes the changes. The caller holds the lock, and has seen that no other transaction is open.
///
/// # Errors
/// [`Failed`]: nothing is changed, or what was changed is undone as [`Failed::Step`] says.
pub fn apply<W: World>(world: &mut W, request: Request) -> Result<Ended, Failed> {
    make_state(world)?;
    let id = store::load(world)?.last().map_or(0, |last| last.id) + 1;
    let boot_id = world.boot_id();
    let begin = Begin { id, boot_id, ..request.begin };
    let confirm = begin.confirm_ns;
    let mut head = vec![Record::Begin(begin)];
    head.extend(request.steps.iter().map(|(step, lasting)| Record::Step { step: step.clone(), lasting: *lasting }));
    head.push(Record::Ready { steps: request.steps.len() });
    let mut pen = Pen::begin(world, id, &head)?;
    let abandon = |world: &mut W, pen: Pen, failed: Failed| {
        // Nothing was done by it; where even that fails, it is found as one that did nothing.
        let _ = pen.destroy(world);
        Err(failed)
    };
    if let Some(patience) = confirm {
        // Until everything is made it counts from now on.
        let record = Record::Deadline { boottime_ns: world.boottime_ns().saturating_add(patience) };
        if let Err(error) = pen.write(world, &record) {
            return abandon(world, pen, error.into());
        }
        if let Err(error) = world.start_guard(id) {
            return abandon(world, pen, Failed::Guard(error));
        }
    }
    let live = make_all(world, &mut pen, &request.steps, |lasting| !lasting);
    let done = live.and_then(|()| match confirm {
        Some(patience) => {
            let deadline_ns = world.boottime_ns().saturating_add(patience);
            pen.write(world, &Record::Deadline { boottime_ns: deadline_ns }).map_err(|error| error.to_string())?;
            pen.write(world, &Record::Waiting).map_err(|error| error.to_string())?;
            Ok(Ended::Waiting { id, deadline_ns })
        }
        None => keep(world, &mut pen, id, &request.steps),
    });
    done.map_err(|cause| {
        let undone = undo_after_failure(world, id, pen, &cause);
        Failed::Step { id, cause, undone: Box::new(undone) }
    })
}

fn make_all<W: World>(
    world: &mut W,
    pen: &mut Pen,
    steps: &[(Step, bool)],
    which: impl Fn(bool) -> bool,
) -> Result<(), String> {
    for (number, (step, lasting)) in steps.iter().enumerate() {
        if !which(*lasting) || !act::check(world, step).map_err(|error| error.to_string())? {
            continue;
        }
        pen.write(world, &Record::Doing { step: number }).map_err(|error| error.to_string())?;
        act::make(world, step).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn keep<W: World>(world: &mut W, pen: &mut Pen, id: u32, steps: &[(Step, bool)]) -> Result<Ended, String> {
    make_all(world, pen, steps, |lasting| lasting)?;
    pen.write(world, &Record::Kept).map_err(|error| error.to_string())?;
    if steps.iter().any(|(step, _)| matches!(step, Step::Link { .. })) {
        // At the next boot the disk is read anyway.
        let _ = world.reload_units();
    }
    Ok(Ended::Kept { id })
}

/// Confirms the transaction that waits: makes its lasting changes.
///
/// # Errors
/// [`Failed::NothingWaits`], [`Failed::Late`], and [`Failed::Step`] where a lasting change failed; then everything is undone, the live changes too.
pub fn confirm<W: World>(world: &mut W) -> Result<Ended, Failed> {
    let boot_id = world.boot_id();
    let all = store::load(world)?;
    let waits = all.iter().rev().find(|transaction| standing(transaction, &boot_id) == Standing::Waiting);
    let Some((transaction, journal)) = waits.and_then(|t| Some((t, t.journal.as_ref().ok()?))) else {
        let reverted = all.last().is_some_and(|last| last.journal.as_ref().is_ok_and(|j| j.begin.confirm_ns.is_some()));
        let why = if reverted {
            ": the last one was not confirmed in time and is undone, or is confirmed already"
        } else {
            ""
        };
        return Err(Failed::NothingWaits(format!("no transaction waits to be confirmed{why}")));
    };
    let id = transaction.id;
    if journal.deadline_ns.is_some_and(|deadline| world.boottime_ns() >= deadline) {
        let advice = if world.is_watched(id) {
            "it is being undone, see `linerate history`".to_owned()
        } else {
            format!("nobody watches it, and `linerate rollback {id}` undoes it")
        };
        return Err(Failed::Late { id, advice });
    }
    let mut pen = Pen::resume(transaction);
    keep(world, &mut pen, id, &journal.steps).map_err(|cause| {
        let undone = undo_after_failure(world, id, pen, &cause);
        Failed::Step { id, cause, undone: Box::new(undone) }
    })
}

fn undo_after_failure<W: World>(world: &mut W, id: u32, pen: Pen, cause: &str) -> Undone {
    // What was written is read again: it says which step was under way.
    let read = store::load(world).ok().and_then(|all| all.into_iter().find(|transaction| transaction.id == id));
    match read {
        Some(transaction) => match &transaction.journal {
            Ok(journal) => undo_all(world, Pen::resume(&transaction), journal, &format!("failed: {cause}")),
            Err(_) => Undone { id, journal: Some("the journal can't be read".into()), ..Undone::default() },
        },
        None => {
            drop(pen);
            Undone { id, journal: Some("the journal can't be read".into()), ..Undone::default() }
        }
    }
}

fn undo_all<W: World>(world: &mut W, mut pen: Pen, journal: &Journal, why: &str) -> Undone {
    let same_boot = journal.begin.boot_id == world.boot_id();
    // Once a lasting file may be there, the boot may have set live values from it.
    let lasts =
        journal.kept || journal.steps.iter().zip(&journal.begun).any(|((_, lasting), begun)| *lasting && *begun);
    let live = same_boot || (lasts && !journal.begin.live_only);
    // Restoring comes before telling: where the journal can't be written, values can.
    let _ = pen.write(world, &Record::Undoing);
    let mut undone = Undone { id: journal.begin.id, ..Undone::default() };
    if let (Some((from, to)), true) = (&journal.borrowed, same_boot)
        && world.sysctl("net.core.default_qdisc").ok().flatten().as_ref() == Some(to)
    {
        let step = Step::Sysctl { key: "net.core.default_qdisc".into(), old: from.clone(), new: to.clone() };
        let fate = act::undo(world, None, &step, Circumstances { live: true, in_flight: false });
        if matches!(fate, Fate::Failed(_)) {
            undone.fates.push((step, fate));
        } else {
            let _ = pen.write(world, &Record::Returned);
        }
    }
    for (number, (step, _)) in journal.steps.iter().enumerate().rev() {
        if !journal.begun[number] {
            continue;
        }
        let in_flight = same_boot && journal.in_flight == Some(number);
        let fate = act::undo(world, Some(&mut pen), step, Circumstances { live, in_flight });
        undone.fates.push((step.clone(), fate));
    }
    if journal.steps.iter().zip(&journal.begun).any(|((step, _), begun)| *begun && matches!(step, Step::Link { .. })) {
        let _ = world.reload_units();
    }
    if undone.is_complete() {
        let left = undone.left().cloned().collect();
        let closed = pen.write(world, &Record::Closed { why: why.to_owned(), left });
        undone.journal = closed.err().map(|error| error.to_string());
    }
    undone
}

/// Undoes one transaction: the caller has seen that no later one is in force.
///
/// `salvage`: follow the whole lines of a damaged journal.
///
/// # Errors
/// [`Damage`] of a damaged journal.
pub fn roll_back<W: World>(
    world: &mut W,
    transaction: &Transaction,
    salvage: bool,
    why: &str,
) -> Result<Undone, Damage> {
    match &transaction.journal {
        Ok(journal) => Ok(undo_all(world, Pen::resume(transaction), journal, why)),
        Err(damage) if !salvage => Err(damage.clone()),
        Err(_) => {
            let journal = Journal::salvage(&transaction.bytes);
            // Of which boot it is may be among what can't be read.
            let boot = &journal.begin.boot_id;
            let live = boot.is_empty() || *boot == world.boot_id() || journal.kept;
            let unreadable = Journal::unreadable(&transaction.bytes);
            let mut undone = Undone { id: transaction.id, unreadable, ..Undone::default() };
            for (step, _) in journal.steps.iter().rev() {
                let fate = act::undo(world, None, step, Circumstances { live, in_flight: false });
                undone.fates.push((step.clone(), fate));
            }
            if undone.unreadable.is_some() {
                undone.remains = own::files(world);
            }
            if undone.failures().next().is_none() {
                // Kept for whoever wants to know what was in it, under a name that no command reads.
                let aside = format!("{}.damaged", transaction.path);
                undone.journal = world.rename(&transaction.path, &aside).err().map(|error| error.to_string());
            }
            Ok(undone)
        }
    }
}

/// Closes the journals of transactions that a restart has undone. Called with the lock held, before anything else is done.
///
/// # Errors
/// [`StoreError`].
pub fn close_other_boots<W: World>(world: &mut W) -> Result<(), StoreError> {
    let boot_id = world.boot_id();
    for transaction in store::load(world)? {
        if standing(&transaction, &boot_id) == Standing::OfAnotherBoot {
            let why = "the machine was started anew before it was confirmed or complete".to_owned();
            let mut pen = Pen::resume(&transaction);
            pen.write(world, &Record::Closed { why, left: Vec::new() })?;
        }
    }
    Ok(())
}

/// Removes the journal of a transaction that is undone: one that was only for a trial, and that nobody needs to read about.
///
/// # Errors
/// [`StoreError`]; also where it can't be read. One that is not undone is left.
pub fn forget<W: World>(world: &mut W, id: u32) -> Result<(), StoreError> {
    let boot_id = world.boot_id();
    let all = store::load(world)?;
    let closed =
        all.iter().find(|transaction| transaction.id == id && standing(transaction, &boot_id) == Standing::Closed);
    match closed {
        Some(transaction) => file::remove(world, &transaction.path).map_err(store::io("remove", &transaction.path)),
        None => Ok(()),
    }
}

/// Removes files of linerate's of which no journal tells; their names.
///
/// # Errors
/// [`StoreError`].
pub fn remove_orphans<W: World>(world: &mut W) -> Result<Vec<String>, StoreError> {
    let all = store::load(world)?;
    let orphans = own::orphans(world, &all);
    for path in &orphans {
        file::remove(world, path).map_err(store::io("remove", path))?;
    }
    if orphans.iter().any(|path| path == own::UNIT) {
        let _ = world.reload_units();
    }
    Ok(orphans)
}

/// Removes the journals and the state directory. The caller has rolled everything back; the lock's file is the caller's. Journals that
/// were damaged and set aside stay, and so does then the directory.
///
/// # Errors
/// [`StoreError`].
pub fn uninstall_files<W: World>(world: &mut W) -> Result<(), StoreError> {
    let damaged =
        world.list(STATE).map_err(store::io("read", STATE))?.iter().any(|name| name.ends_with(".journal.damaged"));
    for name in world.list(STATE).map_err(store::io("read", STATE))? {
        let own = [".journal", ".journal.linerate"].iter().any(|end| name.ends_with(end));
        if own || name == "lock" {
            let path = format!("{STATE}/{name}");
            file::remove(world, &path).map_err(store::io("remove", &path))?;
        }
    }
    if damaged {
        return Ok(());
    }
    world.remove_folder(STATE).map_err(store::io("remove", STATE))
}
