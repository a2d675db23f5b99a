//! From arguments to documents. What can't be read is named, and the rest is read.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tuning::effective::timeline::{self, Applier};
use tuning::effective::{Dialect, Distribution, State, order, root};
use tuning::files::{Document, Format};
use tuning::lint::Later;
use tuning::{Catalogue, Key};

use super::disk::{self, Disk};
use crate::exit::Failure;
use crate::why::why;

/// What was read.
#[derive(Default)]
pub struct Sources {
    /// The documents.
    pub documents: Vec<Document>,
    /// Where each of them lies; `None`: standard input.
    pub paths: Vec<Option<PathBuf>>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// Modules of the system they belong to.
    pub modules: Option<BTreeSet<String>>,
    /// The distribution of that system.
    pub distribution: Option<Distribution>,
    /// Whether that system is this one.
    pub is_live: bool,
    /// What others set behind the files.
    pub later: Vec<Later>,
}

/// A file that could not be read.
pub struct Unread {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can't read {}: {}", self.name, self.why)
    }
}

impl Sources {
    fn fail(&mut self, name: impl fmt::Display, error: &io::Error) {
        self.unread.push(Unread { name: name.to_string(), why: why(error) });
    }

    fn add(&mut self, name: &str, path: Option<PathBuf>, bytes: &[u8], format: Option<Format>) {
        self.documents.push(Document::parse(name, bytes, format));
        self.paths.push(path);
    }
}

/// Reads the files that were named.
pub fn files(paths: &[PathBuf], format: Option<Format>) -> Sources {
    let mut sources = Sources::default();
    for path in paths {
        if path == Path::new("-") {
            match disk::read_all(io::stdin().lock()) {
                Ok(bytes) => sources.add("<stdin>", None, &bytes, format),
                Err(error) => sources.fail("standard input", &error),
            }
        } else if path.is_dir() {
            folder(path, format, &mut sources);
        } else {
            file(path, format, &mut sources);
        }
    }
    sources
}

fn file(path: &Path, format: Option<Format>, sources: &mut Sources) {
    match disk::read(path) {
        Ok(bytes) => sources.add(&path.to_string_lossy(), Some(path.to_owned()), &bytes, format),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let hint = meant(&path.to_string_lossy()).unwrap_or_else(|| why(&error));
            sources.unread.push(Unread { name: path.display().to_string(), why: hint });
        }
        Err(error) => sources.fail(path.display(), &error),
    }
}

/// What to do where a key or a setting was given in place of a file.
fn meant(text: &str) -> Option<String> {
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    let found = Catalogue::builtin().lookup(key.trim())?;
    Some(match value {
        Some(_) => format!("that is a setting, not a file; echo '{text}' | linerate lint -"),
        None => {
            format!("that is a key, not a file; `linerate knobs {0}`, or `linerate lint --effective {0}`", found.key)
        }
    })
}

/// The settings files of a folder, by name.
fn folder(path: &Path, format: Option<Format>, sources: &mut Sources) {
    const ENDINGS: [&str; 5] = ["conf", "sh", "yaml", "yml", "bash"];
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return sources.fail(path.display(), &error),
    };
    let mut inside: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|file| file.extension().is_some_and(|e| ENDINGS.iter().any(|known| e == *known)) && !file.is_dir())
        .collect();
    inside.sort();
    if inside.is_empty() {
        let what = format!("it is a folder without settings files ({})", ENDINGS.map(|e| format!("*.{e}")).join(", "));
        sources.fail(path.display(), &io::Error::other(what));
    }
    for path in &inside {
        file(path, format, sources);
    }
}

/// Reads what a system applies at boot.
pub fn tree(top: &Path) -> Result<Sources, Failure> {
    if !top.is_dir() {
        return Err(Failure::usage(format_args!("{} is no folder", top.display())));
    }
    let root = Disk::new(top);
    let mut list = order::files(&root, Dialect::Systemd);
    list.extend(order::single(&root, "/etc/sysctl.conf").filter(|file| !is_linked(&root, &list, &file.path)));
    list.extend(order::single(&root, "/etc/ufw/sysctl.conf"));
    let (modules, distribution) = super::facts_of(&root);
    let is_live = top == Path::new("/");
    let shown = |path: &str| top.join(path.trim_start_matches('/')).display().to_string();
    let later = later(&root, shown);
    let mut sources = Sources { modules: Some(modules), distribution, is_live, later, ..Sources::default() };
    for mut profile in timeline::tuned_profiles(&root) {
        let place = top.join(profile.name.trim_start_matches('/'));
        profile.name = shown(&profile.name);
        sources.documents.push(profile);
        sources.paths.push(Some(place));
    }
    for file in list {
        let shown = shown(&file.path);
        match file.state {
            State::Read { target } => match tuning::effective::Root::read(&root, &target) {
                Ok(bytes) => {
                    let place = top.join(target.trim_start_matches('/'));
                    sources.add(&shown, Some(place), &bytes, None);
                }
                Err(error) => sources.unread.push(Unread { name: shown, why: error.to_string() }),
            },
            State::NoFile(why) => sources.unread.push(Unread { name: shown, why: why.to_owned() }),
            State::Unreadable(why) => sources.unread.push(Unread { name: shown, why }),
            State::Dangling => sources.unread.push(Unread { name: shown, why: "it is a link to nothing".to_owned() }),
            State::Masked { .. } | State::Null => {}
        }
    }
    Ok(sources)
}

/// What tuned has the last word in.
fn later(root: &Disk, shown: impl Fn(&str) -> String) -> Vec<Later> {
    let boot = timeline::boot(root, &[]);
    let verdicts = boot.verdicts().into_iter();
    let winners = verdicts.filter_map(|(key, verdict)| Some((key, verdict.winner?)));
    let of_tuned = winners.filter(|(_, (step, _))| matches!(step.applier, Applier::Tuned | Applier::TunedAgain));
    of_tuned
        .filter_map(|(key, (step, write))| {
            let (file, line) = step.files[write.file].place(write.span);
            let key = Key::parse(key).ok()?.path().to_owned();
            let value = write.value.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(Later { key, value, by: step.applier.name(), file: shown(&file), line })
        })
        .collect()
}

/// Whether one of the files is a link to `path`: then it is read already.
fn is_linked(root: &Disk, files: &[order::ConfFile], path: &str) -> bool {
    let Ok(root::Resolved::File(target)) = root::resolve(root, path) else { return false };
    files.iter().any(|file| matches!(&file.state, State::Read { target: t } if *t == target))
}
