//! A plan in the notations of other tools. Each holds the reasons as comments, so that they stay with the values.

mod ansible;
mod cloud_init;
mod containers;
mod nixos;
mod sysctl_d;

use serde::{Deserialize, Serialize};

use super::{Change, ChangeKind, Plan};
use crate::Catalogue;

/// A notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A file for `/etc/sysctl.d`.
    SysctlD,
    /// Tasks for Ansible.
    Ansible,
    /// A `#cloud-config` document.
    CloudInit,
    /// A module for NixOS.
    Nixos,
    /// What a container may set, what has to be set on its host: Kubernetes.
    Kubernetes,
    /// The same for an image's Containerfile and `docker run`.
    Containerfile,
}

/// Where the file belongs: after everything else that sets the same keys, `99-sysctl.conf` among it.
const FILE: &str = "/etc/sysctl.d/99-zz-linerate.conf";
/// Modules that have to be loaded before their keys can be set at boot.
const MODULES_FILE: &str = "/etc/modules-load.d/linerate.conf";

impl Plan {
    /// The plan in another notation, ending in a line feed.
    pub fn export(&self, format: Format) -> String {
        match format {
            Format::SysctlD => sysctl_d::export(self),
            Format::Ansible => ansible::export(self),
            Format::CloudInit => cloud_init::export(self),
            Format::Nixos => nixos::export(self),
            Format::Kubernetes => containers::kubernetes(self),
            Format::Containerfile => containers::containerfile(self),
        }
    }
}

/// The sysctl changes of a plan.
fn sysctls(plan: &Plan) -> impl Iterator<Item = &Change> {
    plan.changes.iter().filter(|change| change.kind == ChangeKind::Sysctl)
}

/// Commands that change the devices that are up.
fn device_commands(plan: &Plan) -> Vec<String> {
    plan.changes.iter().filter(|change| change.kind == ChangeKind::Qdisc).flat_map(commands).collect()
}

fn commands(change: &Change) -> Vec<String> {
    match change.key.rsplit_once(' ') {
        Some((device, "leaves")) => {
            let kinds = change.to.split_whitespace().enumerate();
            // The handle of mq is 0 where the kernel made it, and a qdisc can't name that as its parent: `8001:` stands for what
            // `tc qdisc show` prints once mq was put there by name.
            let replace = format!("tc qdisc replace dev {device} root handle 8001: mq");
            std::iter::once(replace)
                .chain(
                    kinds.map(|(queue, kind)| {
                        format!("tc qdisc replace dev {device} parent 8001:{:x} {kind}", queue + 1)
                    }),
                )
                .collect()
        }
        Some((device, _)) => vec![format!("tc qdisc replace dev {device} root {}", change.to)],
        None => Vec::new(),
    }
}

/// Modules whose keys are set, and that nothing else may have loaded by then.
fn modules(plan: &Plan) -> Vec<String> {
    let mut names: Vec<String> =
        sysctls(plan).filter_map(|change| Catalogue::builtin().lookup(&change.key)?.knob.module.clone()).collect();
    names.dedup();
    names
}

/// One sentence on what the plan is for.
fn purpose(plan: &Plan) -> String {
    let target = &plan.target;
    let connections = target.connections.map_or_else(String::new, |n| format!(", {n} connections"));
    format!("{} x {}, role {}{connections}", target.bandwidth, target.rtt, target.role.name())
}

/// The first lines of a file, behind `mark`.
fn head(plan: &Plan, mark: &str) -> String {
    let host = if plan.host.name.is_empty() { "a host" } else { &plan.host.name };
    let text = format!("Made by linerate plan for {}, on {host}, Linux {}.", purpose(plan), plan.host.kernel);
    format!("{mark} {}\n", comment(&text))
}

/// A text on one line, for a comment: nothing in it can end the comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A text in double quotes, for YAML and Nix alike.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '$' => out.push_str("\\$"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
