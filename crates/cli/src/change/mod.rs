//! `linerate apply`, `confirm`, `rollback`, `verify`, `history`, `uninstall`: a plan made, kept, compared and undone.

mod apply;
mod boot;
mod confirm;
mod guard;
mod history;
mod render;
mod rollback;
mod trial;
mod uninstall;
mod verify;

use std::path::PathBuf;

use apply_live::{Disk, Live, Lock};
use tuning::transaction::{self, Transaction, World};

use crate::exit::Failure;

use ::apply as apply_live;

pub use apply::{Arguments as Apply, run as apply};
pub use boot::{Arguments as Boot, run as boot};
pub use confirm::{Arguments as Confirm, run as confirm};
pub use guard::{Arguments as Guard, run as guard};
pub use history::{Arguments as History, run as history};
pub use rollback::{Arguments as Rollback, run as rollback};
pub use trial::{Ended as Kept, Place as TrialPlace, Trials};
pub use uninstall::{Arguments as Uninstall, run as uninstall};
pub use verify::{Arguments as Verify, run as verify};

/// Where the machine is.
#[derive(clap::Args, Debug, Clone)]
pub struct Place {
    /// A folder that stands for the machine's files. Keys are those of this network namespace, or of `proc/sys` in the folder
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Place {
    /// The machine to act on.
    fn live(&self) -> Result<Live, Failure> {
        if !nix::unistd::geteuid().is_root() {
            return Err(Failure::refused("only root may do this: run it with sudo"));
        }
        self.look()
    }

    /// The machine to look at.
    fn look(&self) -> Result<Live, Failure> {
        if !self.root.is_dir() {
            return Err(Failure::usage(format_args!("{} is no folder", self.root.display())));
        }
        Ok(Live::new(&self.root))
    }

    fn disk(&self) -> Disk {
        Disk::new(&self.root)
    }
}

/// Takes the lock, and closes what a restart has undone.
fn lock(live: &mut Live, command: &str) -> Result<Lock, Failure> {
    let lock = Lock::take(live, command).map_err(|error| match error {
        apply_live::lock::LockError::Held(_) => Failure::refused(error),
        apply_live::lock::LockError::Io(_) => Failure::failed(error),
    })?;
    transaction::close_other_boots(live).map_err(Failure::failed)?;
    Ok(lock)
}

/// All journals.
fn load(live: &Live) -> Result<Vec<Transaction>, Failure> {
    transaction::load(live).map_err(|error| match error {
        transaction::StoreError::Untrusted { .. } => Failure::refused(error),
        transaction::StoreError::Io { ref source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            Failure::refused("only root may read the journals: run it with sudo")
        }
        transaction::StoreError::Io { .. } => Failure::failed(error),
    })
}

/// What `verify` finds, and whether a transaction is in force; `None` where the journals can't be read.
pub fn compared() -> Option<(Vec<transaction::Finding>, bool)> {
    let live = Live::new(std::path::Path::new("/"));
    let transactions = transaction::load(&live).ok()?;
    let findings = transaction::verify(&live, &Disk::new(std::path::Path::new("/")), &transactions);
    let boot_id = live.boot_id();
    let kept = |one: &Transaction| transaction::standing(one, &boot_id) == transaction::Standing::Kept;
    Some((findings, transactions.iter().any(kept)))
}

/// Seconds until a deadline, rounded up.
fn seconds_left(live: &Live, deadline_ns: u64) -> u64 {
    deadline_ns.saturating_sub(live.boottime_ns()).div_ceil(1_000_000_000)
}
