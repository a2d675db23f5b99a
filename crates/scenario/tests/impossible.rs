//! What is well written and cannot be run, each with the nearest that can.

mod common;

use common::{SOUND, parse, refused};

#[test]
fn impossible_paths_are_refused_in_a_sentence() {
    refused(
        "rate = \"100mbit\"",
        "rate = \"0bit\"",
        "x.toml:4:8: a rate of 0 lets nothing through",
        "rate = \"1mbit\"",
    );
    refused(
        "loss = [\"0%\", \"1%\"]",
        "loss = [\"1%\", \"100%\"]",
        "x.toml:6:15: a loss of 100% lets nothing through",
        "loss = [\"1%\", \"99.9999999%\"]",
    );
    refused(
        "loss = [\"0%\", \"1%\"]",
        "loss = [\"1%\", \"1.0%\"]",
        "x.toml:6:15: loss 1% stands in the list twice",
        "loss = [\"1%\", \"1.1%\"]",
    );
    refused(
        "rtt = \"40ms\"",
        "rtt = []",
        "x.toml:5:7: the path needs at least one round-trip time",
        "rtt = [\"40ms\"]",
    );
    let rtt = "rtt = \"40ms\"";
    for (bad, answer, near) in [
        (
            "queue = \"1499B\"",
            "6:9: a queue of 1499 B (1499 B at an rtt of 40 ms) is less than one packet of 1500 B",
            "queue = \"1500B\"",
        ),
        (
            "queue = [\"1bdp\", \"0.002bdp\"]",
            "6:18: a queue of 0.002 BDP (1000 B at an rtt of 40 ms) is less than one packet of 1500 B",
            "queue = [\"1bdp\", \"0.003bdp\"]",
        ),
        (
            "queue = \"119us\"",
            "6:9: a queue of 119 us (1487 B at an rtt of 40 ms) is less than one packet of 1500 B",
            "queue = \"120us\"",
        ),
        ("queue = \"0packets\"", "6:9: a queue of 0 packets holds nothing", "queue = \"1packet\""),
        (
            "overhead = \"14B\"\nqueue = \"1513B\"",
            "7:9: a queue of 1513 B (1513 B at an rtt of 40 ms) is less than one packet of 1514 B",
            "overhead = \"14B\"\nqueue = \"1514B\"",
        ),
        ("mtu = 575", "6:7: an mtu of 575 is outside 576 to 9000 bytes", "mtu = 576"),
        ("mtu = 9001", "6:7: an mtu of 9001 is outside 576 to 9000 bytes", "mtu = 9000"),
        ("mean_burst = 0.999", "6:14: a mean burst of 0.999 packets is shorter than one packet", "mean_burst = 1"),
        (
            "back = { loss = \"90%\", mean_burst = 8.999 }",
            "6:17: an average loss of 90% needs a mean burst of at least 9 packets, for at least one packet arrives \
             between bursts",
            "back = { loss = \"90%\", mean_burst = 9 }",
        ),
        ("back = { loss = \"100%\" }", "6:17: a loss of 100% lets nothing through", "back = { loss = \"99%\" }"),
        (
            "back = { loss = [\"1%\", \"2%\"] }",
            "6:17: only the loss of [path] can be a list; [path.back] has one",
            "back = { loss = \"2%\" }",
        ),
        ("back = { rate = \"0bit\" }", "6:17: a rate of 0 lets nothing through", "back = { rate = \"1mbit\" }"),
        (
            "back = { queue = \"10ms\" }",
            "6:18: a queue of 10 ms needs a rate; without one write it in packets or bytes",
            "back = { queue = \"10packets\" }",
        ),
        (
            "back = { rate = \"1mbit\", queue = \"11ms\" }",
            "6:34: a queue of 11 ms (1375 B at an rtt of 40 ms) is less than one packet of 1500 B",
            "back = { rate = \"1mbit\", queue = \"12ms\" }",
        ),
        (
            "ecn = true",
            "6:7: ecn = true marks where an aqm would drop, and drop-tail never does; set aqm or mark_above",
            "ecn = true\naqm = \"codel\"",
        ),
        (
            "reorder = { probability = \"1%\", advance = \"21ms\" }",
            "6:43: a packet cannot be 21 ms early on a way of 20 ms",
            "reorder = { probability = \"1%\", advance = \"20ms\" }",
        ),
        (
            "policer = { rate = \"0bit\", burst = \"100kB\" }",
            "6:20: a rate of 0 lets nothing through",
            "policer = { rate = \"1bit\", burst = \"100kB\" }",
        ),
        (
            "policer = { rate = \"1mbit\", burst = \"1499B\" }",
            "6:37: a policer's burst of 1499 B is less than one packet of 1500 B",
            "policer = { rate = \"1mbit\", burst = \"1500B\" }",
        ),
        (
            "aqm = { kind = \"fq-codel\", buckets = 0 }",
            "6:38: fq-codel has 1 to 65536 buckets, not 0",
            "aqm = { kind = \"fq-codel\", buckets = 1 }",
        ),
        (
            "aqm = { kind = \"fq-codel\", quantum = \"300B\" }",
            "6:38: a quantum of 300 B is less than one packet of 1500 B",
            "aqm = { kind = \"fq-codel\", quantum = \"1500B\" }",
        ),
        (
            "aqm = { kind = \"codel\", target = \"101ms\" }",
            "6:34: codel's target of 101 ms is not above 0 and up to its interval of 100 ms",
            "aqm = { kind = \"codel\", target = \"100ms\" }",
        ),
        (
            "aqm = { kind = \"red\", min = \"30kB\", max = \"30kB\" }",
            "6:29: red's min of 30 kB is not below its max of 30 kB",
            "aqm = { kind = \"red\", min = \"30kB\" }",
        ),
        (
            "aqm = { kind = \"red\", min = \"30kB\", max_probability = \"0%\" }",
            "6:55: red with a max_probability of 0 never drops",
            "aqm = { kind = \"red\", min = \"30kB\", max_probability = \"1%\" }",
        ),
        (
            "aqm = { kind = \"red\", min = \"30kB\", weight_shift = 25 }",
            "6:52: a weight_shift of 25 hardly moves the average; write at most 24",
            "aqm = { kind = \"red\", min = \"30kB\", weight_shift = 24 }",
        ),
        (
            "aqm = \"red\"",
            "6:7: red needs its thresholds: { kind = \"red\", min = \"30kB\", max = \"90kB\" }",
            "aqm = { kind = \"red\", min = \"30kB\", max = \"90kB\" }",
        ),
    ] {
        refused(rtt, &format!("{rtt}\n{bad}"), &format!("x.toml:{answer}"), &format!("{rtt}\n{near}"));
    }
}

