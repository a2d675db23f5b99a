//! Quantities of networking, each with its unit in the type.
//!
//! Five types, used in every public signature of the workspace instead of bare integers:
//!
//! | type | holds | written as |
//! | --- | --- | --- |
//! | [`Rate`] | bits per second | `200mbit`, `1.5gbit`, `10Gbit/s`, `125MB/s` |
//! | [`Bytes`] | bytes | `25MB`, `32MiB`, `64KiB`, `1500B` |
//! | [`Duration`] | nanoseconds, a span | `98.4ms`, `120ms`, `30s`, `500us` |
//! | [`Instant`] | nanoseconds since an experiment's start | printed as seconds |
//! | [`Probability`] | parts per billion | `1.5%`, `0.015` |
//!
//! Rates are decimal (1 Gbit/s = 10^9 bit/s). Sizes keep the prefix that was written: `MB` is 10^6 bytes, `MiB` is 2^20.
//! Everything is integer arithmetic: the same on every machine, and exact where the unit is.
//!
//! The crate has no dependencies, reads no clock and allocates nothing.
#![no_std]
#![forbid(unsafe_code)]

mod parse;
mod probability;
mod rate;
mod size;
mod time;

pub use parse::ParseError;
pub use probability::Probability;
pub use rate::Rate;
pub use size::Bytes;
pub use time::{Duration, Instant};
