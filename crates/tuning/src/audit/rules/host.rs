//! What can't be done on this host.

use super::super::finding::{Finding, Severity};
use super::super::look::Look;

pub(super) fn judge(look: &mut Look<'_>) {
    let system = &look.facts.host.system;
    let container = system.container.get().cloned().unwrap_or_default();
    if container.is_empty() && !look.facts.plan.container {
        return;
    }
    let name = if container.is_empty() { "another network namespace than the host's" } else { container.as_str() };
    let mut finding = Finding::new(
        "container",
        Severity::Note,
        150,
        format!("This is a container ({name}): what is host-wide can only be changed on the host"),
    )
    .shows(
        if container.is_empty() { "host-wide keys are missing".to_owned() } else { format!("it says {container}") },
        "now",
        system.container.from.clone(),
    );
    for forbidden in system.forbidden.iter().take(4) {
        finding = finding.shows(format!("not possible here: {}", forbidden.what), "now", forbidden.why.clone());
    }
    look.find(
        finding
            .costs("a new network namespace starts with the kernel's defaults of tcp_rmem and tcp_wmem, not with the host's; counters are its own")
            .fix(
                "",
                "what belongs to the namespace (tcp_rmem, tcp_wmem, tcp_congestion_control, somaxconn, ip_local_port_range) goes into the runtime's own \
                 configuration: `--sysctl` of Docker and Podman, `securityContext.sysctls` of Kubernetes, `lxc.sysctl`",
            )
            .source("network_namespaces(7); net/ipv4/tcp_ipv4.c (tcp_sk_init)"),
    );
}
