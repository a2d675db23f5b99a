//! Everything together: the ends, the network, and the order in which things happen.

use congestion::Controller;
use path::record::Record;
use path::{ConfigError, Counters, Ecn, FlowId, LinkConfig, Packet};
use units::{Bytes, Duration, Instant};

use crate::agenda::Agenda;
use crate::flow::{Flow, Side, Stream};
use crate::network::{Arrival, Network};
use crate::receiver::AckPolicy;
use crate::segment::{Content, Data, HEADERS, PROBE_SIZE, SACK_OPTION, SYN_SIZE};
use crate::source::Traffic;
use crate::window::Buffers;

/// Most flows of a world: a packet carries its flow's number in 16 bits, and 0 and the probe's are taken.
pub const MOST_FLOWS: usize = u16::MAX as usize - 2;

/// One connection of a [`World`].
pub struct FlowConfig {
    /// Congestion control of the data direction.
    pub controller: Box<dyn Controller>,
    /// Congestion control of the responses, for [`Traffic::RequestResponse`]; other traffic has none.
    pub response_controller: Option<Box<dyn Controller>>,
    /// What its application sends.
    pub traffic: Traffic,
    /// When it connects.
    pub start: Instant,
    /// When its application sends nothing more; `None`: never.
    pub stop: Option<Instant>,
    /// Socket buffers of both ends.
    pub buffers: Buffers,
    /// When its receivers acknowledge.
    pub acks: AckPolicy,
    /// Most segments in one burst; `None`: as Linux sizes it.
    pub burst: Option<u32>,
    /// Uses ECN (RFC 3168).
    pub ecn: bool,
}

/// A light probe through the same queues, as the lab sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeConfig {
    /// From one probe to the next.
    pub every: Duration,
    /// The first one.
    pub from: Instant,
    /// Its number on the path, for a delay of its own; no flow's.
    pub flow: FlowId,
}

/// Two sides, the flows between them and the path.
pub struct WorldConfig {
    /// The links of the data direction, in the order a packet meets them.
    pub forward: Vec<LinkConfig>,
    /// Those back.
    pub back: Vec<LinkConfig>,
    /// The flows. Flow k (from 0) has [`FlowId`]`(k + 1)` on the path.
    pub flows: Vec<FlowConfig>,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Decides every random fate on the path.
    pub seed: u64,
    /// Length of the time buckets in which what happens at the links is kept.
    pub bucket: Duration,
    /// From one sample of each flow's state to the next; `None`: no samples.
    pub sample_every: Option<Duration>,
    /// The probe, where one is wanted.
    pub probe: Option<ProbeConfig>,
}

/// What makes a [`WorldConfig`] impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// A link.
    #[error(transparent)]
    Link(#[from] ConfigError),
    /// Too many flows.
    #[error("{0} flows are more than a path tells apart; give at most {MOST_FLOWS}")]
    TooManyFlows(usize),
    /// No payload fits.
    #[error("an MTU of {0} bytes leaves no room for data beside 52 bytes of headers; give 100 or more")]
    MtuTooSmall(u16),
}

/// One round trip of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSample {
    /// When it left.
    pub sent: Instant,
    /// How long it took there and back.
    pub rtt: Duration,
}

/// The simulation.
///
/// Virtual time jumps from event to event: a link's, or a timer's of an end. Of events at the same time the network's come first, then the
/// flows' in the order of their numbers; nothing depends on anything else, so the same configuration gives the same run to the last packet.
pub struct World {
    now: Instant,
    network: Network,
    pub(crate) flows: Vec<Flow>,
    /// Each flow's data direction, then the response directions of those that have one.
    pub(crate) streams: Vec<Stream>,
    agenda: Agenda,
    arrivals: Vec<Arrival>,
    segments: Vec<Data>,
    next_sample: Instant,
    sample_every: Option<Duration>,
    next_probe: Instant,
    probe: Option<ProbeConfig>,
    /// Probes that came back.
    pub(crate) probes: Vec<ProbeSample>,
}

