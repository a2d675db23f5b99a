//! Experiments with the real kernel on one machine: two network namespaces, an emulated path between them, real TCP at both ends.
//!
//! ```text
//!   client namespace            emulator thread             server namespace
//!   sockets - path0 (TUN)  ->  path::Link (up)   ->  path0 (TUN) - sockets
//!                          <-  path::Link (down) <-
//! ```
//!
//! - [`world`]: the two ends. Unnamed, held by file descriptors: nothing is left behind, whatever ends the process.
//! - [`tun`], [`frame`], [`arena`]: what the kernel hands over, 64 KiB bursts included, and where it lies meanwhile.
//! - [`direction`]: one direction: frames are split into the packets they stand for, each is judged by the model of the `path`
//!   crate, and neighbours that survive leave together again.
//! - [`emulator`]: the thread that drives both directions in real time and measures how late it was.
//! - [`session`], [`run`]: a path that is up; one cell of a scenario over it.
//! - [`netem`]: the same ends with the kernel's netem between them instead, for the paths that netem can emulate faithfully.
//! - [`path::record`], [`lateness`], [`capture`]: what happened.
#![warn(unsafe_code)]

#[expect(unsafe_code, reason = "huge pages have no safe wrapper")]
pub mod arena;
pub mod capture;
pub mod direction;
#[expect(unsafe_code, reason = "real-time priority has no safe wrapper")]
pub mod emulator;
pub mod frame;
pub mod lateness;
pub mod netem;
pub mod run;
pub mod session;
pub mod tun;
pub mod world;

pub use path::record;
