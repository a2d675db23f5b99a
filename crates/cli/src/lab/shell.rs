//! `linerate lab shell`: a shell, or a command, at the near end of an emulated path.

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use lab::session::{DataFrom, Session, Setup};
use lab::world::{CLIENT, DEVICE, SERVER};
use signal_hook::consts::{SIGINT, SIGKILL, SIGQUIT};

use super::arguments::Vary;
use crate::exit::{Exit, Failure};
use crate::output;

/// Arguments of `lab shell`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A built-in scenario, or a scenario file
    scenario: String,
    #[command(flatten)]
    vary: Vary,
    /// Which directions have the path's rate, loss and queue
    #[arg(long, value_enum, default_value_t)]
    direction: Direction,
    /// A command to run at the far end meanwhile, e.g. `iperf3 -s`
    #[arg(long, value_name = "COMMAND")]
    far: Option<String>,
    /// What to run at the near end instead of a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Which directions are the scenario's data direction.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Direction {
    /// Both: what you send and what you get
    #[default]
    Both,
    /// From you to the far end; the way back is the scenario's
    Up,
    /// From the far end to you
    Down,
}

/// Runs the shell; the exit code is that of the command.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    refuse_what_has_no_meaning(&arguments.vary)?;
    let scenario = super::load(&arguments.scenario, &arguments.vary)?;
    let bbr3 = super::bbr3::load_for(std::slice::from_ref(&scenario))?;
    super::prerequisites()?;
    let cell = super::first_cell(&scenario)?;
    let cells = scenario.cells().map_or(0, |cells| cells.len());
    let mut sysctls = scenario.sysctls.clone();
    sysctls.extend(cell.profile.sysctls.iter().cloned());
    // Ctrl-C belongs to the shell inside; a handler that does nothing is not inherited by it, ignoring would be.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, std::sync::Arc::default())
            .map_err(|error| Failure::failed(format_args!("can't watch for Ctrl-C: {error}")))?;
    }
    let both = arguments.direction == Direction::Both;
    let session = Session::start(Setup {
        forward: &cell.forward,
        back: if both { &cell.forward } else { &cell.back },
        data_from: if arguments.direction == Direction::Down { DataFrom::Server } else { DataFrom::Client },
        seed: cell.seed,
        mtu: scenario.path.mtu,
        sysctls: &sysctls,
        flows: 0,
        probe: false,
        log_packets: false,
        capture: None,
    })
    .map_err(Failure::failed)?;
    let control = &cell.profile.congestion_control;
    session.world.set_default_control(control).map_err(Failure::failed)?;
    eprintln!(
        "{}: RTT {}, loss {}, queue {}{}\nYou are {CLIENT}, the far end is {SERVER} (also in $LINERATE_SERVER); new connections use {control}.",
        output::plain(&scenario.name),
        cell.rtt,
        cell.loss,
        cell.queue,
        if cells > 1 {
            " (the first of its variants; choose with --profile, --cc, --loss, --rtt, --queue)"
        } else {
            ""
        },
    );
    let mut far = match &arguments.far {
        None => None,
        Some(command) => Some(
            session
                .world
                .server
                .command("sh")
                .args(["-c", &format!("exec {command}")])
                .env("LINERATE_SERVER", SERVER.to_string())
                .spawn()
                .map_err(|error| Failure::failed(format_args!("far end: {command}: {error}")))?,
        ),
    };
    if far.is_none() {
        let inside = session.world.server.as_fd().as_raw_fd();
        eprintln!(
            "To run something at the far end, from another terminal: sudo nsenter --net=/proc/{}/fd/{inside} COMMAND",
            std::process::id()
        );
    }
    let status = near_end(arguments, &session);
    if let (Some(far), Some(command)) = (&mut far, &arguments.far) {
        // One that failed before it is ended here may be why the near end got no answer.
        if let Some(ended) = end(far).filter(|status| !status.success() && status.signal() != Some(SIGKILL)) {
            eprintln!("The far end's `{}` had ended by itself ({ended}).", output::plain(command));
        }
    }
    let (_, outcome) = session.finish();
    let late = if arguments.direction == Direction::Down { &outcome.down } else { &outcome.up };
    let c = late.counters;
    eprintln!(
        "{DEVICE}: {} packets in, {} delivered; dropped {} at random, {} by a full queue, {} by AQM, {} by the policer. \
         Emulator late by {} at p99.9, {} at most.",
        c.offered,
        c.delivered,
        c.dropped_random,
        c.dropped_overflow,
        c.dropped_aqm,
        c.dropped_policer,
        late.lateness.quantile(0.999),
        late.lateness.max(),
    );
    // `exit` runs no destructors.
    drop(bbr3);
    let code = match status? {
        Near::Ended(status) => status.code().unwrap_or(Exit::Failed as i32),
        Near::NotStarted(code) => code,
    };
    std::process::exit(code)
}

/// Options of a measurement that a shell does not make.
fn refuse_what_has_no_meaning(vary: &Vary) -> Result<(), Failure> {
    let given = [
        ("--repeat", vary.repeat.is_some()),
        ("--duration", vary.duration.is_some()),
        ("--warmup", vary.warmup.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(format_args!("{option} means nothing to `lab shell`: leave it out"))),
        None => Ok(()),
    }
}

/// How the near end's command went.
enum Near {
    Ended(ExitStatus),
    /// It could not be run; the code a shell would give: 127 where there is no such command, 126 where it can't be executed.
    NotStarted(i32),
}

fn near_end(arguments: &Arguments, session: &Session) -> Result<Near, Failure> {
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let (program, rest) = match arguments.command.split_first() {
        Some((program, rest)) => (program.as_str(), rest),
        None => (shell.as_str(), &[][..]),
    };
    let status = session.world.client.command(program).args(rest).env("LINERATE_SERVER", SERVER.to_string()).status();
    let status = match status {
        Ok(status) => status,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            eprintln!("{}: {error}", output::plain(program));
            return Ok(Near::NotStarted(if error.kind() == ErrorKind::NotFound { 127 } else { 126 }));
        }
        Err(error) => return Err(Failure::failed(format_args!("{program}: {error}"))),
    };
    Ok(Near::Ended(match status.signal() {
        Some(signal) => ExitStatus::from_raw((128 + signal) << 8),
        None => status,
    }))
}

/// Ends the far end's command. `exec` above makes this its own process, not a shell's.
fn end(child: &mut Child) -> Option<ExitStatus> {
    let _ = child.kill();
    child.wait().ok()
}
