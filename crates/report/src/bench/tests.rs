//! The document against its schema, and what its renderings must and must not contain.
//! `UPDATE_SCHEMA=1 cargo test -p linerate-report bench` writes `docs/schema/bench-1.json` anew.

use std::path::PathBuf;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use units::Instant;

use super::*;
use crate::{Percentiles, Series, median_and_range};

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/bench-1.json")
}

fn generated() -> String {
    let mut schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<BenchReport>();
    schema.insert("title".to_owned(), BENCH_SCHEMA.into());
    format!("{}\n", serde_json::to_string_pretty(&schema).unwrap())
}

fn run(control: &str, repeat: u32, mbps: u64) -> BenchRun {
    let series = |scale: f64| {
        Series::from_points((0..60).map(|n| (Instant::from_nanos(n * 100_000_000), scale * (1.0 + (n % 7) as f64))))
    };
    let rtt = |ms: f64| Some(Percentiles { p50: ms, p95: ms * 1.2, p99: ms * 1.5 });
    BenchRun {
        congestion_control: Some(control.to_owned()),
        repeat,
        started_after_s: f64::from(repeat) * 20.0,
        duration_s: 5.0,
        valid: true,
        invalid_reason: None,
        directions: vec![DirectionReport {
            direction: "forward".to_owned(),
            congestion_control: Some(control.to_owned()),
            congestion_control_version: Some(format!("{control} (BBRv1)")),
            goodput_bps: Some(mbps * 1_000_000),
            goodput_from: "receiver".to_owned(),
            bytes: Some(mbps * 625_000),
            retransmitted_segments: Some(12),
            retransmitted_share: Some(0.0123),
            limited_by: Some(LimitedBy { receive_window: 0.25, send_buffer: 0.0, congestion_window: 0.75 }),
            path: Some(PathEstimate {
                bottleneck_bps: Some(100_000_000),
                bottleneck_at_least: true,
                min_rtt_ms: Some(40.0),
                bdp_bytes: Some(500_000),
                queueing_delay_ms: Some(12.5),
                loss_kind: "random".to_owned(),
                loss: Some(0.01),
                because: "Losses <b>come</b> singly".to_owned(),
                evidence: LossEvidence { loss_events: 40, dispersion: Some(1.1), ..LossEvidence::default() },
            }),
            goodput_series_bps: series(mbps as f64 * 2e5),
            srtt_series_ms: series(10.0),
            cwnd_series_segments: series(50.0),
            retransmitted_series_segments: series(1.0),
            streams: vec![StreamReport {
                id: 1,
                goodput_bps: Some(mbps * 1_000_000),
                retransmitted_segments: Some(12),
                congestion_control: Some(control.to_owned()),
                error: None,
            }],
        }],
        rtt_idle_ms: rtt(40.0),
        rtt_under_load_ms: rtt(55.0),
        latency_in_flow_ms: rtt(70.0),
        responsiveness: Some(ResponsivenessReport { rpm: 900.0, foreign_rpm: 1000.0, loaded_rpm: 800.0 }),
        probes_lost: Some(0),
        cpu: CpuReport { client_s: 0.1, server_s: Some(0.1), client_s_per_gb: Some(0.3), server_s_per_gb: Some(0.4) },
        rtt_series_ms: series(20.0),
        iperf3: json!({ "end": {} }),
    }
}

fn sample() -> BenchReport {
    let settings = Settings {
        direction: "forward".to_owned(),
        streams: 2,
        duration_s: Some(5.0),
        omit_s: 1.0,
        congestion_controls: vec!["cubic".to_owned(), "bbr".to_owned()],
        repeats: 3,
        seed: 42,
        ..Settings::default()
    };
    let words = ["linerate", "bench", "host.example"].map(String::from).to_vec();
    let mut report = BenchReport::new("0.1.0", "6.18.0", words, "2026-01-01T00:00:00Z", settings);
    report.server = ServerReport {
        name: "host.example".to_owned(),
        address: "192.0.2.1:5201".to_owned(),
        ..ServerReport::default()
    };
    for repeat in 0..3 {
        report.results.push(run("bbr", repeat, 90 + u64::from(repeat)));
        report.results.push(run("cubic", repeat, 40 + u64::from(repeat)));
    }
    report.results[5].valid = false;
    report.results[5].invalid_reason = Some("stream <script>\x1b[31m broke".to_owned());
    report.summarise(&median_and_range);
    report
}

