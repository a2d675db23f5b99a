//! Congestion controls and TCP_INFO on real sockets of the running kernel.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

use linerate_host::cc::{self, CcKind, CcVersion};
use linerate_host::netns::NetNs;
use linerate_host::tcp::{self, SetCongestionControlError, TcpInfo};
use testkit::require_root_or_skip;
use units::Bytes;

#[test]
fn a_socket_runs_the_control_it_was_given() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp::set_congestion_control(&socket, "reno").unwrap();
    assert_eq!(tcp::congestion_control(&socket).unwrap(), "reno");
    assert_eq!(CcVersion::of(&socket).unwrap(), CcVersion { name: "reno".into(), kind: CcKind::Kernel });
}

#[test]
fn an_unknown_control_is_refused_with_the_list_of_what_there_is() {
    for name in ["no-such-cc", "", "renoooooooooooooooooooo"] {
        match cc::probe_version(name) {
            Err(SetCongestionControlError::Unknown { available, .. }) => {
                assert!(available.contains(&"reno".to_owned()), "{available:?}")
            }
            other => panic!("{name:?}: {other:?}"),
        }
    }
}

#[test]
fn mainline_bbr_is_version_1_by_what_it_shows() {
    require_root_or_skip!();
    if !cc::available().unwrap().contains(&"bbr".to_owned()) {
        eprintln!("SKIPPED: this kernel has no bbr loaded");
        return;
    }
    // A kernel with a version 3 under this name (google/bbr, XanMod) says so; nothing else may come out.
    assert!(matches!(cc::probe_version("bbr").unwrap().kind, CcKind::Bbr(1 | 3)));
}

#[test]
fn the_default_of_a_namespace_is_one_of_the_available_controls() {
    require_root_or_skip!();
    let (default, available, allowed) = NetNs::create()
        .unwrap()
        .run(|| (cc::default_control().unwrap(), cc::available().unwrap(), cc::allowed().unwrap()))
        .unwrap();
    assert!(available.contains(&default));
    assert!(allowed.iter().all(|name| available.contains(name)), "{allowed:?} {available:?}");
}

#[test]
fn tcp_info_counts_the_bytes_that_the_peer_acknowledged() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    tcp::set_notsent_lowat(&client, Bytes::new(131_072)).unwrap();
    client.write_all(&[7; 10_000]).unwrap();
    server.read_exact(&mut [0; 10_000]).unwrap();
    assert_eq!(TcpInfo::of(&server).unwrap().bytes_received(), Bytes::new(10_000));
    // The answer carries the acknowledgement.
    server.write_all(&[1]).unwrap();
    client.read_exact(&mut [0]).unwrap();
    let info = TcpInfo::of(&client).unwrap();
    assert!(info.bytes_acked() >= Bytes::new(10_000), "{info:?}");
    assert_eq!(info.raw().state, 1);
    assert!(info.srtt().is_some() && info.min_rtt().is_some());
}

#[test]
fn a_socket_that_is_not_tcp_has_no_tcp_info() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(TcpInfo::of(&socket).is_err());
    assert!(tcp::set_notsent_lowat(&socket, Bytes::new(1)).is_err());
}
