//! A plan in the notations of other tools: golden texts, and what must hold for all.

mod common;

use common::server;
use tuning::plan::{Format, Plan, Role, Target, plan};

fn proxy() -> Plan {
    let mut facts = server();
    for (key, value) in [
        ("net.netfilter.nf_conntrack_max", "262144"),
        ("net.netfilter.nf_conntrack_buckets", "65536"),
        ("net.netfilter.nf_conntrack_count", "7"),
    ] {
        facts.sysctls.insert(key.to_owned(), value.to_owned());
    }
    let target = Target {
        bandwidth: "1gbit".parse().unwrap(),
        rtt: "80ms".parse().unwrap(),
        role: Role::Proxy,
        connections: Some(400_000),
    };
    plan(&facts, &target).unwrap()
}

fn nothing() -> Plan {
    let target = Target {
        bandwidth: "1gbit".parse().unwrap(),
        rtt: "1ms".parse().unwrap(),
        role: Role::Database,
        connections: None,
    };
    plan(&server(), &target).unwrap()
}

const FORMATS: [(Format, &str); 6] = [
    (Format::SysctlD, "sysctl-d"),
    (Format::Ansible, "ansible"),
    (Format::CloudInit, "cloud-init"),
    (Format::Nixos, "nixos"),
    (Format::Kubernetes, "kubernetes"),
    (Format::Containerfile, "containerfile"),
];

#[test]
fn each_notation_is_as_it_was_reviewed() {
    for (format, name) in FORMATS {
        insta::assert_snapshot!(name, proxy().export(format));
    }
}

#[test]
fn a_plan_without_changes_sets_nothing_in_any_notation() {
    assert_eq!(nothing().changes, []);
    for (format, name) in FORMATS {
        let text = nothing().export(format);
        let settings = text.lines().filter(|line| !line.starts_with('#') && line.contains("net."));
        assert_eq!(settings.count(), 0, "{name}: {text}");
        assert!(text.ends_with('\n'));
    }
}

#[test]
fn every_setting_is_in_every_notation() {
    let plan = proxy();
    assert!(plan.changes.len() > 8, "{plan:#?}");
    for (format, name) in FORMATS {
        let text = plan.export(format);
        for change in &plan.changes {
            let key = change.key.split(' ').next().unwrap();
            assert!(text.contains(key), "{name} lacks {key}");
        }
    }
}

#[test]
fn a_hostile_host_name_stays_in_its_comment() {
    let mut plan = proxy();
    plan.host.name = "a\nnet.ipv4.ip_forward = 1\n\"; }".to_owned();
    plan.host.kernel = "6.12\nkernel.panic = 1".to_owned();
    for (format, name) in FORMATS {
        let text = plan.export(format);
        assert!(text.lines().all(|line| !line.trim_start().starts_with("net.ipv4.ip_forward = 1")), "{name}: {text}");
        assert!(text.lines().all(|line| !line.starts_with("kernel.panic")), "{name}: {text}");
    }
}
