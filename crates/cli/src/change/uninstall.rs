//! `linerate uninstall`.

use std::io::{BufRead, IsTerminal, Write};

use tuning::transaction::{self, Undone};

use super::{Place, load, lock, rollback};
use crate::exit::{Exit, Failure};
use crate::{output, stop};

/// Arguments of `uninstall`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Of damaged journals, undo what their whole lines name
    #[arg(long)]
    salvage: bool,
    #[command(flatten)]
    place: Place,
}

/// Rolls everything back and removes the journals.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut live = arguments.place.live()?;
    if !arguments.yes {
        if arguments.place.json || !std::io::stdin().is_terminal() {
            return Err(Failure::refused("there is nobody to ask here: --yes does it without"));
        }
        output::print("Roll back every transaction and remove the journals? [y/N] ")?;
        let mut answer = String::new();
        let _ = std::io::stdin().lock().read_line(&mut answer);
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Err(Failure::refused("nothing was changed"));
        }
    }
    let _signals = stop::on_signal()?;
    let lock = lock(&mut live, "uninstall")?;
    let transactions = load(&live)?;
    let open = rollback::open(&live, &transactions);
    let (mut undone, refusal) = rollback::undo(&mut live, &open, arguments.salvage);
    let complete = refusal.is_none() && undone.iter().all(Undone::is_complete);
    let orphans = if refusal.is_none() {
        transaction::remove_orphans(&mut live).map_err(Failure::failed)
    } else {
        Ok(Vec::new())
    };
    if let Ok(orphans) = &orphans {
        undone.iter_mut().for_each(|one| one.remains.retain(|path| !orphans.contains(path)));
    }
    let removed = if complete && orphans.is_ok() {
        transaction::uninstall_files(&mut live).map_err(Failure::failed)
    } else {
        Ok(())
    };
    drop(lock);
    let exit = match &refusal {
        Some(_) if undone.is_empty() => Exit::Done,
        _ => rollback::finish(&arguments.place, "uninstall", &undone)?,
    };
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let orphans = orphans?;
    removed?;
    if !orphans.is_empty() {
        let what = format!(
            "Removed, with no journal to tell what was there before: {}. What they have set holds until the next restart.\n",
            orphans.join(", ")
        );
        // In a document nobody looks for it.
        let _ = write!(std::io::stderr(), "linerate: {what}");
        return Ok(if exit == Exit::Done { Exit::Found } else { exit });
    }
    if !arguments.place.json && complete {
        let _ = output::print("The journals are removed: nothing of linerate's transactions is left.\n");
    }
    Ok(exit)
}
