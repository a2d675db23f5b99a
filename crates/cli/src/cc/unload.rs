//! `linerate cc unload`.

use bbr3::{Installed, LoadError, Unloaded};
use std::os::unix::fs::MetadataExt;

use host::cc;
use serde_json::json;

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
    /// The default to have instead, where it is the default [default: the one before `load --default`, or cubic, or another]
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
    let lock = lock_unless(arguments.doing.dry_run)?;
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
    let survey = Survey::take()?;
    let moves = moves(&survey, arguments, previous.as_deref())?;
    let users = survey.users_of(name);
    for (space, instead) in &moves {
        outcome.step(format!("set net.ipv4.tcp_congestion_control to {instead} in {}", space.place_words()));
    }
    outcome.step(format!("take {name} out, and its pins in /sys/fs/bpf/linerate/{name}"));
    let moved = moves.iter().map(|(space, instead)| json!({ "inode": space.place.inode, "to": instead }));
    outcome.fact("defaults_moved", moved.collect::<Vec<_>>());
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

    make_moves(&moves, name)?;
    let unloaded = Installed::unload(name, &lock).map_err(|error| {
        if matches!(error, LoadError::StillThere(_)) {
            return failure(error);
        }
        // It is still there, so it can be the default again.
        if take_back(&moves, name) { failure(error) } else { Failure::not_undone(error) }
    })?;
    // Somebody may have chosen it between the look and its end. A name that is gone can still be written over.
    let late = Survey::take()?;
    make_moves(&self::moves(&late, arguments, previous.as_deref())?, name)
        .map_err(|error| Failure::not_undone(error.to_string()))?;
    outcome.fact(
        "result",
        match unloaded {
            Unloaded::Control => "unloaded",
            Unloaded::Leftovers => "leftovers_removed",
            Unloaded::Orphan => "orphan_unloaded",
        },
    );
    let moved = match moves.as_slice() {
        [] => String::new(),
        [(space, instead)] => format!(" The default is now {instead} in {}.", space.place_words()),
        many => format!(" The default was moved away in {} network namespaces.", many.len()),
    };
    outcome.finish(&match unloaded {
        Unloaded::Control => format!("Took {name} out.{moved}"),
        Unloaded::Leftovers => format!("Cleared away what a loader that was killed left of {name}.{moved}"),
        Unloaded::Orphan => format!("Took out {name}, whose loader was killed before it could pin it.{moved}"),
    })
}

/// A namespace and the default that it gets.
type Move<'a> = (&'a Space, String);

/// What to make the default, in each namespace where it is the one that goes: the wish of the user, or else the first that the kernel
/// has, and lets this namespace have, of the default before `load --default`, cubic, bbr, and the others.
fn moves<'a>(survey: &'a Survey, arguments: &'a Arguments, previous: Option<&str>) -> Result<Vec<Move<'a>>, Failure> {
    let others = |names: Vec<String>| names.into_iter().filter(|there| *there != arguments.name).collect::<Vec<_>>();
    let available = others(cc::available().map_err(Failure::failed)?);
    let allowed = others(cc::allowed().map_err(Failure::failed)?);
    if let Some(chosen) = &arguments.to
        && !available.contains(chosen)
    {
        return Err(Failure::usage(format_args!("--to {chosen}: this kernel has {}", available.join(", "))));
    }
    let first = std::fs::metadata("/proc/1/ns/net").map(|found| found.ino()).ok();
    let choose = |space: &Space| {
        // Only the first namespace may have one that is not open to all.
        let usable = if first == Some(space.place.inode) { &available } else { &allowed };
        let wishes = previous.into_iter().chain(["cubic", "bbr"]).map(str::to_owned).chain(usable.iter().cloned());
        arguments.to.clone().or_else(|| wishes.into_iter().find(|name| usable.contains(name)))
    };
    survey
        .defaulting_to(&arguments.name)
        .map(|space| {
            let instead = choose(space);
            let nothing =
                || Failure::failed(format_args!("{} may have no other congestion control", space.place_words()));
            instead.map(|instead| (space, instead)).ok_or_else(nothing)
        })
        .collect()
}

/// Makes all of them, or none.
fn make_moves(moves: &[Move<'_>], name: &str) -> Result<(), Failure> {
    for (done, (space, instead)) in moves.iter().enumerate() {
        if let Err(error) = space.set_default(instead) {
            let message =
                format!("{name} is the default in {}, and that can't be changed: {error}", space.place_words());
            let back = take_back(&moves[..done], name);
            return Err(if back { Failure::failed(message) } else { Failure::not_undone(message) });
        }
    }
    Ok(())
}

/// Whether all of them could be taken back.
fn take_back(moves: &[Move<'_>], name: &str) -> bool {
    moves.iter().filter(|(space, _)| space.set_default(name).is_err()).count() == 0
}
