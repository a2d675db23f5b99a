//! Throws mutated files at everything that reads and judges them, for as many seconds as asked, and counts: the same as the fuzz
//! target without its guidance, and many times faster. A panic ends it with the input in hexadecimal.
//!
//!     cargo run --release -p linerate-tuning --example throw_bytes -- SECONDS SEED FOLDER…

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Pieces that decide how a file is read.
const PIECES: [&str; 24] = [
    "\n",
    "=",
    "#",
    ";",
    "<<EOF\n",
    "\nEOF\n",
    "\"",
    "'",
    "\\",
    "$(",
    "${",
    "[sysctl]\n",
    "sysctls:\n",
    "  - ",
    "|\n",
    "\u{200b}",
    "\u{feff}",
    "net.ipv4.tcp_rmem = ",
    "net.core.somaxconn=",
    "sysctl -w ",
    "echo ",
    " >> /etc/sysctl.conf",
    "# linerate: allow LR012 x\n",
    "\0",
];

/// Longer inputs find nothing that these don't.
const LONGEST: usize = 600;

fn mutated(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] = random.next() as u8,
            1 => bytes.insert(at, random.next() as u8),
            2 => {
                let end = (at + random.below(30)).min(bytes.len());
                bytes.drain(at..end);
            }
            3 => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.splice(at..at, piece.bytes());
            }
            4 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                bytes.splice(at..at, other[from..].iter().copied());
            }
            5 => {
                let end = (at + random.below(40)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, seed, folders @ ..] = arguments.as_slice() else { panic!("SECONDS SEED FOLDER…") };
    let seeds: Vec<Vec<u8>> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(Path::new(folder)).expect("a folder"))
        .filter_map(|entry| std::fs::read(entry.ok()?.path()).ok())
        .collect();
    assert!(!seeds.is_empty(), "no seeds");
    let mut random = Random(seed.parse::<u64>().expect("a seed").wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let end = Instant::now() + Duration::from_secs(seconds.parse().expect("seconds"));
    let mut count = 0_u64;
    while Instant::now() < end {
        for _ in 0..256 {
            let bytes = mutated(&mut random, &seeds);
            if catch_unwind(AssertUnwindSafe(|| tuning::lint::exercise(&bytes))).is_err() {
                let hexadecimal: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                println!("after {count} executions: {hexadecimal}");
                std::process::exit(1);
            }
            count += 1;
        }
    }
    println!("{count} executions from {} seeds, seed {seed}: no panic", seeds.len());
}
