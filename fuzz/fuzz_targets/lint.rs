//! Any bytes as any kind of file: read, judged, mended, applied. Nothing may panic, and what comes out must hold together.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tuning::lint::exercise(bytes));