impl World {
    /// Everything at rest at [`Instant::ZERO`].
    ///
    /// # Errors
    /// [`WorldError`].
    pub fn new(config: WorldConfig) -> Result<Self, WorldError> {
        if config.flows.len() > MOST_FLOWS {
            return Err(WorldError::TooManyFlows(config.flows.len()));
        }
        if config.mtu < 100 {
            return Err(WorldError::MtuTooSmall(config.mtu));
        }
        let mss = u32::from(config.mtu) - HEADERS as u32;
        let probe_id = config.probe.map(|probe| probe.flow);
        let network = Network::new(&config.forward, &config.back, config.seed, || {
            Record::new(config.bucket.max(Duration::from_nanos(1)), probe_id, false)
        })?;
        let (mut streams, mut responses, mut flows) = (Vec::new(), Vec::new(), Vec::new());
        let count = config.flows.len();
        for (number, flow) in config.flows.into_iter().enumerate() {
            let (flow, data, response) = Flow::new(number, flow, mss, count + responses.len());
            flows.push(flow);
            streams.push(data);
            responses.extend(response);
        }
        streams.append(&mut responses);
        let mut agenda = Agenda::new(streams.len());
        for flow in &flows {
            agenda.ask(flow.data, flow.next);
        }
        Ok(Self {
            now: Instant::ZERO,
            network,
            flows,
            streams,
            agenda,
            arrivals: Vec::new(),
            segments: Vec::new(),
            next_sample: config.sample_every.map_or(Instant::MAX, |every| Instant::ZERO + every),
            sample_every: config.sample_every.filter(|every| *every > Duration::ZERO),
            next_probe: config.probe.map_or(Instant::MAX, |probe| probe.from),
            probe: config.probe,
            probes: Vec::new(),
        })
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Packets that entered a link, or left one at its far end or by being dropped.
    pub fn packet_events(&self) -> u64 {
        self.network.events
    }

    /// Totals of each link of the data direction.
    pub fn forward_counters(&self) -> Vec<Counters> {
        self.network.forward_counters()
    }

    /// Totals of each link back.
    pub fn back_counters(&self) -> Vec<Counters> {
        self.network.back_counters()
    }

    /// Packets on their way, both directions.
    pub fn packets_inside(&self) -> u64 {
        self.network.inside()
    }

    /// What happened at each link of the data direction.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.network.records()
    }

    /// Probes that came back, in order.
    pub fn probes(&self) -> &[ProbeSample] {
        &self.probes
    }

    /// Lets time pass up to `end`, all that is due then included.
    pub fn run(&mut self, end: Instant) {
        loop {
            let network = self.network.next();
            let own = self.agenda.next();
            let next = network.min(own).min(self.next_sample).min(self.next_probe);
            if next > end || next == Instant::MAX {
                break;
            }
            self.now = self.now.max(next);
            if network <= next {
                self.network.advance(next, &mut self.arrivals);
                self.receive();
            } else if own <= next {
                if let Some(stream) = self.agenda.take() {
                    self.call(stream);
                    self.receive();
                }
            } else if self.next_probe <= next {
                self.send_probe();
                self.receive();
            } else {
                self.sample();
            }
        }
        self.now = self.now.max(end);
    }

    /// Whether every flow with an amount to send has delivered it.
    pub fn is_done(&self) -> bool {
        self.flows.iter().all(|flow| flow.completed.is_some() || !flow.has_amount())
    }

    /// Handles what has arrived, and what arrives because of it.
    fn receive(&mut self) {
        let mut place = 0;
        while place < self.arrivals.len() {
            let Arrival { at, forward, packet } = &self.arrivals[place];
            let (at, forward, packet) = (*at, *forward, *packet);
            place += 1;
            debug_assert!(at <= self.now, "it arrives at {at}, and it is {}", self.now);
            match packet.token {
                Content::Data(data) => self.take_data(forward, &packet, &data),
                Content::Ack(ack) => {
                    let index = self.stream_of(packet.flow, !forward);
                    let Stream { sender, receiver, .. } = &mut self.streams[index];
                    sender.on_ack(self.now, &ack, receiver.read(ack.noted));
                    self.send_segments(index);
                    self.plan(index);
                }
                Content::Syn { sent } => {
                    let reply = Content::SynAck { sent };
                    self.put(false, packet.flow, reply, SYN_SIZE, Ecn::NotEct);
                }
                Content::SynAck { sent } => self.connect(packet.flow, sent),
                Content::Probe { sent, back: false } => {
                    self.put(false, packet.flow, Content::Probe { sent, back: true }, PROBE_SIZE, Ecn::NotEct);
                }
                Content::Probe { sent, back: true } => {
                    self.probes.push(ProbeSample { sent, rtt: self.now.since(sent) });
                }
            }
        }
        self.arrivals.clear();
    }

    /// The stream of a flow whose data goes this way.
    fn stream_of(&self, flow: FlowId, forward: bool) -> usize {
        let flow = &self.flows[usize::from(flow.0) - 1];
        match (forward, flow.response) {
            (false, Some(response)) => response,
            _ => flow.data,
        }
    }

    fn take_data(&mut self, forward: bool, packet: &Packet<Content>, data: &Data) {
        let index = self.stream_of(packet.flow, forward);
        let stream = &mut self.streams[index];
        let sizes = stream.sizes;
        let answer = stream.receiver.take(self.now, data, packet.ecn == Ecn::Ce, |number| sizes.payload(number));
        if let Some(ack) = answer {
            let more = if stream.receiver.has_holes() { SACK_OPTION } else { 0 };
            self.put(!forward, packet.flow, Content::Ack(ack), HEADERS + more, Ecn::NotEct);
        }
        self.applications_read(index);
        self.plan(index);
    }

