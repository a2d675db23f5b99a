//! `linerate serve`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Mutex;

use measure::iperf::server::{Ending, Event, Server, ServerLimits, ServerPlan};
use measure::iperf::wire::{Direction, PORT};
use measure::traffic::StopFlag;
use serde_json::{Map, Value, json};
use units::{Bytes, Duration, Rate};

use crate::exit::{Exit, Failure};
use crate::lab::quantity;
use crate::{bench, document, output, stop};

/// Arguments of `serve`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Address to listen on, several times for several; 0.0.0.0 and :: are all of a kind. Without it: loopback only
    #[arg(long, value_name = "ADDRESS")]
    bind: Vec<IpAddr>,
    /// Port; 0 lets the kernel choose
    #[arg(long, short, default_value_t = PORT)]
    port: u16,
    /// Only clients with the token in this file (linerate's only: iperf3 can't send one)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
    /// Log as JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// What clients may have.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
struct Limits {
    /// Tests at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    clients: u16,
    /// Tests at once from one address
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    clients_per_address: u16,
    /// Clients that wait for a place; others are told that the server is busy
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(0..=1024))]
    queue: u16,
    /// The longest wait for a place
    #[arg(long, value_name = "T", default_value = "30s", value_parser = quantity::<Duration>)]
    queue_time: Duration,
    /// The longest test, warm-up included
    #[arg(long, value_name = "T", default_value = "2min", value_parser = quantity::<Duration>)]
    max_duration: Duration,
    /// The most that one test may move
    #[arg(long, value_name = "SIZE", default_value = "1024GiB", value_parser = quantity::<Bytes>)]
    max_bytes: Bytes,
    /// The highest rate of one test in each direction
    #[arg(long, value_name = "RATE", default_value = "100gbit", value_parser = quantity::<Rate>)]
    max_rate: Rate,
    /// Parallel streams in each direction
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=128))]
    max_streams: u32,
}

/// Serves until a signal.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let stop = stop::on_signal()?;
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let limits = &arguments.limits;
    let mut plan = ServerPlan {
        listen: Vec::new(),
        limits: ServerLimits {
            tests: limits.clients.into(),
            tests_per_address: limits.clients_per_address.into(),
            waiting: limits.queue.into(),
            wait: limits.queue_time,
            duration: limits.max_duration,
            bytes: limits.max_bytes,
            rate: limits.max_rate,
            streams: limits.max_streams,
            ..ServerLimits::default()
        },
        token: arguments.token_file.as_deref().map(bench::read_token).transpose()?,
        linerate_version: env!("CARGO_PKG_VERSION").into(),
        kernel: document::release(),
        stop: StopFlag::from(stop),
    };
    let at = |address: &IpAddr| SocketAddr::new(*address, arguments.port);
    let server = if arguments.bind.is_empty() {
        plan.listen = loopback.iter().map(at).collect();
        // A host without IPv6 still has a loopback; and with port 0 two addresses would get two ports.
        let both = if arguments.port == 0 { None } else { Server::bind(plan.clone()).ok() };
        plan.listen.truncate(1);
        both.map_or_else(|| Server::bind(plan), Ok)
    } else {
        plan.listen = arguments.bind.iter().map(at).collect();
        Server::bind(plan)
    };
    let server = server.map_err(|error| Failure::failed(format_args!("{error}{}", in_use(&error.to_string()))))?;
    let addresses: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
    let log = Log { json: arguments.json, failed: Mutex::new(None) };
    if arguments.json {
        let mut head = document::head("serve");
        head.insert("event".into(), "listening".into());
        head.insert("addresses".into(), json!(addresses));
        head.insert("limits".into(), limits_json(limits));
        head.insert("token".into(), arguments.token_file.is_some().into());
        log.line(head);
    } else {
        let only = if arguments.bind.is_empty() { " (this machine only; --bind lets others in)" } else { "" };
        log.text(&format!("listening on {}{only}", addresses.join(" and ")));
    }
    server.run(&|event| log.event(&event)).map_err(Failure::failed)?;
    match log.failed.into_inner() {
        Ok(Some(failure)) => Err(failure),
        _ => Ok(Exit::Done),
    }
}

fn in_use(message: &str) -> &'static str {
    if message.contains("Address already in use") { ": does another server run? Choose another --port" } else { "" }
}

fn limits_json(limits: &Limits) -> Value {
    json!({
        "clients": limits.clients, "clients_per_address": limits.clients_per_address, "queue": limits.queue,
        "queue_time_s": limits.queue_time.as_secs_f64(), "max_duration_s": limits.max_duration.as_secs_f64(),
        "max_bytes": limits.max_bytes.as_u64(), "max_rate_bps": limits.max_rate.as_bps(), "max_streams": limits.max_streams,
    })
}

