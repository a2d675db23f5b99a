//! A module for NixOS.

use std::fmt::Write as _;

use super::{comment, device_commands, head, modules, quoted, sysctls};
use crate::plan::Plan;

pub(super) fn export(plan: &Plan) -> String {
    let mut out = head(plan, "#");
    out.push_str("{ lib, ... }:\n{\n");
    let modules = modules(plan);
    if !modules.is_empty() {
        let names: Vec<String> = modules.iter().map(|name| quoted(name)).collect();
        let _ = writeln!(out, "  boot.kernelModules = [ {} ];", names.join(" "));
    }
    out.push_str("  boot.kernel.sysctl = {\n");
    for change in sysctls(plan) {
        let _ = writeln!(out, "    # {}", comment(&change.why));
        // mkForce: NixOS modules set some of these themselves, and two definitions are an error.
        let _ = writeln!(out, "    {} = lib.mkForce {};", quoted(&change.key), value(&change.to));
    }
    out.push_str("  };\n}\n");
    for command in device_commands(plan) {
        let _ = writeln!(out, "# A device that is up: {command}");
    }
    out
}

/// Whole numbers are numbers in Nix, unless they are too large for it.
fn value(text: &str) -> String {
    if text.parse::<i64>().is_ok() { text.to_owned() } else { quoted(text) }
}
