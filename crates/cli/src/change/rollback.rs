//! `linerate rollback`.

use serde_json::json;
use tuning::transaction::{self, Standing, Transaction, Undone, World, standing};

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
    if load(&live)?.is_empty() {
        return finish(&arguments.place, "rollback", &[]);
    }
    let _lock = lock(&mut live, "rollback")?;
    let transactions = load(&live)?;
    let open = open(&live, &transactions);
    let chosen: Vec<&Transaction> = match arguments.id {
        None if arguments.all => open,
        None => last(open),
        Some(id) => vec![by_id(id, &transactions, &open)?],
    };
    let undone = undo(&mut live, &chosen, arguments.salvage)?;
    finish(&arguments.place, "rollback", &undone)
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

/// Undoes them in this order; ends at the first that could not be undone.
pub fn undo(live: &mut Live, chosen: &[&Transaction], salvage: bool) -> Result<Vec<Undone>, Failure> {
    let mut all = Vec::new();
    for transaction in chosen {
        let undone = transaction::roll_back(live, transaction, salvage, "rolled back").map_err(|damage| {
            Failure::refused(format_args!(
                "{}: {damage}. Nothing was done by it; `linerate rollback {} --salvage` undoes what its whole lines name",
                transaction.path, transaction.id
            ))
        })?;
        let complete = undone.is_complete();
        all.push(undone);
        if !complete {
            break;
        }
    }
    Ok(all)
}

/// Says what came of it.
pub fn finish(place: &Place, command: &str, undone: &[Undone]) -> Result<Exit, Failure> {
    let complete = undone.iter().all(Undone::is_complete);
    let left = undone.iter().flat_map(Undone::left).count();
    let exit = match (complete, left) {
        (false, _) => Exit::NotUndone,
        (true, 0) => Exit::Done,
        (true, _) => Exit::Found,
    };
    if place.json {
        let mut document = document::head(command);
        let result = match exit {
            Exit::NotUndone => "not_undone",
            _ if undone.is_empty() => "nothing_to_do",
            _ => "rolled_back",
        };
        document.insert("result".into(), result.into());
        document.insert("transactions".into(), json!(undone.iter().map(render::undone_json).collect::<Vec<_>>()));
        document::print(document)?;
        return Ok(exit);
    }
    let mut text = String::new();
    if undone.is_empty() {
        text += "Nothing to roll back: no transaction is in force.\n";
    }
    for one in undone {
        let left: String = one.left().map(render::left).collect();
        let failures: Vec<String> =
            one.failures().map(|(step, why)| format!("\n  - {}: {why}", render::parts(step).0)).collect();
        if failures.is_empty() {
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
    output::print(&output::plain(&text))?;
    Ok(exit)
}
