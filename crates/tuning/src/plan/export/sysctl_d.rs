//! A file for `/etc/sysctl.d`.

use std::fmt::Write as _;

use super::{FILE, MODULES_FILE, comment, device_commands, head, modules, sysctls};
use crate::plan::Plan;

pub(super) fn export(plan: &Plan) -> String {
    let mut out = head(plan, "#");
    let _ = writeln!(out, "# Belongs into {FILE}: files are read in the order of their names, the last one wins.");
    let _ = writeln!(out, "# Apply only this file: sysctl -p {FILE}");
    let modules = modules(plan);
    if !modules.is_empty() {
        let _ = writeln!(out, "# Needs at boot, one name a line in {MODULES_FILE}: {}", modules.join(" "));
    }
    out.push_str(&lines(plan));
    let commands = device_commands(plan);
    if !commands.is_empty() {
        out.push_str("\n# Devices that are up keep their queue discipline until they come up anew, or:\n");
        for command in commands {
            let _ = writeln!(out, "#   {command}");
        }
    }
    if plan.changes.is_empty() {
        out.push_str("\n# Nothing to change.\n");
    }
    out
}

/// The settings, each below its reasons.
pub(super) fn lines(plan: &Plan) -> String {
    let mut out = String::new();
    for change in sysctls(plan) {
        let _ = writeln!(out, "\n# {}", comment(&change.why));
        let _ = writeln!(out, "# was: {}", if change.from.is_empty() { "empty" } else { &change.from });
        if !change.risk.is_empty() {
            let _ = writeln!(out, "# risk: {}", comment(&change.risk));
        }
        let _ = writeln!(out, "{} = {}", change.key, change.to);
    }
    out
}
