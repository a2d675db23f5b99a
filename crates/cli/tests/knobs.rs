//! `linerate knobs` as its user runs it.

use std::process::{Command, Output};

use serde_json::Value;

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate")).arg("knobs").args(words).env("NO_COLOR", "1").output().unwrap()
}

#[track_caller]
fn printed(words: &[&str]) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(words: &[&str], part: &str) {
    let output = run(words);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()), "{words:?}: {message}");
    assert!(message.contains(part), "{words:?} should say {part:?}: {message}");
}

#[test]
fn a_knob_is_found_by_key_path_and_last_part() {
    let entry = printed(&["net.ipv4.tcp_mem"]);
    assert!(entry.starts_with("net.ipv4.tcp_mem\n"), "{entry}");
    assert!(entry.contains("PAGES") && entry.contains("3 values, pages"), "{entry}");
    assert_eq!(printed(&["net/ipv4/tcp_mem"]), entry);
    assert_eq!(printed(&["tcp_mem"]), entry);
}

#[test]
fn a_key_of_an_interface_finds_its_pattern_and_the_right_spelling() {
    let entry = printed(&["net.ipv4.conf.eth0.100.rp_filter"]);
    assert!(entry.starts_with("net.ipv4.conf.eth0/100.rp_filter (net.ipv4.conf.*.rp_filter)\n"), "{entry}");
}

#[test]
fn parts_of_names_list_what_matches() {
    let list = printed(&["tcp_*mem"]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["net.ipv4.tcp_mem", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]);
    assert!(printed(&["net.core."]).lines().count() > 40);
}

#[test]
fn without_a_name_what_decides_performance_is_listed_and_all_on_demand() {
    let (main, all) = (printed(&[]), printed(&["--all"]));
    assert!(main.contains("net.ipv4.tcp_rmem") && !main.contains("vm.swappiness"));
    assert!(all.contains("vm.swappiness") && all.lines().count() > 800);
}

#[test]
fn a_misspelt_name_is_answered_with_the_nearest() {
    refused(&["net.core.rmem_defualt"], "did you mean net.core.rmem_default?");
    refused(&["net.ipv4.conf.eth0.rp_filtr"], "did you mean net.ipv4.conf.eth0.rp_filter?");
    refused(&["tcp_rmm"], "did you mean net.ipv4.tcp_rmem?");
    refused(&["banana\u{1b}[31m"], "--all");
    refused(&[""], "no knob");
}

#[test]
fn a_knob_the_kernel_does_not_have_is_said_to_be_missing() {
    assert!(printed(&["--kernel", "6.1", "tcp_plb_enabled"]).contains("Linux 6.1 does not have it"));
    assert!(!printed(&["--kernel", "6.2", "tcp_plb_enabled"]).contains("does not have it"));
    assert!(printed(&["tcp_tw_recycle"]).contains("kernels before 4.12"));
    refused(&["--kernel", "banana"], "banana");
}

#[test]
fn json_has_the_head_of_every_document_and_the_facts_with_their_units() {
    let document: Value = serde_json::from_str(&printed(&["--json", "--kernel", "6.12", "net.core.rmem_max"])).unwrap();
    assert_eq!(document["schema"], "linerate.knobs/1");
    for key in ["linerate_version", "kernel", "command_line", "started_at"] {
        assert!(!document[key].is_null(), "{key}");
    }
    let knob = &document["knobs"][0];
    assert_eq!(knob["name"], "net.core.rmem_max");
    assert_eq!((knob["unit"].as_str(), knob["default_for_kernel"].as_str()), (Some("bytes"), Some("212992")));
    assert_eq!(knob["exists"], true);
}
