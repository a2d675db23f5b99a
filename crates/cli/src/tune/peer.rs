//! `linerate tune --peer`: this host, and a server at the far end of the path.

use std::io::{BufRead, IsTerminal, Write};

use measure::iperf::wire::PORT;
use measure::traffic::StopFlag;
use tuning::plan::{Facts, Host, PLAN_SCHEMA, Plan, Presence, Role, Target, plan};
use tuning::tune::{Part, parts, run as decide};
use units::{Duration, Rate};

use super::end::{self, Report};
use super::host::HostEnds;
use super::job::Explore;
use super::{AVAILABLE, Arguments, job, split, target, text, with_options};
use crate::bench::resolve::{Family, resolve};
use crate::change::Trials;
use crate::exit::{Exit, Failure};
use crate::{document, output, stop, wrap};

/// Measures, plans, asks, tries, keeps, reports.
pub fn run(arguments: &Arguments, peer: &str) -> Result<Exit, Failure> {
    let real = &arguments.real;
    check(arguments)?;
    let (name, port) = split_port(peer, "--peer")?;
    let started = document::head("tune");
    let servers = resolve(name, port, Family::Any)?;
    let stop = stop::on_signal()?;
    let facts = crate::plan::facts::of_this_host();
    let trials = if arguments.dry_run {
        None
    } else {
        let trials = Trials::begin(&real.place)?;
        // Before anything is measured: whether this host may be changed at all.
        trials.check(&nothing(&facts, arguments.role), real.live_only)?;
        Some(trials)
    };
    let mut ends = HostEnds::new(arguments, peer, servers, stop.clone(), trials)?;
    ends.candidates = candidates(arguments, &facts)?;
    let mut report = Report::new(started);
    ends.line.doing("What else runs here".to_owned());
    let idle = super::idle::look(&StopFlag::from(stop));
    eprint!("{}", idle.words());
    ends.line.doing("The host as it is".to_owned());
    let baseline = ends.one(None, 1)?;
    ends.line.ran(&text::run(false, &baseline.sample));
    let usual = job::Chosen { control: ends.usual_control().to_owned(), carried_bps: baseline.sample.goodput_bps };
    let (path, first) = job::find_path(&mut ends, arguments.bandwidth)?;
    let chosen = job::choose_control(&mut ends, first)?;
    let mut plan = plan_for(&facts, &target(arguments, &path), chosen.as_ref().map(|chosen| chosen.control.as_str()))?;
    job::propose_measured(&mut plan, &usual, chosen.as_ref());
    let all = parts(&plan);
    let (possible, elsewhere) = if real.place.in_namespace { split(all) } else { (all, Vec::new()) };
    eprint!("{}", text::plan(&path, &possible, &elsewhere));
    for sentence in idle.disturbs(&path) {
        eprint!("{}", wrap::hanging("Note: ", &sentence, output::width().min(110)));
    }
    report.baseline = Some(baseline.sample);
    report.idle = Some(idle);
    report.path = Some(path);
    report.plan = Some(plan.clone());
    if let Some(estimate) = ends.runs.iter().rev().find_map(|run| run.path.clone()) {
        eprint!("{}", wrap::hanging("Loss: ", &text::loss(&estimate), output::width().min(110)));
        report.estimate = Some(estimate);
    }
    if arguments.dry_run {
        return end::looked(arguments, report, &ends);
    }
    let whole = Plan { changes: possible.iter().flat_map(|part| part.changes.clone()).collect(), ..plan.clone() };
    if let Some(trials) = &ends.trials {
        // What apply would refuse at the end is refused before hours of runs.
        let prepared = trials.check(&whole, real.live_only)?;
        for note in &prepared.notes {
            eprint!("{}", wrap::hanging("Note: ", note, output::width().min(110)));
        }
    }
    if !real.yes && !possible.is_empty() {
        ask(arguments, &possible)?;
    }
    ends.plan = Some(whole);
    let outcome = with_options(arguments, |options| decide(&mut ends, possible, options));
    end::finish(arguments, report, ends, outcome)
}

/// What can be known to be wrong before anything is done.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let real = &arguments.real;
    if !arguments.warmup.as_nanos().is_multiple_of(1_000_000_000) {
        return Err(Failure::usage("--warmup is whole seconds on a real path: iperf3's protocol knows no others"));
    }
    if real.confirm.is_some_and(|time| !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&time)) {
        return Err(Failure::usage("--confirm takes 1s to 1h: time to look, and to type `linerate confirm`"));
    }
    let nobody = arguments.json.as_deref() == Some(std::path::Path::new("-")) || !std::io::stdin().is_terminal();
    if nobody && !real.yes && !arguments.dry_run {
        return Err(Failure::refused("there is nobody to ask here: --yes does it without, --dry-run only looks"));
    }
    Ok(())
}

