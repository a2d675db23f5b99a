//! `linerate bench`.

mod compare;
pub mod fill;
mod progress;
pub mod resolve;
mod run;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use measure::iperf::token::Token;
use measure::iperf::wire::PORT;
use units::{Bytes, Duration, Rate};

use crate::exit::{Exit, Failure};
use crate::lab::quantity;
use crate::output;

/// Arguments of `bench`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    test: Test,
}

/// Subcommands of `bench`.
#[derive(Subcommand)]
enum Command {
    /// Is the difference between two reports real?
    Compare(compare::Arguments),
}

/// What to run.
#[derive(clap::Args)]
struct Test {
    /// Name or address of a host with `linerate serve` or `iperf3 -s`
    #[arg(required = true)]
    host: Option<String>,
    /// The server's port
    #[arg(long, short, default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// The server sends
    #[arg(long, short = 'R', conflicts_with = "bidir")]
    reverse: bool,
    /// Both send at once
    #[arg(long)]
    bidir: bool,
    /// Parallel streams in each direction
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    parallel: u32,
    /// Congestion controls to compare, e.g. `cubic,bbr,bbr3`; without it each end's default
    #[arg(long, short = 'C', visible_alias = "congestion", value_delimiter = ',', value_name = "NAME,…")]
    cc: Vec<String>,
    /// Length of a run, warm-up not counted
    #[arg(long, short = 't', value_name = "T", default_value = "10s", value_parser = seconds, conflicts_with = "bytes")]
    time: Duration,
    /// Run until so much was moved instead
    #[arg(long, short = 'n', value_name = "SIZE", value_parser = quantity::<Bytes>)]
    bytes: Option<Bytes>,
    /// Warm-up before each run counts, whole seconds
    #[arg(long, short = 'O', value_name = "T", default_value = "1s", value_parser = seconds)]
    omit: Duration,
    /// Limit of each stream, e.g. `50mbit`
    #[arg(long, short = 'b', value_name = "RATE", value_parser = quantity::<Rate>)]
    rate: Option<Rate>,
    /// Runs per congestion control
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Seed of the random order of runs; without it one is drawn and printed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Only IPv4
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    ipv4: bool,
    /// Only IPv6
    #[arg(short = '6', long = "ipv6")]
    ipv6: bool,
    /// Local address to connect from
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Longest wait for a connection
    #[arg(long, value_name = "T", default_value = "10s", value_parser = seconds)]
    connect_timeout: Duration,
    /// Token for a server that wants one
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Don't probe the delay
    #[arg(long)]
    no_probe: bool,
    /// Write a report for the browser: one file, nothing fetched from elsewhere
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
    /// Write everything as JSON (`-`, or no value, is standard output)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Output")]
    json: Option<PathBuf>,
}

/// Runs it.
pub fn run(arguments: Arguments) -> Result<Exit, Failure> {
    match arguments.command {
        Some(Command::Compare(arguments)) => compare::run(&arguments),
        None => run::run(&arguments.test),
    }
}

/// A length of time; a bare number is seconds, as in iperf3.
fn seconds(text: &str) -> Result<Duration, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return quantity(&format!("{text}s"));
    }
    quantity(text)
}

/// Reads the shared token that both ends have in a file.
pub fn read_token(file: &Path) -> Result<Token, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {error}", file.display()));
    let text = output::read_text(file, 64 << 10).map_err(|error| failed(&error))?;
    Token::new(&text).map_err(|error| failed(&error))
}
