//! One connection: its streams, its application, and what it came to.

use congestion::Controller;
use units::{Bytes, Duration, Instant, Rate};

use crate::receiver::Receiver;
use crate::sender::{Sender, SenderOptions};
use crate::source::{Sizes, Source, Traffic};
use crate::world::FlowConfig;

/// First wait for the handshake's answer; doubled each time (RFC 6298, `TCP_TIMEOUT_INIT`).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// Doublings, then it stays (Linux gives up after six; a simulated path comes back).
const MOST_DOUBLINGS: u32 = 6;

/// Which way a stream's data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The data direction.
    Data,
    /// Back: responses.
    Response,
}

/// One direction of a connection: a sender at one side and its receiver at the other.
pub(crate) struct Stream {
    pub flow: usize,
    pub side: Side,
    pub sender: Sender,
    pub receiver: Receiver,
    pub sizes: Sizes,
    pub ecn: bool,
}

/// A flow's state at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSample {
    /// When.
    pub at: Instant,
    /// Payload that has arrived in order.
    pub received: Bytes,
    /// Window in segments.
    pub cwnd_segments: u32,
    /// Pacing rate, where there is one.
    pub pacing_rate: Option<Rate>,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
}

/// One connection.
pub(crate) struct Flow {
    pub data: usize,
    pub response: Option<usize>,
    traffic: Traffic,
    pub source: Source,
    pub start: Instant,
    stop: Option<Instant>,
    handshake_at: Instant,
    handshakes: u32,
    pub established: Option<Instant>,
    /// When the application had all it waits for: its amount, for traffic with one.
    pub completed: Option<Instant>,
    pub stopped: Option<Instant>,
    asked: Instant,
    answered: u64,
    pub response_times: Vec<Duration>,
    pub samples: Vec<FlowSample>,
    /// When the flow itself has something to do; `Instant::MAX` for never.
    pub next: Instant,
}

impl Flow {
    /// Flow `number`, its data stream, and the response stream (number `response` of all), where it has one.
    pub fn new(number: usize, config: FlowConfig, mss: u32, response: usize) -> (Self, Stream, Option<Stream>) {
        let FlowConfig { controller, response_controller, traffic, start, stop, buffers, acks, burst, ecn } = config;
        let options = SenderOptions { mss, burst, ecn, buffer: (buffers.send_most.as_u64() / u64::from(mss)).max(2) };
        let stream = |side, controller: Box<dyn Controller>, sizes| Stream {
            flow: number,
            side,
            sender: Sender::new(controller, options),
            receiver: Receiver::new(acks, buffers, mss),
            sizes,
            ecn,
        };
        let source = Source::new(traffic);
        let data = stream(Side::Data, controller, source.sizes(mss));
        let answer = match (traffic, response_controller) {
            (Traffic::RequestResponse { response, .. }, Some(controller)) => {
                Some(stream(Side::Response, controller, Sizes::messages(mss, response)))
            }
            _ => None,
        };
        let flow = Self {
            data: number,
            response: answer.is_some().then_some(response),
            traffic,
            source,
            start,
            stop,
            handshake_at: start,
            handshakes: 0,
            established: None,
            completed: None,
            stopped: None,
            asked: Instant::ZERO,
            answered: 0,
            response_times: Vec::new(),
            samples: Vec::new(),
            next: start,
        };
        (flow, data, answer)
    }

    /// Whether it ends by itself.
    pub fn has_amount(&self) -> bool {
        matches!(self.traffic, Traffic::Bulk { bytes: Some(_) })
    }

    pub fn first_try_only(&self) -> bool {
        self.handshakes <= 1
    }

    pub fn establish(&mut self, now: Instant) {
        self.established = Some(now);
        self.handshake_at = Instant::MAX;
        self.asked = now;
    }

    /// Works out `next`.
    pub fn plan(&mut self) {
        let stop = if self.source.is_stopped() { Instant::MAX } else { self.stop.unwrap_or(Instant::MAX) };
        self.next = self.handshake_at.min(self.source.next).min(stop);
    }

    /// What is due at `next`. True: send a SYN.
    pub fn act(&mut self, now: Instant, stream: &mut Stream) -> bool {
        let mut handshake = false;
        if self.stop.is_some_and(|stop| stop <= now) && !self.source.is_stopped() {
            self.source.stop();
            self.stopped = Some(now);
            stream.sender.give(now, stream.sender.next());
            self.handshake_at = Instant::MAX;
        }
        if self.handshake_at <= now {
            handshake = true;
            self.handshake_at = now + SYN_TIMEOUT * (1 << self.handshakes.min(MOST_DOUBLINGS));
            self.handshakes += 1;
        }
        if self.source.next <= now {
            let sender = &mut stream.sender;
            let given = self.source.act(now, sender.mss(), sender.given(), sender.next());
            sender.give(now, given);
            self.asked = now;
        }
        self.plan();
        handshake
    }

    /// Data has arrived. True: a request is complete.
    pub fn note_data(&mut self, now: Instant, stream: &Stream) -> bool {
        let messages = stream.receiver.cumulative() / stream.sizes.per_message();
        if messages == 0 {
            return false;
        }
        if self.has_amount() {
            self.completed.get_or_insert(now);
        }
        self.response.is_some() && stream.receiver.cumulative().is_multiple_of(stream.sizes.per_message())
    }

    /// A piece of a response has arrived. True: it is complete, and the next request has a time.
    pub fn note_response(&mut self, now: Instant, stream: &Stream) -> bool {
        let messages = stream.receiver.cumulative() / stream.sizes.per_message();
        if messages <= self.answered {
            return false;
        }
        self.answered = messages;
        self.response_times.push(now.since(self.asked));
        if !self.source.is_stopped() {
            self.source.next = now + self.source.pause();
        }
        self.plan();
        true
    }

    pub fn sample(&mut self, now: Instant, stream: &Stream) {
        if self.established.is_none() {
            return;
        }
        let sender = &stream.sender;
        self.samples.push(FlowSample {
            at: now,
            received: stream.receiver.received(),
            cwnd_segments: sender.control().cwnd,
            pacing_rate: sender.control().pacing_rate,
            smoothed_rtt: sender.smoothed_rtt(),
        });
    }
}