#[test]
fn losses_by_pattern_say_what_is_wrong_with_them() {
    // No published loss: a pattern has no swept one.
    let base = SOUND.replace("loss = \"1%\"\n", "");
    let refused = |loss: &str, answer: &str, near: &str| {
        let text = |loss: &str| base.replace("loss = [\"0%\", \"1%\"]", &format!("loss = {loss}"));
        assert_eq!(parse(&text(loss)).expect_err("must be refused"), format!("x.toml:{answer}"));
        if let Err(error) = parse(&text(near)) {
            panic!("the near miss {near:?} was refused: {error}");
        }
    };
    let either = "6:8: a loss pattern is either { every = 100, offset = 0 } or { packets = [10, 11] }";
    refused("{}", either, "{ every = 2 }");
    refused("{ every = 2, packets = [1] }", either, "{ packets = [1] }");
    refused("{ packets = [1], offset = 3 }", either, "{ every = 5, offset = 3 }");
    refused("{ every = 1 }", "6:8: a loss of every 1. packet lets nothing through; write at least 2", "{ every = 2 }");
    refused(
        "{ packets = [3, 3] }",
        "6:8: lost packets are listed in rising order: 3 stands before 3",
        "{ packets = [3, 4] }",
    );
    refused(
        "{ packets = 3 }",
        "6:20: packets is a number; write a list of packet numbers, such as [10, 11]",
        "{ packets = [3] }",
    );
    refused(
        "{ every = 5 }\nmean_burst = 2",
        "6:8: mean_burst belongs to a loss given as a probability, not to a pattern",
        "\"1%\"\nmean_burst = 2",
    );
}

