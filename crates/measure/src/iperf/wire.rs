//! What is said on the control connection.
//!
//! Nothing here reads a socket: bytes in, values out, so that any bytes can be thrown at it. Numbers of iperf3 are JSON numbers that
//! may be written as floats (`1e+15`), and a peer may send more keys than are known here.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use units::{Bytes, Duration, Rate};

use super::token::Proof;
use crate::traffic::TcpSample;

/// The port that iperf3 uses.
pub const PORT: u16 = 5201;
/// Length of the cookie that opens every connection of a test, its final NUL included.
pub const COOKIE_LENGTH: usize = 37;
/// The longest parameters that a server reads; iperf3's own limit.
pub const MOST_PARAMETERS: usize = 8 << 10;
/// The longest results that a server reads from a client: 256 streams of iperf3's take about 50 kB.
pub const MOST_CLIENT_RESULTS: usize = 256 << 10;
/// The longest results that a client reads from a server, series and samples included.
pub const MOST_SERVER_RESULTS: usize = 32 << 20;
/// iperf3's own limit of parallel streams in one direction.
pub const MOST_STREAMS: u32 = 128;
/// iperf3's own limit of a test's length.
pub const MOST_SECONDS: u64 = 86_400;
/// The version of the additions that this code speaks.
pub const HELLO_VERSION: u32 = 1;

/// What opens every connection of one test: 36 characters and a NUL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie(pub [u8; COOKIE_LENGTH]);

impl Cookie {
    /// From random bytes, in iperf3's alphabet of 32 characters.
    pub fn from_random(random: [u8; COOKIE_LENGTH - 1]) -> Self {
        const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let mut cookie = [0; COOKIE_LENGTH];
        for (to, from) in cookie.iter_mut().zip(random) {
            *to = ALPHABET[usize::from(from % 32)];
        }
        Self(cookie)
    }

    /// Reads it back from the text that [`Cookie::text`] gave; `None` where that can't be one.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut cookie = [0; COOKIE_LENGTH];
        (text.len() == COOKIE_LENGTH - 1 && text.is_ascii())
            .then(|| cookie[..text.len()].copy_from_slice(text.as_bytes()))?;
        Some(Self(cookie))
    }

    /// As text, up to its NUL. A hostile peer may have put anything there.
    pub fn text(&self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(COOKIE_LENGTH);
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }
}

/// A byte on the control connection (`iperf_api.h`), and two that only linerate's ends use between each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All streams stand.
    TestStart,
    /// Data may flow.
    TestRunning,
    /// The client ends the test.
    TestEnd,
    /// The client is to send its parameters.
    ParamExchange,
    /// The client is to open its streams.
    CreateStreams,
    /// The server breaks off.
    ServerTerminate,
    /// The client breaks off.
    ClientTerminate,
    /// Both send their results, the client first.
    ExchangeResults,
    /// Results were exchanged.
    DisplayResults,
    /// Before everything.
    IperfStart,
    /// Over.
    IperfDone,
    /// The server has no room now.
    AccessDenied,
    /// The server refuses or fails; two numbers follow.
    ServerError,
    /// Only towards a linerate client: a [`Hello`] follows.
    Hello,
    /// Only from a linerate client, after a [`Hello`]: go on.
    Ready,
}

const STATES: [(State, i8); 15] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParamExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ClientTerminate, 12),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::IperfStart, 15),
    (State::IperfDone, 16),
    (State::AccessDenied, -1),
    (State::ServerError, -2),
    (State::Hello, 96),
    (State::Ready, 97),
];

impl State {
    /// From the byte on the wire.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let number = byte as i8;
        STATES.iter().find(|(_, code)| *code == number).map(|(state, _)| *state)
    }

    /// The byte on the wire.
    pub fn byte(self) -> u8 {
        STATES.iter().find(|(state, _)| *state == self).map_or(0, |(_, code)| *code as u8)
    }
}

/// Why bytes of a peer are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The length before a JSON text is zero or more than is allowed here.
    #[error("it announced {announced} bytes of JSON, and 1 to {most} are allowed")]
    Length {
        /// What it announced.
        announced: u32,
        /// The limit.
        most: usize,
    },
    /// Not JSON, or not of the expected form.
    #[error("its JSON can't be read: {0}")]
    Json(String),
    /// A number is out of range.
    #[error("it asks for {what} = {value}; {allowed}")]
    Range {
        /// Which.
        what: &'static str,
        /// What it asked for.
        value: String,
        /// What may be asked for.
        allowed: String,
    },
}

