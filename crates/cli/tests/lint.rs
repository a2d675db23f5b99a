//! `linerate lint` as its user runs it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn linerate(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate")).arg("lint").args(words).env("NO_COLOR", "1").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Its standard output, where it ended with `code`.
#[track_caller]
fn ended(words: &[&str], code: i32) -> String {
    let output = linerate(words);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{words:?}\n{out}\n{err}");
    out
}

fn guide(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guides").join(name).display().to_string()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn top(&self) -> String {
        self.0.path().display().to_string()
    }
}

const CLEAN: &str = "net.ipv4.tcp_mtu_probing = 1\n";

#[test]
fn a_pasted_list_starts_with_the_three_lines_that_matter_and_ends_with_a_summary() {
    let out = ended(&["--target", "ubuntu-26.04", &guide("bbrv3-and-tcp-stack")], 1);
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[0], "The lines that matter most:");
    assert!(
        lines[1].contains("20-tcp-tuning.conf:1") && lines[1].contains("error") && lines[1].contains("tcp_mem"),
        "{out}"
    );
    assert!(out.contains("20-tcp-tuning.conf:2") && out.contains("20-tcp-tuning.conf:3"), "{out}");
    assert!(out.contains("65536 131072 262144") && out.contains("1 GiB"), "{out}");
    assert!(out.contains("10 settings in 2 files: 1 error, 3 warnings, 7 notes."), "{out}");
    assert!(!out.contains('\u{1b}'), "colour without a terminal: {out}");
}

#[test]
fn exit_codes_tell_clean_findings_wrong_usage_and_unread_files_apart() {
    let folder = Folder::new();
    let clean = folder.write("90-clean.conf", CLEAN);
    let bad = folder.write("91-bad.conf", "net.ipv4.tcp_sack = 0\n");
    let note = folder.write("92-note.conf", "net.ipv4.tcp_window_scaling = 1\n");
    assert!(ended(&[&clean], 0).contains("nothing to say"));
    ended(&[&bad], 1);
    ended(&[&note], 0);
    ended(&["--fail-on", "note", &note], 1);
    ended(&["--target", "debain-13", &clean], 2);
    ended(&["--format", "toml", &clean], 2);
    ended(&[&folder.path("none.conf").display().to_string(), &clean], 4);
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_judged() {
    let folder = Folder::new();
    let bad = folder.write("91-bad.conf", "net.ipv4.tcp_sack = 0\n");
    let binary = folder.write("92-binary.conf", [0_u8, 1, 2, 3, 4, 5, 6, 7, 8]);
    let huge = folder.path("93-huge.conf");
    fs::File::create(&huge).unwrap().set_len(100 << 20).unwrap();
    let pipe = folder.path("94-pipe.conf");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let circle = folder.path("95-circle.conf");
    std::os::unix::fs::symlink("95-circle.conf", &circle).unwrap();
    fs::create_dir(folder.path("empty")).unwrap();
    let words: Vec<String> =
        [&huge, &pipe, &circle, &folder.path("empty")].iter().map(|p| p.display().to_string()).collect();
    let mut all: Vec<&str> = words.iter().map(String::as_str).collect();
    all.extend([bad.as_str(), binary.as_str()]);
    let output = linerate(&all);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(4), "{err}");
    for part in [
        "93-huge.conf: it is larger than 16 MiB",
        "94-pipe.conf: it is no regular file",
        "95-circle.conf: ",
        "empty: it is a folder without",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    assert!(out.contains("this is no text") && out.contains("tcp_sack"), "{out}");
    assert!(out.contains("4 files not read"), "{out}");
}

#[test]
fn standard_input_is_read_and_control_characters_do_not_reach_the_terminal() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["lint", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"net.\x1b]0;evil\x07x = 1\nnet.ipv4.tcp_sack = 0\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(out.contains("<stdin>") && out.contains("tcp_sack"), "{out}");
    assert!(!out.contains('\u{1b}') && !out.contains('\u{7}'), "{out:?}");
}

#[test]
fn json_has_what_the_schema_promises() {
    let folder = Folder::new();
    let bad = folder.write("91-bad.conf", "# ä\n net.ipv4.tcp_rmem = 4096 87380 67108864\n");
    let json: Value = serde_json::from_str(&ended(&["--json", "--target", "debian-13", &bad], 1)).unwrap();
    assert_eq!(json["schema"], "linerate.lint/1");
    for key in ["linerate_version", "kernel", "command_line", "started_at"] {
        assert!(!json[key].is_null(), "{key}");
    }
    let finding = &json["findings"][0];
    assert_eq!((&finding["rule"], &finding["severity"]), (&"LR071".into(), &"warning".into()));
    assert_eq!((&finding["line"], &finding["column"], &finding["end_column"]), (&2.into(), &27.into(), &32.into()));
    assert_eq!(finding["key"], "net.ipv4.tcp_rmem");
    assert_eq!(finding["file"], bad.as_str());
    assert_eq!(finding["fix"]["edits"][0]["text"], "131072");
    assert_eq!(json["summary"]["warnings"], 1);
    let clean: Value = serde_json::from_str(&ended(&["--json", &folder.write("c.conf", CLEAN)], 0)).unwrap();
    assert_eq!(clean["findings"].as_array().unwrap().len(), 0);
}

#[test]
fn sarif_names_rules_places_and_fixes() {
    let log: Value = serde_json::from_str(&ended(&["--sarif", &guide("bbrv3-loss-and-fairness")], 1)).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() > 8);
    for result in results {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        let place = &result["locations"][0]["physicalLocation"];
        assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
        assert!(place["artifactLocation"]["uri"].as_str().unwrap().ends_with("99-bbrv3.conf"));
    }
    let lowered = results.iter().find(|r| r["ruleId"] == "LR071").unwrap();
    assert_eq!(lowered["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"], "131072");
}

