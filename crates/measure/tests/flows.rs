//! Real flows between real namespaces of the running kernel.

use host::cc::CcKind;
use host::clock::Clock;
use linerate_measure::traffic::{
    End, FlowError, FlowKind, FlowOutcome, FlowPlan, StopFlag, TrafficError, TrafficOutcome, TrafficPlan, run,
};
use testkit::{Ends, ip, require_root_or_skip};
use units::{Bytes, Duration, Instant};

fn bulk(port: u16, bytes: Option<u64>) -> FlowPlan {
    FlowPlan {
        label: format!("flow {port}"),
        kind: FlowKind::Bulk { bytes: bytes.map(Bytes::new) },
        congestion_control: "reno".into(),
        start: Duration::ZERO,
        duration: None,
        server_port: port,
        data_from: End::Client,
    }
}

fn plan(ends: &Ends, duration_ms: u64, flows: Vec<FlowPlan>) -> TrafficPlan {
    TrafficPlan {
        client: ends.client.clone(),
        server: ends.server.clone(),
        client_addr: ends.client_addr,
        server_addr: ends.server_addr,
        flows,
        duration: Duration::from_millis(duration_ms),
        sample_every: Duration::from_millis(100),
        probe: None,
        clock: Clock::start(),
        stop: StopFlag::new(),
    }
}

fn go(plan: &TrafficPlan) -> TrafficOutcome {
    run(plan, &mut |_| {}).unwrap()
}

/// Both kinds of path, each from either end.
fn everywhere() -> Vec<(Ends, End)> {
    [Ends::on_loopback, Ends::over_veth]
        .iter()
        .flat_map(|make| [(make(), End::Client), (make(), End::Server)])
        .collect()
}

fn assert_series_rises(flow: &FlowOutcome) {
    assert!(flow.received_series.windows(2).all(|two| two[0].0 <= two[1].0 && two[0].1 <= two[1].1));
    assert_eq!(flow.received_series.last().map(|last| last.1), Some(flow.received));
}

#[test]
fn a_transfer_of_so_many_bytes_counts_exactly_those_and_says_when_it_was_done() {
    require_root_or_skip!();
    let size = 20_000_003;
    for (ends, data_from) in everywhere() {
        let plan = plan(&ends, 20_000, vec![FlowPlan { data_from, ..bulk(5001, Some(size)) }]);
        let outcome = go(&plan);
        let flow = &outcome.flows[0];
        assert_eq!(flow.error, None);
        assert_eq!(flow.received, Bytes::new(size));
        let (started, finished) = (flow.started_at.unwrap(), flow.finished_at.unwrap());
        assert_eq!(flow.completion, Some(finished.since(started)));
        assert_eq!(flow.last_byte_at, Some(finished));
        assert!(outcome.ended_at.since(outcome.started_at) < Duration::from_secs(19), "did not end with its last flow");
        assert!(!outcome.partial);
        assert_series_rises(flow);
        // The data-sending socket agrees, but for the sequence numbers of SYN and FIN and the last acknowledgements.
        let acked = flow.samples.last().unwrap().bytes_acked;
        assert!((Bytes::new(size - 200_000)..=Bytes::new(size + 2)).contains(&acked), "{acked:?}");
    }
}

#[test]
fn a_transfer_of_nothing_completes() {
    require_root_or_skip!();
    let flow = go(&plan(&Ends::on_loopback(), 10_000, vec![bulk(5001, Some(0))])).flows.remove(0);
    assert_eq!((flow.error, flow.received), (None, Bytes::ZERO));
    assert!(flow.completion.is_some());
}