/// Checks a JSON text's length as it stands before it.
///
/// # Errors
/// [`WireError::Length`].
pub fn json_length(bytes: [u8; 4], most: usize) -> Result<usize, WireError> {
    let announced = u32::from_be_bytes(bytes);
    match announced as usize {
        0 => Err(WireError::Length { announced, most }),
        length if length > most => Err(WireError::Length { announced, most }),
        length => Ok(length),
    }
}

/// A value as JSON with its length before it.
pub fn framed<T: Serialize>(value: &T) -> Vec<u8> {
    // Of the types here no map has other keys than text and no number is refused.
    let text = serde_json::to_vec(value).unwrap_or_else(|_| b"{}".to_vec());
    let mut framed = (text.len() as u32).to_be_bytes().to_vec();
    framed.extend(text);
    framed
}

/// Reads JSON of a peer.
///
/// # Errors
/// [`WireError::Json`], with the place but not with the peer's text.
pub fn parse<T: for<'a> Deserialize<'a>>(text: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(text).map_err(|error| WireError::Json(format!("{error}")))
}

/// A client's parameters, as they are on the wire. `None`: not said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Parameters {
    /// A TCP test.
    #[serde(skip_serializing_if = "no")]
    pub tcp: bool,
    /// A UDP test.
    #[serde(skip_serializing_if = "no")]
    pub udp: bool,
    /// An SCTP test.
    #[serde(skip_serializing_if = "no")]
    pub sctp: bool,
    /// Seconds at the start that do not count.
    #[serde(deserialize_with = "whole")]
    pub omit: u64,
    /// Seconds of the test, without those.
    #[serde(deserialize_with = "whole")]
    pub time: u64,
    /// Bytes of all streams; 0: by time.
    #[serde(deserialize_with = "whole")]
    pub num: u64,
    /// The same in blocks.
    #[serde(deserialize_with = "whole")]
    pub blockcount: u64,
    /// Largest segment.
    #[serde(rename = "MSS", deserialize_with = "whole", skip_serializing_if = "zero")]
    pub mss: u64,
    /// `TCP_NODELAY` on the streams.
    #[serde(skip_serializing_if = "no")]
    pub nodelay: bool,
    /// Streams in each direction.
    #[serde(deserialize_with = "whole")]
    pub parallel: u64,
    /// The server sends.
    #[serde(skip_serializing_if = "no")]
    pub reverse: bool,
    /// Both send.
    #[serde(skip_serializing_if = "no")]
    pub bidirectional: bool,
    /// Socket buffer in bytes; 0: the kernel tunes it.
    #[serde(deserialize_with = "whole", skip_serializing_if = "zero")]
    pub window: u64,
    /// Bytes handed to the kernel at once.
    #[serde(deserialize_with = "whole", skip_serializing_if = "zero")]
    pub len: u64,
    /// Bits per second and stream; 0: no limit.
    #[serde(deserialize_with = "whole", skip_serializing_if = "zero")]
    pub bandwidth: u64,
    /// Bits per second and stream, paced by the kernel; 0: no limit.
    #[serde(deserialize_with = "whole", skip_serializing_if = "zero")]
    pub fqrate: u64,
    /// The congestion control of the streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// iperf3's version, or linerate's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// iperf3's RSA authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authtoken: Option<String>,
    /// Only from a linerate client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linerate: Option<Ask>,
}

/// What a linerate client adds to its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// [`HELLO_VERSION`].
    pub version: u32,
    /// Whether it wants to probe the delay.
    #[serde(default)]
    pub probe: bool,
    /// How often the server should take samples.
    #[serde(default)]
    pub sample_ms: u32,
    /// Proof that it knows the shared token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// What a linerate server answers to a linerate client's parameters, before the streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`HELLO_VERSION`].
    pub version: u32,
    /// The server's linerate.
    pub linerate_version: String,
    /// The server's kernel.
    pub kernel: String,
    /// The cookie that opens a connection for probes; `None`: none are answered.
    pub probe_cookie: Option<String>,
    /// Why there will be no test.
    pub refused: Option<String>,
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The client.
    Forward,
    /// The server.
    Reverse,
    /// Both at once.
    Both,
}