#[test]
fn fix_writes_to_standard_output_or_a_file_and_in_place_only_when_asked() {
    let folder = Folder::new();
    let before = "net.core.default_qdisc = fq_codel # why\nnet.ipv4.tcp_tw_recycle = 1\n";
    let after = "# why\nnet.core.default_qdisc = fq_codel\n";
    let file = folder.write("91-bad.conf", before);
    assert_eq!(ended(&["--fix", &file], 0), after);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let other = folder.path("out.conf").display().to_string();
    assert_eq!(ended(&["--fix", "--output", &other, &file], 0), "");
    assert_eq!(fs::read_to_string(&other).unwrap(), after);
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    ended(&["--in-place", &file], 2);
    ended(&["--fix", &file, &other], 2);
    std::os::unix::fs::symlink("91-bad.conf", folder.path("link.conf")).unwrap();
    ended(&["--fix", "--in-place", &folder.path("link.conf").display().to_string()], 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
    assert!(folder.path("link.conf").is_symlink());
}

#[test]
fn a_suppression_needs_a_reason_and_is_counted() {
    let folder = Folder::new();
    let with = folder.write("a.conf", "# linerate: allow cripples-tcp test rig without loss\nnet.ipv4.tcp_sack = 0\n");
    assert!(ended(&[&with], 0).contains("1 suppressed"));
    let without = folder.write("b.conf", "# linerate: allow LR066\nnet.ipv4.tcp_sack = 0\n");
    let out = ended(&[&without], 1);
    assert!(out.contains("LR066") && out.contains("LR090"), "{out}");
}

#[test]
fn a_rule_is_explained_by_number_or_name_and_a_slip_is_answered() {
    let out = ended(&["--explain", "LR062"], 0);
    assert!(out.contains("caps-tcp-memory") && out.contains("Breaks it:") && out.contains("Is fine:"), "{out}");
    assert_eq!(ended(&["--explain", "caps-tcp-memory"], 0), out);
    let output = linerate(&["--explain", "overriden"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("LR012 overridden"));
}

#[test]
fn effective_names_winners_losers_and_what_sysctl_system_would_change() {
    let folder = Folder::new();
    folder.write("etc/os-release", "ID=debian\nVERSION_ID=\"13\"\n");
    folder.write("usr/lib/sysctl.d/50-default.conf", "net.core.somaxconn = 1\nnet.ipv4.conf.*.rp_filter = 2\n");
    folder.write("etc/sysctl.d/90-a.conf", "net.core.somaxconn = 2\n");
    folder.write("etc/sysctl.conf", "net.core.somaxconn = 3\n");
    folder.write("etc/ufw/ufw.conf", "ENABLED=yes\n");
    folder.write("etc/ufw/sysctl.conf", "net/ipv4/conf/all/rp_filter=1\n");
    let out = ended(&["--effective", "--root", &folder.top(), "net/core/somaxconn"], 0);
    assert_eq!(
        out,
        "net.core.somaxconn = 2\n    at boot, systemd-sysctl: /etc/sysctl.d/90-a.conf:1\n    \
         loses: 1 in /usr/lib/sysctl.d/50-default.conf:1 (a later line wins)\n    \
         but 3 after `sysctl --system`: /etc/sysctl.conf:1\n"
    );
    let out = ended(&["--effective", "--root", &folder.top()], 0);
    assert!(out.contains("net.ipv4.conf.all.rp_filter = 1\n    at boot, ufw: /etc/ufw/sysctl.conf:1"), "{out}");
    assert!(out.contains("by the pattern net.ipv4.conf.*.rp_filter"), "{out}");
    let json: Value =
        serde_json::from_str(&ended(&["--effective", "--json", "--root", &folder.top(), "net.core.somaxconn"], 0))
            .unwrap();
    assert_eq!(json["keys"][0]["at_boot"]["by"], "systemd-sysctl");
    assert_eq!(json["keys"][0]["sysctl_system"]["value"], "3");
    assert!(ended(&["--effective", "--root", &folder.top(), "net.core.rmem_max"], 0).contains("no file sets it\n"));
    assert_eq!(json["keys"][0]["now"], Value::Null, "another system's values are not known");
    // The last part of a name is enough, and a name that means nothing is said to.
    assert!(ended(&["--effective", "--root", &folder.top(), "somaxconn"], 0).starts_with("net.core.somaxconn = 2\n"));
    let unknown = ended(&["--effective", "--root", &folder.top(), "net.core.banana"], 0);
    assert!(unknown.contains("no file sets it, and this version knows no such key"), "{unknown}");
}

#[test]
fn effective_shows_the_live_value_beside_the_winner_on_this_host() {
    let now = host::sysctl::read("net.core.somaxconn").unwrap();
    let out = ended(&["--effective", "net.core.somaxconn"], 0);
    // Whether some file of this machine sets it is not this test's matter.
    let all = [
        format!("net.core.somaxconn = {now}\n"),
        format!("    now: {now}\n"),
        format!("no file sets it; now it is {now}\n"),
    ];
    assert!(all.iter().any(|expected| out.contains(expected.as_str())), "{out}");
    assert!(!out.starts_with(&all[0]) || out.contains("    now: the same\n"), "{out}");
    let json: Value = serde_json::from_str(&ended(&["--effective", "--json"], 0)).unwrap();
    for key in json["keys"].as_array().unwrap() {
        let name = key["key"].as_str().unwrap();
        assert_eq!(key["now"].as_str().map(str::to_owned), host::sysctl::read(name).ok(), "{name}");
    }
}

#[test]
fn in_a_tree_with_tuned_the_one_that_loses_to_it_is_named() {
    let folder = Folder::new();
    folder.write("etc/sysctl.d/90-a.conf", "net.core.somaxconn = 8192\n");
    folder.write("etc/tuned/active_profile", "mine\n");
    folder.write("etc/tuned/mine/tuned.conf", "[main]\nsummary=x\n[sysctl]\nnet.core.somaxconn=16384\n");
    // tuned applies /etc's files once more by default: they win, and its own line is for nothing.
    let out = ended(&["--root", &folder.top()], 1);
    assert!(out.contains("tuned.conf:4:1") && out.contains("tuned (reapply_sysctl) sets it to `8192`"), "{out}");
    folder.write("etc/tuned/tuned-main.conf", "reapply_sysctl = 0\n");
    let out = ended(&["--root", &folder.top()], 1);
    assert!(out.contains("90-a.conf:1:1") && out.contains("at boot tuned sets it to `16384` behind this"), "{out}");
    // tuned's line that only raises leaves a larger value alone.
    folder.write("etc/tuned/mine/tuned.conf", "[main]\nsummary=x\n[sysctl]\nnet.core.somaxconn=>4096\n");
    ended(&["--root", &folder.top()], 0);
}

#[test]
fn a_tree_is_judged_with_its_own_distribution_and_modules() {
    let folder = Folder::new();
    folder.write("etc/os-release", "ID=debian\nVERSION_ID=\"13\"\n");
    folder.write("etc/sysctl.conf", CLEAN);
    folder.write("etc/sysctl.d/91-ct.conf", "net.netfilter.nf_conntrack_tcp_loose = 0\n");
    let out = ended(&["--root", &folder.top()], 1);
    assert!(out.contains("Debian 13 does not read /etc/sysctl.conf"), "{out}");
    assert!(out.contains("needs-module"), "{out}");
    folder.write("etc/modules-load.d/ct.conf", "nf_conntrack\n");
    std::os::unix::fs::symlink("../sysctl.conf", folder.path("etc/sysctl.d/99-sysctl.conf")).unwrap();
    ended(&["--root", &folder.top()], 0);
}

#[test]
fn the_table_of_rules_in_the_documentation_is_current() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lint.md")).unwrap();
    let table = ended(&["--rules"], 0);
    assert!(page.contains(&table), "docs/lint.md: put the output of `linerate lint --rules` between the marks");
}

#[test]
fn bytes_that_are_no_text_are_shown_without_cutting_a_character() {
    let folder = Folder::new();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..40 {
        let mut next = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
        };
        // Without zero bytes, which alone make a file binary, and all of it in two-byte characters at first.
        let bytes: Vec<u8> = std::iter::once(0xc1).chain((0..800).map(|_| next().max(1))).collect();
        let file = folder.write(&format!("{round}.conf"), bytes);
        let output = linerate(&[&file]);
        assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{file}: {}", text(&output.stderr));
    }
}
