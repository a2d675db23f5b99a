//! The files that a transaction writes. All are linerate's own, and begin with a line that says so.

use std::fmt::Write as _;

use super::store::{Standing, Transaction, standing};
use super::world::{Found, World};
use crate::Catalogue;
use crate::plan::{Change, Plan};

/// The drop-in: behind `99-sysctl.conf`, and behind everything that is numbered.
pub const DROP_IN: &str = "/etc/sysctl.d/99-zz-linerate.conf";
/// Modules that have to be loaded before systemd-sysctl sets their keys.
pub const MODULES: &str = "/etc/modules-load.d/linerate.conf";
/// What sets again what the boot, or the network's configuration, has reset.
pub const UNIT: &str = "/etc/systemd/system/linerate-boot.service";
/// Its name.
pub const BOOT_UNIT: &str = "linerate-boot.service";
/// What `systemctl enable` makes of it.
pub(super) const WANTED: &str = "/etc/systemd/system/multi-user.target.wants/linerate-boot.service";

/// The first line of each.
pub(super) const MARK: &str = "# Written by `linerate apply`; `linerate rollback` puts back what was here before.";

/// Whether a text begins as linerate's own files do.
pub(super) fn is_own(text: &str) -> bool {
    text.lines().next() == Some(MARK)
}

/// Files of linerate's that are there, by their first line, and the link to its unit.
pub(super) fn files<W: World>(world: &W) -> Vec<String> {
    let is_ours = |path: &&str| match world.look(path) {
        Ok(Found::File { bytes, .. }) => str::from_utf8(&bytes).is_ok_and(is_own),
        Ok(Found::Link(target)) => *path == WANTED && target.ends_with(BOOT_UNIT),
        _ => false,
    };
    [DROP_IN, MODULES, WANTED, UNIT].into_iter().filter(is_ours).map(str::to_owned).collect()
}

/// Those of them of which no journal that is in force tells. A damaged journal may be the one that does.
pub fn orphans<W: World>(world: &W, transactions: &[Transaction]) -> Vec<String> {
    let boot_id = world.boot_id();
    let open = || transactions.iter().filter(|one| standing(one, &boot_id) != Standing::Closed);
    if open().any(|one| one.journal.is_err()) {
        return Vec::new();
    }
    let named = |path: &String| {
        open().filter_map(|one| one.journal.as_ref().ok()).any(|j| j.steps.iter().any(|(step, _)| step.what() == path))
    };
    files(world).into_iter().filter(|path| !named(path)).collect()
}

fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The drop-in with these changes, on top of an earlier one of linerate's.
pub(super) fn drop_in(earlier: Option<&str>, plan: &Plan, changes: &[&Change]) -> String {
    let mut out = format!("{MARK}\n");
    let target = &plan.target;
    let _ = writeln!(
        out,
        "# For {} x {}, role {}, on {}, Linux {}. `linerate verify` compares it with what the kernel has.",
        target.bandwidth,
        target.rtt,
        target.role.name(),
        comment(if plan.host.name.is_empty() { "this host" } else { &plan.host.name }),
        comment(&plan.host.kernel)
    );
    for (key, block) in blocks(earlier.unwrap_or_default()) {
        if !changes.iter().any(|change| change.key == key) {
            let _ = write!(out, "\n{block}");
        }
    }
    for change in changes {
        let _ = writeln!(out, "\n# {}", comment(&change.why));
        let _ = writeln!(out, "# was: {}", if change.from.is_empty() { "empty" } else { &change.from });
        // A control or discipline that a new kernel lacks is no failure of the whole service: the kernel's default holds then.
        let lenient = matches!(change.key.as_str(), "net.ipv4.tcp_congestion_control" | "net.core.default_qdisc");
        let _ = writeln!(out, "{}{} = {}", if lenient { "-" } else { "" }, change.key, change.to);
    }
    out
}

/// The settings of an earlier drop-in, each with the comments above it.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut block = String::new();
    for line in text.lines().skip(1) {
        if line.is_empty() {
            block.clear();
            continue;
        }
        block += line;
        block.push('\n');
        if let Some((key, _)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            blocks.push((key.trim().trim_start_matches('-').to_owned(), std::mem::take(&mut block)));
        }
    }
    blocks
}

/// The keys and values of a drop-in of linerate's.
pub(super) fn settings(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.trim().trim_start_matches('-').to_owned(), value.trim().to_owned())).collect()
}

/// The modules without which the keys aren't there when systemd-sysctl runs.
pub(super) fn modules_of(key: &str) -> Option<String> {
    Catalogue::builtin().lookup(key)?.knob.module.clone()
}

/// The list of modules with these ones, on top of an earlier one.
pub(super) fn modules(earlier: Option<&str>, names: &[String]) -> String {
    let mut all: Vec<&str> = earlier.unwrap_or_default().lines().filter(|line| !line.starts_with('#')).collect();
    all.extend(names.iter().map(String::as_str));
    all.sort_unstable();
    all.dedup();
    all.iter().fold(
        format!("{MARK}\n# Their keys stand in {DROP_IN}, which is read after modules are loaded.\n"),
        |out, name| out + name + "\n",
    )
}

/// The unit that starts `exec boot` once the network is configured.
pub(super) fn unit(exec: &str) -> String {
    format!(
        "\
{MARK}
[Unit]
Description=Set again what the boot or the network's configuration has reset (linerate)
ConditionVirtualization=!container
RequiresMountsFor={exec} /var/lib/linerate
After=systemd-sysctl.service network.target network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={exec} boot
TimeoutStartSec=60

[Install]
WantedBy=multi-user.target
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_drop_in_keeps_its_settings_and_reasons() {
        let text = format!("{MARK}\n# For x\n\n# why a\n# was: 1\nnet.a = 2\n\n# why b\n# was: 3\n-net.b = 4 5\n");
        let blocks = blocks(&text);
        assert_eq!(blocks[0], ("net.a".to_owned(), "# why a\n# was: 1\nnet.a = 2\n".to_owned()));
        assert_eq!(blocks[1].0, "net.b");
        assert_eq!(settings(&text), [("net.a".into(), "2".into()), ("net.b".into(), "4 5".into())]);
    }

    #[test]
    fn modules_are_named_once() {
        let first = modules(None, &["nf_conntrack".into()]);
        assert!(is_own(&first) && first.ends_with("\nnf_conntrack\n"));
        assert_eq!(modules(Some(&first), &["nf_conntrack".into()]), first);
    }
}
