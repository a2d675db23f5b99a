//! Goodput and processor time of one bulk flow over `lo`, beside iperf3 on the same machine in turn:
//! `cargo run --release -p linerate-measure --example loopback -- [SECONDS] [REPEATS] [FLOWS]`.
//!
//! Each repeat runs in a namespace of its own; the order alternates, so that other load on the machine meets both alike.

use std::process::{Command, Stdio};
use std::thread::sleep;

use host::clock::Clock;
use host::netns::NetNs;
use linerate_measure::stats::{median, percentile};
use linerate_measure::traffic::{End, FlowKind, FlowPlan, StopFlag, TrafficPlan, run};
use nix::sys::resource::{UsageWho, getrusage};
use units::{Duration, Rate};

type Failure = Box<dyn std::error::Error>;

/// Mbit/s and seconds of processor time per gigabyte.
type Figures = (f64, f64);

fn main() -> Result<(), Failure> {
    host::userns::enter_if_needed()?;
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let seconds = arguments.next().transpose()?.unwrap_or(5);
    let repeats = arguments.next().transpose()?.unwrap_or(7);
    let flows = u16::try_from(arguments.next().transpose()?.unwrap_or(1))?;
    let mut ours = Vec::new();
    let mut iperf3 = Vec::new();
    for repeat in 0..repeats {
        let namespace = NetNs::create()?;
        if repeat % 2 == 0 {
            ours.push(run_ours(&namespace, seconds, flows)?);
            iperf3.push(run_iperf3(&namespace, seconds, flows)?);
        } else {
            iperf3.push(run_iperf3(&namespace, seconds, flows)?);
            ours.push(run_ours(&namespace, seconds, flows)?);
        }
    }
    println!("{flows} flow(s) over lo, {seconds} s, {repeats} repeats each, in turn");
    print("linerate", &ours);
    print("iperf3", &iperf3);
    Ok(())
}

fn print(name: &str, figures: &[Figures]) {
    let column = |pick: fn(&Figures) -> f64| figures.iter().map(pick).collect::<Vec<_>>();
    let spread = |values: &[f64]| {
        (
            median(values).unwrap_or(0.0),
            percentile(values, 0.0).unwrap_or(0.0),
            percentile(values, 100.0).unwrap_or(0.0),
        )
    };
    let (goodput, low, high) = spread(&column(|f| f.0));
    let (cpu, cpu_low, cpu_high) = spread(&column(|f| f.1));
    println!(
        "{name:9} {:6.2} Gbit/s ({:.2} to {:.2}), {cpu:.3} s of processor per GB ({cpu_low:.3} to {cpu_high:.3})",
        goodput / 1e3,
        low / 1e3,
        high / 1e3
    );
}

fn processor_seconds(who: UsageWho) -> Result<f64, Failure> {
    let usage = getrusage(who)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn run_ours(namespace: &NetNs, seconds: u64, flows: u16) -> Result<Figures, Failure> {
    let flow = |number| FlowPlan {
        label: "bulk".into(),
        kind: FlowKind::Bulk { bytes: None },
        congestion_control: "cubic".into(),
        start: Duration::ZERO,
        duration: None,
        server_port: 10_000 + number,
        data_from: End::Client,
    };
    let plan = TrafficPlan {
        client: namespace.clone(),
        server: namespace.clone(),
        client_addr: "127.0.0.1".parse()?,
        server_addr: "127.0.0.1".parse()?,
        flows: (0..flows).map(flow).collect(),
        duration: Duration::from_secs(seconds),
        sample_every: Duration::from_millis(100),
        probe: None,
        clock: Clock::start(),
        stop: StopFlag::new(),
    };
    let before = processor_seconds(UsageWho::RUSAGE_SELF)?;
    let outcome = run(&plan, &mut |_| {})?;
    let used = processor_seconds(UsageWho::RUSAGE_SELF)? - before;
    if let Some(error) = outcome.flows.iter().find_map(|flow| flow.error.clone()) {
        return Err(error.into());
    }
    let received: u64 = outcome.flows.iter().map(|flow| flow.received.as_u64()).sum();
    let rate = Rate::from_transfer(units::Bytes::new(received), outcome.ended_at.since(outcome.started_at));
    Ok((rate.as_mbps_f64(), used / (received as f64 / 1e9)))
}

fn run_iperf3(namespace: &NetNs, seconds: u64, flows: u16) -> Result<Figures, Failure> {
    let before = processor_seconds(UsageWho::RUSAGE_CHILDREN)?;
    let iperf3 = |arguments: &[&str]| -> Command {
        let mut command = namespace.command("iperf3");
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    };
    let mut server = iperf3(&["-s", "-1"]).spawn()?;
    let (seconds_text, flows_text) = (seconds.to_string(), flows.to_string());
    let client = ["-c", "127.0.0.1", "-J", "-C", "cubic", "-t", &seconds_text, "-P", &flows_text];
    let report = loop {
        let output = iperf3(&client).output()?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        match report["error"].as_str() {
            None => break report,
            // The server does not say when it listens; the client is simply asked again. Version 3.12 ends with 0 all the same.
            Some(refused) if refused.contains("refused") => sleep(std::time::Duration::from_millis(50)),
            Some(other) => {
                server.kill()?;
                return Err(other.into());
            }
        }
    };
    server.wait()?;
    let used = processor_seconds(UsageWho::RUSAGE_CHILDREN)? - before;
    let received = &report["end"]["sum_received"];
    let number = |key: &str| received[key].as_f64().ok_or_else(|| format!("iperf3 reports no {key}: {report}"));
    Ok((number("bits_per_second")? / 1e6, used / (number("bytes")? / 1e9)))
}
