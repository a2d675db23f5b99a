//! `linerate cc`: the congestion controls of this kernel, and BBRv3 where it has none.

mod boot;
mod document;
#[cfg(feature = "bpf")]
mod knobs;
mod list;
#[cfg(feature = "bpf")]
mod load;
#[cfg(feature = "bpf")]
mod situation;
#[cfg(feature = "bpf")]
mod status;
mod survey;
mod table;
#[cfg(feature = "bpf")]
mod trace;
#[cfg(feature = "bpf")]
mod unload;
#[cfg(feature = "bpf")]
mod upgrade;

use clap::Subcommand;

use crate::exit::{Exit, Failure};

/// The subcommands of `cc`.
#[derive(Subcommand)]
pub enum Command {
    /// List the congestion controls of this kernel: what each really is, where it is the default, and how many sockets use it
    List(list::Arguments),
    /// Load BBRv3 into the running kernel, to stay until it is unloaded or the machine restarts
    #[cfg(feature = "bpf")]
    Load(load::Arguments),
    /// Show what is loaded: knobs, programs, sockets, counters
    #[cfg(feature = "bpf")]
    Status(status::Arguments),
    /// Replace the loaded program by this version's, or change its knobs, without a moment without it
    #[cfg(feature = "bpf")]
    Upgrade(upgrade::Arguments),
    /// Take it out again; where it is the default, that is moved away first
    #[cfg(feature = "bpf")]
    Unload(unload::Arguments),
    /// Load it at every boot, before anything uses the network (systemd)
    #[cfg(feature = "bpf")]
    Enable(boot::Enable),
    /// No longer load it at boot
    Disable(boot::Disable),
    /// Print what sockets on BBRv3 do, as they do it: changes of state, bounds, losses; or record every ACK for replay
    #[cfg(feature = "bpf")]
    Trace(trace::Arguments),
}

/// Runs one of them.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::List(arguments) => list::run(&arguments),
        #[cfg(feature = "bpf")]
        Command::Load(arguments) => load::run(&arguments),
        #[cfg(feature = "bpf")]
        Command::Status(arguments) => status::run(&arguments),
        #[cfg(feature = "bpf")]
        Command::Upgrade(arguments) => upgrade::run(&arguments),
        #[cfg(feature = "bpf")]
        Command::Unload(arguments) => unload::run(&arguments),
        #[cfg(feature = "bpf")]
        Command::Enable(arguments) => boot::enable(&arguments),
        Command::Disable(arguments) => boot::disable(&arguments),
        #[cfg(feature = "bpf")]
        Command::Trace(arguments) => trace::run(&arguments),
    }
}

/// Options of every subcommand that changes something.
#[derive(clap::Args, Debug, Clone)]
pub struct Doing {
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}
