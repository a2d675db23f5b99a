//! `linerate cc status`.

use bbr3::{Found, Generation, Installed, Mode, State, Totals};
use serde_json::{Value, json};

use super::knobs;
use super::situation::{failure, registered};
use super::survey::Survey;
use super::{boot, document, table};
use crate::exit::{Exit, Failure};
use crate::output;

/// Arguments of `cc status`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only this control [default: every one that linerate loaded]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// One control of linerate's, or what is left of one.
struct Control {
    name: String,
    installed: Option<Installed>,
    leftovers: bool,
    /// Programs by this name that the kernel holds, oldest first.
    generations: Vec<Generation>,
}

impl Control {
    fn current_map(&self) -> Option<u32> {
        self.installed.as_ref().and_then(Installed::map_id)
    }

    fn is_current(&self, generation: &Generation) -> bool {
        self.current_map() == Some(generation.map_id)
    }

    fn current(&self) -> Option<&Generation> {
        self.generations.iter().find(|generation| self.is_current(generation))
    }

    fn state(&self) -> &'static str {
        match (&self.installed, self.leftovers) {
            (Some(_), _) => "installed",
            (None, true) => "leftovers",
            (None, false) if self.registered_elsewhere() => "held_by_process",
            (None, false) => "unloaded",
        }
    }

    fn registered_elsewhere(&self) -> bool {
        host::cc::available().is_ok_and(|all| all.contains(&self.name))
    }
}

fn controls(only: Option<&str>) -> Result<Vec<Control>, Failure> {
    let generations = bbr3::generations().map_err(failure)?;
    let mut names = Installed::names().map_err(failure)?;
    names.extend(generations.iter().filter(|one| one.ours).map(|one| one.name.clone()));
    names.sort();
    names.dedup();
    if let Some(only) = only {
        names.retain(|name| name == only);
    }
    names
        .into_iter()
        .map(|name| {
            let (installed, leftovers) = match Installed::find(&name).map_err(failure)? {
                Found::Control(installed) => (Some(installed), false),
                Found::Leftovers => (None, true),
                Found::Nothing => (None, false),
            };
            let generations = generations.iter().filter(|one| one.ours && one.name == name).cloned().collect();
            Ok(Control { name, installed, leftovers, generations })
        })
        .collect()
}

/// Prints what is loaded. Exit code 1 where nothing is, and where leftovers are.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let controls = controls(arguments.name.as_deref())?;
    let survey = Survey::take()?;
    let clean = !controls.is_empty() && controls.iter().all(|control| !control.leftovers);
    let code = if clean { Exit::Done } else { Exit::Found };
    if arguments.json {
        let mut map = document::head("status");
        map.insert("controls".into(), controls.iter().map(|control| to_json(control, &survey)).collect());
        map.insert("namespaces".into(), survey.to_json());
        map.insert("hidden_processes".into(), survey.hidden_processes.into());
        document::print(map)?;
        return Ok(code);
    }
    let mut text = String::new();
    if controls.is_empty() {
        text += match &arguments.name {
            Some(name) => format!("No control \"{name}\" of linerate is loaded.\n"),
            None => "Nothing is loaded. `linerate cc load` loads BBRv3.\n".to_owned(),
        }
        .as_str();
    }
    for control in &controls {
        text += &words(control, &survey);
    }
    if let Some(gaps) = survey.gaps() {
        text += &format!("{gaps}\n");
    }
    output::print(&output::plain(&text))?;
    Ok(code)
}

fn words(control: &Control, survey: &Survey) -> String {
    let name = &control.name;
    let mut text = match (&control.installed, control.state()) {
        (Some(installed), _) => {
            let about = installed.about().unwrap_or_default();
            let current = control.current().and_then(|current| current.program.as_ref());
            let since = current.map_or_else(String::new, |program| format!(", loaded {} ago", ago(program)));
            format!(
                "{name}: BBRv3, profile {}{since} by linerate {}, registered by {}\n",
                about.profile,
                about.linerate_version,
                registered(installed.registration())
            )
        }
        (None, "leftovers") => {
            format!(
                "{name}: not loaded; /sys/fs/bpf/linerate/{name} holds what a loader that was killed left (`linerate cc unload --name {name}` clears it away)\n"
            )
        }
        (None, "held_by_process") => format!("{name}: loaded by a process that takes it out when it ends\n"),
        (None, _) => format!("{name}: unloaded; sockets that are open run on with it\n"),
    };
    let mut line = |title: &str, value: &str| text += &format!("  {title:<12} {value}\n");
    let defaults: Vec<String> = survey.defaulting_to(name).map(|space| space.place_name()).collect();
    let joined = defaults.join("; ");
    line("default in", if defaults.is_empty() { "no network namespace" } else { &joined });
    line(
        "at boot",
        if boot::is_enabled(name) {
            "loaded (linerate cc disable ends that)"
        } else {
            "not loaded (linerate cc enable)"
        },
    );
    let users = survey.users_of(name);
    line("sockets", &format!("{}, {} listening", table::counted(users.connections, "connection"), users.listeners));
    for space in survey.spaces.iter().filter(|space| space.users_of(name) != Default::default()) {
        let users = space.users_of(name);
        line("", &format!("{}: {}, {} listening", space.place_name(), users.connections, users.listeners));
    }
    if let Some(totals) = control.installed.as_ref().and_then(|installed| installed.totals().ok()) {
        line(
            "since load",
            &format!(
                "{} began, {} ended, {} degraded to Reno ({} of them recovered)",
                table::counted(totals.inits, "socket"),
                totals.releases,
                totals.degraded,
                totals.recovered
            ),
        );
        line(
            "",
            &format!(
                "{} ACKs, {} timeouts, {} undone recoveries, {} probes lost too much",
                totals.acks, totals.timeouts, totals.undos, totals.probes_too_high
            ),
        );
        let entries: Vec<String> =
            Mode::ALL.iter().map(|mode| format!("{} {}", mode.name(), totals.entries_into(*mode))).collect();
        line("entries into", &entries.join(", "));
    }
    if let Some(raw) = control.installed.as_ref().and_then(|installed| installed.knobs().ok()) {
        let knobs = knobs::in_words(raw);
        for (index, row) in knobs.chunks(4).enumerate() {
            let row: Vec<String> = row.iter().map(|(name, value)| format!("{name} {value}")).collect();
            line(if index == 0 { "knobs" } else { "" }, &row.join(", "));
        }
    }
    for (index, generation) in control.generations.iter().enumerate() {
        line(if index == 0 { "programs" } else { "" }, &generation_words(control, generation));
    }
    text
}

