//! `--fix`.

use std::path::Path;

use tuning::Catalogue;
use tuning::files::Document;
use tuning::lint::{self, Surroundings, Target, fix};

use super::arguments::Arguments;
use super::sources::Sources;
use crate::exit::Failure;
use crate::output;

/// Refuses what can't be written before anything is read.
pub fn check(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.fix {
        return Ok(());
    }
    if arguments.files.is_empty() {
        return Err(Failure::usage("--fix wants the file named"));
    }
    let is_single = arguments.files.len() == 1 && !arguments.files[0].is_dir();
    if !arguments.in_place && !is_single {
        return Err(Failure::usage("--fix writes one file; name one, or change all of them with --in-place"));
    }
    if arguments.in_place && arguments.files.iter().any(|file| file == Path::new("-")) {
        return Err(Failure::usage("standard input has no place to change"));
    }
    match &arguments.output {
        Some(output) => output::check_writable(output),
        None => Ok(()),
    }
}

/// One fix may make another possible; they come to an end after a few rounds.
const MOST_ROUNDS: usize = 10;

/// Mends each document by itself and writes it where the arguments say.
pub fn write(
    arguments: &Arguments,
    sources: &Sources,
    target: &Target,
    surroundings: &Surroundings,
) -> Result<(), Failure> {
    for (document, path) in sources.documents.iter().zip(&sources.paths) {
        let (text, count) = mended(document, target, surroundings);
        eprintln!("{}: {count} mended", output::plain(&document.name));
        match (&arguments.output, path) {
            (Some(output), _) => output::write(output, &text)?,
            (None, Some(path)) if arguments.in_place => {
                if count > 0 {
                    output::replace(path, &text)?;
                }
            }
            _ => output::print(&text)?,
        }
    }
    Ok(())
}

fn mended(document: &Document, target: &Target, surroundings: &Surroundings) -> (String, usize) {
    let mut document = document.clone();
    let mut total = 0;
    for _ in 0..MOST_ROUNDS {
        let report = lint::lint(std::slice::from_ref(&document), target, surroundings, Catalogue::builtin());
        let (text, count) = fix::apply(&document, 0, &report.findings);
        if count == 0 {
            break;
        }
        total += count;
        document = Document::parse(&document.name, text.as_bytes(), Some(document.format));
    }
    (document.source.text().to_owned(), total)
}
