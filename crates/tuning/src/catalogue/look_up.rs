//! From a key as somebody wrote it to a knob.

use super::{Catalogue, Knob};
use crate::kernel::KernelVersion;
use crate::key::Key;

/// A knob that was looked up.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'c> {
    /// What is known about it.
    pub knob: &'c Knob,
    /// What stands in the place of `*`: an interface, `all` or `default`.
    pub instance: Option<String>,
    /// The key as it should be written. Differs from what was asked for where an interface with a dot in its name
    /// (`net.ipv4.conf.eth0.100.rp_filter`) was written so that no tool finds it.
    pub key: Key,
}

/// A name close to one that isn't known.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest<'c> {
    /// The knob.
    pub knob: &'c Knob,
    /// The key to write: the pattern's `*` filled in as it was in the misspelt key.
    pub key: String,
    /// How many characters differ.
    pub distance: usize,
}

/// Places of common slips that many edits part from the right name: what was written, what was meant.
const OTHER_NAMES: [(&str, &str); 14] = [
    ("net.core.rmem", "net.core.rmem_max"),
    ("net.core.wmem", "net.core.wmem_max"),
    ("net.core.qdisc", "net.core.default_qdisc"),
    ("net.core.backlog", "net.core.netdev_max_backlog"),
    ("net.core.tcp_congestion_control", "net.ipv4.tcp_congestion_control"),
    ("net.ipv4.default_qdisc", "net.core.default_qdisc"),
    ("net.ipv4.congestion_control", "net.ipv4.tcp_congestion_control"),
    ("net.ipv4.somaxconn", "net.core.somaxconn"),
    ("net.ipv4.rmem_max", "net.core.rmem_max"),
    ("net.ipv4.wmem_max", "net.core.wmem_max"),
    ("net.ipv4.netdev_max_backlog", "net.core.netdev_max_backlog"),
    ("net.ipv4.port_range", "net.ipv4.ip_local_port_range"),
    ("net.ipv4.max_syn_backlog", "net.ipv4.tcp_max_syn_backlog"),
    ("net.ipv6.ip_forward", "net.ipv6.conf.all.forwarding"),
];

/// More than this many edits are no slip, however long the name.
const MOST_SLIPS: usize = 5;

impl Catalogue {
    /// The knob of a key in either notation, per-interface names resolved. `None`: not known.
    pub fn lookup(&self, key: &str) -> Option<Found<'_>> {
        self.lookup_key(&Key::parse(key).ok()?)
    }

    /// The same for a key that is parsed already.
    pub fn lookup_key(&self, key: &Key) -> Option<Found<'_>> {
        if let Some(&index) = self.exact.get(key.path()) {
            return Some(Found { knob: &self.knobs[index], instance: None, key: key.clone() });
        }
        self.patterns.iter().map(|&index| &self.knobs[index]).find_map(|knob| {
            let instance = matched(&knob.name, key)?;
            let path = knob.name.replace('.', "/").replacen('*', &instance, 1);
            let key = Key::parse(&path).ok()?;
            Some(Found { knob, instance: Some(instance), key })
        })
    }

    /// The known name nearest to a misspelt one, where one is near enough to be meant.
    pub fn nearest(&self, key: &str) -> Option<Nearest<'_>> {
        let key = Key::parse(key).map_or_else(|_| key.to_owned(), |key| key.to_string()).to_lowercase();
        // One slip in six characters, and one more: long common prefixes make everything look alike.
        let allowed = (1 + key.chars().count() / 8).min(MOST_SLIPS);
        let other = OTHER_NAMES.iter().find(|(written, _)| *written == key).and_then(|(_, meant)| {
            let found = self.lookup(meant)?;
            Some(Nearest { knob: found.knob, key: (*meant).to_owned(), distance: strsim::osa_distance(&key, meant) })
        });
        other.or_else(|| {
            // The distance of two names costs much; most are ruled out by letters that an edit each would have to bring.
            let letters = count_letters(&key);
            let near = self.knobs.iter().zip(&self.letters).filter(|(_, of)| missing(of, &letters) <= allowed);
            let length = key.chars().count();
            let candidates = near.filter_map(|(knob, _)| {
                let name = filled_in(&knob.name, &key);
                let is_near = name.chars().count().abs_diff(length) <= allowed;
                is_near.then(|| Nearest { knob, distance: strsim::osa_distance(&key, &name), key: name })
            });
            candidates.filter(|n| n.distance <= allowed).min_by_key(|n| (n.distance, n.knob.importance))
        })
    }

    /// The knob, where it is known and kernel `version` no longer has it.
    pub fn is_removed(&self, key: &str, version: KernelVersion) -> Option<Found<'_>> {
        self.lookup(key).filter(|found| found.knob.until.is_some_and(|until| until <= version))
    }
}

