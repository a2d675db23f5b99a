//! `--fix`.

use std::path::Path;

use tuning::Catalogue;
use tuning::files::{DefectKind, Document};
use tuning::lint::{self, Surroundings, Target, fix};

use super::arguments::Arguments;
use super::disk;
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

/// Mends each document by itself and writes it where the arguments say. One that can't be written does not keep the others from it.
pub fn write(
    arguments: &Arguments,
    sources: &Sources,
    target: &Target,
    surroundings: &Surroundings,
) -> Result<(), Failure> {
    let mut result = Ok(());
    for (document, path) in sources.documents.iter().zip(&sources.paths) {
        let name = output::plain(&document.name);
        if document.defects.iter().any(|defect| defect.kind == DefectKind::Binary) {
            result = result.and(Err(Failure::failed(format_args!("{name} is no text: there is nothing to mend"))));
            continue;
        }
        let (text, count) = mended(document, target, surroundings);
        let written = match (&arguments.output, path) {
            (Some(output), _) => output::write(output, &text),
            (None, Some(path)) if arguments.in_place => match count {
                0 => Ok(()),
                _ => still_the_same(document, path).and_then(|()| output::replace(path, &text)),
            },
            _ => output::print(&text),
        };
        match (written, &result) {
            (Ok(()), _) => eprintln!("{name}: {count} mended"),
            (Err(failure), Ok(())) => result = Err(failure),
            // The first one is the exit's; all of them are told.
            (Err(failure), Err(_)) => eprintln!("linerate: {}", output::plain(&failure.to_string())),
        }
    }
    result
}

/// Refuses to write over what somebody else wrote since the file was read.
fn still_the_same(document: &Document, path: &Path) -> Result<(), Failure> {
    let now = disk::read(path).map(|bytes| Document::parse(&document.name, &bytes, Some(document.format)));
    if now.is_ok_and(|now| now.source.text() == document.source.text()) {
        return Ok(());
    }
    Err(Failure::failed(format_args!("{} changed while it was judged; it was left as it is: repeat", path.display())))
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
