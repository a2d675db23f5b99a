//! Tasks for Ansible: `ansible.posix.sysctl` and `community.general.modprobe`.

use std::fmt::Write as _;

use super::{FILE, comment, device_commands, head, modules, quoted, sysctls};
use crate::plan::Plan;

pub(super) fn export(plan: &Plan) -> String {
    let mut out = head(plan, "#");
    out.push_str("# Needs the collections ansible.posix and community.general. The values are this host's: make a plan per kind of host.\n---\n");
    if plan.changes.is_empty() {
        out.push_str("[] # nothing to change\n");
    }
    for module in modules(plan) {
        let _ = writeln!(
            out,
            "- name: Load {module} at boot, before its keys are set\n  community.general.modprobe:\n    name: {module}\n    state: present\n    \
             persistent: present\n"
        );
    }
    for change in sysctls(plan) {
        let _ = writeln!(out, "# {}", comment(&change.why));
        let _ = writeln!(
            out,
            "- name: Set {key}\n  ansible.posix.sysctl:\n    name: {key}\n    value: {value}\n    sysctl_file: {FILE}\n    \
             sysctl_set: true\n    reload: false\n    state: present\n",
            key = change.key,
            value = quoted(&change.to),
        );
    }
    for command in device_commands(plan) {
        let _ = writeln!(
            out,
            "- name: Change a device that is up\n  ansible.builtin.command: {command}\n  changed_when: true\n"
        );
    }
    let kept = out.trim_end().len();
    out.truncate(kept);
    out.push('\n');
    out
}
