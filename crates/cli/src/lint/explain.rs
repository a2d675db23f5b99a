//! What a rule means.

use std::fmt::Write;

use tuning::lint::{self, Rule};

use crate::exit::{Exit, Failure};
use crate::{output, wrap};

/// Explains one rule.
pub fn run(name: &str) -> Result<Exit, Failure> {
    let Some(rule) = lint::find(name) else {
        let near = lint::all().min_by_key(|rule| strsim::osa_distance(&name.to_lowercase(), rule.name));
        let near = near.filter(|rule| strsim::osa_distance(&name.to_lowercase(), rule.name) <= 4);
        let hint = near
            .map_or("`docs/lint.md` lists them".to_owned(), |rule| format!("did you mean {} {}?", rule.id, rule.name));
        return Err(Failure::usage(format_args!("there is no rule `{name}`; {hint}")));
    };
    output::print(&text(rule, output::width()))?;
    Ok(Exit::Done)
}

fn text(rule: &Rule, width: usize) -> String {
    let mut out = format!("{} {} ({}, {})\n{}\n\n", rule.id, rule.name, rule.severity, rule.kind.title(), rule.summary);
    out += &wrap::hanging("", rule.why, width);
    let shown = |text: &str| {
        let lines = text.lines().map(|line| format!("    {}\n", output::plain(&line.replace('\r', "\u{240d}"))));
        lines.collect::<String>()
    };
    let _ = write!(out, "\nBreaks it:\n{}", shown(rule.example.bad));
    if !rule.example.good.is_empty() {
        let _ = write!(out, "\nIs fine:\n{}", shown(rule.example.good));
    }
    let _ = write!(
        out,
        "\nAllow it for one line, with your reason:\n    # linerate: allow {} why this host needs it\n",
        rule.id
    );
    out
}

/// The table of `docs/lint.md`.
pub fn table() -> Result<Exit, Failure> {
    let mut rules: Vec<&Rule> = lint::all().collect();
    rules.sort_by_key(|rule| (rule.kind, rule.id));
    let mut out = String::new();
    let mut kind = None;
    for rule in rules {
        if kind != Some(rule.kind) {
            let _ = write!(
                out,
                "{}### {}\n\n| rule | usually | what |\n| --- | --- | --- |\n",
                if kind.is_some() { "\n" } else { "" },
                rule.kind.title()
            );
            kind = Some(rule.kind);
        }
        let _ = writeln!(out, "| {} `{}` | {} | {} |", rule.id, rule.name, rule.severity, rule.summary);
    }
    output::print(&out)?;
    Ok(Exit::Done)
}
