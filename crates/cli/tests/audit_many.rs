//! What an audit of very many connections costs. Not part of the usual run: it makes 100,000 sockets.
//!
//! `cargo test --release -p linerate --test audit_many -- --ignored --nocapture one_hundred_thousand`

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Instant;

use host::netns::NetNs;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;
use testkit::ip;

const CONNECTIONS: u64 = 50_000;
/// How many connections a holder makes.
const HOLD: &str = "LINERATE_TEST_CONNECTIONS";

/// Holds connections in a process of its own: one process may open only so many files.
#[test]
#[ignore = "started by the other test"]
fn holder() {
    let Ok(count) = std::env::var(HOLD) else { return };
    let listener = TcpListener::bind("10.88.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let both: Vec<_> =
        (0..count.parse().unwrap()).map(|_| (TcpStream::connect(to).unwrap(), listener.accept().unwrap())).collect();
    println!("\nheld {}", both.len());
    // Until the other test ends.
    let _ = std::io::stdin().read(&mut [0]);
}

fn hold(space: &NetNs, count: u64) -> Child {
    let mut command = space.command(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "holder", "--nocapture"]).env(HOLD, count.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let held = format!("held {count}");
    assert!(lines.map_while(Result::ok).any(|line| line == held), "a holder could not make its connections");
    child
}

#[test]
#[ignore = "makes 100,000 sockets; a measurement"]
fn one_hundred_thousand_sockets_take_less_than_a_second_and_150_mb() {
    testkit::require_root_or_skip!();
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let each = ((soft - 100) / 2).min(CONNECTIONS);
    let space = NetNs::create().unwrap();
    // Not 127.0.0.1: connections over that are left out.
    ip(&space, "address add 10.88.0.1/24 dev lo");
    let mut holders = Vec::new();
    let mut left = CONNECTIONS;
    while left > 0 {
        let count = each.min(left);
        holders.push(hold(&space, count));
        left -= count;
    }
    for words in [&["--json"][..], &["--json"], &["--json"], &["--json", "--observe", "4s"]] {
        let began = Instant::now();
        let output = space.command(env!("CARGO_BIN_EXE_linerate")).arg("audit").args(words).output().unwrap();
        let took = began.elapsed();
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let states = &document["facts"]["connections"]["value"]["states"];
        println!(
            "{words:?}: {took:.3?}, CPU so far {} + {} ms, largest {} KiB, {states}, looks {}",
            usage.user_time().num_milliseconds(),
            usage.system_time().num_milliseconds(),
            usage.max_rss(),
            document["facts"]["observed"]["looks"],
        );
        assert_eq!(states["established"].as_u64(), Some(CONNECTIONS * 2));
        assert!(usage.max_rss() < 150 << 10, "{} KiB", usage.max_rss());
        assert!(words.len() > 1 || took.as_secs_f64() < 1.0, "{took:?}");
    }
    for mut holder in holders {
        drop(holder.stdin.take());
        holder.wait().unwrap();
    }
}
