//! A knob's facts in words, for the reference and for a terminal alike.

use std::fmt::Write as _;

use super::{Access, Importance, Kind, Knob, OutOfRange, Range, Scope};
use crate::kernel::KernelVersion;

/// A fact with the version it holds from.
fn by_version(items: Vec<(String, Option<KernelVersion>, Option<KernelVersion>)>) -> String {
    let one = |(text, since, until): (String, Option<KernelVersion>, Option<KernelVersion>)| match (since, until) {
        (None, None) => text,
        (Some(since), None) => format!("{text} from {since} on"),
        (None, Some(until)) => format!("{text} before {until}"),
        (Some(since), Some(until)) => format!("{text} from {since} to before {until}"),
    };
    items.into_iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Kind {
    /// In words: `bytes`, `0 or 1`, `one of the choices`.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Flag => "0 or 1",
            Self::Choice => "a number out of a list",
            Self::Bits => "a sum of numbers out of a list",
            Self::Count => "a count",
            Self::Number => "a number",
            Self::Exponent => "a power of two, by its exponent",
            Self::Port => "a port",
            Self::PortRange => "first and last port",
            Self::PortList => "ports and ranges, joined by commas",
            Self::Name => "a name",
            Self::Names => "names, joined by blanks",
            Self::CpuMask => "a mask of CPUs, hexadecimal",
            Self::Text => "text",
            Self::Trigger => "an action: what is written makes the kernel do something once",
            numeric => numeric.unit(),
        }
    }
}

impl Scope {
    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Namespace => "each network namespace its own",
            Self::Host => "host-wide; not there in other network namespaces",
            Self::HostReadOnly => "host-wide; other network namespaces see it and can't write it",
            Self::System => "host-wide; not a matter of network namespaces",
        }
    }
}

impl Importance {
    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Main => "decides performance",
            Self::Related => "network, seldom performance",
            Self::Other => "not the network's performance",
        }
    }
}

impl Range {
    /// `1 to 2147483647`.
    fn in_words(self) -> String {
        let most = if self.max == i64::MAX { "the largest 64-bit number".to_owned() } else { self.max.to_string() };
        format!("{} to {most}", self.min)
    }
}

/// The facts of a knob under short headings, in the order to read them. Those that are not known are left out.
pub fn facts(knob: &Knob) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |heading: &'static str, text: String| {
        if !text.is_empty() {
            facts.push((heading, text));
        }
    };
    add("value", value(knob));
    let ranges = knob.range.iter().map(|r| (r.in_words(), r.since, r.until)).collect();
    let clamped = if knob.out_of_range == OutOfRange::Clamped { "; others are cut to fit" } else { "" };
    let accepts = by_version(ranges);
    add("accepts", if accepts.is_empty() { accepts } else { accepts + clamped });
    add("choices", choices(knob));
    let shown = |value: &str| if value.is_empty() { "empty".to_owned() } else { value.to_owned() };
    let defaults = by_version(knob.default.iter().map(|d| (shown(&d.value), d.since, d.until)).collect());
    add(
        "default",
        [Some(defaults).filter(|d| !d.is_empty()), knob.default_note.clone()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; "),
    );
    add("holds for", by_version(knob.scope.iter().map(|s| (s.scope.in_words().to_owned(), s.since, None)).collect()));
    add("in", versions(knob));
    add("change", change(knob));
    add("risk", knob.risk.clone().unwrap_or_default());
    add("ignored by", knob.ignored.iter().map(|i| i.when.as_str()).collect::<Vec<_>>().join("; "));
    if let Some(popular) = &knob.popular {
        let seen = if popular.values.is_empty() { String::new() } else { format!("{}: ", popular.values.join(", ")) };
        let instead = popular.instead.as_ref().map_or_else(String::new, |i| format!(" Instead: {i}."));
        add("in lists", format!("{seen}{}{instead}", popular.why));
    }
    add("source", knob.source.clone());
    facts
}

/// When to change it and to what. Of a knob of the network nobody has to guess whether the answer is missing or "never".
fn change(knob: &Knob) -> String {
    match &knob.change {
        Some(change) => format!("{}: {}", change.when, change.to),
        None if knob.importance == Importance::Other || knob.access != Access::ReadWrite || knob.until.is_some() => {
            String::new()
        }
        None => "no reason known that is common".to_owned(),
    }
}

fn value(knob: &Knob) -> String {
    let mut text = match knob.arity {
        (1, 1) => String::new(),
        (least, most) if least == most && knob.kind != Kind::PortRange => format!("{least} values, "),
        (least, most) if least != most => format!("{least} to {most} values, "),
        _ => String::new(),
    };
    text += knob.kind.in_words();
    match knob.access {
        Access::ReadWrite => {}
        Access::ReadOnly => text += "; read-only",
        Access::WriteOnly => text += "; write-only",
    }
    text
}

fn choices(knob: &Knob) -> String {
    let one = |c: &super::Choice| {
        let since = c.since.map_or_else(String::new, |since| format!(" (from {since} on)"));
        format!("{} {}{since}", c.value, c.means)
    };
    knob.choices.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn versions(knob: &Knob) -> String {
    let mut text = match (knob.since, knob.until) {
        (None, None) => String::new(),
        (Some(since), None) => format!("kernels from {since} on"),
        (None, Some(until)) => format!("kernels before {until}"),
        (Some(since), Some(until)) => format!("kernels from {since} to before {until}"),
    };
    for (what, name) in [("", &knob.only_in), ("with module ", &knob.module)] {
        if let Some(name) = name {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}{what}{name}");
        }
    }
    text
}

/// The first sentence of what a knob does.
pub fn first_sentence(knob: &Knob) -> &str {
    knob.what.split_once(". ").map_or(knob.what.trim_end_matches('.'), |(first, _)| first)
}
