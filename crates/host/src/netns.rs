//! Unnamed network namespaces, held by a file descriptor.
//!
//! A namespace made here has no name under `/run/netns`: it lives as long as a [`NetNs`], a thread inside it, a process inside it
//! or an interface's other end does, and the kernel takes it away with the last of them, also after SIGKILL.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder, JoinHandle};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Why a network namespace could not be made or entered.
#[derive(Debug, thiserror::Error)]
pub enum NetNsError {
    /// The process may not make network namespaces.
    #[error(
        "this process may not create network namespaces (no CAP_SYS_ADMIN): run it with sudo, or allow user namespaces for \
         ordinary users: sysctl kernel.unprivileged_userns_clone=1 (Debian), user.max_user_namespaces above 0, \
         kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, add CAP_SYS_ADMIN and CAP_NET_ADMIN"
    )]
    NotPermitted,
    /// The kernel's limit on namespaces is reached.
    #[error("the limit on network namespaces is reached: raise sysctl user.max_net_namespaces")]
    TooMany,
    /// The kernel was built without network namespaces.
    #[error("this kernel has no network namespaces (CONFIG_NET_NS)")]
    NotInKernel,
    /// Another step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was attempted.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// `_IO(NSIO, 0x3)` of linux/nsfs.h.
const NS_GET_NSTYPE: libc::Ioctl = 0xb703;

fn step(step: &'static str) -> impl FnOnce(io::Error) -> NetNsError {
    move |source| NetNsError::Step { step, source }
}

/// A network namespace of its own, held open by a file descriptor. Cheap to clone.
#[derive(Debug, Clone)]
pub struct NetNs {
    fd: Arc<OwnedFd>,
}

impl NetNs {
    /// Makes a network namespace with `lo` up and nothing else in it. The calling thread stays where it is.
    pub fn create() -> Result<Self, NetNsError> {
        let made = thread::scope(|scope| {
            Builder::new().name("netns-create".into()).spawn_scoped(scope, create_here).map(|thread| thread.join())
        });
        match made.map_err(step("start a thread for a new network namespace"))? {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// The namespace that the calling thread is in.
    pub fn current() -> Result<Self, NetNsError> {
        let file = File::open("/proc/thread-self/ns/net").map_err(step("open /proc/thread-self/ns/net"))?;
        Ok(Self { fd: Arc::new(file.into()) })
    }

    /// Opens a namespace by a path: `/proc/PID/ns/net`, `/run/netns/NAME`.
    ///
    /// # Errors
    /// What open(2) says; `InvalidInput` where the file is no network namespace.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = File::open(path)?;
        // ioctl_ns(2)
        // SAFETY: NS_GET_NSTYPE takes no argument and touches no memory of ours; the descriptor is open.
        let kind = unsafe { libc::ioctl(file.as_raw_fd(), NS_GET_NSTYPE) };
        if kind != libc::CLONE_NEWNET {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { fd: Arc::new(file.into()) })
    }

    /// The namespace's identity: the inode number that `lsns` and `readlink /proc/self/ns/net` show.
    pub fn inode(&self) -> Result<u64, NetNsError> {
        let file = self.fd.try_clone().map(File::from).map_err(step("duplicate a namespace descriptor"))?;
        Ok(file.metadata().map_err(step("stat a network namespace"))?.ino())
    }

    /// Runs `f` inside the namespace, on a thread of its own that ends with it, and waits. A panic in `f` goes on in the caller.
    ///
    /// Sockets and devices opened inside stay in the namespace wherever they are used afterwards.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, NetNsError> {
        let done = thread::scope(|scope| {
            Builder::new()
                .name("netns-run".into())
                .spawn_scoped(scope, || self.enter().map(|()| f()))
                .map(|thread| thread.join())
        });
        match done.map_err(step("start a thread in a network namespace"))? {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Starts a long-lived thread inside the namespace. Returns once the thread is inside, or with the reason why it is not.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let (entered, wait) = sync_channel(1);
        let namespace = self.clone();
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            let result = namespace.enter();
            let failed = result.is_err();
            // The parent waits for exactly this message, so it is still there.
            let _ = entered.send(result);
            if failed {
                // The parent has the reason and drops the handle. There is no T to return, so unwind, without the panic message.
                resume_unwind(Box::new("not inside the network namespace"));
            }
            f()
        })?;
        match wait.recv() {
            Ok(Ok(())) => Ok(thread),
            Ok(Err(error)) => Err(io::Error::other(error)),
            Err(_) => Err(io::Error::other("the thread ended before it entered its network namespace")),
        }
    }

    /// A command that will run inside the namespace and be killed when the thread that started it ends.
    ///
    /// `PR_SET_PDEATHSIG` follows the *thread* that spawns the child, not the process: spawn from a thread that outlives the child.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let namespace = Arc::clone(&self.fd);
        let parent = std::process::id();
        let mut command = Command::new(program);
        let enter = move || {
            setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET)?;
            die_with_parent(parent)
        };
        // SAFETY: between fork and exec the closure only makes the system calls setns, prctl and getppid, which are
        // async-signal-safe, and neither allocates nor takes a lock; its error conversion from an errno allocates nothing.
        unsafe { command.pre_exec(enter) };
        command
    }

    /// Moves the calling thread into the namespace, for good.
    pub fn enter(&self) -> Result<(), NetNsError> {
        setns(self.fd.as_fd(), CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
            Errno::EPERM => NetNsError::NotPermitted,
            other => step("enter a network namespace")(other.into()),
        })
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The body of [`NetNs::create`]: the calling thread moves into a new namespace, which a descriptor then keeps.
fn create_here() -> Result<NetNs, NetNsError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
        Errno::EPERM => NetNsError::NotPermitted,
        Errno::ENOSPC => NetNsError::TooMany,
        Errno::EINVAL => NetNsError::NotInKernel,
        other => step("create a network namespace")(other.into()),
    })?;
    bring_loopback_up().map_err(step("bring lo up in a new network namespace"))?;
    NetNs::current()
}

mod ioctl {
    nix::ioctl_write_ptr_bad!(set_interface_flags, libc::SIOCSIFFLAGS, libc::ifreq);
}

/// Sets `IFF_UP` on `lo` in the calling thread's namespace (netdevice(7)).
fn bring_loopback_up() -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    let flags = libc::IFF_UP as libc::c_short;
    let request = libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags } };
    // SAFETY: `request` is a whole ifreq with a NUL-terminated name and the flags set, as SIOCSIFFLAGS reads it, and outlives the call.
    unsafe { ioctl::set_interface_flags(socket.as_raw_fd(), &raw const request) }?;
    Ok(())
}

/// Asks the kernel to kill the calling process when the thread that forked it ends; fails where `parent` is gone already.
///
/// Async-signal-safe.
fn die_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory of ours.
    let set = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0) };
    Errno::result(set)?;
    // SAFETY: getppid takes nothing and cannot fail.
    let parent_now = unsafe { libc::getppid() };
    // Between fork and prctl the parent may have died, and then no signal comes.
    if parent_now as u32 == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
}
