//! The whole job on one path: measure, change a block of settings, measure again in pairs, keep what helped, take back the rest.
//!
//! [`run`] decides and nothing else. What measures, sets and takes back is an [`Ends`]: a real host with a peer, two namespaces of the
//! lab, or a model in a test; how two series are told apart is a function that it is given. So the job that a demonstration shows
//! is the job that a production host gets.
//!
//! A block is kept for one of two reasons: it helped, or something that helped needs it. The second is found by leaving the block out
//! again at the end: a larger buffer may do nothing under one congestion control and everything under another.

mod block;
mod job;
mod judge;

pub use block::{Block, Part, parts};
pub use job::{Ends, Event, Job, Kept, Options, Outcome, Settled, run};
pub use judge::{Aspect, Difference, Judgement, Limits, Sample, Series, judge};
