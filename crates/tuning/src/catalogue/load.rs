//! Reads the data files. Each has a `[group]` with what its knobs have in common, and one table per knob.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use super::Catalogue;
use super::knob::{
    Access, Advice, Choice, Default, Ignored, Importance, Kind, Knob, OutOfRange, Popular, Range, Scope, ScopeFrom,
};
use crate::kernel::KernelVersion;

macro_rules! data {
    ($($name:literal),* $(,)?) => {
        /// The built-in data files and their texts.
        pub(super) const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../data/", $name)))),*];
    };
}

data![
    "core.toml",
    "ipv4.toml",
    "ipv6.toml",
    "mptcp.toml",
    "netfilter.toml",
    "other-net.toml",
    "removed.toml",
    "system.toml",
    "tcp.toml",
];

/// Why data is no catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {knob}{what}")]
pub struct LoadError {
    /// The data file.
    pub file: String,
    /// The knob and `: `, where it is about one.
    knob: String,
    /// What is wrong.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    group: Group,
    #[serde(default)]
    knob: BTreeMap<String, Entry>,
}

/// What knobs of a file have where they don't say otherwise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    importance: Importance,
    scope: ScopeText,
    source: String,
    module: Option<String>,
    since: Option<KernelVersion>,
    until: Option<KernelVersion>,
}

