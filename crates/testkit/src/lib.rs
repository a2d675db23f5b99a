//! Helpers for linerate's own tests. A development dependency only.
//!
//! Tests that need privileges start with [`require_root_or_skip!`]; they work in network namespaces of their own and change
//! nothing on the machine they run on.

mod mounts;
mod net;
mod privilege;
mod tcp_reset;

pub use mounts::with_private_bpffs;
pub use net::{Ends, ip};
pub use privilege::{may_run, missing_privilege};
pub use tcp_reset::reset_connection_from;
