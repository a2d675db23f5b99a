//! Who wins, and what stays.

use crate::files::{Format, Means};
use crate::lint::rule::Severity;
use crate::lint::rules::order::*;
use crate::lint::run::Run;

pub(super) fn check(run: &mut Run<'_>) {
    for index in 0..run.documents.len() {
        script(run, index);
        suffix(run, index);
    }
    run.each_in_force(|run, index, item| {
        let name = &run.documents[item.document].name;
        let base = name.rsplit('/').next().unwrap_or("");
        let is_early = base.ends_with(".conf") && base.starts_with(|c: char| c.is_ascii_digit()) && base < "50-";
        let is_settings = matches!(run.documents[item.document].format, Format::SysctlD);
        if is_early && is_settings && VENDOR_KEYS.contains(&item.key.as_str()) {
            let message =
                format!("{base} is read before 50-default.conf, with which systemd sets this key: that one wins");
            run.say_about(&EARLY_NAME, index, item, item.setting.span, message).help("call the file 90-… or 99-…");
        }
    });
    if run.target.has_busybox {
        busybox(run);
    }
}

/// What systemd's `50-default.conf` sets (`sysctl.d/50-default.conf` of systemd 252 to 258), as far as it is about the network.
const VENDOR_KEYS: [&str; 7] = [
    "net.core.default_qdisc",
    "net.ipv4.conf.default.rp_filter",
    "net.ipv4.conf.default.accept_source_route",
    "net.ipv4.conf.default.promote_secondaries",
    "net.ipv4.ping_group_range",
    "kernel.sysrq",
    "kernel.core_uses_pid",
];

fn script(run: &mut Run<'_>, index: usize) {
    let document = &run.documents[index];
    if document.format != Format::Shell {
        return;
    }
    let is_written = |key: &str| {
        document.settings.iter().any(|s| matches!(s.means, Means::Written { .. }) && s.key.replace('/', ".") == key)
    };
    let lost = document.settings.iter().find(|s| s.means == Means::Command && !is_written(&s.key.replace('/', ".")));
    if let Some(setting) = lost {
        let count = document.settings.iter().filter(|s| s.means == Means::Command).count();
        let what = if count == 1 { "this setting is".to_owned() } else { format!("the script's {count} settings are") };
        run.say_at(&NOT_PERSISTENT, index, setting.span, format!("{what} gone after a reboot"))
            .help("write them to a file in /etc/sysctl.d too");
    }
    let written = |appending: bool| {
        document.settings.iter().find(|s| matches!(&s.means, Means::Written { target, appends } if *appends == appending && target.ends_with("/sysctl.conf")))
    };
    if let Some(setting) = written(false) {
        run.say_at(
            &REPLACES_FILE,
            index,
            setting.span,
            "the script replaces all of /etc/sysctl.conf, whatever was in it",
        )
        .help("write a file of your own: /etc/sysctl.d/90-mine.conf");
    }
    if let Some(setting) = written(true) {
        run.say_at(&APPENDS, index, setting.span, "each run of the script appends its lines once more")
            .help("write a file of your own with `>`: /etc/sysctl.d/90-mine.conf");
    }
}

fn suffix(run: &mut Run<'_>, index: usize) {
    let document = &run.documents[index];
    let folder = document.name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_misnamed =
        folder.ends_with("sysctl.d") && !document.name.ends_with(".conf") && document.format == Format::SysctlD;
    if let Some(first) = document.settings.first().filter(|_| is_misnamed) {
        run.say_at(&SUFFIX, index, first.span, "nobody reads this file: its name does not end in .conf")
            .help("add .conf to its name");
    }
}

/// The first error of a file, behind which there is more.
fn busybox(run: &mut Run<'_>) {
    for index in 0..run.documents.len() {
        let failing =
            run.findings.iter().filter(|f| f.document == index && f.severity == Severity::Error).map(|f| f.span).min();
        let Some(span) = failing else { continue };
        let behind = run.documents[index].settings.iter().filter(|s| s.span.start > span.end).count();
        if behind > 0 {
            run.say_at(
                &BUSYBOX,
                index,
                span,
                format!("BusyBox stops here: the {behind} settings behind it may not be applied"),
            );
        }
    }
}
