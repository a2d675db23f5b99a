//! Any causal history, through every congestion control: windows, rates and transitions stay within their bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| congestion::exercise::exercise(bytes));