impl Direction {
    /// Whether the client sends.
    pub fn has_forward(self) -> bool {
        self != Self::Reverse
    }

    /// Whether the server sends.
    pub fn has_reverse(self) -> bool {
        self != Self::Forward
    }
}

/// Parameters that were checked, with units.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// Who sends.
    pub direction: Direction,
    /// Streams in each direction.
    pub streams: u32,
    /// Left out at the start.
    pub omit: Duration,
    /// The length without that; `None`: until so many bytes were sent.
    pub time: Option<Duration>,
    /// Bytes of all streams of a direction.
    pub bytes: Option<Bytes>,
    /// Limit of each stream.
    pub rate: Option<Rate>,
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// Socket buffers.
    pub buffer: Option<Bytes>,
    /// Largest segment.
    pub mss: Option<u32>,
    /// The congestion control of the streams.
    pub congestion_control: Option<String>,
}

impl Parameters {
    /// Checks them and gives them units.
    ///
    /// # Errors
    /// [`WireError::Range`].
    pub fn wish(&self) -> Result<Wish, WireError> {
        let range = |what, value: u64, most: u64| match value {
            value if value <= most => Ok(value),
            _ => Err(WireError::Range { what, value: value.to_string(), allowed: format!("the most is {most}") }),
        };
        if self.udp || self.sctp {
            let value = if self.udp { "udp" } else { "sctp" };
            return Err(WireError::Range {
                what: "protocol",
                value: value.into(),
                allowed: "this server measures TCP".into(),
            });
        }
        // An absent number of streams is one, as iperf3 has it.
        let streams = range("parallel", self.parallel.max(1), u64::from(MOST_STREAMS))?;
        let omit = range("omit", self.omit, 600)?;
        let time = range("time", self.time, MOST_SECONDS)?;
        let block = if self.len == 0 { 128 << 10 } else { range("len", self.len, 1 << 30)? };
        let blocks = self.blockcount.saturating_mul(block);
        let bytes = if self.num > 0 { self.num } else { blocks };
        let window = range("window", self.window, 512 << 20)?;
        let mss = range("MSS", self.mss, 9216)?;
        let limits = [self.bandwidth, self.fqrate].into_iter().filter(|rate| *rate > 0);
        Ok(Wish {
            direction: match (self.reverse, self.bidirectional) {
                (_, true) => Direction::Both,
                (true, false) => Direction::Reverse,
                (false, false) => Direction::Forward,
            },
            streams: streams as u32,
            omit: Duration::from_secs(omit),
            time: (bytes == 0).then(|| Duration::from_secs(time)),
            bytes: (bytes > 0).then(|| Bytes::new(bytes)),
            rate: limits.min().map(Rate::from_bps),
            no_delay: self.nodelay,
            buffer: (window > 0).then(|| Bytes::new(window)),
            mss: (mss > 0).then_some(mss as u32),
            congestion_control: self.congestion.clone().filter(|name| !name.is_empty()),
        })
    }
}

/// One end's results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Processor time over wall time in percent of one processor.
    pub cpu_util_total: f64,
    /// In user mode.
    pub cpu_util_user: f64,
    /// In the kernel.
    pub cpu_util_system: f64,
    /// 1 where this end sends and counts them, -1 where it does not send.
    #[serde(deserialize_with = "signed")]
    pub sender_has_retransmits: i64,
    /// The congestion control of its sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_used: Option<String>,
    /// One per stream.
    pub streams: Vec<StreamResults>,
    /// Only between linerate's ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linerate: Option<Extra>,
}

/// One end's results of one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamResults {
    /// 1, 3, 4, 5 and so on, in the order they were opened.
    #[serde(deserialize_with = "signed")]
    pub id: i64,
    /// Sent or received, without the omitted.
    #[serde(deserialize_with = "whole")]
    pub bytes: u64,
    /// Segments sent again; -1 from an end that does not know.
    #[serde(deserialize_with = "signed")]
    pub retransmits: i64,
    /// Of UDP.
    #[serde(default)]
    pub jitter: f64,
    /// Of UDP.
    #[serde(default, deserialize_with = "signed")]
    pub errors: i64,
    /// Of UDP.
    #[serde(default, deserialize_with = "signed")]
    pub packets: i64,
    /// Seconds; always 0.
    #[serde(default)]
    pub start_time: f64,
    /// Seconds that the bytes took.
    #[serde(default)]
    pub end_time: f64,
}

