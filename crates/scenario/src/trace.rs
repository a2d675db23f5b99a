//! Mahimahi trace files.

use path::Trace;

use crate::error::{Position, Problem, Reason, ScenarioError, quoted};

/// Reads a trace in the format of mahimahi's `mm-link` (mm-link(1)): one number a line, the milliseconds since the trace's
/// start at which up to 1500 bytes may leave; the same number again for more in that millisecond. Empty lines and lines
/// that start with `#` are skipped.
///
/// # Errors
/// Names `origin` and the line of everything that is not such a number or goes back in time; a trace without an
/// opportunity, or one that ends at 0 ms (it would repeat without time passing).
pub fn parse_trace(text: &str, origin: &str) -> Result<Trace, ScenarioError> {
    let problem = |line: Option<usize>, sentence: String| {
        let position = line.map(|line| Position { line, column: None });
        Problem { origin: origin.to_owned(), position, reason: Reason::Trace(sentence) }
    };
    let mut opportunities_ms: Vec<u32> = Vec::new();
    let mut problems = Vec::new();
    let mut last_line = 1;
    for (index, line) in text.lines().enumerate() {
        let entry = line.trim();
        if entry.is_empty() || entry.starts_with('#') {
            continue;
        }
        last_line = index + 1;
        let before = opportunities_ms.last().copied().unwrap_or(0);
        match entry.parse::<u32>() {
            Ok(ms) if ms < before => {
                problems.push(problem(Some(last_line), format!("{ms} is earlier than {before} before it; times rise")));
            }
            Ok(ms) => opportunities_ms.push(ms),
            Err(_) if entry.bytes().all(|b| b.is_ascii_digit()) => {
                let sentence = format!("{} is more milliseconds than {}", quoted(entry), u32::MAX);
                problems.push(problem(Some(last_line), sentence));
            }
            Err(_) => {
                problems.push(problem(Some(last_line), format!("{} is not a number of milliseconds", quoted(entry))));
            }
        }
    }
    if problems.is_empty() {
        match opportunities_ms.last() {
            None => problems.push(problem(
                None,
                "no delivery opportunity in it; write one number of milliseconds a line".to_owned(),
            )),
            Some(0) => {
                problems.push(problem(Some(last_line), "the last time is 0; a trace lasts at least 1 ms".to_owned()))
            }
            Some(_) => return Ok(Trace { opportunities_ms }),
        }
    }
    Err(ScenarioError::new(problems))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse_trace(text, "x.trace").expect_err("a broken trace").to_string()
    }

    #[test]
    fn a_trace_is_its_numbers_without_comments_and_empty_lines() {
        let trace = parse_trace("# made by hand\n0\n5\n5\n\n  12 \r\n", "x.trace").expect("a sound trace");
        assert_eq!(trace.opportunities_ms, [0, 5, 5, 12]);
    }

    #[test]
    fn every_broken_line_is_named() {
        assert_eq!(
            error("1\nabc\n2\n-3\n"),
            "x.trace:2: \"abc\" is not a number of milliseconds\nx.trace:4: \"-3\" is not a number of milliseconds"
        );
        assert_eq!(error("1.5"), "x.trace:1: \"1.5\" is not a number of milliseconds");
        assert_eq!(error("4294967296"), "x.trace:1: \"4294967296\" is more milliseconds than 4294967295");
        assert!(parse_trace("4294967295", "x.trace").is_ok());
    }

    #[test]
    fn times_may_repeat_but_not_fall() {
        assert_eq!(error("7\n7\n5"), "x.trace:3: 5 is earlier than 7 before it; times rise");
        assert!(parse_trace("7\n7\n8", "x.trace").is_ok());
    }

    #[test]
    fn a_trace_without_time_or_without_opportunities_is_refused() {
        assert_eq!(error("0\n0\n"), "x.trace:2: the last time is 0; a trace lasts at least 1 ms");
        assert_eq!(
            error("# nothing\n"),
            "x.trace: no delivery opportunity in it; write one number of milliseconds a line"
        );
        assert!(parse_trace("0\n1", "x.trace").is_ok());
    }
}
