//! The catalogue against the keys of real kernels.
//!
//! `data/keys-VERSION.txt` were listed in virtual machines (`tests/vm/run --kernel 6.1 -- find /proc/sys -type f`, with nf_conntrack and
//! sctp loaded), `data/keys-modules.txt` out of the kernels' sources.

use std::collections::BTreeSet;

use tuning::catalogue::{Access, Importance, Kind};
use tuning::{Catalogue, KernelVersion, Key};

const LISTS: [(KernelVersion, &str); 4] = [
    (KernelVersion::new(6, 1), include_str!("data/keys-6.1.txt")),
    (KernelVersion::new(6, 12), include_str!("data/keys-6.12.txt")),
    (KernelVersion::new(6, 18), include_str!("data/keys-6.18.txt")),
    (KernelVersion::new(7, 2), include_str!("data/keys-7.2.txt")),
];
const MODULES: &str = include_str!("data/keys-modules.txt");

fn keys(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.starts_with('#'))
}

#[test]
fn no_key_of_a_kernel_from_6_1_to_7_2_is_unknown() {
    let unknown: Vec<_> = LISTS
        .iter()
        .flat_map(|(_, list)| keys(list))
        .chain(keys(MODULES))
        .filter(|key| Catalogue::builtin().lookup(key).is_none())
        .collect();
    assert!(LISTS.iter().all(|(_, list)| keys(list).count() > 500), "the lists are whole");
    assert_eq!(unknown, Vec::<&str>::new());
}

#[test]
fn a_key_a_kernel_has_is_not_said_to_be_newer_or_gone() {
    let mut wrong = Vec::new();
    for (version, list) in LISTS {
        for key in keys(list) {
            let knob = Catalogue::builtin().lookup(key).unwrap().knob;
            if !knob.exists_in(version) {
                wrong.push(format!("{key} is in {version}, {:?} to {:?}", knob.since, knob.until));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_knob_of_the_core_protocols_is_in_every_kernel_that_is_said_to_have_it() {
    // Configurations differ: these come with options or modules that one of the kernels was built without.
    let optional = [
        "net.core.bpf_jit_limit",
        "net.ipv4.tcp_fastopen_key",
        "net.ipv4.vs.",
        "net.ipv4.conf.*.mc_forwarding",
        "net.ipv6.conf.*.mc_forwarding",
        "net.ipv6.conf.*.use_tempaddr",
    ];
    let mut wrong = Vec::new();
    for (version, list) in LISTS {
        let there: BTreeSet<&str> = keys(list)
            .filter_map(|key| Catalogue::builtin().lookup(key))
            .map(|found| found.knob.name.as_str())
            .collect();
        for knob in Catalogue::builtin().knobs() {
            let core = ["net.core.", "net.ipv4.", "net.ipv6.", "net.mptcp."].iter().any(|p| knob.name.starts_with(p));
            let excused = knob.only_in.is_some() || optional.iter().any(|p| knob.name.starts_with(p));
            if core && !excused && knob.exists_in(version) && !there.contains(knob.name.as_str()) {
                wrong.push(format!("{} is not in {version}", knob.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn what_matters_is_described_in_full() {
    let mut missing = Vec::new();
    for knob in Catalogue::builtin().knobs() {
        let mut need = |what: &str, there: bool| {
            if !there {
                missing.push(format!("{}: {what}", knob.name));
            }
        };
        need("a source", !knob.source.is_empty());
        if knob.importance == Importance::Main && knob.access == Access::ReadWrite {
            let numeric = knob.kind.is_numeric();
            need("a range or choices", !numeric || !knob.range.is_empty() || knob.kind == Kind::Trigger);
            need("a default or what it depends on", !knob.default.is_empty() || knob.default_note.is_some());
            need(
                "when to change it, or why not",
                knob.change.is_some() || knob.popular.is_some() || knob.risk.is_some() || knob.what.len() > 100,
            );
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_name_is_a_key_and_finds_itself() {
    for knob in Catalogue::builtin().knobs() {
        let key = knob.name.replace('*', "eth0");
        let found = Catalogue::builtin().lookup(&key);
        assert!(found.is_some_and(|f| f.knob.name == knob.name), "{key}");
        assert!(Key::parse(&key).is_ok());
    }
}

#[test]
fn broken_data_is_refused_with_the_knob() {
    let group = "[group]\nimportance = \"main\"\nscope = \"host\"\nsource = \"x\"\n";
    for (entry, why) in [
        ("[knob.\"a.b\"]\nkind = \"flag\"\nwhat = \"no full stop\"\n", "a.b: `what` is a sentence"),
        ("[knob.\"a.b\"]\nkind = \"count\"\nmin = 5\nmax = 1\nwhat = \"x.\"\n", "a.b: a range ends before it starts"),
        ("[knob.\"a.b\"]\nkind = \"count\"\nmax = 1\ndefault = \"2\"\nwhat = \"x.\"\n", "a.b: the default is outside"),
        ("[knob.\"a.*.*\"]\nkind = \"count\"\nwhat = \"x.\"\n", "more than one `*`"),
        ("[knob.\"a.b\"]\nkind = \"choice\"\nwhat = \"x.\"\n", "a.b: no choices"),
        ("[knob.\"a.b\"]\nkind = \"choise\"\nwhat = \"x.\"\n", "f.toml: "),
    ] {
        let text = format!("{group}{entry}");
        let error = Catalogue::parse(&[("f.toml", &text)]).unwrap_err().to_string();
        assert!(error.contains(why), "{error} should say {why}");
    }
    let sound = format!("{group}[knob.\"a.b\"]\nkind = \"flag\"\nwhat = \"x.\"\n");
    assert!(Catalogue::parse(&[("f.toml", &sound)]).is_ok());
    assert!(Catalogue::parse(&[("f.toml", &sound), ("g.toml", &sound)]).is_err());
}

#[test]
fn the_reference_in_docs_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/knobs.md");
    let there = std::fs::read_to_string(file).unwrap();
    let current = tuning::catalogue::reference(Catalogue::builtin());
    assert!(there == current, "docs/knobs.md is old: cargo run -p linerate-tuning --example reference");
}
