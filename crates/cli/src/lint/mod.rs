//! `linerate lint`: reads files, asks `tuning`, shows what it says.

mod arguments;
pub mod disk;
pub mod effective;
mod explain;
mod fixes;
mod json;
mod render;
mod sarif;
mod snippet;
mod sources;

pub use arguments::Arguments;

use std::path::Path;

use tuning::effective::timeline;
use tuning::files::{Document, Format};
use tuning::lint::{self, Report, Severity, Surroundings, Target};
use tuning::{Catalogue, KernelVersion};

use crate::exit::{Exit, Failure};
use crate::{document, output};
use sources::Sources;

/// Judges what the arguments name.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(rule) = &arguments.explain {
        return explain::run(rule);
    }
    if arguments.rules {
        return explain::table();
    }
    if arguments.effective {
        return effective::run(arguments);
    }
    fixes::check(arguments)?;
    let sources = read(arguments)?;
    let target = target(arguments, &sources)?;
    let surroundings = Surroundings { modules: sources.modules.clone(), later: sources.later.clone() };
    let report = lint::lint(&sources.documents, &target, &surroundings, Catalogue::builtin());
    for unread in &sources.unread {
        eprintln!("linerate: {}", output::plain(&unread.to_string()));
    }
    if arguments.fix {
        fixes::write(arguments, &sources, &target, &surroundings)?;
    } else if arguments.json {
        json::print(&sources, &target, &report)?;
    } else if arguments.sarif {
        sarif::print(&sources, &report)?;
    } else {
        output::print(&render::report(&sources, &report, arguments.all))?;
    }
    Ok(exit(arguments, &sources, &report))
}

/// What could not be read counts before what was found: the verdict is not whole.
fn exit(arguments: &Arguments, sources: &Sources, report: &Report) -> Exit {
    let least = arguments.fail_on.severity();
    if !sources.unread.is_empty() {
        Exit::Failed
    } else if !arguments.fix && report.findings.iter().any(|finding| finding.severity >= least) {
        Exit::Found
    } else {
        Exit::Done
    }
}

fn read(arguments: &Arguments) -> Result<Sources, Failure> {
    let format = match &arguments.format {
        None => None,
        Some(name) => Some(Format::from_name(name).ok_or_else(|| {
            let names = Format::NAMES.map(|(name, _)| name).join(", ");
            Failure::usage(format_args!("there is no format `{name}`; formats are {names}"))
        })?),
    };
    let sources = match (&arguments.root, arguments.files.is_empty()) {
        (Some(_), false) => return Err(Failure::usage("name files or --root, not both")),
        (Some(root), true) => sources::tree(root)?,
        (None, true) => sources::tree(Path::new("/"))?,
        (None, false) => sources::files(&arguments.files, format),
    };
    if sources.documents.is_empty() && sources.unread.is_empty() {
        return Err(Failure::usage("there are no settings files here; name some"));
    }
    if sources.is_live && is_piped(std::io::stdin()) {
        eprintln!("linerate: these are this host's own files; `linerate lint -` judges what comes in through the pipe");
    }
    Ok(sources)
}

/// Whether somebody sends something in: a pipe or a file, not a terminal and not /dev/null.
fn is_piped(stdin: std::io::Stdin) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let Ok(metadata) = stdin.as_fd().try_clone_to_owned().map(std::fs::File::from).and_then(|file| file.metadata())
    else {
        return false;
    };
    metadata.file_type().is_fifo() || metadata.is_file()
}

/// The target that was named; for a tree its own distribution, and the running kernel where nothing names another.
fn target(arguments: &Arguments, sources: &Sources) -> Result<Target, Failure> {
    let running = document::release().parse().unwrap_or(KernelVersion::new(6, 12));
    let mut target = Target::parse(arguments.target.as_deref().unwrap_or(""), running).map_err(Failure::usage)?;
    if target.distribution.is_none() {
        target.distribution.clone_from(&sources.distribution);
    }
    if sources.is_live && arguments.target.is_none() {
        target.memory = lab::world::memory_total().ok();
        target.is_container = host::container::detect().is_some();
        target.congestion_controls = host::cc::available().ok().filter(|names| names.iter().any(|n| n == "bbr"));
    }
    Ok(target)
}

/// Which documents of a report have findings of a severity; for summaries.
fn count(report: &Report, severity: Severity) -> usize {
    report.count(severity)
}

/// The settings of all documents.
fn settings(documents: &[Document]) -> usize {
    documents.iter().map(|document| document.settings.len()).sum()
}

/// The modules and the distribution of a tree, read once.
fn facts_of(root: &disk::Disk) -> (std::collections::BTreeSet<String>, Option<tuning::effective::Distribution>) {
    (timeline::modules_loaded_at_boot(root), timeline::distribution(root))
}
