//! What the lab must reach, measured: `cargo bench -p linerate-lab --bench reach [-- [--repeats N] [ROW…]]`.
//!
//! Prints one line per row: the aim, the median over the repeats with the smallest and largest value, and whether every run was
//! valid. It judges nothing else: figures that miss their aim are printed as they are.

mod accuracy;
mod throughput;

use std::time::Instant;

/// One figure: its value, and why it must not be used.
pub struct Figure {
    /// The value in the row's unit.
    pub value: f64,
    /// Empty for a valid run.
    pub invalid: Vec<String>,
    /// What else was seen.
    pub note: String,
}

struct Row {
    name: &'static str,
    aim: &'static str,
    unit: &'static str,
    measure: fn(u64) -> Result<Figure, Box<dyn std::error::Error>>,
    reached: fn(f64) -> bool,
}

const ROWS: &[Row] = &[
    Row { name: "rate-1mbit", aim: "within 0.5 %", unit: "% off", measure: |s| accuracy::rate(1, s), reached: |v| v.abs() <= 0.5 },
    Row { name: "rate-10mbit", aim: "within 0.5 %", unit: "% off", measure: |s| accuracy::rate(10, s), reached: |v| v.abs() <= 0.5 },
    Row { name: "rate-100mbit", aim: "within 0.5 %", unit: "% off", measure: |s| accuracy::rate(100, s), reached: |v| v.abs() <= 0.5 },
    Row { name: "rate-1gbit", aim: "within 0.5 %", unit: "% off", measure: |s| accuracy::rate(1000, s), reached: |v| v.abs() <= 0.5 },
    Row { name: "delay-idle", aim: "p99 under 200", unit: "us late", measure: accuracy::idle_delay, reached: |v| v < 200.0 },
    Row { name: "random-loss", aim: "inside the binomial 99 % interval", unit: "% of the interval's half", measure: accuracy::random_loss, reached: |v| v.abs() <= 100.0 },
    Row { name: "queue", aim: "0 packets over the limit, early or out of order", unit: "packets", measure: accuracy::queue, reached: |v| v == 0.0 },
    Row { name: "cubic-1gbit", aim: "at least 940", unit: "Mbit/s", measure: |s| throughput::goodput("1gbit", "80ms", "0%", "cubic", s), reached: |v| v >= 940.0 },
    Row { name: "bbr-1gbit-3%", aim: "at least 880", unit: "Mbit/s", measure: |s| throughput::goodput("1gbit", "80ms", "3%", "bbr", s), reached: |v| v >= 880.0 },
    Row { name: "cubic-10gbit", aim: "at least 9000", unit: "Mbit/s", measure: |s| throughput::goodput("10gbit", "100ms", "0%", "cubic", s), reached: |v| v >= 9000.0 },
    Row { name: "bbr-10gbit-0.01%", aim: "at least 6000", unit: "Mbit/s", measure: |s| throughput::goodput("10gbit", "100ms", "0.01%", "bbr", s), reached: |v| v >= 6000.0 },
    Row { name: "transcontinental", aim: "under 180", unit: "s", measure: throughput::transcontinental, reached: |v| v < 180.0 },
];

fn main() {
    let mut repeats = 3;
    let mut only = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bench" => {}
            "--repeats" => repeats = words.next().and_then(|n| n.parse().ok()).expect("--repeats takes a number"),
            name if ROWS.iter().any(|row| row.name == name) => only.push(word),
            other => panic!("no row {other}; there are {}", ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")),
        }
    }
    host::userns::enter_if_needed().expect("namespaces are needed");
    println!("{:18} {:48} {:>10} {:>22}  valid", "row", "aim", "median", "smallest .. largest");
    let begun = Instant::now();
    for row in ROWS.iter().filter(|row| only.is_empty() || only.iter().any(|name| name == row.name)) {
        // A run of minutes is made once.
        let repeats = if row.name == "transcontinental" { 1 } else { repeats };
        let mut figures: Vec<Figure> = (0..repeats).map(|seed| (row.measure)(seed + 1).expect(row.name)).collect();
        figures.sort_by(|a, b| a.value.total_cmp(&b.value));
        let median = figures[figures.len() / 2].value;
        let valid = figures.iter().filter(|figure| figure.invalid.is_empty()).count();
        println!(
            "{:18} {:48} {median:10.3} {:>22}  {valid} of {repeats}  {} {}",
            row.name,
            format!("{} ({})", row.aim, row.unit),
            format!("{:.3} .. {:.3}", figures[0].value, figures[figures.len() - 1].value),
            if (row.reached)(median) && valid == figures.len() { "reached" } else { "NOT REACHED" },
            figures[figures.len() / 2].note,
        );
        for figure in &figures {
            for why in &figure.invalid {
                println!("{:18} invalid: {why}", "");
            }
        }
    }
    println!("{:.0} s in all", begun.elapsed().as_secs_f64());
}
