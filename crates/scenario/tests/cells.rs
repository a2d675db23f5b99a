//! What a scenario file stands for: links, flows and the order of runs.

use linerate_scenario::{AdHoc, Cell, FlowKind, NoFiles, QueueSpec, RunSpec, Scenario};
use path::{CoDel, Discipline, FlowId, LossModel, Policer, QueueLimit, RateModel, Red, Reorder};
use units::{Bytes, Duration, Instant, Probability, Rate};

fn read(path: &str, rest: &str) -> Scenario {
    let text = format!("name = \"a\"\ntitle = \"A\"\n[path]\n{path}\n{rest}");
    Scenario::parse(&text, "a.toml", &NoFiles).unwrap_or_else(|error| panic!("{error}"))
}

fn cells(path: &str, rest: &str) -> Vec<Cell> {
    read(path, rest).cells().unwrap_or_else(|error| panic!("{error}"))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn percent(text: &str) -> Probability {
    text.parse().expect("a probability")
}

#[test]
fn a_file_of_two_keys_has_every_default_the_documentation_names() {
    let scenario = read("rate = \"100mbit\"\nrtt = \"40ms\"", "");
    assert_eq!(
        scenario.run,
        RunSpec { duration: Duration::from_secs(15), warmup: Duration::from_secs(3), repeats: 1, seed: 1 }
    );
    assert_eq!(scenario.profiles.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["cubic", "bbr"]);
    assert_eq!(
        scenario.profiles[0].sysctls[0],
        ("net.ipv4.tcp_rmem".to_owned(), "4096 67108864 1073741824".to_owned())
    );
    assert_eq!(scenario.flows.len(), 1);
    assert_eq!(scenario.flows[0].kind, FlowKind::Bulk { bytes: None });
    assert_eq!(scenario.path.mtu, 1500);
    let cell = &scenario.cells().expect("cells")[0];
    assert_eq!(cell.forward.rate, RateModel::Constant(Rate::from_mbps(100)));
    assert_eq!(cell.queue_limit, QueueLimit::Bytes(Bytes::new(500_000)));
    assert_eq!(cell.forward.loss, LossModel::None);
    assert_eq!((cell.forward.delay, cell.back.delay), (ms(20), ms(20)));
    assert_eq!(cell.back.rate, RateModel::Unlimited);
    assert_eq!(cell.back.loss, LossModel::None);
}

#[test]
fn the_repeat_is_the_outermost_loop_and_the_profile_the_innermost() {
    let cells = cells(
        "rate = \"100mbit\"\nrtt = [\"10ms\", \"20ms\"]\nloss = [\"0%\", \"1%\"]\nqueue = [\"1bdp\", \"2bdp\"]",
        "[run]\nrepeats = 2\nseed = 7",
    );
    assert_eq!(cells.len(), 2 * 2 * 2 * 2 * 2);
    let order: Vec<_> = cells
        .iter()
        .take(5)
        .map(|c| (c.repeat, c.rtt.as_millis(), c.loss.to_string(), c.queue.to_string(), c.profile.name.as_str()))
        .collect();
    let zero = "0%".to_owned();
    assert_eq!(
        order,
        [
            (0, 10, zero.clone(), "1 BDP".to_owned(), "cubic"),
            (0, 10, zero.clone(), "1 BDP".to_owned(), "bbr"),
            (0, 10, zero.clone(), "2 BDP".to_owned(), "cubic"),
            (0, 10, zero, "2 BDP".to_owned(), "bbr"),
            (0, 10, "1%".to_owned(), "1 BDP".to_owned(), "cubic"),
        ]
    );
    // The second half repeats the first with the next seed, which all variants share.
    for (first, again) in cells[..16].iter().zip(&cells[16..]) {
        assert_eq!((first.repeat, first.seed, again.repeat, again.seed), (0, 7, 1, 8));
        assert_eq!(first.forward, again.forward);
        assert_eq!(first.profile, again.profile);
    }
}

#[test]
fn an_odd_nanosecond_of_round_trip_goes_forward() {
    let cell = &cells("rate = \"100mbit\"\nrtt = \"40000001ns\"", "")[0];
    assert_eq!(cell.forward.delay.as_nanos(), 20_000_001);
    assert_eq!(cell.back.delay.as_nanos(), 20_000_000);
}

#[test]
fn flows_are_numbered_from_one_in_the_order_of_the_file_with_count_and_stagger_worked_out() {
    let scenario = read(
        "rate = \"100mbit\"\nrtt = \"40ms\"",
        "[[flow]]\nlabel = \"first\"\n[[flow]]\ncongestion_control = \"cubic\"\ncount = 3\nstart = \"1s\"\nstagger = \"2s\"\nrtt = \"11ns\"\nduration = \"4s\"\n[[flow]]\nkind = \"request-response\"\n",
    );
    let flows = scenario.expanded_flows();
    let seen: Vec<_> = flows.iter().map(|f| (f.id.0, f.spec, f.label.as_str(), f.start.as_millis())).collect();
    assert_eq!(
        seen,
        [
            (1, 0, "first", 0),
            (2, 1, "cubic-1", 1000),
            (3, 1, "cubic-2", 3000),
            (4, 1, "cubic-3", 5000),
            (5, 2, "requests", 0)
        ]
    );
    assert_eq!(flows[1].congestion_control.as_deref(), Some("cubic"));
    assert_eq!(flows[1].duration, Some(Duration::from_secs(4)));
    assert_eq!(flows[0].congestion_control, None);
    assert_eq!(
        flows[4].kind,
        FlowKind::RequestResponse { request: Bytes::new(100), response: Bytes::new(1000), pause: ms(100) }
    );
    let cell = &scenario.cells().expect("cells")[0];
    let delays = |nanos| {
        vec![
            (FlowId(2), Duration::from_nanos(nanos)),
            (FlowId(3), Duration::from_nanos(nanos)),
            (FlowId(4), Duration::from_nanos(nanos)),
        ]
    };
    assert_eq!(cell.forward.flow_delay, delays(6));
    assert_eq!(cell.back.flow_delay, delays(5));
}

#[test]
fn loss_is_independent_unless_a_mean_burst_is_given_and_zero_is_none() {
    let path = "rate = \"100mbit\"\nrtt = \"40ms\"\nloss = [\"0%\", \"1.5%\"]";
    let profile = "[[profile]]\ncongestion_control = \"bbr\"";
    let losses = |path: &str| cells(path, profile).into_iter().map(|cell| cell.forward.loss).collect::<Vec<_>>();
    assert_eq!(losses(path), [LossModel::None, LossModel::Independent(percent("1.5%"))]);
    let burst = LossModel::Burst { average: percent("1.5%"), mean_burst_milli: 2500 };
    assert_eq!(losses(&format!("{path}\nmean_burst = 2.5")), [LossModel::None, burst]);
}

#[test]
fn loss_by_pattern_reaches_every_cell_with_its_average() {
    let path = |loss: &str| format!("rate = \"100mbit\"\nrtt = \"40ms\"\nloss = {loss}");
    let every = &cells(&path("{ every = 200, offset = 7 }"), "")[1];
    assert_eq!(every.forward.loss, LossModel::Periodic { every: 200, offset: 7 });
    assert_eq!(every.loss, percent("0.5%"));
    let list = &cells(&path("{ packets = [10, 11, 500] }"), "")[1];
    assert_eq!(list.forward.loss, LossModel::List(vec![10, 11, 500]));
    assert_eq!(list.loss, Probability::ZERO);
}

#[test]
fn queues_in_every_unit_become_what_the_link_takes() {
    let limits = |rate: &str| {
        let path = format!("rate = {rate}\nrtt = \"40ms\"\nqueue = [\"0.5bdp\", \"100ms\", \"250kB\", \"165packets\"]");
        cells(&path, "[[profile]]\ncongestion_control = \"bbr\"")
            .into_iter()
            .map(|cell| cell.queue_limit)
            .collect::<Vec<_>>()
    };
    let sizes = |bdp, time| {
        [Bytes::new(bdp), Bytes::new(time), Bytes::new(250_000)]
            .map(QueueLimit::Bytes)
            .into_iter()
            .chain([QueueLimit::Packets(165)])
            .collect::<Vec<_>>()
    };
    assert_eq!(limits("\"50mbit\""), sizes(125_000, 625_000));
    // The first of several rates counts.
    assert_eq!(limits("{ steps = [[\"0s\", \"50mbit\"], [\"5s\", \"5mbit\"]] }"), sizes(125_000, 625_000));
}

#[test]
fn a_trace_file_is_the_rate_and_its_mean_sizes_the_queue() {
    let text = "name = \"a\"\ntitle = \"A\"\n[path]\nrate = { trace = \"ramp.trace\" }\nrtt = \"40ms\"";
    let files = |name: &str| {
        assert_eq!(name, "ramp.trace");
        Ok(include_str!("data/ramp.trace").to_owned())
    };
    let cell = &Scenario::parse(text, "a.toml", &files).expect("sound").cells().expect("cells")[0];
    let RateModel::Trace(trace) = &cell.forward.rate else { panic!("a trace") };
    assert_eq!((trace.opportunities_ms.len(), trace.opportunities_ms.last()), (20, Some(&50)));
    // 20 x 1500 bytes in 50 ms are 4.8 Mbit/s: 24 kB in 40 ms.
    assert_eq!(cell.queue_limit, QueueLimit::Bytes(Bytes::new(24_000)));
}

#[test]
fn every_other_key_of_the_path_reaches_its_direction() {
    let path = r#"
        rate = { steps = [["0s", "100mbit"], ["10s", "10mbit"]] }
        rtt = "40ms"
        mtu = 9000
        overhead = "14B"
        jitter = "2ms"
        reorder = { probability = "1%", advance = "5ms" }
        duplicate = "0.1%"
        aqm = { kind = "fq-codel", target = "10ms", interval = "200ms", buckets = 64 }
        ecn = true
        mark_above = "30kB"
        policer = { rate = "20mbit", burst = "100kB" }
        [path.back]
        rate = "5mbit"
        loss = "3%"
        mean_burst = 2
        queue = "2bdp"
        aqm = { kind = "red", min = "3kB" }
    "#;
    let cell = &cells(path, "")[0];
    let forward = &cell.forward;
    let ten = Instant::ZERO + Duration::from_secs(10);
    assert_eq!(forward.rate, RateModel::Steps(vec![(Instant::ZERO, Rate::from_mbps(100)), (ten, Rate::from_mbps(10))]));
    assert_eq!(forward.overhead, Bytes::new(14));
    assert_eq!(forward.jitter, ms(2));
    assert_eq!(forward.reorder, Some(Reorder { probability: percent("1%"), advance: ms(5) }));
    assert_eq!(forward.duplicate, percent("0.1%"));
    let codel = CoDel { target: ms(10), interval: ms(200) };
    // The quantum is one packet with its overhead.
    assert_eq!(forward.queue.discipline, Discipline::FqCoDel { codel, buckets: 64, quantum: Bytes::new(9014) });
    assert!(forward.queue.ecn);
    assert_eq!(forward.queue.mark_above, Some(Bytes::new(30_000)));
    assert_eq!(forward.policer, Some(Policer { rate: Rate::from_mbps(20), burst: Bytes::new(100_000) }));
    let back = &cell.back;
    assert_eq!(back.rate, RateModel::Constant(Rate::from_mbps(5)));
    assert_eq!(back.loss, LossModel::Burst { average: percent("3%"), mean_burst_milli: 2000 });
    assert_eq!(back.queue.limit, QueueLimit::Bytes(Bytes::new(50_000)));
    assert_eq!(back.overhead, Bytes::new(14));
    let red = Red { min: Bytes::new(3000), max: Bytes::new(9000), max_probability: percent("10%"), weight_shift: 9 };
    assert_eq!(back.queue.discipline, Discipline::Red(red));
    assert_eq!((back.jitter, back.policer, back.queue.ecn), (Duration::ZERO, None, false));
}

#[test]
fn common_sysctls_come_first_and_a_file_can_keep_metrics() {
    let profile = "[[profile]]\ncongestion_control = \"bbr\"\n[profile.sysctl]\nnet.ipv4.tcp_sack = 0\n\"net.ipv4.tcp_dsack\" = \"0\"\n";
    let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let scenario = read("rate = \"1mbit\"\nrtt = \"40ms\"", &format!("{profile}[sysctl]\nnet.ipv4.tcp_ecn = 1"));
    assert_eq!(scenario.sysctls, [own("net.ipv4.tcp_no_metrics_save", "1"), own("net.ipv4.tcp_ecn", "1")]);
    assert_eq!(scenario.profiles[0].sysctls, [own("net.ipv4.tcp_sack", "0"), own("net.ipv4.tcp_dsack", "0")]);
    let scenario = read("rate = \"1mbit\"\nrtt = \"40ms\"", "[sysctl]\nnet.ipv4.tcp_no_metrics_save = 0");
    assert_eq!(scenario.sysctls, [own("net.ipv4.tcp_no_metrics_save", "0")]);
}

#[test]
fn a_path_that_needs_more_memory_than_there_is_is_refused() {
    let scenario = read("rate = \"10gbit\"\nrtt = \"100ms\"\nqueue = \"2bdp\"", "");
    assert_eq!(
        scenario.cells_within(Bytes::new(374_999_999)).expect_err("1 byte short").to_string(),
        "a: an rtt of 100 ms with a queue of 2 BDP holds up to 375 MB on the path, more than the 375 MB of memory that are free for it"
    );
    assert_eq!(scenario.cells_within(Bytes::new(375_000_000)).map(|cells| cells.len()), Ok(2));
    // A flow with a longer way of its own, and a queue counted in packets.
    let scenario = read("rate = \"8mbit\"\nrtt = \"1ms\"\nqueue = \"10packets\"", "[[flow]]\nrtt = \"1s\"");
    let cell = &scenario.cells().expect("cells")[0];
    assert_eq!(scenario.memory_needed(cell), Bytes::new(1_000_000 + 15_000));
}

#[test]
fn an_ad_hoc_path_is_what_a_file_with_the_same_keys_would_be() {
    let rate = RateModel::Constant(Rate::from_mbps(200));
    let mut parts = AdHoc::new(rate, ms(120));
    let file = read("rate = \"200mbit\"\nrtt = \"120ms\"", "");
    let scenario = Scenario::ad_hoc(parts.clone()).expect("sound");
    assert_eq!(scenario.cells(), file.cells());
    assert_eq!(scenario.expanded_flows(), file.expanded_flows());
    assert_eq!(scenario.title, "200 Mbit/s, 120 ms round trip, 0% loss");

    parts.loss = percent("1.5%");
    parts.mean_burst_milli = Some(3000);
    parts.queue = QueueSpec::Time(ms(50));
    parts.mtu = 1400;
    parts.overhead = Bytes::new(14);
    parts.jitter = ms(1);
    parts.congestion_controls = vec!["reno".to_owned()];
    let file = read(
        "rate = \"200mbit\"\nrtt = \"120ms\"\nloss = \"1.5%\"\nmean_burst = 3\nqueue = \"50ms\"\nmtu = 1400\noverhead = \"14B\"\njitter = \"1ms\"",
        "",
    );
    let (own, theirs) = (Scenario::ad_hoc(parts).expect("sound").cells().expect("cells"), file.cells().expect("cells"));
    assert_eq!((&own[0].forward, &own[0].back), (&theirs[0].forward, &theirs[0].back));
    assert_eq!(own.iter().map(|cell| cell.profile.name.as_str()).collect::<Vec<_>>(), ["reno"]);
}

#[test]
fn a_symmetric_ad_hoc_path_limits_both_directions_alike() {
    let mut parts = AdHoc::new(RateModel::Constant(Rate::from_mbps(10)), ms(40));
    parts.loss = percent("1%");
    parts.symmetric = true;
    let cell = &Scenario::ad_hoc(parts.clone()).expect("sound").cells().expect("cells")[0];
    assert_eq!(cell.forward, cell.back);
    assert_eq!(cell.back.loss, LossModel::Independent(percent("1%")));
    assert_eq!(cell.back.queue.limit, QueueLimit::Bytes(Bytes::new(50_000)));
    parts.symmetric = false;
    let cell = &Scenario::ad_hoc(parts).expect("sound").cells().expect("cells")[0];
    assert_ne!(cell.forward, cell.back);
}

#[test]
fn an_impossible_ad_hoc_path_is_refused_like_a_file() {
    let refused = |change: &dyn Fn(&mut AdHoc)| {
        let mut parts = AdHoc::new(RateModel::Constant(Rate::from_mbps(10)), ms(40));
        change(&mut parts);
        Scenario::ad_hoc(parts).expect_err("impossible").to_string()
    };
    assert_eq!(refused(&|p| p.loss = Probability::ONE), "ad-hoc: a loss of 100% lets nothing through");
    assert_eq!(refused(&|p| p.rate = RateModel::Constant(Rate::ZERO)), "ad-hoc: a rate of 0 lets nothing through");
    assert_eq!(refused(&|p| p.congestion_controls.clear()), "ad-hoc: a scenario needs at least one profile");
    assert_eq!(
        refused(&|p| p.congestion_controls.push("bbr".to_owned())),
        "ad-hoc: two profiles are named \"bbr\"; give one another name"
    );
    assert_eq!(
        refused(&|p| p.rate = RateModel::Trace(path::Trace { opportunities_ms: vec![3, 2] })),
        "ad-hoc: a trace has rising times, the last above 0 ms"
    );
    let unlimited = Scenario::ad_hoc(AdHoc::new(RateModel::Unlimited, ms(40))).expect("delay alone is a path");
    assert_eq!(unlimited.cells().expect("cells")[0].queue_limit, QueueLimit::Packets(1000));
}
