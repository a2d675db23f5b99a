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
    let lasts = |id: &u32| {
        let begin = transactions.iter().find(|t| t.id == *id).and_then(|t| Some(&t.journal.as_ref().ok()?.begin));
        begin.is_some_and(|begin| !begin.live_only)
    };
    let lasting: Vec<u32> = in_force.iter().copied().filter(|id| lasts(id)).collect();
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
        text += &match in_force.as_slice() {
            [] if waiting.is_some() => "Its live values are as it set them.\n".to_owned(),
            [] => "No transaction is in force.\n".to_owned(),
            some => {
                let plural = if some.len() == 1 { "" } else { "s" };
                let until = match lasting.len() {
                    0 => ", until a restart: nothing of it lasts".to_owned(),
                    lasting if lasting == some.len() => ", and will be after a restart".to_owned(),
                    _ => format!("; after a restart only what {} made is there", numbers(&lasting)),
                };
                format!("Everything is as transaction{plural} {} left it{until}.\n", numbers(some))
            }
        };
    }
    output::print(&output::plain(&text))?;
    Ok(exit)
}

fn numbers(transactions: &[u32]) -> String {
    transactions.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
