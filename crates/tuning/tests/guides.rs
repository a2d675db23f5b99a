//! The configurations of four public guides, and what an expert would say about each line.

use std::path::Path;

use tuning::files::Document;
use tuning::lint::{self, Surroundings, Target};
use tuning::{Catalogue, KernelVersion};

/// `file:line rule severity` of every finding on a guide's files, by file and line.
fn verdicts(guide: &str, target: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guides").join(guide);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |file: &Path| format!("etc/sysctl.d/{}", file.file_name().unwrap().to_string_lossy());
    let documents: Vec<_> =
        files.iter().map(|file| Document::parse(&name(file), &std::fs::read(file).unwrap(), None)).collect();
    let target = Target::parse(target, KernelVersion::new(6, 12)).unwrap();
    let report = lint::lint(&documents, &target, &Surroundings::default(), Catalogue::builtin());
    let mut lines: Vec<_> = report
        .findings
        .iter()
        .map(|f| {
            let document = &documents[f.document];
            let base = document.name.rsplit('/').next().unwrap();
            (
                f.document,
                document.position(f.span).line,
                f.rule.id,
                format!("{base}:{} {} {}", document.position(f.span).line, f.rule.name, f.severity),
            )
        })
        .collect();
    lines.sort();
    lines.into_iter().map(|line| line.3).collect()
}

#[test]
fn bbrv3_and_the_tcp_stack_caps_memory_and_raises_one_direction_only() {
    assert_eq!(
        verdicts("bbrv3-and-tcp-stack", "ubuntu-26.04"),
        [
            "10-bbr.conf:1 early-name warning",
            "10-bbr.conf:2 bbr-is-version-1 note",
            "20-tcp-tuning.conf:1 caps-tcp-memory error",
            "20-tcp-tuning.conf:2 one-sided-buffers warning",
            "20-tcp-tuning.conf:2 does-not-bound-autotuning note",
            "20-tcp-tuning.conf:3 lowers-the-start warning",
            "20-tcp-tuning.conf:4 raises-the-start note",
            "20-tcp-tuning.conf:5 copied-value note",
            "20-tcp-tuning.conf:6 default-value note",
            "20-tcp-tuning.conf:7 default-value note",
            "20-tcp-tuning.conf:8 needs-the-program note",
        ]
    );
}

#[test]
fn cellular_networks_lowers_the_start_of_every_receive_buffer() {
    assert_eq!(
        verdicts("cellular", "ubuntu-24.04"),
        [
            "99-bbr-tuning.conf:1 fq-is-a-choice note",
            "99-bbr-tuning.conf:2 bbr-is-version-1 note",
            "99-bbr-tuning.conf:3 lowers-the-start warning",
            "99-bbr-tuning.conf:4 raises-the-start note",
            "99-bbr-tuning.conf:5 does-not-bound-autotuning note",
            "99-bbr-tuning.conf:6 does-not-bound-autotuning note",
        ]
    );
}

#[test]
fn sysctl_and_bdp_forgets_the_buckets_and_is_right_elsewhere() {
    assert_eq!(
        verdicts("sysctl-and-bdp", "ubuntu-24.04"),
        [
            "90-network-tuning.conf:1 fq-is-a-choice note",
            "90-network-tuning.conf:2 bbr-is-version-1 note",
            "90-network-tuning.conf:5 does-not-bound-autotuning note",
            "90-network-tuning.conf:6 does-not-bound-autotuning note",
            "90-network-tuning.conf:7 needs-the-program note",
            "90-network-tuning.conf:9 copied-value note",
            "90-network-tuning.conf:10 takes-service-ports note",
            "90-network-tuning.conf:11 copied-value note",
            "90-network-tuning.conf:12 ignored-by-congestion-control note",
            "91-conntrack.conf:1 needs-module note",
            "91-conntrack.conf:1 conntrack-without-buckets warning",
        ]
    );
}

#[test]
fn bbrv3_loss_and_fairness_sets_what_bbr_ignores_and_asks_for_ecn() {
    assert_eq!(
        verdicts("bbrv3-loss-and-fairness", "ubuntu-24.04"),
        [
            "99-bbrv3.conf:1 fq-is-a-choice note",
            "99-bbrv3.conf:2 bbr-is-version-1 note",
            "99-bbrv3.conf:3 ignored-by-congestion-control warning",
            "99-bbrv3.conf:4 ignored-by-congestion-control warning",
            "99-bbrv3.conf:5 does-not-bound-autotuning note",
            "99-bbrv3.conf:6 does-not-bound-autotuning note",
            "99-bbrv3.conf:7 lowers-the-start warning",
            "99-bbrv3.conf:8 raises-the-start note",
            "99-bbrv3.conf:9 asks-for-ecn warning",
            "99-bbrv3.conf:10 default-value note",
            "99-bbrv3.conf:11 default-value note",
            "99-bbrv3.conf:12 default-value note",
        ]
    );
}

#[test]
fn the_memory_cap_is_an_error_on_a_large_host_and_nothing_on_the_host_it_was_made_for() {
    let on = |memory: &str| verdicts("bbrv3-and-tcp-stack", &format!("ubuntu-26.04,memory={memory}"));
    assert!(on("64GiB").contains(&"20-tcp-tuning.conf:1 caps-tcp-memory error".to_owned()));
    let about_memory =
        |lines: Vec<String>| lines.into_iter().filter(|l| l.starts_with("20-tcp-tuning.conf:1 ")).collect::<Vec<_>>();
    assert_eq!(about_memory(on("10GiB")), ["20-tcp-tuning.conf:1 copied-value note"]);
    assert_eq!(about_memory(on("1GiB")), ["20-tcp-tuning.conf:1 exhausts-memory warning"]);
}
