//! What linerate knows about the network knobs of Linux. No files, clocks or sockets: callers read, this crate judges.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`catalogue`] | every knob: its unit, range, default by kernel version, scope, meaning, and when to change it |
//! | [`kernel`] | versions of the kernel, compared |
//! | [`key`] | keys in the notations people write |
//! | [`plan`] | from what a host shows and is to do to the changes that the difference justifies |
#![forbid(unsafe_code)]

pub mod catalogue;
pub mod kernel;
pub mod key;
pub mod plan;

pub use catalogue::Catalogue;
pub use kernel::KernelVersion;
pub use key::Key;
