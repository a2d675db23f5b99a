//! The machine and its rules.

use serde::{Deserialize, Serialize};

use crate::Fact;

/// What kind of machine this is, and what can't be done on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct System {
    /// `PRETTY_NAME` of os-release(5).
    pub distribution: Fact<String>,
    /// CPUs that are online.
    pub cpus: Fact<u64>,
    /// Seconds since boot: the time that the kernel's counters cover.
    pub uptime_seconds: Fact<u64>,
    /// `kvm`, `qemu`, `vmware`, …; empty on bare metal.
    pub virtualisation: Fact<String>,
    /// `docker`, `lxc`, …; empty outside of containers.
    pub container: Fact<String>,
    /// What runs as process 1.
    pub init: Fact<String>,
    /// What this host or this process can't do, and why.
    pub forbidden: Vec<Forbidden>,
}

/// Something that can't be done here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forbidden {
    /// What can't be done.
    pub what: String,
    /// Why, with the place that says so.
    pub why: String,
}

/// A congestion control of this kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Its name.
    pub name: String,
    /// `kernel`, `bpf`.
    pub kind: String,
    /// Which BBR it is, by what a socket shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bbr_version: Option<u8>,
    /// Whether programs without privileges may choose it.
    pub allowed: bool,
    /// Whether new sockets get it.
    pub default: bool,
}
