//! Traffic and truth: what runs over a path, and what it really did.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`traffic`] | bulk and request/response flows between two network namespaces, with TCP_INFO and receiver-side goodput |
//! | [`order`] | in which order runs are made |
//! | [`probe`] | small datagrams through the same queue: delay under load, and before it |
//! | [`estimate`] | what a sender's samples say about the path |
//! | [`iperf`] | tests between two machines over iperf3's protocol, client and server |
//! | [`stats`] | medians, percentiles, intervals and fairness of what was measured |
//!
//! Goodput is counted where data arrives. Every instant is of one [`Clock`](host::clock::Clock), so that series of both ends and of
//! an emulator between them compare directly.

pub mod estimate;
pub mod iperf;
pub mod order;
pub mod probe;
pub mod stats;
pub mod traffic;
