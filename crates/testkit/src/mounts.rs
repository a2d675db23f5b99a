use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

/// Runs `f` on a thread with a mount namespace of its own, where `/sys/fs/bpf` is an empty BPF file system (`mounted`) or the bare
/// folder. Processes started by `f` are in it too. It goes with the last of them, and with it what was pinned there.
///
/// # Panics
/// Where mount namespaces can't be made, and with `f`.
pub fn with_private_bpffs<T: Send>(mounted: bool, f: impl FnOnce() -> T + Send) -> T {
    let inside = || {
        unshare(CloneFlags::CLONE_NEWNS).expect("make a mount namespace");
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("keep mounts to this namespace");
        // What the machine has there, out of sight in here only.
        while statfs("/sys/fs/bpf").expect("the kernel has a folder for bpffs").filesystem_type() == BPF_FS_MAGIC {
            umount2("/sys/fs/bpf", MntFlags::MNT_DETACH).expect("hide the machine's bpffs");
        }
        if mounted {
            mount(Some("bpf"), "/sys/fs/bpf", Some("bpf"), MsFlags::empty(), Some("mode=700")).expect("mount bpffs");
        }
        f()
    };
    thread::scope(|scope| match scope.spawn(inside).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