/// How often each letter of a name occurs, `*` left out; letters are taken together by their lowest five bits.
pub(super) fn count_letters(name: &str) -> [u8; 32] {
    let mut counts = [0_u8; 32];
    for c in name.chars().filter(|c| *c != '*') {
        let count = &mut counts[c as usize % 32];
        *count = count.saturating_add(1);
    }
    counts
}

/// How many letters of a name a key doesn't have: no edit brings more than one.
fn missing(name: &[u8; 32], key: &[u8; 32]) -> usize {
    name.iter().zip(key).map(|(name, key)| usize::from(name.saturating_sub(*key))).sum()
}

/// What the `*` of `pattern` (dotted) stands for in `key`; several components count as one with dots in it.
fn matched(pattern: &str, key: &Key) -> Option<String> {
    let (before, after) = pattern.split_once('*')?;
    let path = key.path();
    let same = |(dotted, text): (u8, u8)| dotted == text || (dotted == b'.' && text == b'/');
    let inside = |dotted: &str, text: &str| dotted.len() == text.len() && dotted.bytes().zip(text.bytes()).all(same);
    let middle_end = path.len().checked_sub(after.len())?;
    if middle_end <= before.len() || !path.is_char_boundary(before.len()) || !path.is_char_boundary(middle_end) {
        return None;
    }
    let middle = &path[before.len()..middle_end];
    let fits = inside(before, &path[..before.len()]) && inside(after, &path[middle_end..]);
    // `net.ipv4.conf.eth0.100.rp_filter`: no file of that name exists, but it is clear what was meant.
    fits.then(|| middle.replace('/', "."))
}

/// `pattern` with `*` replaced by the component that stands in its place in `key`.
fn filled_in(pattern: &str, key: &str) -> String {
    match pattern.split_once('*') {
        None => pattern.to_owned(),
        Some((before, _)) => {
            let at = before.matches('.').count();
            let instance = key.split('.').nth(at).filter(|part| !part.is_empty()).unwrap_or("all");
            pattern.replacen('*', instance, 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &str) -> Option<(&'static str, Option<String>, String)> {
        let found = Catalogue::builtin().lookup(key)?;
        Some((found.knob.name.as_str(), found.instance, found.key.to_string()))
    }

    #[test]
    fn a_key_is_found_in_both_notations() {
        for key in ["net.ipv4.tcp_rmem", "net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"] {
            assert_eq!(name(key), Some(("net.ipv4.tcp_rmem", None, "net.ipv4.tcp_rmem".to_owned())), "{key}");
        }
        for key in ["net.ipv4.tcp_rmen", "net.ipv4", "net.ipv4.tcp_rmem.x", "", "net.ipv4.conf.rp_filter"] {
            assert_eq!(name(key), None, "{key}");
        }
    }

    #[test]
    fn interfaces_with_dots_are_found_and_the_right_spelling_given() {
        let pattern = "net.ipv4.conf.*.rp_filter";
        for (key, instance, right) in [
            ("net.ipv4.conf.eth0.rp_filter", "eth0", "net.ipv4.conf.eth0.rp_filter"),
            ("net.ipv4.conf.eth0/100.rp_filter", "eth0.100", "net.ipv4.conf.eth0/100.rp_filter"),
            ("net/ipv4/conf/eth0.100/rp_filter", "eth0.100", "net.ipv4.conf.eth0/100.rp_filter"),
            ("net.ipv4.conf.eth0.100.rp_filter", "eth0.100", "net.ipv4.conf.eth0/100.rp_filter"),
        ] {
            assert_eq!(name(key), Some((pattern, Some(instance.to_owned()), right.to_owned())), "{key}");
        }
    }

    #[test]
    fn a_misspelt_key_finds_its_neighbour_and_a_foreign_one_none() {
        let near = |key: &str| Catalogue::builtin().nearest(key).map(|n| n.key);
        for (key, meant) in [
            ("net.ipv4.tcp_rmen", Some("net.ipv4.tcp_rmem")),
            ("net.ipv4.rmem_max", Some("net.core.rmem_max")),
            ("net.ipv4.conf.eth0.rp_filtr", Some("net.ipv4.conf.eth0.rp_filter")),
            ("Net.Core.rmem_Max", Some("net.core.rmem_max")),
            ("net.banana.split", None),
        ] {
            assert_eq!(near(key).as_deref(), meant, "{key}");
        }
    }

    #[test]
    fn a_removed_knob_is_removed_only_where_it_is() {
        let catalogue = Catalogue::builtin();
        let key = "net.ipv4.tcp_tw_recycle";
        assert!(catalogue.is_removed(key, KernelVersion::new(6, 1)).is_some());
        assert!(catalogue.is_removed(key, KernelVersion::new(4, 11)).is_none());
        assert!(catalogue.is_removed("net.ipv4.tcp_rmem", KernelVersion::new(6, 1)).is_none());
    }
}
