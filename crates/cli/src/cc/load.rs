//! `linerate cc load`.

use bbr3::{About, Exclusive, Installed, Kernel, Knobs, Options, bpffs};
use host::cc;

use super::Doing;
use super::document::Outcome;
use super::knobs::{self, KnobArguments};
use super::situation::{self, Situation, failure};
use crate::exit::{Exit, Failure};

/// Arguments of `cc load`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The name to register it by: 1 to 15 letters, digits or _
    #[arg(long, value_name = "NAME", default_value = bbr3::NAME)]
    name: String,
    /// Also make it the default of this network namespace (net.ipv4.tcp_congestion_control)
    #[arg(long)]
    default: bool,
    #[command(flatten)]
    knobs: KnobArguments,
    #[command(flatten)]
    doing: Doing,
}

/// Loads it, or says what loading would do.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let name = arguments.name.as_str();
    let options = Options { name: name.to_owned(), knobs: arguments.knobs.resolve(Knobs::default())? };
    let label = arguments.knobs.label("faithful");
    let mut outcome = Outcome::new("load", &arguments.doing);
    outcome.fact("name", name);
    let lock = lock_unless(arguments.doing.dry_run)?;
    let undo = |lock: Option<Exclusive>| lock.map(Exclusive::undo);
    let done = match situation::of(name) {
        Ok(Situation::Kernels) => use_kernels_own(arguments, &mut outcome),
        Ok(Situation::Installed(installed)) => already(&installed, &options, &mut outcome),
        Ok(Situation::Held(ours)) => Err(Failure::failed(held(name, ours))),
        Ok(situation @ (Situation::Free | Situation::Leftovers)) => {
            let leftovers = matches!(situation, Situation::Leftovers);
            install(&options, &label, arguments.default, leftovers, lock.as_ref(), &mut outcome)
        }
        Err(error) => Err(error),
    };
    let done = match done {
        Ok(done) => done,
        Err(error) => {
            undo(lock);
            return Err(error);
        }
    };
    if arguments.default {
        make_default(name, &mut outcome)?;
    } else if let Ok(default) = cc::default_control()
        && default != name
    {
        outcome.note(format!("The default is still {default}: sysctl -w net.ipv4.tcp_congestion_control={name}"));
    }
    outcome.finish(&done)
}

/// The right to change what is loaded, and bpffs; in a dry run only whether it could be had. A mount in which nothing stays goes again
/// with the lock.
pub fn lock_unless(dry_run: bool) -> Result<Option<Exclusive>, Failure> {
    if dry_run {
        return match bpffs::state() {
            bpffs::State::ReadOnly => Err(failure(bbr3::LoadError::BpffsReadOnly)),
            bpffs::State::Absent => Err(failure(bbr3::LoadError::NoBpffs)),
            bpffs::State::Mounted | bpffs::State::NotMounted => Ok(None),
        };
    }
    Exclusive::wait().map(Some).map_err(failure)
}

/// Who holds a name that is in the way.
fn held(name: &str, ours: bool) -> String {
    if ours {
        bbr3::LoadError::HeldByProcess(name.to_owned()).to_string() + ". Wait for its end, or choose another --name"
    } else {
        format!("another BPF program is loaded as \"{name}\": choose another --name")
    }
}

fn use_kernels_own(arguments: &Arguments, outcome: &mut Outcome) -> Result<String, Failure> {
    let name = &arguments.name;
    if !arguments.knobs.is_empty() {
        return Err(Failure::failed(format_args!(
            "this kernel has its own congestion control \"{name}\", and that takes no knobs: load this one by another --name"
        )));
    }
    outcome.fact("result", "kernels_own");
    if outcome.dry_run() {
        outcome.step(format!("use the kernel's own {name}, loading its module where it has to be"));
        return Ok(String::new());
    }
    // Asking for it loads its module.
    let version = cc::probe_version(name).map_err(Failure::failed)?;
    Ok(format!("This kernel has its own {version}: that is used, and nothing was loaded."))
}

fn already(installed: &Installed, options: &Options, outcome: &mut Outcome) -> Result<String, Failure> {
    let name = installed.name();
    let wanted = options.knobs.to_raw().map_err(Failure::usage)?;
    let same_version = installed.about().is_some_and(|about| about.linerate_version == env!("CARGO_PKG_VERSION"));
    if !same_version || installed.knobs().ok() != Some(wanted) {
        let what = if same_version { "with other knobs" } else { "by another version of linerate" };
        return Err(Failure::failed(format_args!(
            "\"{name}\" is loaded already, {what}: `linerate cc upgrade` replaces it, `linerate cc status` shows it"
        )));
    }
    outcome.fact("result", "already_loaded");
    Ok(format!("{name} is loaded already, with these knobs."))
}

fn install(
    options: &Options,
    label: &str,
    default: bool,
    leftovers: bool,
    lock: Option<&Exclusive>,
    outcome: &mut Outcome,
) -> Result<String, Failure> {
    let name = options.name.as_str();
    let kernel = Kernel::detect().map_err(failure)?;
    let registration = situation::registration(kernel);
    if lock.map_or_else(|| bpffs::state() == bpffs::State::NotMounted, Exclusive::mounted_now) {
        outcome.step("mount the BPF file system at /sys/fs/bpf");
    }
    if leftovers {
        outcome.step(format!("clear away what a loader that was killed left in /sys/fs/bpf/linerate/{name}"));
    }
    outcome.step(format!("load BBRv3 (profile {label}) and register it as {name}, by {registration}"));
    outcome.step(format!(
        "pin it in /sys/fs/bpf/linerate/{name}, where it stays until it is unloaded or the machine restarts"
    ));
    outcome.fact("result", if lock.is_some() { "loaded" } else { "would_load" });
    outcome.fact("profile", label);
    outcome.fact("registration", registration);
    outcome.fact("pinned_in", format!("/sys/fs/bpf/linerate/{name}"));
    outcome.fact("knobs", knobs::to_json(options.knobs.to_raw().map_err(Failure::usage)?));
    if let Some(lock) = lock {
        let previous = if default { cc::default_control().ok() } else { None };
        let previous = previous.filter(|previous| previous != name);
        Installed::load(options, &About::new(label, previous.as_deref()), lock).map_err(failure)?;
    }
    Ok(format!(
        "Loaded BBRv3 (profile {label}, {}) as {name}. It stays until `linerate cc unload` or a restart; \
         `linerate cc enable` loads it at boot.",
        bbr3::DRAFT
    ))
}

fn make_default(name: &str, outcome: &mut Outcome) -> Result<(), Failure> {
    let now = cc::default_control().map_err(Failure::failed)?;
    outcome.step(format!("set net.ipv4.tcp_congestion_control to {name} in this network namespace (it is {now})"));
    outcome.fact("previous_default", now.as_str());
    if outcome.dry_run() {
        return Ok(());
    }
    cc::set_default_control(name).map_err(|error| {
        Failure::not_undone(format_args!("{name} is loaded, but could not be made the default: {error}"))
    })?;
    outcome.note(format!("It is the default of new sockets in this network namespace (was {now})."));
    Ok(())
}
