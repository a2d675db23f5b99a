//! `linerate cc list`.

use host::cc::{self, CcKind};
use host::everywhere::Holder;
use serde_json::json;

use super::survey::Survey;
use super::{document, table};
use crate::exit::{Exit, Failure};
use crate::output;

/// Arguments of `cc list`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Where a control's code is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    BuiltIn,
    Module,
    Bpf,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "builtin",
            Self::Module => "module",
            Self::Bpf => "bpf",
        }
    }
}

struct Control {
    name: String,
    kind: Kind,
    loaded: bool,
    bbr_version: Option<u8>,
    allowed: bool,
}

impl Control {
    /// What it is, for people.
    fn what(&self) -> String {
        match (self.bbr_version, self.kind, self.loaded) {
            (Some(version), _, _) => format!("BBRv{version}"),
            (None, _, false) => "not loaded".to_owned(),
            (None, Kind::Bpf, _) if self.is_ours() => "BBRv3 of linerate".to_owned(),
            (None, Kind::Bpf, _) => "unknown: shows no state".to_owned(),
            (None, _, _) => String::new(),
        }
    }

    fn is_ours(&self) -> bool {
        #[cfg(feature = "bpf")]
        let ours = matches!(bbr3::Installed::find(&self.name), Ok(bbr3::Found::Control(_)));
        #[cfg(not(feature = "bpf"))]
        let ours = false;
        ours
    }
}

/// Names in BPF, as the kernel lists them; none where it does not say.
fn in_bpf() -> Vec<String> {
    #[cfg(feature = "bpf")]
    let names = bbr3::generations().unwrap_or_default().into_iter().map(|generation| generation.name).collect();
    #[cfg(not(feature = "bpf"))]
    let names = Vec::new();
    names
}

fn controls() -> Result<Vec<Control>, Failure> {
    let available = cc::available().map_err(Failure::failed)?;
    let allowed = cc::allowed().map_err(Failure::failed)?;
    let in_bpf = in_bpf();
    let mut controls: Vec<Control> = available
        .iter()
        .map(|name| {
            // One that is not open to this user can't be asked.
            let probed = cc::probe_version(name).ok();
            let kind = match probed.as_ref().map(|probed| probed.kind) {
                _ if in_bpf.contains(name) && !cc::is_loaded_module(name) => Kind::Bpf,
                _ if cc::is_loaded_module(name) => Kind::Module,
                Some(CcKind::Bpf) => Kind::Bpf,
                _ => Kind::BuiltIn,
            };
            Control {
                name: name.clone(),
                kind,
                loaded: true,
                bbr_version: probed.and_then(|probed| probed.bbr_version()),
                allowed: allowed.contains(name),
            }
        })
        .collect();
    let modules =
        cc::in_modules().map_err(|error| Failure::failed(format_args!("look for kernel modules: {error}")))?;
    controls.extend(modules.into_iter().filter(|name| !available.contains(name)).map(|name| Control {
        name,
        kind: Kind::Module,
        loaded: false,
        bbr_version: None,
        allowed: false,
    }));
    Ok(controls)
}

/// Prints what there is.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let controls = controls()?;
    let survey = Survey::take()?;
    if arguments.json {
        return print_json(&controls, &survey);
    }
    let rows: Vec<Vec<String>> = controls
        .iter()
        .map(|control| {
            let defaults: Vec<_> = survey.defaulting_to(&control.name).collect();
            let here = defaults.iter().any(|space| space.place.holder == Holder::Here);
            let elsewhere = defaults.len() - usize::from(here);
            let default = match (here, elsewhere) {
                (true, 0) => "here".to_owned(),
                (true, more) => format!("here, {more} more"),
                (false, 0) => String::new(),
                (false, only) => format!("{only} elsewhere"),
            };
            let users = survey.users_of(&control.name);
            let number = |number: u64| if control.loaded { number.to_string() } else { String::new() };
            vec![
                control.name.clone(),
                control.kind.name().to_owned(),
                control.what(),
                if control.allowed { "all" } else { "root" }.to_owned(),
                default,
                number(users.connections),
                number(users.listeners),
            ]
        })
        .collect();
    let head = ["NAME", "KIND", "WHAT IT IS", "OPEN TO", "DEFAULT IN", "CONNECTIONS", "LISTENING"];
    let mut text = table::columns(&head, &rows);
    let spaces = survey.spaces.len() as u64;
    text += &format!("\nIn {}:\n", table::counted(spaces, "network namespace"));
    for space in &survey.spaces {
        let default = space.default.as_deref().unwrap_or("unknown");
        text += &format!("  {default}: {}\n", space.place_name());
    }
    if let Some(gaps) = survey.gaps() {
        text += &format!("{gaps}\n");
    }
    output::print(&output::plain(&text))?;
    Ok(Exit::Done)
}

fn print_json(controls: &[Control], survey: &Survey) -> Result<Exit, Failure> {
    let mut map = document::head("list");
    let list = controls.iter().map(|control| {
        let users = survey.users_of(&control.name);
        let defaults: Vec<_> = survey.defaulting_to(&control.name).collect();
        json!({
            "name": control.name,
            "kind": control.kind.name(),
            "loaded": control.loaded,
            "bbr_version": if control.kind == Kind::Bpf && control.is_ours() { Some(3) } else { control.bbr_version },
            "allowed": control.allowed,
            "default": defaults.iter().any(|space| space.place.holder == Holder::Here),
            "default_in": defaults.iter().map(|space| space.place.inode).collect::<Vec<_>>(),
            "live_sockets": users.connections,
            "listening_sockets": users.listeners,
        })
    });
    map.insert("controls".into(), list.collect());
    map.insert("namespaces".into(), survey.to_json());
    map.insert("hidden_processes".into(), survey.hidden_processes.into());
    document::print(map)?;
    Ok(Exit::Done)
}
