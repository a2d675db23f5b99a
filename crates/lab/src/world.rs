//! The two ends: unnamed network namespaces with a TUN device each. They are gone with the last file descriptor, also after SIGKILL.

use std::net::Ipv4Addr;

use host::netns::{NetNs, NetNsError};
use host::route::{self, RouteError};
use host::sysctl::{self, SysctlError};
use units::Bytes;

use crate::tun::{Tun, TunError};

/// Name of the device at either end.
pub const DEVICE: &str = "path0";
/// The client's address, of the range for benchmarks (RFC 2544).
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The server's address.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

const NETWORK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const PREFIX: u8 = 24;

/// Set in both ends of every experiment before anything else, and why.
const ALWAYS: &[(&str, &str)] = &[
    // A run must not start from what the kernel remembers of the one before.
    ("net.ipv4.tcp_no_metrics_save", "1"),
    // Router solicitations and duplicate address detection would be packets of ours in the path.
    ("net.ipv6.conf.all.disable_ipv6", "1"),
    ("net.ipv6.conf.default.disable_ipv6", "1"),
];

/// Why the two ends could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// No namespace.
    #[error(transparent)]
    NetNs(#[from] NetNsError),
    /// No device.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// A sysctl of the scenario was refused.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// The default congestion control of the ends' route.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// Something else of the system.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// A sysctl that the experiment could not set, because it belongs to the whole host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAlone {
    /// The key.
    pub key: String,
    /// The value that was asked for.
    pub wanted: String,
}

/// The two ends of a path.
pub struct World {
    /// Where data comes from, unless a flow says otherwise.
    pub client: NetNs,
    /// The far end.
    pub server: NetNs,
    /// The client's device.
    pub client_tun: Tun,
    /// The server's device.
    pub server_tun: Tun,
    /// Sysctls of the scenario that belong to the whole host and were left alone.
    pub left_alone: Vec<LeftAlone>,
    /// Every sysctl that was set, as the kernel shows it.
    pub applied: Vec<(String, String)>,
}

impl World {
    /// Makes both ends with the given sysctls.
    ///
    /// Keys that belong to the whole host (`net.core.rmem_max`, `net.ipv4.tcp_mem`, …) are not set: an experiment changes nothing
    /// outside itself. They come back in `left_alone`.
    ///
    /// # Errors
    /// [`WorldError`]; whatever was made is gone again.
    pub fn create(mtu: u16, sysctls: &[(String, String)]) -> Result<Self, WorldError> {
        let client = NetNs::create()?;
        let server = NetNs::create()?;
        let (client_tun, left_alone, applied) = client.run(|| prepare(CLIENT, mtu, sysctls))??;
        let (server_tun, _, _) = server.run(|| prepare(SERVER, mtu, sysctls))??;
        Ok(Self { client, server, client_tun, server_tun, left_alone, applied })
    }

    /// Makes `control` what new connections of both ends use unless they choose themselves: through the route, because the sysctl
    /// of a namespace takes unrestricted controls only.
    ///
    /// # Errors
    /// Where the kernel does not have the control.
    pub fn set_default_control(&self, control: &str) -> Result<(), WorldError> {
        for (end, address) in [(&self.client, CLIENT), (&self.server, SERVER)] {
            end.run(|| route::set_congestion_control(DEVICE, NETWORK, PREFIX, address, control))??;
        }
        Ok(())
    }

    /// Packets that a device dropped before the emulator saw them, both ends together. Anything but zero makes a run invalid.
    ///
    /// # Errors
    /// Where the counters can't be read.
    pub fn device_drops(&self) -> Result<u64, WorldError> {
        let mut drops = 0;
        for end in [&self.client, &self.server] {
            let text = end.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
            let text = text.map_err(|source| WorldError::Io { what: "reading /proc/net/dev", source })?;
            drops += transmit_drops(&text, DEVICE);
        }
        Ok(drops)
    }
}

/// The `drop` column of the transmit side of /proc/net/dev.
pub(crate) fn transmit_drops(proc_net_dev: &str, device: &str) -> u64 {
    proc_net_dev
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == device)
        .and_then(|(_, counters)| counters.split_whitespace().nth(11)?.parse().ok())
        .unwrap_or(0)
}

type Prepared = (Tun, Vec<LeftAlone>, Vec<(String, String)>);
type Applied = (Vec<LeftAlone>, Vec<(String, String)>);

fn prepare(address: Ipv4Addr, mtu: u16, sysctls: &[(String, String)]) -> Result<Prepared, WorldError> {
    let (left_alone, applied) = set_sysctls(sysctls)?;
    let tun = Tun::create(DEVICE, address, mtu)?;
    Ok((tun, left_alone, applied))
}

/// Sets what every experiment needs, then `sysctls`, in the calling thread's namespace, before it has devices. What belongs to the
/// whole host comes back first, then what was set.
pub(crate) fn set_sysctls(sysctls: &[(String, String)]) -> Result<Applied, WorldError> {
    for (key, value) in ALWAYS {
        match sysctl::write(key, value) {
            // A kernel built without IPv6 has none of its keys.
            Ok(_) | Err(SysctlError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut left_alone = Vec::new();
    let mut applied = Vec::new();
    for (key, value) in sysctls {
        match sysctl::write(key, value) {
            Ok(shown) => applied.push((key.clone(), shown)),
            Err(SysctlError::Missing { .. } | SysctlError::ReadOnly { .. }) => {
                left_alone.push(LeftAlone { key: key.clone(), wanted: value.clone() });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((left_alone, applied))
}

/// Memory that is free or can be freed, for judging whether a path's packets fit.
///
/// # Errors
/// Where /proc/meminfo can't be read.
pub fn memory_available() -> Result<Bytes, WorldError> {
    meminfo("MemAvailable:")
}

/// All memory of the machine.
///
/// # Errors
/// Where /proc/meminfo can't be read.
pub fn memory_total() -> Result<Bytes, WorldError> {
    meminfo("MemTotal:")
}

fn meminfo(key: &str) -> Result<Bytes, WorldError> {
    let text = std::fs::read_to_string("/proc/meminfo")
        .map_err(|source| WorldError::Io { what: "reading /proc/meminfo", source })?;
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .unwrap_or(u64::MAX / 1024);
    Ok(Bytes::new(kib.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_drops_are_read_from_the_right_column_and_device() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
             path0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  path01: 1 2 3 4 5 6 7 8 9 10 11 99 13 14 15 16\n";
        assert_eq!(transmit_drops(text, "path0"), 12);
        assert_eq!(transmit_drops(text, "path9"), 0);
    }
}
