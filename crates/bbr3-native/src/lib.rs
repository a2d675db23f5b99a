//! BBRv3 as the kernel runs it, in user space and virtual time.
//!
//! [`Bbr3`] is the C code of `crates/bbr3/src/bpf`, compiled for this machine instead of for the kernel. [`World`] gives it what it needs
//! to run: a [`Sender`] that acts like Linux's TCP as far as a congestion control can tell (rate samples, RACK, tail loss probes,
//! timeouts, undo, pacing), a receiver, and a path from the `path` crate in each direction. Nothing reads a clock; the same seed gives
//! the same run to the last packet.
//!
//! [`Conformance`] holds the Rust BBRv3 of the `congestion` crate against recordings of the kernel's and of this one.
//!
//! For tests, and to replay what was recorded from a kernel.

mod conformance;
mod control;
pub mod raw;
mod receiver;
mod recorder;
mod replay;
mod sender;
mod world;

pub use conformance::{Conformance, params};
pub use control::{Bbr3, CaState, Count};
pub use receiver::{Receiver, Report};
pub use replay::{Difference, Replay, Replayed};
pub use sender::{Application, Sender, Truth};
pub use world::{Flow, FlowConfig, World, WorldConfig};
