//! What undoes a transaction that nobody confirms: a process of its own that no terminal, session or SSH connection takes along.
//!
//! Where systemd runs the machine it is a service of its own, outside of every session, so that logind's `KillUserProcesses` does not
//! mean it. Elsewhere it is a session of its own. It waits on `CLOCK_BOOTTIME`, which no setting of the clock moves and which goes on
//! while the machine sleeps. Whoever ends it (SIGTERM, SIGINT, SIGHUP, `systemctl stop`) has it undo the transaction at once; where it is
//! killed, systemd starts it again. A lock that it holds on the journal tells others that it lives. A restart needs no guard, since nothing lasting is written before the confirmation.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};

use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tuning::transaction::{STATE, Standing, StoreError, Undone, World, load, path_of, roll_back, standing};

use crate::lock::LockError;
use crate::{Live, Lock};

/// What the guard prints once it watches.
const WATCHES: &str = "watching";

/// Starts a guard by its command line and waits until it watches. `unit`: its name, where systemd runs the machine.
///
/// # Errors
/// Where it can't be started, or ends before it watches.
pub fn start(command: &[OsString], unit: Option<String>) -> io::Result<()> {
    let [program, arguments @ ..] = command else { return Err(io::ErrorKind::InvalidInput.into()) };
    if let Some(unit) = unit {
        let mut run = Command::new("systemd-run");
        run.args([
            "--quiet",
            "--collect",
            "--service-type=notify",
            "--property=NotifyAccess=main",
            // Killed, it comes back and goes on from the journal.
            "--property=Restart=on-failure",
            "--property=RestartSec=1",
            "--unit",
            &unit,
            "--",
        ]);
        let output = run.arg(program).args(arguments).stdin(Stdio::null()).output();
        if output.is_ok_and(|output| output.status.success()) {
            return Ok(());
        }
        // systemd may be there and not answer: a session of its own serves too.
    }
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line)?;
    }
    if line.trim_end() == WATCHES {
        return Ok(());
    }
    let status = child.wait()?;
    Err(io::Error::other(format!("the guard ended before it watched ({status})")))
}

/// Why a guard could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The journals can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock can't be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The journal was damaged meanwhile.
    #[error(transparent)]
    Damage(#[from] tuning::journal::Damage),
    /// The system.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<nix::Error> for GuardError {
    fn from(errno: nix::Error) -> Self {
        Self::Io(errno.into())
    }
}

/// Leaves the session that started this process, so that its end is not this process's.
fn detach() {
    // It fails where this is a session's first process already.
    let _ = nix::unistd::setsid();
    let _ = std::env::set_current_dir("/");
}

/// Tells who started this that it watches: standard output, and systemd where that asked (sd_notify(3)).
fn tell() {
    let mut out = io::stdout();
    let _ = writeln!(out, "{WATCHES}").and_then(|()| out.flush());
    let Some(path) = std::env::var_os("NOTIFY_SOCKET").and_then(|path| path.into_string().ok()) else { return };
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    if let (Ok(socket), Ok(address)) = (UnixDatagram::unbound(), address) {
        let _ = socket.send_to_addr(b"READY=1", &address);
    }
}

/// Whether a guard watches the transaction. One that can't be asked about, since the journal isn't readable, counts as watched.
pub fn is_watching(live: &Live, id: u32) -> bool {
    // Locks on journals are guards' only; a shared one for a moment hinders nobody.
    File::open(live.place(&path_of(id))).map_or(true, |file| Flock::lock(file, FlockArg::LockSharedNonblock).is_err())
}

/// Watches a transaction until it is confirmed or undone, and undoes it at its deadline. `Ok(None)`: there was nothing to undo.
///
/// # Errors
/// [`GuardError`].
pub fn watch(live: &mut Live, id: u32) -> Result<Option<Undone>, GuardError> {
    detach();
    let signals = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect::<SigSet>();
    signals.thread_block()?;
    let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    // Waits for another guard of the same transaction: there is none, or it was given up by systemd and still undoes.
    let journal = File::open(live.place(&path_of(id)))?;
    let _lives = Flock::lock(journal, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
    let changes = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
    let flags = AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
    changes.add_watch(&live.place(STATE), flags)?;
    let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC)?;
    let mut told = false;
    let mut ended = false;
    loop {
        let deadline = match deadline(live, id)? {
            None => return Ok(None),
            Some(deadline) => deadline,
        };
        if !told {
            // Before anything else: also where the time is over already, and systemd has started this again.
            tell();
            told = true;
        }
        if ended || live.boottime_ns() >= deadline {
            // The apply that is still at work has the lock; it may move the deadline before it gives it up.
            let _lock = Lock::wait(live, "guard")?;
            match self::deadline(live, id)? {
                None => return Ok(None),
                Some(later) if later > deadline && !ended => {}
                Some(_) => {
                    let all = load(live)?;
                    let Some(transaction) = all.iter().find(|transaction| transaction.id == id) else {
                        return Ok(None);
                    };
                    let undone = roll_back(
                        live,
                        transaction,
                        false,
                        if ended { "its guard was ended before it was confirmed" } else { "not confirmed in time" },
                    )?;
                    return Ok(Some(undone));
                }
            }
            continue;
        }
        let at = TimeSpec::from_duration(std::time::Duration::from_nanos(deadline));
        timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        let mut all = [timer.as_fd(), changes.as_fd(), signals.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut all, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // What changed, the journal tells.
        while changes.read_events().is_ok() {}
        while signals.read_signal()?.is_some() {
            ended = true;
        }
    }
}

/// When the transaction is to be undone; `None`: it isn't.
fn deadline(live: &Live, id: u32) -> Result<Option<u64>, GuardError> {
    let all = load(live)?;
    let Some(transaction) = all.iter().find(|transaction| transaction.id == id) else { return Ok(None) };
    let open = matches!(standing(transaction, &live.boot_id()), Standing::Waiting | Standing::Interrupted);
    Ok(transaction.journal.as_ref().ok().filter(|_| open).and_then(|journal| journal.deadline_ns))
}
