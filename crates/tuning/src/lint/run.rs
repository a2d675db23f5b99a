//! The state of one run over the rules.

use std::collections::HashMap;

use crate::catalogue::Catalogue;
use crate::files::{Document, Means, Setting, Span};

use super::finding::{Edit, Finding, Fix};
use super::item::Item;
use super::rule::Rule;
use super::{Surroundings, Target};

pub(super) struct Run<'a> {
    pub(super) documents: &'a [Document],
    pub(super) target: &'a Target,
    pub(super) surroundings: &'a Surroundings,
    pub(super) catalogue: &'a Catalogue,
    pub(super) items: Vec<Item<'a>>,
    /// For each document the index of its first item.
    starts: Vec<usize>,
    /// Items by group and key.
    by_key: HashMap<(usize, String), Vec<usize>>,
    pub(super) findings: Vec<Finding>,
    /// For each item, whether something was said about it.
    told: Vec<bool>,
    /// For each item, whether another line takes its place: what it would do does not matter.
    loses: Vec<bool>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        documents: &'a [Document],
        target: &'a Target,
        surroundings: &'a Surroundings,
        catalogue: &'a Catalogue,
    ) -> Self {
        let groups = groups(documents);
        let mut items = Vec::new();
        let mut starts = Vec::new();
        let mut by_key: HashMap<(usize, String), Vec<usize>> = HashMap::new();
        for (index, document) in documents.iter().enumerate() {
            starts.push(items.len());
            for setting in &document.settings {
                let item = Item::new(index, groups[index], document, setting, catalogue);
                by_key.entry((item.group, item.key.clone())).or_default().push(items.len());
                items.push(item);
            }
        }
        let told = vec![false; items.len()];
        let loses = told.clone();
        Self { documents, target, surroundings, catalogue, items, starts, by_key, findings: Vec::new(), told, loses }
    }

    /// Calls `check` with each item. The items can't change meanwhile, the findings can.
    pub(super) fn each(&mut self, mut check: impl FnMut(&mut Self, usize, &Item<'a>)) {
        let items = std::mem::take(&mut self.items);
        for (index, item) in items.iter().enumerate() {
            check(self, index, item);
        }
        self.items = items;
    }

    /// The same without items that another line takes the place of.
    pub(super) fn each_in_force(&mut self, mut check: impl FnMut(&mut Self, usize, &Item<'a>)) {
        self.each(|run, index, item| {
            if !run.loses[index] {
                check(run, index, item);
            }
        });
    }

    /// Another line takes the item's place.
    pub(super) fn mark_as_lost(&mut self, index: usize) {
        self.loses[index] = true;
    }

    /// Calls `check` with the items of each key that is set more than once in a group.
    pub(super) fn each_group(&mut self, items: &[Item<'a>], mut check: impl FnMut(&mut Self, &[usize])) {
        let by_key = std::mem::take(&mut self.by_key);
        let mut groups: Vec<&Vec<usize>> = by_key.values().filter(|group| group.len() > 1).collect();
        groups.sort();
        debug_assert!(groups.iter().flat_map(|g| g.iter()).all(|i| *i < items.len()));
        for group in groups {
            check(self, group);
        }
        self.by_key = by_key;
    }

    /// Items of a key in the same group.
    pub(super) fn with_key(&self, group: usize, key: &str) -> &[usize] {
        self.by_key.get(&(group, key.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// The setting of an item, and its document; also while checks run.
    pub(super) fn place(&self, index: usize) -> Option<(usize, &'a Setting)> {
        let document = self.starts.partition_point(|start| *start <= index).checked_sub(1)?;
        // Documents without settings start where the next one does.
        let setting = self.documents[document].settings.get(index - self.starts[document])?;
        Some((document, setting))
    }

    /// Whether a key is set in the group.
    pub(super) fn sets(&self, group: usize, key: &str) -> bool {
        !self.with_key(group, key).is_empty()
    }

    /// Says something about a part of a document.
    pub(super) fn say_at(
        &mut self,
        rule: &'static Rule,
        document: usize,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.findings.push(Finding {
            rule,
            severity: rule.severity,
            document,
            span,
            key: None,
            message: message.into(),
            help: None,
            related: Vec::new(),
            fix: None,
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// Says something about an item's value.
    pub(super) fn say(
        &mut self,
        rule: &'static Rule,
        index: usize,
        item: &Item<'_>,
        message: impl Into<String>,
    ) -> &mut Finding {
        let span = if item.setting.value_span.is_empty() { item.setting.span } else { item.setting.value_span };
        self.say_about(rule, index, item, span, message)
    }

    /// Says something about a part of an item.
    pub(super) fn say_about(
        &mut self,
        rule: &'static Rule,
        index: usize,
        item: &Item<'_>,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Finding {
        self.told[index] = true;
        let finding = self.say_at(rule, item.document, span, message);
        finding.key = Some(item.key.clone());
        finding
    }

    /// Whether something was said about an item already.
    pub(super) fn is_told(&self, index: usize) -> bool {
        self.told[index]
    }

    /// A document's text.
    pub(super) fn text(&self, document: usize) -> &'a str {
        self.documents[document].source.text()
    }

    /// A fix that takes an item's line out; `None` where other text shares the line or the line is part of a structure.
    pub(super) fn removal(&self, item: &Item<'_>) -> Option<Fix> {
        if !matches!(item.setting.means, Means::File | Means::Written { .. }) {
            return None;
        }
        let source = &self.documents[item.document].source;
        let line = source.line(source.position(item.setting.span.start).line);
        let is_alone = line.of(source.text()).trim() == item.setting.span.of(source.text()).trim();
        is_alone.then(|| Fix {
            title: "take the line out".to_owned(),
            edits: vec![Edit { span: line, text: String::new() }],
        })
    }
}

/// Which documents are applied together: those in the settings directories of one system, and those in one directory.
fn groups(documents: &[Document]) -> Vec<usize> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let group = |document: &Document| -> String {
        let folder = document.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        const OF_A_SYSTEM: [&str; 7] = [
            "/etc/sysctl.d",
            "/run/sysctl.d",
            "/usr/local/lib/sysctl.d",
            "/usr/lib/sysctl.d",
            "/lib/sysctl.d",
            "/etc/ufw",
            "/etc",
        ];
        OF_A_SYSTEM.iter().find_map(|known| folder.strip_suffix(known)).unwrap_or(folder).to_owned()
    };
    let keys: Vec<String> = documents.iter().map(group).collect();
    let mut numbers = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        // Scripts, playbooks and profiles are systems of their own.
        let is_settings = matches!(documents[index].format, crate::files::Format::SysctlD | crate::files::Format::Ufw);
        let next = documents.len() + index;
        numbers.push(if is_settings { *seen.entry(key).or_insert(index) } else { next });
    }
    numbers
}
