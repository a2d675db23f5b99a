//! Both ends ours: what only they can do, and what goes wrong.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use host::clock::Clock;
use linerate_measure::iperf::client::{self, ClientPlan, Ending, Length, Progress, TestError, TestOutcome};
use linerate_measure::iperf::server::{self, Event, Server, ServerLimits, ServerPlan};
use linerate_measure::iperf::token::Token;
use linerate_measure::iperf::wire::Direction;
use linerate_measure::traffic::StopFlag;
use testkit::{Ends, ip, require_root_or_skip};
use units::{Bytes, Duration, Rate};

const PORT: u16 = 5201;

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn client_plan(server: IpAddr) -> ClientPlan {
    ClientPlan {
        servers: vec![SocketAddr::new(server, PORT)],
        from: None,
        direction: Direction::Forward,
        streams: 1,
        length: Length::Time(Duration::from_secs(1)),
        omit: Duration::ZERO,
        congestion_control: None,
        rate: Some(Rate::from_mbps(100)),
        sample_every: Duration::from_millis(20),
        probe: true,
        token: None,
        patience: Duration::from_secs(5),
        version: "1.2.3".into(),
        clock: Clock::start(),
        stop: StopFlag::new(),
    }
}

fn server_plan(server: IpAddr) -> ServerPlan {
    ServerPlan {
        listen: vec![SocketAddr::new(server, PORT)],
        limits: ServerLimits { patience: Duration::from_secs(2), ..ServerLimits::default() },
        token: None,
        linerate_version: "4.5.6".into(),
        kernel: "a kernel".into(),
        stop: StopFlag::new(),
    }
}

/// Runs `f` in the client's namespace while a server runs in the other; what `f` gave and what the server told.
fn with_server<T: Send>(ends: &Ends, plan: ServerPlan, f: impl FnOnce() -> T + Send) -> (T, Vec<Event>) {
    let events = Mutex::new(Vec::new());
    let stop = plan.stop.clone();
    let server = ends.server.run(|| Server::bind(plan).unwrap()).unwrap();
    let result = std::thread::scope(|scope| {
        let events = &events;
        let serving = scope.spawn(move || {
            ends.server.run(|| server.run(&|event| events.lock().unwrap().push(event))).unwrap().unwrap();
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ends.client.run(f).unwrap()));
        stop.stop();
        serving.join().unwrap();
        result
    });
    match result {
        Ok(value) => (value, events.into_inner().unwrap()),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn run(plan: &ClientPlan) -> Result<TestOutcome, TestError> {
    client::run(plan, &mut |_| {})
}

#[test]
fn both_ends_tell_what_iperf3_can_not() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::over_veth();
    // 20 ms of delay, so that figures have a size to be held against.
    for (namespace, device) in [(&ends.client, "client"), (&ends.server, "server")] {
        let mut tc = namespace.command("tc");
        let shaped = tc.args(["qdisc", "add", "dev", device, "root", "netem", "delay", "10ms"]).status();
        if !shaped.is_ok_and(|status| status.success()) {
            eprintln!("no netem here: without a delay");
        }
    }
    for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
        let plan = ClientPlan { direction, streams: 2, omit: Duration::from_secs(1), ..client_plan(ends.server_addr) };
        let (outcome, events) = with_server(&ends, server_plan(ends.server_addr), || run(&plan));
        let outcome = outcome.unwrap();
        assert_eq!(outcome.ending, Ending::Complete);
        let hello = outcome.hello.as_ref().unwrap();
        assert_eq!((hello.linerate_version.as_str(), hello.kernel.as_str()), ("4.5.6", "a kernel"));
        for stream in &outcome.streams {
            assert!(stream.samples.len() > 20, "{direction:?}: {} samples", stream.samples.len());
            assert!(stream.received_series.len() > 20, "{direction:?}: {}", stream.received_series.len());
            let last = stream.received_series.last().unwrap().1;
            assert!(last.as_u64() >= stream.received.unwrap().as_u64());
            assert!(stream.congestion_control_version.is_some());
            let rate = Rate::from_transfer(stream.received.unwrap(), stream.received_in).as_mbps_f64();
            assert!((85.0..110.0).contains(&rate), "{direction:?}: {rate}");
        }
        let latency = outcome.latency.as_ref().unwrap();
        assert!(latency.idle.len() >= 10, "{latency:?}");
        assert!(latency.pings.len() > 20 && latency.foreign.len() > 5 && latency.in_flow.len() > 5, "{latency:?}");
        assert_eq!(latency.lost, 0);
        let found = latency.responsiveness(outcome.counting_from, outcome.ended_at).unwrap();
        let idle = latency.idle[latency.idle.len() / 2].as_millis_f64();
        // Nothing queues here: a round trip under load is about an idle one.
        let loaded = 60_000.0 / found.foreign_rpm;
        assert!(loaded < idle * 3.0 + 10.0, "{loaded} ms loaded, {idle} ms idle");
        assert!(events.iter().any(|event| matches!(event, Event::Ended { ending: server::Ending::Complete, .. })));
    }
}

