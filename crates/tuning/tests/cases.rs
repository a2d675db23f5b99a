//! Cases from people who tune servers. Each has a near miss that must stay silent.

use std::collections::BTreeSet;

use tuning::files::Document;
use tuning::lint::{self, Finding, Later, Severity, Surroundings, Target};
use tuning::{Catalogue, KernelVersion};

struct Judged {
    documents: Vec<Document>,
    findings: Vec<Finding>,
}

fn judge_with(files: &[(&str, &str)], target: &str, surroundings: &Surroundings) -> Judged {
    let documents: Vec<_> = files.iter().map(|(name, text)| Document::parse(name, text.as_bytes(), None)).collect();
    let target = Target::parse(target, KernelVersion::new(6, 12)).unwrap();
    let report = lint::lint(&documents, &target, surroundings, Catalogue::builtin());
    Judged { documents, findings: report.findings }
}

fn judge(name: &str, text: &str, target: &str) -> Judged {
    judge_with(&[(name, text)], target, &Surroundings::default())
}

fn conf(text: &str) -> Judged {
    judge("/etc/sysctl.d/90-x.conf", text, "")
}

impl Judged {
    /// `line rule severity` of all findings of at least a severity.
    fn at_least(&self, severity: Severity) -> Vec<String> {
        let mut lines: Vec<_> = self.findings.iter().filter(|f| f.severity >= severity).collect();
        lines.sort_by_key(|f| (f.document, f.span));
        lines
            .into_iter()
            .map(|f| format!("{} {} {}", self.documents[f.document].position(f.span).line, f.rule.name, f.severity))
            .collect()
    }

    fn serious(&self) -> Vec<String> {
        self.at_least(Severity::Warning)
    }

    fn message(&self, rule: &str) -> String {
        let finding = self
            .findings
            .iter()
            .find(|f| f.rule.name == rule)
            .unwrap_or_else(|| panic!("no {rule}: {:?}", self.serious()));
        format!("{} | {}", finding.message, finding.help.clone().unwrap_or_default())
    }

    #[track_caller]
    fn silent(&self) {
        assert_eq!(
            self.serious(),
            Vec::<String>::new(),
            "{:#?}",
            self.findings.iter().map(|f| &f.message).collect::<Vec<_>>()
        );
    }
}

#[test]
fn case_1_quotes_are_a_part_of_the_value_in_a_settings_file_and_syntax_elsewhere() {
    let quoted = "net.ipv4.tcp_rmem = \"4096 131072 67108864\"\n";
    assert_eq!(conf(quoted).serious(), ["1 quoted-value error"]);
    conf(&quoted.replace('"', "")).silent();
    judge("tuned.conf", &format!("[main]\nsummary=x\n[sysctl]\n{quoted}"), "").silent();
    judge("x.sh", "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 67108864\"\n", "").silent();
}

#[test]
fn case_2_a_comment_behind_a_name_is_an_error_and_behind_a_number_a_warning() {
    let text = conf("net.core.default_qdisc = fq    # pacing\nnet.ipv4.tcp_mtu_probing = 1 # y\n");
    assert_eq!(text.serious(), ["1 comment-behind-value error", "2 comment-behind-value warning"]);
    assert!(text.message("comment-behind-value").contains("ENOENT"));
    conf("# pacing\nnet.core.default_qdisc = fq\nnet.ipv4.tcp_mtu_probing = 1\n").silent();
}

#[test]
fn case_3_a_command_is_no_line_of_a_settings_file() {
    assert_eq!(conf("sysctl -w net.core.rmem_max=8388608\n").serious(), ["1 command-in-file error"]);
    judge("x.sh", "sysctl -w net.core.rmem_max=8388608\n", "").silent();
}

#[test]
fn case_4_a_line_without_an_equals_sign_is_named_and_the_next_is_judged() {
    let text = conf("net.ipv4.tcp_mtu_probing 1\nnet.ipv4.tcp_sack = 0\n");
    assert_eq!(text.serious(), ["1 not-a-setting error", "2 cripples-tcp error"]);
    conf("-net.ipv4.conf.eth0.rp_filter\nnet.ipv4.tcp_mtu_probing = 1\n").silent();
}

