//! Tests between two machines over iperf3's protocol, as client and as server.
//!
//! The control connection speaks iperf3's protocol (cookie, states as signed bytes, JSON with a length before it), so that either side may
//! be an `iperf3` binary, 3.9 or later. Where both sides are linerate they notice it by one more key in the parameters, which iperf3
//! ignores, and add what iperf3 has no words for ([`wire::Hello`]): idle and loaded round-trip times, working latency, the counts of
//! the receiver over time and TCP_INFO of the other end's sockets.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`wire`] | what is said on the control connection, as values; reads any bytes without harm |
//! | [`client`] | one test against a server |
//! | [`server`] | many clients, some of them hostile |
//! | [`token`] | proof of a shared secret without sending it |
//!
//! Why not the crate `riperf3`, which speaks the same protocol: version 0.8 hands out a report at the end and no sockets, so that
//! TCP_INFO, probes inside the loaded flow and limits have no place to go in; its server runs one test at a time.

pub mod client;
mod control;
mod latency;
pub mod server;
mod stream;
pub mod token;
pub mod wire;

pub use latency::{LatencyOutcome, Responsiveness};
