//! The course of one test.

use std::io::Write;
use std::net::SocketAddr;
use std::time::SystemTime;

use host::tcp;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use ring::rand::{SecureRandom, SystemRandom};
use units::{Bytes, Duration, Instant};

use crate::iperf::stream::UNSENT;

use super::outcome::{Ending, StreamOutcome, TestOutcome};
use super::{ClientPlan, Length, Progress, TestError, connect};
use crate::iperf::control::{Control, ControlError};
use crate::iperf::latency::{LatencyOutcome, LoadedFlow, Prober, Probing};
use crate::iperf::stream::{Budget, Limits, Stream};
use crate::iperf::wire::{self, Ask, Cookie, Hello, Parameters, Results, State, StreamResults};
use crate::traffic::Payload;

/// A server with a queue may keep a client waiting so long before its first word.
const FIRST_WORD: Duration = Duration::from_secs(60);
/// The longest that the last bytes of a test by bytes may take to arrive without any progress.
const STALLED: Duration = Duration::from_secs(15);
const NOT_IPERF: &str = "; does an iperf3 server, 3.9 or later, or `linerate serve` listen there?";

/// Runs a test to its end. `on_progress` is called a few times a second, on the calling thread. Threads start in the caller's
/// network namespace.
///
/// # Errors
/// [`TestError`] where no data flowed. What ends a test that runs is in its outcome.
pub fn run(plan: &ClientPlan, on_progress: &mut dyn FnMut(Progress)) -> Result<TestOutcome, TestError> {
    plan.check()?;
    crate::traffic::allow_files(u64::from(plan.streams) * 4 + 64)
        .map_err(|error| TestError::BadPlan(error.to_string()))?;
    if let Some(name) = &plan.congestion_control {
        // Before the server is troubled.
        host::cc::probe_version(name)?;
    }
    let (mut socket, server) = connect::control(plan)?;
    let mut random = [0; wire::COOKIE_LENGTH - 1];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| local("draw a cookie")(std::io::Error::other("no random numbers")))?;
    let cookie = Cookie::from_random(random);
    socket.set_nonblocking(false).and_then(|()| socket.write_all(&cookie.0)).map_err(local("send the cookie"))?;
    let control =
        Control::new(socket, plan.clock, plan.stop.clone()).map_err(local("set up the control connection"))?;
    let mut test = Test { plan, server, cookie, control, hello: None, idle: None, prober: None };
    on_progress(Progress::Waiting);
    let streams = test.until_running(on_progress)?;
    test.run(streams, on_progress)
}

fn local(step: &'static str) -> impl FnOnce(std::io::Error) -> TestError {
    move |source| TestError::Local { step, source }
}

/// A control connection that failed before data flowed.
fn before(error: ControlError) -> TestError {
    match error {
        ControlError::Stopped => TestError::Stopped,
        error @ (ControlError::NoState(..) | ControlError::Wire(..) | ControlError::TimedOut(_)) => {
            TestError::Server(error.to_string(), NOT_IPERF)
        }
        error => TestError::Server(error.to_string(), ""),
    }
}

struct Test<'a> {
    plan: &'a ClientPlan,
    server: SocketAddr,
    cookie: Cookie,
    control: Control,
    hello: Option<Hello>,
    idle: Option<Vec<Duration>>,
    prober: Option<Prober>,
}

