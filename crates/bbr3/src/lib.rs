//! BBRv3 for a stock Linux kernel, 6.1 and later: a BPF congestion control and its loader.
//!
//! No mainline kernel has BBRv3 (checked up to 7.2). This crate brings it as a BPF program that the running kernel registers like
//! any other congestion control, without a module and without a reboot.
//!
//! ```text
//! src/bpf/*.h        the algorithm, one concept per header, from draft-ietf-ccwg-bbr; also compiles natively, for tests
//! src/bpf/bbr3.bpf.c the callbacks the kernel knows, and the maps
//!       |
//!   Knobs            what may be chosen as the program is loaded; the default is the faithful BBRv3
//!   Kernel           what the running kernel can do, from its BTF and by trying
//!   Loaded           a loaded program, registered until it is dropped
//!   Installed        a loaded program that stays: pinned in bpffs (Exclusive: one loader at a time; About: what it leaves behind)
//!   Generation       every control in BPF that the kernel holds, those included that only open sockets keep
//!   Totals, Monitor  what it tells: counters over all sockets, and one socket's state
//!   Running, Tracer  a program that runs, whoever loaded it; its events as they happen
//!   Event, recording what it writes while somebody reads, and files of it for replay
//! ```
//!
//! Without the cargo feature `bpf` (on by default) there is neither program nor loader, and nothing but Rust is needed to build.

mod events;
mod knobs;
mod monitor;
// What goes to and comes from the program.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub mod raw;
pub mod recording;
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod totals;

#[cfg(feature = "bpf")]
mod about;
#[cfg(feature = "bpf")]
pub mod bpffs;
#[cfg(feature = "bpf")]
mod error;
#[cfg(feature = "bpf")]
mod generation;
#[cfg(feature = "bpf")]
mod installed;
#[cfg(feature = "bpf")]
mod kernel;
#[cfg(feature = "bpf")]
mod loaded;
#[cfg(feature = "bpf")]
mod log;
#[cfg(feature = "bpf")]
mod object;
#[cfg(feature = "bpf")]
mod pins;
#[cfg(feature = "bpf")]
mod register;
#[cfg(feature = "bpf")]
mod running;
#[cfg(feature = "bpf")]
mod sockets;
#[cfg(feature = "bpf")]
mod trace;

pub use events::{Event, EventError, Flow, Transition};
pub use knobs::{KnobError, Knobs, Profile};
pub use monitor::{Mode, Monitor, MonitorError};
pub use totals::Totals;

#[cfg(feature = "bpf")]
pub use about::About;
#[cfg(feature = "bpf")]
pub use bpffs::Exclusive;
#[cfg(feature = "bpf")]
pub use error::LoadError;
#[cfg(feature = "bpf")]
pub use generation::{Generation, Program, State, generations};
#[cfg(feature = "bpf")]
pub use installed::{Found, Installed, Unloaded};
#[cfg(feature = "bpf")]
pub use kernel::{Kernel, Registration};
#[cfg(feature = "bpf")]
pub use loaded::{Loaded, Options};
#[cfg(feature = "bpf")]
pub use running::{ProgramCost, Running, RunningError};
#[cfg(feature = "bpf")]
pub use sockets::{Socket, sockets};
#[cfg(feature = "bpf")]
pub use trace::{Filter, TraceError, Tracer};

/// The name the control registers by, unless another is chosen.
pub const NAME: &str = "bbr3";

/// The revision of the IETF draft that the program follows.
pub const DRAFT: &str = "draft-ietf-ccwg-bbr, state of 2026-08-03 (after -06)";
