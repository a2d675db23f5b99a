//! Strict reading of TOML tables: every key known, every value of its type, every problem with its place.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use units::{Bytes, Duration, Probability, Rate};

use crate::QueueSpec;
use crate::check::Complaint;
use crate::error::{Position, Problem, Reason, ScenarioError, quoted};
use crate::suggest::{hint, nearest};

/// What has been found wrong so far, and where everything stands that could still turn out wrong.
pub(super) struct Notes<'t> {
    origin: &'t str,
    text: &'t str,
    problems: Vec<Problem>,
    /// Offset in the text of each value, by its path (`path.loss[1]`).
    places: BTreeMap<String, usize>,
}

impl<'t> Notes<'t> {
    pub(super) fn new(origin: &'t str, text: &'t str) -> Self {
        Self { origin, text, problems: Vec::new(), places: BTreeMap::new() }
    }

    /// Notes `reason` at the byte `offset`.
    pub(super) fn problem(&mut self, offset: usize, reason: Reason) {
        let position = Some(Position::of(self.text, offset));
        self.problems.push(Problem { origin: self.origin.to_owned(), position, reason });
    }

    /// Notes problems that were found in another file.
    pub(super) fn problems_elsewhere(&mut self, error: &ScenarioError) {
        self.problems.extend_from_slice(error.problems());
    }

    /// Notes a complaint about a finished scenario where its value stands, or else the nearest table around it.
    pub(super) fn complain(&mut self, complaint: &Complaint) {
        let mut place = complaint.place.as_str();
        let offset = loop {
            match self.places.get(place) {
                Some(offset) => break Some(*offset),
                None => match place.rfind(['.', '[']) {
                    Some(end) => place = &place[..end],
                    None => break None,
                },
            }
        };
        let position = offset.map(|offset| Position::of(self.text, offset));
        let reason = Reason::Impossible(complaint.sentence.clone());
        self.problems.push(Problem { origin: self.origin.to_owned(), position, reason });
    }

    /// All problems in the order of the text, if there are any.
    pub(super) fn take_error(&mut self) -> Option<ScenarioError> {
        let mut problems = std::mem::take(&mut self.problems);
        problems.sort_by_key(|problem| (problem.origin != self.origin, problem.position));
        problems.dedup();
        (!problems.is_empty()).then(|| ScenarioError::new(problems))
    }
}

/// A text that stands for a value of this type.
pub(super) trait Quantity: FromStr<Err: Display> {
    /// With its article, for "write …".
    const WHAT: &'static str;
}

impl Quantity for Duration {
    const WHAT: &'static str = "a time in quotes, such as \"80ms\"";
}
impl Quantity for Rate {
    const WHAT: &'static str = "a rate in quotes, such as \"200mbit\"";
}
impl Quantity for Bytes {
    const WHAT: &'static str = "a size in quotes, such as \"250kB\"";
}
impl Quantity for Probability {
    const WHAT: &'static str = "a probability in quotes, such as \"1.5%\"";
}
impl Quantity for QueueSpec {
    const WHAT: &'static str = "a queue size in quotes, such as \"1bdp\"";
}

/// One table, its unknown keys already noted.
pub(super) struct Section<'s, 'i> {
    table: &'s DeTable<'i>,
    /// Where its keys stand, as people say it: `in [path]`.
    heading: String,
    /// For places: `path`; empty at the top.
    path: String,
    /// Where it starts.
    offset: usize,
    /// Its unknown keys.
    unknown: Vec<&'s str>,
}

/// One value with its name and place.
pub(super) struct Item<'s, 'i> {
    value: &'s DeValue<'i>,
    key: String,
    pub(super) path: String,
    pub(super) offset: usize,
}

