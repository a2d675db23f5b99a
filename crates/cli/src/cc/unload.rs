//! `linerate cc unload`.

use bbr3::{Installed, LoadError, Unloaded};
use host::cc;

use super::document::Outcome;
use super::load::lock_unless;
use super::situation::{self, Situation, failure};
use super::survey::{Space, Survey};
use super::{Doing, boot, table};
use crate::exit::{Exit, Failure};

/// Arguments of `cc unload`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The control to take out
    #[arg(long, value_name = "NAME", default_value = bbr3::NAME)]
    name: String,
    /// The default to have instead, where it is the default [default: the one before `load --default`, or cubic, or reno]
    #[arg(long, value_name = "CONTROL")]
    to: Option<String>,
    #[command(flatten)]
    doing: Doing,
}

/// Takes it out, or says what that would do.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let name = arguments.name.as_str();
    let mut outcome = Outcome::new("unload", &arguments.doing);
    outcome.fact("name", name);
    let lock = lock_unless(arguments.doing.dry_run, &mut outcome)?;
    let previous = match situation::of(name)? {
        Situation::Installed(installed) => installed.about().and_then(|about| about.previous_default),
        Situation::Leftovers | Situation::Held(true) => None,
        Situation::Held(false) => {
            return Err(Failure::refused(format_args!(
                "\"{name}\" is another BPF program, not linerate's: left alone"
            )));
        }
        Situation::Kernels => {
            return Err(Failure::refused(format_args!("\"{name}\" is the kernel's own, not linerate's: left alone")));
        }
        Situation::Free => return Err(failure(LoadError::NotInstalled(name.to_owned()))),
    };
    let instead = instead(arguments, previous)?;
    let survey = Survey::take()?;
    let users = survey.users_of(name);
    for space in survey.defaulting_to(name) {
        outcome.step(format!("set net.ipv4.tcp_congestion_control to {instead} in {}", space.place_words()));
    }
    outcome.step(format!("take {name} out, and its pins in /sys/fs/bpf/linerate/{name}"));
    outcome.fact("default_moved_to", instead.as_str());
    outcome.fact("default_in", survey.defaulting_to(name).map(|space| space.place.inode).collect::<Vec<_>>());
    outcome.fact("live_sockets", users.connections);
    outcome.fact("listening_sockets", users.listeners);
    if let Some(gaps) = survey.gaps() {
        outcome.note(format!("{gaps} A namespace that was not seen and has it as its default keeps the program."));
    }
    if boot::is_enabled(name) {
        outcome.note(format!("It comes back at the next boot: `linerate cc disable --name {name}` ends that."));
    }
    if users.connections + users.listeners > 0 {
        let listening = if users.listeners > 0 { format!(" and {} listening", users.listeners) } else { String::new() };
        let connections = table::counted(users.connections, "connection");
        outcome.note(format!(
            "Still on it: {connections}{listening}. They run on with it until they close; the kernel then frees it."
        ));
    }
    let Some(lock) = lock else { return outcome.finish("") };

    move_defaults(&survey, name, &instead)?;
    let unloaded = Installed::unload(name, &lock).map_err(|error| {
        if matches!(error, LoadError::StillThere(_)) {
            return failure(error);
        }
        // As before: it is still there, so it can be the default again.
        let unrestored = survey.defaulting_to(name).filter(|space| space.set_default(name).is_err()).count();
        if unrestored == 0 {
            failure(error)
        } else {
            Failure::not_undone(format_args!("{error}; and {instead} stayed the default"))
        }
    })?;
    // Somebody may have chosen it between the look and its end. A name that is gone can still be written over.
    move_defaults(&Survey::take()?, name, &instead).map_err(|error| Failure::not_undone(error.to_string()))?;
    outcome.fact(
        "result",
        match unloaded {
            Unloaded::Control => "unloaded",
            Unloaded::Leftovers => "leftovers_removed",
            Unloaded::Orphan => "orphan_unloaded",
        },
    );
    let moved = survey.defaulting_to(name).count() as u64;
    let moved = if moved == 0 {
        String::new()
    } else {
        format!(" {instead} is the default in its place in {}.", table::counted(moved, "network namespace"))
    };
    outcome.finish(&match unloaded {
        Unloaded::Control => format!("Took {name} out.{moved}"),
        Unloaded::Leftovers => format!("Cleared away what a loader that was killed left of {name}.{moved}"),
        Unloaded::Orphan => format!("Took out {name}, whose loader was killed before it could pin it.{moved}"),
    })
}

/// The control to move defaults to. It must be another one that the kernel has.
fn instead(arguments: &Arguments, previous: Option<String>) -> Result<String, Failure> {
    let available = cc::available().map_err(Failure::failed)?;
    let usable = |name: &str| name != arguments.name && available.iter().any(|there| there == name);
    if let Some(chosen) = &arguments.to {
        if usable(chosen) {
            return Ok(chosen.clone());
        }
        let others: Vec<_> = available.iter().filter(|there| **there != arguments.name).cloned().collect();
        return Err(Failure::usage(format_args!("--to {chosen}: this kernel has {}", others.join(", "))));
    }
    let candidates = previous.into_iter().chain(["cubic".to_owned(), "reno".to_owned()]);
    let found = candidates.into_iter().find(|name| usable(name));
    found.ok_or_else(|| Failure::failed("this kernel has no other congestion control"))
}

/// Moves every default away, or none.
fn move_defaults(survey: &Survey, name: &str, instead: &str) -> Result<(), Failure> {
    let mut moved: Vec<&Space> = Vec::new();
    for space in survey.defaulting_to(name) {
        let Err(error) = space.set_default(instead) else {
            moved.push(space);
            continue;
        };
        let back = moved.iter().all(|space| space.set_default(name).is_ok());
        let message = format!("{name} is the default in {}, and that can't be changed: {error}", space.place_words());
        return Err(if back { Failure::failed(message) } else { Failure::not_undone(message) });
    }
    Ok(())
}
