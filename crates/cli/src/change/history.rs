//! `linerate history`.

use serde_json::{Value, json};
use tuning::journal::Step;
use tuning::transaction::{self, Standing, Transaction, World, standing};

use super::{Place, load, render};
use crate::exit::{Exit, Failure};
use crate::{document, output};

/// Arguments of `history`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Show every step of one transaction
    #[arg(value_name = "ID")]
    id: Option<u32>,
    #[command(flatten)]
    place: Place,
}

/// Lists the transactions.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let live = arguments.place.look()?;
    let mut transactions = load(&live)?;
    if let Some(id) = arguments.id {
        transactions.retain(|transaction| transaction.id == id);
        if transactions.is_empty() {
            return Err(Failure::usage(format_args!("no transaction {id}: `linerate history` lists them")));
        }
    }
    let boot_id = live.boot_id();
    let unwatched = |transaction: &Transaction| {
        standing(transaction, &boot_id) == Standing::Waiting && !live.is_watched(transaction.id)
    };
    let exit = if transactions.iter().any(unwatched) { Exit::Found } else { Exit::Done };
    if arguments.place.json {
        let mut document = document::head("history");
        let list: Vec<Value> = transactions
            .iter()
            .map(|transaction| {
                let mut value = as_json(transaction, &boot_id);
                if standing(transaction, &boot_id) == Standing::Waiting {
                    value["watched"] = json!(!unwatched(transaction));
                }
                value
            })
            .collect();
        document.insert("transactions".into(), list.into());
        document::print(document)?;
        return Ok(exit);
    }
    let mut text = String::new();
    for transaction in &transactions {
        let state = standing(transaction, &boot_id).name();
        match &transaction.journal {
            Err(damage) => text += &format!("{:>4}  {state}: {}: {damage}\n", transaction.id, transaction.path),
            Ok(journal) => {
                let count = journal.steps.iter().filter(|(step, _)| is_change(step)).count();
                let changes = if count == 1 { "1 change".to_owned() } else { format!("{count} changes") };
                let why = journal.closed.as_ref().filter(|(why, _)| why != "rolled back");
                let mut why = why.map_or(String::new(), |(why, _)| format!(" ({why})"));
                if unwatched(transaction) {
                    why = format!(", and nobody watches: `linerate rollback {}`", transaction.id);
                }
                text += &format!(
                    "{:>4}  {}  {state}{why}; {changes}; {}\n",
                    transaction.id, journal.begin.started_at, journal.begin.purpose
                );
                if arguments.id.is_some() {
                    for (step, _) in &journal.steps {
                        let (what, old, new) = render::parts(step);
                        text += &format!("        {what}  {old} -> {new}\n");
                    }
                    for left in journal.closed.iter().flat_map(|(_, left)| left) {
                        text += &format!("      {}\n", render::left(left).trim());
                    }
                }
            }
        }
    }
    let orphans = transaction::orphans(&live, &load(&live)?);
    if !orphans.is_empty() {
        text +=
            &format!("No journal tells of {}, which linerate has written: `linerate verify`.\n", orphans.join(", "));
    } else if transactions.is_empty() {
        text += "Nothing was ever applied here.\n";
    }
    output::print(&output::plain(&text))?;
    Ok(exit)
}

/// What a person would count: not the files that keep it.
fn is_change(step: &Step) -> bool {
    matches!(step, Step::Sysctl { .. } | Step::Queues { .. } | Step::Ring { .. })
}

fn as_json(transaction: &Transaction, boot_id: &str) -> Value {
    let state = standing(transaction, boot_id).name();
    match &transaction.journal {
        Err(damage) => {
            json!({ "transaction": transaction.id, "state": state, "journal": transaction.path, "damage": damage.to_string() })
        }
        Ok(journal) => json!({
            "transaction": transaction.id,
            "state": state,
            "journal": transaction.path,
            "started_at": journal.begin.started_at,
            "purpose": journal.begin.purpose,
            "plan": journal.begin.plan,
            "kernel": journal.begin.kernel,
            "live_only": journal.begin.live_only,
            "steps": journal.steps.iter().map(|(step, lasting)| json!({ "step": step, "lasting": lasting })).collect::<Vec<_>>(),
            "ended": journal.closed.as_ref().map(|(why, left)| json!({ "why": why, "left": left })),
        }),
    }
}
