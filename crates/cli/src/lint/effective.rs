//! `--effective`: who wins for each key.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use tuning::effective::timeline::Verdict;
use tuning::effective::{Dialect, Loss, Root, State, Step, Timeline, Write as Line, timeline};
use tuning::{Catalogue, Key};

use super::arguments::Arguments;
use super::disk::Disk;
use crate::exit::{Exit, Failure};
use crate::{document, output};

/// Prints winners and losers of the keys that were asked for, or of all that some file sets.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let top = arguments.root.as_deref().unwrap_or(Path::new("/"));
    if !top.is_dir() {
        return Err(Failure::usage(format_args!("{} is no folder", top.display())));
    }
    let wanted = arguments.files.iter().map(|key| wanted(&key.to_string_lossy())).collect::<Result<Vec<_>, _>>()?;
    let disk = Disk::new(top);
    let is_live = top == Path::new("/");
    let live = |key: &str| is_live.then(|| host::sysctl::read(&shown(key)).ok()).flatten();
    let universe = universe(&disk);
    let boot = timeline::boot(&disk, &universe);
    let system = timeline::sysctl_system(&disk, &universe, Dialect::Procps);
    let mut unread = Vec::new();
    for file in boot.steps.iter().chain(&system.steps).flat_map(|step| &step.files) {
        let why = match &file.file.state {
            State::Unreadable(why) => why.as_str(),
            State::NoFile(why) => why,
            _ => continue,
        };
        let line = format!("can't read {}: {why}", file.file.path);
        if !unread.contains(&line) {
            unread.push(line);
        }
    }
    for line in &unread {
        eprintln!("linerate: {}", output::plain(line));
    }
    let (at_boot, later) = (boot.verdicts(), system.verdicts());
    let keys: Vec<&str> = at_boot
        .keys()
        .chain(later.keys())
        .copied()
        .filter(|key| wanted.is_empty() || wanted.iter().any(|w| w == key))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    if arguments.json {
        let mut head = document::head("lint-effective");
        let list = keys.iter().map(|key| as_json(key, at_boot.get(key), later.get(key), live(key).as_deref()));
        head.insert("keys".into(), list.collect());
        head.insert("files".into(), files_json(&boot));
        document::print(head)?;
    } else {
        let mut out = String::new();
        for key in &keys {
            out += &entry(key, at_boot.get(key), later.get(key), live(key).as_deref());
        }
        for key in wanted.iter().filter(|key| !keys.contains(&key.as_str())) {
            let now = live(key).map(|now| format!("; now it is {}", visible(&now))).unwrap_or_default();
            let known = if Catalogue::builtin().lookup(key).is_some() || !now.is_empty() {
                ""
            } else {
                ", and this version knows no such key"
            };
            let _ = writeln!(out, "{}: no file sets it{known}{now}", shown(key));
        }
        if wanted.is_empty() {
            out += &passed_over(&boot);
        }
        if out.is_empty() {
            out += "no file sets anything\n";
        }
        output::print(&output::plain(&out))?;
    }
    Ok(if unread.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The key that was asked for; its last part is enough where only one key ends so.
fn wanted(text: &str) -> Result<String, Failure> {
    let key = Key::parse(text).map_err(|why| Failure::usage(format_args!("`{text}` is no key: {why}")))?;
    if Catalogue::builtin().lookup_key(&key).is_none() && !text.contains(['.', '/']) {
        let ends_so = |name: &str| name.rsplit('.').next() == Some(text);
        let mut same = Catalogue::builtin().knobs().iter().filter(|knob| ends_so(&knob.name) && !knob.is_pattern());
        if let (Some(only), None) = (same.next(), same.next())
            && let Ok(key) = Key::parse(&only.name)
        {
            return Ok(key.path().to_owned());
        }
    }
    Ok(key.path().to_owned())
}

/// The keys to which patterns are expanded: those of the kernel for this host, else those of the catalogue.
pub fn universe(disk: &Disk) -> Vec<String> {
    let mut keys = Vec::new();
    let mut folders = vec![
        "/proc/sys/net".to_owned(),
        "/proc/sys/vm".to_owned(),
        "/proc/sys/kernel".to_owned(),
        "/proc/sys/fs".to_owned(),
    ];
    while let Some(folder) = folders.pop() {
        for name in disk.list(&folder).unwrap_or_default() {
            let path = format!("{folder}/{name}");
            match disk.entry(&path) {
                Ok(Some(tuning::effective::Entry::Directory)) => folders.push(path),
                Ok(Some(tuning::effective::Entry::File)) => keys.push(path["/proc/sys/".len()..].to_owned()),
                _ => {}
            }
        }
    }
    if keys.is_empty() {
        for knob in Catalogue::builtin().knobs() {
            let names = if knob.is_pattern() { vec!["all", "default"] } else { vec![""] };
            keys.extend(
                names
                    .iter()
                    .filter_map(|name| Key::parse(&knob.name.replacen('*', name, 1)).ok())
                    .map(|key| key.path().to_owned()),
            );
        }
    }
    keys.sort();
    keys
}

fn shown(path: &str) -> String {
    Key::parse(path).map_or_else(|_| path.to_owned(), |key| key.to_string())
}

fn at(step: &Step, line: &Line) -> String {
    let (path, number) = step.files[line.file].place(line.span);
    let pattern = line.pattern.as_ref().map(|p| format!(" by the pattern {}", shown(p))).unwrap_or_default();
    format!("{path}:{number}{pattern}")
}

fn entry(key: &str, boot: Option<&Verdict<'_>>, later: Option<&Verdict<'_>>, live: Option<&str>) -> String {
    let mut out = String::new();
    let value = |verdict: Option<&Verdict<'_>>| verdict.and_then(|v| v.winner).map(|(_, line)| line.value.clone());
    let (first, second) = (value(boot), value(later));
    match boot.and_then(|v| v.winner) {
        Some((step, line)) => {
            let _ = writeln!(out, "{} = {}", shown(key), line.value);
            let _ = writeln!(out, "    at boot, {}: {}", step.applier.name(), at(step, line));
        }
        None => {
            let _ = writeln!(out, "{}: not set at boot", shown(key));
        }
    }
    out += &losers(boot);
    if first != second {
        match later.and_then(|v| v.winner) {
            Some((step, line)) => {
                let _ = writeln!(out, "    but {} after `sysctl --system`: {}", line.value, at(step, line));
            }
            None => out += "    `sysctl --system` does not set it\n",
        }
    }
    // Before the next boot the kernel may have another value: somebody set it, or the files have changed since.
    if let Some(live) = live {
        let planned = first.as_deref().map(same_blanks);
        match planned {
            Some(planned) if planned == live => out += "    now: the same\n",
            _ => {
                let _ = writeln!(out, "    now: {}", visible(live));
            }
        }
    }
    out
}

fn visible(value: &str) -> &str {
    if value.is_empty() { "empty" } else { value }
}

fn same_blanks(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn losers(verdict: Option<&Verdict<'_>>) -> String {
    let mut out = String::new();
    let Some(verdict) = verdict else { return out };
    for (step, outcome) in &verdict.steps {
        for (line, loss) in &outcome.losers {
            let _ = writeln!(out, "    loses: {} in {} ({})", line.value, at(step, line), reason(*loss));
        }
        let is_winner = verdict.winner.is_some_and(|(winner, _)| std::ptr::eq(winner, *step));
        if let Some(line) = outcome.winner.as_ref().filter(|_| !is_winner) {
            let _ = writeln!(
                out,
                "    loses: {} in {} ({} comes earlier)",
                line.value,
                at(step, line),
                step.applier.name()
            );
        }
    }
    out
}

fn reason(loss: Loss) -> &'static str {
    match loss {
        Loss::Replaced | Loss::Overwritten => "a later line wins",
        Loss::Same => "says the same",
        Loss::OwnLine => "a pattern, and the key has a line of its own",
        Loss::Excluded => "excluded",
    }
}

/// Files that count for nothing, and why.
fn passed_over(boot: &Timeline) -> String {
    let mut out = String::new();
    for file in boot.steps.iter().flat_map(|step| &step.files) {
        let why = match &file.file.state {
            State::Masked { by } => format!("{by} has its name and comes first"),
            State::Null => "it is a link to /dev/null".to_owned(),
            State::Dangling => "it is a link to nothing".to_owned(),
            _ => continue,
        };
        let _ = writeln!(out, "not read: {} ({why})", file.file.path);
    }
    out
}

fn as_json(key: &str, boot: Option<&Verdict<'_>>, later: Option<&Verdict<'_>>, live: Option<&str>) -> Value {
    let place = |step: &Step, line: &Line| {
        let (file, number) = step.files[line.file].place(line.span);
        json!({"value": line.value, "file": file, "line": number, "by": step.applier.name(), "pattern": line.pattern})
    };
    let winner = |verdict: Option<&Verdict<'_>>| verdict.and_then(|v| v.winner).map(|(step, line)| place(step, line));
    let mut lost = Vec::new();
    for (step, outcome) in boot.map(|v| v.steps.as_slice()).unwrap_or_default() {
        for (line, loss) in &outcome.losers {
            let mut entry = place(step, line);
            entry["reason"] = json!(reason(*loss));
            lost.push(entry);
        }
    }
    json!({"key": shown(key), "at_boot": winner(boot), "sysctl_system": winner(later), "now": live, "losers": lost})
}

fn files_json(boot: &Timeline) -> Value {
    let files = boot.steps.iter().flat_map(|step| step.files.iter().map(move |file| (step, file)));
    files
        .map(|(step, file)| {
            let state = match &file.file.state {
                State::Read { .. } => "read",
                State::Masked { .. } => "masked",
                State::Null => "null",
                State::Dangling => "dangling",
                State::NoFile(_) | State::Unreadable(_) => "unreadable",
            };
            json!({"file": file.file.path, "by": step.applier.name(), "state": state})
        })
        .collect()
}