#[test]
fn a_token_lets_in_who_has_it_and_nobody_else() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::on_loopback();
    let token = |text: &str| Some(Token::new(text).unwrap());
    let server = || ServerPlan { token: token("a shared secret, long"), ..server_plan(ends.server_addr) };
    let plan = ClientPlan { token: token("a shared secret, long\n"), ..client_plan(ends.server_addr) };
    let (outcome, _) = with_server(&ends, server(), || run(&plan));
    assert_eq!(outcome.unwrap().ending, Ending::Complete);
    for (token, reason) in [(token("another secret, long"), "not this server's"), (None, "wants a token")] {
        let plan = ClientPlan { token, ..client_plan(ends.server_addr) };
        let (outcome, events) = with_server(&ends, server(), || run(&plan));
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(matches!(&events[0], Event::Refused { .. }), "{events:?}");
    }
}

#[test]
fn a_full_server_says_busy_and_a_queue_waits_for_a_place() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::on_loopback();
    for (waiting, both_run) in [(0, false), (1, true)] {
        let limits = ServerLimits { tests: 1, waiting, ..server_plan(ends.server_addr).limits };
        let plan = ServerPlan { limits, ..server_plan(ends.server_addr) };
        let ((first, second), events) = with_server(&ends, plan, || {
            let plan = client_plan(ends.server_addr);
            let (runs, has_begun) = std::sync::mpsc::channel();
            std::thread::scope(|scope| {
                let first = scope.spawn(|| {
                    client::run(&plan, &mut |progress| {
                        if matches!(progress, Progress::Running { .. }) {
                            let _ = runs.send(());
                        }
                    })
                });
                has_begun.recv().unwrap();
                let second = run(&client_plan(ends.server_addr));
                (first.join().unwrap(), second)
            })
        });
        assert_eq!(first.unwrap().ending, Ending::Complete);
        match second {
            Ok(outcome) => assert!(both_run && outcome.ending == Ending::Complete),
            Err(error) => assert!(!both_run && matches!(error, TestError::Busy), "{error}"),
        }
        let waited = events.iter().any(|event| matches!(event, Event::Waiting { .. }));
        let busy = events.iter().any(|event| matches!(event, Event::Busy { .. }));
        assert_eq!((waited, busy), (both_run, !both_run), "{events:?}");
    }
}

#[test]
fn a_request_beyond_the_limits_is_refused_with_the_limit() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::on_loopback();
    let limits = ServerLimits {
        duration: Duration::from_secs(5),
        streams: 2,
        rate: Rate::from_mbps(150),
        bytes: Bytes::new(1_000_000_000),
        ..server_plan(ends.server_addr).limits
    };
    let plain = client_plan(ends.server_addr);
    let too_much = [
        (ClientPlan { length: Length::Time(Duration::from_secs(6)), ..plain.clone() }, "5 s"),
        (ClientPlan { streams: 3, ..plain.clone() }, "the most here is 2"),
        (ClientPlan { streams: 2, ..plain.clone() }, "150 Mbit/s in all"),
        (ClientPlan { length: Length::Bytes(Bytes::new(2_000_000_000)), ..plain.clone() }, "1 GB"),
    ];
    for (plan, reason) in too_much {
        let server = ServerPlan { limits, ..server_plan(ends.server_addr) };
        let (outcome, _) = with_server(&ends, server, || run(&plan));
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_rate_limit_holds_in_both_directions_and_a_byte_limit_ends_a_test() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::on_loopback();
    let base = server_plan(ends.server_addr).limits;
    for direction in [Direction::Forward, Direction::Reverse] {
        let plan = ClientPlan {
            rate: None,
            streams: 2,
            direction,
            omit: Duration::from_secs(1),
            ..client_plan(ends.server_addr)
        };
        let limits = ServerLimits { rate: Rate::from_mbps(80), ..base };
        let (outcome, _) = with_server(&ends, ServerPlan { limits, ..server_plan(ends.server_addr) }, || run(&plan));
        let rate = outcome.unwrap().goodput(direction == Direction::Forward).unwrap().as_mbps_f64();
        assert!(rate < 90.0, "{direction:?}: {rate}");
        let limits = ServerLimits { bytes: Bytes::new(5_000_000), ..base };
        let plan = ClientPlan { omit: Duration::ZERO, ..plan };
        let server = ServerPlan { limits, ..server_plan(ends.server_addr) };
        let (outcome, events) = with_server(&ends, server, || run(&plan));
        let ending = outcome.unwrap().ending;
        // Its word for it may come after the end of its data.
        assert!(matches!(&ending, Ending::Broken(_)), "{ending:?}");
        let limit = |event: &Event| matches!(event, Event::Ended { ending: server::Ending::Limit(why), .. } if why.contains("5 MB"));
        assert!(events.iter().any(limit), "{events:?}");
    }
}

