//! TCP listeners and the programs that hold them.

use std::collections::HashMap;
use std::fs;
use std::io;

use facts::{Fact, Listener, Owner, Sample, UdpDrops};

use super::counters::{net, udp_sockets};
use super::tree::{Tree, sentence};
use crate::tcp::diag::{States, each_socket, listeners_in_table};

/// Listeners of the calling thread's namespace, without owners: from socket diagnostics, else from `/proc/net/tcp`, which does not
/// tell the backlog.
pub fn read(tree: &Tree) -> Fact<Vec<Listener>> {
    let mut found = Vec::new();
    let mut add = |sample: &Sample, backlog: Option<u32>| {
        found.push(Listener {
            address: sample.local.ip(),
            port: sample.local.port(),
            queued: sample.receive_queue,
            backlog,
            owners: Vec::new(),
            configured: None,
            inode: sample.inode,
        });
    };
    let asked = if tree.is_this_host() {
        each_socket(States::LISTEN, |sample| add(sample, Some(sample.send_queue)))
    } else {
        Err(io::ErrorKind::Unsupported.into())
    };
    let from = match asked {
        Ok(()) => "netlink SOCK_DIAG_BY_FAMILY".to_owned(),
        Err(_) => {
            found.clear();
            let table = format!("{}/tcp", net(tree));
            match tree.read(&table) {
                Ok(text) => listeners_in_table(&text).iter().for_each(|sample| found.push(from_table(sample))),
                Err(error) => return Fact::missing(table, sentence(&error)),
            }
            // A kernel without IPv6 has none.
            if let Ok(text) = tree.read(&format!("{table}6")) {
                listeners_in_table(&text).iter().for_each(|sample| found.push(from_table(sample)));
            }
            format!("{table}, {table}6 (no socket diagnostics: backlogs are not known)")
        }
    };
    found.sort_by_key(|listener| (listener.port, listener.address));
    Fact::known(from, found)
}

fn from_table(sample: &Sample) -> Listener {
    Listener {
        address: sample.local.ip(),
        port: sample.local.port(),
        queued: sample.receive_queue,
        backlog: None,
        owners: Vec::new(),
        configured: None,
        inode: sample.inode,
    }
}

/// Port, inode and drops of a UDP socket.
type UdpSocket = (u16, u32, u64);

/// UDP sockets that have dropped something, without owners; an error with the file it is about.
fn udp(tree: &Tree) -> Result<Vec<UdpSocket>, (String, io::Error)> {
    let path = format!("{}/udp", net(tree));
    let mut found = udp_sockets(&tree.read(&path).map_err(|error| (path.clone(), error))?);
    if let Ok(text) = tree.read(&format!("{path}6")) {
        found.extend(udp_sockets(&text));
    }
    Ok(found)
}

/// Finds the owners of all sockets in one pass over `/proc`: fills them in for listeners, and returns UDP sockets with drops.
/// The last value is the number of processes that could not be looked into.
pub fn owners(tree: &Tree, listeners: &mut Fact<Vec<Listener>>) -> (Fact<Vec<UdpDrops>>, u64) {
    let udp = udp(tree);
    let listening = listeners.value.as_mut();
    let mut wanted: HashMap<u32, Option<Owner>> = HashMap::new();
    wanted.extend(listening.iter().flat_map(|all| all.iter()).map(|listener| (listener.inode, None)));
    wanted.extend(udp.iter().flatten().map(|(_, inode, _)| (*inode, None)));
    // Sockets of the kernel itself.
    wanted.remove(&0);
    let hidden = search(tree, &mut wanted);
    let owner = |inode: u32| wanted.get(&inode).cloned().flatten().into_iter().collect::<Vec<_>>();
    for listener in listeners.value.iter_mut().flatten() {
        listener.owners = owner(listener.inode);
    }
    let udp = match udp {
        Ok(found) => {
            let drops =
                found.into_iter().map(|(port, inode, dropped)| UdpDrops { port, dropped, owners: owner(inode) });
            Fact::known("/proc/net/udp, /proc/net/udp6", drops.collect())
        }
        Err((path, error)) => Fact::missing(path, sentence(&error)),
    };
    (udp, hidden)
}

/// The first process that holds each socket; processes in the order of their numbers, so that it is the parent where children share
/// it. Ends as soon as every owner is known.
fn search(tree: &Tree, wanted: &mut HashMap<u32, Option<Owner>>) -> u64 {
    let mut left = wanted.len();
    let mut hidden = 0;
    let mut processes: Vec<u32> = tree.names("/proc").iter().filter_map(|name| name.parse().ok()).collect();
    processes.sort_unstable();
    for pid in processes {
        if left == 0 {
            break;
        }
        let folder = tree.place(&format!("/proc/{pid}/fd"));
        let descriptors = match fs::read_dir(&folder) {
            Ok(descriptors) => descriptors,
            Err(error) => {
                hidden += u64::from(error.kind() == io::ErrorKind::PermissionDenied);
                continue;
            }
        };
        let mut name = None;
        for descriptor in descriptors.flatten() {
            let Ok(target) = fs::read_link(descriptor.path()) else { continue };
            let Some(inode) = target.to_str().and_then(inode_of_socket) else { continue };
            if let Some(owner @ None) = wanted.get_mut(&inode) {
                let name = name.get_or_insert_with(|| {
                    tree.read(&format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
                });
                *owner = Some(Owner { pid, name: name.clone() });
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
    }
    hidden
}

/// The number in `socket:[4711]`.
fn inode_of_socket(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The words with which a process was started; none where they can't be read.
pub fn command_line(tree: &Tree, pid: u32) -> Vec<String> {
    let text = tree.read(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_sockets_count() {
        assert_eq!(inode_of_socket("socket:[4711]"), Some(4711));
        for other in ["pipe:[1]", "socket:[", "socket:[x]", "/dev/null", "socket:[1]x"] {
            assert_eq!(inode_of_socket(other), None, "{other}");
        }
    }
}
