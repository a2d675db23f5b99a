//! Sysctls of a namespace on the running kernel: taken, refused, changed by the kernel, missing.

use linerate_host::netns::NetNs;
use linerate_host::sysctl::{self, SysctlError};
use testkit::require_root_or_skip;

#[test]
fn a_value_is_written_read_back_and_stays_in_its_namespace() {
    require_root_or_skip!();
    let outside = sysctl::read("net.ipv4.tcp_rmem").unwrap();
    let inside =
        NetNs::create().unwrap().run(|| sysctl::write("net.ipv4.tcp_rmem", "4096\t131072   7654321")).unwrap().unwrap();
    assert_eq!(inside, "4096 131072 7654321");
    assert_eq!(sysctl::read("net.ipv4.tcp_rmem").unwrap(), outside);
}

#[test]
fn a_value_that_the_kernel_completes_is_reported_as_different() {
    require_root_or_skip!();
    let result = NetNs::create().unwrap().run(|| sysctl::write("net.ipv4.tcp_rmem", "4096 131072")).unwrap();
    match result {
        Err(SysctlError::Differs { wanted, shown, .. }) => {
            assert_eq!(wanted, "4096 131072");
            assert!(shown.starts_with("4096 131072 "), "{shown}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_outside_the_range_or_unknown_by_name_is_refused_with_the_kernels_reason() {
    require_root_or_skip!();
    let namespace = NetNs::create().unwrap();
    for (key, value, reason) in [
        ("net.ipv4.ip_local_port_range", "16384 65536", libc::EINVAL),
        ("net.ipv4.tcp_congestion_control", "no-such-cc", libc::ENOENT),
    ] {
        match namespace.run(|| sysctl::write(key, value)).unwrap() {
            Err(SysctlError::Refused { source, .. }) => assert_eq!(source.raw_os_error(), Some(reason)),
            other => panic!("{key}: {other:?}"),
        }
    }
}

#[test]
fn a_key_that_does_not_exist_is_missing_for_reading_and_writing() {
    assert!(matches!(sysctl::read("net.ipv4.tcp_no_such_key"), Err(SysctlError::Missing { .. })));
    assert!(matches!(sysctl::write("net.ipv4.tcp_no_such_key", "1"), Err(SysctlError::Missing { .. })));
    assert!(matches!(sysctl::read("net.ipv4"), Err(SysctlError::Missing { .. })), "a folder is no key");
}

#[test]
fn a_key_that_is_read_only_here_says_so() {
    require_root_or_skip!();
    let namespace = NetNs::create().unwrap();
    match namespace.run(|| sysctl::write("net.ipv4.tcp_available_congestion_control", "reno")).unwrap() {
        Err(SysctlError::ReadOnly { .. } | SysctlError::Refused { .. }) => {}
        other => panic!("{other:?}"),
    }
}
