//! Looks at both bottlenecks now and then, since a qdisc keeps no record of its queue.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};

use host::clock::Clock;
use units::{Bytes, Duration, Instant};

use super::topology::Tap;
use super::{NetemDirection, NetemError};

/// One look at a bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSample {
    /// When.
    pub at: Instant,
    /// Packets inside.
    pub packets: u32,
    /// Their IP bytes.
    pub bytes: Bytes,
    /// Packets dropped since the start.
    pub dropped: u64,
    /// Packets sent since the start.
    pub sent_packets: u64,
}

impl QueueSample {
    /// Time between two looks.
    pub const PERIOD: Duration = Duration::from_millis(50);
}

/// The thread that looks. Dropping it ends it.
pub struct Sampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<[NetemDirection; 2], NetemError>>>,
}

impl Sampler {
    /// Starts looking at the bottlenecks of both directions, up first.
    pub fn start(mut bottlenecks: [Tap; 2], clock: Clock) -> io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let thread = Builder::new().name("netem-sampler".to_owned()).spawn(move || {
            let mut directions = [NetemDirection::default(), NetemDirection::default()];
            while stopped.recv_timeout(QueueSample::PERIOD.into()) == Err(RecvTimeoutError::Timeout) {
                look(&mut bottlenecks, &mut directions, clock)?;
            }
            look(&mut bottlenecks, &mut directions, clock)?;
            Ok(directions)
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Ends it with a last look.
    pub fn finish(mut self) -> Result<[NetemDirection; 2], NetemError> {
        self.stop = None;
        let thread = self.thread.take().expect("only finish and drop take the thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn look(bottlenecks: &mut [Tap; 2], directions: &mut [NetemDirection; 2], clock: Clock) -> Result<(), NetemError> {
    for (tap, direction) in bottlenecks.iter_mut().zip(directions) {
        let stats = tap.stats()?;
        direction.dropped = stats.dropped;
        direction.sent_packets = stats.sent_packets;
        direction.sent_bytes = stats.sent_bytes;
        direction.left_packets = u64::from(stats.backlog_packets);
        direction.backlog_max_packets = direction.backlog_max_packets.max(stats.backlog_packets);
        direction.backlog_max_bytes = direction.backlog_max_bytes.max(stats.backlog_bytes);
        direction.samples.push(QueueSample {
            at: clock.now(),
            packets: stats.backlog_packets,
            bytes: stats.backlog_bytes,
            dropped: stats.dropped,
            sent_packets: stats.sent_packets,
        });
    }
    Ok(())
}
