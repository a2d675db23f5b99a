//! One direction of the emulated path: frames in from one TUN device, judged packet by packet, written in runs to the other.

use std::io::{ErrorKind, IoSlice};
use std::os::fd::AsFd;

use nix::sys::uio::writev;
use path::{Backlog, Counters, Delivery, DropCause, Ecn, Link, LinkConfig, Packet, Sink};
use units::{Duration, Instant};

use crate::arena::{Arena, Place};
use crate::capture::Capture;
use crate::frame::{Classifier, Frame, HeaderBuf, MAX_FRAME, VNET_LEN};
use crate::lateness::Lateness;
use crate::record::Record;
use crate::tun::Tun;

/// A packet of a frame held in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    frame: u32,
    segment: u16,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    frame: Frame,
    place: Place,
    /// Packets of the frame still inside the path.
    live: u32,
}

/// Packets next to each other in one frame, on their way out together.
#[derive(Debug, Clone, Copy)]
struct Run {
    frame: u32,
    first: u16,
    count: u16,
    ce: bool,
    first_due: Instant,
}

/// What went wrong outside the model. Anything but zero makes a run invalid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outside {
    /// Frames that could not be read as IP.
    pub malformed: u64,
    /// Packets that the kernel did not take.
    pub refused: u64,
}

/// The buffers, statistics and the far device: all that a packet meets after the model has judged it.
pub struct Output {
    far: Tun,
    arena: Arena,
    frames: Vec<Held>,
    free: Vec<u32>,
    run: Option<Run>,
    header: HeaderBuf,
    /// The time of the call being served.
    now: Instant,
    pub(crate) lateness: Lateness,
    pub(crate) outside: Outside,
    pub(crate) record: Record,
    pub(crate) capture: Option<Capture>,
}

/// One direction.
pub struct Direction {
    link: Link<Token>,
    near: Tun,
    pub(crate) output: Output,
    classifier: Classifier,
    /// Upper bound of how long packets waited to be read.
    pub(crate) intake: Lateness,
    drained_at: Instant,
}

impl Direction {
    /// From `near` to `far` over a link of `config`.
    pub fn new(
        config: &LinkConfig,
        seed: u64,
        near: Tun,
        far: Tun,
        classifier: Classifier,
        record: Record,
        capture: Option<Capture>,
    ) -> Result<Self, path::ConfigError> {
        Ok(Self {
            link: Link::new(config, seed)?,
            near,
            output: Output {
                far,
                arena: Arena::new(),
                frames: Vec::new(),
                free: Vec::new(),
                run: None,
                header: HeaderBuf::default(),
                now: Instant::ZERO,
                lateness: Lateness::default(),
                outside: Outside::default(),
                record,
                capture,
            },
            classifier,
            intake: Lateness::default(),
            drained_at: Instant::ZERO,
        })
    }

