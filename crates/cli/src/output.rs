//! Files and standard output.

use std::io::{IsTerminal, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::exit::Failure;
use crate::why::why;

/// Writes `text` to `file`, or to standard output for `-`. A file appears whole or not at all.
pub fn write(file: &Path, text: &str) -> Result<(), Failure> {
    if file == Path::new("-") {
        return print(text);
    }
    let failed =
        |error: std::io::Error| Failure::failed(format_args!("can't write {}: {}", file.display(), why(&error)));
    let file = &target(file);
    // Pipes and devices can't be replaced by renaming.
    if file.exists() && !file.is_file() {
        return std::fs::write(file, text).map_err(failed);
    }
    whole(file, text, |partial| partial.set_permissions(PermissionsExt::from_mode(0o644))).map_err(failed)
}

/// Replaces the text of a file that is there, of which it keeps the links to it, the owner and the mode. Whole or not at all, also
/// where the disk is full or the power fails.
pub fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::failed(format_args!("can't change {}: {}", file.display(), why(&error)));
    let file = &file.canonicalize().map_err(failed)?;
    let old = std::fs::metadata(file).map_err(failed)?;
    let like_the_old = |partial: &std::fs::File| {
        let new = partial.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            std::os::unix::fs::fchown(partial, Some(old.uid()), Some(old.gid()))?;
        }
        // Behind the owner: a change of that takes special bits away.
        partial.set_permissions(old.permissions())
    };
    whole(file, text, like_the_old).map_err(failed)
}

/// Writes beside the file and renames. Before it has its name, `finish` gives the new file its mode: nobody who may not read the
/// old one gets to see the new one.
fn whole(file: &Path, text: &str, finish: impl FnOnce(&std::fs::File) -> std::io::Result<()>) -> std::io::Result<()> {
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut partial = tempfile::Builder::new().prefix(".linerate-").tempfile_in(folder)?;
    partial.write_all(text.as_bytes())?;
    finish(partial.as_file())?;
    // A name that points to what is not on the disk yet is an empty file after a power failure.
    partial.as_file().sync_all()?;
    partial.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// What a chain of symbolic links leads to, whether that exists or not: a result goes there and the links stay.
fn target(file: &Path) -> PathBuf {
    /// As many as the kernel follows (`MAXSYMLINKS`).
    const MOST: usize = 40;
    let mut file = file.to_owned();
    for _ in 0..MOST {
        let Ok(next) = std::fs::read_link(&file) else { break };
        file = file.parent().map_or_else(|| next.clone(), |folder| folder.join(&next));
    }
    file
}

/// Checks that `file` can be written before minutes of measuring are spent on it.
pub fn check_writable(file: &Path) -> Result<(), Failure> {
    if file == Path::new("-") {
        return Ok(());
    }
    let file = &target(file);
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if file.is_dir() {
        return Err(Failure::usage(format_args!("{} is a folder; name a file in it", file.display())));
    }
    if file.exists() && !file.is_file() {
        return Ok(());
    }
    tempfile::Builder::new().prefix(".linerate-").tempfile_in(folder).map(drop).map_err(|error| {
        Failure::usage(format_args!("can't write {}: {} (folder {})", file.display(), why(&error), folder.display()))
    })
}

/// Reads a text file of at most `most` bytes.
pub fn read_text(file: &Path, most: u64) -> std::io::Result<String> {
    text_of(std::fs::File::open(file)?, most)
}

/// The same out of something that is open already.
pub fn text_of(from: impl Read, most: u64) -> std::io::Result<String> {
    let mut text = String::new();
    let read = from.take(most + 1).read_to_string(&mut text)? as u64;
    if read > most {
        let sentence = format!("it is larger than {}, so it is not what is asked for here", units::Bytes::new(most));
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, sentence));
    }
    Ok(text)
}

/// Prints to standard output; a reader that went away is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format_args!("can't write to standard output: {}", why(&error))))
        }
        _ => Ok(()),
    }
}

/// Prints a document as JSON without making all of its text first; a reader that went away is no error.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut out, document).map_err(std::io::Error::from);
    match written.and_then(|()| writeln!(out)).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format_args!("can't write to standard output: {}", why(&error))))
        }
        _ => Ok(()),
    }
}

/// A list in a document whose entries are made while it is written.
pub struct Each<I, F>(pub I, pub F);

impl<I: Iterator + Clone, T: Serialize, F: Fn(I::Item) -> T> Serialize for Each<I, F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.clone().map(&self.1))
    }
}

/// Text that somebody else wrote, for a terminal: no control characters and none that reverse the writing direction.
pub fn plain(text: &str) -> String {
    let harmful = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// Columns of the terminal on standard output, or 100.
pub fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stdout()).map_or(100, |(width, _)| usize::from(width.0))
}

/// Rows of the terminal on standard output; `None`: it is none.
pub fn height() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(_, height)| usize::from(height.0))
}

/// Whether to colour standard output: a terminal, and `NO_COLOR` not set.
pub fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}