#[test]
fn a_timed_flow_runs_for_its_time_with_samples_all_along() {
    require_root_or_skip!();
    for (ends, data_from) in everywhere() {
        let timed = FlowPlan {
            start: Duration::from_millis(200),
            duration: Some(Duration::from_millis(500)),
            data_from,
            ..bulk(5001, None)
        };
        let outcome = go(&plan(&ends, 5_000, vec![timed]));
        let flow = &outcome.flows[0];
        assert_eq!(flow.error, None);
        let started = flow.started_at.unwrap().since(outcome.started_at);
        assert!(started >= Duration::from_millis(200), "started after {started}");
        assert!(flow.finished_at.unwrap().since(outcome.started_at) >= Duration::from_millis(700));
        assert_eq!(flow.completion, None);
        assert!(flow.received > Bytes::new(1_000_000), "{}", flow.received);
        assert!(flow.samples.len() >= 4, "{} samples in 500 ms", flow.samples.len());
        assert_series_rises(flow);
        // What the receiver counted was acknowledged, and nothing was counted that was not sent.
        let sample = flow.samples.last().unwrap();
        assert!(sample.mss > Bytes::ZERO && sample.cwnd_segments > 0 && sample.srtt.is_some());
        let half = flow.goodput(outcome.started_at, outcome.ended_at).unwrap();
        assert!(half.as_bps() > 1_000_000);
    }
}

#[test]
fn the_outcome_proves_which_congestion_control_ran() {
    require_root_or_skip!();
    let ends = Ends::over_veth();
    let flows = vec![
        FlowPlan { congestion_control: "cubic".into(), ..bulk(5001, Some(100_000)) },
        FlowPlan { congestion_control: "reno".into(), data_from: End::Server, ..bulk(5002, Some(100_000)) },
    ];
    for flow in go(&plan(&ends, 10_000, flows)).flows {
        assert_eq!(flow.error, None);
        let version = flow.cc_version.unwrap();
        assert_eq!((version.name, version.kind), (flow.congestion_control, CcKind::Kernel));
    }
}

#[test]
fn a_control_that_the_route_overrides_is_found_out() {
    require_root_or_skip!();
    let ends = Ends::over_veth();
    ip(&ends.client, "route replace 10.77.0.0/24 dev client congctl lock reno");
    let flow = FlowPlan { congestion_control: "cubic".into(), ..bulk(5001, Some(100_000)) };
    let flow = go(&plan(&ends, 10_000, vec![flow])).flows.remove(0);
    let wrong = FlowError::WrongCongestionControl { wanted: "cubic".into(), ran: "reno".into() };
    assert_eq!(flow.error, Some(wrong));
    assert_eq!(flow.cc_version.unwrap().name, "reno");
    assert_eq!(flow.finished_at, None, "a run under another control is not a result");
}

