//! `linerate boot`: hidden; what the unit starts once the network is configured.

use tuning::transaction;

use super::{Place, load, lock};
use crate::exit::{Exit, Failure};
use crate::output;

/// Arguments of `boot`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
}

/// Sets again what the boot has reset.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut live = arguments.place.live()?;
    let _lock = lock(&mut live, "boot")?;
    let transactions = load(&live)?;
    let done = transaction::late(&mut live, &transactions);
    let mut text = String::new();
    let mut exit = Exit::Done;
    for late in &done {
        match &late.result {
            Ok(()) => text += &format!("{} is {} again\n", late.what, late.to),
            Err(why) => {
                exit = Exit::Failed;
                text += &format!("{} could not be set to {}: {why}\n", late.what, late.to);
            }
        }
    }
    output::print(&output::plain(&text))?;
    Ok(exit)
}
