//! `linerate confirm`.

use serde_json::json;
use tuning::transaction::{self, Ended, Failed};

use super::{Place, lock, render};
use crate::exit::{Exit, Failure};
use crate::{document, output, stop};

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
    if arguments.place.json {
        let mut document = document::head("confirm");
        document.insert("result".into(), "confirmed".into());
        document.insert("transaction".into(), json!(id));
        document::print(document)?;
    } else {
        output::print(&format!(
            "Transaction {id} is confirmed and kept across restarts. `linerate rollback` undoes it.\n"
        ))?;
    }
    Ok(Exit::Done)
}
