//! Helpers for linerate's own tests. A development dependency only.
//!
//! Tests that need privileges start with [`require_root_or_skip!`]; they work in network namespaces of their own and change
//! nothing on the machine they run on.

mod privilege;

pub use privilege::{may_run, missing_privilege};
