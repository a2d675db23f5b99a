//! A sound scenario, and what becomes of it with one line exchanged.

use linerate_scenario::{NoFiles, Scenario};

pub const SOUND: &str = r#"name = "sound"
title = "A sound scenario"
[path]
rate = "100mbit"
rtt = "40ms"
loss = ["0%", "1%"]
[[flow]]
label = "bulk"
[[profile]]
name = "cubic"
congestion_control = "cubic"
[[profile]]
name = "bbr"
congestion_control = "bbr"
[run]
duration = "15s"
[[published]]
profile = "cubic"
loss = "1%"
goodput = "4mbit"
"#;

pub fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, "x.toml", &NoFiles).map_err(|error| error.to_string())
}

/// The sound text with `line` exchanged; panics where it has no such line.
pub fn with(line: &str, instead: &str) -> String {
    let mut found = false;
    let lines: Vec<&str> = SOUND
        .lines()
        .map(|l| {
            let hit = l == line && !found;
            found |= hit;
            if hit { instead } else { l }
        })
        .collect();
    assert!(found, "{line}");
    lines.join("\n")
}

/// `instead` in place of `line` is answered with `answer`; `near` in place of it passes.
#[track_caller]
pub fn refused(line: &str, instead: &str, answer: &str, near: &str) {
    assert_eq!(parse(&with(line, instead)).expect_err("must be refused"), answer);
    if let Err(error) = parse(&with(line, near)) {
        panic!("the near miss {near:?} was refused: {error}");
    }
}