impl<'s, 'i> Section<'s, 'i> {
    pub(super) fn open(
        notes: &mut Notes<'_>,
        table: &'s DeTable<'i>,
        heading: &str,
        path: &str,
        offset: usize,
        known: &[&str],
    ) -> Self {
        let heading = if path.is_empty() { heading.to_owned() } else { format!("in {heading}") };
        let mut unknown = Vec::new();
        for key in table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                let reason = Reason::UnknownKey {
                    key: quoted(key.get_ref()),
                    section: heading.clone(),
                    hint: hint(key.get_ref(), known),
                };
                notes.problem(key.span().start, reason);
                unknown.push(key.get_ref().as_ref());
            }
        }
        if !path.is_empty() {
            notes.places.insert(path.to_owned(), offset);
        }
        Self { table, heading, path: path.to_owned(), offset, unknown }
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(super) fn item(&self, notes: &mut Notes<'_>, key: &str) -> Option<Item<'s, 'i>> {
        let value = self.table.get(key)?;
        let (path, offset) = (self.path_of(key), value.span().start);
        notes.places.insert(path.clone(), offset);
        Some(Item { value: value.get_ref(), key: key.to_owned(), path, offset })
    }

    /// As `item`, and notes its absence.
    pub(super) fn required(&self, notes: &mut Notes<'_>, key: &'static str) -> Option<Item<'s, 'i>> {
        let item = self.item(notes, key);
        if item.is_none() {
            self.missing(notes, key);
        }
        item
    }

    /// Notes that `key` is missing, unless it is there under a misspelt name that has been noted.
    pub(super) fn missing(&self, notes: &mut Notes<'_>, key: &'static str) {
        if self.unknown.iter().any(|name| nearest(name, &[key]).is_some()) {
            return;
        }
        notes.problem(self.offset, Reason::MissingKey { key, section: self.heading.clone() });
    }

    pub(super) fn text(&self, notes: &mut Notes<'_>, key: &str) -> Option<&'s str> {
        self.item(notes, key)?.text(notes, "a text in quotes")
    }

    /// Empty where it is missing, which has then been noted.
    pub(super) fn required_text(&self, notes: &mut Notes<'_>, key: &'static str) -> String {
        self.required(notes, key).and_then(|item| item.text(notes, "a text in quotes")).unwrap_or_default().to_owned()
    }

    pub(super) fn quantity<T: Quantity>(&self, notes: &mut Notes<'_>, key: &str) -> Option<T> {
        self.item(notes, key)?.quantity(notes)
    }

    pub(super) fn integer<T: TryFrom<u64>>(&self, notes: &mut Notes<'_>, key: &str) -> Option<T> {
        self.item(notes, key)?.integer(notes)
    }

    pub(super) fn boolean(&self, notes: &mut Notes<'_>, key: &str) -> Option<bool> {
        let item = self.item(notes, key)?;
        let boolean = item.value.as_bool();
        if boolean.is_none() {
            item.wrong_type(notes, "true or false");
        }
        boolean
    }

    pub(super) fn table(
        &self,
        notes: &mut Notes<'_>,
        key: &str,
        heading: &str,
        known: &[&str],
    ) -> Option<Section<'s, 'i>> {
        self.item(notes, key)?.table(notes, heading, known, heading)
    }

    /// The tables of `[[key]]`, with no keys checked yet: which are known may depend on one of them.
    pub(super) fn tables(&self, notes: &mut Notes<'_>, key: &str) -> Vec<Item<'s, 'i>> {
        let Some(item) = self.item(notes, key) else { return Vec::new() };
        let Some(array) = item.value.as_array() else {
            item.wrong_type(notes, &format!("[[{key}]] above it"));
            return Vec::new();
        };
        item.elements(notes, array)
    }

    /// All values of the table in the order of the text; tables inside are flattened, their keys joined by dots.
    pub(super) fn flattened(&self, notes: &mut Notes<'_>) -> Vec<Item<'s, 'i>> {
        let mut items = Vec::new();
        flatten(notes, self.table, "", &self.path, &mut items);
        items.sort_by_key(|item| item.offset);
        items
    }
}