/// `HOST`, `HOST:PORT`, `[IPV6]:PORT`, or a bare IPv6 address.
///
/// # Errors
/// Where it is none of them; `what` is how it was given.
pub fn split_port<'p>(peer: &'p str, what: &str) -> Result<(&'p str, u16), Failure> {
    let bad = || Failure::usage(format_args!("{what} {peer}: write HOST, HOST:PORT or [IPv6]:PORT"));
    let (name, port) = match peer.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port),
        _ => (peer, ""),
    };
    if name.is_empty() || (port.is_empty() && peer.ends_with(':') && !peer.contains("::")) {
        return Err(bad());
    }
    let port = if port.is_empty() { PORT } else { port.parse().map_err(|_| bad())? };
    if port == 0 { Err(bad()) } else { Ok((name, port)) }
}

/// A plan without changes: what stands against changing this host at all stands against this one.
fn nothing(facts: &Facts, role: Role) -> Plan {
    Plan {
        schema: PLAN_SCHEMA.to_owned(),
        host: Host {
            name: facts.hostname.clone(),
            id: facts.machine.clone(),
            kernel: facts.kernel.clone(),
            memory_bytes: facts.memory_bytes,
        },
        target: Target { bandwidth: Rate::from_bps(1), rtt: Duration::from_millis(1), role, connections: None },
        changes: Vec::new(),
        kept: Vec::new(),
        notes: Vec::new(),
    }
}

/// Congestion controls that may be chosen: those asked for, else BBR where it is registered, or where its module is there and
/// nobody wants to be asked first: to run it is to load it.
fn candidates(arguments: &Arguments, facts: &Facts) -> Result<Vec<String>, Failure> {
    if let Some(names) = &arguments.cc {
        for name in names {
            host::cc::probe_version(name).map_err(Failure::usage)?;
        }
        return Ok(names.clone());
    }
    let there = host::cc::available().unwrap_or_default();
    let loadable =
        facts.modules.get("tcp_bbr") == Some(&Presence::Loadable) && arguments.real.yes && !arguments.dry_run;
    let usable = |name: &&str| there.iter().any(|known| known == name) || (*name == "bbr" && loadable);
    let found = ["bbr", "bbr3"].into_iter().filter(usable).filter(|name| host::cc::probe_version(name).is_ok());
    Ok(found.map(str::to_owned).collect())
}

/// The plan by this host's facts, with the control that was chosen by measuring.
fn plan_for(facts: &Facts, target: &Target, control: Option<&str>) -> Result<Plan, Failure> {
    let mut facts = facts.clone();
    if let Some(control) = control {
        facts.sysctls.insert(AVAILABLE.to_owned(), control.to_owned());
        facts.modules.remove("tcp_bbr");
    }
    plan(&facts, target).map_err(Failure::usage)
}

/// Asks whoever sits there.
fn ask(arguments: &Arguments, parts: &[Part]) -> Result<(), Failure> {
    let tried = parts.iter().filter(|part| part.block.shows_in_a_transfer()).count();
    let most = tried as u64 * u64::from(arguments.pairs) * 2;
    let time = arguments.duration * most;
    let keeps = match (arguments.real.confirm, arguments.real.live_only) {
        (Some(time), _) => format!("What helps is kept once `linerate confirm` comes within {time}"),
        (None, true) => "What helps is kept until the next restart".to_owned(),
        (None, false) => "What helps is kept, also across restarts".to_owned(),
    };
    output::print(&format!(
        "\nEach block is set and taken back for up to {most} runs, {time} in all. {keeps}; the rest is put back.\nTry this? [y/N] "
    ))?;
    let _ = std::io::stdout().flush();
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::refused("nothing was changed")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_name_or_an_address_with_or_without_a_port() {
        let ok = |text: &str| split_port(text, "--peer").map(|(name, port)| (name.to_owned(), port)).unwrap();
        assert_eq!(ok("far.example"), ("far.example".into(), PORT));
        assert_eq!(ok("far.example:5301"), ("far.example".into(), 5301));
        assert_eq!(ok("192.0.2.1:80"), ("192.0.2.1".into(), 80));
        assert_eq!(ok("2001:db8::1"), ("2001:db8::1".into(), PORT));
        assert_eq!(ok("2001:db8::"), ("2001:db8::".into(), PORT));
        assert_eq!(ok("[2001:db8::1]"), ("[2001:db8::1]".into(), PORT));
        assert_eq!(ok("[2001:db8::1]:99"), ("[2001:db8::1]".into(), 99));
        for bad in ["", ":5201", "far:", "far:0", "far:x", "far:70000"] {
            assert!(split_port(bad, "--peer").is_err(), "{bad}");
        }
    }
}
