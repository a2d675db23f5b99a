//! Answers to made-up evidence: each question both ways, and what is not known.

use std::collections::BTreeMap;

use facts::Fact;
use tuning::audit::persistence::{Fate, Line};
use tuning::audit::{Facts, Persistent};
use tuning::doctor::{Answer, Cpu, Evidence, Run, Verdict, answer};

const CONTROL: &str = "net.ipv4.tcp_congestion_control";

fn facts() -> Facts {
    let mut facts = Facts::default();
    facts.plan.kernel = "6.12.0".into();
    facts.plan.sysctls.insert(CONTROL.into(), "cubic".into());
    facts.plan.sysctls.insert("net.ipv4.tcp_rmem".into(), "4096 131072 6291456".into());
    facts.plan.sysctls.insert("net.ipv4.tcp_wmem".into(), "4096 16384 4194304".into());
    facts
}

fn run(sent: bool) -> Run {
    Run {
        sent,
        streams: 1,
        goodput_bps: 100_000_000,
        congestion_control: Some("cubic".into()),
        retransmitted_share: Some(0.0),
        receive_window_share: Some(0.0),
        send_buffer_share: Some(0.0),
        rtt_ms: Some(20.0),
        rtt_loaded_ms: Some(25.0),
        bottleneck_bps: None,
        loss_kind: Some("none".into()),
        because: Some("No queue built up".into()),
        cpus: vec![cpu(0, 0.3), cpu(1, 0.1)],
        server_cpu_share: Some(0.2),
    }
}

fn cpu(number: u32, busy_share: f64) -> Cpu {
    Cpu { number, busy_share, softirq_share: busy_share / 2.0 }
}

fn ask(facts: &Facts, runs: &[Run], id: &str) -> Answer {
    let answers = answer(&Evidence { facts, verify: &[], applied: false, runs });
    answers.into_iter().find(|answer| answer.id == id).unwrap()
}

fn persistent(key: &str, fate: Fate, value: &str, module: Option<&str>) -> Persistent {
    Persistent {
        key: key.into(),
        live: Some("cubic".into()),
        at_boot: Some(Line {
            value: value.into(),
            file: "/etc/sysctl.d/50-own.conf".into(),
            line: 3,
            by: "systemd-sysctl".into(),
        }),
        losers: Vec::new(),
        default: None,
        module: module.map(str::to_owned),
        fate,
    }
}

#[test]
fn without_runs_what_needs_one_is_not_known_and_nothing_is_wrong() {
    let facts = facts();
    for id in ["one-core", "receiver-buffers", "send-buffer", "elsewhere"] {
        let answer = ask(&facts, &[], id);
        assert_eq!((answer.verdict, answer.wrong), (Verdict::NotKnown, false), "{answer:?}");
        assert!(answer.advice[0].contains("linerate doctor HOST"), "{answer:?}");
    }
    assert_eq!(ask(&facts, &[], "key-not-found").verdict, Verdict::No);
    assert_eq!(ask(&Facts::default(), &[], "back-to-cubic").verdict, Verdict::NotKnown);
}

#[test]
fn a_healthy_host_and_run_answer_no_everywhere() {
    let facts = facts();
    for answer in answer(&Evidence { facts: &facts, verify: &[], applied: false, runs: &[run(true), run(false)] }) {
        assert_eq!((answer.verdict, answer.wrong), (Verdict::No, false), "{answer:?}");
        assert!(!answer.evidence.is_empty(), "{answer:?}");
    }
}

#[test]
fn connections_that_keep_the_old_control_are_why_nothing_improves() {
    let mut facts = facts();
    facts.plan.sysctls.insert(CONTROL.into(), "bbr".into());
    let controls = BTreeMap::from([("cubic".to_owned(), 12), ("bbr".to_owned(), 1)]);
    facts.host.connections = Fact::known("a test", facts::Connections { controls, ..Default::default() });
    let answer = ask(&facts, &[], "no-improvement");
    assert_eq!((answer.verdict, answer.wrong), (Verdict::Yes, true));
    assert!(answer.evidence[0].contains("12 on cubic"), "{answer:?}");
    let mut sent = run(true);
    sent.congestion_control = Some("bbr".into());
    facts.host.connections = Fact::missing("a test", "not looked at");
    assert_eq!(ask(&facts, &[sent], "no-improvement").verdict, Verdict::No);
    assert!(ask(&facts, &[run(true)], "no-improvement").advice[0].contains("route"), "a new one runs another");
}

