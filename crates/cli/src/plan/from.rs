//! Facts out of a file: those that `plan --print-facts` prints, an audit's, or ones written by hand.

use std::path::Path;

use host::sysctl;
use serde::Deserialize;
use serde_json::Value;
use tuning::Key;
use tuning::plan::Facts;

use crate::exit::Failure;
use crate::output;
use crate::why::why;

/// Facts are some dozen kilobytes, an audit's document some hundred.
const MOST_BYTES: u64 = 16 << 20;

/// Documents that hold facts, and the newest version of each that is understood.
const DOCUMENTS: [(&str, u64); 2] = [("facts", 1), ("audit", 1)];

/// Reads facts; `-` is standard input.
pub fn read(file: &Path) -> Result<Facts, Failure> {
    let is_stdin = file == Path::new("-");
    let name = if is_stdin { "standard input".to_owned() } else { file.display().to_string() };
    let text = match is_stdin {
        true => output::text_of(std::io::stdin().lock(), MOST_BYTES),
        false => output::read_text(file, MOST_BYTES),
    };
    let text = text.map_err(|error| Failure::usage(format_args!("can't read {name}: {}", why(&error))))?;
    facts(&text).map_err(|why| Failure::usage(format_args!("{name}: {why}")))
}

/// Facts under `facts`.
#[derive(Deserialize)]
struct Document {
    facts: Facts,
}

fn facts(text: &str) -> Result<Facts, String> {
    const HINT: &str = "`linerate plan --print-facts` shows how facts look";
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}; {HINT}"))?;
    if !value.is_object() {
        return Err(format!("it is JSON, but no object with facts; {HINT}"));
    }
    is_understood(&value)?;
    // Read out of the text, not out of the value: then an error has its line and column.
    let inside = value.get("facts");
    let read = match inside {
        Some(_) => serde_json::from_str::<Document>(text).map(|document| document.facts),
        None if value.get("schema").is_some() => {
            return Err(format!("it has no `facts`: the program that wrote it was ended, or it was cut; {HINT}"));
        }
        None => serde_json::from_str::<Facts>(text),
    };
    let mut facts = read.map_err(|error| format!("its facts can't be read: {error}; {HINT}"))?;
    // Written by hand, a key may have slashes and a value tabs.
    let sysctls = std::mem::take(&mut facts.sysctls).into_iter();
    facts.sysctls = sysctls
        .map(|(key, value)| (Key::parse(&key).map_or(key, |key| key.to_string()), sysctl::normalise(&value)))
        .collect();
    Ok(facts)
}

/// Refuses documents of other commands, and of newer versions.
fn is_understood(document: &Value) -> Result<(), String> {
    let Some(schema) = document.get("schema") else { return Ok(()) };
    let schema = schema.as_str().unwrap_or_default();
    let wanted = "wanted is one of `linerate audit --json` or `linerate plan --print-facts`";
    let Some((name, version)) = schema.strip_prefix("linerate.").and_then(|rest| rest.split_once('/')) else {
        return Err(format!("its schema is `{schema}`: no document of linerate; {wanted}"));
    };
    let Some((_, newest)) = DOCUMENTS.iter().find(|(known, _)| *known == name) else {
        return Err(format!("it is a document of `linerate {name}`, which has no facts; {wanted}"));
    };
    match version.parse::<u64>() {
        Ok(version) if (1..=*newest).contains(&version) => Ok(()),
        _ => {
            let by = document.get("linerate_version").and_then(Value::as_str).unwrap_or("another version");
            Err(format!(
                "its schema is `{schema}`, written by linerate {by}; this is {} and understands version {newest}: take the facts \
                 with this version, or plan with that one",
                env!("CARGO_PKG_VERSION")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: &str =
        r#""kernel": "6.12.0", "memory_bytes": 17179869184, "sysctls": {"net/ipv4/tcp_rmem": "4096\t131072\t6291456"}"#;

    #[test]
    fn facts_are_found_alone_in_a_document_and_in_an_audit() {
        let audit = r#""schema": "linerate.audit/1", "findings": []"#;
        for text in [
            format!("{{{FACTS}}}"),
            format!(r#"{{"facts": {{{FACTS}}}}}"#),
            format!(r#"{{"schema": "linerate.facts/1", "facts": {{{FACTS}}}}}"#),
            format!(r#"{{{audit}, "facts": {{{FACTS}, "devices": []}}}}"#),
        ] {
            let facts = facts(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
            assert_eq!(facts.sysctl("net.ipv4.tcp_rmem"), Some("4096 131072 6291456"), "{text}");
        }
    }

    #[test]
    fn other_documents_are_refused_with_what_they_are() {
        for (text, part) in [
            ("", "it is no JSON"),
            ("[1]", "no object with facts"),
            ("7", "no object with facts"),
            (r#"{"schema": 7}"#, "no document of linerate"),
            (r#"{"schema": "sarif"}"#, "no document of linerate"),
            (r#"{"schema": "linerate.lab/1", "results": []}"#, "a document of `linerate lab`"),
            (
                r#"{"schema": "linerate.audit/2", "linerate_version": "7.0.0", "facts": {}}"#,
                "written by linerate 7.0.0",
            ),
            (r#"{"schema": "linerate.audit/banana", "facts": {}}"#, "this is "),
            (r#"{"schema": "linerate.audit/1", "findings": []}"#, "it has no `facts`"),
            (r#"{"schema": "linerate.audit/1", "facts": {"devices": []}}"#, "missing field `kernel`"),
            (r#"{"schema": "linerate.audit/1", "facts": null}"#, "invalid type: null"),
            ("{\"kernel\": \"6.12\",\n\"memory_bytes\": \"16 GiB\"}", "line 2 column 24"),
            (r#"{"kernel": "6.12", "memory_bytes": -1}"#, "invalid value"),
            (r#"{"kernel": "6.12", "memory_bytes": 1, "sysctls": {"net.core.somaxconn": 4096}}"#, "expected a string"),
        ] {
            let why = facts(text).unwrap_err();
            assert!(why.contains(part), "{text} should say {part:?}: {why}");
        }
    }
}
