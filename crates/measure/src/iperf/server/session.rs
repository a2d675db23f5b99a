//! One test, on a thread of its own, from its parameters to its results.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use host::tcp;
use ring::rand::{SecureRandom, SystemRandom};
use socket2::{SockRef, Socket};
use units::{Bytes, Duration, Instant, Rate};

use crate::iperf::stream::UNSENT;

use super::event::{Ending, Event, StreamSummary, TestSummary};
use super::gate::House;
use super::routes::{Arrival, Door};
use crate::iperf::control::{Control, ControlError};
use crate::iperf::stream::{Budget, CpuTime, Limits, Stream};
use crate::iperf::wire::{self, Cookie, Extra, Hello, Parameters, Results, State, StreamExtra, StreamResults, Wish};
use crate::traffic::Payload;

/// Connections for questions that a test takes: pings and those inside the flow.
const QUESTION_CONNECTIONS: usize = 2;
/// What a test may take longer than it said: its last words may wait behind what it has queued.
const GRACE: Duration = Duration::from_secs(30);
/// How long the server goes on sending after the time, should the client's word for it be late.
const OVERTIME: Duration = Duration::from_secs(1);
/// A test in which nothing arrives for so long is over.
const SILENCE: Duration = Duration::from_secs(15);
/// The last bytes of a test by bytes are given up when none came for so long.
const LAST_BYTES: Duration = Duration::from_millis(500);
/// A client may ask for samples so often.
const SAMPLE_FROM: Duration = Duration::from_millis(10);
const SAMPLE_TO: Duration = Duration::from_secs(1);
/// Samples of all streams together are kept below this, so that results stay small.
const MOST_SAMPLES: u64 = 8_000;

/// A test that was let in.
pub(super) struct Session<'a> {
    pub(super) house: &'a House<'a>,
    pub(super) control: TcpStream,
    pub(super) cookie: Cookie,
    pub(super) peer: SocketAddr,
}

/// Why there is no test.
enum NoTest {
    /// Told to the client with iperf3's number for it.
    Refused { number: i32, reason: String },
    /// The client went away or made no sense.
    Gone(String),
}

impl From<ControlError> for NoTest {
    fn from(error: ControlError) -> Self {
        Self::Gone(error.to_string())
    }
}

/// What a test has asked for and got leave for.
struct Leave {
    wish: Wish,
    parameters: Parameters,
}

/// Answers for one test until it is over.
pub(super) fn run(session: Session<'_>) {
    let Session { house, control, cookie, peer } = session;
    let (streams, arrivals) = mpsc::channel();
    let door = Arc::new(Door::new(streams, QUESTION_CONNECTIONS));
    if !house.routes.open(cookie, &door) {
        return (house.on_event)(Event::Refused { peer, reason: "another test has the same cookie".into() });
    }
    let probe_cookie = random_cookie();
    let outcome = Control::new(control, house.clock, house.plan.stop.clone())
        .map_err(|error| NoTest::Gone(error.to_string()))
        .and_then(|mut control| {
            Test::prepare(house, &mut control, &cookie, probe_cookie, &door, &arrivals, peer)?.run(&mut control)
        });
    door.over.store(true, Ordering::Relaxed);
    house.routes.close(&cookie, probe_cookie.as_ref());
    if let Err(NoTest::Refused { reason, .. } | NoTest::Gone(reason)) = outcome {
        (house.on_event)(Event::Refused { peer, reason });
    }
}

fn random_cookie() -> Option<Cookie> {
    let mut random = [0; wire::COOKIE_LENGTH - 1];
    SystemRandom::new().fill(&mut random).ok()?;
    Some(Cookie::from_random(random))
}

struct Test<'a> {
    house: &'a House<'a>,
    peer: SocketAddr,
    number: u64,
    leave: Leave,
    streams: Vec<Stream>,
    payload: Payload,
    sample_every: Duration,
    started_at: Instant,
    counting_since: Instant,
}