    /// Reads up to `budget` frames and offers their packets. Says whether the device may hold more.
    pub fn intake(&mut self, budget: u32, clock: impl Fn() -> Instant) -> std::io::Result<bool> {
        for _ in 0..budget {
            let room = self.output.arena.reserve(MAX_FRAME);
            let len = match nix::unistd::read(self.near.as_fd(), room) {
                Ok(len) => len,
                Err(nix::errno::Errno::EAGAIN) => {
                    self.drained_at = clock();
                    return Ok(false);
                }
                Err(nix::errno::Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let now = clock();
            let Ok(frame) = Frame::parse(&room[..len]) else {
                self.output.outside.malformed += 1;
                continue;
            };
            let place = self.output.arena.commit(len);
            self.offer(now, frame, place);
        }
        Ok(true)
    }

    fn offer(&mut self, now: Instant, frame: Frame, place: Place) {
        let index = self.output.hold(frame, place);
        let flow = self.classifier.flow(&frame);
        self.intake.record(now.since(self.drained_at), u64::from(frame.segments()));
        self.output.now = now;
        for segment in 0..frame.segments() {
            let packet = Packet {
                token: Token { frame: index, segment },
                size: frame.segment_size(segment),
                flow,
                hash: frame.hash,
                ecn: frame.ecn,
            };
            self.output.record.offered(now, &packet);
            self.link.offer(now, packet, &mut self.output);
        }
    }

    /// Lets the model reach `now` and writes what is due.
    pub fn advance(&mut self, now: Instant) {
        self.output.now = now;
        self.link.advance(now, &mut self.output);
        self.output.flush();
    }

    /// When the model has something to do next.
    pub fn next_event(&self) -> Option<Instant> {
        self.link.next_event()
    }

    /// Whether something is already due before `now`.
    pub fn counters(&self) -> Counters {
        self.link.counters()
    }

    /// Bytes of memory the packets in flight occupy.
    pub fn allocated(&self) -> usize {
        self.output.arena.allocated()
    }
}

impl Output {
    fn hold(&mut self, frame: Frame, place: Place) -> u32 {
        let held = Held { frame, place, live: u32::from(frame.segments()) };
        if let Some(index) = self.free.pop() {
            self.frames[index as usize] = held;
            return index;
        }
        self.frames.push(held);
        (self.frames.len() - 1) as u32
    }

    fn release(&mut self, frame: u32, packets: u32) {
        let held = &mut self.frames[frame as usize];
        held.live -= packets;
        if held.live == 0 {
            self.arena.release(held.place);
            self.free.push(frame);
        }
    }

    /// Writes the run collected so far.
    fn flush(&mut self) {
        let Some(run) = self.run.take() else { return };
        let held = &self.frames[run.frame as usize];
        let bytes = self.arena.get(held.place);
        let payload = held.frame.run(bytes, run.first, run.count, run.ce, &mut self.header);
        let parts = [IoSlice::new(self.header.as_slice()), IoSlice::new(payload)];
        let parts = if payload.is_empty() { &parts[..1] } else { &parts[..] };
        loop {
            match writev(self.far.as_fd(), parts) {
                Ok(_) => break,
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => {
                    self.outside.refused += u64::from(run.count);
                    debug_assert_ne!(std::io::Error::from(error).kind(), ErrorKind::InvalidInput, "{run:?}");
                    break;
                }
            }
        }
        self.lateness.record(self.now.since(run.first_due), u64::from(run.count));
        self.release(run.frame, u32::from(run.count));
    }

    fn captured(&mut self, at: Instant, token: Token, ce: bool, fate: Option<DropCause>) {
        let Some(capture) = &mut self.capture else { return };
        let held = &self.frames[token.frame as usize];
        let bytes = self.arena.get(held.place);
        let payload = held.frame.run(bytes, token.segment, 1, ce, &mut self.header);
        capture.packet(at, &self.header.as_slice()[VNET_LEN..], payload, fate);
    }
}

impl Sink<Token> for Output {
    fn deliver(&mut self, delivery: Delivery<Token>) {
        let Token { frame, segment } = delivery.packet.token;
        self.record.delivered(&delivery);
        let ce = delivery.packet.ecn == Ecn::Ce;
        self.captured(delivery.due, delivery.packet.token, ce, None);
        if let Some(run) = &mut self.run
            && run.frame == frame
            && run.ce == ce
            && u32::from(run.first) + u32::from(run.count) == u32::from(segment)
        {
            run.count += 1;
            return;
        }
        self.flush();
        self.run = Some(Run { frame, first: segment, count: 1, ce, first_due: delivery.due });
    }

    fn dropped(&mut self, at: Instant, packet: Packet<Token>, number: u64, cause: DropCause) {
        self.record.dropped(at, &packet, number, cause);
        self.captured(at, packet.token, false, Some(cause));
        self.release(packet.token.frame, 1);
    }

    fn duplicated(&mut self, packet: &Packet<Token>, _number: u64) {
        self.frames[packet.token.frame as usize].live += 1;
    }

    fn left(&mut self, packet: Packet<Token>, _number: u64) {
        self.release(packet.token.frame, 1);
    }

    fn queued(&mut self, at: Instant, _packet: &Packet<Token>, _number: u64, backlog: Backlog) {
        self.record.queued(at, backlog);
    }

    fn dequeued(&mut self, at: Instant, packet: &Packet<Token>, _number: u64, sojourn: Duration, _backlog: Backlog) {
        self.record.dequeued(at, packet, sojourn);
    }

    fn marked(&mut self, at: Instant, packet: &Packet<Token>, _number: u64) {
        self.record.marked(at, packet);
    }
}