impl Test<'_> {
    /// Everything up to the server's word that data may flow.
    fn until_running(&mut self, on_progress: &mut dyn FnMut(Progress)) -> Result<Vec<Stream>, TestError> {
        let mut streams = Vec::new();
        let mut patience = FIRST_WORD.max(self.plan.patience);
        let mut doing = "taking the connection";
        loop {
            let state = self.control.state(patience, doing).map_err(before)?;
            patience = self.plan.patience + Duration::from_secs(5);
            doing = "setting up the test";
            match state {
                State::ParamExchange => {
                    let parameters = self.parameters();
                    self.control.send_json(&parameters, self.plan.patience, "taking the parameters").map_err(before)?;
                }
                State::Hello => self.greet(on_progress)?,
                State::CreateStreams if streams.is_empty() => streams = self.open_streams()?,
                State::TestStart => {}
                State::TestRunning if !streams.is_empty() => return Ok(streams),
                State::AccessDenied => return Err(TestError::Busy),
                State::ServerError => return Err(self.refusal()),
                State::ServerTerminate => return Err(TestError::Server("ended the test before it began".into(), "")),
                other => return Err(TestError::Server(format!("sent {other:?} out of turn"), NOT_IPERF)),
            }
        }
    }

    fn parameters(&self) -> Parameters {
        let plan = self.plan;
        let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let seconds = |time: Duration| time.as_nanos().div_ceil(1_000_000_000);
        Parameters {
            tcp: true,
            omit: seconds(plan.omit),
            // In a test by bytes iperf3 sends no time, and then a server sets no timer.
            time: if let Length::Time(time) = plan.length { seconds(time) } else { 0 },
            num: if let Length::Bytes(bytes) = plan.length { bytes.as_u64() } else { 0 },
            parallel: plan.streams.into(),
            reverse: plan.direction == wire::Direction::Reverse,
            bidirectional: plan.direction == wire::Direction::Both,
            len: 128 << 10,
            bandwidth: plan.rate.map_or(0, units::Rate::as_bps),
            congestion: plan.congestion_control.clone(),
            client_version: Some(format!("linerate {}", plan.version)),
            linerate: Some(Ask {
                version: wire::HELLO_VERSION,
                probe: plan.probe,
                sample_ms: plan.sample_every.as_millis() as u32,
                proof: plan.token.as_ref().map(|token| token.prove(&self.cookie, now_s)),
            }),
            ..Parameters::default()
        }
    }

    fn greet(&mut self, on_progress: &mut dyn FnMut(Progress)) -> Result<(), TestError> {
        let hello: Hello =
            self.control.json(wire::MOST_PARAMETERS, self.plan.patience, "sending its greeting").map_err(before)?;
        if let Some(reason) = &hello.refused {
            return Err(TestError::Refused(reason.clone()));
        }
        let cookie = hello.probe_cookie.as_deref().and_then(Cookie::from_text);
        if self.plan.probe
            && let Some(cookie) = cookie
        {
            on_progress(Progress::Idle);
            // Probes that can't be opened leave a test without probes.
            if let Ok(mut prober) = Prober::open(self.server, cookie, self.plan.clock, self.plan.patience) {
                self.idle = Some(prober.idle(&self.plan.stop));
                self.prober = Some(prober);
            }
        }
        self.hello = Some(hello);
        self.control.send_state(State::Ready, self.plan.patience).map_err(before)
    }

    fn refusal(&mut self) -> TestError {
        let number = self.control.bytes::<4>(self.plan.patience, "refusing").map(i32::from_be_bytes).unwrap_or(0);
        let errno = self.control.bytes::<4>(self.plan.patience, "refusing").map(i32::from_be_bytes).unwrap_or(0);
        let words = wire::server_error_words(number);
        let more = if errno > 0 { format!(", {}", std::io::Error::from_raw_os_error(errno)) } else { String::new() };
        TestError::Refused(format!("{words} (iperf3's error {number}{more})"))
    }

    fn open_streams(&mut self) -> Result<Vec<Stream>, TestError> {
        let plan = self.plan;
        let mut streams = Vec::new();
        let forward = plan.direction.has_forward().then_some(true);
        let reverse = plan.direction.has_reverse().then_some(false);
        for sends in [forward, reverse].into_iter().flatten() {
            for _ in 0..plan.streams {
                let prepare = |socket: &socket2::Socket| {
                    if let Some(name) = &plan.congestion_control {
                        tcp::set_congestion_control(socket, name)?;
                    }
                    if let Some(rate) = plan.rate.filter(|_| sends) {
                        tcp::set_max_pacing_rate(socket, rate).map_err(local("limit the rate"))?;
                        // What waits in the buffer at the end was handed over and never sent: it must not count for much.
                        tcp::set_notsent_lowat(socket, UNSENT).map_err(local("limit the rate"))?;
                    }
                    // What is queued when the test ends must not linger for minutes.
                    socket.set_linger(Some(std::time::Duration::ZERO)).map_err(local("set up a stream"))
                };
                let socket = connect::connect(self.server, plan.from, plan.patience, plan.clock, &plan.stop, prepare)?;
                if let Some(name) = &plan.congestion_control {
                    // Again: a route's congctl replaces it while connecting. Where that is locked it fails, and the run shows as
                    // what it is.
                    let _ = tcp::set_congestion_control(&socket, name);
                }
                // 37 bytes fit into an empty socket.
                let sent = socket.send(&self.cookie.0).map_err(local("open a stream"))?;
                if sent != self.cookie.0.len() {
                    return Err(local("open a stream")(std::io::ErrorKind::WriteZero.into()));
                }
                let id = wire::stream_id(streams.len());
                streams.push(Stream::new(id, sends, socket).map_err(local("set up a stream"))?);
            }
        }
        Ok(streams)
    }

    fn run(mut self, streams: Vec<Stream>, on_progress: &mut dyn FnMut(Progress)) -> Result<TestOutcome, TestError> {
        let plan = self.plan;
        let clock = plan.clock;
        let payload = Payload::new().map_err(local("make the payload"))?;
        let mut running = Running {
            started_at: clock.now(),
            counting_from: clock.now(),
            cpu_from: process_cpu(),
            streams,
            local_done: false,
        };
        let budget = match plan.length {
            Length::Bytes(bytes) => Some(Budget::new(bytes, plan.omit)),
            Length::Time(_) => None,
        };
        for stream in &mut running.streams {
            let budget = budget.as_ref().filter(|_| stream.sends).map(Budget::left);
            stream
                .start(&payload, Limits { budget, read_rate: None }, clock)
                .map_err(local("start a stream's thread"))?;
        }
        let probing = self.start_probing(&running);
        let ending = self.flow(&mut running, budget.as_ref(), on_progress);
        let ended_at = clock.now();
        let cpu = process_cpu().saturating_sub(running.cpu_from);
        let latency = probing.map(|probing| {
            let outcome = probing.finish();
            LatencyOutcome { idle: self.idle.clone().unwrap_or_default(), ..outcome }
        });
        // Receivers go on taking what is still under way, so that the server is never stuck in it.
        for stream in &mut running.streams {
            if stream.sends {
                stream.stop(clock);
            } else {
                stream.freeze(ended_at);
            }
        }
        let results = running.results(ended_at, cpu);
        let (ending, server_results) = match ending {
            Ending::Complete => match self.exchange_results(&results, &running) {
                Ok(theirs) => (Ending::Complete, Some(theirs)),
                Err(ControlError::Stopped) => (Ending::Stopped, None),
                Err(error) => (Ending::Broken(format!("the server {error}")), None),
            },
            Ending::Stopped => {
                // So that it does not wait for more.
                self.control.ignore_stop();
                let _ = self.control.send_state(State::ClientTerminate, Duration::from_secs(1));
                (Ending::Stopped, None)
            }
            broken @ Ending::Broken(_) => (broken, None),
        };
        Ok(self.outcome(running, ended_at, ending, latency, cpu, results, server_results))
    }

    fn start_probing(&mut self, running: &Running) -> Option<Probing> {
        let prober = self.prober.take()?;
        // Where both directions are loaded, the client's own is probed.
        let sends = self.plan.direction.has_forward();
        let flow = running.streams.iter().find(|stream| stream.sends == sends);
        prober.start(flow.map(|stream| LoadedFlow { place: 0, sends, watch: stream.watch() })).ok()
    }

    /// Watches over the flows until the test's end.
    fn flow(
        &mut self,
        running: &mut Running,
        budget: Option<&Budget>,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Ending {
        let plan = self.plan;
        let clock = plan.clock;
        let counting_from = running.started_at + plan.omit;
        let planned = match plan.length {
            Length::Time(time) => Some(time + plan.omit),
            Length::Bytes(_) => None,
        };
        let end = planned.map_or(Instant::MAX, |planned| running.started_at + planned);
        let mut counting = plan.omit == Duration::ZERO;
        let mut next_sample = running.started_at;
        let mut next_progress = running.started_at;
        let mut last_moved = (0, running.started_at);
        loop {
            let now = clock.now();
            if now >= next_sample {
                running.streams.iter_mut().for_each(|stream| stream.sample(now));
                while next_sample <= now {
                    next_sample += plan.sample_every;
                }
            }
            if !counting && now >= counting_from {
                counting = true;
                running.counting_from = now;
                running.cpu_from = process_cpu();
                if let Some(budget) = budget {
                    budget.begin();
                }
                running.streams.iter_mut().for_each(|stream| stream.begin_counting(now));
            }
            if now >= end || (counting && running.is_delivered(plan.length, plan.direction)) {
                return Ending::Complete;
            }
            if let Some(error) = running.broken() {
                return Ending::Broken(error);
            }
            let moved = running.moved(true).as_u64() + running.moved(false).as_u64();
            if moved != last_moved.0 {
                last_moved = (moved, now);
            } else if planned.is_none() && now.since(last_moved.1) >= STALLED {
                return Ending::Broken(format!("nothing moved for {STALLED}"));
            }
            if now >= next_progress {
                next_progress = now + Duration::from_millis(200);
                on_progress(Progress::Running {
                    elapsed: now.since(running.started_at),
                    planned,
                    counting,
                    forward: running.moved(true),
                    reverse: running.moved(false),
                });
            }
            let mut until = next_sample.min(end);
            if !counting {
                until = until.min(counting_from);
            }
            match self.control.poll_state(clock.until(until), "running the test") {
                Ok(None) => {}
                Ok(Some(State::ServerTerminate)) => return Ending::Broken("the server broke it off".into()),
                Ok(Some(State::ServerError)) => return Ending::Broken(self.refusal().to_string()),
                Ok(Some(State::AccessDenied)) => return Ending::Broken("the server is busy".into()),
                Ok(Some(other)) => return Ending::Broken(format!("the server sent {other:?} while the test ran")),
                Err(ControlError::Stopped) => return Ending::Stopped,
                Err(error) => return Ending::Broken(format!("the server {error}")),
            }
        }
    }

    /// Ends the test in good order.
    fn exchange_results(&mut self, results: &Results, running: &Running) -> Result<Results, ControlError> {
        // Words may wait behind what the test has queued on the path.
        let patience = self.plan.patience + Duration::from_secs(20);
        self.control.send_state(State::TestEnd, patience)?;
        running.streams.iter().filter(|stream| stream.sends).for_each(Stream::end_data);
        match self.control.state(patience, "ending the test")? {
            State::ExchangeResults => {}
            other => return Err(ControlError::NoState("ending the test", other.byte() as i8)),
        }
        self.control.send_json(results, patience, "taking the results")?;
        let theirs = self.control.json(wire::MOST_SERVER_RESULTS, patience, "sending its results")?;
        // The results are there: what is said now is politeness.
        if let Ok(State::DisplayResults) = self.control.state(self.plan.patience, "showing results") {
            let _ = self.control.send_state(State::IperfDone, Duration::from_secs(1));
        }
        Ok(theirs)
    }

    #[expect(clippy::too_many_arguments, reason = "what a test found, put together in one place")]
    fn outcome(
        self,
        mut running: Running,
        ended_at: Instant,
        ending: Ending,
        latency: Option<LatencyOutcome>,
        cpu: Duration,
        results: Results,
        server_results: Option<Results>,
    ) -> TestOutcome {
        running.streams.iter_mut().filter(|stream| !stream.sends).for_each(|stream| stream.stop_quietly());
        let theirs = server_results.as_ref();
        let streams = running
            .streams
            .iter_mut()
            .map(|stream| outcome_of(stream, running.started_at, running.counting_from, ended_at, theirs));
        let streams = streams.collect();
        let counted = ended_at.since(running.counting_from);
        let server_cpu = theirs.map(|theirs| match &theirs.linerate {
            Some(extra) => Duration::from_nanos((extra.cpu_s.max(0.0) * 1e9) as u64),
            None => Duration::from_nanos((theirs.cpu_util_total.max(0.0) / 100.0 * counted.as_nanos() as f64) as u64),
        });
        TestOutcome {
            client: self.control.local_addr().unwrap_or(self.server),
            server: self.server,
            cookie: self.cookie.text(),
            hello: self.hello,
            direction: self.plan.direction,
            started_at: running.started_at,
            counting_from: running.counting_from,
            ended_at,
            ending,
            streams,
            latency,
            cpu,
            server_cpu,
            results,
            server_results,
        }
    }
}