#[test]
fn an_unknown_control_is_that_flows_error_and_lists_what_there_is() {
    require_root_or_skip!();
    for data_from in [End::Client, End::Server] {
        let unknown = FlowPlan { congestion_control: "warp".into(), data_from, ..bulk(5001, Some(10)) };
        let outcome = go(&plan(&Ends::on_loopback(), 5_000, vec![unknown, bulk(5002, Some(1_000))]));
        match &outcome.flows[0].error {
            Some(FlowError::CongestionControl { reason }) => {
                assert!(reason.contains("warp") && reason.contains("reno"), "{reason}")
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(outcome.flows[1].received, Bytes::new(1_000), "the other flow did not go on");
    }
}

#[test]
fn a_connection_that_is_reset_is_that_flows_error_and_keeps_what_it_received() {
    require_root_or_skip!();
    let ends = Ends::on_loopback();
    let plan = plan(&ends, 60_000, vec![bulk(5001, None), bulk(5002, Some(1_000))]);
    let watcher = ends.server.clone();
    let reset = std::thread::spawn(move || {
        testkit::reset_connection_from(&watcher, 5001, std::time::Duration::from_secs(20));
    });
    let outcome = go(&plan);
    reset.join().unwrap();
    let flow = &outcome.flows[0];
    assert!(matches!(&flow.error, Some(FlowError::Broken { .. })), "{:?}", flow.error);
    assert_eq!(flow.finished_at, None);
    assert_series_rises(flow);
    assert!(outcome.ended_at.since(outcome.started_at) < Duration::from_secs(30), "waited for a flow that was over");
    assert_eq!(outcome.flows[1].error, None);
}

#[test]
fn a_port_that_is_taken_and_an_address_that_is_not_there_are_errors_of_their_flows() {
    require_root_or_skip!();
    let ends = Ends::on_loopback();
    let _taken = ends.server.run(|| std::net::TcpListener::bind("127.0.0.1:5001").unwrap()).unwrap();
    let outcome = go(&plan(&ends, 5_000, vec![bulk(5001, Some(1)), bulk(5002, Some(1))]));
    assert!(matches!(outcome.flows[0].error, Some(FlowError::Listen { .. })), "{:?}", outcome.flows[0].error);
    assert_eq!(outcome.flows[1].error, None);

    let mut elsewhere = plan(&ends, 5_000, vec![bulk(5003, Some(1))]);
    elsewhere.client_addr = "192.0.2.1".parse().unwrap();
    let outcome = go(&elsewhere);
    assert!(matches!(outcome.flows[0].error, Some(FlowError::Connect { .. })), "{:?}", outcome.flows[0].error);
}

#[test]
fn a_flow_that_gets_no_answer_never_connected() {
    require_root_or_skip!();
    let ends = Ends::over_veth();
    // The client's neighbour entry leads nowhere, so that every SYN is sent and none arrives.
    ip(&ends.client, "neighbour replace 10.77.0.2 lladdr 02:00:00:00:00:01 dev client nud permanent");
    let outcome = go(&plan(&ends, 300, vec![bulk(5001, None)]));
    assert_eq!(outcome.flows[0].error, Some(FlowError::NeverConnected));
    assert!(outcome.flows[0].started_at.is_some());
    assert_eq!(outcome.flows[0].cc_version, None);
    // One that would start after the end never even tried.
    let late = FlowPlan { start: Duration::from_secs(9), ..bulk(5001, None) };
    let outcome = go(&plan(&Ends::on_loopback(), 100, vec![late]));
    assert_eq!(outcome.flows[0].error, Some(FlowError::NeverConnected));
    assert_eq!(outcome.flows[0].started_at, None);
}

#[test]
fn stopping_ends_everything_at_once_and_marks_the_outcome() {
    require_root_or_skip!();
    let ends = Ends::over_veth();
    let asks = FlowKind::RequestResponse {
        request: Bytes::new(100),
        response: Bytes::new(1_000),
        pause: Duration::from_secs(60),
    };
    let flows = vec![bulk(5001, None), FlowPlan { kind: asks, ..bulk(5002, None) }, bulk(5003, Some(u64::MAX))];
    let mut plan = plan(&ends, 60_000, flows);
    plan.probe = Some(linerate_measure::probe::ProbePlan::default());
    let (stop, clock) = (plan.stop.clone(), plan.clock);
    let mut stopped_at = None;
    let outcome = run(&plan, &mut |progress| {
        if progress.received > Bytes::new(1_000_000) && stopped_at.is_none() {
            stopped_at = Some(clock.now());
            stop.stop();
        }
    })
    .unwrap();
    let took = clock.now().since(stopped_at.unwrap());
    assert!(outcome.partial);
    assert!(took < Duration::from_millis(100), "took {took}");
    for flow in &outcome.flows {
        assert_eq!((flow.error.clone(), flow.finished_at), (None, None));
        assert_series_rises(flow);
    }
    assert!(outcome.flows[0].received > Bytes::ZERO);
}

#[test]
fn requests_are_answered_one_after_the_other_with_their_latencies() {
    require_root_or_skip!();
    for (ends, data_from) in everywhere() {
        let kind = FlowKind::RequestResponse {
            request: Bytes::new(300),
            response: Bytes::new(2_000_000),
            pause: Duration::from_millis(10),
        };
        let outcome = go(&plan(&ends, 600, vec![FlowPlan { kind, data_from, ..bulk(5001, None) }]));
        let flow = &outcome.flows[0];
        assert_eq!(flow.error, None);
        let answered = flow.request_latencies.len() as u64;
        assert!((5..=60).contains(&answered), "{answered} answers in 600 ms with pauses of 10 ms");
        let whole = Bytes::new(2_000_000).saturating_mul(answered);
        assert!(flow.received >= whole && flow.received < whole + Bytes::new(2_000_000));
        assert!(flow.finished_at.is_some());
        assert_series_rises(flow);
    }
}

#[test]
fn two_hundred_flows_run_at_once() {
    require_root_or_skip!();
    let ends = Ends::over_veth();
    let flows: Vec<_> = (0..200)
        .map(|n| FlowPlan {
            data_from: if n % 2 == 0 { End::Client } else { End::Server },
            ..bulk(10_000 + n, Some(300_000))
        })
        .collect();
    let outcome = go(&plan(&ends, 60_000, flows));
    for flow in &outcome.flows {
        assert_eq!((&flow.error, flow.received), (&None, Bytes::new(300_000)), "{}", flow.label);
        assert!(flow.completion.is_some());
    }
}

#[test]
fn flows_of_both_versions_of_ip_work() {
    require_root_or_skip!();
    let mut ends = Ends::on_loopback();
    (ends.client_addr, ends.server_addr) = ("::1".parse().unwrap(), "::1".parse().unwrap());
    let flow = go(&plan(&ends, 10_000, vec![bulk(5001, Some(1_000_000))])).flows.remove(0);
    assert_eq!((flow.error, flow.received), (None, Bytes::new(1_000_000)));
}

#[test]
fn nothing_stays_behind_after_the_end() {
    require_root_or_skip!();
    let ends = Ends::over_veth();
    let outcome = go(&plan(&ends, 300, vec![bulk(5001, None), bulk(5002, Some(1_000))]));
    assert!(outcome.flows.iter().all(|flow| flow.error.is_none()));
    for namespace in [&ends.client, &ends.server] {
        let tcp = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap()).unwrap();
        assert_eq!(tcp.lines().count(), 1, "sockets remain:\n{tcp}");
    }
}

#[test]
fn plans_that_contradict_themselves_are_refused() {
    require_root_or_skip!();
    let ends = Ends::on_loopback();
    let refused = |plan: TrafficPlan| match run(&plan, &mut |_| {}) {
        Err(TrafficError::BadPlan(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(refused(plan(&ends, 1, vec![bulk(5001, None), bulk(5001, None)])).contains("5001"));
    let asks = FlowKind::RequestResponse { request: Bytes::ZERO, response: Bytes::new(1), pause: Duration::ZERO };
    assert!(refused(plan(&ends, 1, vec![FlowPlan { kind: asks, ..bulk(5001, None) }])).contains("byte"));
    assert!(refused(TrafficPlan { sample_every: Duration::ZERO, ..plan(&ends, 1, vec![]) }).contains("samples"));
    let mixed = TrafficPlan { server_addr: "::1".parse().unwrap(), ..plan(&ends, 1, vec![]) };
    assert!(refused(mixed).contains("IP versions"));
}

#[test]
fn goodput_of_a_span_is_taken_from_the_counts_inside_it() {
    require_root_or_skip!();
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let mut flow = go(&plan(&Ends::on_loopback(), 5_000, vec![bulk(5001, Some(1))])).flows.remove(0);
    flow.received_series =
        [(0, 0), (100, 1_000), (200, 3_000), (300, 3_500)].map(|(ms, n)| (at(ms), Bytes::new(n))).to_vec();
    assert_eq!(flow.goodput(at(50), at(250)).unwrap().as_bps(), 2_000 * 8 * 10);
    assert_eq!(flow.goodput(at(150), at(250)), None);
}
