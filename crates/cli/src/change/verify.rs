//! `linerate verify`.

use serde_json::json;
use tuning::transaction::{self, Standing, World, standing};

use super::{Place, load, seconds_left};
use crate::exit::{Exit, Failure};
use crate::{document, output, wrap};

/// Arguments of `verify`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
}

/// Compares, and changes nothing.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let live = arguments.place.look()?;
    let transactions = load(&live)?;
    let findings = transaction::verify(&live, &arguments.place.disk(), &transactions);
    let boot_id = live.boot_id();
    let in_force: Vec<u32> =
        transactions.iter().filter(|t| standing(t, &boot_id) == Standing::Kept).map(|t| t.id).collect();
    let waiting = transactions.iter().find(|t| standing(t, &boot_id) == Standing::Waiting);
    let left = waiting.and_then(|t| t.journal.as_ref().ok()?.deadline_ns).map(|at| seconds_left(&live, at));
    let exit = if findings.is_empty() { Exit::Done } else { Exit::Found };
    if arguments.place.json {
        let mut document = document::head("verify");
        let list = findings.iter().map(|finding| {
            json!({
                "kind": finding.kind, "what": finding.what, "found": finding.found, "wanted": finding.wanted, "why": finding.why,
            })
        });
        document.insert("findings".into(), list.collect());
        document.insert("transactions_in_force".into(), json!(in_force));
        document.insert("waiting".into(), json!(waiting.map(|t| json!({ "transaction": t.id, "undone_in_s": left }))));
        document::print(document)?;
        return Ok(exit);
    }
    let mut text = String::new();
    // One that nobody watches is a finding.
    if let (Some(waiting), Some(left)) = (waiting.filter(|waiting| live.is_watched(waiting.id)), left) {
        text += &format!(
            "Transaction {} waits: it undoes itself in {left} s unless `linerate confirm` comes.\n",
            waiting.id
        );
    }
    for finding in &findings {
        let sentence = format!("{} instead of {}: {}", finding.found, finding.wanted, finding.why);
        text += &wrap::hanging(&format!("{}: ", finding.what), &sentence, output::width().min(140));
    }
    if findings.is_empty() {
        let numbers: Vec<String> = in_force.iter().map(u32::to_string).collect();
        text += &match numbers.len() {
            0 if waiting.is_some() => "Its live values are as it set them.\n".to_owned(),
            0 => "No transaction is in force.\n".to_owned(),
            1 => format!("Everything is as transaction {} left it, and will be after a restart.\n", numbers[0]),
            _ => {
                format!("Everything is as transactions {} left it, and will be after a restart.\n", numbers.join(", "))
            }
        };
    }
    output::print(&output::plain(&text))?;
    Ok(exit)
}