/// What runs.
struct Running {
    started_at: Instant,
    counting_from: Instant,
    cpu_from: Duration,
    streams: Vec<Stream>,
    local_done: bool,
}

impl Running {
    fn moved(&self, sends: bool) -> Bytes {
        Bytes::new(self.streams.iter().filter(|stream| stream.sends == sends).map(Stream::moved).sum())
    }

    /// Whether a test by bytes has moved all of them, and they have arrived.
    fn is_delivered(&mut self, length: Length, direction: wire::Direction) -> bool {
        let Length::Bytes(bytes) = length else { return false };
        let forward = !direction.has_forward() || {
            self.local_done = self.local_done || self.streams.iter().filter(|stream| stream.sends).all(Stream::is_done);
            self.local_done && self.streams.iter().filter(|stream| stream.sends).all(Stream::is_delivered)
        };
        forward && (!direction.has_reverse() || self.moved(false) >= bytes)
    }

    /// Why the test can't go on; the control connection may still stand.
    fn broken(&self) -> Option<String> {
        self.streams.iter().find_map(|stream| {
            let error = stream.error().map(|error| format!("stream {} broke: {error}", stream.id));
            let closed = !stream.sends && stream.is_done();
            error.or_else(|| closed.then(|| format!("the server closed stream {}", stream.id)))
        })
    }

