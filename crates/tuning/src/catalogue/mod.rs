//! The catalogue: what every knob means, out of the data files under `data/`.

mod describe;
mod knob;
mod load;
mod look_up;
mod reference;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use describe::{facts, first_sentence};
pub use knob::{
    Access, Advice, Choice, Default, Ignored, Importance, Kind, Knob, OutOfRange, Popular, Range, Scope, ScopeFrom,
};
pub use load::LoadError;
pub use look_up::{Found, Nearest};
pub use reference::reference;

/// All knobs, in the order of their names.
#[derive(Debug)]
pub struct Catalogue {
    knobs: Vec<Knob>,
    /// Names without `*`, as paths, to their places in `knobs`.
    exact: HashMap<String, usize>,
    /// Places in `knobs` of names with `*`.
    patterns: Vec<usize>,
    /// How often each letter occurs in a knob's name, for looking for near ones.
    letters: Vec<[u8; 32]>,
}

static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
    load::load(load::FILES).unwrap_or_else(|error| panic!("the built-in catalogue is broken: {error}"))
});

impl Catalogue {
    /// The catalogue that comes with linerate. Parsed at the first call.
    ///
    /// # Panics
    /// Where the embedded data is broken, which a test excludes.
    pub fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// Reads a catalogue out of other data files than the built-in ones: pairs of a file's name and its text.
    ///
    /// # Errors
    /// [`LoadError`] names the file and the knob.
    pub fn parse(files: &[(&str, &str)]) -> Result<Self, LoadError> {
        load::load(files)
    }

    /// Every knob, by name.
    pub fn knobs(&self) -> &[Knob] {
        &self.knobs
    }
}
