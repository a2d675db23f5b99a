//! The JSON file: what is written can be read back, and what is something else is refused with a reason.

mod common;

use common::sample;
use linerate_report::{LabReport, ReadError, median_and_range};

#[test]
fn what_is_written_is_read_back_the_same() {
    for report in [sample::full(), sample::empty(), sample::transcontinental(1)] {
        assert_eq!(LabReport::from_json(&report.to_json()).unwrap(), report);
    }
    let mut other = sample::full();
    other.results[0].seed += 1;
    assert_ne!(LabReport::from_json(&other.to_json()).unwrap(), sample::full());
}

#[test]
fn the_file_of_a_single_run_looks_like_this() {
    let mut report = sample::transcontinental(1);
    report.results.truncate(1);
    report.scenarios[0].published.truncate(1);
    report.summarise(&median_and_range);
    // Ten points of each series are enough to see their form.
    let thin = |series: &mut linerate_report::Series| *series = std::mem::take(series).extremes(10);
    let run = &mut report.results[0];
    thin(&mut run.series.rtt_under_load_ms);
    thin(&mut run.series.queue_depth_bytes);
    thin(&mut run.series.drops_packets.random);
    thin(&mut run.series.drops_packets.overflow);
    let flow = &mut run.flows[0].series;
    thin(&mut flow.goodput_bps);
    thin(&mut flow.cwnd_segments);
    thin(&mut flow.pacing_rate_bps);
    thin(&mut flow.smoothed_rtt_ms);
    insta::assert_snapshot!(report.to_json());
}

#[test]
fn a_key_of_a_later_version_is_ignored_and_an_optional_one_may_be_missing() {
    let mut value: serde_json::Value = serde_json::from_str(&sample::transcontinental(1).to_json()).unwrap();
    value["invented_later"] = 1.into();
    value["results"][0]["invented_later"] = 1.into();
    value["results"][0].as_object_mut().unwrap().remove("series");
    value["results"][0].as_object_mut().unwrap().remove("invalid_reason");
    value["results"][0]["flows"][0]["series"] = serde_json::json!({});
    let report = LabReport::from_json(&value.to_string()).unwrap();
    assert!(report.results[0].series.rtt_under_load_ms.is_empty());
    value["results"][0].as_object_mut().unwrap().remove("seed");
    assert!(matches!(LabReport::from_json(&value.to_string()), Err(ReadError::Json(_))));
}

#[test]
fn what_is_not_a_lab_report_is_refused_with_a_reason() {
    let reason = |text: &str| LabReport::from_json(text).unwrap_err().to_string();
    assert_eq!(reason(r#"{"summary": []}"#), "not a linerate report: it has no `schema`");
    assert_eq!(
        reason(r#"{"schema": "linerate.lint/1"}"#),
        "its schema is `linerate.lint/1`; this version reads `linerate.lab/1` and `linerate.sim/1`"
    );
    assert_eq!(reason("goodput: 1"), "not a lab report: expected value at line 1 column 1");
    assert_eq!(
        reason(r#"{"schema": "linerate.lab/1"}"#),
        "not a lab report: missing field `linerate_version` at line 1 column 28"
    );
}
