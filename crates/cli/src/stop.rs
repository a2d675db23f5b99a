//! Ctrl-C and friends: the first asks everything to end and keeps what was measured, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Failure;

/// A flag that becomes true at the first SIGINT, SIGTERM or SIGHUP.
pub fn on_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Under nohup(1) a hang-up stays ignored.
        if signal == SIGHUP && is_ignored(signal) {
            continue;
        }
        // Order matters: the shutdown looks at the flag before the second registration sets it.
        flag::register_conditional_shutdown(signal, 130, stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .map_err(|error| Failure::failed(format_args!("can't watch for Ctrl-C: {error}")))?;
    }
    Ok(stop)
}

/// Whether the process was started with this signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
