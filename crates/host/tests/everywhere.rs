//! Namespaces and sockets of the whole machine, found from outside.

use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use linerate_host::everywhere::{self, Holder};
use linerate_host::netns::NetNs;
use linerate_host::{cc, tcp};
use testkit::require_root_or_skip;

fn holder_of(inode: u64) -> Option<Holder> {
    let found = everywhere::look().unwrap();
    let mut places = found.places.into_iter().filter(|place| place.inode == inode);
    let first = places.next().map(|place| place.holder);
    assert!(places.next().is_none(), "each namespace once");
    first
}

#[test]
fn the_own_namespace_comes_first_whatever_may_be_seen() {
    let found = everywhere::look().unwrap();
    assert_eq!(found.places[0].holder, Holder::Here);
    assert_eq!(found.places[0].inode, NetNs::current().unwrap().inode().unwrap());
}

#[test]
fn a_namespace_is_found_by_a_descriptor_a_thread_and_a_process() {
    require_root_or_skip!();
    let namespace = NetNs::create().unwrap();
    let inode = namespace.inode().unwrap();
    let own = std::process::id();
    assert!(matches!(holder_of(inode), Some(Holder::Descriptor { pid, .. }) if pid == own));
    let by_thread = namespace.clone().run(move || holder_of(inode)).unwrap();
    assert_eq!(by_thread, Some(Holder::Here));
    // A thread other than the one that looks.
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let thread = namespace.spawn("inside", move || wait.recv().is_err()).unwrap();
    assert!(matches!(holder_of(inode), Some(Holder::Process { pid, .. }) if pid == own));
    drop(stop);
    assert!(thread.join().unwrap());
    let mut child = namespace.command("cat").stdin(Stdio::piped()).spawn().unwrap();
    drop(namespace);
    let pid = child.id();
    assert_eq!(holder_of(inode), Some(Holder::Process { pid, name: "cat".into() }));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(holder_of(inode), None, "it went with its last holder");
}

#[test]
fn files_that_are_no_network_namespace_are_not_opened_as_one() {
    for path in ["/proc/self/ns/mnt", "/dev/null", "/proc/self/ns/none"] {
        assert!(NetNs::open(path).is_err(), "{path}");
    }
    assert!(NetNs::open("/proc/self/ns/net").is_ok());
}

#[test]
fn sockets_are_counted_by_the_control_they_run_in_their_namespace_only() {
    require_root_or_skip!();
    // A namespace for each address: a child forked by another test keeps a closed listener alive until its exec.
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let count = move || {
            assert!(tcp::control_users().unwrap().is_empty(), "a fresh namespace has no sockets");
            let Ok(listener) = TcpListener::bind(address) else { return };
            let default = cc::default_control().unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_server, _) = listener.accept().unwrap();
            tcp::set_congestion_control(&client, "reno").unwrap();
            let users = tcp::control_users().unwrap();
            assert_eq!(users["reno"].connections, 1, "{address}: {users:?}");
            assert_eq!((users[&default].connections, users[&default].listeners), (1, 1), "{address}");
        };
        NetNs::create().unwrap().run(count).unwrap();
    }
}

#[test]
fn the_default_of_a_namespace_is_set_and_read_back() {
    require_root_or_skip!();
    NetNs::create()
        .unwrap()
        .run(|| {
            cc::set_default_control("reno").unwrap();
            assert_eq!(cc::default_control().unwrap(), "reno");
            assert!(cc::set_default_control("no_such_cc").is_err());
            assert_eq!(cc::default_control().unwrap(), "reno");
        })
        .unwrap();
}

#[test]
fn the_kernels_own_controls_are_known_as_such() {
    assert!(cc::is_kernels_own("reno").unwrap());
    assert!(!cc::is_kernels_own("no_such_cc").unwrap());
}
