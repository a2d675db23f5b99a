use std::net::SocketAddr;

use units::{Bytes, Duration, Instant, Rate};

use crate::iperf::latency::LatencyOutcome;
use crate::iperf::wire::{Direction, Hello, Results};
use crate::traffic::TcpSample;

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// As planned, with results of both ends.
    Complete,
    /// It was asked to stop; what was measured until then is kept.
    Stopped,
    /// The server or the network ended it; what was measured until then is kept.
    Broken(String),
}

/// One stream of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamOutcome {
    /// Its number in iperf3's protocol.
    pub id: i64,
    /// Whether the client sent.
    pub forward: bool,
    /// This end's address.
    pub local: Option<SocketAddr>,
    /// The server's.
    pub remote: Option<SocketAddr>,
    /// What the socket that sent ran, as its own end read it back; `None`: not known.
    pub congestion_control: Option<String>,
    /// The same with its version by probe; `None`: the sending end is no linerate.
    pub congestion_control_version: Option<String>,
    /// Payload of a full segment.
    pub mss: Option<Bytes>,
    /// What the sending application handed over, warm-up left out.
    pub sent: Option<Bytes>,
    /// What the receiving application read, warm-up left out; `None`: the server did not come to tell.
    pub received: Option<Bytes>,
    /// The time in which it did.
    pub received_in: Duration,
    /// Segments sent again, warm-up left out; `None`: the sending end did not tell.
    pub retransmitted_segments: Option<u64>,
    /// The socket that sent, over the whole test; empty where that is at an iperf3 server.
    pub samples: Vec<TcpSample>,
    /// Bytes read by the receiving application, over the whole test; empty where that is at an iperf3 server.
    pub received_series: Vec<(Instant, Bytes)>,
    /// What went wrong at this end.
    pub error: Option<String>,
}

impl StreamOutcome {
    /// The sending socket's samples after the warm-up, with the last one before it.
    pub fn counted_samples(&self, from: Instant) -> &[TcpSample] {
        let first = self.samples.partition_point(|sample| sample.at < from);
        &self.samples[first
            .saturating_sub(usize::from(first > 0 && first < self.samples.len() && self.samples[first].at > from))..]
    }

    /// Bytes acknowledged after the warm-up, as the sending socket has it; `None` without samples of it.
    pub fn acknowledged(&self, from: Instant) -> Option<(Bytes, Duration)> {
        let samples = self.counted_samples(from);
        let (first, last) = (samples.first()?, samples.last()?);
        Some((last.bytes_acked - first.bytes_acked, last.at.since(first.at)))
    }
}

/// What one test found.
#[derive(Debug, Clone, PartialEq)]
pub struct TestOutcome {
    /// The control connection's ends.
    pub client: SocketAddr,
    /// The server's.
    pub server: SocketAddr,
    /// What iperf3 calls a test's identity.
    pub cookie: String,
    /// The server's greeting, where it is a linerate.
    pub hello: Option<Hello>,
    /// Who sent.
    pub direction: Direction,
    /// When data began to flow.
    pub started_at: Instant,
    /// When the warm-up was over.
    pub counting_from: Instant,
    /// When the test ended.
    pub ended_at: Instant,
    /// How.
    pub ending: Ending,
    /// In the order they were opened: first those on which the client sends.
    pub streams: Vec<StreamOutcome>,
    /// Where the server answers probes.
    pub latency: Option<LatencyOutcome>,
    /// Processor time of this whole process while it counted.
    pub cpu: Duration,
    /// Processor time of the server while it counted: a linerate's stream threads, or all of an iperf3; `None`: it did not come to tell.
    pub server_cpu: Option<Duration>,
    /// What this end said of itself in iperf3's terms.
    pub results: Results,
    /// What the server said.
    pub server_results: Option<Results>,
}

impl TestOutcome {
    /// The streams of one direction.
    pub fn streams_of(&self, forward: bool) -> impl Iterator<Item = &StreamOutcome> {
        self.streams.iter().filter(move |stream| stream.forward == forward)
    }

    /// Goodput of a direction, warm-up left out, by the receivers' counts; `None` where nobody sent, or a receiver did not tell.
    pub fn goodput(&self, forward: bool) -> Option<Rate> {
        let rates = self.streams_of(forward).map(|stream| {
            (stream.received_in > Duration::ZERO).then_some(())?;
            Some(Rate::from_transfer(stream.received?, stream.received_in).as_bps())
        });
        let rates: Option<Vec<u64>> = rates.collect();
        rates.filter(|rates| !rates.is_empty()).map(|rates| Rate::from_bps(rates.iter().sum()))
    }

    /// The same by what the sending sockets saw acknowledged, for a test whose server vanished.
    pub fn acknowledged_rate(&self, forward: bool) -> Option<Rate> {
        let rates: Option<Vec<u64>> = self
            .streams_of(forward)
            .map(|stream| {
                let (bytes, time) = stream.acknowledged(self.counting_from)?;
                (time > Duration::ZERO).then(|| Rate::from_transfer(bytes, time).as_bps())
            })
            .collect();
        rates.filter(|rates| !rates.is_empty()).map(|rates| Rate::from_bps(rates.iter().sum()))
    }

    /// Segments sent again in a direction; `None` where a sender did not tell.
    pub fn retransmitted(&self, forward: bool) -> Option<u64> {
        let counts: Option<Vec<u64>> = self.streams_of(forward).map(|stream| stream.retransmitted_segments).collect();
        counts.filter(|counts| !counts.is_empty()).map(|counts| counts.iter().sum())
    }
}