#[test]
fn flows_that_cannot_run_are_refused() {
    let label = "label = \"bulk\"";
    for (bad, answer, near) in [
        ("count = 0", "8:9: a count of 0 makes no flow", "count = 1"),
        ("count = 1001", "7:1: 1001 flows are more than 1000", "count = 1000"),
        ("bytes = \"0B\"", "8:9: a transfer of 0 bytes measures nothing", "bytes = \"1B\""),
        ("start = \"15s\"", "8:9: a flow that starts at 15 s misses the run, which ends at 15 s", "start = \"14.9s\""),
        (
            "stagger = \"5s\"\ncount = 4",
            "8:11: a flow that starts at 15 s misses the run, which ends at 15 s",
            "stagger = \"5s\"\ncount = 3",
        ),
        ("duration = \"0s\"", "8:12: a flow of 0 s sends nothing", "duration = \"1s\""),
        ("label = \" \"", "8:9: a flow's label is one line of text", "label = \"x\""),
        (
            "congestion_control = \"sixteen-letters-\"",
            "8:22: \"sixteen-letters-\" is no congestion control's name: 1 to 15 letters, digits, \"-\" and \"_\"",
            "congestion_control = \"fifteen-letters\"",
        ),
        (
            "count = 2\nlabel = \"a\"\n[[flow]]\nlabel = \"a-2\"",
            "11:9: two flows are labelled \"a-2\"; give one another label",
            "count = 2\nlabel = \"a\"\n[[flow]]\nlabel = \"a-3\"",
        ),
        (
            "kind = \"request-response\"\nrequest = \"0B\"",
            "9:11: a request of 0 bytes cannot be sent",
            "kind = \"request-response\"\nrequest = \"1B\"",
        ),
        (
            "kind = \"request-response\"\nresponse = \"0B\"",
            "9:12: a response of 0 bytes cannot be sent",
            "kind = \"request-response\"\nresponse = \"1B\"",
        ),
    ] {
        refused(label, bad, &format!("x.toml:{answer}"), near);
    }
}

#[test]
fn profiles_and_sysctls_that_cannot_be_set_are_refused() {
    refused(
        "name = \"bbr\"",
        "name = \"cubic\"",
        "x.toml:13:8: two profiles are named \"cubic\"; give one another name",
        "name = \"cubic 2\"",
    );
    refused("name = \"bbr\"", "name = \"\"", "x.toml:13:8: a profile's name is one line of text", "name = \"b\"");
    refused(
        "congestion_control = \"bbr\"",
        "congestion_control = \"bbr;\"",
        "x.toml:14:22: \"bbr;\" is no congestion control's name: 1 to 15 letters, digits, \"-\" and \"_\"",
        "congestion_control = \"bbr_\"",
    );
    let control = "congestion_control = \"bbr\"";
    for (bad, answer, near) in [
        (
            "\"vm.swappiness\" = 1",
            "\"vm.swappiness\" is no network setting; names start with \"net.\"",
            "\"net.ipv4.tcp_sack\" = 1",
        ),
        (
            "\"net.ipv4.tcp_sack\" = \"\"",
            "\"net.ipv4.tcp_sack\" needs a value on one line",
            "\"net.ipv4.tcp_sack\" = \"0\"",
        ),
        (
            "\"net.ipv4.tcp_sack\" = \"0\\n1\"",
            "\"net.ipv4.tcp_sack\" needs a value on one line",
            "\"net.ipv4.tcp_rmem\" = \"1\\t2\\t3\"",
        ),
    ] {
        let text = |sysctl: &str| format!("{control}\nsysctl = {{ {sysctl} }}");
        refused(control, &text(bad), &format!("x.toml:15:12: sysctl {answer}"), &text(near));
    }
    for (bad, answer) in [
        ("\"net.../../x\" = 1", "12: \"net.../../x\" is no sysctl's name"),
        ("\"net.ipv4.\" = 1", "12: \"net.ipv4.\" is no sysctl's name"),
        ("net.ipv4.tcp_sack = 1, \"net.ipv4.tcp_sack\" = 0", "35: sysctl \"net.ipv4.tcp_sack\" is set twice"),
        (
            "net.ipv4.tcp_congestion_control = \"reno\"",
            "21: the congestion control is the profile's congestion_control, not a sysctl",
        ),
    ] {
        let text = |sysctl: &str| format!("{control}\nsysctl = {{ {sysctl} }}");
        refused(control, &text(bad), &format!("x.toml:15:{answer}"), &text("net.ipv4.tcp_sack = 1"));
    }
    refused(
        "[run]",
        "[sysctl]\n\"kernel.x\" = 1\n[run]",
        "x.toml:16:1: sysctl \"kernel.x\" is no network setting; names start with \"net.\"",
        "[sysctl]\n\"net.x\" = 1\n[run]",
    );
}

