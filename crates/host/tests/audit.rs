//! What an audit reads, against real namespaces and against copies of other machines' files.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use facts::{Device, HostFacts};
use linerate_host::audit::{self, Tree};
use linerate_host::netns::NetNs;
use linerate_host::tcp::diag::{States, each_socket};
use proptest::prelude::*;
use testkit::{Ends, ip};

fn tc(namespace: &NetNs, arguments: &str) {
    let mut command: Command = namespace.command("tc");
    let output = command.args(arguments.split(' ')).output().expect("run tc (iproute2)");
    assert!(output.status.success(), "tc {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn read_in(namespace: &NetNs) -> HostFacts {
    namespace.run(|| audit::read(&Tree::of_this_host())).expect("enter the namespace")
}

fn device<'f>(facts: &'f HostFacts, name: &str) -> &'f Device {
    let devices = facts.devices.get().expect("devices are read");
    devices.iter().find(|device| device.name == name).unwrap_or_else(|| panic!("no {name}: {devices:#?}"))
}

#[test]
fn devices_are_read_with_shapers_and_the_queues_below_mq() {
    testkit::require_root_or_skip!();
    let space = NetNs::create().unwrap();
    ip(&space, "link add wide numtxqueues 4 numrxqueues 4 type veth peer name far numtxqueues 4 numrxqueues 4");
    ip(&space, "link add shaped type veth peer name other");
    for name in ["wide", "far", "shaped", "other"] {
        ip(&space, &format!("link set {name} up"));
    }
    tc(&space, "qdisc replace dev wide root handle 1: mq");
    tc(&space, "qdisc replace dev wide parent 1:2 handle 20: tbf rate 1mbit burst 10k latency 10ms");
    tc(&space, "qdisc replace dev shaped root handle 7: htb default 1");
    tc(&space, "class add dev shaped parent 7: classid 7:1 htb rate 10mbit");
    let facts = read_in(&space);
    let wide = device(&facts, "wide");
    assert_eq!((wide.kind.as_str(), wide.tx_queues, wide.physical, wide.up), ("veth", 4, false, true));
    assert_eq!(wide.root().map(|root| (root.kind.as_str(), root.handle.as_str())), Some(("mq", "1:")));
    let leaves: Vec<_> = wide.leaves().map(|leaf| (leaf.kind.as_str(), leaf.parent.as_str())).collect();
    assert!(leaves.contains(&("tbf", "1:2")), "{leaves:?}");
    let shaped = device(&facts, "shaped");
    assert_eq!(shaped.root().map(|root| (root.kind.as_str(), root.handle.as_str())), Some(("htb", "7:")));
    assert_eq!(device(&facts, "lo").root().map(|root| root.kind.as_str()), Some("noqueue"));
    assert!(shaped.rings.get().is_none() && shaped.rings.missing.is_some(), "{:?}", shaped.rings);
}

#[test]
fn a_discipline_shows_what_it_dropped() {
    testkit::require_root_or_skip!();
    let ends = Ends::over_veth();
    tc(&ends.client, "qdisc replace dev client root handle 5: tbf rate 64kbit burst 2k limit 3000");
    let socket = ends.client.run(|| std::net::UdpSocket::bind("10.77.0.1:0").unwrap()).unwrap();
    // More than the queue holds, at once: most are dropped. Dropped packets may be reported to the sender.
    for _ in 0..64 {
        let _ = socket.send_to(&[0; 1000], "10.77.0.2:9");
    }
    let facts = read_in(&ends.client);
    let root = device(&facts, "client").root().expect("a discipline").clone();
    assert_eq!(root.kind, "tbf");
    assert!(root.dropped > 20, "{root:?}");
}

#[test]
fn listeners_are_found_with_backlog_queue_and_program() {
    testkit::require_root_or_skip!();
    let space = NetNs::create().unwrap();
    let (listener, _clients) = space
        .run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            nix::sys::socket::listen(&listener.as_fd(), nix::sys::socket::Backlog::new(7).unwrap()).unwrap();
            let at = listener.local_addr().unwrap();
            let clients: Vec<_> = (0..3).map(|_| TcpStream::connect(at).unwrap()).collect();
            (listener, clients)
        })
        .unwrap();
    let facts = read_in(&space);
    let listeners = facts.listeners.get().expect("listeners are read");
    assert_eq!(listeners.len(), 1, "{listeners:?}");
    assert_eq!(listeners[0].port, listener.local_addr().unwrap().port());
    assert_eq!((listeners[0].queued, listeners[0].backlog), (3, Some(7)));
    assert_eq!(listeners[0].owners.iter().map(|owner| owner.pid).collect::<Vec<_>>(), [std::process::id()]);
}

#[test]
fn every_connection_is_given_with_control_and_info() {
    testkit::require_root_or_skip!();
    let ends = Ends::over_veth();
    let listener = ends.server.run(|| TcpListener::bind("10.77.0.2:0").unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let mut client = ends.client.run(|| TcpStream::connect(to).unwrap()).unwrap();
    let (_server, _) = listener.accept().unwrap();
    client.write_all(&[1; 4096]).unwrap();
    let mut seen = Vec::new();
    ends.client.run(|| each_socket(States::WITH_DATA, |sample| seen.push(*sample)).unwrap()).unwrap();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!((seen[0].local, seen[0].remote), (client.local_addr().unwrap(), to));
    assert!(!seen[0].control_name().is_empty());
    let (info, memory) = (seen[0].info.expect("TCP_INFO"), seen[0].memory.expect("memory"));
    assert!(info.rtt_us > 0 && info.mss > 500 && memory.send_buffer > 4_096, "{info:?} {memory:?}");
    assert_ne!(seen[0].cookie, 0);
}

/// Devices come and go while they are read: no error, no device made up.
#[test]
fn devices_that_vanish_meanwhile_are_no_failure() {
    testkit::require_root_or_skip!();
    let space = NetNs::create().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                ip(&space, "link add short type veth peer name lived");
                ip(&space, "link del short");
            }
            stop.store(true, Ordering::Relaxed);
        });
        while !stop.load(Ordering::Relaxed) {
            let facts = space.run(audit::devices::read).unwrap();
            let names: Vec<_> =
                facts.get().expect("devices are read").iter().map(|device| device.name.clone()).collect();
            assert!(names.iter().all(|name| ["lo", "short", "lived"].contains(&name.as_str())), "{names:?}");
        }
    });
}

