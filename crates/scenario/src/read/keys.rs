//! Every key of the format, by table. What is not here is refused; what is here stands in `docs/scenarios.md`.

pub(super) const TOP: &[&str] = &["name", "title", "about", "path", "flow", "profile", "sysctl", "run", "published"];

pub(super) const PATH: &[&str] = &[
    "rate",
    "rtt",
    "loss",
    "mean_burst",
    "queue",
    "mtu",
    "overhead",
    "jitter",
    "reorder",
    "duplicate",
    "aqm",
    "ecn",
    "mark_above",
    "policer",
    "back",
];

pub(super) const BACK: &[&str] = &[
    "rate",
    "loss",
    "mean_burst",
    "queue",
    "overhead",
    "jitter",
    "reorder",
    "duplicate",
    "aqm",
    "ecn",
    "mark_above",
    "policer",
];

pub(super) const RATE: &[&str] = &["steps", "trace"];
pub(super) const LOSS: &[&str] = &["every", "offset", "packets"];
pub(super) const REORDER: &[&str] = &["probability", "advance"];
pub(super) const POLICER: &[&str] = &["rate", "burst"];
pub(super) const AQM: &[&str] =
    &["kind", "target", "interval", "buckets", "quantum", "min", "max", "max_probability", "weight_shift"];
pub(super) const AQM_DROP_TAIL: &[&str] = &["kind"];
pub(super) const AQM_CODEL: &[&str] = &["kind", "target", "interval"];
pub(super) const AQM_FQ_CODEL: &[&str] = &["kind", "target", "interval", "buckets", "quantum"];
pub(super) const AQM_RED: &[&str] = &["kind", "min", "max", "max_probability", "weight_shift"];

pub(super) const FLOW: &[&str] = &[
    "label",
    "count",
    "kind",
    "bytes",
    "request",
    "response",
    "pause",
    "congestion_control",
    "rtt",
    "start",
    "stagger",
    "duration",
];
pub(super) const FLOW_BULK: &[&str] =
    &["label", "count", "kind", "bytes", "congestion_control", "rtt", "start", "stagger", "duration"];
pub(super) const FLOW_REQUEST_RESPONSE: &[&str] = &[
    "label",
    "count",
    "kind",
    "request",
    "response",
    "pause",
    "congestion_control",
    "rtt",
    "start",
    "stagger",
    "duration",
];

pub(super) const PROFILE: &[&str] = &["name", "congestion_control", "sysctl"];
pub(super) const RUN: &[&str] = &["duration", "warmup", "repeats", "seed"];
pub(super) const PUBLISHED: &[&str] = &[
    "profile",
    "label",
    "congestion_control",
    "loss",
    "goodput",
    "rtt_under_load",
    "queueing_delay",
    "completion",
    "retransmissions",
    "first_contentful_paint",
    "note",
];

/// Every table of the format by its heading in `docs/scenarios.md`, with its keys.
pub fn known_keys() -> &'static [(&'static str, &'static [&'static str])] {
    &[
        ("top level", TOP),
        ("[path]", PATH),
        ("[path.back]", BACK),
        ("rate", RATE),
        ("loss", LOSS),
        ("reorder", REORDER),
        ("policer", POLICER),
        ("aqm", AQM),
        ("[[flow]]", FLOW),
        ("[[profile]]", PROFILE),
        ("[run]", RUN),
        ("[[published]]", PUBLISHED),
    ]
}