#[test]
fn case_5_busybox_stops_at_the_first_line_that_fails() {
    let text = "net.ipv4.tcp_tw_recycle = 1\nnet.ipv4.tcp_mtu_probing = 1\n";
    assert!(judge("sysctl.conf", text, "busybox").message("busybox-stops").contains("the 1 settings behind it"));
    assert_eq!(judge("sysctl.conf", text, "").serious(), ["1 removed-key error"]);
    judge("sysctl.conf", "net.ipv4.tcp_mtu_probing = 1\n", "busybox").silent();
}

#[test]
fn case_6_base_names_decide_over_all_directories_and_letters_come_behind_digits() {
    let line = |value: u8| format!("net.ipv4.tcp_mtu_probing = {value}\n");
    let late = judge_with(
        &[("/etc/sysctl.d/99-x.conf", &line(1)), ("/usr/lib/sysctl.d/local.conf", &line(2))],
        "",
        &Surroundings::default(),
    );
    assert_eq!(late.serious(), ["1 overridden warning"]);
    assert!(late.message("overridden").contains("/usr/lib/sysctl.d/local.conf:1 sets it to `2` and wins"));
    // Two folders of somebody's own are two systems.
    judge_with(&[("a/99-x.conf", &line(1)), ("b/local.conf", &line(2))], "", &Surroundings::default()).silent();
}

#[test]
fn case_7_tuned_has_a_later_word_than_the_files_and_each_applier_its_winner() {
    let file = ("/etc/sysctl.d/90-x.conf", "net.core.somaxconn = 8192\n");
    let tuned = ("/etc/tuned/mine/tuned.conf", "[main]\nsummary=x\n[sysctl]\nnet.core.somaxconn=16384\n");
    let later = |by, value: &str, file: &str, line| Surroundings {
        later: vec![Later { key: "net/core/somaxconn".into(), value: value.into(), by, file: file.into(), line }],
        ..Surroundings::default()
    };
    // The profile comes behind the files.
    let profile = judge_with(&[file, tuned], "", &later("tuned", "16384", tuned.0, 4));
    assert_eq!(profile.serious(), ["1 overridden warning"]);
    let message = profile.message("overridden");
    assert!(
        message.starts_with("at boot tuned sets it to `16384` behind this and wins: /etc/tuned/mine/tuned.conf:4"),
        "{message}"
    );
    // Where it applies the files once more, they win over its own profile.
    let again = judge_with(&[file, tuned], "", &later("tuned (reapply_sysctl)", "8192", file.0, 1));
    assert_eq!(again.serious(), ["4 overridden warning"]);
    // Both say the same, tuned sets another key, or there is no tuned.
    judge_with(&[file, (tuned.0, "[sysctl]\nnet.core.somaxconn=8192\n")], "", &later("tuned", "8192", tuned.0, 2))
        .silent();
    let mut other = later("tuned", "1", tuned.0, 4);
    other.later[0].key = "net/core/optmem_max".into();
    judge_with(&[file], "", &other).silent();
    judge_with(&[file], "", &Surroundings::default()).silent();
}

#[test]
fn case_8_debian_13_and_ubuntu_26_04_do_not_read_the_old_file() {
    let text = "net.ipv4.tcp_mtu_probing = 1\n";
    for target in ["debian-13", "ubuntu-26.04"] {
        let judged = judge("/etc/sysctl.conf", text, target);
        assert_eq!(judged.serious(), ["1 sysctl-conf-not-read error"], "{target}");
        assert!(judged.message("sysctl-conf-not-read").contains("/etc/sysctl.d/90-local.conf"));
    }
    for target in ["debian-12", "ubuntu-24.04", "fedora"] {
        judge("/etc/sysctl.conf", text, target).silent();
    }
    judge("/etc/sysctl.d/90-x.conf", text, "debian-13").silent();
    judge("/etc/ufw/sysctl.conf", text, "debian-13").silent();
}

#[test]
fn case_9_conntrack_needs_its_module_before_sysctls_are_applied() {
    let files = [("/etc/sysctl.d/91-conntrack.conf", "net.netfilter.nf_conntrack_tcp_loose = 0\n")];
    let with = |modules: &[&str]| Surroundings {
        modules: Some(modules.iter().map(|m| (*m).to_owned()).collect::<BTreeSet<_>>()),
        ..Surroundings::default()
    };
    let without = judge_with(&files, "", &with(&[]));
    assert_eq!(without.serious(), ["1 needs-module warning"]);
    assert!(without.message("needs-module").contains("/etc/modules-load.d/nf_conntrack.conf"));
    judge_with(&files, "", &with(&["nf_conntrack"])).silent();
}

