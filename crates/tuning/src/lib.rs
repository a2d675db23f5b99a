//! What linerate knows about the network knobs of Linux. No files, clocks or sockets: callers read, this crate judges.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`audit`] | from what a host shows to what limits it, with the evidence and the fix |
//! | [`catalogue`] | every knob: its unit, range, default by kernel version, scope, meaning, and when to change it |
//! | [`doctor`] | the questions of troubleshooting chapters, answered from evidence |
//! | [`effective`] | which value each key ends up with at boot, who sets it and who loses |
//! | [`files`] | files that set sysctls, read into settings with their places |
//! | [`journal`] | what a transaction will change and how far it came, as a text that survives a crash |
//! | [`kernel`] | versions of the kernel, compared |
//! | [`lint`] | verdicts on settings, with places and fixes |
//! | [`key`] | keys in the notations people write |
//! | [`plan`] | from what a host shows and is to do to the changes that the difference justifies |
//! | [`transaction`] | a plan's changes made, kept, compared and undone, through a trait that acts |
//! | [`tune`] | which blocks of a plan paired measurements keep |
#![forbid(unsafe_code)]

pub mod audit;
pub mod catalogue;
pub mod doctor;
pub mod effective;
pub mod files;
pub mod journal;
pub mod kernel;
pub mod key;
pub mod lint;
pub mod plan;
pub mod transaction;
pub mod tune;

pub use catalogue::Catalogue;
pub use kernel::KernelVersion;
pub use key::Key;