fn flatten<'s, 'i>(
    notes: &mut Notes<'_>,
    table: &'s DeTable<'i>,
    prefix: &str,
    section: &str,
    items: &mut Vec<Item<'s, 'i>>,
) {
    for (key, value) in table {
        let key_path =
            if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        match value.get_ref() {
            DeValue::Table(inner) => flatten(notes, inner, &key_path, section, items),
            other => {
                let (path, offset) = (format!("{section}.{key_path}"), key.span().start);
                notes.places.insert(path.clone(), offset);
                items.push(Item { value: other, key: key_path, path, offset });
            }
        }
    }
}

impl<'s, 'i> Item<'s, 'i> {
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn value(&self) -> &'s DeValue<'i> {
        self.value
    }

    pub(super) fn wrong_type(&self, notes: &mut Notes<'_>, expected: &str) {
        let found = match self.value {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time of day",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        notes.problem(self.offset, Reason::WrongType { key: self.key.clone(), found, expected: expected.to_owned() });
    }

    /// Notes that the text of this value is not what it should be.
    pub(super) fn bad(&self, notes: &mut Notes<'_>, text: &str, why: impl Display) {
        let text = if matches!(self.value, DeValue::String(_)) { quoted(text) } else { text.to_owned() };
        let reason = Reason::Quantity { key: self.key.clone(), text, why: why.to_string() };
        notes.problem(self.offset, reason);
    }

    pub(super) fn text(&self, notes: &mut Notes<'_>, expected: &str) -> Option<&'s str> {
        let text = match self.value {
            DeValue::String(text) => Some(text.as_ref()),
            _ => None,
        };
        if text.is_none() {
            self.wrong_type(notes, expected);
        }
        text
    }

    pub(super) fn quantity<T: Quantity>(&self, notes: &mut Notes<'_>) -> Option<T> {
        let text = self.text(notes, T::WHAT)?;
        match text.parse() {
            Ok(quantity) => Some(quantity),
            Err(why) => {
                self.bad(notes, text, why);
                None
            }
        }
    }

    /// One value, or a list of them.
    pub(super) fn quantities<T: Quantity>(&self, notes: &mut Notes<'_>) -> Option<Vec<T>> {
        match self.value {
            DeValue::Array(array) => self.elements(notes, array).iter().map(|item| item.quantity(notes)).collect(),
            _ => Some(vec![self.quantity(notes)?]),
        }
    }

    /// A whole number that fits `T`.
    pub(super) fn integer<T: TryFrom<u64>>(&self, notes: &mut Notes<'_>) -> Option<T> {
        let DeValue::Integer(integer) = self.value else {
            self.wrong_type(notes, "a whole number without quotes");
            return None;
        };
        // TOML's own underscores and prefixes are already out of the text.
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok().and_then(|n| T::try_from(n).ok());
        if number.is_none() {
            let largest = match size_of::<T>() {
                2 => u64::from(u16::MAX),
                4 => u64::from(u32::MAX),
                _ => u64::MAX,
            };
            self.bad(notes, &integer.to_string(), format!("a whole number from 0 to {largest} is needed here"));
        }
        number
    }

    pub(super) fn table(
        &self,
        notes: &mut Notes<'_>,
        heading: &str,
        known: &[&str],
        expected: &str,
    ) -> Option<Section<'s, 'i>> {
        match self.value {
            DeValue::Table(table) => Some(Section::open(notes, table, heading, &self.path, self.offset, known)),
            _ => {
                self.wrong_type(notes, expected);
                None
            }
        }
    }

    /// The elements of a list, each with its own place.
    pub(super) fn elements(&self, notes: &mut Notes<'_>, array: &'s DeArray<'i>) -> Vec<Item<'s, 'i>> {
        let item = |(index, value): (usize, &'s Spanned<DeValue<'i>>)| {
            let (path, offset) = (format!("{}[{index}]", self.path), value.span().start);
            notes.places.insert(path.clone(), offset);
            Item { value: value.get_ref(), key: self.key.clone(), path, offset }
        };
        array.iter().enumerate().map(item).collect()
    }
}