#[test]
fn case_10_tw_recycle_is_gone_and_harmful_where_it_is_not() {
    for value in ["0", "1"] {
        let judged = conf(&format!("net.ipv4.tcp_tw_recycle = {value}\n"));
        assert_eq!(judged.serious(), ["1 removed-key error"]);
        assert!(judged.message("removed-key").contains("cannot stat"));
        assert!(judged.message("removed-key").contains("NAT"));
    }
    let old = |value: &str| judge("x.conf", &format!("net.ipv4.tcp_tw_recycle = {value}\n"), "kernel=4.9");
    assert_eq!(old("1").serious(), ["1 breaks-clients-behind-nat error"]);
    old("0").silent();
}

#[test]
fn case_11_congestion_controls_that_a_kernel_does_not_have_are_named() {
    for name in ["bbrplus", "bbr2", "bbr3", "tsunami", "nanqinlang"] {
        let judged = conf(&format!("net.ipv4.tcp_congestion_control = {name}\n"));
        assert_eq!(judged.serious(), ["1 no-such-congestion-control error"]);
        assert!(judged.message("no-such-congestion-control").contains("no mainline kernel"));
    }
    let bbr = "net.ipv4.tcp_congestion_control = bbr\n";
    let without = judge("x.conf", bbr, "congestion-controls=reno+cubic");
    assert!(without.message("no-such-congestion-control").contains("it has reno, cubic"));
    conf(bbr).silent();
    judge("x.conf", &bbr.replace("bbr", "bbrplus"), "congestion-controls=cubic+bbrplus").silent();
}

#[test]
fn case_12_bbr_with_fq_codel_is_fine() {
    let judged = conf("net.core.default_qdisc = fq_codel\nnet.ipv4.tcp_congestion_control = bbr\n");
    assert_eq!(judged.at_least(Severity::Note), ["2 bbr-is-version-1 note"]);
}

#[test]
fn case_13_a_container_cannot_set_what_belongs_to_the_host() {
    let text = "net.core.rmem_max = 8388608\n";
    assert_eq!(judge("x.conf", text, "container").serious(), ["1 host-only-key error"]);
    judge("x.conf", text, "").silent();
    judge("x.conf", "net.core.somaxconn = 8192\n", "container").silent();
}

#[test]
fn case_14_tcp_mem_is_pages_and_is_shown_in_bytes() {
    let large = conf("net.ipv4.tcp_mem = 94500000 915000000 927000000\n");
    assert_eq!(large.serious(), ["1 wrong-unit error"]);
    assert!(large.message("wrong-unit").contains("3.45 TiB"));
    let small = judge("x.conf", "net.ipv4.tcp_mem = 65536 131072 262144\n", "memory=64GiB");
    assert_eq!(small.serious(), ["1 caps-tcp-memory error"]);
    let message = small.message("caps-tcp-memory");
    assert!(message.contains("1 GiB") && message.contains("6 GiB of its 64 GiB"), "{message}");
    let rmem = conf("net.ipv4.tcp_mem = 4096 87380 6291456\n");
    assert!(rmem.message("wrong-unit").contains("16 MiB"));
    // About what the kernel gives a host of 64 GiB by itself.
    judge("x.conf", "net.ipv4.tcp_mem = 786432 1048576 1572864\n", "memory=64GiB").silent();
}

#[test]
fn case_15_buffers_beyond_31_bits_are_refused_by_the_kernel() {
    let judged = conf("net.ipv4.tcp_rmem = 4096 131072 4294967296\nnet.ipv4.tcp_wmem = 4096 16384 2147483648\n");
    assert_eq!(judged.serious(), ["1 out-of-range error", "2 out-of-range error"]);
    assert!(judged.message("out-of-range").contains("has changed the values before it"));
    conf("net.ipv4.tcp_rmem = 4096 131072 268435456\n").silent();
}

#[test]
fn case_16_reuse_without_timestamps_is_a_contradiction() {
    let judged = conf("net.ipv4.tcp_timestamps = 0\nnet.ipv4.tcp_tw_reuse = 1\n");
    assert_eq!(judged.serious(), ["1 cripples-tcp warning", "2 reuse-without-timestamps error"]);
    conf("net.ipv4.tcp_timestamps = 1\nnet.ipv4.tcp_tw_reuse = 1\n").silent();
}

