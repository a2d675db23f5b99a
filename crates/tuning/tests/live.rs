//! The catalogue against the running kernel, in a network namespace of its own: ranges, defaults, scopes.
//!
//! Run on other kernels with `tests/vm/run --kernel 6.1 --copy target/debug/deps/live-…:/root/live -- /root/live`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use host::netns::NetNs;
use host::sysctl::{self, SysctlError};
use tuning::catalogue::{Access, Catalogue, Knob, OutOfRange, Range, Scope};
use tuning::{KernelVersion, Key};

fn kernel() -> KernelVersion {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().parse().unwrap()
}

/// Networking's knobs with one key each that this namespace has, and their keys.
fn here() -> Vec<(&'static Knob, String)> {
    let key = |knob: &'static Knob| (knob, knob.name.replace('*', "default"));
    let networking = |knob: &&Knob| knob.name.starts_with("net.");
    let exists =
        |(_, key): &(_, String)| Key::parse(key).is_ok_and(|key| Path::new("/proc/sys").join(key.path()).is_file());
    Catalogue::builtin().knobs().iter().filter(networking).map(key).filter(exists).collect()
}

fn writable(key: &str) -> bool {
    let path = sysctl::path_of(key).unwrap();
    fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o200 != 0)
}

/// Knobs of this namespace that can be written, with a range for this kernel.
fn ranged() -> Vec<(&'static Knob, String, Range)> {
    let all = here().into_iter().filter(|(knob, key)| knob.access == Access::ReadWrite && writable(key));
    all.filter_map(|(knob, key)| knob.range_in(kernel()).map(|range| (knob, key, range))).collect()
}

#[test]
fn the_kernel_refuses_what_lies_outside_a_range() {
    testkit::require_root_or_skip!();
    let wrong = NetNs::create().unwrap().run(|| {
        let mut tried = 0;
        let mut wrong = Vec::new();
        for (knob, key, range) in ranged() {
            if knob.out_of_range != OutOfRange::Refused {
                continue;
            }
            let before = sysctl::read(&key).unwrap();
            for outside in [range.min.checked_sub(1), range.max.checked_add(1)].into_iter().flatten() {
                let value = vec![outside.to_string(); usize::from(knob.arity.0)].join(" ");
                tried += 1;
                match sysctl::write(&key, &value) {
                    Err(SysctlError::Refused { .. }) => {}
                    // 6.1 takes such a write for a few keys of IPv6 and leaves the value.
                    Err(SysctlError::Differs { shown, .. })
                        if kernel() < KernelVersion::new(6, 2) && shown == before => {}
                    other => wrong.push(format!("{key} = {value}: {other:?}")),
                }
                sysctl::write(&key, &before).unwrap();
            }
        }
        assert!(tried > 300, "only {tried} values were tried");
        wrong
    });
    assert_eq!(wrong.unwrap(), Vec::<String>::new());
}

#[test]
fn the_kernel_takes_both_ends_of_a_range() {
    testkit::require_root_or_skip!();
    // What lies inside and is refused all the same, and why.
    let narrower = |key: &str| match key {
        "net.ipv4.ip_local_port_range" => {
            Some("not below ip_unprivileged_port_start, and the second not below the first")
        }
        "net.ipv4.ip_unprivileged_port_start" => Some("not above the port range"),
        "net.core.netdev_budget_usecs" | "net.ipv4.tcp_probe_interval" => Some("the length of a tick"),
        "net.ipv4.tcp_rmem" => Some("stable updates of 6.12 and later ask for a page at least"),
        "net.ipv6.conf.default.mtu" => Some("not above the device's"),
        "net.ipv6.conf.default.ioam6_id" | "net.ipv4.tcp_tso_rtt_log" | "net.unix.max_dgram_qlen" => {
            Some("stable updates accept less")
        }
        "net.netfilter.nf_hooks_lwtunnel" => Some("one way, and for the whole host: not for a test"),
        _ if key.contains("thresh") && key.contains("frag") => Some("low below high"),
        _ => None,
    };
    /// Seconds kept in ticks: the catalogue's bounds hold for the longest tick.
    const TICKS: i64 = 21_474_836;
    let wrong = NetNs::create().unwrap().run(|| {
        let mut tried = 0;
        let mut wrong = Vec::new();
        for (knob, key, range) in ranged() {
            if narrower(&key).is_some() || knob.arity != (1, 1) {
                continue;
            }
            let before = sysctl::read(&key).unwrap();
            let ends = if range.max == TICKS { [0, 2_000_000] } else { [range.min, range.max] };
            for inside in ends {
                tried += 1;
                if let Err(error) = sysctl::write(&key, &inside.to_string()) {
                    wrong.push(format!("{key} = {inside}: {error}"));
                }
                sysctl::write(&key, &before).unwrap();
            }
        }
        assert!(tried > 300, "only {tried} values were tried");
        wrong
    });
    assert_eq!(wrong.unwrap(), Vec::<String>::new());
}

#[test]
fn a_fresh_namespace_shows_the_defaults() {
    testkit::require_root_or_skip!();
    let inherited = ["net.ipv4.tcp_congestion_control", "net.ipv4.tcp_available_ulp"];
    let wrong = NetNs::create().unwrap().run(|| {
        let mut tried = 0;
        let mut wrong = Vec::new();
        for (knob, key) in here() {
            let constant = knob.default_note.is_none() && !inherited.contains(&key.as_str()) && writable(&key);
            let Some(default) = knob.default_in(kernel()).filter(|_| constant) else { continue };
            tried += 1;
            match sysctl::read(&key) {
                Ok(value) if value == default => {}
                other => wrong.push(format!("{key} is {other:?}, not {default}")),
            }
        }
        assert!(tried > 250, "only {tried} defaults were looked at");
        wrong
    });
    assert_eq!(wrong.unwrap(), Vec::<String>::new());
}

#[test]
fn a_namespace_has_the_knobs_that_are_its_own_and_no_others() {
    testkit::require_root_or_skip!();
    let host: Vec<_> = here();
    let inside: Vec<(String, bool)> = NetNs::create()
        .unwrap()
        .run(|| {
            here()
                .into_iter()
                .map(|(_, key)| {
                    let writable = writable(&key);
                    (key, writable)
                })
                .collect()
        })
        .unwrap();
    let mut wrong = Vec::new();
    for (knob, key) in host {
        let seen = inside.iter().find(|(k, _)| *k == key).map(|(_, writable)| *writable);
        let changeable = knob.access != Access::ReadOnly;
        let right = match knob.scope_in(kernel()) {
            Scope::Namespace => seen == Some(changeable),
            Scope::Host => seen.is_none(),
            Scope::HostReadOnly => seen == Some(false),
            Scope::System => false,
        };
        if !right {
            wrong.push(format!("{key}: {:?}, but in a namespace {seen:?}", knob.scope_in(kernel())));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
