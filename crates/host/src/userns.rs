//! Becoming root in a user namespace of one's own, where the process has no rights already.
//!
//! Follows user_namespaces(7): a process may map its own user and group to root in a new user namespace, and then holds every
//! capability over namespaces it creates from there, but none over the host.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::netns::{NetNs, NetNsError};

/// Where the right to make network namespaces comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// The process held `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` already; nothing was changed.
    Root,
    /// The process is now root inside a user namespace of its own.
    UserNamespace,
}

/// Why the process has no right to make network namespaces and could not get it.
#[derive(Debug, thiserror::Error)]
pub enum UserNsError {
    /// A user namespace can only be entered by a process with one thread.
    #[error(
        "a user namespace can only be entered while the process has one thread, and it has {threads}: call this first in main"
    )]
    ManyThreads {
        /// How many threads there are.
        threads: usize,
    },
    /// The kernel refuses user namespaces to this user.
    #[error(
        "this user may not create user namespaces: run with sudo, or allow them: sysctl kernel.unprivileged_userns_clone=1 \
         (Debian), user.max_user_namespaces above 0, kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, \
         add CAP_SYS_ADMIN and CAP_NET_ADMIN"
    )]
    NotPermitted,
    /// The limit on user namespaces is reached, or is zero.
    #[error("the limit on user namespaces is reached: raise sysctl user.max_user_namespaces")]
    TooMany,
    /// The kernel was built without user namespaces.
    #[error("this kernel has no user namespaces (CONFIG_USER_NS): run with sudo")]
    NotInKernel,
    /// A user namespace was entered but gives no rights over network namespaces.
    #[error(transparent)]
    NoRights(#[from] NetNsError),
    /// Another step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was attempted.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

fn step(step: &'static str) -> impl FnOnce(io::Error) -> UserNsError {
    move |source| UserNsError::Step { step, source }
}

/// AppArmor of Ubuntu 24.04 lets the namespace be made, and then denies the capability that its maps take.
fn map_failure(at: &'static str) -> impl FnOnce(io::Error) -> UserNsError {
    move |error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => UserNsError::NotPermitted,
        _ => step(at)(error),
    }
}

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;

/// Makes sure that the process may create network namespaces, through a user namespace where it has to.
///
/// Call it first in `main`: entering a user namespace takes a process with a single thread. Afterwards files still belong to
/// whom they belonged: the new root is the old user to everything outside.
pub fn enter_if_needed() -> Result<Privilege, UserNsError> {
    if has_capabilities(&fs::read_to_string("/proc/thread-self/status").map_err(step("read /proc/thread-self/status"))?)
    {
        return Ok(Privilege::Root);
    }
    let threads = fs::read_dir("/proc/self/task").map_err(step("list /proc/self/task"))?.count();
    if threads != 1 {
        return Err(UserNsError::ManyThreads { threads });
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| match errno {
        Errno::EPERM | Errno::EACCES => UserNsError::NotPermitted,
        Errno::ENOSPC | Errno::EUSERS => UserNsError::TooMany,
        Errno::EINVAL => UserNsError::NotInKernel,
        other => step("create a user namespace")(other.into()),
    })?;
    // Without "deny" a process without CAP_SETGID outside may not write gid_map (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny").map_err(map_failure("write /proc/self/setgroups"))?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1")).map_err(map_failure("write /proc/self/uid_map"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1")).map_err(map_failure("write /proc/self/gid_map"))?;
    // What the namespace's capabilities are worth, only a try tells.
    NetNs::create()?;
    Ok(Privilege::UserNamespace)
}

/// Whether `status` (proc_pid_status(5)) shows both capabilities as effective.
fn has_capabilities(status: &str) -> bool {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    [CAP_NET_ADMIN, CAP_SYS_ADMIN].iter().all(|capability| effective & (1 << capability) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_effective_mask_only() {
        assert!(has_capabilities("Name:\tx\nCapPrm:\t0\nCapEff:\t000001ffffffffff\n"));
        assert!(has_capabilities("CapEff:\t0000000000201000\n"));
        assert!(!has_capabilities("CapEff:\t0000000000200000\n"), "CAP_NET_ADMIN is missing");
        assert!(!has_capabilities("CapEff:\t0000000000001000\n"), "CAP_SYS_ADMIN is missing");
        assert!(!has_capabilities("CapPrm:\t000001ffffffffff\nCapEff:\t0000000000000000\n"));
        assert!(!has_capabilities("CapEff:\tzz\n"));
        assert!(!has_capabilities(""));
    }

    #[test]
    fn a_map_that_may_not_be_written_means_that_user_namespaces_are_not_allowed() {
        let error = |code| map_failure("write it")(io::Error::from_raw_os_error(code)).to_string();
        assert!(error(libc::EPERM).contains("apparmor_restrict_unprivileged_userns"));
        assert!(error(libc::EACCES).contains("apparmor_restrict_unprivileged_userns"));
        assert!(error(libc::EINVAL).starts_with("write it: "));
    }
}