/// What a linerate server adds to its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Extra {
    /// Processor time of the test's threads, warm-up left out.
    pub cpu_s: f64,
    /// One per stream.
    pub streams: Vec<StreamExtra>,
}

/// What a linerate server knows about one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct StreamExtra {
    /// As in [`StreamResults`].
    pub id: i64,
    /// What its socket ran, where it sent.
    pub congestion_control: Option<String>,
    /// The same with the version by probe, in words.
    pub congestion_control_version: Option<String>,
    /// Microseconds since the test ran and bytes received until then, where it received.
    pub received: Vec<(u64, u64)>,
    /// Its socket over time, where it sent.
    pub samples: Vec<SampleRow>,
}

/// The number of the stream that is opened as the `index`-th, from 0: iperf3 leaves out 2.
pub fn stream_id(index: usize) -> i64 {
    if index == 0 { 1 } else { index as i64 + 2 }
}

/// Columns of [`SampleRow`], in order: microseconds since the test ran; then as in [`TcpSample`], times in microseconds, rates in bits
/// per second. `null`: not known.
pub const SAMPLE_COLUMNS: usize = 20;

/// One [`TcpSample`] in its columns.
pub type SampleRow = [Option<u64>; SAMPLE_COLUMNS];

/// Puts a sample into its columns; `micros` since the test ran.
pub fn sample_row(micros: u64, sample: &TcpSample) -> SampleRow {
    let time = |time: Duration| Some(time.as_micros());
    [
        Some(micros),
        Some(sample.bytes_acked.as_u64()),
        Some(sample.delivered_segments.into()),
        sample.srtt.and_then(time),
        sample.min_rtt.and_then(time),
        time(sample.rttvar),
        Some(sample.cwnd_segments.into()),
        sample.ssthresh_segments.map(u64::from),
        Some(sample.mss.as_u64()),
        Some(sample.unacked_segments.into()),
        Some(sample.lost_segments.into()),
        Some(sample.unsent.as_u64()),
        sample.pacing_rate.map(Rate::as_bps),
        Some(sample.delivery_rate.as_bps()),
        Some(sample.delivery_app_limited.into()),
        Some(sample.retransmitted_segments.into()),
        Some(sample.bytes_retrans.as_u64()),
        time(sample.busy),
        time(sample.rwnd_limited),
        time(sample.sndbuf_limited),
    ]
}

/// Reads a sample back; its time is counted from `start`.
pub fn sample_from(row: &SampleRow, start: units::Instant) -> TcpSample {
    let number = |column: usize| row[column].unwrap_or(0);
    let small = |column: usize| u32::try_from(number(column)).unwrap_or(u32::MAX);
    let time = |column: usize| Duration::from_micros(number(column));
    TcpSample {
        at: start + time(0),
        bytes_acked: Bytes::new(number(1)),
        delivered_segments: small(2),
        srtt: row[3].map(Duration::from_micros),
        min_rtt: row[4].map(Duration::from_micros),
        rttvar: time(5),
        cwnd_segments: small(6),
        ssthresh_segments: row[7].map(|_| small(7)),
        mss: Bytes::new(number(8)),
        unacked_segments: small(9),
        sacked_segments: 0,
        lost_segments: small(10),
        unsent: Bytes::new(number(11)),
        pacing_rate: row[12].map(Rate::from_bps),
        delivery_rate: Rate::from_bps(number(13)),
        delivery_app_limited: number(14) != 0,
        retransmitted_segments: small(15),
        bytes_retrans: Bytes::new(number(16)),
        timeouts: None,
        reordering_seen: 0,
        busy: time(17),
        rwnd_limited: time(18),
        sndbuf_limited: time(19),
        ca_state: host::tcp::CaState::Open,
        send_window: None,
    }
}

/// A question on a probe connection, answered by the same 16 bytes, `value` filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub kind: QuestionKind,
    /// The stream's place among those of its direction, from 0.
    pub stream: u16,
    /// Comes back unchanged.
    pub number: u32,
    /// A byte count.
    pub value: u64,
}

/// What a [`Question`] asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionKind {
    /// Answer at once.
    Ping,
    /// Answer when the application has read `value` bytes of the stream.
    Reached,
    /// Answer at once with the bytes written to the stream so far.
    Written,
}

/// Length of a [`Question`] on the wire.
pub const QUESTION_LENGTH: usize = 16;

