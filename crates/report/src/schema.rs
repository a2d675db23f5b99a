//! `docs/schema/lab-1.json`: made from the types of `model`, whose comments become its descriptions, and kept in step with
//! them by a test. `UPDATE_SCHEMA=1 cargo test -p linerate-report schema` writes it anew.

use std::path::PathBuf;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::LabReport;

#[allow(dead_code)]
#[path = "../tests/common/sample.rs"]
mod sample;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/lab-1.json")
}

fn generated() -> String {
    let mut schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<LabReport>();
    schema.insert("title".to_owned(), "linerate.lab/1".into());
    format!("{}\n", serde_json::to_string_pretty(&schema).unwrap())
}

fn written() -> Value {
    serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap()
}

fn as_value(report: &LabReport) -> Value {
    serde_json::from_str(&report.to_json()).unwrap()
}

#[test]
fn the_schema_file_is_the_one_made_from_the_types() {
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path(), generated()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path()).unwrap(), generated(), "run with UPDATE_SCHEMA=1 and commit the file");
}

#[test]
fn every_sample_is_valid_by_the_schema_file() {
    let validator = jsonschema::validator_for(&written()).unwrap();
    for report in [sample::full(), sample::empty(), sample::transcontinental(1), sample::cellular()] {
        let errors: Vec<String> = validator.iter_errors(&as_value(&report)).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0]);
    }
}

#[test]
fn a_wrong_type_a_missing_key_an_impossible_loss_and_another_schema_are_invalid() {
    let validator = jsonschema::validator_for(&written()).unwrap();
    let spoil = |spoil: &dyn Fn(&mut Value)| {
        let mut value = as_value(&sample::transcontinental(1));
        assert!(validator.is_valid(&value));
        spoil(&mut value);
        validator.is_valid(&value)
    };
    assert!(!spoil(&|value| value["results"][0]["goodput_bps"] = "fast".into()));
    assert!(!spoil(&|value| value["results"][0]["drops"]["random"] = (-1).into()));
    assert!(!spoil(&|value| drop(value["results"][0].as_object_mut().unwrap().remove("seed"))));
    assert!(!spoil(&|value| value["summary"][0]["loss"] = 1.5.into()));
    assert!(!spoil(&|value| value["schema"] = "linerate.lab/2".into()));
}

/// The keys that the design promises to every reader of the file.
#[test]
fn the_promised_keys_are_there() {
    let value = as_value(&sample::full());
    let missing = |value: &Value, keys: &[&str]| {
        keys.iter().filter(|key| value.get(**key).is_none()).map(|key| (*key).to_owned()).collect::<Vec<_>>()
    };
    let top = ["schema", "linerate_version", "kernel", "command_line", "started_at", "scenarios", "results", "summary"];
    assert_eq!(missing(&value, &top), [""; 0]);
    let run = [
        "scenario",
        "congestion_control",
        "congestion_control_version",
        "profile",
        "loss",
        "repeat",
        "seed",
        "valid",
        "invalid_reason",
        "goodput_bps",
        "rtt_idle_ms",
        "rtt_under_load_ms",
        "queueing_delay_ms",
        "retransmitted_segments",
        "drops",
        "marks",
        "flows",
    ];
    let first = &value["results"][0];
    assert_eq!(missing(first, &run), [""; 0]);
    assert_eq!(missing(&first["rtt_under_load_ms"], &["p50", "p95", "p99"]), [""; 0]);
    assert_eq!(missing(&first["queueing_delay_ms"], &["mean", "p50", "p95", "p99"]), [""; 0]);
    assert_eq!(missing(&first["drops"], &["random", "overflow", "aqm", "policer"]), [""; 0]);
    assert_eq!(missing(&first["emulator"]["lateness_us"], &["p50", "p99", "p999", "max"]), [""; 0]);
    let line = ["repeats", "goodput_bps", "published_goodput_bps", "congestion_control", "profile", "loss"];
    assert_eq!(missing(&value["summary"][0], &line), [""; 0]);
    assert_eq!(missing(&value["summary"][0]["goodput_bps"], &["median", "low", "high"]), [""; 0]);
    // The check sees what is not there.
    assert_eq!(missing(first, &["goodput_mbps"]), ["goodput_mbps"]);
}
