use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

use host::netns::NetNs;

/// Two ends that reach each other, in namespaces of their own. Everything vanishes when the last clone of both does.
#[derive(Debug, Clone)]
pub struct Ends {
    /// Where clients run.
    pub client: NetNs,
    /// Where servers run.
    pub server: NetNs,
    /// The client's address.
    pub client_addr: IpAddr,
    /// The server's address.
    pub server_addr: IpAddr,
}

impl Ends {
    /// Both ends in one namespace, over `lo`.
    ///
    /// # Panics
    /// Where namespaces can't be made: start the test with [`require_root_or_skip!`](crate::require_root_or_skip).
    pub fn on_loopback() -> Self {
        let both = NetNs::create().expect("make a network namespace");
        let addr = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self { client: both.clone(), server: both, client_addr: addr, server_addr: addr }
    }

    /// Two namespaces joined by a veth pair, 10.77.0.1/24 (device `client`) and 10.77.0.2/24 (device `server`).
    ///
    /// # Panics
    /// Where namespaces can't be made or `ip` (iproute2) is missing.
    pub fn over_veth() -> Self {
        let (client, server) = (NetNs::create(), NetNs::create());
        let ends = Self {
            client: client.expect("make a network namespace"),
            server: server.expect("make a network namespace"),
            client_addr: IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1)),
            server_addr: IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2)),
        };
        ip(&ends.client, "link add client type veth peer name server");
        let target = format!("/proc/{}/fd/{}", std::process::id(), ends.server.as_fd().as_raw_fd());
        ip(&ends.client, &format!("link set server netns {target}"));
        for (namespace, device, addr) in
            [(&ends.client, "client", ends.client_addr), (&ends.server, "server", ends.server_addr)]
        {
            ip(namespace, &format!("address add {addr}/24 dev {device}"));
            ip(namespace, &format!("link set {device} up"));
        }
        ends
    }
}

/// Runs `ip` (iproute2) with these blank-separated arguments inside a namespace.
///
/// # Panics
/// Where it is missing or fails.
pub fn ip(namespace: &NetNs, arguments: &str) {
    let mut command: Command = namespace.command("ip");
    let output = command.args(arguments.split(' ')).output().expect("run ip (iproute2)");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
