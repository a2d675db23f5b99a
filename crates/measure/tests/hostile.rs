//! 200 hostile clients while a real test runs: the test is not affected, memory stays bounded, nothing breaks.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use host::clock::Clock;
use linerate_measure::iperf::client::{self, ClientPlan, Ending, Length, TestError};
use linerate_measure::iperf::server::{Event, Server, ServerLimits, ServerPlan};
use linerate_measure::iperf::wire::Direction;
use linerate_measure::traffic::StopFlag;
use testkit::{Ends, require_root_or_skip};
use units::{Duration, Instant, Rate};

const PORT: u16 = 5201;
const HOSTILE: usize = 200;

fn cookie(number: u64) -> Vec<u8> {
    let mut cookie = format!("{number:0>36}").into_bytes();
    cookie.push(0);
    cookie
}

/// One round of one hostile client; which kind it is comes from its number. Errors are what it wants.
fn attack(number: usize, round: u64, stop: &AtomicBool) -> std::io::Result<()> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT))?;
    connection.set_read_timeout(Some(std::time::Duration::from_millis(300)))?;
    connection.set_write_timeout(Some(std::time::Duration::from_millis(300)))?;
    let mine = cookie(number as u64 * 1_000_000 + round);
    let hold = |connection: &mut TcpStream| {
        while !stop.load(Ordering::Relaxed) && connection.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
    };
    match number % 8 {
        // Says nothing.
        0 => hold(&mut connection),
        // Garbage.
        1 => {
            connection.write_all(&[0xa5; 4096])?;
            hold(&mut connection);
        }
        // A cookie, slowly, and not all of it.
        2 => {
            for byte in &mine[..30] {
                connection.write_all(&[*byte])?;
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            hold(&mut connection);
        }
        // Huge JSON.
        3 => {
            connection.write_all(&mine)?;
            connection.write_all(&u32::MAX.to_be_bytes())?;
            let _ = connection.write_all(&vec![b'['; 1 << 20]);
            hold(&mut connection);
        }
        // JSON of the allowed length that is nested as deep as it goes, or no JSON.
        4 => {
            connection.write_all(&mine)?;
            connection.write_all(&8192u32.to_be_bytes())?;
            connection.write_all(&vec![if round.is_multiple_of(2) { b'[' } else { 0xff }; 8192])?;
            hold(&mut connection);
        }
        // Good parameters, then streams that never come, or one of them only.
        5 => {
            let text = br#"{"tcp":true,"time":30,"parallel":32}"#;
            connection.write_all(&mine)?;
            connection.write_all(&(text.len() as u32).to_be_bytes())?;
            connection.write_all(text)?;
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT))?;
            stream.write_all(&mine)?;
            hold(&mut connection);
        }
        // Goes away at once, in every stage.
        6 => {
            connection.write_all(&mine[..(round % 38) as usize])?;
            let _ = socket2::SockRef::from(&connection).set_linger(Some(std::time::Duration::ZERO));
        }
        // A reverse test whose data is never read.
        _ => {
            let text = br#"{"tcp":true,"time":30,"parallel":1,"reverse":true}"#;
            connection.write_all(&mine)?;
            connection.write_all(&(text.len() as u32).to_be_bytes())?;
            connection.write_all(text)?;
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT))?;
            stream.write_all(&mine)?;
            hold(&mut connection);
        }
    }
    Ok(())
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn two_hundred_hostile_clients_do_not_disturb_a_test() {
    require_root_or_skip!();
    let ends = Ends::on_loopback();
    let stop = StopFlag::new();
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);
    let plan = ServerPlan {
        listen: vec![address],
        limits: ServerLimits {
            patience: Duration::from_secs(1),
            tests: 8,
            tests_per_address: 8,
            waiting: 16,
            ..ServerLimits::default()
        },
        token: None,
        linerate_version: "test".into(),
        kernel: "test".into(),
        stop: stop.clone(),
    };
    let client = ClientPlan {
        servers: vec![address],
        from: None,
        direction: Direction::Forward,
        streams: 1,
        length: Length::Time(Duration::from_secs(4)),
        omit: Duration::from_secs(1),
        congestion_control: None,
        // Below what two busy cores can do: what is measured is the server, not who gets the processor.
        rate: Some(Rate::from_mbps(500)),
        sample_every: Duration::from_millis(50),
        probe: false,
        token: None,
        patience: Duration::from_secs(20),
        version: "test".into(),
        clock: Clock::start(),
        stop: StopFlag::new(),
    };
    let events = Mutex::new(Vec::new());
    let rounds = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let work = || {
        let server = Server::bind(plan.clone()).unwrap();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| server.run(&|event| events.lock().unwrap().push(event)));
            let alone = client::run(&client, &mut |_| {}).unwrap();
            let before = resident_kib();
            // The test has its place before they come; that one gets a place later is another matter, tried below.
            let mut most = 0;
            let under_attack = {
                let mut attackers = Vec::new();
                client::run(&client, &mut |progress| {
                    if attackers.is_empty() && matches!(progress, client::Progress::Running { .. }) {
                        for number in 0..HOSTILE {
                            let (over, rounds) = (&over, &rounds);
                            attackers.push(scope.spawn(move || {
                                let mut round = 0;
                                while !over.load(Ordering::Relaxed) {
                                    let _ = attack(number, round, over);
                                    round += 1;
                                    rounds.fetch_add(1, Ordering::Relaxed);
                                }
                            }));
                        }
                    }
                    most = most.max(resident_kib());
                })
                .unwrap()
            };
            over.store(true, Ordering::Relaxed);
            // Those that they left in the queue go first.
            let clock = Clock::start();
            let after = loop {
                match client::run(&client, &mut |_| {}) {
                    Err(TestError::Busy) if clock.now() < Instant::from_nanos(30_000_000_000) => {}
                    other => break other,
                }
            };
            stop.stop();
            serving.join().unwrap().unwrap();
            (alone, under_attack, after, before, most)
        })
    };
    let (alone, under_attack, after, before, most) = ends.server.run(work).unwrap();
    assert_eq!(under_attack.ending, Ending::Complete);
    let (quiet, loud) = (alone.goodput(true).unwrap().as_mbps_f64(), under_attack.goodput(true).unwrap().as_mbps_f64());
    let rounds = rounds.load(Ordering::Relaxed);
    eprintln!(
        "{quiet:.1} Mbit/s alone, {loud:.1} among {HOSTILE} hostile clients ({rounds} attacks); {before} KiB, then at most {most} KiB, attackers' threads included"
    );
    assert!(loud >= 0.95 * quiet, "{loud} of {quiet} Mbit/s");
    assert!(rounds > 400, "{rounds} attacks only");
    // 200 attackers' threads with a megabyte of JSON here and there, and the server's pending connections.
    assert!(most - before < 128 << 10, "{before} KiB grew to {most}");
    assert_eq!(after.unwrap().ending, Ending::Complete, "the server still serves");
    let events = events.into_inner().unwrap();
    assert!(
        !events.iter().any(|event| matches!(event, Event::Refused { reason, .. } if reason.contains("mistake"))),
        "a panic"
    );
}