struct Log {
    json: bool,
    failed: Mutex<Option<Failure>>,
}

impl Log {
    fn event(&self, event: &Event) {
        if self.json {
            let mut line = Map::new();
            line.insert("at".into(), now().into());
            let (name, fields) = fields(event);
            line.insert("event".into(), name.into());
            if let Value::Object(fields) = fields {
                line.extend(fields);
            }
            self.line(line);
        } else {
            self.text(&words(event));
        }
    }

    fn line(&self, line: Map<String, Value>) {
        self.print(&(Value::Object(line).to_string() + "\n"));
    }

    fn text(&self, text: &str) {
        self.print(&format!("{} {}\n", now(), output::plain(text).replace('\n', " ")));
    }

    /// A log that can't be written is told at the end; tests go on.
    fn print(&self, text: &str) {
        if let Err(failure) = output::print(text)
            && let Ok(mut failed) = self.failed.lock()
        {
            failed.get_or_insert(failure);
        }
    }
}

fn now() -> String {
    humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string()
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Reverse => "reverse",
        Direction::Both => "both",
    }
}

fn ending(ending: &Ending) -> (&'static str, Option<&str>) {
    match ending {
        Ending::Complete => ("complete", None),
        Ending::Client(why) => ("client", Some(why)),
        Ending::Limit(why) => ("limit", Some(why)),
        Ending::Stopped => ("stopped", None),
    }
}

fn fields(event: &Event) -> (&'static str, Value) {
    match event {
        Event::Waiting { peer } => ("waiting", json!({ "peer": peer.to_string() })),
        Event::Busy { peer } => ("busy", json!({ "peer": peer.to_string() })),
        Event::Refused { peer, reason } => ("refused", json!({ "peer": peer.to_string(), "reason": reason })),
        Event::Started { test, peer, wish, client_version } => (
            "started",
            json!({
                "test": test, "peer": peer.to_string(), "direction": direction(wish.direction), "streams": wish.streams,
                "duration_s": wish.time.map(Duration::as_secs_f64), "bytes": wish.bytes.map(Bytes::as_u64),
                "omit_s": wish.omit.as_secs_f64(), "congestion_control": wish.congestion_control, "client": client_version,
            }),
        ),
        Event::Ended { test, peer, ending: how, summary } => {
            let (how, why) = ending(how);
            let streams: Vec<Value> = summary
                .streams
                .iter()
                .map(|stream| {
                    json!({
                        "id": stream.id, "sends": stream.sends, "bytes": stream.bytes.as_u64(),
                        "retransmitted_segments": stream.retransmitted_segments,
                        "congestion_control": stream.congestion_control,
                    })
                })
                .collect();
            (
                "ended",
                json!({
                    "test": test, "peer": peer.to_string(), "ending": how, "reason": why,
                    "duration_s": summary.duration.as_secs_f64(), "received_bytes": summary.received.as_u64(),
                    "sent_bytes": summary.sent.as_u64(), "streams": streams,
                }),
            )
        }
        Event::Dropped { connections, reason } => {
            ("dropped", json!({ "connections": connections, "last_reason": reason }))
        }
    }
}

fn words(event: &Event) -> String {
    match event {
        Event::Waiting { peer } => format!("{peer} waits for a place"),
        Event::Busy { peer } => format!("{peer} found no place"),
        Event::Refused { peer, reason } => format!("{peer} refused: {reason}"),
        Event::Started { test, peer, wish, client_version } => {
            let length = match (wish.time, wish.bytes) {
                (_, Some(bytes)) => bytes.to_string(),
                (Some(time), None) => time.to_string(),
                (None, None) => String::new(),
            };
            let by = client_version.as_deref().unwrap_or("unknown client");
            format!("test {test}: {peer} ({by}): {}, {} stream(s), {length}", direction(wish.direction), wish.streams)
        }
        Event::Ended { test, ending: how, summary, .. } => {
            let rate = |bytes| Rate::from_transfer(bytes, summary.duration);
            let mut moved = Vec::new();
            if summary.streams.iter().any(|stream| !stream.sends) {
                moved.push(format!("received {} at {}", summary.received, rate(summary.received)));
            }
            if summary.streams.iter().any(|stream| stream.sends) {
                moved.push(format!("sent {} at {}", summary.sent, rate(summary.sent)));
            }
            let how = match ending(how) {
                ("complete", _) => String::new(),
                (how, Some(why)) => format!("; ended by {how}: {why}"),
                (how, None) => format!("; {how}"),
            };
            format!("test {test}: {}{how}", moved.join(", "))
        }
        Event::Dropped { connections, reason } => format!("dropped {connections} connection(s); the last one {reason}"),
    }
}
