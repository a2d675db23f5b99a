//! Against the `iperf3` binary, in both roles, in a private network namespace. What the two ends say must agree.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Child, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use host::clock::Clock;
use linerate_measure::iperf::client::{self, ClientPlan, Ending, Length, TestOutcome};
use linerate_measure::iperf::server::{Event, Server, ServerLimits, ServerPlan};
use linerate_measure::iperf::wire::Direction;
use linerate_measure::traffic::StopFlag;
use serde_json::Value;
use testkit::{Ends, require_root_or_skip};
use units::{Bytes, Duration, Rate};

/// One test at a time: they share two cores.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const PORT: u16 = 5201;

fn has_iperf3() -> bool {
    let found = std::process::Command::new("iperf3").arg("--version").output().is_ok();
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "iperf3 is missing under CI");
    if !found {
        eprintln!("SKIPPED: no iperf3");
    }
    found
}

fn plan(server: IpAddr) -> ClientPlan {
    ClientPlan {
        servers: vec![SocketAddr::new(server, PORT)],
        from: None,
        direction: Direction::Forward,
        streams: 1,
        length: Length::Time(Duration::from_secs(1)),
        omit: Duration::ZERO,
        congestion_control: None,
        // Loopback at full speed would measure the machine; the protocol is what is tested here.
        rate: Some(Rate::from_mbps(50)),
        sample_every: Duration::from_millis(50),
        probe: true,
        token: None,
        patience: Duration::from_secs(5),
        version: "test".into(),
        clock: Clock::start(),
        stop: StopFlag::new(),
    }
}

struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a plan of ours against `iperf3 -s`, which listens when it says so.
fn against_iperf3(plan: impl Fn(ClientPlan) -> ClientPlan + Sync) -> Option<TestOutcome> {
    if !has_iperf3() {
        return None;
    }
    let _alone = alone();
    let ends = Ends::on_loopback();
    let mut command = ends.server.command("iperf3");
    let command = command.args(["-s", "-1", "--forceflush"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = KillOnDrop(command.spawn().unwrap());
    let mut out = std::io::BufReader::new(server.0.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut out, &mut line).unwrap() > 0, "iperf3 -s ended");
    }
    // Somebody has to read what it prints.
    std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    let outcome = ends.client.run(|| client::run(&plan(self::plan(ends.server_addr)), &mut |_| {})).unwrap();
    Some(outcome.expect("the test runs"))
}

/// Runs `iperf3 -c` with these words against a server of ours, and returns what it and the server said.
fn against_ours(address: IpAddr, words: &[&str]) -> Option<(Output, Vec<Event>)> {
    if !has_iperf3() {
        return None;
    }
    let _alone = alone();
    let ends = Ends::on_loopback();
    let stop = StopFlag::new();
    let plan = ServerPlan {
        listen: vec![SocketAddr::new(address, PORT)],
        limits: ServerLimits { patience: Duration::from_secs(5), ..ServerLimits::default() },
        token: None,
        linerate_version: "test".into(),
        kernel: "test".into(),
        stop: stop.clone(),
    };
    let events = Mutex::new(Vec::new());
    let output = ends
        .server
        .run(|| {
            let server = Server::bind(plan).unwrap();
            std::thread::scope(|scope| {
                let serving = scope.spawn(|| server.run(&|event| events.lock().unwrap().push(event)));
                let output = ends.client.command("iperf3").arg("-c").arg(address.to_string()).args(words).output();
                stop.stop();
                serving.join().unwrap().unwrap();
                output
            })
        })
        .unwrap();
    Some((output.unwrap(), events.into_inner().unwrap()))
}

fn as_json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(output.status.success() && value.get("error").is_none(), "{}", value["error"]);
    value
}

#[track_caller]
fn near(value: f64, expected: f64, share: f64) {
    assert!((value - expected).abs() <= share * expected, "{value} is not within {share} of {expected}");
}

