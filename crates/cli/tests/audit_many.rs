//! What an audit of very many connections costs. Not part of the usual run: it makes 100,000 sockets.
//!
//! `cargo test --release -p linerate --test audit_many -- --ignored --nocapture`

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use host::netns::NetNs;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use serde_json::Value;
use testkit::ip;

const CONNECTIONS: usize = 50_000;
const PORTS: usize = 5;

#[test]
#[ignore = "makes 100,000 sockets; a measurement"]
fn one_hundred_thousand_sockets_take_less_than_a_second_and_150_mb() {
    testkit::require_root_or_skip!();
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let need = CONNECTIONS as u64 * 2 + 1_000;
    setrlimit(Resource::RLIMIT_NOFILE, need, most.max(need)).expect("raise the limit of open files");
    let space = NetNs::create().unwrap();
    // Not 127.0.0.1: connections over that are left out.
    ip(&space, "address add 10.88.0.1/24 dev lo");
    let both = space
        .run(|| {
            let listeners: Vec<TcpListener> = (0..PORTS).map(|_| TcpListener::bind("10.88.0.1:0").unwrap()).collect();
            let places: Vec<SocketAddr> = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
            let mut both = Vec::with_capacity(CONNECTIONS * 2);
            for number in 0..CONNECTIONS {
                let client = TcpStream::connect(places[number % PORTS]).unwrap();
                let (server, _) = listeners[number % PORTS].accept().unwrap();
                both.extend([client, server]);
            }
            (both, listeners)
        })
        .unwrap();
    for words in [&["--json"][..], &["--json", "--observe", "4s"]] {
        let began = Instant::now();
        let output = space.command(env!("CARGO_BIN_EXE_linerate")).arg("audit").args(words).output().unwrap();
        let took = began.elapsed();
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let states = &document["facts"]["connections"]["value"]["states"];
        println!(
            "{words:?}: {took:.3?}, children's CPU {} ms + {} ms, largest {} KiB, {states}, looks {}",
            usage.user_time().num_milliseconds(),
            usage.system_time().num_milliseconds(),
            usage.max_rss(),
            document["facts"]["observed"]["looks"],
        );
        assert_eq!(states["established"].as_u64(), Some(both.0.len() as u64));
        assert!(usage.max_rss() < 150 << 10, "{} KiB", usage.max_rss());
        assert!(words.len() > 1 || took.as_secs_f64() < 1.0, "{took:?}");
    }
}
