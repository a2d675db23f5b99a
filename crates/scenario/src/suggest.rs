//! The nearest known name to one that is not known.

use crate::error::quoted;

/// Words other tools use for a key, and the key's name here.
const SYNONYMS: [(&str, &str); 17] = [
    ("buffer", "queue"),
    ("limit", "queue"),
    ("bandwidth", "rate"),
    ("bw", "rate"),
    ("delay", "rtt"),
    ("latency", "rtt"),
    ("packet_loss", "loss"),
    ("burst_length", "mean_burst"),
    ("cc", "congestion_control"),
    ("control", "congestion_control"),
    ("algorithm", "congestion_control"),
    ("sysctls", "sysctl"),
    ("repeat", "repeats"),
    ("runs", "repeats"),
    ("time", "duration"),
    ("size", "bytes"),
    ("flows", "flow"),
];

/// The one of `known` that was probably meant by `name`.
pub(crate) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // One slip in four characters, and one more: "bufer", "congestion_controll", "fqcodel".
    let allowed = 1 + name.chars().count() / 4;
    let synonyms = SYNONYMS.iter().filter_map(|(word, key)| {
        known.iter().find(|candidate| *candidate == key).map(|candidate| (*word, *candidate))
    });
    known
        .iter()
        .map(|candidate| (*candidate, *candidate))
        .chain(synonyms)
        .map(|(word, target)| (strsim::osa_distance(&name.to_lowercase(), &word.to_lowercase()), target))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, target)| target)
}

/// `did you mean "x"?`, or the whole list where nothing is near.
pub(crate) fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("did you mean {}?", quoted(near)),
        None => format!("known are {}", known.iter().map(|k| quoted(k)).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_the_name_and_another_word_does_not() {
        let known = ["rate", "rtt", "loss", "queue", "congestion_control"];
        assert_eq!(nearest("qeue", &known), Some("queue"));
        assert_eq!(nearest("congestion_controll", &known), Some("congestion_control"));
        assert_eq!(nearest("Rate", &known), Some("rate"));
        assert_eq!(nearest("banana", &known), None);
    }

    #[test]
    fn a_word_of_another_tool_finds_ours_only_where_ours_is_known() {
        assert_eq!(nearest("bufer", &["rate", "queue"]), Some("queue"));
        assert_eq!(nearest("cc", &["name", "congestion_control"]), Some("congestion_control"));
        assert_eq!(nearest("bufer", &["rate", "mtu"]), None);
    }
}