#[track_caller]
fn check_streams(outcome: &TestOutcome, forward: bool, count: usize) {
    assert_eq!(outcome.ending, Ending::Complete);
    assert_eq!(outcome.hello, None, "an iperf3 does not greet");
    let streams: Vec<_> = outcome.streams_of(forward).collect();
    assert_eq!(streams.len(), count);
    for stream in streams {
        let (sent, received) = (stream.sent.unwrap(), stream.received.unwrap());
        near(received.as_u64() as f64, sent.as_u64() as f64, 0.3);
        near(stream.received_in.as_secs_f64(), 1.0, 0.3);
        assert_eq!(stream.samples.is_empty(), !forward, "samples of our own sockets only");
        assert_eq!(stream.received_series.is_empty(), forward);
    }
    near(outcome.goodput(forward).unwrap().as_mbps_f64(), 50.0 * count as f64, 0.3);
    assert!(outcome.server_cpu.is_some());
}

#[test]
fn our_client_sends_to_iperf3() {
    require_root_or_skip!();
    let Some(outcome) = against_iperf3(|plan| plan) else { return };
    check_streams(&outcome, true, 1);
}

#[test]
fn our_client_receives_from_iperf3() {
    require_root_or_skip!();
    let Some(outcome) = against_iperf3(|plan| ClientPlan { direction: Direction::Reverse, ..plan }) else { return };
    check_streams(&outcome, false, 1);
}

#[test]
fn our_client_and_iperf3_send_in_parallel_and_both_ways() {
    require_root_or_skip!();
    let change = |plan| ClientPlan { direction: Direction::Both, streams: 3, ..plan };
    let Some(outcome) = against_iperf3(change) else { return };
    check_streams(&outcome, true, 3);
    check_streams(&outcome, false, 3);
    let ids: Vec<i64> = outcome.streams.iter().map(|stream| stream.id).collect();
    assert_eq!(ids, [1, 3, 4, 5, 6, 7], "iperf3 leaves out 2");
}

#[test]
fn our_clients_congestion_control_is_used_at_both_ends() {
    require_root_or_skip!();
    let change = |plan| ClientPlan { congestion_control: Some("reno".into()), direction: Direction::Reverse, ..plan };
    let Some(outcome) = against_iperf3(change) else { return };
    assert_eq!(outcome.streams[0].congestion_control.as_deref(), Some("reno"));
    assert_eq!(outcome.server_results.unwrap().congestion_used.as_deref(), Some("reno"));
}

#[test]
fn our_clients_warm_up_is_left_out_at_both_ends() {
    require_root_or_skip!();
    for direction in [Direction::Forward, Direction::Reverse] {
        let change = |plan| ClientPlan { omit: Duration::from_secs(1), direction, ..plan };
        let Some(outcome) = against_iperf3(change) else { return };
        check_streams(&outcome, direction == Direction::Forward, 1);
        near(outcome.ended_at.since(outcome.started_at).as_secs_f64(), 2.0, 0.2);
    }
}

#[test]
fn our_client_moves_so_many_bytes() {
    require_root_or_skip!();
    for direction in [Direction::Forward, Direction::Reverse] {
        let bytes = Bytes::new(20_000_000);
        let change = |plan| ClientPlan { length: Length::Bytes(bytes), direction, streams: 2, ..plan };
        let Some(outcome) = against_iperf3(change) else { return };
        assert_eq!(outcome.ending, Ending::Complete);
        let received: u64 = outcome.streams.iter().map(|stream| stream.received.unwrap().as_u64()).sum();
        near(received as f64, bytes.as_u64() as f64, 0.1);
    }
}

