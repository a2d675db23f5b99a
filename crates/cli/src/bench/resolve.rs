//! From a name to addresses.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc;

use crate::exit::Failure;

/// The longest that a name may take to become addresses.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);

/// Which addresses are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Any,
    V4,
    V6,
}

/// The addresses of `host`, in the resolver's order.
pub fn resolve(host: &str, port: u16, family: Family) -> Result<Vec<SocketAddr>, Failure> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let all = match bare.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => look_up(bare, port)?,
    };
    let wanted = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let found: Vec<SocketAddr> = all.iter().copied().filter(wanted).collect();
    if found.is_empty() {
        let has: Vec<String> = all.iter().map(|address| address.ip().to_string()).collect();
        let kind = if family == Family::V4 { "IPv4" } else { "IPv6" };
        return Err(Failure::usage(format_args!("{host} has no {kind} address (it has {})", has.join(", "))));
    }
    Ok(found)
}

/// Asks the resolver on a thread of its own, since it can't be told to stop.
fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let (answer, wait) = mpsc::channel();
    let name = host.to_owned();
    std::thread::spawn(move || {
        let _ = answer.send((name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>));
    });
    match wait.recv_timeout(PATIENCE) {
        Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
        Ok(Ok(_)) => Err(Failure::usage(format_args!("{host} has no address"))),
        Ok(Err(error)) => Err(Failure::usage(format_args!(
            "{host}: {error}: is the name right, and does this machine reach its name server?"
        ))),
        Err(_) => Err(Failure::usage(format_args!("{host}: no answer from the name server within {PATIENCE:?}"))),
    }
}
