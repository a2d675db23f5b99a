//! `linerate plan`.

pub mod facts;
mod from;
mod text;

use std::path::PathBuf;

use serde_json::json;
use tuning::plan::{Format, Role, Target, plan};
use units::{Bytes, Duration, Rate};

use crate::exit::{Exit, Failure};
use crate::{document, output};

/// Arguments of `plan`.
#[derive(clap::Args)]
pub struct Arguments {
    /// What one connection should reach, such as 10gbit
    #[arg(long, value_name = "RATE", required_unless_present = "print_facts", allow_hyphen_values = true)]
    bandwidth: Option<Rate>,
    /// The path's round-trip time without a queue, such as 100ms
    #[arg(long, value_name = "TIME", required_unless_present = "print_facts", allow_hyphen_values = true)]
    rtt: Option<Duration>,
    /// What the host is for: web, proxy, bulk, video, database, router, kubernetes-node or workstation
    #[arg(long, value_parser = role, value_name = "ROLE", required_unless_present = "print_facts")]
    role: Option<Role>,
    /// How many connections there are at the same time (of a router: those it forwards)
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    connections: Option<u64>,
    /// Plan for a host with this much memory instead of this one's, such as 64GiB
    #[arg(long, value_name = "SIZE", value_parser = memory, allow_hyphen_values = true)]
    memory: Option<Bytes>,
    /// Take the facts out of a file (of `linerate audit --json` or --print-facts; - is standard input) instead of this host
    #[arg(long, value_name = "FILE", visible_alias = "facts")]
    from: Option<PathBuf>,
    /// Print this host's facts as JSON and end: to plan for it elsewhere
    #[arg(long, conflicts_with_all = ["from", "format"])]
    print_facts: bool,
    /// How to print: text, json, sysctl.d, ansible, cloud-init, nixos, kubernetes or containerfile
    #[arg(long, value_parser = notation, default_value = "text", value_name = "FORMAT")]
    format: Notation,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

/// How a plan is printed.
#[derive(Clone, Copy)]
enum Notation {
    Text,
    Json,
    Other(Format),
}

const NOTATIONS: [(&str, Notation); 8] = [
    ("text", Notation::Text),
    ("json", Notation::Json),
    ("sysctl.d", Notation::Other(Format::SysctlD)),
    ("ansible", Notation::Other(Format::Ansible)),
    ("cloud-init", Notation::Other(Format::CloudInit)),
    ("nixos", Notation::Other(Format::Nixos)),
    ("kubernetes", Notation::Other(Format::Kubernetes)),
    ("containerfile", Notation::Other(Format::Containerfile)),
];

fn notation(text: &str) -> Result<Notation, String> {
    let known = NOTATIONS.iter().find(|(name, _)| *name == text);
    known.map(|(_, notation)| *notation).ok_or_else(|| one_of(&NOTATIONS.map(|(name, _)| name)))
}

/// A role by its name.
pub fn role(text: &str) -> Result<Role, String> {
    Role::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| one_of(&Role::ALL.map(Role::name)))
}

/// No host that runs this has less.
const LEAST_MEMORY: Bytes = Bytes::new(16 << 20);

fn memory(text: &str) -> Result<Bytes, String> {
    let memory: Bytes = text.parse().map_err(|error: units::ParseError| error.to_string())?;
    if memory < LEAST_MEMORY {
        return Err(format!("{memory} is less than any host has; write for instance 16GiB"));
    }
    Ok(memory)
}

fn one_of(names: &[&str]) -> String {
    format!("it is one of {}", names.join(", "))
}

/// Reads the facts, makes the plan, prints it. Changes nothing.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let (mut facts, container) = match &arguments.from {
        Some(file) => {
            let facts = from::read(file)?;
            let said =
                facts.container.then(|| "the facts were read in a container, or in a network namespace".to_owned());
            (facts, said)
        }
        None => (facts::of_this_host(), facts::not_the_host()),
    };
    if let Some(memory) = arguments.memory {
        facts = facts::with_memory(facts, memory);
    }
    if arguments.print_facts {
        let mut document = document::head("facts");
        document.insert("facts".into(), json!(facts));
        return output::write(&arguments.output, &document::text(document)?).map(|()| Exit::Done);
    }
    let (Some(bandwidth), Some(rtt), Some(role)) = (arguments.bandwidth, arguments.rtt, arguments.role) else {
        return Err(Failure::usage("a plan needs --bandwidth, --rtt and --role"));
    };
    let target = Target { bandwidth, rtt, role, connections: arguments.connections };
    let plan = plan(&facts, &target).map_err(Failure::usage)?;
    let text = match if arguments.json { Notation::Json } else { arguments.format } {
        Notation::Text => output::plain(&text::render(&plan, &facts, container.as_deref(), output::width())),
        Notation::Other(format) => plan.export(format),
        Notation::Json => {
            let mut document = document::head("plan");
            let serde_json::Value::Object(fields) = json!(plan) else { unreachable!("a plan is an object") };
            document.extend(fields);
            document::text(document)?
        }
    };
    output::write(&arguments.output, &text)?;
    Ok(Exit::Done)
}