    /// This end's results in iperf3's terms.
    fn results(&self, ended_at: Instant, cpu: Duration) -> Results {
        let seconds = ended_at.since(self.counting_from).as_secs_f64();
        let percent = |time: Duration| if seconds > 0.0 { 100.0 * time.as_secs_f64() / seconds } else { 0.0 };
        let sends = self.streams.iter().any(|stream| stream.sends);
        let (user, system) = process_cpu_parts();
        let all = (user + system).as_secs_f64().max(1e-9);
        Results {
            cpu_util_total: percent(cpu),
            cpu_util_user: percent(cpu) * user.as_secs_f64() / all,
            cpu_util_system: percent(cpu) * system.as_secs_f64() / all,
            sender_has_retransmits: if sends { 1 } else { -1 },
            congestion_used: self.streams.iter().find_map(|stream| tcp::congestion_control(stream.socket()).ok()),
            streams: self
                .streams
                .iter()
                .map(|stream| StreamResults {
                    id: stream.id,
                    bytes: stream.counted().as_u64(),
                    retransmits: if stream.sends { stream.retransmitted().into() } else { -1 },
                    jitter: 0.0,
                    errors: 0,
                    packets: 0,
                    start_time: 0.0,
                    end_time: seconds,
                })
                .collect(),
            linerate: None,
        }
    }
}

