//! Shared by the integration tests.
#![allow(dead_code)]

pub mod page;
pub mod sample;
