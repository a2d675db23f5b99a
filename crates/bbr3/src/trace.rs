//! Reads the events of a running program as they happen.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use zerocopy::IntoBytes;

use crate::raw::Reader;
use crate::recording::Header;
use crate::running::{Running, RunningError, read_value};

/// How long the program believes that its reader lives, unless it hears of it again.
const LEASE: Duration = Duration::from_secs(3);

/// Which sockets to trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those with this port at either end.
    pub port: Option<u16>,
    /// Only those to this address.
    pub remote: Option<IpAddr>,
    /// Only those in the network namespace of this inode.
    pub netns: Option<u32>,
}

/// Why events can't be read. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The program can't be looked into.
    #[error(transparent)]
    Running(#[from] RunningError),
    /// Events go to one reader.
    #[error("process {0} is reading this program's events already; one can at a time")]
    Busy(u32),
}

/// Reads a running program's events. It writes none as soon as this is dropped, and at most three seconds after this process has died.
pub struct Tracer {
    running: Running,
    map: MapHandle,
    reader: Reader,
    ring: RingBuffer<'static>,
    /// What arrived and was not handed out: each event after its length.
    arrived: Rc<RefCell<Vec<u8>>>,
    dropped_before: u64,
}

impl Tracer {
    /// Begins. `calls`: every callback too, with a snapshot of each socket before, for a recording.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn start(running: Running, filter: Filter, calls: bool) -> Result<Self, TraceError> {
        let map = running.map(".data.reader")?;
        let now = now();
        let before: Reader =
            read_value(&map)?.ok_or_else(|| running.other("its readers are told of in another way"))?;
        if before.until_ns > now && is_alive(before.pid) {
            return Err(TraceError::Busy(before.pid));
        }
        let events = running.map("bbr3_events")?;
        let arrived = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&arrived);
        let mut builder = RingBufferBuilder::new();
        let taken = builder.add(&events, move |bytes| {
            let mut arrived = sink.borrow_mut();
            arrived.extend((bytes.len() as u32).to_ne_bytes());
            arrived.extend_from_slice(bytes);
            0
        });
        taken.map_err(RunningError::libbpf("open the ring buffer"))?;
        let ring = builder.build().map_err(RunningError::libbpf("open the ring buffer"))?;
        // What an earlier reader left.
        ring.consume().map_err(RunningError::libbpf("read the ring buffer"))?;
        arrived.borrow_mut().clear();
        let dropped_before = running.totals()?.dropped_events;
        let mut reader = Reader {
            until_ns: 0,
            session: before.session % (u32::MAX >> 1) + 1,
            pid: std::process::id(),
            wants_calls: u32::from(calls),
            netns: filter.netns.unwrap_or(0),
            port: filter.port.unwrap_or(0),
            ..Reader::default()
        };
        match filter.remote {
            None => {}
            Some(IpAddr::V4(address)) => {
                reader.family = 2;
                reader.remote[..4].copy_from_slice(&address.octets());
            }
            Some(IpAddr::V6(address)) => {
                reader.family = 10;
                reader.remote = address.octets();
            }
        }
        let mut tracer = Self { running, map, reader, ring, arrived, dropped_before };
        tracer.renew()?;
        Ok(tracer)
    }

    /// Waits up to `timeout` for events, and gives those that have come to `seen`, each as [`crate::Event::from_bytes`] reads it. Call it
    /// at least once a second.
    ///
    /// # Errors
    /// [`TraceError`], where the ring buffer can't be read.
    pub fn poll(&mut self, timeout: Duration, mut seen: impl FnMut(&[u8])) -> Result<(), TraceError> {
        if self.reader.until_ns < now() + LEASE.as_nanos() as u64 * 2 / 3 {
            self.renew()?;
        }
        let result = self.ring.poll_raw(timeout);
        if result < 0 && result != -(Errno::EINTR as i32) {
            let error = std::io::Error::from_raw_os_error(-result);
            return Err(RunningError::io("read the ring buffer")(error).into());
        }
        let arrived = std::mem::take(&mut *self.arrived.borrow_mut());
        let mut rest = arrived.as_slice();
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (event, behind) = behind.split_at(u32::from_ne_bytes(*length) as usize);
            seen(event);
            rest = behind;
        }
        Ok(())
    }

    /// Events for which the ring buffer had no room since this began.
    ///
    /// # Errors
    /// [`TraceError`], where the counter can't be read.
    pub fn dropped(&self) -> Result<u64, TraceError> {
        Ok(self.running.totals()?.dropped_events - self.dropped_before)
    }

    /// What a recording of these events begins with.
    ///
    /// # Errors
    /// [`TraceError`], where the program's parameters can't be read.
    pub fn header(&self) -> Result<Header, TraceError> {
        let release = nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned());
        Ok(Header {
            knobs: self.running.knobs()?,
            features: self.running.features()?,
            name: self.running.name().to_owned(),
            kernel: release.unwrap_or_default(),
        })
    }

    fn renew(&mut self) -> Result<(), TraceError> {
        self.reader.until_ns = now() + LEASE.as_nanos() as u64;
        self.tell().map_err(TraceError::from)
    }

    fn tell(&self) -> Result<(), RunningError> {
        let told = self.map.update(&0_u32.to_ne_bytes(), self.reader.as_bytes(), MapFlags::ANY);
        told.map_err(RunningError::libbpf("tell the program of its reader"))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.reader.until_ns = 0;
        // Where it fails the lease runs out.
        let _ = self.tell();
    }
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("running", &self.running).field("reader", &self.reader).finish_non_exhaustive()
    }
}

/// CLOCK_MONOTONIC in nanoseconds: the program's clock.
fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Whether the process exists, as far as this one can tell.
fn is_alive(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(|pid| pid > 0 && kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH))
}
