use path::{Delivery, DropCause, Ecn, FlowId, Link, LinkConfig, Packet, Sink};
use units::{Bytes, Duration, Instant, Rate};

use crate::{Application, Bbr3, Receiver, Report, Sender};

/// IPv4 and TCP headers with timestamps, in bytes.
const HEADERS: u64 = 52;

/// One connection of a [`World`].
#[derive(Debug)]
pub struct FlowConfig {
    /// Its congestion control, before `init`.
    pub cc: Bbr3,
    /// What it has to send.
    pub application: Application,
    /// RTT measured in the handshake; zero: none.
    pub handshake_rtt: Duration,
    /// Packets in order per ACK.
    pub ack_every: u32,
    /// When it begins.
    pub start: Instant,
    /// Initial window in packets.
    pub initial_cwnd: u32,
}

impl FlowConfig {
    /// A bulk transfer from the start, as Linux does it.
    pub fn bulk(cc: Bbr3, handshake_rtt: Duration) -> Self {
        Self { cc, application: Application::Bulk, handshake_rtt, ack_every: 2, start: Instant::ZERO, initial_cwnd: 10 }
    }
}

/// Two ends and the path between them.
#[derive(Debug)]
pub struct WorldConfig {
    /// Towards the receivers.
    pub forward: LinkConfig,
    /// Back.
    pub reverse: LinkConfig,
    /// The flows.
    pub flows: Vec<FlowConfig>,
    /// Decides every random fate on the path.
    pub seed: u64,
}

/// One connection at work.
#[derive(Debug)]
pub struct Flow {
    /// The sending end.
    pub sender: Sender,
    /// The receiving end.
    pub receiver: Receiver,
    start: Instant,
    started: bool,
    /// Time each delivered packet spent in queue and service, in microseconds.
    pub sojourns_us: Vec<u32>,
    /// Packets of this flow that the path dropped.
    pub drops: u64,
}

impl Flow {
    /// Payload delivered without a gap so far.
    pub fn delivered_in_order(&self) -> Bytes {
        Bytes::new(self.sender.acknowledged() * u64::from(self.sender.mss))
    }
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    packet: u64,
    sent: Instant,
    push: bool,
}

#[derive(Debug)]
struct Arrivals<T> {
    delivered: Vec<(Instant, FlowId, T, Duration)>,
    dropped: Vec<FlowId>,
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Self { delivered: Vec::new(), dropped: Vec::new() }
    }
}

impl<T> Sink<T> for Arrivals<T> {
    fn deliver(&mut self, delivery: Delivery<T>) {
        let packet = delivery.packet;
        self.delivered.push((delivery.due, packet.flow, packet.token, delivery.sojourn));
    }

    fn dropped(&mut self, _: Instant, packet: Packet<T>, _: u64, _: DropCause) {
        self.dropped.push(packet.flow);
    }
}

/// Flows over a shared path, in virtual time.
#[derive(Debug)]
pub struct World {
    now: Instant,
    forward: Link<Segment>,
    reverse: Link<Report>,
    flows: Vec<Flow>,
    /// Arrived at the senders and not processed.
    reports: Arrivals<Report>,
}

