//! What stands on the terminal while runs are made.

use std::cell::Cell;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use measure::iperf::client::Progress;
use units::{Bytes, Duration, Rate};

use crate::output;

/// One line that moves, or one line per run where there is no terminal.
pub struct Bar {
    bar: ProgressBar,
    terminal: bool,
    last: Cell<(Duration, Bytes)>,
}

impl Bar {
    pub fn new() -> Self {
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a constant template"));
        Self { bar, terminal, last: Cell::new((Duration::ZERO, Bytes::ZERO)) }
    }

    /// A run begins.
    pub fn run(&self, done: usize, runs: usize, name: &str) {
        let text = output::plain(&format!("run {} of {runs}: {name}", done + 1));
        if !self.terminal {
            eprintln!("{text}");
        }
        self.bar.set_prefix(text);
        self.last.set((Duration::ZERO, Bytes::ZERO));
    }

    pub fn progress(&self, progress: Progress) {
        let words = match progress {
            Progress::Waiting => "waiting for the server".to_owned(),
            Progress::Idle => "measuring the idle path".to_owned(),
            Progress::Running { elapsed, planned, counting, forward, reverse } => {
                let (before, bytes) = self.last.get();
                let moved = forward + reverse;
                self.last.set((elapsed, moved));
                let rate = Rate::from_transfer(moved.saturating_sub(bytes), elapsed.saturating_sub(before));
                let of = planned.map_or_else(String::new, |planned| format!(" of {:.0} s", planned.as_secs_f64()));
                let warm_up = if counting { "" } else { ", warm-up" };
                format!("{rate}, {:.0} s{of}{warm_up}", elapsed.as_secs_f64())
            }
        };
        self.bar.set_message(format!("{}: {words}", self.bar.prefix()));
        self.bar.tick();
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