impl Question {
    /// As bytes.
    pub fn bytes(self) -> [u8; QUESTION_LENGTH] {
        let mut bytes = [0; QUESTION_LENGTH];
        bytes[0] = match self.kind {
            QuestionKind::Ping => 1,
            QuestionKind::Reached => 2,
            QuestionKind::Written => 3,
        };
        bytes[2..4].copy_from_slice(&self.stream.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..].copy_from_slice(&self.value.to_be_bytes());
        bytes
    }

    /// From bytes; `None` for a kind that is none.
    pub fn from_bytes(bytes: [u8; QUESTION_LENGTH]) -> Option<Self> {
        let kind = match bytes[0] {
            1 => QuestionKind::Ping,
            2 => QuestionKind::Reached,
            3 => QuestionKind::Written,
            _ => return None,
        };
        let [_, _, s0, s1, n0, n1, n2, n3, value @ ..] = bytes;
        Some(Self {
            kind,
            stream: u16::from_be_bytes([s0, s1]),
            number: u32::from_be_bytes([n0, n1, n2, n3]),
            value: u64::from_be_bytes(value),
        })
    }
}

/// Reads any bytes as everything that a peer may send; for fuzzing.
///
/// # Panics
/// Where what was read does not survive being written and read again.
pub fn exercise(bytes: &[u8]) {
    if let Some((first, rest)) = bytes.split_first() {
        if let Some(state) = State::from_byte(*first) {
            assert_eq!(state.byte(), *first);
        }
        if let Some((length, text)) = rest.split_first_chunk::<4>() {
            let text = json_length(*length, MOST_PARAMETERS).ok().and_then(|length| text.get(..length));
            exercise_json(text.unwrap_or(rest));
        }
        exercise_json(rest);
    }
    if let Some(bytes) = bytes.first_chunk::<QUESTION_LENGTH>()
        && let Some(question) = Question::from_bytes(*bytes)
    {
        assert_eq!(Question::from_bytes(question.bytes()), Some(question));
    }
    if let Some(bytes) = bytes.first_chunk::<COOKIE_LENGTH>() {
        let _ = Cookie(*bytes).text();
    }
}

fn exercise_json(text: &[u8]) {
    if let Ok(parameters) = parse::<Parameters>(text) {
        let again: Parameters = parse(&framed(&parameters)[4..]).expect("what was written can be read");
        assert_eq!(again, parameters);
        if let Ok(wish) = parameters.wish() {
            assert!((1..=MOST_STREAMS).contains(&wish.streams));
            assert!(wish.time.is_some() != wish.bytes.is_some());
        }
    }
    if let Ok(results) = parse::<Results>(text) {
        let _ = framed(&results);
        for row in results.linerate.iter().flat_map(|extra| &extra.streams).flat_map(|stream| &stream.samples) {
            let sample = sample_from(row, units::Instant::ZERO);
            let _ = sample_row(sample.at.since(units::Instant::ZERO).as_micros(), &sample);
        }
    }
    let _ = parse::<Hello>(text);
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn no(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn zero(value: &u64) -> bool {
    *value == 0
}

/// A whole number that may be written as a float; negative ones are an error, too large ones saturate.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    match (number.as_u64(), number.as_f64()) {
        (Some(whole), _) => Ok(whole),
        // The conversion saturates.
        (None, Some(float)) if float >= 0.0 => Ok(float as u64),
        _ => Err(D::Error::custom(format!("{number} where a whole number from 0 is needed"))),
    }
}

/// The same with a sign.
fn signed<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => Ok(whole),
        (None, Some(float)) if float.is_finite() => Ok(float as i64),
        _ => Err(D::Error::custom(format!("{number} where a whole number is needed"))),
    }
}

/// What iperf3's number after `SERVER_ERROR` means, for those that a server sends.
pub fn server_error_words(number: i32) -> &'static str {
    match number {
        5 => "the test is too long for it",
        6 => "too many parallel streams for it",
        8 => "the socket buffer is too large for it",
        12 => "the warm-up is too long for it",
        18 => "it does not measure this protocol",
        27 => "the rate is above its limit",
        37 | 160 => "the test is longer than it allows",
        114 => "it could not read the parameters",
        131 => "it does not measure this protocol",
        134 => "it can't set this congestion control",
        142 => "it wants a user name and a password (iperf3's RSA authentication), which linerate can't give",
        _ => "it gave no reason that linerate knows",
    }
}
