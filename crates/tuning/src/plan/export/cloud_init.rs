//! A `#cloud-config` document.

use std::fmt::Write as _;

use super::{FILE, MODULES_FILE, device_commands, head, modules, quoted, sysctl_d, sysctls};
use crate::plan::Plan;

pub(super) fn export(plan: &Plan) -> String {
    // cloud-init looks for this first line.
    let mut out = format!("#cloud-config\n{}", head(plan, "#"));
    if plan.changes.is_empty() {
        out.push_str("# Nothing to change.\n{}\n");
        return out;
    }
    let modules = modules(plan);
    let any = sysctls(plan).next().is_some();
    if any {
        let _ = write!(out, "write_files:\n  - path: {FILE}\n    permissions: \"0644\"\n    content: |\n");
        for line in sysctl_d::lines(plan).trim_start().lines() {
            let _ = writeln!(out, "{}", format!("      {line}").trim_end());
        }
        if !modules.is_empty() {
            let _ = write!(out, "  - path: {MODULES_FILE}\n    permissions: \"0644\"\n    content: |\n");
            for module in &modules {
                let _ = writeln!(out, "      {module}");
            }
        }
    }
    out.push_str("runcmd:\n");
    for module in &modules {
        let _ = writeln!(out, "  - [modprobe, {module}]");
    }
    if any {
        let _ = writeln!(out, "  - [sysctl, -p, {FILE}]");
    }
    for command in device_commands(plan) {
        let words: Vec<String> = command.split_whitespace().map(quoted).collect();
        let _ = writeln!(out, "  - [{}]", words.join(", "));
    }
    out
}
