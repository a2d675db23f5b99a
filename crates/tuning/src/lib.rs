//! What linerate knows about the network knobs of Linux. No files, clocks or sockets: callers read, this crate judges.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`catalogue`] | every knob: its unit, range, default by kernel version, scope, meaning, and when to change it |
//! | [`effective`] | which value each key ends up with at boot, who sets it and who loses |
//! | [`files`] | files that set sysctls, read into settings with their places |
//! | [`kernel`] | versions of the kernel, compared |
//! | [`lint`] | verdicts on settings, with places and fixes |
//! | [`key`] | keys in the notations people write |
//! | [`plan`] | from what a host shows and is to do to the changes that the difference justifies |
//! | [`tune`] | which blocks of a plan paired measurements keep |
#![forbid(unsafe_code)]

pub mod catalogue;
pub mod effective;
pub mod files;
pub mod kernel;
pub mod key;
pub mod lint;
pub mod plan;
pub mod tune;

pub use catalogue::Catalogue;
pub use kernel::KernelVersion;
pub use key::Key;
