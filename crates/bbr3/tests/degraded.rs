//! Sockets that can't have storage. The limit on it belongs to the network namespace on newer kernels: there it can be made too small
//! without touching the machine.

mod common;

use std::time::Duration;

use common::{load, shaped, transfer};
use testkit::{Ends, require_root_or_skip};

/// Where there is no room for a BPF storage.
const TOO_SMALL: &str = "64";
const AMPLE: &str = "131072";

/// False: this kernel has the limit in the first namespace only.
fn set_limit(ends: &Ends, bytes: &str) -> bool {
    let file = "/proc/sys/net/core/optmem_max";
    ends.client.run(|| std::fs::write(file, bytes).is_ok()).unwrap()
}

#[test]
fn a_socket_without_storage_runs_reno_and_is_counted() {
    require_root_or_skip!();
    let ends = shaped("60mbit", 60_000);
    if !set_limit(&ends, TOO_SMALL) {
        eprintln!("SKIPPED: net.core.optmem_max is not per namespace on this kernel");
        return;
    }
    let loaded = load(|_| {});
    let arrived = transfer(&ends, loaded.name(), Duration::from_secs(2), || {});
    let totals = loaded.totals().unwrap();
    assert_eq!((totals.inits, totals.degraded, totals.recovered), (1, 1, 0), "{totals:?}");
    assert_eq!(totals.entries, [0; 7], "it has no state to change");
    // 60 Mbit/s for two seconds are 15 MB. A window that nobody controls would stay at ten packets; Reno fills the link.
    assert!(arrived > 8_000_000, "{arrived} bytes");
}

#[test]
fn it_gets_storage_as_soon_as_there_is_some() {
    require_root_or_skip!();
    let ends = shaped("60mbit", 60_000);
    if !set_limit(&ends, TOO_SMALL) {
        eprintln!("SKIPPED: net.core.optmem_max is not per namespace on this kernel");
        return;
    }
    let loaded = load(|_| {});
    let mut ticks = 0;
    transfer(&ends, loaded.name(), Duration::from_secs(2), || {
        ticks += 1;
        if ticks == 20 {
            assert!(set_limit(&ends, AMPLE));
        }
    });
    let totals = loaded.totals().unwrap();
    assert_eq!((totals.inits, totals.degraded, totals.recovered), (1, 1, 1), "{totals:?}");
    assert!(totals.entries[1..].iter().sum::<u64>() > 0, "from then on it has BBR's states: {totals:?}");
}
