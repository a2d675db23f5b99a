//! What SARIF 2.1.0 (OASIS) asks of a log, and what services that read one ask besides. The whole schema is too large to keep here; the
//! parts that a program like this can break are checked one by one.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn log(words: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate")).args(["lint", "--sarif"]).args(words).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// Everything under any `key`, wherever it stands.
fn all<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                if name == key {
                    found.push(inner);
                }
                all(inner, key, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| all(inner, key, found)),
        _ => {}
    }
}

fn under<'v>(value: &'v Value, key: &str) -> Vec<&'v Value> {
    let mut found = Vec::new();
    all(value, key, &mut found);
    found
}

/// A reference as RFC 3986 has it: no blanks, no quotes, only whole escapes.
fn is_uri_reference(text: &str) -> bool {
    let mut bytes = text.bytes();
    let mut good = !text.is_empty();
    while let Some(byte) = bytes.next() {
        good &= match byte {
            b'%' => {
                bytes.next().is_some_and(|b| b.is_ascii_hexdigit())
                    && bytes.next().is_some_and(|b| b.is_ascii_hexdigit())
            }
            _ => byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte),
        };
    }
    good
}

/// Every property that this test knows to be asked for.
fn check(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    let runs = log["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let run = &runs[0];
    let driver = &run["tool"]["driver"];
    assert!(driver["name"].as_str().is_some_and(|name| !name.is_empty()));
    assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&run["columnKind"].as_str().unwrap()));
    let rules = driver["rules"].as_array().unwrap();
    let mut ids: Vec<&str> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    ids.dedup();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rules.len(), "each rule once");
    for rule in rules {
        assert!(rule["shortDescription"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{rule}");
        assert!(
            ["none", "note", "warning", "error"].contains(&rule["defaultConfiguration"]["level"].as_str().unwrap())
        );
    }
    for result in run["results"].as_array().unwrap() {
        assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{result}");
        assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()), "{result}");
        let rule = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[rule]["id"], result["ruleId"], "{result}");
        // A service shows a result at its first place, and drops one without.
        assert!(!result["locations"].as_array().unwrap().is_empty(), "{result}");
        for fix in result["fixes"].as_array().into_iter().flatten() {
            for change in fix["artifactChanges"].as_array().unwrap() {
                assert!(change["artifactLocation"]["uri"].is_string(), "{fix}");
                let replacements = change["replacements"].as_array().unwrap();
                assert!(!replacements.is_empty(), "{fix}");
                assert!(replacements.iter().all(|replacement| replacement["deletedRegion"].is_object()), "{fix}");
            }
        }
    }
    for uri in under(log, "uri") {
        assert!(is_uri_reference(uri.as_str().unwrap()), "{uri}");
    }
    for region in under(log, "region").into_iter().chain(under(log, "deletedRegion")) {
        let number = |name: &str| region[name].as_u64().unwrap_or_else(|| panic!("{name}: {region}"));
        let (start, end) = ((number("startLine"), number("startColumn")), (number("endLine"), number("endColumn")));
        assert!(start.0 >= 1 && start.1 >= 1 && end.0 >= 1 && end.1 >= 1, "{region}");
        assert!(start <= end, "{region}");
    }
    for invocation in run["invocations"].as_array().unwrap() {
        assert!(invocation["executionSuccessful"].is_boolean());
        for notification in invocation["toolExecutionNotifications"].as_array().into_iter().flatten() {
            assert!(notification["message"]["text"].is_string(), "{notification}");
        }
    }
    assert!(under(log, "ruleIndex").iter().all(|index| index.is_u64()));
    assert!(!log.to_string().contains("null"), "nothing is null in SARIF");
}

#[test]
fn logs_of_the_guides_of_odd_files_and_of_no_findings_are_sound() {
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/guides");
    let mut results = 0;
    for guide in fs::read_dir(guides).unwrap().flatten() {
        let log = log(&[&guide.path().display().to_string()]);
        check(&log);
        results += log["runs"][0]["results"].as_array().unwrap().len();
    }
    assert!(results > 25, "{results}");
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).unwrap();
        folder.path().join(name).display().to_string()
    };
    let odd = [
        write("a b ä#%?.conf", b"net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_sack = 1\nbanana\n"),
        write("binary.conf", &[0, 1, 2, 3, 0, 0xff]),
        write("utf16.conf", &[0xff, 0xfe, b'n', 0, b'=', 0, b'1', 0]),
        write("empty.conf", b""),
        write("crlf.conf", "net.core.default_qdisc = fq # \u{1f600}\r\n\u{200b}net.core.somaxconn = 1\r\n".as_bytes()),
        write("x.sh", b"cat >> /etc/sysctl.conf <<END\nnet.ipv4.tcp_tw_recycle = 1\n"),
        write("x.yaml", b"sysctls: [net.ipv4.tcp_sack=0\n"),
        folder.path().join("missing.conf").display().to_string(),
    ];
    let odd: Vec<&str> = odd.iter().map(String::as_str).collect();
    let all = log(&odd);
    check(&all);
    assert_eq!(all["runs"][0]["invocations"][0]["executionSuccessful"], false);
    for file in odd {
        check(&log(&[file]));
    }
}

#[test]
fn a_region_of_characters_outside_of_ascii_counts_code_points() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.conf");
    fs::write(&file, "net.core.default_qdisc = fq # \u{1f600}\u{1f600}\n").unwrap();
    let log = log(&[file.to_str().unwrap()]);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let comment = results.iter().find(|result| result["ruleId"] == "LR004").unwrap();
    let region = &comment["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startColumn"], &region["endColumn"]), (&29.into(), &33.into()), "{region}");
}
