//! Whatever stands in a file, the answer is a scenario that can be run or an error that says where.

use linerate_scenario::{QueueSpec, Scenario, builtin, parse_trace};
use proptest::prelude::*;
use units::Bytes;

/// Reads `text`; what it is taken for must hold together.
fn parse(text: &str) {
    let files =
        |name: &str| if name.len().is_multiple_of(2) { Ok(name.repeat(3)) } else { Err("no such file".to_owned()) };
    match Scenario::parse(text, "x.toml", &files) {
        Ok(scenario) => {
            let cells = scenario.cells().expect("a scenario that was read can be run");
            assert!(!cells.is_empty());
            assert!(!scenario.expanded_flows().is_empty());
            let _ = scenario.cells_within(Bytes::new(1 << 30));
        }
        Err(error) => {
            assert!(!error.problems().is_empty());
            assert!(!error.to_string().is_empty());
            let lines = text.split('\n').count();
            for problem in error.problems().iter().filter(|problem| problem.origin == "x.toml") {
                let position = problem.position.expect("everything in a file has a place");
                assert!((1..=lines).contains(&position.line), "{problem}");
            }
        }
    }
}

/// A line of a scenario file, right or wrong.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("rate"),
        Just("rtt"),
        Just("loss"),
        Just("mean_burst"),
        Just("queue"),
        Just("mtu"),
        Just("overhead"),
        Just("jitter"),
        Just("reorder"),
        Just("duplicate"),
        Just("aqm"),
        Just("ecn"),
        Just("mark_above"),
        Just("policer"),
        Just("back"),
        Just("name"),
        Just("title"),
        Just("label"),
        Just("count"),
        Just("kind"),
        Just("bytes"),
        Just("congestion_control"),
        Just("start"),
        Just("stagger"),
        Just("duration"),
        Just("warmup"),
        Just("repeats"),
        Just("seed"),
        Just("profile"),
        Just("goodput"),
        Just("sysctl"),
        Just("net.ipv4.tcp_sack"),
        Just("flow"),
        Just("steps"),
    ];
    let value = prop_oneof![
        Just("\"1mbit\"".to_owned()),
        Just("\"40ms\"".to_owned()),
        Just("\"1%\"".to_owned()),
        Just("\"1bdp\"".to_owned()),
        Just("\"9223372036854775807h\"".to_owned()),
        Just("\"18446744073709551615bit\"".to_owned()),
        Just("\"18446744073709551615B\"".to_owned()),
        Just("\"4294967bdp\"".to_owned()),
        Just("\"99.9999999%\"".to_owned()),
        Just("true".to_owned()),
        Just("\"bbr\"".to_owned()),
        Just("\"fq-codel\"".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("{ trace = \"12\" }".to_owned()),
        Just("{ steps = [[\"0s\", \"1mbit\"]] }".to_owned()),
        Just("{ every = 3 }".to_owned()),
        Just("{ kind = \"red\", min = \"1B\" }".to_owned()),
        Just("[\"1ms\", \"2ms\"]".to_owned()),
        Just("1979-05-27".to_owned()),
        Just("nan".to_owned()),
        Just("1.5".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        "\"[ -~]{0,12}\"",
        "[0-9]{1,25}",
    ];
    let table = prop_oneof![
        Just("[path]"),
        Just("[path.back]"),
        Just("[[flow]]"),
        Just("[[profile]]"),
        Just("[sysctl]"),
        Just("[run]"),
        Just("[[published]]"),
        Just("[flow]"),
        Just("[[path]]"),
    ];
    prop_oneof![
        3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => table.prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_answered(text in any::<String>()) {
        parse(&text);
    }

    #[test]
    fn arbitrary_lines_are_answered(lines in proptest::collection::vec(line(), 0..25)) {
        parse(&lines.join("\n"));
    }

    #[test]
    fn one_line_too_many_in_a_sound_file_is_answered(which in 0..12usize, at in 0..60usize, extra in line()) {
        let (_, text) = builtin()[which % builtin().len()];
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(at.min(lines.len()), &extra);
        parse(&lines.join("\n"));
    }

    #[test]
    fn one_line_exchanged_in_a_sound_file_is_answered(which in 0..12usize, at in 0..60usize, extra in line()) {
        let (_, text) = builtin()[which % builtin().len()];
        let mut lines: Vec<&str> = text.lines().collect();
        let at = at % lines.len();
        lines[at] = &extra;
        parse(&lines.join("\n"));
    }

    #[test]
    fn arbitrary_traces_are_answered(text in "[0-9 a\n#-]{0,200}") {
        match parse_trace(&text, "x.trace") {
            Ok(trace) => prop_assert!(trace.opportunities_ms.is_sorted() && trace.opportunities_ms.last() > Some(&0)),
            Err(error) => prop_assert!(error.to_string().starts_with("x.trace:")),
        }
    }

    #[test]
    fn a_queue_size_in_thousandths_is_read_as_it_is_printed(milli in 0..4_294_967_000u32) {
        let spec = QueueSpec::BdpMilli(milli);
        prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        prop_assert!(".5".parse::<QueueSpec>().is_err());
    }
}
