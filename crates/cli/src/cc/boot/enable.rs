//! `linerate cc enable`.

use std::path::{Path, PathBuf};

use bbr3::{Kernel, Knobs};

use super::files::{self, Files};
use super::{Target, runs_systemd};
use crate::cc::Doing;
use crate::cc::document::Outcome;
use crate::cc::knobs::KnobArguments;
use crate::cc::situation::failure;
use crate::exit::{Exit, Failure};
use crate::installed;

/// Arguments of `cc enable`.
#[derive(clap::Args)]
pub struct Enable {
    #[command(flatten)]
    target: Target,
    /// Also make it the default at boot, by a file in /etc/sysctl.d
    #[arg(long)]
    default: bool,
    /// The linerate program that the boot starts, as the booted system sees it [default: this one]
    #[arg(long, value_name = "FILE")]
    exec: Option<PathBuf>,
    #[command(flatten)]
    knobs: KnobArguments,
    #[command(flatten)]
    doing: Doing,
}

/// Writes the unit. Nothing is loaded now.
pub fn enable(arguments: &Enable) -> Result<Exit, Failure> {
    let target = &arguments.target;
    let files = target.files()?;
    arguments.knobs.resolve(Knobs::default())?;
    check_system(target, &files)?;
    let exec = executable(arguments, &files)?;
    let mut outcome = Outcome::new("enable", &arguments.doing);
    outcome.fact("name", target.name.as_str());
    outcome.fact("exec", exec.display().to_string());
    files.existing()?;
    outcome.step(format!("write {}", files.unit().display()));
    outcome.step(format!("link {} to it", files.wanted().display()));
    if arguments.default {
        outcome.step(format!("write {}", files.default_file().display()));
    } else if files.default_file().exists() {
        outcome.step(format!("remove {}", files.default_file().display()));
    }
    if target.is_running_system() {
        outcome.step("have systemd read its units again (systemctl daemon-reload)");
    }
    if arguments.default {
        for file in files.overriding() {
            outcome.note(format!("{} is read later and sets the default too: it wins.", file.display()));
        }
    }
    if !outcome.dry_run() {
        let written = files.write(&unit(&target.name, &exec, &arguments.knobs.options()), arguments.default);
        if let Err(error) = written {
            // Half of it would look enabled.
            let _ = files.remove();
            return Err(error);
        }
        target.reload(&mut outcome);
    }
    let what = if arguments.default { " and made the default" } else { "" };
    let now = if target.is_running_system() { " Now: `linerate cc load`." } else { "" };
    outcome.finish(&format!(
        "{} will be loaded{what} at every boot, before sysctl.d is read and the network starts.{now}",
        target.name
    ))
}

fn check_system(target: &Target, files: &Files) -> Result<(), Failure> {
    if target.is_running_system() {
        if !runs_systemd() {
            return Err(Failure::failed(format_args!(
                "this machine was not started by systemd, so there is nothing to enable: have your own boot scripts run \
                 `linerate cc load --name {}` before the network starts",
                target.name
            )));
        }
        Kernel::detect().map_err(failure)?;
        return Ok(());
    }
    let systemd = ["usr/lib/systemd/system", "lib/systemd/system"].map(|path| files.below(path));
    if systemd.iter().any(|path| path.is_dir()) {
        return Ok(());
    }
    Err(Failure::failed(format_args!(
        "there is no systemd in {}: neither {} nor {}",
        target.root.display(),
        systemd[0].display(),
        systemd[1].display()
    )))
}

/// Places that a program is usually installed to.
const USUAL: [&str; 2] = ["/usr/local/bin/linerate", "/usr/bin/linerate"];

/// The program to start at boot, by its path in the system.
fn executable(arguments: &Enable, files: &Files) -> Result<PathBuf, Failure> {
    let running = arguments.target.is_running_system();
    let exec = match &arguments.exec {
        Some(chosen) => chosen.clone(),
        None if running => {
            std::env::current_exe().map_err(|error| Failure::failed(format_args!("find the own program: {error}")))?
        }
        None => {
            let there = USUAL.iter().find(|path| files.below(path).is_file());
            let there = there.ok_or_else(|| {
                Failure::usage(format_args!(
                    "no linerate in {}: put it there as {}, or name it by --exec",
                    arguments.target.root.display(),
                    USUAL[0]
                ))
            })?;
            PathBuf::from(there)
        }
    };
    let Some(text) = installed::for_unit(&exec) else {
        return Err(Failure::usage(format_args!(
            "{} can't stand in a systemd unit: the path has to be absolute, of letters, digits, /, _, ., + and -",
            exec.display()
        )));
    };
    let file = files.below(text);
    if !file.is_file() {
        return Err(Failure::usage(format_args!("no file {}", file.display())));
    }
    if running && let Some(weak) = installed::writable_by_others(&exec) {
        return Err(Failure::refused(format_args!(
            "{} can be changed by others than root, and would run as root at boot: install linerate first \
             (sudo install -m 755 {text} {}) and enable it from there",
            weak.display(),
            USUAL[0]
        )));
    }
    Ok(exec)
}

/// The unit. Its order: systemd itself mounts /sys/fs/bpf before any unit; the file system of the program is there
/// (`RequiresMountsFor`); the kernel's own modules come first, so that a control of this name in one of them is seen; sysctl.d
/// (systemd-sysctl.service) comes after, so that it can name the control; the network comes last (network-pre.target).
fn unit(name: &str, exec: &Path, options: &[String]) -> String {
    let exec = exec.display();
    let options: String = options.iter().map(|word| format!(" {}", word.replace('%', "%%"))).collect();
    files::marked(&format!(
        "\
[Unit]
Description=Load the congestion control {name} (BBRv3 in BPF)
DefaultDependencies=no
RequiresMountsFor={exec}
ConditionVirtualization=!container
Wants=network-pre.target
After=systemd-remount-fs.service systemd-modules-load.service
Before=systemd-sysctl.service network-pre.target sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={exec} cc load --name {name}{options}
TimeoutStartSec=90

[Install]
WantedBy=sysinit.target
"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_doubled_for_systemd() {
        let text = unit("bbr3", Path::new("/usr/bin/linerate"), &["--loss-thresh".into(), "5%".into()]);
        assert!(text.contains("ExecStart=/usr/bin/linerate cc load --name bbr3 --loss-thresh 5%%\n"), "{text}");
    }
}
