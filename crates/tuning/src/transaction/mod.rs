//! A plan's changes as one transaction: made as a whole or not at all, kept across reboots, compared, and undone.
//!
//! | module | what |
//! | --- | --- |
//! | [`world`] | the trait through which everything is looked at and done |
//! | `prepare` | from a plan and what is there to the steps, or to the reasons against them |
//! | `own` | the files that a transaction writes: one drop-in for sysctl.d, one for modules-load.d, one unit |
//! | `file` | a file put in its place whole |
//! | `store` | the journals |
//! | `act` | one step made, one step undone |
//! | `run` | apply, confirm, roll back |
//! | `verify` | what is there against what the journals say |
//!
//! The rules: the journal is on the disk before anything changes; a step is made only where what it found in the plan is still there,
//! and read back; undoing restores what is still ours and leaves what somebody else has changed since. Lasting files come last, and
//! with a deadline only once it is confirmed: a reboot before that finds nothing of the transaction.

mod act;
mod file;
mod own;
mod prepare;
mod run;
mod store;
mod verify;
pub mod world;

pub use act::{Fate, StepError};
pub use own::{BOOT_UNIT, DROP_IN, MODULES, UNIT, orphans};
pub use prepare::{Check, Prepared, Refusal, prepare};
pub use run::{
    Ended, Failed, Request, Undone, apply, close_other_boots, confirm, forget, remove_orphans, roll_back,
    uninstall_files,
};
pub use store::{STATE, Standing, StoreError, Transaction, load, path_of, standing};
pub use verify::{Finding, Late, late, verify};
pub use world::{Found, World};

/// The major number of the handle of every discipline that linerate sets: `LR`. By it they are known again.
pub const HANDLE: u32 = 0x4c52;
