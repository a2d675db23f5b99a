//! Many sockets on a program that runs in this kernel.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bbr3::{Loaded, Mode, Running, Totals, sockets};
use common::{connect, load, shaped, transfer};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use testkit::{Ends, require_root_or_skip};

#[test]
fn the_monitor_record_of_every_socket_can_be_read_from_outside() {
    require_root_or_skip!();
    let loaded = load(|_| {});
    let ends = shaped("60mbit", 60_000);
    let running = Running::find(loaded.name()).unwrap();
    let mut seen = Vec::new();
    transfer(&ends, loaded.name(), Duration::from_secs(1), || {
        let now = ends.client.run(|| sockets(&running)).unwrap().expect("ask sock_diag");
        // After the transfer there is none.
        seen = if now.is_empty() { std::mem::take(&mut seen) } else { now };
    });
    let [socket] = seen.as_slice() else { panic!("one socket: {seen:?}") };
    assert_eq!((socket.local.0, socket.remote.0), (ends.client_addr, ends.server_addr));
    assert_ne!(socket.monitor.mode, Mode::Startup);
    assert!(socket.monitor.bandwidth.as_mbps_f64() > 10.0, "{socket:?}");
    assert_eq!(ends.client.run(|| sockets(&running)).unwrap().unwrap(), [], "the connection is closed");
}

/// Kernel memory that can't be reclaimed, in kB.
fn kernel_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("SUnreclaim:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Opens `count` connections, sends something over each and closes them all; half of them orderly, half by reset.
fn open_and_close(server: &TcpListener, control: &str, count: usize) {
    let address = server.local_addr().unwrap();
    let mut pairs: Vec<(TcpStream, TcpStream)> = Vec::with_capacity(count);
    for _ in 0..count {
        let client = connect(address, control);
        pairs.push((client, server.accept().unwrap().0));
    }
    for (client, server) in &mut pairs {
        client.write_all(&[7; 4000]).unwrap();
        server.read_exact(&mut [0; 4000]).unwrap();
    }
    for (index, (client, server)) in pairs.into_iter().enumerate() {
        if index % 2 == 0 {
            reset_on_close(&client);
            drop(client);
        } else {
            // The listener's side closes first: no port of the connecting side stays in TIME_WAIT.
            drop(server);
            drop(client);
        }
    }
}

/// Closing sends a reset.
fn reset_on_close(stream: &TcpStream) {
    let now = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::Linger, &now).unwrap();
}

/// Waits until every socket has given its storage back.
fn settled(loaded: &Loaded) -> Totals {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let totals = loaded.totals().unwrap();
        if totals.releases == totals.inits || Instant::now() > deadline {
            return totals;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_hundred_thousand_connections_a_thousand_at_a_time_leave_nothing_and_none_is_degraded() {
    require_root_or_skip!();
    const AT_ONCE: usize = 1000;
    const TIMES: usize = 100;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(10_000), hard).unwrap();
    let loaded = load(|_| {});
    let ends = Ends::on_loopback();
    let name = loaded.name().to_owned();
    let mut memory = Vec::new();
    ends.client
        .run(|| {
            // Each server address has its own set of ports.
            for round in 0..TIMES {
                let address = Ipv4Addr::new(127, 0, 1, round as u8);
                let server = TcpListener::bind(SocketAddr::from((address, 0))).unwrap();
                open_and_close(&server, &name, AT_ONCE);
                memory.push(kernel_memory());
            }
        })
        .unwrap();
    let totals = settled(&loaded);
    // Accepted sockets use the namespace's default.
    assert_eq!(totals.inits, (AT_ONCE * TIMES) as u64);
    assert_eq!((totals.releases, totals.degraded), (totals.inits, 0), "{totals:?}");
    // Had each socket left its 4.7 kB, these were 420 MB from the tenth round to the last.
    let (tenth, last) = (memory[9], memory[TIMES - 1]);
    println!("kernel memory after 10,000 sockets {tenth} kB, after 100,000 {last} kB; {totals:?}");
    assert!(last < tenth + 60_000, "kernel memory grew from {tenth} to {last} kB");
}