impl World {
    /// Everything at rest at [`Instant::ZERO`].
    ///
    /// # Errors
    /// What is wrong with a link's configuration.
    pub fn new(config: WorldConfig) -> Result<Self, path::ConfigError> {
        let rtt = config.forward.delay + config.reverse.delay;
        let flow = |flow: FlowConfig| Flow {
            sender: Sender::new(flow.cc, flow.application, flow.handshake_rtt, flow.initial_cwnd),
            receiver: Receiver::new(flow.ack_every, rtt),
            start: flow.start,
            started: false,
            sojourns_us: Vec::new(),
            drops: 0,
        };
        Ok(Self {
            now: Instant::ZERO,
            forward: Link::new(&config.forward, config.seed)?,
            reverse: Link::new(&config.reverse, config.seed ^ 0x5EED)?,
            flows: config.flows.into_iter().map(flow).collect(),
            reports: Arrivals::default(),
        })
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// One flow.
    pub fn flow(&self, index: usize) -> &Flow {
        &self.flows[index]
    }

    /// One flow, to be changed by a test between two runs.
    pub fn flow_mut(&mut self, index: usize) -> &mut Flow {
        &mut self.flows[index]
    }

    /// The only flow, or the first.
    pub fn sender(&self) -> &Sender {
        &self.flows[0].sender
    }

    /// The application of a flow writes `packets` packets now.
    pub fn write(&mut self, index: usize, packets: u64) {
        let flow = &mut self.flows[index];
        flow.sender.write(self.now, packets);
        flow.sender.send(self.now);
        self.hand_over(index);
    }

    /// Lets time pass up to `end`.
    pub fn run(&mut self, end: Instant) {
        self.watch(end, |_, _, _| {});
    }

    /// Lets time pass up to `end`; `seen` gets time, flow and sender after each ACK that the sender has processed.
    pub fn watch(&mut self, end: Instant, mut seen: impl FnMut(Instant, usize, &mut Sender)) {
        loop {
            let next = self.next_event();
            if next > end {
                break;
            }
            self.step(next, &mut seen);
        }
        self.now = self.now.max(end);
    }

    /// Goodput of a flow between two counts of [`Flow::delivered_in_order`].
    pub fn goodput(from: Bytes, to: Bytes, time: Duration) -> Rate {
        Rate::from_transfer(to.saturating_sub(from), time)
    }

    fn next_event(&self) -> Instant {
        let flows = self.flows.iter().flat_map(|flow| {
            let start = (!flow.started).then_some(flow.start);
            let timer = flow.sender.next_event().filter(|_| flow.started);
            [start, timer, flow.receiver.next_event()]
        });
        let links = [self.forward.next_event(), self.reverse.next_event()];
        flows.chain(links).flatten().min().unwrap_or(Instant::MAX).max(self.now)
    }

    fn step(&mut self, now: Instant, seen: &mut impl FnMut(Instant, usize, &mut Sender)) {
        self.now = now;
        self.receive(now);
        self.acknowledge(now, seen);
        for index in 0..self.flows.len() {
            let flow = &mut self.flows[index];
            if let Some(report) = flow.receiver.late(now) {
                self.answer(index, report);
            }
            let flow = &mut self.flows[index];
            if !flow.started && flow.start <= now {
                flow.started = true;
                flow.sender.send(now);
            }
            if flow.started && flow.sender.next_event().is_some_and(|at| at <= now) {
                flow.sender.on_timer(now);
            }
            self.hand_over(index);
        }
    }

    fn receive(&mut self, now: Instant) {
        let mut arrivals = Arrivals::default();
        self.forward.advance(now, &mut arrivals);
        self.take(arrivals);
    }

    fn take(&mut self, arrivals: Arrivals<Segment>) {
        for flow in arrivals.dropped {
            self.flows[usize::from(flow.0)].drops += 1;
        }
        for (due, flow, segment, sojourn) in arrivals.delivered {
            let index = usize::from(flow.0);
            let flow = &mut self.flows[index];
            flow.sojourns_us.push(sojourn.as_micros() as u32);
            if let Some(report) = flow.receiver.take(due, segment.packet, segment.sent, segment.push) {
                self.answer(index, report);
            }
        }
    }

    fn answer(&mut self, index: usize, report: Report) {
        self.reverse.offer(self.now, packet(index, report, HEADERS), &mut self.reports);
    }

    fn acknowledge(&mut self, now: Instant, seen: &mut impl FnMut(Instant, usize, &mut Sender)) {
        self.reverse.advance(now, &mut self.reports);
        for (_, flow, report, _) in std::mem::take(&mut self.reports.delivered) {
            let index = usize::from(flow.0);
            let flow = &mut self.flows[index];
            let new = flow.receiver.read(report.noted);
            flow.sender.on_report(now, &report, &new);
            seen(now, index, &mut flow.sender);
            self.hand_over(index);
        }
    }

    /// Puts what a sender has sent on the path.
    fn hand_over(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let size = u64::from(flow.sender.mss) + HEADERS;
        let outgoing = flow.sender.take_outgoing();
        let mut arrivals = Arrivals::default();
        for segment in outgoing {
            let token = Segment { packet: segment.packet, sent: self.now, push: segment.push };
            self.forward.offer(self.now, packet(index, token, size), &mut arrivals);
        }
        self.take(arrivals);
    }
}

fn packet<T>(flow: usize, token: T, size: u64) -> Packet<T> {
    Packet { token, size: Bytes::new(size), flow: FlowId(flow as u16), hash: flow as u32, ecn: Ecn::NotEct }
}