impl<'a> Test<'a> {
    /// Everything up to the last stream's connection.
    fn prepare(
        house: &'a House<'a>,
        control: &mut Control,
        cookie: &Cookie,
        probe_cookie: Option<Cookie>,
        door: &Arc<Door>,
        arrivals: &Receiver<Arrival>,
        peer: SocketAddr,
    ) -> Result<Self, NoTest> {
        let patience = house.plan.limits.patience;
        control.send_state(State::ParamExchange, patience)?;
        let parameters: Parameters = control.json(wire::MOST_PARAMETERS, patience, "sending its parameters")?;
        let leave = match check(house, cookie, parameters.clone()) {
            Ok(wish) => Leave { wish, parameters },
            Err(NoTest::Refused { number, reason }) => {
                // Best effort: the client may be gone.
                if parameters.linerate.is_some() {
                    let _ = say_hello(house, control, None, Some(reason.clone()));
                }
                let _ = control.send(&server_error(number), patience, "being refused");
                return Err(NoTest::Refused { number, reason });
            }
            Err(gone) => return Err(gone),
        };
        if let Some(ask) = &leave.parameters.linerate {
            let probes = probe_cookie.filter(|_| ask.probe);
            if let Some(cookie) = probes {
                house.routes.open_for_probes(cookie, door);
            }
            say_hello(house, control, probes, None)?;
            // It measures the idle path meanwhile.
            match control.state(patience + SILENCE, "measuring the idle path")? {
                State::Ready => {}
                other => return Err(NoTest::Gone(format!("sent {other:?} where Ready was expected"))),
            }
        }
        let directions =
            usize::from(leave.wish.direction.has_forward()) + usize::from(leave.wish.direction.has_reverse());
        let wanted = leave.wish.streams as usize * directions;
        door.want_streams(wanted);
        control.send_state(State::CreateStreams, patience)?;
        let streams = collect_streams(house, control, &leave.wish, wanted, arrivals)?;
        let watches = |sends: bool| streams.iter().filter(|stream| stream.sends == sends).map(Stream::watch).collect();
        let _ = door.watches.set((watches(false), watches(true)));
        let payload = Payload::new().map_err(|error| NoTest::Gone(format!("no memory for the payload: {error}")))?;
        Ok(Self {
            house,
            peer,
            number: house.tests_started.fetch_add(1, Ordering::Relaxed) + 1,
            sample_every: sample_every(&leave, wanted, house.plan.limits.duration),
            leave,
            streams,
            payload,
            started_at: Instant::ZERO,
            counting_since: Instant::ZERO,
        })
    }

    /// Data flows, then results are exchanged.
    fn run(mut self, control: &mut Control) -> Result<(), NoTest> {
        let house = self.house;
        let patience = house.plan.limits.patience;
        let limits = house.plan.limits;
        control.send_state(State::TestStart, patience)?;
        control.send_state(State::TestRunning, patience)?;
        self.started_at = house.clock.now();
        self.counting_since = self.started_at;
        (house.on_event)(Event::Started {
            test: self.number,
            peer: self.peer,
            wish: self.leave.wish.clone(),
            client_version: self.leave.parameters.client_version.clone(),
        });
        let budget = self.leave.wish.bytes.map(|bytes| Budget::new(bytes, self.leave.wish.omit));
        let share = Rate::from_bps((limits.rate.as_bps() / u64::from(self.leave.wish.streams)).max(1));
        let started = self.streams.iter_mut().try_for_each(|stream| {
            let (budget, read_rate) =
                if stream.sends { (budget.as_ref().map(Budget::left), None) } else { (None, Some(share)) };
            stream.start(&self.payload, Limits { budget, read_rate }, house.clock)
        });
        let ending = match started {
            Ok(()) => self.flow(control, budget.as_ref()),
            Err(error) => Ending::Limit(format!("no thread for a stream: {error}")),
        };
        let ended_at = house.clock.now();
        for stream in &self.streams {
            stream.ask_to_stop();
        }
        for stream in &mut self.streams {
            stream.stop(house.clock);
            if stream.sends {
                stream.end_data();
            }
        }
        let ending = match ending {
            Ending::Complete => match self.exchange_results(control, ended_at) {
                Ok(()) => Ending::Complete,
                Err(error) => Ending::Client(error.to_string()),
            },
            Ending::Limit(_) | Ending::Stopped => {
                control.ignore_stop();
                let _ = control.send_state(State::ServerTerminate, Duration::from_secs(1));
                ending
            }
            Ending::Client(_) => ending,
        };
        (house.on_event)(Event::Ended { test: self.number, peer: self.peer, ending, summary: self.summary(ended_at) });
        Ok(())
    }