    /// What the applications do about what has arrived in order.
    fn applications_read(&mut self, index: usize) {
        let Stream { flow, side, .. } = self.streams[index];
        let Self { flows, streams, agenda, now, .. } = self;
        let flow = &mut flows[flow];
        match side {
            Side::Data => {
                let stream = &streams[index];
                if flow.note_data(*now, stream)
                    && let Some(response) = flow.response
                {
                    let answered = stream.receiver.cumulative() / stream.sizes.per_message();
                    let stream = &mut streams[response];
                    stream.sender.give(*now, answered * stream.sizes.per_message());
                    agenda.ask(response, *now);
                }
            }
            Side::Response => {
                if flow.note_response(*now, &streams[index]) {
                    agenda.ask(flow.data, flow.next);
                }
            }
        }
    }

    /// The handshake's answer is there.
    fn connect(&mut self, id: FlowId, sent: Instant) {
        let flow = &mut self.flows[usize::from(id.0) - 1];
        if flow.established.is_some() {
            return;
        }
        let (data, response) = (flow.data, flow.response);
        flow.establish(self.now);
        let rtt = flow.first_try_only().then(|| self.now.since(sent));
        let given = flow.source.begin(self.now, &self.streams[data].sizes);
        flow.plan();
        for index in [Some(data), response].into_iter().flatten() {
            let Stream { sender, receiver, .. } = &mut self.streams[index];
            sender.establish(self.now, rtt, receiver.first_right_edge());
        }
        self.streams[data].sender.give(self.now, given);
        self.send_segments(data);
        self.plan(data);
    }

    /// A timer of a stream, or of its flow, is due.
    fn call(&mut self, index: usize) {
        let now = self.now;
        let stream = &mut self.streams[index];
        let (flow, side) = (stream.flow, stream.side);
        if let Some(ack) = stream.receiver.late(now) {
            let more = if stream.receiver.has_holes() { SACK_OPTION } else { 0 };
            let id = FlowId(flow as u16 + 1);
            self.put(side == Side::Response, id, Content::Ack(ack), HEADERS + more, Ecn::NotEct);
        }
        let stream = &mut self.streams[index];
        if stream.sender.next_event() <= now {
            stream.sender.on_timer(now);
        }
        if side == Side::Data && self.flows[flow].next <= now {
            let Self { flows, streams, .. } = self;
            if flows[flow].act(now, &mut streams[index]) {
                self.put(true, FlowId(flow as u16 + 1), Content::Syn { sent: now }, SYN_SIZE, Ecn::NotEct);
            }
        }
        self.send_segments(index);
        self.plan(index);
    }

    /// Puts what a sender sends on the path.
    fn send_segments(&mut self, index: usize) {
        let mut segments = std::mem::take(&mut self.segments);
        let stream = &mut self.streams[index];
        stream.sender.send(self.now, &mut segments);
        let (id, forward) = (FlowId(stream.flow as u16 + 1), stream.side == Side::Data);
        let (sizes, ecn) = (stream.sizes, if stream.ecn { Ecn::Ect0 } else { Ecn::NotEct });
        for mut data in segments.drain(..) {
            data.payload = sizes.payload(data.number);
            let size = HEADERS + u64::from(data.payload);
            self.put(forward, id, Content::Data(data), size, ecn);
        }
        self.segments = segments;
    }

    #[inline]
    fn put(&mut self, forward: bool, flow: FlowId, token: Content, size: u64, ecn: Ecn) {
        // Any mixing will do: it tells flows apart for fair queueing.
        let hash = u32::from(flow.0).wrapping_mul(0x9E37_79B1) ^ u32::from(forward);
        let packet = Packet { token, size: Bytes::new(size), flow, hash, ecn };
        self.network.send(self.now, forward, packet, &mut self.arrivals);
    }

    /// Says when a stream wants to be called next.
    #[inline]
    fn plan(&mut self, index: usize) {
        let stream = &self.streams[index];
        let mut next = stream.sender.next_event().min(stream.receiver.next_event());
        if stream.side == Side::Data {
            next = next.min(self.flows[stream.flow].next);
        }
        self.agenda.ask(index, next);
    }

    fn send_probe(&mut self) {
        let every = self.probe.map_or(Duration::MAX, |probe| probe.every.max(Duration::from_micros(1)));
        let id = self.probe.map_or(FlowId(0), |probe| probe.flow);
        self.put(true, id, Content::Probe { sent: self.now, back: false }, PROBE_SIZE, Ecn::NotEct);
        self.next_probe += every;
    }

    fn sample(&mut self) {
        for flow in &mut self.flows {
            flow.sample(self.now, &self.streams[flow.data]);
        }
        self.next_sample = self.sample_every.map_or(Instant::MAX, |every| self.next_sample + every);
    }
}
