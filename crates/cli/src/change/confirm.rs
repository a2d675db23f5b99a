//! `linerate confirm`.

use serde_json::json;
use tuning::transaction::{self, Ended, Failed};

use super::{Place, load, lock, render};
use crate::exit::{Exit, Failure};
use crate::{document, output, stop, wrap};

/// Arguments of `confirm`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
}

/// Keeps the transaction that waits.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut live = arguments.place.live()?;
    let _signals = stop::on_signal()?;
    let _lock = lock(&mut live, "confirm")?;
    let ended = transaction::confirm(&mut live);
    let id = match ended {
        Ok(Ended::Kept { id } | Ended::Waiting { id, .. }) => id,
        Err(Failed::Step { id, cause, undone }) => {
            let complete = undone.is_complete();
            if arguments.place.json {
                let mut document = document::head("confirm");
                document.insert("result".into(), "failed".into());
                document.insert("transaction".into(), id.into());
                document.insert("cause".into(), cause.into());
                document.insert("undone".into(), render::undone_json(&undone));
                document::print(document)?;
                return Ok(if complete { Exit::Failed } else { Exit::NotUndone });
            }
            let text = render::failure(&cause, &undone);
            return Err(if complete { Failure::failed(text) } else { Failure::not_undone(text) });
        }
        Err(late @ Failed::Late { .. }) => return Err(Failure::refused(late)),
        Err(Failed::NothingWaits(why)) => return Err(Failure::refused(why)),
        Err(other) => return Err(Failure::failed(other)),
    };
    // Others may have changed values meanwhile, or have put a file in place that has a later word.
    let findings = transaction::verify(&live, &arguments.place.disk(), &load(&live)?);
    if arguments.place.json {
        let mut document = document::head("confirm");
        document.insert("result".into(), "confirmed".into());
        document.insert("transaction".into(), json!(id));
        let list = findings.iter().map(|finding| {
            json!({ "what": finding.what, "found": finding.found, "wanted": finding.wanted, "why": finding.why })
        });
        document.insert("findings".into(), list.collect());
        document::print(document)?;
    } else {
        let mut text = format!("Transaction {id} is confirmed. `linerate rollback` undoes it.\n");
        if findings.is_empty() {
            text += "It is kept across restarts.\n";
        } else {
            text += "But not everything is as it was applied (`linerate verify` shows this too):\n";
        }
        for finding in &findings {
            let sentence = format!("{} instead of {}: {}", finding.found, finding.wanted, finding.why);
            text += &wrap::hanging(&format!("  - {}: ", finding.what), &sentence, output::width().min(110));
        }
        output::print(&output::plain(&text))?;
    }
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Found })
}