    /// Watches over the flows until the client ends the test or something else does.
    fn flow(&mut self, control: &mut Control, budget: Option<&Budget>) -> Ending {
        let clock = self.house.clock;
        let limits = self.house.plan.limits;
        let wish = self.leave.wish.clone();
        let counting_from = self.started_at + wish.omit;
        let planned = wish.time.map_or(limits.duration, |time| (time + wish.omit).min(limits.duration));
        let last = self.started_at + planned;
        let mut is_counting = wish.omit == Duration::ZERO;
        let mut next_sample = self.started_at;
        let mut last_moved = (0, self.started_at);
        loop {
            let now = clock.now();
            if now >= next_sample {
                self.streams.iter_mut().for_each(|stream| stream.sample(now));
                while next_sample <= now {
                    next_sample += self.sample_every;
                }
            }
            if !is_counting && now >= counting_from {
                is_counting = true;
                self.counting_since = now;
                if let Some(budget) = budget {
                    budget.begin();
                }
                self.streams.iter_mut().for_each(|stream| stream.begin_counting(now));
            }
            if wish.time.is_some() && now >= last + OVERTIME {
                self.streams.iter().filter(|stream| stream.sends).for_each(Stream::ask_to_stop);
            }
            if now >= last + GRACE {
                return Ending::Limit(format!("longer than {planned} and {GRACE} of grace"));
            }
            let moved: u64 = self.streams.iter().map(Stream::moved).sum();
            if moved > limits.bytes.as_u64() {
                return Ending::Limit(format!("more than {}", limits.bytes));
            }
            if moved != last_moved.0 {
                last_moved = (moved, now);
            } else if now.since(last_moved.1) >= SILENCE && now < last {
                return Ending::Client(format!("nothing arrived for {SILENCE}"));
            }
            let mut until = next_sample.min(now + Duration::from_millis(200));
            if !is_counting {
                until = until.min(counting_from);
            }
            match control.poll_state(clock.until(until), "running the test") {
                Ok(None) => {}
                Ok(Some(State::TestEnd)) => {
                    self.take_the_rest();
                    return Ending::Complete;
                }
                Ok(Some(State::ClientTerminate)) => return Ending::Client("the client broke it off".into()),
                Ok(Some(State::IperfDone)) => return Ending::Client("the client left before the results".into()),
                Ok(Some(other)) => return Ending::Client(format!("sent {other:?} while the test ran")),
                Err(ControlError::Stopped) => return Ending::Stopped,
                Err(error) => return Ending::Client(error.to_string()),
            }
        }
    }

    /// In a test by bytes a client's word for the end overtakes its last bytes: they are waited for as long as some come.
    fn take_the_rest(&self) {
        let clock = self.house.clock;
        let Some(wanted) = self.leave.wish.bytes.filter(|_| self.leave.wish.direction.has_forward()) else { return };
        let received = || self.streams.iter().filter(|stream| !stream.sends).map(|s| s.counted().as_u64()).sum::<u64>();
        let mut last = (received(), clock.now());
        while last.0 < wanted.as_u64() && clock.now().since(last.1) < LAST_BYTES && !self.house.is_stopped() {
            std::thread::sleep(std::time::Duration::from_millis(2));
            let now = received();
            if now != last.0 {
                last = (now, clock.now());
            }
        }
    }