#[test]
fn the_schema_file_is_the_one_made_from_the_types_and_a_report_is_valid_by_it() {
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path(), generated()).unwrap();
    }
    let written = std::fs::read_to_string(path()).unwrap();
    assert_eq!(written, generated(), "run with UPDATE_SCHEMA=1 and commit the file");
    let validator = jsonschema::validator_for(&serde_json::from_str::<Value>(&written).unwrap()).unwrap();
    let mut value: Value = serde_json::from_str(&sample().to_json()).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    value["results"][0]["directions"][0]["goodput_bps"] = "fast".into();
    assert!(!validator.is_valid(&value));
}

#[test]
fn a_document_is_read_back_and_others_are_named() {
    let report = sample();
    assert_eq!(BenchReport::from_json(&report.to_json()), Ok(report));
    assert!(BenchReport::from_json("{\"schema\": \"linerate.lab/1\"}").unwrap_err().contains("linerate.lab/1"));
    assert!(BenchReport::from_json("{}").unwrap_err().contains("schema"));
    assert!(BenchReport::from_json("goodput").unwrap_err().contains("JSON"));
}

#[test]
fn the_summary_leaves_invalid_runs_out_and_keeps_the_order_asked_for() {
    let report = sample();
    let names: Vec<_> = report.summary.iter().filter_map(|line| line.congestion_control.as_deref()).collect();
    assert_eq!(names, ["cubic", "bbr"]);
    let cubic = &report.summary[0];
    assert_eq!((cubic.repeats, cubic.invalid), (2, 1));
    assert_eq!(cubic.goodput_bps.unwrap().median, 40.5e6);
    assert!((cubic.cpu_s_per_gb.unwrap().median - 0.7).abs() < 1e-12);
}

#[test]
fn the_table_says_what_was_found_and_fits() {
    for width in [100, 80, 60] {
        let shown = render_bench(&sample(), width, false);
        for part in [
            "cubic",
            "bbr",
            "40.5",
            "2 of 3!",
            "left out",
            "an iperf3 server",
            "repeat 2, the median",
            "▇",
            "at least 100",
        ] {
            assert!(shown.contains(part) || (width < 80 && part == "2 of 3!"), "{part} at {width}: {shown}");
        }
        assert!(!shown.contains('\x1b'), "{shown}");
        let widest = shown.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap();
        assert!(widest <= width, "{widest} at {width}: {shown}");
    }
}

#[test]
fn the_page_has_plots_escapes_what_others_wrote_and_fetches_nothing() {
    let page = render_bench_html(&sample());
    assert!(page.matches("<svg class=\"plot\"").count() >= 8, "{page}");
    assert!(page.contains("host.example") && page.contains("seed 42"));
    assert!(!page.contains("<script") && !page.contains("<b>come"), "{page}");
    assert!(page.contains("&lt;script&gt;"));
    for fetch in ["http://", "https://", "<link", "<img", "@import", "url("] {
        assert!(!page.contains(fetch), "{fetch}");
    }
    let mut empty = sample();
    empty.results.clear();
    empty.summarise(&median_and_range);
    assert!(render_bench_html(&empty).contains("</html>"));
    assert!(render_bench(&empty, 80, false).contains("no run was made"));
}

#[test]
fn a_comparison_says_in_words_what_its_figures_mean() {
    let figure = |verdict, shift: f64| ComparedRuns {
        figure: "goodput_bps".to_owned(),
        direction: "forward".to_owned(),
        runs_a: 8,
        runs_b: 8,
        a: median_and_range(&[90e6, 100e6, 110e6]),
        b: median_and_range(&[95e6, 105e6, 115e6]),
        method: "signed-rank",
        p: 0.0078,
        effect: 1.0,
        shift,
        shift_low: Some(4e6),
        shift_high: Some(6e6),
        verdict,
    };
    let comparison = |verdict| BenchComparison {
        a: "a.json, cubic".to_owned(),
        b: "a.json, bbr".to_owned(),
        paired: true,
        level: 0.05,
        other_conditions: vec!["kernel: 6.12 in A, 6.18 in B".to_owned()],
        figures: vec![figure(verdict, 5e6)],
    };
    for (verdict, words) in [
        ("differs", "B is +5.00 Mbit/s (+5.0%), by 8 pairs"),
        ("no-difference-seen", "No difference seen"),
        ("too-few-runs", "Too few runs"),
    ] {
        let shown = render_bench_compare(&comparison(verdict), 100, false);
        assert!(shown.contains(words) && shown.contains("6.12 in A"), "{shown}");
    }
    assert!(comparison("differs").differs() && !comparison("too-few-runs").differs());
}