#[test]
fn runs_that_measure_nothing_or_never_end_are_refused() {
    let duration = "duration = \"15s\"";
    for (bad, answer, near) in [
        ("duration = \"3s\"", "16:12: a run of 3 s is not longer than its warm-up of 3 s", "duration = \"3.1s\""),
        ("warmup = \"15s\"", "15:1: a run of 15 s is not longer than its warm-up of 15 s", "warmup = \"14s\""),
        ("repeats = 0", "16:11: 0 repeats measure nothing", "repeats = 1"),
        ("repeats = 25001", "16:11: 100004 runs are more than 100000", "repeats = 25000"),
        (
            "seed = 0xffffffffffffffff",
            "16:8: a seed of 18446744073709551615 leaves no room for the seeds of repeats",
            "seed = 0x7fffffffffffffff",
        ),
    ] {
        refused(duration, bad, &format!("x.toml:{answer}"), near);
    }
}

#[test]
fn published_figures_belong_to_a_cell_that_is_run() {
    refused(
        "profile = \"cubic\"",
        "profile = \"cubik\"",
        "x.toml:18:11: no profile is named \"cubik\"; did you mean \"cubic\"?",
        "profile = \"bbr\"",
    );
    refused("loss = \"1%\"", "loss = \"2%\"", "x.toml:19:8: a loss of 2% is not among the path's", "loss = \"0.01\"");
    refused(
        "goodput = \"4mbit\"",
        "note = \"why\"",
        "x.toml:17:1: a published entry needs at least one figure",
        "retransmissions = 3",
    );
}

#[test]
fn a_scenario_has_a_plain_name_and_a_title_of_one_line() {
    refused(
        "name = \"sound\"",
        "name = \"Sound one\"",
        "x.toml:1:8: \"Sound one\" is no scenario's name: it takes lower case letters, digits and \"-\"",
        "name = \"sound-1\"",
    );
    refused(
        "title = \"A sound scenario\"",
        "title = \"a\\nb\"",
        "x.toml:2:9: the title is one line of text",
        "title = \"a b\"",
    );
}

#[test]
fn queues_hold_a_full_ethernet_packet_whatever_the_mtu_and_a_larger_one_where_there_is() {
    let rtt = "rtt = \"40ms\"";
    let text = |rest: &str| format!("{rtt}\n{rest}");
    refused(
        rtt,
        &text("mtu = 576\nqueue = \"1499B\""),
        "x.toml:7:9: a queue of 1499 B (1499 B at an rtt of 40 ms) is less than one packet of 1500 B",
        &text("mtu = 576\nqueue = \"1500B\""),
    );
    refused(
        rtt,
        &text("mtu = 9000\nqueue = \"8999B\""),
        "x.toml:7:9: a queue of 8999 B (8999 B at an rtt of 40 ms) is less than one packet of 9000 B",
        &text("mtu = 9000\nqueue = \"9000B\""),
    );
}

#[test]
fn rates_beyond_the_models_arithmetic_are_refused() {
    refused(
        "rate = \"100mbit\"",
        "rate = \"1000001tbit\"",
        "x.toml:4:8: a rate of 1000001000 Gbit/s is above the largest, 1000000000 Gbit/s",
        "rate = \"1000000tbit\"",
    );
}
