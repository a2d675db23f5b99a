//! `linerate cc enable` and `cc disable`: loading at boot, by systemd.

#[cfg(feature = "bpf")]
mod enable;
mod files;

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Doing;
use super::document::Outcome;
use crate::exit::{Exit, Failure};
use files::Files;

#[cfg(feature = "bpf")]
pub use enable::{Enable, enable};

/// Where the files go.
#[derive(clap::Args, Debug, Clone)]
struct Target {
    /// The congestion control
    #[arg(long, value_name = "NAME", default_value = bbr3::NAME)]
    name: String,
    /// Another system's root folder, for an image or an installation that is not running
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

impl Target {
    fn is_running_system(&self) -> bool {
        self.root == Path::new("/")
    }

    fn files(&self) -> Result<Files, Failure> {
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if self.name.is_empty() || self.name.len() > 15 || !self.name.bytes().all(sound) {
            return Err(Failure::usage(format_args!(
                "\"{}\" can't name a congestion control: 1 to 15 letters, digits or _",
                self.name
            )));
        }
        if !self.root.is_dir() {
            return Err(Failure::usage(format_args!("--root {}: no such folder", self.root.display())));
        }
        Ok(Files::new(&self.root, &self.name))
    }

    /// Tells systemd, where it runs this system.
    fn reload(&self, outcome: &mut Outcome) {
        if !self.is_running_system() || !runs_systemd() {
            return;
        }
        let done = Command::new("systemctl").arg("daemon-reload").output();
        if !done.is_ok_and(|output| output.status.success()) {
            outcome.note(
                "systemd could not be told (systemctl daemon-reload); at the next boot it sees the change anyway.",
            );
        }
    }
}

/// sd_booted(3).
fn runs_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Whether a control is loaded at the boot of this system.
#[cfg(feature = "bpf")]
pub fn is_enabled(name: &str) -> bool {
    Files::new(Path::new("/"), name).is_enabled()
}

/// Arguments of `cc disable`.
#[derive(clap::Args)]
pub struct Disable {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    doing: Doing,
}

/// Removes what `cc enable` made. What is loaded stays loaded.
pub fn disable(arguments: &Disable) -> Result<Exit, Failure> {
    let files = arguments.target.files()?;
    let mut outcome = Outcome::new("disable", &arguments.doing);
    outcome.fact("name", arguments.target.name.as_str());
    let there = files.existing()?;
    for file in &there {
        outcome.step(format!("remove {}", file.display()));
    }
    outcome.fact("files", there.iter().map(|file| file.display().to_string()).collect::<Vec<_>>());
    if there.is_empty() {
        return outcome.finish(&format!("{} was not enabled at boot.", arguments.target.name));
    }
    if !outcome.dry_run() {
        files.remove()?;
        arguments.target.reload(&mut outcome);
    }
    outcome.finish(&format!(
        "{} is no longer loaded at boot. What is loaded now stays: `linerate cc unload` takes it out.",
        arguments.target.name
    ))
}
