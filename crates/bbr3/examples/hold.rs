//! Keeps the faithful program (`bbr3`) and the lossy-link one (`bbr3_lossy`) loaded until standard input ends, and then prints their
//! counters: `cargo run -p linerate-bbr3 --example hold`.

use std::io::Read;

use bbr3::{Loaded, NAME, Options, Profile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut loaded = Vec::new();
    for (name, profile) in [(NAME, Profile::Faithful), ("bbr3_lossy", Profile::LossyLink)] {
        loaded.push(Loaded::ephemeral(&Options { name: name.to_owned(), knobs: profile.knobs() })?);
    }
    println!("loaded");
    let mut line = [0_u8; 1];
    // Each line asks for the counters; the end ends it.
    while std::io::stdin().read(&mut line)? > 0 {
        for program in &loaded {
            println!("{} {:?}", program.name(), program.totals()?);
        }
    }
    Ok(())
}
