//! From a file's text to a [`Scenario`].

mod flows;
mod keys;
mod path;
mod profiles;
mod section;

pub use keys::known_keys;
pub(crate) use path::loss_model;
pub(crate) use profiles::common_sysctls;

use toml::de::DeTable;

use crate::check::complaints;
use crate::error::{Position, Problem, Reason, ScenarioError};
use crate::{RunSpec, Scenario};
use section::{Notes, Section};
use units::Duration;

/// Where the files that a scenario names come from: the crate itself opens none.
pub trait FileSource {
    /// The text of the file `name`, as the scenario writes it: relative to the scenario.
    ///
    /// # Errors
    /// One phrase that says why there is no text, such as `no such file`.
    fn read(&self, name: &str) -> Result<String, String>;
}

/// For scenarios that name no files, such as the built-in ones: refuses every name.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl FileSource for NoFiles {
    fn read(&self, _name: &str) -> Result<String, String> {
        Err("this scenario cannot read files".to_owned())
    }
}

impl<F: Fn(&str) -> Result<String, String>> FileSource for F {
    fn read(&self, name: &str) -> Result<String, String> {
        self(name)
    }
}

/// Runs without one in the file: long enough for BBR's 10 s min-RTT window, with the start-up left out.
const DURATION: Duration = Duration::from_secs(15);
const WARMUP: Duration = Duration::from_secs(3);

impl Default for RunSpec {
    /// One run of 15 s with 3 s of warm-up and seed 1.
    fn default() -> Self {
        Self { duration: DURATION, warmup: WARMUP, repeats: 1, seed: 1 }
    }
}

impl Scenario {
    /// Reads a scenario file. `origin` is its name in errors; `files` gives the texts of the trace files it names.
    ///
    /// # Errors
    /// Every problem found: all that is not TOML; else every unknown or missing key, wrong type and wrong unit; else
    /// everything that [`Scenario::check`] refuses. Each with line and column.
    pub fn parse(text: &str, origin: &str, files: &dyn FileSource) -> Result<Self, ScenarioError> {
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let mut problems: Vec<Problem> = errors.iter().map(|error| syntax(error, text, origin)).collect();
            problems.sort_by_key(|problem| problem.position);
            return Err(ScenarioError::new(problems));
        }
        let mut notes = Notes::new(origin, text);
        let scenario = read(&mut notes, document.get_ref(), files);
        if let Some(error) = notes.take_error() {
            return Err(error);
        }
        for complaint in complaints(&scenario) {
            notes.complain(&complaint);
        }
        match notes.take_error() {
            Some(error) => Err(error),
            None => Ok(scenario),
        }
    }
}

fn syntax(error: &toml::de::Error, text: &str, origin: &str) -> Problem {
    let position = error.span().map(|span| Position::of(text, span.start));
    // One problem, one line.
    let sentence = error.message().lines().collect::<Vec<_>>().join("; ");
    let sentence = sentence.strip_suffix(", expected nothing").unwrap_or(&sentence).to_owned();
    Problem { origin: origin.to_owned(), position, reason: Reason::Syntax(sentence) }
}

/// Reads everything; what could not be read is noted and stands at its default.
fn read(notes: &mut Notes<'_>, document: &DeTable<'_>, files: &dyn FileSource) -> Scenario {
    let top = Section::open(notes, document, "at the top level", "", 0, keys::TOP);
    let flows = flows::read(notes, &top);
    Scenario {
        name: top.required_text(notes, "name"),
        title: top.required_text(notes, "title"),
        about: top.text(notes, "about").unwrap_or_default().trim().to_owned(),
        path: path::read(notes, &top, files),
        flows,
        profiles: profiles::read(notes, &top),
        sysctls: profiles::read_common_sysctls(notes, &top),
        run: read_run(notes, &top),
        published: profiles::read_published(notes, &top),
    }
}

fn read_run(notes: &mut Notes<'_>, top: &Section<'_, '_>) -> RunSpec {
    let default = RunSpec::default();
    let Some(run) = top.table(notes, "run", "[run]", keys::RUN) else { return default };
    RunSpec {
        duration: run.quantity(notes, "duration").unwrap_or(default.duration),
        warmup: run.quantity(notes, "warmup").unwrap_or(default.warmup),
        repeats: run.integer(notes, "repeats").unwrap_or(default.repeats),
        seed: run.integer(notes, "seed").unwrap_or(default.seed),
    }
}
