//! What a container may set for itself, and what only its host can.

use std::fmt::Write as _;

use super::{FILE, comment, head, quoted, sysctls};
use crate::plan::{Change, ChangeKind, Place, Plan};

/// What a kubelet lets pods set without being told to, and from which version of Kubernetes on
/// (<https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/>).
const SAFE: [(&str, &str); 11] = [
    ("net.ipv4.ip_local_port_range", "1.3"),
    ("net.ipv4.tcp_syncookies", "1.3"),
    ("net.ipv4.ping_group_range", "1.18"),
    ("net.ipv4.ip_unprivileged_port_start", "1.22"),
    ("net.ipv4.ip_local_reserved_ports", "1.27"),
    ("net.ipv4.tcp_keepalive_time", "1.29"),
    ("net.ipv4.tcp_fin_timeout", "1.29"),
    ("net.ipv4.tcp_keepalive_intvl", "1.29"),
    ("net.ipv4.tcp_keepalive_probes", "1.29"),
    ("net.ipv4.tcp_rmem", "1.32"),
    ("net.ipv4.tcp_wmem", "1.32"),
];

fn own(plan: &Plan) -> Vec<&Change> {
    sysctls(plan).filter(|change| change.place == Place::Namespace).collect()
}

fn hosts(plan: &Plan) -> Vec<&Change> {
    plan.changes.iter().filter(|change| change.place == Place::Host).collect()
}

/// What has to be done on the host, as comments.
fn on_host(out: &mut String, plan: &Plan, whose: &str) {
    let hosts = hosts(plan);
    if hosts.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "#\n# On {whose}, for all of it: containers can't set these ({FILE}, or the node's own configuration)."
    );
    for change in hosts {
        let sign = if change.kind == ChangeKind::Sysctl { " =" } else { ":" };
        let _ = writeln!(out, "#   {}{sign} {}\n#     {}", change.key, change.to, comment(&change.why));
    }
}

pub(super) fn kubernetes(plan: &Plan) -> String {
    let mut out = head(plan, "#");
    out.push_str("# Goes into a pod's spec. Each pod has its own values; those of the node do not reach it.\n");
    let own = own(plan);
    let unsafe_keys: Vec<&str> =
        own.iter().map(|c| c.key.as_str()).filter(|key| !SAFE.iter().any(|(safe, _)| safe == key)).collect();
    if !unsafe_keys.is_empty() {
        let _ = writeln!(out, "# The node's kubelet has to allow: --allowed-unsafe-sysctls={}", unsafe_keys.join(","));
    }
    for change in &own {
        if let Some((key, version)) = SAFE.iter().find(|(safe, _)| *safe == change.key) {
            let _ = writeln!(out, "# {key} is allowed from Kubernetes {version} on.");
        }
    }
    on_host(&mut out, plan, "the node");
    if own.is_empty() {
        out.push_str("# Nothing for a pod to set.\n");
        return out;
    }
    out.push_str("securityContext:\n  sysctls:\n");
    for change in own {
        let _ = writeln!(out, "    # {}", comment(&change.why));
        let _ = writeln!(out, "    - name: {}\n      value: {}", change.key, quoted(&change.to));
    }
    out
}

pub(super) fn containerfile(plan: &Plan) -> String {
    let mut out = head(plan, "#");
    out.push_str("# An image can't carry sysctls: they are given when a container starts.\n");
    let own = own(plan);
    if own.is_empty() {
        out.push_str("# Nothing for a container to set.\n");
    } else {
        let flags: Vec<String> = own.iter().map(|c| format!("--sysctl '{}={}'", c.key, c.to)).collect();
        let _ = writeln!(out, "#\n# docker run (or podman run):\n#   {}", flags.join(" \\\n#   "));
        let _ = writeln!(out, "#\n# Compose:\n#   sysctls:");
        for change in &own {
            let _ = writeln!(out, "#     {}: {}", change.key, quoted(&change.to));
        }
        let _ = writeln!(
            out,
            "#\n# A congestion control has to be in tcp_allowed_congestion_control of the host's, else the container does not start.\n\
             LABEL linerate.sysctls={}",
            quoted(&own.iter().map(|c| format!("{}={}", c.key, c.to)).collect::<Vec<_>>().join("; "))
        );
    }
    on_host(&mut out, plan, "the host");
    out
}
