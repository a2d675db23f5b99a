//! The scenarios that come with the program.

use crate::Scenario;
use crate::error::{Reason, ScenarioError, quoted};
use crate::read::NoFiles;
use crate::suggest::hint;

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

const BUILTIN: &[(&str, &str)] = scenarios![
    "transcontinental",
    "cross-continental-lossy",
    "cellular-4g",
    "long-fat",
    "coexistence",
    "rtt-fairness",
    "shallow-buffer",
    "policer",
    "bufferbloat",
    "bufferbloat-fq-codel",
    "late-joiner",
    "rate-drop",
];

/// Every scenario that comes with the program, as name and text, in the order to list them.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    BUILTIN
}

/// The built-in scenario `name`, as name and text.
///
/// # Errors
/// No scenario of that name: with the nearest one.
pub fn find(name: &str) -> Result<(&'static str, &'static str), ScenarioError> {
    BUILTIN.iter().find(|(known, _)| *known == name).copied().ok_or_else(|| {
        let known: Vec<&str> = BUILTIN.iter().map(|(known, _)| *known).collect();
        let reason = Reason::UnknownName { text: quoted(name), what: "a built-in scenario", hint: hint(name, &known) };
        ScenarioError::one("scenarios", reason)
    })
}

impl Scenario {
    /// The built-in scenario `name`, read.
    ///
    /// # Errors
    /// As [`find`].
    pub fn builtin(name: &str) -> Result<Self, ScenarioError> {
        let (name, text) = find(name)?;
        Self::parse(text, &format!("scenarios/{name}.toml"), &NoFiles)
    }
}