/// A machine's files under a folder.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let place = folder.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        Self(folder)
    }

    fn read(&self) -> HostFacts {
        audit::read(&Tree::under(self.0.path()))
    }
}

#[test]
fn a_copy_of_another_machine_is_read_from_its_files_alone() {
    let copy = Copy::new(&[
        ("etc/os-release", "ID=ubuntu\nPRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\n"),
        ("proc/uptime", "86400.12 1.00\n"),
        ("proc/net/netstat", "TcpExt: ListenOverflows ListenDrops\nTcpExt: 12 13\n"),
        ("proc/net/snmp", "Tcp: RetransSegs OutSegs\nTcp: 5 1000\n"),
        ("proc/net/softnet_stat", "0000000a 00000001 00000002\n"),
        ("proc/net/sockstat", "TCP: inuse 5 orphan 1 tw 2 alloc 6 mem 139\n"),
        (
            "proc/net/tcp",
            "header\n 0: 00000000:0050 00000000:0000 0A 00000000:00000002 00:00000000 00000000 0 0 77 1\n",
        ),
        ("proc/net/stat/nf_conntrack", "entries drop early_drop\n00000001 00000007 00000000\n"),
        ("proc/sys/net/netfilter/nf_conntrack_count", "250\n"),
        ("proc/sys/net/netfilter/nf_conntrack_max", "300\n"),
        ("proc/sys/net/core/somaxconn", "4096\n"),
        ("sys/class/dmi/id/product_name", "KVM\n"),
        ("run/systemd/container", "lxc\n"),
    ]);
    let facts = copy.read();
    assert_eq!(facts.system.distribution.get().unwrap(), "Ubuntu 24.04.1 LTS");
    assert_eq!(facts.system.virtualisation.get().unwrap(), "kvm");
    assert_eq!(facts.system.container.get().unwrap(), "lxc");
    assert_eq!(facts.system.uptime_seconds.get(), Some(&86_400));
    assert_eq!(facts.counters.get().unwrap().get("TcpExt.ListenOverflows"), Some(12));
    assert_eq!(facts.conntrack.get().unwrap().dropped, Some(7));
    assert_eq!(facts.sockstat.get().unwrap().tcp_time_wait, 2);
    let listener = &facts.listeners.get().unwrap()[0];
    assert_eq!((listener.port, listener.queued, listener.backlog), (80, 2, None));
    let words: String = facts.system.forbidden.iter().map(|forbidden| format!("{};", forbidden.what)).collect();
    assert!(words.contains("host-wide sysctls"), "{words}");
    assert!(facts.devices.get().is_none());
}

#[test]
fn a_machine_without_any_of_the_files_gives_reasons_and_no_values() {
    let facts = Copy::new(&[]).read();
    for (value, missing) in [
        (facts.counters.value.is_some(), &facts.counters.missing),
        (facts.softnet_cpus.value.is_some(), &facts.softnet_cpus.missing),
        (facts.sockstat.value.is_some(), &facts.sockstat.missing),
        (facts.conntrack.value.is_some(), &facts.conntrack.missing),
        (facts.listeners.value.is_some(), &facts.listeners.missing),
        (facts.udp_drops.value.is_some(), &facts.udp_drops.missing),
        (facts.system.distribution.value.is_some(), &facts.system.distribution.missing),
    ] {
        assert!(!value && missing.as_ref().is_some_and(|why| !why.is_empty()), "{missing:?}");
    }
}

#[test]
fn programs_of_others_stay_unknown_where_proc_hides_them() {
    // As under hidepid: the process is there, its descriptors are not to be seen.
    let copy = Copy::new(&[
        (
            "proc/net/tcp",
            "header\n 0: 00000000:0050 00000000:0000 0A 00000000:00000002 00:00000000 00000000 0 0 77 1\n",
        ),
        ("proc/12/comm", "nginx\n"),
    ]);
    let facts = copy.read();
    assert!(facts.listeners.get().unwrap()[0].owners.is_empty());
    // And where they can be seen.
    let folder = copy.0.path().join("proc/12/fd");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(Path::new("socket:[77]"), folder.join("6")).unwrap();
    let owners = copy.read().listeners.value.unwrap().remove(0).owners;
    assert_eq!(owners.iter().map(|owner| (owner.pid, owner.name.as_str())).collect::<Vec<_>>(), [(12, "nginx")]);
}

proptest! {
    #[test]
    fn no_content_of_any_file_or_answer_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        audit::exercise(&bytes);
    }

    #[test]
    fn no_text_of_any_file_makes_it_panic(text in "([A-Za-z]{1,6}[: ]? ?|[0-9a-f]{1,20} |-?[0-9]{1,25} |\n|[:.,-]|\u{fffd}){0,200}") {
        audit::exercise(text.as_bytes());
    }
}
