//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;

use host::netns::{NetNs, NetNsError};

/// A namespace of the test's own. `None`, with the reason said, where this user may not make one; under CI that is a failure.
pub fn namespace() -> Option<NetNs> {
    match NetNs::create() {
        Ok(namespace) => Some(namespace),
        Err(NetNsError::NotPermitted) => skip(&NetNsError::NotPermitted.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// Says why a test is not done; fails it where everything that tests need is installed.
pub fn skip<T>(reason: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "skipped under CI: {reason}");
    eprintln!("skipped: {reason}");
    None
}

/// Processes in the network namespace `inode`, except this one, by their command lines.
pub fn processes_in(inode: u64) -> Vec<String> {
    let wanted = format!("net:[{inode}]");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc is there").flatten() {
        let process = entry.path();
        let is_there = fs::read_link(process.join("ns/net")).is_ok_and(|link| link.to_string_lossy() == wanted);
        if is_there && entry.file_name().to_string_lossy() != std::process::id().to_string() {
            found.push(fs::read_to_string(process.join("cmdline")).unwrap_or_default().replace('\0', " "));
        }
    }
    found
}
