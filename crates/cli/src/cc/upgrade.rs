//! `linerate cc upgrade`.

use bbr3::{About, Installed, Kernel, Knobs, Options, Registration};

use super::document::Outcome;
use super::knobs::{self, KnobArguments};
use super::load::lock_unless;
use super::situation::{self, Situation, failure};
use super::survey::Survey;
use super::{Doing, table};
use crate::exit::{Exit, Failure};

/// Arguments of `cc upgrade`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The control to replace
    #[arg(long, value_name = "NAME", default_value = bbr3::NAME)]
    name: String,
    #[command(flatten)]
    knobs: KnobArguments,
    #[command(flatten)]
    doing: Doing,
}

/// Replaces it. Knobs that are not named stay as they are.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let name = arguments.name.as_str();
    let mut outcome = Outcome::new("upgrade", &arguments.doing);
    outcome.fact("name", name);
    let lock = lock_unless(arguments.doing.dry_run)?;
    let installed = match situation::of(name)? {
        Situation::Installed(installed) => installed,
        Situation::Kernels => {
            return Err(Failure::failed(format_args!("\"{name}\" is the kernel's own; there is nothing to upgrade")));
        }
        Situation::Held(_) => return Err(failure(bbr3::LoadError::HeldByProcess(name.to_owned()))),
        Situation::Free | Situation::Leftovers => return Err(failure(bbr3::LoadError::NotInstalled(name.to_owned()))),
    };
    let (base, label) = base(&installed, arguments)?;
    let options = Options { name: name.to_owned(), knobs: arguments.knobs.resolve(base)? };
    let label = arguments.knobs.label(&label);
    Kernel::detect().map_err(failure)?;
    let survey = Survey::take()?;

    let by = situation::registered(installed.registration());
    outcome.step(match installed.registration() {
        Registration::Link => format!("replace the program of {name} by this version's (profile {label}), at once"),
        Registration::Map => {
            format!("take {name} out and register this version's program (profile {label}); in between, for milliseconds, no socket can choose it")
        }
    });
    for space in survey.defaulting_to(name) {
        outcome.step(format!(
            "write net.ipv4.tcp_congestion_control = {name} again in {}: else it keeps the old program as its default",
            space.place_words()
        ));
    }
    outcome.fact("registration", by);
    outcome.fact("profile", label.as_str());
    outcome.fact("knobs", knobs::to_json(options.knobs.to_raw().map_err(Failure::usage)?));
    outcome.fact("default_in", survey.defaulting_to(name).map(|space| space.place.inode).collect::<Vec<_>>());
    if let Some(gaps) = survey.gaps() {
        outcome.note(gaps);
    }
    let Some(lock) = lock else { return outcome.finish("") };

    let before = installed.about();
    let about = About::new(&label, before.as_ref().and_then(|about| about.previous_default.as_deref()));
    Installed::upgrade(&options, &about, &lock).map_err(failure)?;
    let mut rewritten = 0;
    let mut failed = Vec::new();
    for space in survey.defaulting_to(name) {
        match space.set_default(name) {
            Ok(()) => rewritten += 1,
            Err(error) => failed.push(format!("{}: {error}", space.place_words())),
        }
    }
    outcome.fact("defaults_rewritten", rewritten);
    outcome.fact("defaults_failed", failed.clone());
    let users = survey.users_of(name);
    if users.connections > 0 {
        outcome.note(format!(
            "{} that had it keep the old program until they close.",
            table::counted(users.connections, "connection")
        ));
    }
    if users.listeners > 0 {
        outcome.note(
            "Listening sockets whose program chose it by setsockopt hand the old program to new connections until they listen anew."
                .to_owned(),
        );
    }
    let code = if failed.is_empty() { Exit::Done } else { Exit::Found };
    for failed in failed {
        outcome.note(format!("The default still is the old program in {failed}"));
    }
    outcome.print(&format!("Replaced the program of {name} (now profile {label}).{}", rewritten_words(rewritten)))?;
    Ok(code)
}

fn rewritten_words(number: u64) -> String {
    if number == 0 {
        return String::new();
    }
    format!(" Its new program is the default in {}.", table::counted(number, "network namespace"))
}

/// What the knobs start from, and its label: the installed ones, where they can be read.
fn base(installed: &Installed, arguments: &Arguments) -> Result<(Knobs, String), Failure> {
    match installed.knobs() {
        Ok(raw) => {
            let label = installed.about().map_or_else(|| "faithful+".to_owned(), |about| about.profile);
            Ok((Knobs::from_raw(raw), label))
        }
        Err(_) if arguments.knobs.profile.is_some() => Ok((Knobs::default(), String::new())),
        Err(_) => Err(Failure::usage(
            "the loaded program has knobs of another version: name the --profile that the new one is to have",
        )),
    }
}
