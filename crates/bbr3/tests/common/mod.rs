//! Shared by the tests on this kernel: a loaded program of a name of its own, and traffic in private namespaces.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bbr3::{Loaded, Options};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, socket};
use testkit::Ends;

static LOADED: AtomicU32 = AtomicU32::new(0);

/// Under a name that nobody else uses: other tests may run at the same time.
pub fn load(change: impl FnOnce(&mut Options)) -> Loaded {
    let name = format!("t{}_{}", std::process::id(), LOADED.fetch_add(1, Ordering::Relaxed));
    let mut options = Options { name, ..Options::default() };
    change(&mut options);
    Loaded::ephemeral(&options).expect("load BBRv3")
}

/// A veth pair whose forward direction carries `rate` (as tc(8) writes it) with a queue of `queue` bytes.
pub fn shaped(rate: &str, queue: u32) -> Ends {
    let ends = Ends::over_veth();
    let arguments = format!("qdisc add dev client root tbf rate {rate} burst 4000 limit {queue}");
    let output = ends.client.command("tc").args(arguments.split(' ')).output().expect("run tc (iproute2)");
    assert!(output.status.success(), "tc {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    ends
}

/// Sends for `time` over one connection that uses `control`, and returns the bytes that arrived. `running` is called about a hundred
/// times a second meanwhile.
pub fn transfer(ends: &Ends, control: &str, time: Duration, mut running: impl FnMut()) -> u64 {
    let server = ends.server.run(|| TcpListener::bind(SocketAddr::new(ends.server_addr, 0)).unwrap()).unwrap();
    let address = server.local_addr().unwrap();
    let receiver = std::thread::spawn(move || {
        let (mut connection, _) = server.accept().unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut arrived = 0;
        loop {
            match connection.read(&mut buffer) {
                Ok(0) | Err(_) => return arrived,
                Ok(bytes) => arrived += bytes as u64,
            }
        }
    });
    let mut connection = ends.client.run(|| connect(address, control)).unwrap();
    connection.set_write_timeout(Some(Duration::from_millis(10))).unwrap();
    let end = Instant::now() + time;
    let mut next = Instant::now();
    let data = vec![0; 1 << 16];
    while Instant::now() < end {
        match connection.write(&data) {
            Err(error) if !matches!(error.kind(), std::io::ErrorKind::WouldBlock) => panic!("{error}"),
            _ => {}
        }
        if Instant::now() >= next {
            running();
            next = Instant::now() + Duration::from_millis(10);
        }
    }
    drop(connection);
    // What is in the send buffer goes on.
    while !receiver.is_finished() {
        running();
        std::thread::yield_now();
    }
    receiver.join().unwrap()
}

/// A connection whose every packet `control` controls: it is chosen before the handshake.
pub fn connect(address: SocketAddr, control: &str) -> TcpStream {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("open a socket");
    host::tcp::set_congestion_control(&socket, control).expect("choose the control");
    nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(address)).expect("connect");
    assert_eq!(host::tcp::congestion_control(&socket).unwrap(), control);
    TcpStream::from(socket)
}
