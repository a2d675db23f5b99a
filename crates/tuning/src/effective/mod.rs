//! Which value each key ends up with, who sets it, and who loses: computed from the files alone, as the programs that apply them do.
//!
//! | module | what |
//! | --- | --- |
//! | [`root`] | where files come from: a directory, an image, a test |
//! | [`pattern`] | glob patterns of keys |
//! | [`reader`] | lines as systemd-sysctl and as procps' `sysctl` read them |
//! | [`order`] | which files, in which order, and which of them are masked |
//! | [`apply`] | from lines to writes: later ones win, patterns give way |
//! | [`timeline`] | everything that sets sysctls at boot, one after the other |
//!
//! A test runs the real programs on generated directories and compares (`tests/differential.rs`).

pub mod apply;
mod distribution;
pub mod order;
pub mod pattern;
pub mod reader;
pub mod root;
pub mod timeline;
mod tuned;

pub use apply::{Applied, Loss, Outcome, Write};
pub use distribution::Distribution;
pub use order::{ConfFile, State};
pub use reader::Dialect;
pub use root::{Entry, MemoryRoot, Root, Unreadable};
pub use timeline::{Applier, Step, Timeline};
