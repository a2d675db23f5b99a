//! The reference under `docs/`, as Markdown.

use std::fmt::Write as _;

use super::describe::facts;
use super::{Catalogue, Importance, Knob};

const HEAD: &str = "\
# The knobs

What `linerate knobs NAME` prints, for every knob; shorter for those that are not the network's. Generated from `crates/tuning/data/` by
`cargo run -p linerate-tuning --example reference`; a test checks that it is current.

Facts hold for Linux 6.1 to 7.2 on 64-bit machines with pages of 4096 bytes. The accepted numbers and the scopes were found by trying on
Debian's kernels 6.1, 6.12 and 7.2 and on 6.18, the defaults read there (`crates/tuning/tests/live.rs` repeats that on the
running kernel); the first version of a knob that came after 6.1 is out of its history and can be one off where no kernel
between was tried. A `*` in a name stands for an interface, `all` or `default`.

";

/// The whole of `docs/knobs.md`.
pub fn reference(catalogue: &Catalogue) -> String {
    let mut out = HEAD.to_owned();
    let of = |importance| catalogue.knobs().iter().filter(move |knob| knob.importance == importance);
    let _ = writeln!(out, "## What decides performance\n");
    for knob in of(Importance::Main) {
        entry(&mut out, knob);
    }
    for (title, importance) in [
        ("Related to the network", Importance::Related),
        ("Not a matter of the network's performance", Importance::Other),
    ] {
        let _ = writeln!(out, "## {title}\n\n| knob | value | what it does | default |\n| --- | --- | --- | --- |");
        for knob in of(importance) {
            row(&mut out, knob, importance);
        }
        out.push('\n');
    }
    let kept = out.trim_end().len();
    out.truncate(kept);
    out.push('\n');
    out
}

fn entry(out: &mut String, knob: &Knob) {
    let _ = writeln!(out, "### `{}`\n\n{}\n", knob.name, escaped(&knob.what));
    for (heading, text) in facts(knob) {
        let _ = writeln!(out, "- {heading}: {}", escaped(&text));
    }
    out.push('\n');
}

fn row(out: &mut String, knob: &Knob, importance: Importance) {
    let mut what = knob.what.clone();
    let facts = facts(knob);
    for (heading, text) in &facts {
        // Without a common reason to change it, a row says so by saying nothing.
        let is_told = match *heading {
            "change" => knob.change.is_some(),
            "accepts" | "holds for" | "source" => importance != Importance::Other,
            "in" | "choices" | "risk" | "ignored by" | "in lists" => true,
            _ => false,
        };
        if is_told {
            let _ = write!(what, " {}: {text}.", capital(heading));
        }
    }
    let default = facts.iter().find(|(heading, _)| *heading == "default").map_or("", |(_, text)| text);
    let _ = writeln!(
        out,
        "| `{}` | {} | {} | {} |",
        knob.name,
        cell(knob.kind.in_words()),
        cell(&what.replace("..", ".")),
        cell(default)
    );
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Text in Markdown: `*` and `_` in names of knobs are letters.
fn escaped(text: &str) -> String {
    text.replace('*', "\\*").replace('_', "\\_").replace('<', "&lt;")
}

fn cell(text: &str) -> String {
    escaped(text).replace('|', "\\|")
}
