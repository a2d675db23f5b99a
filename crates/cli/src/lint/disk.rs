//! A folder as the tree of files that `tuning` reads.

pub use apply::disk::{Disk, read, read_all};
