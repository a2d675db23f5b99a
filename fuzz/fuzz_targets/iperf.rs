//! Any bytes as whatever a peer may say on a control or probe connection. Nothing may panic, and what was read survives being written.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| measure::iperf::wire::exercise(bytes));
