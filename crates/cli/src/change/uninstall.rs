//! `linerate uninstall`.

use std::io::{BufRead, IsTerminal};

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
    let undone = rollback::undo(&mut live, &open, arguments.salvage)?;
    if undone.iter().all(|one| one.is_complete()) {
        transaction::uninstall_files(&mut live).map_err(Failure::failed)?;
    }
    drop(lock);
    let exit = rollback::finish(&arguments.place, "uninstall", &undone)?;
    if !arguments.place.json && undone.iter().all(Undone::is_complete) {
        output::print("The journals are removed: nothing of linerate's transactions is left.\n")?;
    }
    Ok(exit)
}