    fn exchange_results(&self, control: &mut Control, ended_at: Instant) -> Result<(), ControlError> {
        let patience = self.house.plan.limits.patience;
        control.send_state(State::ExchangeResults, patience)?;
        let _theirs: Results = control.json(wire::MOST_CLIENT_RESULTS, patience + GRACE, "sending its results")?;
        control.send_json(&self.results(ended_at), patience + GRACE, "taking the results")?;
        control.send_state(State::DisplayResults, patience)?;
        // The client's goodbye; one that just goes has said enough.
        match control.state(patience, "saying goodbye") {
            Ok(_) | Err(ControlError::Closed(_) | ControlError::Io(..) | ControlError::TimedOut(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn results(&self, ended_at: Instant) -> Results {
        let seconds = ended_at.since(self.counting_since).as_secs_f64();
        let cpu = self.streams.iter().map(Stream::cpu).fold(CpuTime::default(), |sum, one| CpuTime {
            user: sum.user + one.user,
            system: sum.system + one.system,
        });
        let percent = |time: Duration| if seconds > 0.0 { 100.0 * time.as_secs_f64() / seconds } else { 0.0 };
        let sends = self.streams.iter().any(|stream| stream.sends);
        let used = self.streams.iter().find_map(|stream| tcp::congestion_control(stream.socket()).ok());
        Results {
            cpu_util_total: percent(cpu.user + cpu.system),
            cpu_util_user: percent(cpu.user),
            cpu_util_system: percent(cpu.system),
            sender_has_retransmits: if sends { 1 } else { -1 },
            congestion_used: used,
            streams: self.streams.iter().map(|stream| stream_results(stream, seconds)).collect(),
            linerate: self.leave.parameters.linerate.as_ref().map(|_| Extra {
                cpu_s: (cpu.user + cpu.system).as_secs_f64(),
                streams: self.streams.iter().map(|stream| self.stream_extra(stream)).collect(),
            }),
        }
    }

    fn stream_extra(&self, stream: &Stream) -> StreamExtra {
        let micros = |at: Instant| at.since(self.started_at).as_micros();
        StreamExtra {
            id: stream.id,
            congestion_control: stream.cc_version.as_ref().map(|version| version.name.clone()),
            congestion_control_version: stream.cc_version.as_ref().map(ToString::to_string),
            received: stream.received.iter().map(|(at, bytes)| (micros(*at), bytes.as_u64())).collect(),
            samples: stream.samples.iter().map(|sample| wire::sample_row(micros(sample.at), sample)).collect(),
        }
    }

    fn summary(&self, ended_at: Instant) -> TestSummary {
        let sum = |sends: bool| {
            let all = self.streams.iter().filter(|stream| stream.sends == sends);
            Bytes::new(all.map(|stream| stream.counted().as_u64()).sum())
        };
        TestSummary {
            duration: ended_at.since(self.counting_since),
            received: sum(false),
            sent: sum(true),
            streams: self.streams.iter().map(stream_summary).collect(),
        }
    }
}

fn stream_results(stream: &Stream, seconds: f64) -> StreamResults {
    StreamResults {
        id: stream.id,
        bytes: stream.counted().as_u64(),
        retransmits: if stream.sends { stream.retransmitted().into() } else { -1 },
        jitter: 0.0,
        errors: 0,
        packets: 0,
        start_time: 0.0,
        end_time: seconds,
    }
}

fn stream_summary(stream: &Stream) -> StreamSummary {
    StreamSummary {
        id: stream.id,
        sends: stream.sends,
        bytes: stream.counted(),
        retransmitted_segments: stream.sends.then(|| stream.retransmitted()),
        congestion_control: stream.cc_version.as_ref().map(ToString::to_string),
    }
}

/// Whether this client may have this test.
fn check(house: &House<'_>, cookie: &Cookie, parameters: Parameters) -> Result<Wish, NoTest> {
    let limits = house.plan.limits;
    let refuse = |number, reason: String| Err(NoTest::Refused { number, reason });
    if let Some(verifier) = house.verifier.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let proof = parameters.linerate.as_ref().and_then(|ask| ask.proof.as_ref());
        if let Err(error) = verifier.take(cookie, proof, now_s) {
            return refuse(142, error.to_string());
        }
    }
    let wish = match parameters.wish() {
        Ok(wish) => wish,
        Err(error) if parameters.udp || parameters.sctp => return refuse(131, error.to_string()),
        Err(error) => return refuse(114, error.to_string()),
    };
    if wish.streams > limits.streams {
        return refuse(6, format!("{} parallel streams, and the most here is {}", wish.streams, limits.streams));
    }
    let length = wish.time.map_or(Duration::ZERO, |time| time + wish.omit).max(wish.omit);
    if length > limits.duration {
        return refuse(37, format!("a test of {length}, and the longest here is {}", limits.duration));
    }
    if wish.bytes.is_some_and(|bytes| bytes > limits.bytes) {
        return refuse(37, format!("more than {}, the most that a test may move here", limits.bytes));
    }
    if let Some(rate) = wish.rate
        && u128::from(rate.as_bps()) * u128::from(wish.streams) > u128::from(limits.rate.as_bps())
    {
        return refuse(27, format!("{} streams of {rate}, and the most here is {} in all", wish.streams, limits.rate));
    }
    // Not by trying: with the privilege, the kernel would load any module that a client names.
    if let Some(name) = &wish.congestion_control
        && !host::cc::available().is_ok_and(|all| all.contains(name))
    {
        let has = host::cc::available().unwrap_or_default().join(", ");
        return refuse(134, format!("the server has no congestion control of that name (it has {has})"));
    }
    Ok(wish)
}

fn server_error(number: i32) -> Vec<u8> {
    let mut bytes = vec![State::ServerError.byte()];
    bytes.extend(number.to_be_bytes());
    bytes.extend(0i32.to_be_bytes());
    bytes
}

fn say_hello(
    house: &House<'_>,
    control: &mut Control,
    probes: Option<Cookie>,
    refused: Option<String>,
) -> Result<(), ControlError> {
    let patience = house.plan.limits.patience;
    let hello = Hello {
        version: wire::HELLO_VERSION,
        linerate_version: house.plan.linerate_version.clone(),
        kernel: house.plan.kernel.clone(),
        probe_cookie: probes.map(|cookie| cookie.text()),
        refused,
    };
    control.send_state(State::Hello, patience)?;
    control.send_json(&hello, patience, "taking the greeting")
}

/// Samples are taken as often as the client asks, but not so often that results become large.
fn sample_every(leave: &Leave, streams: usize, longest: Duration) -> Duration {
    let asked = leave.parameters.linerate.as_ref().map_or(SAMPLE_TO, |ask| Duration::from_millis(ask.sample_ms.into()));
    let length = leave.wish.time.map_or(longest, |time| time + leave.wish.omit);
    let most_each = (MOST_SAMPLES / streams.max(1) as u64).max(16);
    asked.max(length / most_each).clamp(SAMPLE_FROM, SAMPLE_TO.max(length / most_each))
}

/// Takes the streams' connections and puts them into the order in which the client opened them.
fn collect_streams(
    house: &House<'_>,
    control: &mut Control,
    wish: &Wish,
    wanted: usize,
    arrivals: &Receiver<Arrival>,
) -> Result<Vec<Stream>, NoTest> {
    let until = house.clock.now() + house.plan.limits.patience;
    let mut arrived = Vec::new();
    while arrived.len() < wanted {
        match arrivals.recv_timeout(Duration::from_millis(20).into()) {
            Ok(arrival) => arrived.push(arrival),
            Err(RecvTimeoutError::Disconnected) => return Err(NoTest::Gone("the server is closing".into())),
            Err(RecvTimeoutError::Timeout) => {
                if house.clock.now() >= until {
                    return Err(NoTest::Gone(format!("opened {} of {wanted} streams in time", arrived.len())));
                }
                // It has nothing to say now but that it leaves.
                if let Some(state) = control.poll_state(Duration::ZERO, "opening its streams")? {
                    return Err(NoTest::Gone(format!("sent {state:?} while it opened its streams")));
                }
            }
        }
    }
    arrived.sort_by_key(|arrival| arrival.order);
    let received = if wish.direction.has_forward() { wish.streams as usize } else { 0 };
    let made = arrived.into_iter().enumerate().map(|(index, arrival)| {
        let sends = index >= received;
        prepare_stream(arrival.socket.into(), wish, sends, house.plan.limits.rate)
            .and_then(|socket| Stream::new(wire::stream_id(index), sends, socket))
    });
    made.collect::<std::io::Result<Vec<_>>>().map_err(|error| NoTest::Gone(format!("a stream's socket: {error}")))
}

fn prepare_stream(socket: Socket, wish: &Wish, sends: bool, limit: Rate) -> std::io::Result<Socket> {
    if let Some(name) = &wish.congestion_control {
        tcp::set_congestion_control(&socket, name).map_err(std::io::Error::other)?;
    }
    if wish.no_delay {
        socket.set_tcp_nodelay(true)?;
    }
    if let Some(buffer) = wish.buffer {
        let size = buffer.as_u64() as usize;
        SockRef::from(&socket).set_send_buffer_size(size)?;
        SockRef::from(&socket).set_recv_buffer_size(size)?;
    }
    if let Some(mss) = wish.mss {
        socket.set_tcp_mss(mss)?;
    }
    // An unset limit does not become one: pacing costs something even where it is never reached.
    let paced =
        wish.rate.or_else(|| (limit < super::ServerLimits::default().rate).then(|| limit_of_one(limit, wish.streams)));
    if sends && let Some(rate) = paced {
        tcp::set_max_pacing_rate(&socket, rate)?;
        tcp::set_notsent_lowat(&socket, UNSENT)?;
    }
    // What is queued when the test ends must not linger for minutes.
    socket.set_linger(Some(std::time::Duration::ZERO))?;
    Ok(socket)
}

fn limit_of_one(limit: Rate, streams: u32) -> Rate {
    Rate::from_bps((limit.as_bps() / u64::from(streams)).max(8))
}