#[test]
fn iperf3_sends_to_our_server() {
    require_root_or_skip!();
    let server = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some((output, events)) = against_ours(server, &["-J", "-t", "1", "-b", "50M"]) else { return };
    let said = as_json(&output);
    near(said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap(), 50e6, 0.3);
    let Some(Event::Ended { summary, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!(summary.received.as_u64(), said["end"]["sum_received"]["bytes"].as_u64().unwrap());
    assert!(said["end"]["cpu_utilization_percent"]["remote_total"].as_f64().unwrap() > 0.0);
}

#[test]
fn iperf3_receives_from_our_server() {
    require_root_or_skip!();
    let server = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some((output, events)) = against_ours(server, &["-J", "-t", "1", "-R", "-b", "50M"]) else { return };
    let said = as_json(&output);
    near(said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap(), 50e6, 0.3);
    assert_eq!(said["end"]["sum_sent"]["retransmits"], 0);
    let Some(Event::Ended { summary, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!(summary.sent.as_u64(), said["end"]["sum_sent"]["bytes"].as_u64().unwrap());
}

#[test]
fn iperf3_and_our_server_send_in_parallel_and_both_ways_at_full_speed() {
    require_root_or_skip!();
    let server = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some((output, _)) = against_ours(server, &["-J", "-t", "1", "--bidir", "-P", "3"]) else { return };
    let said = as_json(&output);
    let streams = said["end"]["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 6);
    for stream in streams {
        assert!(stream["receiver"]["bytes"].as_u64().unwrap() > 0, "{stream}");
    }
    assert!(said["end"]["sum_received_bidir_reverse"]["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn iperf3s_reverse_test_at_full_speed_ends_without_an_error() {
    require_root_or_skip!();
    let server = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some((output, _)) = against_ours(server, &["-J", "-t", "1", "-R", "-P", "2"]) else { return };
    let said = as_json(&output);
    near(
        said["end"]["sum_received"]["bytes"].as_f64().unwrap(),
        said["end"]["sum_sent"]["bytes"].as_f64().unwrap(),
        0.2,
    );
}

#[test]
fn iperf3s_options_reach_our_server() {
    require_root_or_skip!();
    let server = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let words = ["-J", "-t", "1", "-R", "-C", "reno", "-O", "1", "--fq-rate", "100M", "-N"];
    let Some((output, events)) = against_ours(server, &words) else { return };
    let said = as_json(&output);
    assert_eq!(said["end"]["sender_tcp_congestion"], "reno");
    assert_eq!(said["end"]["receiver_tcp_congestion"], "reno");
    near(said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap(), 100e6, 0.3);
    near(said["end"]["sum_sent"]["bytes"].as_f64().unwrap(), 100e6 / 8.0, 0.35);
    let Some(Event::Started { wish, .. }) = events.first() else { panic!("{events:?}") };
    assert_eq!((wish.omit, wish.no_delay), (Duration::from_secs(1), true));
}

#[test]
fn iperf3_moves_so_many_bytes_and_blocks_over_ipv6() {
    require_root_or_skip!();
    let server = IpAddr::V6(Ipv6Addr::LOCALHOST);
    for words in [["-n", "20M"], ["-k", "160"]] {
        for direction in [&[][..], &["-R"]] {
            let words: Vec<&str> = [&["-J", "-6", "-b", "800M"], &words[..], direction].concat();
            let Some((output, _)) = against_ours(server, &words) else { return };
            let said = as_json(&output);
            let received = said["end"]["sum_received"]["bytes"].as_f64().unwrap();
            if words.contains(&"-k") && words.contains(&"-R") {
                // iperf3 as a receiver counts every read that was not empty as a block, and ends after so many.
                assert!((1.0..=20.0 * 1024.0 * 1024.0).contains(&received), "{received}");
            } else {
                near(received, 20.0 * 1024.0 * 1024.0, 0.05);
            }
        }
    }
}

#[test]
fn udp_and_too_long_tests_are_refused_so_that_iperf3_says_why() {
    require_root_or_skip!();
    let server = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for (words, reason) in [(&["-u"][..], "TCP"), (&["-t", "1000"], "longest"), (&["-P", "100"], "parallel")] {
        let Some((output, events)) = against_ours(server, words) else { return };
        assert!(!output.status.success(), "{words:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.is_empty(), "{words:?} should be told");
        let Some(Event::Refused { reason: told, .. }) = events.first() else { panic!("{words:?}: {events:?}") };
        assert!(told.contains(reason), "{words:?}: {told}");
    }
}