#[test]
fn a_test_that_is_stopped_keeps_what_it_has() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::on_loopback();
    let plan = ClientPlan { length: Length::Time(Duration::from_secs(60)), ..client_plan(ends.server_addr) };
    let (outcome, events) = with_server(&ends, server_plan(ends.server_addr), || {
        client::run(&plan, &mut |progress| {
            if matches!(progress, Progress::Running { elapsed, .. } if elapsed > Duration::from_millis(400)) {
                plan.stop.stop();
            }
        })
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(outcome.goodput(true), None, "the receiver did not come to tell");
    assert!(outcome.acknowledged_rate(true).unwrap().as_mbps_f64() > 50.0);
    let left = |event: &Event| matches!(event, Event::Ended { ending: server::Ending::Client(_), .. });
    assert!(events.iter().any(left), "{events:?}");
}

#[test]
fn a_server_that_dies_in_the_middle_leaves_a_partial_result() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::on_loopback();
    let server = server_plan(ends.server_addr);
    let stop = server.stop.clone();
    let plan = ClientPlan { length: Length::Time(Duration::from_secs(60)), ..client_plan(ends.server_addr) };
    let (outcome, events) = with_server(&ends, server, || {
        client::run(&plan, &mut |progress| {
            if matches!(progress, Progress::Running { elapsed, .. } if elapsed > Duration::from_millis(400)) {
                stop.stop();
            }
        })
    });
    let outcome = outcome.unwrap();
    assert!(matches!(outcome.ending, Ending::Broken(_)), "{:?}", outcome.ending);
    assert!(outcome.acknowledged_rate(true).unwrap().as_mbps_f64() > 50.0);
    assert!(events.iter().any(|event| matches!(event, Event::Ended { ending: server::Ending::Stopped, .. })));
}

#[test]
fn nobody_there_no_answer_and_somebody_else_are_told_apart() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::over_veth();
    let short = ClientPlan { patience: Duration::from_millis(500), ..client_plan(ends.server_addr) };
    let error = |plan: &ClientPlan| ends.client.run(|| run(plan)).unwrap().unwrap_err();
    let refused = error(&short).to_string();
    assert!(refused.contains("refused") && refused.contains("linerate serve"), "{refused}");
    // A firewall that drops is an address that nobody answers for.
    ip(&ends.client, "route add blackhole 10.78.0.0/24");
    ip(&ends.client, "neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev client");
    let dropped = ClientPlan { servers: vec!["10.77.0.9:5201".parse().unwrap()], ..short.clone() };
    let dropped = error(&dropped).to_string();
    assert!(dropped.contains("firewall"), "{dropped}");
    let unreachable = ClientPlan { servers: vec!["10.78.0.1:5201".parse().unwrap()], ..short.clone() };
    let unreachable = error(&unreachable).to_string();
    assert!(!unreachable.contains("firewall"), "{unreachable}");
    // Something else listens there: it says what no iperf3 says.
    let listener = ends.server.run(|| TcpListener::bind((ends.server_addr, PORT)).unwrap()).unwrap();
    for says in [&b"SSH-2.0-x\r\n"[..], b"\x09\x63\x63", b""] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut connection, _) = listener.accept().unwrap();
                let _ = connection.write_all(says);
                // Until the client gives up, or at once where nothing was to be said.
                if !says.is_empty() {
                    let _ = connection.read_to_end(&mut Vec::new());
                }
            });
            let error = error(&short);
            assert!(matches!(error, TestError::Server(..)), "{error}");
        });
    }
}

#[test]
fn a_congestion_control_that_an_end_has_not_is_named_by_that_end() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::on_loopback();
    let plan = ClientPlan { congestion_control: Some("nosuch".into()), ..client_plan(ends.server_addr) };
    let (outcome, events) = with_server(&ends, server_plan(ends.server_addr), || run(&plan));
    let error = outcome.unwrap_err();
    assert!(matches!(&error, TestError::CongestionControl(_)) && error.to_string().contains("reno"), "{error}");
    assert!(events.is_empty(), "the server was not troubled: {events:?}");
}

#[test]
fn a_client_may_name_no_module_of_the_servers_kernel() {
    require_root_or_skip!();
    let _alone = alone();
    let ends = Ends::on_loopback();
    let (said, events) = with_server(&ends, server_plan(ends.server_addr), || {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT)).unwrap();
        connection.write_all(&[b'c'; 36]).unwrap();
        connection.write_all(&[0]).unwrap();
        let text = br#"{"tcp":true,"time":1,"parallel":1,"congestion":"yeah"}"#;
        connection.write_all(&(text.len() as u32).to_be_bytes()).unwrap();
        connection.write_all(text).unwrap();
        let mut said = Vec::new();
        let _ = connection.read_to_end(&mut said);
        said
    });
    // PARAM_EXCHANGE, SERVER_ERROR, IESETCONGESTION, no errno.
    assert_eq!(said, [9, 0xfe, 0, 0, 0, 134, 0, 0, 0, 0]);
    assert!(matches!(&events[0], Event::Refused { reason, .. } if reason.contains("congestion")), "{events:?}");
}
