//! What each mistake in a scenario file is answered with, and that the nearest sound text passes.

mod common;

use common::{SOUND, parse, refused, with};
use linerate_scenario::Scenario;

#[test]
fn the_text_all_of_this_starts_from_is_sound() {
    assert!(parse(SOUND).is_ok());
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_nearest_known_one() {
    refused(
        "rtt = \"40ms\"",
        "rtt = \"40ms\"\nbufer = \"1bdp\"",
        "x.toml:6:1: unknown key \"bufer\" in [path]; did you mean \"queue\"?",
        "rtt = \"40ms\"\nqueue = \"1bdp\"",
    );
    refused(
        "duration = \"15s\"",
        "duration = \"15s\"\ncolour = 3",
        "x.toml:17:1: unknown key \"colour\" in [run]; known are \"duration\", \"warmup\", \"repeats\", \"seed\"",
        "duration = \"15s\"\nseed = 3",
    );
    refused(
        "title = \"A sound scenario\"",
        "title = \"A\"\nabuot = \"B\"",
        "x.toml:3:1: unknown key \"abuot\" at the top level; did you mean \"about\"?",
        "title = \"A\"\nabout = \"B\"",
    );
    refused(
        "label = \"bulk\"",
        "request = \"100B\"\nkind = \"bulk\"",
        "x.toml:8:1: unknown key \"request\" in [[flow]] of kind \"bulk\"; known are \"label\", \"count\", \"kind\", \
         \"bytes\", \"congestion_control\", \"rtt\", \"start\", \"stagger\", \"duration\"",
        "request = \"100B\"\nkind = \"request-response\"",
    );
    refused(
        "rtt = \"40ms\"",
        "rtt = \"40ms\"\naqm = { kind = \"codel\", quantum = \"1500B\" }",
        "x.toml:6:25: unknown key \"quantum\" in path.aqm of kind \"codel\"; known are \"kind\", \"target\", \"interval\"",
        "rtt = \"40ms\"\naqm = { kind = \"fq-codel\", quantum = \"1500B\" }",
    );
    refused(
        "rtt = \"40ms\"",
        "rtt = \"40ms\"\nback.rtt = \"40ms\"",
        "x.toml:6:6: unknown key \"rtt\" in [path.back]; known are \"rate\", \"loss\", \"mean_burst\", \"queue\", \
         \"overhead\", \"jitter\", \"reorder\", \"duplicate\", \"aqm\", \"ecn\", \"mark_above\", \"policer\"",
        "rtt = \"40ms\"\nback.jitter = \"40ms\"",
    );
}

#[test]
fn a_missing_key_is_named_with_its_table() {
    refused("name = \"sound\"", "", "x.toml:1:1: missing key \"name\" at the top level", "name = \"a\"");
    refused("rate = \"100mbit\"", "", "x.toml:3:1: missing key \"rate\" in [path]", "rate = \"1mbit\"");
    refused(
        "congestion_control = \"cubic\"",
        "",
        "x.toml:9:1: missing key \"congestion_control\" in [[profile]]",
        "congestion_control = \"reno\"",
    );
    refused(
        "rtt = \"40ms\"",
        "rtt = \"40ms\"\nreorder = { probability = \"1%\" }",
        "x.toml:6:11: missing key \"advance\" in path.reorder",
        "rtt = \"40ms\"\nreorder = { probability = \"1%\", advance = \"1ms\" }",
    );
    refused(
        "rtt = \"40ms\"",
        "rtt = \"40ms\"\naqm = { target = \"5ms\" }",
        "x.toml:6:7: missing key \"kind\" in path.aqm",
        "rtt = \"40ms\"\naqm = { kind = \"codel\", target = \"5ms\" }",
    );
    assert_eq!(
        parse("name = \"a\"\ntitle = \"A\"").expect_err("a scenario without a path"),
        "x.toml:1:1: missing key \"path\" at the top level"
    );
    assert!(parse("name = \"a\"\ntitle = \"A\"\npath = { rate = \"1mbit\", rtt = \"40ms\" }").is_ok());
}

#[test]
fn a_value_of_the_wrong_type_is_answered_with_what_to_write() {
    let rtt = "rtt = \"40ms\"";
    refused(
        rtt,
        "rtt = 40",
        "x.toml:5:7: rtt is a number; write a time in quotes, such as \"80ms\"",
        "rtt = \"40 ms\"",
    );
    for (bad, answer, near) in [
        ("mtu = \"1500\"", "6:7: mtu is a text; write a whole number without quotes", "mtu = 1500"),
        ("ecn = 0", "6:7: ecn is a number; write true or false", "ecn = false"),
        (
            "overhead = 14",
            "6:12: overhead is a number; write a size in quotes, such as \"250kB\"",
            "overhead = \"14B\"",
        ),
        (
            "duplicate = 0.01",
            "6:13: duplicate is a number; write a probability in quotes, such as \"1.5%\"",
            "duplicate = \"0.01\"",
        ),
        (
            "queue = true",
            "6:9: queue is true or false; write a queue size in quotes, such as \"1bdp\"",
            "queue = \"1bdp\"",
        ),
        (
            "policer = \"20mbit\"",
            "6:11: policer is a text; write { rate = \"20mbit\", burst = \"100kB\" }",
            "policer = { rate = \"20mbit\", burst = \"100kB\" }",
        ),
        (
            "reorder = [1]",
            "6:11: reorder is a list; write { probability = \"1%\", advance = \"5ms\" }",
            "reorder = { probability = \"1%\", advance = \"5ms\" }",
        ),
        (
            "mean_burst = \"3\"",
            "6:14: mean_burst is a text; write a number of packets without quotes, such as 2.5",
            "mean_burst = 3",
        ),
        (
            "aqm = 1",
            "6:7: aqm is a number; write the name of one in quotes, such as \"fq-codel\", or { kind = \"fq-codel\", … }",
            "aqm = \"codel\"",
        ),
        ("aqm = { kind = 1 }", "6:16: kind is a number; write a text in quotes", "aqm = { kind = \"codel\" }"),
        ("mtu = 65536", "6:7: mtu = 65536: a whole number from 0 to 65535 is needed here", "mtu = 9000"),
        ("mtu = -1", "6:7: mtu = -1: a whole number from 0 to 65535 is needed here", "mtu = 0x5dc"),
        (
            "mean_burst = 1.0001",
            "6:14: mean_burst = 1.0001: a number of packets with at most three decimals, below 4294967, is needed here",
            "mean_burst = 1.001",
        ),
    ] {
        refused(rtt, &format!("{rtt}\n{bad}"), &format!("x.toml:{answer}"), &format!("{rtt}\n{near}"));
    }
    let run = "duration = \"15s\"";
    refused(
        run,
        "repeats = -1",
        "x.toml:16:11: repeats = -1: a whole number from 0 to 4294967295 is needed here",
        "repeats = 1",
    );
    refused(
        "title = \"A sound scenario\"",
        "title = 7",
        "x.toml:2:9: title is a number; write a text in quotes",
        "title = \"7\"",
    );
    refused("[[flow]]", "[flow]", "x.toml:7:1: flow is a table; write [[flow]] above it", "[[flow]]");
    refused("[run]", "[[run]]", "x.toml:15:1: run is a list; write [run]", "[run]");
    refused(
        "congestion_control = \"bbr\"",
        "congestion_control = \"bbr\"\nsysctl = { net.ipv4.tcp_sack = true }",
        "x.toml:15:21: net.ipv4.tcp_sack is true or false; write the value as a number or as text in quotes",
        "congestion_control = \"bbr\"\nsysctl = { net.ipv4.tcp_sack = 1 }",
    );
    refused(
        "congestion_control = \"bbr\"",
        "congestion_control = \"bbr\"\nsysctl = \"net.ipv4.tcp_sack = 1\"",
        "x.toml:15:10: sysctl is a text; write a table, such as { \"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\" }",
        "congestion_control = \"bbr\"\nsysctl = { \"net.ipv4.tcp_sack\" = \"1\" }",
    );
}

#[test]
fn a_wrong_unit_is_answered_with_the_right_ones() {
    refused(
        "rate = \"100mbit\"",
        "rate = \"100mbps\"",
        "x.toml:4:8: rate = \"100mbps\": the unit can be read in two ways; write mbit for bits per second or MB/s for \
         bytes per second",
        "rate = \"100Mbit/s\"",
    );
    refused(
        "rtt = \"40ms\"",
        "rtt = [\"40ms\", \"80\"]",
        "x.toml:5:16: rtt = \"80\": the unit is missing; write one of ns, us, ms, s, m, h",
        "rtt = [\"40ms\", \"80ms\"]",
    );
    refused(
        "loss = [\"0%\", \"1%\"]",
        "loss = [\"0%\", \"1%\", \"2\"]",
        "x.toml:6:21: loss = \"2\": a probability is at most 100% (a number without % is a fraction of 1)",
        "loss = [\"0%\", \"1%\", \"2%\"]",
    );
    refused(
        "rtt = \"40ms\"",
        "rtt = \"40ms\"\nqueue = \"165\"",
        "x.toml:6:9: queue = \"165\": the unit is missing; write one of bdp, packets, ms, s, B, kB, MB, KiB, MiB",
        "rtt = \"40ms\"\nqueue = \"165packets\"",
    );
    refused(
        "goodput = \"4mbit\"",
        "goodput = \"4Mb\"",
        "x.toml:20:11: goodput = \"4Mb\": the unit is not known; write one of bit, kbit, mbit, gbit, tbit (or MB/s, GB/s \
         for bytes)",
        "goodput = \"4Mbit\"",
    );
    refused(
        "label = \"bulk\"",
        "bytes = \"25mb\"",
        "x.toml:8:9: bytes = \"25mb\": the unit is not known; write one of B, kB, MB, GB, KiB, MiB, GiB",
        "bytes = \"25MB\"",
    );
}

#[test]
fn a_name_that_is_not_to_choose_from_is_answered_with_the_nearest() {
    refused(
        "rtt = \"40ms\"",
        "rtt = \"40ms\"\naqm = \"fqcodel\"",
        "x.toml:6:7: \"fqcodel\" is not an aqm; did you mean \"fq-codel\"?",
        "rtt = \"40ms\"\naqm = \"fq-codel\"",
    );
    refused(
        "label = \"bulk\"",
        "kind = \"rpc\"",
        "x.toml:8:8: \"rpc\" is not a kind of flow; known are \"bulk\", \"request-response\"",
        "kind = \"request-response\"",
    );
}

#[test]
fn text_that_is_not_toml_is_named_with_every_place() {
    assert_eq!(
        parse("name = \"a\n[path\nx = = 1\n").expect_err("no TOML"),
        "x.toml:1:10: invalid basic string, expected `\"`\nx.toml:2:6: unclosed table, expected `]`\nx.toml:3:5: extra \
         `=`\nx.toml:3:7: unexpected key or value, expected newline, `#`"
    );
    refused("rtt = \"40ms\"", "rtt = \"40ms\"\nrtt = \"50ms\"", "x.toml:6:1: duplicate key", "rtt = \"40ms\"");
}

#[test]
fn several_mistakes_are_told_at_once_in_the_order_of_the_file_and_a_flood_is_cut() {
    let text = with("[path]", "[path]\nmtu = \"x\"\nfoo = 1").replace("duration = \"15s\"", "duration = 15");
    assert_eq!(
        parse(&text).expect_err("three mistakes"),
        "x.toml:4:7: mtu is a text; write a whole number without quotes\nx.toml:5:1: unknown key \"foo\" in [path]; known \
         are \"rate\", \"rtt\", \"loss\", \"mean_burst\", \"queue\", \"mtu\", \"overhead\", \"jitter\", \"reorder\", \
         \"duplicate\", \"aqm\", \"ecn\", \"mark_above\", \"policer\", \"back\"\nx.toml:18:12: duration is a number; write a \
         time in quotes, such as \"80ms\""
    );
    let flood = format!("{SOUND}{}", "[[published]]\n".repeat(23));
    let answer = parse(&flood).expect_err("a flood");
    assert_eq!(answer.lines().count(), 21);
    assert_eq!(answer.lines().last(), Some("and 3 more problems"));
}

#[test]
fn a_misspelt_key_that_was_needed_is_told_once() {
    refused(
        "title = \"A sound scenario\"",
        "titel = \"A\"",
        "x.toml:2:1: unknown key \"titel\" at the top level; did you mean \"title\"?",
        "title = \"A\"",
    );
}

#[test]
fn columns_count_characters_and_long_or_odd_texts_stay_on_one_short_line() {
    refused(
        "rtt = \"40ms\"",
        "\"rtt\" = \"40ms\"\nback = { \"übel\" = 1, jitter = 1 }",
        "x.toml:6:10: unknown key \"übel\" in [path.back]; known are \"rate\", \"loss\", \"mean_burst\", \"queue\", \
         \"overhead\", \"jitter\", \"reorder\", \"duplicate\", \"aqm\", \"ecn\", \"mark_above\", \"policer\"\nx.toml:6:31: \
         jitter is a number; write a time in quotes, such as \"80ms\"",
        "\"rtt\" = \"40ms\"\nback = { jitter = \"1ms\" }",
    );
    let answer = parse(&with("rtt = \"40ms\"", &format!("rtt = \"a\\n{}\"", "b".repeat(1000)))).expect_err("no time");
    assert_eq!(answer, format!("x.toml:5:7: rtt = \"a\\n{}…\": it does not start with a number", "b".repeat(58)));
}

#[test]
fn rates_in_steps_and_traces_say_what_is_wrong_with_them() {
    let rate = "rate = \"100mbit\"";
    for (bad, answer, near) in [
        (
            "7",
            "4:8: rate is a number; write a rate in quotes, such as \"200mbit\", or { steps = [[\"0s\", \"100mbit\"], …] }, or { trace = \"file\" }",
            "\"7mbit\"",
        ),
        ("{}", "4:8: a rate needs steps or a trace", "\"unlimited\"\nqueue = \"100packets\""),
        (
            "{ steps = [[\"0s\", \"1mbit\"]], trace = \"x\" }",
            "4:8: a rate has either steps or a trace",
            "{ steps = [[\"0s\", \"1mbit\"]] }",
        ),
        (
            "{ steps = \"1mbit\" }",
            "4:18: steps is a text; write a list of pairs of time and rate, such as [[\"0s\", \"100mbit\"], [\"10s\", \"10mbit\"]]",
            "{ steps = [[\"0s\", \"1mbit\"], [\"1s\", \"2mbit\"]] }",
        ),
        (
            "{ steps = [[\"0s\", \"1mbit\", 3]] }",
            "4:19: a step is a pair of time and rate, such as [\"10s\", \"10mbit\"]",
            "{ steps = [[\"0s\", \"1mbit\"]] }",
        ),
        (
            "{ steps = [[\"0s\", \"1mbit\"], [\"1\", \"2mbit\"]] }",
            "4:37: steps = \"1\": the unit is missing; write one of ns, us, ms, s, m, h",
            "{ steps = [[\"0\", \"1mbit\"]] }",
        ),
        (
            "{ steps = [[\"1s\", \"1mbit\"]] }",
            "4:18: the first step of a rate is at \"0s\"",
            "{ steps = [[\"0s\", \"1mbit\"]] }",
        ),
        (
            "{ steps = [[\"0s\", \"1mbit\"], [\"5s\", \"2mbit\"], [\"5s\", \"3mbit\"]] }",
            "4:53: the step at 5 s follows one at 5 s; times rise",
            "{ steps = [[\"0s\", \"1mbit\"], [\"5s\", \"2mbit\"], [\"6s\", \"3mbit\"]] }",
        ),
        (
            "{ steps = [[\"0s\", \"1mbit\"], [\"5s\", \"0mbit\"]] }",
            "4:36: a rate of 0 lets nothing through",
            "{ steps = [[\"0s\", \"1mbit\"], [\"5s\", \"1bit\"]] }",
        ),
        ("{ trace = \"ramp.trace\" }", "4:18: trace = \"ramp.trace\": this scenario cannot read files", "\"1mbit\""),
    ] {
        refused(rate, &format!("rate = {bad}"), &format!("x.toml:{answer}"), &format!("rate = {near}"));
    }
}

#[test]
fn a_broken_trace_file_is_named_with_its_own_line() {
    let text = with("rate = \"100mbit\"", "rate = { trace = \"x.trace\" }");
    let parse = |trace: &'static str| {
        let files = move |name: &str| {
            if name == "x.trace" { Ok(trace.to_owned()) } else { Err("no such file".to_owned()) }
        };
        Scenario::parse(&text, "x.toml", &files).map_err(|error| error.to_string())
    };
    assert_eq!(parse("1\n2\nabc\n").expect_err("a broken trace"), "x.trace:3: \"abc\" is not a number of milliseconds");
    assert!(parse("1\n2\n3\n").is_ok());
    let elsewhere = text.replace("x.trace", "y.trace");
    let error = Scenario::parse(&elsewhere, "x.toml", &|_: &str| Err("no such file".to_owned())).expect_err("no file");
    assert_eq!(error.to_string(), "x.toml:4:18: trace = \"y.trace\": no such file");
}
