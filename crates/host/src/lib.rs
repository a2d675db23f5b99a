//! The live machine, as linerate touches it: one thin layer over the kernel's interfaces.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`clock`] | the one time base of an experiment, on `CLOCK_MONOTONIC` |
//! | [`userns`] | becoming root in a user namespace where the process is not root already |
//! | [`netns`] | unnamed network namespaces that vanish with the process |
//! | [`everywhere`] | every network namespace of the machine |
//! | [`link`], [`route`] | the few things an experiment sets by netlink |
//! | [`qdisc`] | the queue disciplines of devices |
//! | [`container`] | whether this is a container, and by what that is known |
//! | [`inventory`] | memory, modules, listening ports, counters: what a plan rests on |
//! | [`activity`] | what else runs: counters of devices and CPUs between two looks |
//! | [`ring`] | sizes of a network card's rings |
//! | [`sysctl`] | one key of `/proc/sys`, read and written for the calling thread's namespace |
//! | [`tcp`] | what a TCP socket tells about itself, and its congestion control |
//! | [`audit`] | everything an audit looks at, read only, each with its place |
//! | [`why`] | why the system refused a file, in words |
//! | [`cc`] | the congestion controls this kernel has, and which version of each |
//!
//! Nothing here decides anything: callers say what to change, and get errors that say what is missing.

pub mod activity;
pub mod audit;
pub mod cc;
pub mod clock;
pub mod container;
pub mod everywhere;
pub mod inventory;
pub mod link;
mod netlink;
pub mod netns;
pub mod qdisc;
pub mod ring;
pub mod route;
pub mod sysctl;
pub mod tcp;
pub mod userns;
pub mod why;
