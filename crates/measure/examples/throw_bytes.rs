//! Throws mutated messages at the reader of the control protocol, many times faster than the guided fuzzer (`fuzz/`) does:
//! `cargo run --release -p linerate-measure --example throw_bytes -- EXECUTIONS SEED FOLDER…`. A panic shows the seed and the execution.

use std::fs;

use linerate_measure::iperf::wire;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

type Failure = Box<dyn std::error::Error>;

/// What JSON and the protocol are made of.
const PIECES: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b"null",
    b"true",
    b"-1",
    b"0",
    b"1e308",
    b"1e+15",
    b"18446744073709551616",
    b"0.5",
    b"\"linerate\":",
    b"\"streams\":[{}]",
    b"\"parallel\":129",
    b"\"num\":1e19",
    b"\"bandwidth\":-5",
    b"\xff",
    b"\0\0\0\x02{}",
    b"\"time\":86401",
    b"\"samples\":[[",
];

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let executions: u64 = arguments.next().ok_or("EXECUTIONS SEED FOLDER…")?.parse()?;
    let seed: u64 = arguments.next().ok_or("EXECUTIONS SEED FOLDER…")?.parse()?;
    let mut seeds = Vec::new();
    for folder in arguments {
        for entry in fs::read_dir(folder)? {
            seeds.push(fs::read(entry?.path())?);
        }
    }
    if seeds.is_empty() {
        return Err("no seeds in these folders".into());
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |bound: usize| ((u128::from(random.next_u64()) * bound.max(1) as u128) >> 64) as usize;
    for execution in 0..executions {
        let mut bytes = seeds[below(seeds.len())].clone();
        for _ in 0..=below(6) {
            let at = below(bytes.len() + 1);
            match below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << below(8),
                1 => drop(bytes.splice(at..at, PIECES[below(PIECES.len())].iter().copied())),
                2 => bytes.truncate(at),
                3 if at < bytes.len() => drop(bytes.drain(at..(at + 1 + below(8)).min(bytes.len()))),
                4 => {
                    let other = &seeds[below(seeds.len())];
                    let from = below(other.len());
                    let part: Vec<u8> = other[from..(from + below(64)).min(other.len())].to_vec();
                    drop(bytes.splice(at..at, part));
                }
                _ if at < bytes.len() => bytes[at] = below(256) as u8,
                _ => {}
            }
        }
        // A seed that is not new again shows which it was.
        let result = std::panic::catch_unwind(|| wire::exercise(&bytes));
        if result.is_err() {
            fs::write("thrown-input", &bytes)?;
            return Err(format!("seed {seed}, execution {execution}: see thrown-input").into());
        }
    }
    println!("{executions} executions from {} seeds, random seed {seed}: nothing found", seeds.len());
    Ok(())
}