fn outcome_of(
    stream: &mut Stream,
    started_at: Instant,
    counting_from: Instant,
    ended_at: Instant,
    theirs: Option<&Results>,
) -> StreamOutcome {
    let theirs_of = theirs.and_then(|theirs| theirs.streams.iter().find(|other| other.id == stream.id));
    let extra = theirs.and_then(|theirs| theirs.linerate.as_ref());
    let extra = extra.and_then(|extra| extra.streams.iter().find(|other| other.id == stream.id));
    let their_bytes = theirs_of.map(|theirs| Bytes::new(theirs.bytes));
    let seconds = theirs_of.map_or(0.0, |theirs| theirs.end_time - theirs.start_time);
    let address = |result: std::io::Result<socket2::SockAddr>| result.ok().and_then(|address| address.as_socket());
    let own = stream.cc_version.as_ref();
    let counted = ended_at.since(counting_from);
    let at = |micros: u64| started_at + Duration::from_micros(micros);
    StreamOutcome {
        id: stream.id,
        forward: stream.sends,
        local: address(stream.socket().local_addr()),
        remote: address(stream.socket().peer_addr()),
        congestion_control: if stream.sends {
            own.map(|version| version.name.clone())
        } else {
            extra
                .and_then(|extra| extra.congestion_control.clone())
                .or_else(|| theirs.and_then(|theirs| theirs.congestion_used.clone()))
        },
        congestion_control_version: if stream.sends {
            own.map(ToString::to_string)
        } else {
            extra.and_then(|extra| extra.congestion_control_version.clone())
        },
        mss: stream.mss(),
        sent: if stream.sends { Some(stream.counted()) } else { their_bytes },
        received: if stream.sends { their_bytes } else { Some(stream.counted()) },
        received_in: match stream.sends {
            true if seconds > 0.0 && seconds < 1e6 => Duration::from_nanos((seconds * 1e9) as u64),
            _ => counted,
        },
        retransmitted_segments: if stream.sends {
            Some(stream.retransmitted().into())
        } else {
            theirs_of.and_then(|theirs| u64::try_from(theirs.retransmits).ok())
        },
        samples: if stream.sends {
            std::mem::take(&mut stream.samples)
        } else {
            extra.map_or_else(Vec::new, |extra| {
                extra.samples.iter().map(|row| wire::sample_from(row, started_at)).collect()
            })
        },
        received_series: if stream.sends {
            extra.map_or_else(Vec::new, |extra| {
                extra.received.iter().map(|(micros, bytes)| (at(*micros), Bytes::new(*bytes))).collect()
            })
        } else {
            std::mem::take(&mut stream.received)
        },
        // After the results the server closes, which is no error.
        error: if theirs.is_some() { None } else { stream.error() },
    }
}

fn process_cpu() -> Duration {
    let (user, system) = process_cpu_parts();
    user + system
}

fn process_cpu_parts() -> (Duration, Duration) {
    let time = |time: nix::sys::time::TimeVal| Duration::from_micros(time.num_microseconds().unsigned_abs());
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or_else(|_| Default::default(), |usage| (time(usage.user_time()), time(usage.system_time())))
}
