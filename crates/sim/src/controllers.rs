//! Congestion controls by the names that scenarios use.

use congestion::{Bbr1, Controller, Cubic, Reno, bbr3};

/// The names [`controller`] knows: `bbr` is BBRv1, as on a stock kernel; `bbr3` as the draft has it, `bbr3_lossy` with linerate's profile for lossy links.
pub const CONTROLLERS: [&str; 5] = ["reno", "cubic", "bbr", "bbr3", "bbr3_lossy"];

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
    let unknown = || UnknownController { name: name.to_owned() };
    let bbr3 = |params| -> Result<Box<dyn Controller>, UnknownController> {
        // Both sets of parameters are in range.
        Ok(Box::new(bbr3::Bbr3::new(params, seed).map_err(|_| unknown())?))
    };
    match name {
        "reno" => Ok(Box::new(Reno::new())),
        "cubic" => Ok(Box::new(Cubic::default())),
        "bbr" => Ok(Box::new(Bbr1::new(seed))),
        "bbr3" => bbr3(bbr3::Params::default()),
        "bbr3_lossy" => bbr3(bbr3::Params::lossy_link()),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gives_a_control_and_others_are_answered_with_the_list() {
        assert!(CONTROLLERS.iter().all(|name| controller(name, 7).is_ok()));
        let error = controller("vegas", 0).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("\"vegas\"; it has reno"), "{error}");
    }
}