#[test]
fn case_17_of_two_lines_both_are_named_and_the_winner() {
    let judged = conf("net.ipv4.tcp_mtu_probing = 1\n\nnet/ipv4/tcp_mtu_probing = 2\n");
    assert_eq!(judged.serious(), ["1 overridden warning"]);
    let message = judged.message("overridden");
    assert!(message.contains("line 3 sets it to `2` and wins"), "{message}");
    assert!(message.contains("systemd-sysctl applies only the last, procps both"), "{message}");
    let same = conf("net.ipv4.tcp_mtu_probing = 1\nnet.ipv4.tcp_mtu_probing=1\n");
    assert_eq!(same.at_least(Severity::Note), ["1 repeated note"]);
}

#[test]
fn case_18_a_slip_gets_the_near_name_and_a_new_key_is_only_not_known() {
    let judged = conf(
        "net.core.rmem_defualt = 262144\nnet.ipv4_timestamps = 1\nnet.ipv4.tcp_brand_new_thing_of_kernel_eight = 1\n",
    );
    assert!(judged.message("misspelt-key").contains("net.core.rmem_default"));
    assert!(judged.message("unknown-key").contains("not known to this version"));
    assert_eq!(judged.serious(), ["1 misspelt-key error", "2 misspelt-key error"]);
    conf("net.core.rmem_default = 262144\n").silent();
}

#[test]
fn case_19_what_an_appending_script_leaves_behind_is_a_contradiction() {
    let script = "echo 'net.ipv4.tcp_mtu_probing = 1' >> /etc/sysctl.conf\necho 'net.ipv4.tcp_mtu_probing = 2' >> /etc/sysctl.conf\n";
    assert_eq!(judge("x.sh", script, "").serious(), ["1 overridden warning"]);
    let other = script.replacen("/etc/sysctl.conf", "/etc/sysctl.d/1.conf", 1);
    judge("x.sh", &other, "").silent();
}

#[test]
fn case_20_what_real_files_have_is_read() {
    let text = "\u{feff}# windows\r\n\tnet.ipv4.tcp_rmem =\t4096\t131072\t67108864  \r\n   net.ipv4.tcp_mtu_probing=1   \r\n; x\r\nnet.ipv4.tcp_slow_start_after_idle = 0";
    let judged = conf(text);
    assert_eq!(judged.documents[0].settings.len(), 3);
    assert_eq!(judged.serious(), ["1 hidden-character error"]);
    conf(&text.replace('\u{feff}', "")).silent();
    assert_eq!(
        conf("net.ipv4.tcp_mtu_probing = 1; net.ipv4.tcp_slow_start_after_idle = 0\n").serious(),
        ["1 several-on-one-line error"]
    );
    let block = "net.ipv4.tcp_mtu_probing = 1\nnet.ipv4.tcp_slow_start_after_idle = 0\nnet.ipv4.tcp_retries2 = 10\nnet.core.somaxconn = 8192\n\
        net.ipv4.tcp_max_syn_backlog = 8192\nnet.ipv4.tcp_syn_retries = 4\nnet.ipv6.conf.all.forwarding = 1\n";
    let twice = conf(&format!("{block}{block}"));
    assert_eq!(twice.findings.iter().filter(|f| f.rule.name == "repeated").count(), 1);
    assert!(twice.message("repeated").starts_with("7 settings of this file stand in it twice"));
    let tuned = judge(
        "tuned.conf",
        "[main]\nsummary=x\n[sysctl]\nnet.core.rmem_max=>8388608\nnet.core.wmem_max=>8388608\n",
        "",
    );
    tuned.silent();
    assert!(tuned.documents[0].settings.iter().all(|s| s.only_raises));
}

#[test]
fn a_setting_that_another_overrides_is_not_judged_for_its_value() {
    let judged = conf("net.ipv4.tcp_mem = 65536 131072 262144\nnet.ipv4.tcp_mem = 786432 1048576 157286400\n");
    assert_eq!(judged.serious(), ["1 overridden warning", "2 exhausts-memory warning"]);
}

#[test]
fn every_key_of_the_catalogue_is_known_and_never_a_slip() {
    let mut text = String::new();
    for knob in Catalogue::builtin().knobs() {
        text += &format!("{} = 1\n", knob.name.replacen('*', "all", 1));
    }
    let judged = conf(&text);
    let wrong: Vec<_> = judged
        .findings
        .iter()
        .filter(|f| matches!(f.rule.name, "unknown-key" | "misspelt-key" | "interface-dots"))
        .map(|f| &f.message)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(judged.documents[0].settings.len() > 500);
}
