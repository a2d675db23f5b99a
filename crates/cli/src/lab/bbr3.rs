//! `bbr3` for the time of an experiment, where the kernel does not have it.

use scenario::Scenario;

use crate::exit::Failure;

/// The program while it is registered; empty where the kernel has its own, or nobody asked for it.
#[cfg(feature = "bpf")]
pub type ForTheRun = Option<::bbr3::Loaded>;
/// Nothing: this build has no BPF program.
#[cfg(not(feature = "bpf"))]
pub type ForTheRun = ();

/// Loads our BBRv3 where a scenario uses `bbr3` and the kernel has none. It is gone with the value.
#[cfg(feature = "bpf")]
pub fn load_for(scenarios: &[Scenario]) -> Result<ForTheRun, Failure> {
    if !scenarios.iter().any(uses_it) {
        return Ok(None);
    }
    if host::cc::available().is_ok_and(|all| all.iter().any(|name| name == ::bbr3::NAME)) {
        eprintln!("{}", what_is_there());
        return Ok(None);
    }
    let loaded = match ::bbr3::Loaded::ephemeral(&::bbr3::Options::default()) {
        Ok(loaded) => loaded,
        // The kernel's own is used; asking for it loads its module.
        Err(::bbr3::LoadError::NameIsModules(_)) => return Ok(None),
        Err(error) => return Err(Failure::failed(error)),
    };
    eprintln!("Loaded BBRv3 as a BPF program for this run ({}); it is taken out afterwards.", ::bbr3::DRAFT);
    Ok(Some(loaded))
}

/// Which program the runs will use, in a sentence.
#[cfg(feature = "bpf")]
fn what_is_there() -> String {
    // Without root bpffs can't be read; the socket tells what it can.
    if let Ok(::bbr3::Found::Control(installed)) = ::bbr3::Installed::find(::bbr3::NAME) {
        let about = installed.about().unwrap_or_default();
        return format!(
            "Using the BBRv3 that is loaded (linerate {}, profile {}).",
            about.linerate_version, about.profile
        );
    }
    match host::cc::probe_version(::bbr3::NAME) {
        Ok(version) if version.kind != host::cc::CcKind::Bpf => format!("Using this kernel's own {version}."),
        _ => "Using the bbr3 that another process has loaded as a BPF program.".to_owned(),
    }
}

/// Nothing can be loaded: asking for `bbr3` is then answered like any control that the kernel does not have.
#[cfg(not(feature = "bpf"))]
pub fn load_for(scenarios: &[Scenario]) -> Result<ForTheRun, Failure> {
    let _ = scenarios.iter().any(uses_it);
    Ok(())
}

fn uses_it(scenario: &Scenario) -> bool {
    let profiles = scenario.profiles.iter().map(|profile| &profile.congestion_control);
    profiles
        .chain(scenario.flows.iter().filter_map(|flow| flow.congestion_control.as_ref()))
        .any(|name| name == ::bbr3::NAME)
}
