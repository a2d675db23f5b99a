//! The live machine, as a transaction of `tuning` acts on it: `tuning` decides and `host` does, and this crate puts the two together.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`live`] | files, sysctls, queue disciplines and rings of this machine, or of a folder that stands for one |
//! | [`disk`] | a folder as the tree of files that set sysctls |
//! | [`lock`] | one run at a time |
//! | [`guard`] | what undoes an unconfirmed transaction |
//!
//! A crate of its own, so that `tuning` stays pure and `host` knows nothing of plans.
#![forbid(unsafe_code)]

pub mod disk;
pub mod guard;
pub mod live;
pub mod lock;

pub use disk::Disk;
pub use live::Live;
pub use lock::Lock;
