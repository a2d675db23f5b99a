//! What stands on the terminal while the job runs, and its coin.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A fair coin from a seed.
pub struct Coin(Xoshiro256PlusPlus);

impl Coin {
    /// The same seed tosses the same.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Heads or tails.
    pub fn toss(&mut self) -> bool {
        self.0.next_u64() >> 63 == 1
    }
}

/// One line that moves on a terminal, a line for each run elsewhere.
pub struct Line {
    bar: ProgressBar,
    terminal: bool,
    doing: String,
}

impl Line {
    /// On standard error.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("a constant template"));
        Self { bar, terminal, doing: String::new() }
    }

    /// What the next runs are for.
    pub fn doing(&mut self, what: String) {
        if !self.terminal {
            eprintln!("{what}");
        }
        self.bar.set_message(what.clone());
        self.doing = what;
    }

    /// How the present run goes.
    pub fn now(&self, text: &str) {
        self.bar.set_message(format!("{}: {text}", self.doing));
        self.bar.tick();
    }

    /// A run's figure, which stays.
    pub fn ran(&self, text: &str) {
        if self.terminal {
            self.bar.println(format!("  {text}"));
        } else {
            eprintln!("  {text}");
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
