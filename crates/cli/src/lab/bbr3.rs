//! `bbr3` for the time of an experiment, where the kernel does not have it.

use scenario::Scenario;

use crate::exit::Failure;

/// Name, in experiments, of the program with the lossy-link profile.
pub const LOSSY: &str = "bbr3_lossy";

/// The programs while they are registered; empty where the kernel has its own, or nobody asked for one.
#[cfg(feature = "bpf")]
pub type ForTheRun = Vec<::bbr3::Loaded>;
/// Nothing: this build has no BPF program.
#[cfg(not(feature = "bpf"))]
pub type ForTheRun = ();

/// Loads our BBRv3 where a scenario uses `bbr3` (faithful) or `bbr3_lossy` (the lossy-link profile) and the kernel has none of that
/// name. It is gone with the value.
#[cfg(feature = "bpf")]
pub fn load_for(scenarios: &[Scenario]) -> Result<ForTheRun, Failure> {
    use ::bbr3::{LoadError, Loaded, NAME, Options, Profile};
    let there = host::cc::available().unwrap_or_default();
    let mut loaded = Vec::new();
    for (name, profile) in [(NAME, Profile::Faithful), (LOSSY, Profile::LossyLink)] {
        if !scenarios.iter().any(|scenario| uses(scenario, name)) {
            continue;
        }
        if there.iter().any(|known| known == name) {
            eprintln!("{}", what_is_there(name));
            continue;
        }
        match Loaded::ephemeral(&Options { name: name.to_owned(), knobs: profile.knobs() }) {
            Ok(program) => loaded.push(program),
            // The kernel's own is used; asking for it loads its module.
            Err(LoadError::NameIsModules(_)) => continue,
            Err(error) => return Err(Failure::failed(error)),
        }
        let which = if profile == Profile::Faithful { "" } else { ", with its lossy-link profile" };
        eprintln!(
            "Loaded BBRv3 as a BPF program for this run as `{name}`{which} ({}); it is taken out afterwards.",
            ::bbr3::DRAFT
        );
    }
    Ok(loaded)
}

/// Which program the runs will use, in a sentence.
#[cfg(feature = "bpf")]
fn what_is_there(name: &str) -> String {
    // Without root bpffs can't be read; the socket tells what it can.
    if let Ok(::bbr3::Found::Control(installed)) = ::bbr3::Installed::find(name) {
        let about = installed.about().unwrap_or_default();
        return format!(
            "Using the BBRv3 that is loaded as `{name}` (linerate {}, profile {}).",
            about.linerate_version, about.profile
        );
    }
    match host::cc::probe_version(name) {
        Ok(version) if version.kind != host::cc::CcKind::Bpf => format!("Using this kernel's own {version}."),
        _ => format!("Using the {name} that another process has loaded as a BPF program."),
    }
}

/// Nothing can be loaded: asking for `bbr3` is then answered like any control that the kernel does not have.
#[cfg(not(feature = "bpf"))]
pub fn load_for(scenarios: &[Scenario]) -> Result<ForTheRun, Failure> {
    let _ = scenarios.iter().any(|scenario| uses(scenario, ::bbr3::NAME) || uses(scenario, LOSSY));
    Ok(())
}

fn uses(scenario: &Scenario, name: &str) -> bool {
    let profiles = scenario.profiles.iter().map(|profile| &profile.congestion_control);
    profiles.chain(scenario.flows.iter().filter_map(|flow| flow.congestion_control.as_ref())).any(|used| used == name)
}