#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum ScopeText {
    Always(Scope),
    ByVersion(Vec<ScopeFrom>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum DefaultText {
    Always(String),
    ByVersion(Vec<Default>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ArityText {
    Exactly(u8),
    Between([u8; 2]),
}

/// The C type behind a number, which bounds it where nothing else does.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum CType {
    Bool,
    U8,
    Int,
    Uint,
    Ulong,
    /// Seconds that the kernel keeps in ticks: how many fit depends on how long a tick is.
    Jiffies,
}

impl CType {
    fn bounds(self) -> (i64, i64) {
        match self {
            Self::Bool => (0, 1),
            Self::U8 => (0, 255),
            Self::Int => (i32::MIN.into(), i32::MAX.into()),
            Self::Uint => (0, u32::MAX.into()),
            Self::Ulong => (0, i64::MAX),
            // i32::MAX ticks of 10 ms, the longest there are.
            Self::Jiffies => (-21_474_836, 21_474_836),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    importance: Option<Importance>,
    kind: Kind,
    arity: Option<ArityText>,
    r#type: Option<CType>,
    min: Option<i64>,
    max: Option<i64>,
    range: Option<Vec<Range>>,
    out_of_range: Option<OutOfRange>,
    #[serde(default)]
    choices: Vec<Choice>,
    default: Option<DefaultText>,
    default_note: Option<String>,
    scope: Option<ScopeText>,
    access: Option<Access>,
    module: Option<String>,
    since: Option<KernelVersion>,
    until: Option<KernelVersion>,
    only_in: Option<String>,
    what: String,
    change: Option<Advice>,
    risk: Option<String>,
    #[serde(default)]
    ignored: Vec<Ignored>,
    popular: Option<Popular>,
    source: Option<String>,
}

/// Reads data files into a catalogue and checks each knob.
pub(super) fn load(files: &[(&str, &str)]) -> Result<Catalogue, LoadError> {
    let mut knobs = Vec::new();
    for (file, text) in files {
        let error = |knob: &str, what: String| LoadError {
            file: (*file).to_owned(),
            knob: if knob.is_empty() { String::new() } else { format!("{knob}: ") },
            what,
        };
        let read: File = toml::from_str(text).map_err(|e| error("", e.to_string()))?;
        for (name, entry) in read.knob {
            let knob = entry.into_knob(name, &read.group);
            check(&knob).map_err(|what| error(&knob.name, what.to_owned()))?;
            knobs.push(knob);
        }
    }
    knobs.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = knobs.windows(2).find(|pair| pair[0].name == pair[1].name) {
        let what = "it stands in two data files".to_owned();
        return Err(LoadError { file: "data".to_owned(), knob: format!("{}: ", pair[0].name), what });
    }
    let mut exact = HashMap::new();
    let mut patterns = Vec::new();
    for (index, knob) in knobs.iter().enumerate() {
        if knob.is_pattern() {
            patterns.push(index);
        } else {
            exact.insert(knob.name.replace('.', "/"), index);
        }
    }
    // `sunrpc.rdma_*` is looked at before `sunrpc.*` would be.
    patterns.sort_by_key(|&index: &usize| std::cmp::Reverse(knobs[index].name.len()));
    let letters = knobs.iter().map(|knob| super::look_up::count_letters(&knob.name)).collect();
    Ok(Catalogue { knobs, exact, patterns, letters })
}

impl Entry {
    fn into_knob(self, name: String, group: &Group) -> Knob {
        let range = match (self.range, self.r#type, self.min, self.max) {
            (Some(range), ..) => range,
            (None, None, None, None) => Vec::new(),
            (None, r#type, min, max) => {
                let (least, most) = r#type.unwrap_or(CType::Int).bounds();
                vec![Range { min: min.unwrap_or(least), max: max.unwrap_or(most), since: None, until: None }]
            }
        };
        let scope = match self.scope.unwrap_or_else(|| group.scope.clone()) {
            ScopeText::Always(scope) => vec![ScopeFrom { scope, since: None }],
            ScopeText::ByVersion(scopes) => scopes,
        };
        let default = match self.default {
            None => Vec::new(),
            Some(DefaultText::Always(value)) => vec![Default { value, since: None, until: None }],
            Some(DefaultText::ByVersion(defaults)) => defaults,
        };
        let arity = match self.arity {
            None if self.kind == Kind::PortRange => (2, 2),
            None => (1, 1),
            Some(ArityText::Exactly(n)) => (n, n),
            Some(ArityText::Between([least, most])) => (least, most),
        };
        Knob {
            name,
            importance: self.importance.unwrap_or(group.importance),
            kind: self.kind,
            arity,
            range,
            out_of_range: self.out_of_range.unwrap_or(OutOfRange::Refused),
            choices: self.choices,
            default,
            default_note: self.default_note,
            scope,
            access: self.access.unwrap_or(Access::ReadWrite),
            module: self.module.or_else(|| group.module.clone()),
            since: self.since.or(group.since),
            until: self.until.or(group.until),
            only_in: self.only_in,
            what: self.what,
            change: self.change,
            risk: self.risk,
            ignored: self.ignored,
            popular: self.popular,
            source: self.source.unwrap_or_else(|| group.source.clone()),
        }
    }
}

/// What no knob may have: a mistake in the data.
fn check(knob: &Knob) -> Result<(), &'static str> {
    let inside = |value: &str, range: &Range| {
        value.split_whitespace().all(|v| v.parse().is_ok_and(|n: i64| (range.min..=range.max).contains(&n)))
    };
    let fields = |value: &str| value.split_whitespace().count();
    let rules: [(bool, &'static str); 9] = [
        (knob.name.matches('*').count() > 1, "more than one `*`"),
        (knob.range.iter().any(|r| r.min > r.max), "a range ends before it starts"),
        (knob.scope.is_empty() || knob.scope[0].since.is_some(), "the first scope holds since always"),
        (knob.scope.windows(2).any(|pair| pair[0].since >= pair[1].since), "scopes come in the order of versions"),
        (knob.since.zip(knob.until).is_some_and(|(since, until)| since >= until), "it is gone before it is there"),
        (knob.what.is_empty() || !knob.what.ends_with('.'), "`what` is a sentence"),
        (knob.arity.0 > knob.arity.1 || knob.arity.1 == 0, "an arity of nothing"),
        (matches!(knob.kind, Kind::Choice | Kind::Bits) && knob.choices.is_empty(), "no choices"),
        (
            knob.kind.is_numeric()
                && knob.default.iter().any(|d| {
                    let inside_all = knob.range.iter().filter(|r| overlap(r, d)).all(|r| inside(&d.value, r));
                    !inside_all || fields(&d.value) > usize::from(knob.arity.1)
                }),
            "the default is outside the range, or has too many fields",
        ),
    ];
    rules.iter().find(|(wrong, _)| *wrong).map_or(Ok(()), |(_, what)| Err(what))
}

/// Whether some version has both this range and this default.
fn overlap(range: &Range, default: &Default) -> bool {
    let before = |until: Option<KernelVersion>, since: Option<KernelVersion>| {
        until.zip(since).is_some_and(|(until, since)| until <= since)
    };
    !before(range.until, default.since) && !before(default.until, range.since)
}
