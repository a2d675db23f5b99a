//! Probes over real interfaces: answered, lost on either way, and beside a flow.

use host::clock::Clock;
use linerate_measure::probe::{ProbeOutcome, ProbePath, ProbePlan, idle_rtt};
use linerate_measure::traffic::{End, StopFlag, TrafficPlan, run};
use testkit::{Ends, ip, require_root_or_skip};
use units::Duration;

fn path(ends: &Ends) -> ProbePath<'_> {
    ProbePath {
        client: &ends.client,
        server: &ends.server,
        client_addr: ends.client_addr,
        server_addr: ends.server_addr,
    }
}

fn every_ms(from: End) -> ProbePlan {
    ProbePlan { interval: Duration::from_millis(1), from }
}

fn probe(ends: &Ends, from: End, count: u32) -> ProbeOutcome {
    idle_rtt(&path(ends), every_ms(from), count, Clock::start(), &StopFlag::new()).unwrap()
}

/// Frames for `to` leave `device` with a destination that nobody has, and are dropped.
fn lead_nowhere(namespace: &host::netns::NetNs, to: std::net::IpAddr, device: &str) {
    ip(namespace, &format!("neighbour replace {to} lladdr 02:00:00:00:00:01 dev {device} nud permanent"));
}

#[test]
fn every_probe_of_an_idle_path_is_answered_and_its_two_ways_add_up() {
    require_root_or_skip!();
    for (ends, from) in
        [(Ends::on_loopback(), End::Client), (Ends::over_veth(), End::Client), (Ends::over_veth(), End::Server)]
    {
        let outcome = probe(&ends, from, 50);
        assert_eq!((outcome.samples.len(), outcome.lost), (50, 0));
        for sample in &outcome.samples {
            let (one_way, rtt) = (sample.one_way.unwrap(), sample.rtt.unwrap());
            assert!(one_way > Duration::ZERO && rtt > one_way, "{sample:?}");
        }
        // A few microseconds of kernel work; a busy machine may hold up single probes, not the fastest one.
        let fastest = outcome.samples.iter().filter_map(|sample| sample.rtt).min().unwrap();
        assert!(fastest < Duration::from_millis(1), "fastest {fastest}");
        assert!(outcome.samples.is_sorted_by_key(|sample| sample.sent_at));
    }
}

#[test]
fn a_probe_lost_on_its_way_out_has_no_delay_at_all() {
    require_root_or_skip!();
    let ends = Ends::over_veth();
    lead_nowhere(&ends.client, ends.server_addr, "client");
    let outcome = probe(&ends, End::Client, 5);
    assert_eq!((outcome.samples.len(), outcome.lost), (5, 5));
    assert!(outcome.samples.iter().all(|sample| sample.one_way.is_none() && sample.rtt.is_none()));
}

#[test]
fn a_probe_lost_on_its_way_back_still_has_its_one_way_delay() {
    require_root_or_skip!();
    let ends = Ends::over_veth();
    lead_nowhere(&ends.server, ends.client_addr, "server");
    let outcome = probe(&ends, End::Client, 5);
    assert_eq!((outcome.samples.len(), outcome.lost), (5, 5));
    assert!(outcome.samples.iter().all(|sample| sample.one_way.is_some() && sample.rtt.is_none()));
}

#[test]
fn probes_alone_run_for_the_whole_time_and_leave_out_those_still_on_their_way() {
    require_root_or_skip!();
    let ends = Ends::over_veth();
    let plan = TrafficPlan {
        client: ends.client.clone(),
        server: ends.server.clone(),
        client_addr: ends.client_addr,
        server_addr: ends.server_addr,
        flows: Vec::new(),
        duration: Duration::from_millis(300),
        sample_every: Duration::from_millis(50),
        probe: Some(ProbePlan { interval: Duration::from_millis(10), from: End::Client }),
        clock: Clock::start(),
        stop: StopFlag::new(),
    };
    let outcome = run(&plan, &mut |_| {}).unwrap();
    let probes = outcome.probes.unwrap();
    assert!((10..=32).contains(&probes.samples.len()), "{} probes in 300 ms", probes.samples.len());
    assert_eq!(probes.lost, 0);
    let inside = probes.rtts(outcome.started_at, outcome.ended_at);
    assert_eq!(inside.len(), probes.samples.len());
    assert!(
        probes.rtts(outcome.ended_at + Duration::from_secs(9), outcome.ended_at + Duration::from_secs(10)).is_empty()
    );

    // Stopped with probes unanswered that are too young to be called lost.
    lead_nowhere(&ends.client, ends.server_addr, "client");
    let stop = plan.stop.clone();
    let outcome = run(&plan, &mut |_| stop.stop()).unwrap();
    assert!(outcome.partial);
    assert_eq!(outcome.probes.unwrap(), ProbeOutcome::default());
}

#[test]
fn an_address_that_is_not_there_is_an_error() {
    require_root_or_skip!();
    let ends = Ends::on_loopback();
    let wrong = ProbePath { server_addr: "192.0.2.1".parse().unwrap(), ..path(&ends) };
    let error = idle_rtt(&wrong, every_ms(End::Client), 1, Clock::start(), &StopFlag::new()).unwrap_err();
    assert!(error.to_string().contains("192.0.2.1"), "{error}");
}
