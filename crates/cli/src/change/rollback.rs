//! `linerate rollback`.

use std::io::Write;

use serde_json::json;
use tuning::transaction::{self, STATE, Standing, Transaction, Undone, World, standing};

use super::apply_live::Live;
use super::{Place, load, lock, render, trial};
use crate::exit::{Exit, Failure};
use crate::{document, output, stop};

/// Arguments of `rollback`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The transaction [default: the last one that is in force]
    #[arg(value_name = "ID", conflicts_with = "all")]
    id: Option<u32>,
    /// Undo all of them, the last one first
    #[arg(long)]
    all: bool,
    /// Of a damaged journal, undo what its whole lines name
    #[arg(long)]
    salvage: bool,
    #[command(flatten)]
    place: Place,
}

/// Undoes one transaction or all.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut live = arguments.place.live()?;
    let _signals = stop::on_signal()?;
    if load(&live)?.is_empty() && arguments.id.is_none() {
        return finish(&arguments.place, "rollback", &[]);
    }
    if let (Some(id), true) = (arguments.id, load(&live)?.is_empty()) {
        return Err(Failure::usage(format_args!("no transaction {id}: nothing is applied here")));
    }
    let _lock = lock(&mut live, "rollback")?;
    let transactions = load(&live)?;
    let open = open(&live, &transactions);
    let chosen: Vec<&Transaction> = match arguments.id {
        None if arguments.all => open,
        None => last(open),
        Some(id) => vec![by_id(id, &transactions, &open)?],
    };
    let (undone, refusal) = undo(&mut live, &chosen, arguments.salvage);
    match refusal {
        Some(refusal) if undone.is_empty() => Err(refusal),
        Some(refusal) => finish(&arguments.place, "rollback", &undone).and(Err(refusal)),
        None => finish(&arguments.place, "rollback", &undone),
    }
}

/// Those in force, the last one first.
pub fn open<'t>(live: &Live, transactions: &'t [Transaction]) -> Vec<&'t Transaction> {
    let is_open = |transaction: &&Transaction| standing(transaction, &live.boot_id()) != Standing::Closed;
    transactions.iter().rev().filter(is_open).collect()
}

/// The last one; where a `tune` was killed, all that it was trying.
fn last(open: Vec<&Transaction>) -> Vec<&Transaction> {
    let trials = open.iter().take_while(|transaction| trial::is_trial(transaction)).count();
    open.into_iter().take(trials.max(1)).collect()
}

fn by_id<'t>(id: u32, all: &'t [Transaction], open: &[&'t Transaction]) -> Result<&'t Transaction, Failure> {
    let found = all.iter().find(|transaction| transaction.id == id);
    let found =
        found.ok_or_else(|| Failure::usage(format_args!("no transaction {id}: `linerate history` lists them")))?;
    match open.first() {
        Some(last) if last.id > id && open.iter().any(|transaction| transaction.id == id) => Err(Failure::refused(
            format_args!("transaction {} came later and stands on {id}: roll that back first, or --all", last.id),
        )),
        _ if open.iter().any(|transaction| transaction.id == id) => Ok(found),
        _ => Err(Failure::usage(format_args!("transaction {id} is rolled back already"))),
    }
}

/// Undoes them in this order; ends at the first that could not be undone, with the reason where its journal is damaged.
pub fn undo(live: &mut Live, chosen: &[&Transaction], salvage: bool) -> (Vec<Undone>, Option<Failure>) {
    let mut all = Vec::new();
    for transaction in chosen {
        let undone = match transaction::roll_back(live, transaction, salvage, "rolled back") {
            Ok(undone) => undone,
            Err(damage) => {
                let refusal = Failure::refused(format_args!(
                    "{}: {damage}. Nothing was done by it; `linerate rollback {} --salvage` undoes what its whole lines name",
                    transaction.path, transaction.id
                ));
                return (all, Some(refusal));
            }
        };
        let complete = undone.is_complete();
        all.push(undone);
        if !complete {
            break;
        }
    }
    (all, None)
}

/// Says what came of it.
pub fn finish(place: &Place, command: &str, undone: &[Undone]) -> Result<Exit, Failure> {
    let failed = undone.iter().any(|one| one.failures().next().is_some() || !one.remains.is_empty());
    let unknown = undone.iter().any(|one| one.unreadable.is_some());
    let left = undone.iter().map(|one| one.left().count() + one.gone().count()).sum();
    let exit = match (failed, left) {
        (true, _) => Exit::NotUndone,
        (false, 0) if !unknown => Exit::Done,
        (false, _) => Exit::Found,
    };
    if place.json {
        let mut document = document::head(command);
        let result = match exit {
            Exit::NotUndone => "not_undone",
            _ if unknown => "partly_rolled_back",
            _ if undone.is_empty() => "nothing_to_do",
            _ => "rolled_back",
        };
        document.insert("result".into(), result.into());
        document.insert("transactions".into(), json!(undone.iter().map(render::undone_json).collect::<Vec<_>>()));
        return Ok(told(document::print(document), undone, exit));
    }
    let mut text = String::new();
    if undone.is_empty() {
        text += "Nothing to roll back: no transaction is in force.\n";
    }
    for one in undone {
        let gone = one.gone().map(|step| {
            format!(
                "\n  - {}: it is not there any more; where it has another name now, it is still as linerate made it",
                render::parts(step).0
            )
        });
        let left: String = one.left().map(render::left).chain(gone).collect();
        let failures: Vec<String> =
            one.failures().map(|(step, why)| format!("\n  - {}: {why}", render::parts(step).0)).collect();
        if let (Some(unreadable), true) = (&one.unreadable, failures.is_empty()) {
            let names: Vec<String> = one.fates.iter().map(|(step, _)| render::parts(step).0).collect();
            let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            let remains = match one.remains.is_empty() {
                true => "whatever that named".to_owned(),
                false => format!("{}, and whatever else that named", one.remains.join(", ")),
            };
            text += &format!(
                "Transaction {} is rolled back only as far as its damaged journal can be read. Looked after: {names}; unreadable: \
                 {unreadable}; may still be changed: {remains}. The journal is kept as {STATE}/{:04}.journal.damaged.{left}\n",
                one.id, one.id
            );
        } else if failures.is_empty() {
            let which = if left.is_empty() {
                "everything is as it was before"
            } else {
                "what was still linerate's is as it was before"
            };
            text += &format!("Transaction {} is rolled back: {which}.{left}\n", one.id);
        } else {
            text += &format!(
                "Transaction {} is NOT rolled back; another try is safe. Still changed:{}{left}\n",
                one.id,
                failures.concat()
            );
        }
        if let Some(why) = &one.journal {
            text += &format!("Its journal could not be closed; the next rollback does it: {why}\n");
        }
    }
    Ok(told(output::print(&output::plain(&text)), undone, exit))
}

/// The exit code tells what became of the host, also where the report can't be written: to repeat would undo another transaction.
fn told(printed: Result<(), Failure>, undone: &[Undone], exit: Exit) -> Exit {
    if let Err(failure) = printed {
        let ids: Vec<String> = undone.iter().filter(|one| one.is_complete()).map(|one| one.id.to_string()).collect();
        let done = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
        let _ = writeln!(
            std::io::stderr(),
            "linerate: {failure}. The work itself is finished, don't repeat it; transactions rolled back: {done}"
        );
    }
    exit
}