#[test]
fn back_to_cubic_says_which_file_and_what_to_do() {
    let mut facts = facts();
    for (fate, says) in [
        (Fate::NotLive, "sysctl -w"),
        (Fate::TooLate, "modules-load.d"),
        (Fate::NotRead, "/etc/sysctl.d"),
        (Fate::NotPersistent, "linerate apply"),
    ] {
        facts.persistence = vec![persistent(CONTROL, fate, "bbr", None)];
        let answer = ask(&facts, &[], "back-to-cubic");
        assert!(answer.wrong && answer.advice[0].contains(says), "{fate:?}: {answer:?}");
        assert!(answer.evidence.iter().any(|line| line.contains("50-own.conf:3")), "{answer:?}");
    }
    facts.host.controls = Fact::known("a test", Vec::new());
    facts.persistence = vec![persistent(CONTROL, Fate::NotLive, "bbr", None)];
    assert!(ask(&facts, &[], "back-to-cubic").advice[0].contains("modprobe tcp_bbr"));
    facts.persistence = vec![persistent(CONTROL, Fate::Kept, "cubic", None)];
    assert!(!ask(&facts, &[], "back-to-cubic").wrong);
}

#[test]
fn keys_that_are_not_there_are_named_with_their_module() {
    let mut facts = facts();
    facts.persistence = vec![
        persistent("net.netfilter.nf_conntrack_max", Fate::TooLate, "1", Some("nf_conntrack")),
        persistent("net.ipv4.tcp_tw_recycle", Fate::NoKey, "1", None),
    ];
    let answer = ask(&facts, &[], "key-not-found");
    assert!(answer.wrong && answer.evidence.len() == 2, "{answer:?}");
    assert!(answer.advice[0].contains("nf_conntrack") && answer.advice[1].contains("linerate lint"), "{answer:?}");
}

#[test]
fn one_full_cpu_is_told_from_all_of_them() {
    let facts = facts();
    let with = |cpus: Vec<Cpu>| Run { cpus, ..run(true) };
    let one = ask(&facts, &[with(vec![cpu(0, 0.99), cpu(1, 0.1)])], "one-core");
    assert!(one.wrong && one.advice[0].contains("one thread"), "{one:?}");
    let packets = Cpu { softirq_share: 0.8, ..cpu(0, 0.99) };
    assert!(ask(&facts, &[with(vec![packets, cpu(1, 0.1)])], "one-core").advice[0].contains("RPS"));
    let all = ask(&facts, &[with(vec![cpu(0, 0.99), cpu(1, 0.97)]), with(vec![cpu(0, 1.0), cpu(1, 1.0)])], "one-core");
    assert!(all.advice.len() == 1 && all.advice[0].contains("all CPUs"), "{all:?}");
    assert_eq!(ask(&facts, &[with(Vec::new())], "one-core").verdict, Verdict::NotKnown);
}

#[test]
fn a_window_or_a_buffer_that_holds_the_sender_is_at_the_end_that_has_it() {
    let facts = facts();
    let held = |sent| Run { receive_window_share: Some(0.5), ..run(sent) };
    assert!(ask(&facts, &[held(true)], "receiver-buffers").advice[0].contains("on the other host"));
    assert!(ask(&facts, &[held(false)], "receiver-buffers").advice[0].contains("here"));
    let full = Run { send_buffer_share: Some(0.4), ..run(true) };
    assert!(ask(&facts, &[full], "send-buffer").wrong);
    // 3 MiB of window at 200 ms are 126 Mbit/s: less than the bottleneck of an iperf3 server whose sockets say nothing.
    let narrow =
        Run { receive_window_share: None, rtt_ms: Some(200.0), bottleneck_bps: Some(1_000_000_000), ..run(false) };
    assert!(ask(&facts, &[narrow], "receiver-buffers").wrong);
}

#[test]
fn a_filled_path_is_no_fault_and_a_policer_is_one() {
    let facts = facts();
    let filled = Run { bottleneck_bps: Some(105_000_000), ..run(true) };
    let answer = ask(&facts, std::slice::from_ref(&filled), "elsewhere");
    assert_eq!((answer.verdict, answer.wrong), (Verdict::Yes, false), "{answer:?}");
    let lossy = Run { loss_kind: Some("random".into()), retransmitted_share: Some(0.01), ..filled.clone() };
    let answer = ask(&facts, &[lossy], "elsewhere");
    assert_eq!(answer.verdict, Verdict::No, "losses leave room: {answer:?}");
    assert!(answer.advice[0].contains("BBR"), "{answer:?}");
    let policed = Run { loss_kind: Some("policed".into()), ..run(true) };
    assert!(ask(&facts, &[policed], "elsewhere").wrong);
    let far = Run { server_cpu_share: Some(0.98), ..run(true) };
    assert!(ask(&facts, &[far], "elsewhere").wrong);
    let many = Run { streams: 4, goodput_bps: 390_000_000, ..run(true) };
    let answer = ask(&facts, &[run(true), many], "elsewhere");
    assert!(answer.evidence.iter().any(|line| line.contains("3.9 times")), "{answer:?}");
}
