//! `linerate guard`: hidden; what `apply --confirm` starts.

use super::{Place, apply_live};
use crate::exit::{Exit, Failure};

/// Arguments of `guard`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The transaction
    #[arg(value_name = "ID")]
    id: u32,
    #[command(flatten)]
    place: Place,
}

/// Watches a transaction and undoes it at its deadline.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut live = arguments.place.live()?;
    match apply_live::guard::watch(&mut live, arguments.id).map_err(Failure::failed)? {
        None => Ok(Exit::Done),
        // Nobody may be there to read it; the service manager's log is, where there is one.
        Some(undone) if undone.is_complete() => {
            eprintln!("linerate: transaction {} was not confirmed and is rolled back", arguments.id);
            Ok(Exit::Done)
        }
        Some(undone) => Err(Failure::not_undone(super::render::failure("it was not confirmed", &undone))),
    }
}
