//! A discrete-event simulator of TCP: endpoints and congestion controls over the path models of the `path` crate, in virtual time.
//!
//! ```text
//!  Flow: application ─► Sender (scoreboard, RACK-TLP, PRR, pacing, controller)      Receiver (ACKs, window) ─► application
//!                          │            ▲                                              ▲        │
//!                          ▼            └───────────── links back, 0 or more ◄─────────┼────────┘
//!                     links of the data direction, 1 or more ──────────────────────────┘
//! ```
//!
//! * [`World`] owns everything and the clock: it jumps from event to event. The same configuration gives the same run on every machine,
//!   to the last packet: all is integer arithmetic, no clock is read, and every random number comes from the seed.
//! * [`Sender`] acts like Linux's TCP as far as a congestion control and a path can tell. What it sends by is a
//!   [`congestion::Controller`].
//! * [`run_cell`] runs one cell of a scenario file, as the lab does on the real kernel.
//!
//! Sequence numbers count segments. Where it differs from the kernel, and by how much, is in `docs/sim.md`.
//!
//! # Cost
//!
//! A packet costs a few hundred nanoseconds, its ACK included. A flow at rest costs nothing; memory is what is in flight (about 150 bytes
//! for each packet) and 2 KiB for each flow.
#![forbid(unsafe_code)]

mod agenda;
mod cell;
mod controllers;
mod flow;
mod network;
mod outcome;
mod receiver;
mod segment;
mod sender;
mod source;
mod window;
mod world;

pub use cell::{CellOutcome, Options, RunError, run_cell};
pub use controllers::{CONTROLLERS, UnknownController, controller};
pub use flow::FlowSample;
pub use outcome::FlowOutcome;
pub use receiver::{AckPolicy, Receiver};
pub use segment::Ack;
pub use sender::{Sender, SenderCounters, SenderOptions};
pub use source::Traffic;
pub use window::{Buffers, PAYLOAD_PER_256};
pub use world::{FlowConfig, MOST_FLOWS, ProbeConfig, ProbeSample, World, WorldConfig, WorldError};
