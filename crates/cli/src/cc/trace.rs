//! `linerate cc trace`.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::exit::{Exit, Failure};

/// Arguments of `cc trace`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only sockets of this process. What it opens later is found too, as it changes its state
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Only sockets with this port at either end
    #[arg(long)]
    port: Option<u16>,
    /// Only sockets to this address
    #[arg(long, value_name = "ADDRESS")]
    dst: Option<IpAddr>,
    /// The name that BBRv3 was loaded by
    #[arg(long, default_value = ::bbr3::NAME)]
    name: String,
    /// Also write every ACK, with all the program saw and decided, to this file (about 0.5 kB each)
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// End after this time instead of at Ctrl-C, such as 30s
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<units::Duration>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

fn parse_time(text: &str) -> Result<units::Duration, String> {
    text.parse::<units::Duration>().map_err(|error| error.to_string())
}

#[cfg(not(feature = "bpf"))]
pub fn run(_: &Arguments) -> Result<Exit, Failure> {
    Err(Failure::failed(
        "this linerate was built without its BPF program (cargo feature bpf), so there is nothing to trace",
    ))
}

#[cfg(feature = "bpf")]
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    live::run(arguments)
}

#[cfg(feature = "bpf")]
mod live {
    use std::collections::{HashMap, HashSet};
    use std::fs::File;
    use std::io::BufWriter;
    use std::path::Path;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant, SystemTime};

    use ::bbr3::recording::Writer;
    use ::bbr3::{Event, Filter, Flow, Running, RunningError, TraceError, Tracer, Transition};
    use serde_json::json;

    use super::Arguments;
    use crate::exit::{Exit, Failure};
    use crate::{output, stop};

    /// How often to look at Ctrl-C and to tell the program that somebody reads.
    const TICK: Duration = Duration::from_millis(100);

    pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
        let mut filter = Filter { port: arguments.port, remote: arguments.dst, netns: None };
        if let Some(pid) = arguments.pid {
            filter.netns = Some(namespace_of(pid)?);
        }
        if let Some(file) = &arguments.record {
            output::check_writable(file)?;
        }
        let stop = stop::on_signal()?;
        let running = Running::find(&arguments.name).map_err(|error| failure(TraceError::from(error)))?;
        let mut tracer = Tracer::start(running, filter, arguments.record.is_some()).map_err(failure)?;
        let mut recorder = arguments.record.as_deref().map(|file| Recorder::create(file, &tracer)).transpose()?;
        let mut view = View::new(arguments);
        view.begin()?;
        let end = arguments.duration.map(|time| Instant::now() + Duration::from_nanos(time.as_nanos()));
        let mut problem = None;
        while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) && problem.is_none() {
            let polled = tracer.poll(TICK, |bytes| {
                if problem.is_none() {
                    problem = view.show(bytes, recorder.as_mut()).err();
                }
            });
            polled.map_err(failure)?;
        }
        let dropped = tracer.dropped().map_err(failure)?;
        drop(tracer);
        if let Some(problem) = problem {
            return Err(problem);
        }
        let recorded = recorder.map(Recorder::finish).transpose()?;
        view.end(dropped, recorded)?;
        Ok(if dropped > 0 { Exit::Found } else { Exit::Done })
    }

    fn failure(error: TraceError) -> Failure {
        match &error {
            TraceError::Running(RunningError::NotLoaded(name)) => Failure::failed(format_args!(
                "{error}; `linerate cc list` shows what this kernel has, `linerate cc load --name {name}` loads it"
            )),
            _ => Failure::failed(error),
        }
    }

    /// The inode of a process's network namespace.
    fn namespace_of(pid: u32) -> Result<u32, Failure> {
        use std::os::unix::fs::MetadataExt;
        let file = format!("/proc/{pid}/ns/net");
        let about = std::fs::metadata(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::usage(format_args!("there is no process {pid}")),
            _ => Failure::failed(format_args!("can't look at {file}: {error}")),
        })?;
        Ok(about.ino() as u32)
    }

    /// A recording on its way to a file.
    struct Recorder {
        writer: Writer<BufWriter<File>>,
        events: u64,
    }

    impl Recorder {
        fn create(file: &Path, tracer: &Tracer) -> Result<Self, Failure> {
            let failed = |error| Failure::failed(format_args!("can't write {}: {error}", file.display()));
            let header = tracer.header().map_err(failure)?;
            let to = File::create(file).map_err(failed)?;
            let writer = Writer::new(BufWriter::with_capacity(1 << 20, to), &header).map_err(failed)?;
            Ok(Self { writer, events: 0 })
        }

        fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
            self.events += 1;
            self.writer.add(bytes).map_err(|error| Failure::failed(format_args!("can't write the recording: {error}")))
        }

        fn finish(self) -> Result<u64, Failure> {
            self.writer
                .finish()
                .map_err(|error| Failure::failed(format_args!("can't write the recording: {error}")))?;
            Ok(self.events)
        }
    }

    /// What is printed.
    struct View<'a> {
        arguments: &'a Arguments,
        /// Sockets that were introduced, and whether they are of the process asked for, as far as that is known.
        flows: HashMap<u64, (Flow, Option<bool>)>,
        began: Option<units::Instant>,
        transitions: u64,
        unknown: u64,
    }

    impl<'a> View<'a> {
        fn new(arguments: &'a Arguments) -> Self {
            Self { arguments, flows: HashMap::new(), began: None, transitions: 0, unknown: 0 }
        }

        fn begin(&self) -> Result<(), Failure> {
            if !self.arguments.json {
                eprintln!("Tracing sockets on {}. Ctrl-C ends it.", output::plain(&self.arguments.name));
                return Ok(());
            }
            line(&json!({
                "schema": "linerate.cc-trace/1",
                "type": "begin",
                "linerate_version": env!("CARGO_PKG_VERSION"),
                "kernel": std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
                "command_line": std::env::args().collect::<Vec<_>>(),
                "started_at": humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
                "name": self.arguments.name,
            }))
        }

        fn show(&mut self, bytes: &[u8], recorder: Option<&mut Recorder>) -> Result<(), Failure> {
            let Ok(event) = Event::from_bytes(bytes) else {
                self.unknown += 1;
                return Ok(());
            };
            if let Event::Flow(flow) = &event {
                self.flows.insert(flow.number, (*flow, None));
            }
            if !self.is_wanted(event.flow()) {
                return Ok(());
            }
            if let Some(recorder) = recorder {
                recorder.add(bytes)?;
            }
            match event {
                Event::Transition(transition) => self.transition(&transition),
                Event::Flow(flow) if self.arguments.json => line(&flow_json(&flow)),
                _ => Ok(()),
            }
        }

        /// Whether a socket is of the process asked for: by the inodes of its descriptors.
        fn is_wanted(&mut self, number: u64) -> bool {
            let Some(pid) = self.arguments.pid else { return true };
            let Some((flow, known)) = self.flows.get_mut(&number) else { return false };
            *known.get_or_insert_with(|| flow.inode.is_some_and(|inode| sockets_of(pid).contains(&inode)))
        }

        fn transition(&mut self, transition: &Transition) -> Result<(), Failure> {
            self.transitions += 1;
            let began = *self.began.get_or_insert(transition.at);
            let seconds = transition.at.since(began).as_secs_f64();
            let flow = self.flows.get(&transition.flow).map(|(flow, _)| flow);
            if self.arguments.json {
                line(&transition_json(transition, seconds))?;
            } else {
                output::print(&format!("{}\n", sentence(transition, flow, seconds)))?;
            }
            if transition.to.is_none() {
                self.flows.remove(&transition.flow);
            }
            Ok(())
        }

        fn end(&self, dropped: u64, recorded: Option<u64>) -> Result<(), Failure> {
            if self.arguments.json {
                return line(&json!({
                    "type": "end", "transitions": self.transitions, "dropped_events": dropped, "recorded_events": recorded,
                    "unknown_events": self.unknown,
                }));
            }
            let mut text = format!("{} transitions, {dropped} events dropped", self.transitions);
            if let Some(events) = recorded {
                text += &format!(", {events} recorded");
            }
            if self.unknown > 0 {
                text += &format!(", {} not understood: another version of linerate loaded this program", self.unknown);
            }
            eprintln!("{text}");
            Ok(())
        }
    }

    /// Inodes of the sockets that a process holds.
    fn sockets_of(pid: u32) -> HashSet<u64> {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return HashSet::new() };
        let inode = |entry: std::io::Result<std::fs::DirEntry>| {
            let target = std::fs::read_link(entry.ok()?.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        };
        entries.filter_map(inode).collect()
    }

    fn line(value: &serde_json::Value) -> Result<(), Failure> {
        output::print(&format!("{value}\n"))
    }

    fn end(address: &(std::net::IpAddr, u16)) -> String {
        std::net::SocketAddr::new(address.0, address.1).to_string()
    }

    /// `  1.234 s  10.0.0.1:5001 > 10.0.0.2:443  STARTUP > DRAIN  bw 47.8 Mbit/s …`
    fn sentence(transition: &Transition, flow: Option<&Flow>, seconds: f64) -> String {
        let who = match flow {
            Some(flow) => format!("{} > {}", end(&flow.local), end(&flow.remote)),
            None => format!("socket {}", transition.flow),
        };
        let mode = |mode: ::bbr3::Mode| mode.name().trim_start_matches("PROBE_BW_");
        let change = format!("{} > {}", mode(transition.from), transition.to.map_or("closed", mode));
        let bound = |packets: Option<u32>| packets.map_or_else(|| "-".to_owned(), |packets| packets.to_string());
        let rtt = transition.min_rtt.map_or_else(|| "-".to_owned(), |rtt| rtt.to_string());
        let bw_lo = transition.bandwidth_lo.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        format!(
            "{seconds:9.3} s  {who}  {change:19}  bw {} lo {bw_lo}  min_rtt {rtt}  in flight {} of {}  hi {} lo {}  lost {}",
            transition.max_bandwidth,
            transition.in_flight,
            transition.cwnd,
            bound(transition.inflight_hi),
            bound(transition.inflight_lo),
            transition.lost,
        )
    }

    fn flow_json(flow: &Flow) -> serde_json::Value {
        json!({
            "type": "socket",
            "socket": flow.number,
            "monotonic_ns": flow.at.as_nanos(),
            "cookie": flow.cookie,
            "inode": flow.inode,
            "network_namespace": flow.netns,
            "local": end(&flow.local),
            "remote": end(&flow.remote),
        })
    }

    fn transition_json(transition: &Transition, seconds: f64) -> serde_json::Value {
        json!({
            "type": "transition",
            "socket": transition.flow,
            "monotonic_ns": transition.at.as_nanos(),
            "elapsed_s": seconds,
            "from": transition.from.name(),
            "to": transition.to.map(::bbr3::Mode::name),
            "bandwidth_bps": transition.bandwidth.as_bps(),
            "max_bandwidth_bps": transition.max_bandwidth.as_bps(),
            "bandwidth_lo_bps": transition.bandwidth_lo.map(units::Rate::as_bps),
            "pacing_rate_bps": transition.pacing_rate.as_bps(),
            "min_rtt_us": transition.min_rtt.map(units::Duration::as_micros),
            "in_flight_packets": transition.in_flight,
            "cwnd_packets": transition.cwnd,
            "inflight_hi_packets": transition.inflight_hi,
            "inflight_lo_packets": transition.inflight_lo,
            "delivered_packets": transition.delivered,
            "lost_packets": transition.lost,
            "ca_state": transition.ca_state,
        })
    }
}
