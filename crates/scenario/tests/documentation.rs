//! `docs/scenarios.md` is about the format that is read.

use linerate_scenario::{NoFiles, Scenario, builtin, known_keys};

const PAGE: &str = include_str!("../../../docs/scenarios.md");

/// The TOML examples of the page.
fn examples() -> Vec<&'static str> {
    PAGE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn every_example_of_the_page_is_read_and_the_complete_one_makes_the_runs_it_says() {
    let examples = examples();
    assert_eq!(examples.len(), 2);
    let read =
        |text: &str| Scenario::parse(text, "docs/scenarios.md", &NoFiles).unwrap_or_else(|error| panic!("{error}"));
    let short = read(examples[0]).cells().expect("cells");
    assert_eq!(short.len(), 2);
    let complete = read(examples[1]);
    assert_eq!(complete.cells().expect("cells").len(), 48);
    assert!(PAGE.contains("are 48 runs of 30 s"));
    assert_eq!(complete.expanded_flows().len(), 4);
}

#[test]
fn every_key_that_is_read_stands_in_the_page_and_no_other_table_row_does() {
    let known: Vec<&str> = known_keys().iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
    for key in &known {
        assert!(PAGE.contains(&format!("`{key}`")), "{key} is not in docs/scenarios.md");
    }
    // The first cell of every row that documents a key.
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|row| row.split('`').next());
    let scenarios: Vec<&str> = builtin().iter().map(|(name, _)| *name).collect();
    let mut documented = 0;
    for row in rows.filter(|row| !row.starts_with('"') && !scenarios.contains(row)) {
        assert!(known.contains(&row), "docs/scenarios.md documents {row}, which nothing reads");
        documented += 1;
    }
    assert!(documented > 40, "the page has its tables");
}

#[test]
fn the_complete_example_uses_almost_every_key() {
    let text = examples()[1];
    let unused: Vec<&str> = known_keys()
        .iter()
        .flat_map(|(_, keys)| keys.iter().copied())
        .filter(|key| {
            !text.contains(&format!("{key} ="))
                && !text.contains(&format!("[{key}"))
                && !text.contains(&format!(".{key}]"))
        })
        .collect();
    // What excludes something else in it, or would only repeat.
    for key in &unused {
        let left_out = [
            "trace",
            "every",
            "offset",
            "packets",
            "buckets",
            "quantum",
            "min",
            "max",
            "max_probability",
            "weight_shift",
            "mark_above",
            "queueing_delay",
            "completion",
            "retransmissions",
            "first_contentful_paint",
        ];
        assert!(left_out.contains(key), "{key} is missing from the complete example");
    }
}

#[test]
fn every_built_in_scenario_stands_in_the_page() {
    for (name, _) in builtin() {
        assert!(PAGE.contains(&format!("| `{name}` |")), "{name} is not in docs/scenarios.md");
    }
}

#[test]
fn the_errors_the_page_shows_are_the_errors_given() {
    let shown = PAGE.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example of errors");
    let text = examples()[0].replace("\"200mbit\"", "\"200mbps\"") + "bufer = \"1bdp\"\n";
    let error = Scenario::parse(&text, "office.toml", &NoFiles).expect_err("two mistakes");
    assert_eq!(error.to_string(), shown.trim_end());
}
