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
        // Order matters: the shutdown looks at the flag before the second registration sets it.
        flag::register_conditional_shutdown(signal, 130, stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .map_err(|error| Failure::failed(format_args!("can't watch for Ctrl-C: {error}")))?;
    }
    Ok(stop)
}
