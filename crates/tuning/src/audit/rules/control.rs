//! The congestion control: which one it really is, and who uses it.

use super::super::finding::{Finding, Severity};
use super::super::look::{Look, percent, share};

const CONTROL: &str = "net.ipv4.tcp_congestion_control";

pub(super) fn judge(look: &mut Look<'_>) {
    version(look);
    others(look);
    unsafe_default(look);
}

/// `bbr` says nothing about the version.
fn version(look: &mut Look<'_>) {
    let Some(controls) = look.facts.host.controls.get() else { return };
    let Some(bbr) = controls.iter().find(|control| control.default && control.bbr_version == Some(1)) else { return };
    look.find(
        Finding::new("bbr-is-version-1", Severity::Note, 250, format!("`{}` is BBRv1 in this kernel", bbr.name))
            .shows(
                format!("a socket on {} shows the state of BBRv1", bbr.name),
                "now",
                look.facts.host.controls.from.clone(),
            )
            .costs("BBRv1 takes more than its share in short queues and does not answer to ECN; every mainline kernel up to 7.2 has this version")
            .fix("linerate cc load", "BBRv3 as a BPF program, beside it under another name; docs/bbr3.md says what each is good for")
            .source("net/ipv4/tcp_bbr.c; draft-ietf-ccwg-bbr"),
    );
}

/// Connections keep what they began with, and programs may choose for themselves.
fn others(look: &mut Look<'_>) {
    let Some(connections) = look.facts.host.connections.get() else { return };
    let Some(default) = look.facts.plan.sysctl(CONTROL) else { return };
    let all: u64 = connections.controls.values().sum();
    let with = connections.controls.get(default).copied().unwrap_or(0);
    if all < 4 || share(with, all) >= 0.5 {
        return;
    }
    let list: Vec<String> = connections.controls.iter().map(|(name, count)| format!("{name} {count}")).collect();
    look.find(
        Finding::new(
            "other-control-in-use",
            Severity::Warning,
            420,
            format!("{} of the connections do not run {default}, the default", percent(1.0 - share(with, all))),
        )
        .shows(list.join(", "), "now", look.facts.host.connections.from.clone())
        .costs("the setting does not hold for them")
        .fix(
            "",
            "connections keep the control they began with: restart long-lived ones. Listeners hand theirs on, so a server that was started \
             before the change needs a restart too; programs and routes may choose for themselves",
        )
        .source("tcp(7), TCP_CONGESTION; net/ipv4/tcp_cong.c (tcp_assign_congestion_control)"),
    );
}

/// DCTCP anywhere but inside a data centre of its own starves others, or is starved.
fn unsafe_default(look: &mut Look<'_>) {
    if look.facts.plan.sysctl(CONTROL) != Some("dctcp") {
        return;
    }
    look.find(
        Finding::new("dctcp-is-default", Severity::Error, 870, "DCTCP is the default for every destination")
            .shows(format!("{CONTROL} is dctcp"), "now", Look::sysctl(CONTROL))
            .costs(
                "outside of a network whose switches mark early, it gives up little for a mark and takes others' share",
            )
            .set(
                &[(CONTROL, "cubic".to_owned())],
                "`ip route … congctl dctcp` keeps it for the destinations that are meant",
            )
            .source("RFC 8257, section 5"),
    );
}
