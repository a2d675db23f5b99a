//! Every rule on its own example, and its near miss.

use tuning::files::Document;
use tuning::lint::{self, Finding, Report, Surroundings, Target, fix};
use tuning::{Catalogue, KernelVersion};

fn judge(name: &str, bytes: &[u8], target: &str) -> (Document, Report) {
    let document = Document::parse(name, bytes, None);
    let target = Target::parse(target, KernelVersion::new(6, 12)).unwrap();
    let report = lint::lint(std::slice::from_ref(&document), &target, &Surroundings::default(), Catalogue::builtin());
    (document, report)
}

fn told(report: &Report) -> Vec<String> {
    report.findings.iter().map(|f| format!("{} {}: {}", f.rule.id, f.severity, f.message)).collect()
}

fn breaks(report: &Report, id: &str) -> bool {
    report.findings.iter().any(|f| f.rule.id == id)
}

/// Rules whose example is no UTF-8 text of a few lines; they have tests of their own below.
const BY_BYTES: [&str; 2] = ["LR014", "LR018"];

#[test]
fn every_rule_finds_its_example_and_is_silent_on_the_near_miss() {
    let mut seen = 0;
    for rule in lint::all().filter(|rule| !BY_BYTES.contains(&rule.id)) {
        let example = &rule.example;
        let (_, bad) = judge(example.file, example.bad.as_bytes(), example.target);
        assert!(breaks(&bad, rule.id), "{} {} is not found; found: {:#?}", rule.id, rule.name, told(&bad));
        let (_, good) = judge(example.file, example.good.as_bytes(), example.target);
        assert!(!breaks(&good, rule.id), "{} {} is found in the near miss: {:#?}", rule.id, rule.name, told(&good));
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn other_encodings_and_endless_lines_are_found_by_their_bytes() {
    let good = "# grüße\nnet.ipv4.tcp_mtu_probing = 1\n";
    let latin: Vec<u8> = good.chars().map(|c| c as u8).collect();
    assert!(breaks(&judge("x.conf", &latin, "").1, "LR014"));
    assert!(told(&judge("x.conf", good.as_bytes(), "").1).is_empty());
    let long = format!("# {}\n{good}", "x".repeat(2 << 20));
    assert!(breaks(&judge("x.conf", long.as_bytes(), "").1, "LR018"));
    let short = format!("# {}\n{good}", "x".repeat(1 << 10));
    assert!(told(&judge("x.conf", short.as_bytes(), "").1).is_empty());
}

#[test]
fn numbers_and_names_of_rules_are_unique_and_texts_are_whole() {
    let rules: Vec<_> = lint::all().collect();
    for pair in rules.windows(2) {
        assert!(pair[0].id < pair[1].id, "{} {}", pair[0].id, pair[1].id);
    }
    let mut names: Vec<_> = rules.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rules.len());
    for rule in rules {
        assert!(rule.why.ends_with('.'), "{}", rule.id);
        assert!(!rule.summary.ends_with('.'), "{}", rule.id);
        assert_eq!(lint::find(rule.name).map(|r| r.id), Some(rule.id));
        assert_eq!(lint::find(&rule.id.to_lowercase()).map(|r| r.id), Some(rule.id));
    }
}

/// Fixes until nothing changes any more.
fn fixed(name: &str, text: &str, target: &str) -> (String, Report) {
    let mut text = text.to_owned();
    for _ in 0..10 {
        let (document, report) = judge(name, text.as_bytes(), target);
        let (next, count) = fix::apply(&document, 0, &report.findings);
        if count == 0 {
            return (text, report);
        }
        assert_ne!(next, text, "a fix changes nothing: {:#?}", told(&report));
        text = next;
    }
    panic!("fixes do not come to an end: {text}");
}

#[test]
fn fixes_come_to_an_end_and_take_their_finding_with_them() {
    for rule in lint::all().filter(|rule| !BY_BYTES.contains(&rule.id)) {
        let example = &rule.example;
        let (_, before) = judge(example.file, example.bad.as_bytes(), example.target);
        let has_fix = before.findings.iter().any(|f| f.rule.id == rule.id && f.fix.is_some());
        let (text, after) = fixed(example.file, example.bad, example.target);
        if has_fix {
            assert!(!breaks(&after, rule.id), "{} stays: {text}\n{:#?}", rule.id, told(&after));
        }
        let _: Vec<&Finding> = after.findings.iter().collect();
    }
}

#[test]
fn a_fixed_file_says_what_was_meant() {
    for (bad, good) in [
        ("net.core.default_qdisc = fq_codel # why\n", "# why\nnet.core.default_qdisc = fq_codel\n"),
        ("net.ipv4.tcp_rmem = \"4096 87380 67108864\"\n", "net.ipv4.tcp_rmem = 4096 131072 67108864\n"),
        ("sysctl -w net.ipv4.tcp_mtu_probing=1\n", "net.ipv4.tcp_mtu_probing = 1\n"),
        ("net.core.rmem_defualt = 1048576\n", "net.core.rmem_default = 1048576\n"),
        ("net.ipv4.tcp_tw_recycle = 1\r\nnet.ipv4.tcp_mtu_probing = 1\r\n", "net.ipv4.tcp_mtu_probing = 1\r\n"),
        ("net.ipv4.tcp_mtu_probing 1\n", "net.ipv4.tcp_mtu_probing = 1\n"),
        ("a.b\u{200b}\nnet.ipv4.tcp_mtu_probing = 1\n", "a.b\u{200b}\nnet.ipv4.tcp_mtu_probing = 1\n"),
        ("net.core.optmem_max = 1M\n", "net.core.optmem_max = 1048576\n"),
    ] {
        assert_eq!(fixed("sysctl.d/60-net.conf", bad, "kernel=6.12").0, good);
    }
}
