//! Congestion control without a clock, a socket or a thread: Reno, CUBIC, BBRv1 and BBRv3.
//!
//! A [`Controller`] is told what happens to a connection and answers in a [`Control`]: how much may be in flight, how fast to send, and in
//! how large bursts. It knows the time from [`Connection::now`], its random numbers from a seed; nothing else goes in. The crate is
//! `no_std`, allocates nothing and calculates in integers only, so the same events give the same decisions on every machine.
//!
//! Windows and counts are in packets, each of up to [`Connection::mss`] bytes, as in Linux.
#![no_std]
#![forbid(unsafe_code)]

mod ack;
mod bbr1;
pub mod bbr3;
mod connection;
mod control;
mod cubic;
mod filter;
mod fixed;
mod observer;
mod rate;
mod reno;
mod round;

pub use ack::{Ack, Lost, RateSample};
pub use bbr1::Bbr1;
pub use bbr3::Bbr3;
pub use connection::{Connection, Recovery};
pub use control::{Cause, Control, Controller, INFINITE_SSTHRESH, Undo};
pub use cubic::{Cubic, CubicParams};
pub use fixed::Bandwidth;
pub use observer::{Bound, Ignore, Observer, Phase};
pub use rate::{PacketStamp, RateSampler};
pub use reno::Reno;
