//! Congestion controls by the names that scenarios use.

use congestion::{Controller, Reno};

/// The names [`controller`] knows.
pub const CONTROLLERS: [&str; 1] = ["reno"];

/// A congestion control that the simulator does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the simulator has no congestion control {name:?}; it has {}", CONTROLLERS.join(", "))]
pub struct UnknownController {
    /// As it was asked for.
    pub name: String,
}

/// A congestion control by the name Linux has for it; `seed` decides its random choices.
///
/// # Errors
/// A name that is not among [`CONTROLLERS`].
pub fn controller(name: &str, seed: u64) -> Result<Box<dyn Controller>, UnknownController> {
    let _ = seed;
    Ok(match name {
        "reno" => Box::new(Reno::new()),
        _ => return Err(UnknownController { name: name.to_owned() }),
    })
}
