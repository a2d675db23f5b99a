//! Runs a command while BBRv3 is loaded: `with_bbr3 NAME LOSS_THRESHOLD_PERCENT COMMAND…`. For `tests/vm/bbr3-test`; exits with the command's
//! status.

use std::process::{Command, ExitCode};

use bbr3::{Knobs, Loaded, Options};
use units::Probability;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, percent, command @ ..] = words.as_slice() else {
        eprintln!("usage: with_bbr3 NAME LOSS_THRESHOLD_PERCENT COMMAND…");
        return ExitCode::from(2);
    };
    let threshold = Probability::from_ppb(percent.parse::<u32>().expect("a whole percentage") * 10_000_000);
    let knobs = Knobs { loss_thresh: threshold, startup_loss_thresh: threshold, ..Knobs::default() };
    let loaded = match Loaded::ephemeral(&Options { name: name.clone(), knobs }) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("with_bbr3: {error}");
            return ExitCode::from(4);
        }
    };
    eprintln!("with_bbr3: {name} is loaded, {:?}", loaded.kernel());
    let status = Command::new(&command[0]).args(&command[1..]).status().expect("run the command");
    let totals = loaded.totals().expect("read the counters");
    eprintln!("with_bbr3: {totals:?}");
    if totals.acks == 0 || totals.degraded > 0 {
        eprintln!("with_bbr3: the program did not carry the traffic");
        return ExitCode::from(5);
    }
    ExitCode::from(status.code().unwrap_or(1) as u8)
}