fn generation_words(control: &Control, generation: &Generation) -> String {
    let program = generation.program.as_ref();
    let tag = program.map_or("unknown", |program| program.tag.as_str());
    let age = program.map_or_else(String::new, |program| format!(", loaded {} ago", ago(program)));
    let role = match control.state() {
        "held_by_process" => "of that process",
        _ if control.is_current(generation) => "for new sockets",
        _ => "for sockets that had it",
    };
    let sockets = generation
        .totals
        .map_or_else(String::new, |totals| format!(", on {}", table::counted(on_it(&totals), "socket")));
    let cost = program.filter(|program| program.runs > 0).map_or_else(String::new, |program| {
        format!(", {} ns per ACK", program.run_time.as_nanos() / u64::max(program.runs, 1))
    });
    format!("tag {tag}{age}, {role}{sockets}{cost}")
}

fn on_it(totals: &Totals) -> u64 {
    totals.inits.saturating_sub(totals.releases)
}

/// How long ago a program was loaded, in whole seconds.
fn ago(program: &bbr3::Program) -> String {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).map_or(0, |time| time.tv_sec() as u64);
    let then = program.loaded_after_boot.as_nanos() / 1_000_000_000;
    humantime::format_duration(std::time::Duration::from_secs(now.saturating_sub(then))).to_string()
}

fn to_json(control: &Control, survey: &Survey) -> Value {
    let name = control.name.as_str();
    let installed = control.installed.as_ref();
    let about = installed.and_then(Installed::about);
    let users = survey.users_of(name);
    let totals = installed.and_then(|installed| installed.totals().ok());
    json!({
        "name": name,
        "state": control.state(),
        "profile": about.as_ref().map(|about| &about.profile),
        "linerate_version": about.as_ref().map(|about| &about.linerate_version),
        "previous_default": about.as_ref().and_then(|about| about.previous_default.as_ref()),
        "registration": installed.map(|installed| registered(installed.registration())),
        "enabled_at_boot": boot::is_enabled(name),
        "knobs": installed.and_then(|installed| installed.knobs().ok()).map(knobs::to_json),
        "default_in": survey.defaulting_to(name).map(|space| space.place.inode).collect::<Vec<_>>(),
        "live_sockets": users.connections,
        "listening_sockets": users.listeners,
        "totals": totals.as_ref().map(totals_json),
        "programs": control.generations.iter().map(|generation| generation_json(control, generation)).collect::<Vec<_>>(),
    })
}

fn totals_json(totals: &Totals) -> Value {
    let entries = Mode::ALL.iter().map(|mode| (mode.name().to_ascii_lowercase(), totals.entries_into(*mode).into()));
    json!({
        "sockets_began": totals.inits,
        "sockets_ended": totals.releases,
        "sockets_degraded": totals.degraded,
        "sockets_recovered": totals.recovered,
        "acks": totals.acks,
        "probes_too_high": totals.probes_too_high,
        "startups_ended_by_loss": totals.startups_ended_by_loss,
        "undos": totals.undos,
        "timeouts": totals.timeouts,
        "tail_loss_repairs": totals.tail_loss_repairs,
        "idle_restarts": totals.idle_restarts,
        "dropped_events": totals.dropped_events,
        "entries": Value::Object(entries.collect()),
    })
}

fn generation_json(control: &Control, generation: &Generation) -> Value {
    let program = generation.program.as_ref();
    json!({
        "current": control.is_current(generation),
        "map_id": generation.map_id,
        "state": match generation.state {
            State::Initial => "initial",
            State::InUse => "in_use",
            State::ToBeFreed => "to_be_freed",
            State::Ready => "ready",
        },
        "program_id": program.map(|program| program.id),
        "tag": program.map(|program| &program.tag),
        "loaded_s_after_boot": program.map(|program| program.loaded_after_boot.as_nanos() as f64 / 1e9),
        "runs": program.map(|program| program.runs),
        "run_time_ns": program.map(|program| program.run_time.as_nanos()),
        "sockets": generation.totals.as_ref().map(on_it),
    })
}
