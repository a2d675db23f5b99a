//! Making a loaded program a congestion control, replacing one, and taking one out.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore, MapHandle, Object};
use nix::errno::Errno;

use crate::error::io_error;
use crate::kernel::{Registration, has_module};
use crate::{LoadError, log, object};

/// Registers the control. On kernels that register by map, dropping the link takes it out again.
pub(crate) fn register(object: &mut Object, registration: Registration, name: &str) -> Result<Link, LoadError> {
    let (wanted, _) = object::registration_map(registration);
    let mut map = object.maps_mut().find(|map| map.name() == wanted).ok_or_else(|| LoadError::Step {
        step: "register the congestion control",
        source: io::Error::other("the program has no such map"),
    })?;
    let (link, _) = log::listen(|| map.attach_struct_ops());
    link.map_err(|error| {
        let source = io_error(&error);
        if source.raw_os_error() == Some(Errno::EEXIST as i32) {
            return LoadError::AlreadyLoaded(name.to_owned());
        }
        LoadError::Step { step: "register the congestion control", source }
    })
}

/// Gives a registered link the operations of `object`, at once: no moment without a control of this name.
pub(crate) fn replace(link: &Link, object: &mut Object, name: &str) -> Result<(), LoadError> {
    // libbpf alone knows the value that a struct_ops map takes, and writes it as it registers the map. The registration then fails,
    // since the name is taken; the map is ready all the same, and the link may change to it.
    match register(object, Registration::Link, name) {
        Err(LoadError::AlreadyLoaded(_)) => {}
        Err(other) => return Err(other),
        Ok(_) => return Err(LoadError::NotInstalled(name.to_owned())),
    }
    let (wanted, _) = object::registration_map(Registration::Link);
    let map = object.maps().find(|map| map.name() == wanted);
    let map = map.ok_or_else(|| LoadError::NotInstalled(name.to_owned()))?;
    // SAFETY: both descriptors are open while borrowed, and without options nothing else is read. The kernel takes the map's number
    // where it takes a program's for other kinds of link (`union` in `bpf_attr.link_update`).
    let result = unsafe { libbpf_sys::bpf_link_update(link.as_fd().as_raw_fd(), map.as_fd().as_raw_fd(), ptr::null()) };
    if result == 0 {
        return Ok(());
    }
    Err(LoadError::Step { step: "replace the program", source: io::Error::from_raw_os_error(-result) })
}

/// Takes out what is registered by map. Sockets that run it go on.
pub(crate) fn unregister_map(ops: &MapHandle) -> Result<(), LoadError> {
    ops.delete(&0_u32.to_ne_bytes()).map_err(LoadError::libbpf("take out the congestion control"))
}

/// The names that the kernel has registered.
pub(crate) fn registered_names() -> Result<Vec<String>, LoadError> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .map_err(LoadError::step("read net.ipv4.tcp_available_congestion_control"))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// The control `name` must be neither loaded nor loadable from the kernel itself.
pub(crate) fn refuse_taken_name(name: &str) -> Result<(), LoadError> {
    object::check_name(name)?;
    if has_module(name).map_err(LoadError::step("look for kernel modules"))? {
        return Err(LoadError::NameIsModules(name.to_owned()));
    }
    if registered_names()?.iter().any(|taken| taken == name) {
        return Err(LoadError::AlreadyLoaded(name.to_owned()));
    }
    Ok(())
}

/// How long the kernel may take to let go of a link without holders: it does so after a grace period of RCU, normally milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until the kernel no longer lists `name`.
pub(crate) fn wait_until_gone(name: &str) -> Result<(), LoadError> {
    let deadline = Instant::now() + PATIENCE;
    while registered_names()?.iter().any(|there| there == name) {
        if Instant::now() > deadline {
            return Err(LoadError::StillThere(name.to_owned()));
        }
        // The kernel tells nobody when it is done.
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
