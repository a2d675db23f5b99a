//! `linerate lab web`: a page through the path, in a real browser.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lab::session::{DataFrom, Session, Setup};
use lab::world::SERVER;
use report::{LabReport, RunReport};
use scenario::{Cell, Scenario};
use units::Duration;
use web::{PageLoad, Progress, Protocol, WebPlan};

use super::arguments::{Outputs, Vary, quantity};
use super::{experiment, fill};
use crate::exit::{Exit, Failure};
use crate::stop;

/// Arguments of `lab web`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A built-in scenario, or a scenario file: the path, and the ends' variants
    #[arg(default_value = "cellular-4g")]
    scenario: String,
    #[command(flatten)]
    vary: Vary,
    /// What the browser speaks: HTTP/2 over TLS, or HTTP/1.1 without it
    #[arg(long, value_enum, default_value_t)]
    protocol: ProtocolArgument,
    /// How long one load may take
    #[arg(long, value_name = "T", default_value = "120s", value_parser = quantity::<Duration>)]
    timeout: Duration,
    #[command(flatten)]
    outputs: Outputs,
}

#[derive(clap::ValueEnum, Debug, Clone, Copy, Default)]
enum ProtocolArgument {
    /// HTTP/2 over TLS
    #[default]
    H2,
    /// HTTP/1.1
    H1,
}

/// On an idle machine of two cores a browser paints the page in 0.2 to 0.5 s without a path.
const MOST_OWN_SHARE: Duration = Duration::from_millis(700);

/// Loads the page once per variant and repeat.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let scenario = super::load(&arguments.scenario, &arguments.vary)?;
    let cells = scenario.cells().map_err(Failure::usage)?;
    if arguments.outputs.pcap.is_some() {
        return Err(Failure::usage("lab web has no --pcap: capture with `lab shell` and tcpdump"));
    }
    if arguments.timeout == Duration::ZERO {
        return Err(Failure::usage("--timeout: a load needs some time; leave it out for 120 s"));
    }
    experiment::check_outputs(&arguments.outputs)?;
    // Without a browser nothing needs to be set up.
    web::browser::Chromium::find().map_err(Failure::failed)?;
    let _bbr3 = super::bbr3::load_for(std::slice::from_ref(&scenario))?;
    super::prerequisites()?;
    let stop = stop::on_signal()?;
    let mut report = experiment::new_report();
    report.scenarios.push(fill::scenario_report(&scenario, "model"));
    let begun = Instant::now();
    for (index, cell) in cells.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        eprintln!(
            "load {} of {}: {}, loss {}, queue {}",
            index + 1,
            cells.len(),
            cell.profile.name,
            cell.loss,
            cell.queue
        );
        let started_after = begun.elapsed().as_secs_f64();
        match load(arguments, &scenario, cell, &stop, started_after) {
            Ok(Some(run)) => report.results.push(run),
            Ok(None) => break,
            Err(failure) if report.results.is_empty() => return Err(failure),
            Err(failure) => {
                report.partial_reason = Some(format!("load {} of {} failed: {failure}", index + 1, cells.len()));
                break;
            }
        }
    }
    mark_partial(&mut report, cells.len());
    experiment::finish(&mut report, &arguments.outputs)?;
    let found = report.partial || report.results.iter().any(|run| !run.valid);
    Ok(if found { Exit::Found } else { Exit::Done })
}

fn mark_partial(report: &mut LabReport, planned: usize) {
    if report.results.len() < planned {
        report.partial = true;
        let stopped = || format!("stopped by a signal after {} of {planned} loads", report.results.len());
        report.partial_reason = report.partial_reason.take().or_else(|| Some(stopped()));
    }
}

/// One load; `None` where it was stopped.
fn load(
    arguments: &Arguments,
    scenario: &Scenario,
    cell: &Cell,
    stop: &AtomicBool,
    started_after_s: f64,
) -> Result<Option<RunReport>, Failure> {
    let mut sysctls = scenario.sysctls.clone();
    sysctls.extend(cell.profile.sysctls.iter().cloned());
    // A page comes down: the path's data direction starts at the server.
    let session = Session::start(Setup {
        forward: &cell.forward,
        back: &cell.back,
        data_from: DataFrom::Server,
        seed: cell.seed,
        mtu: scenario.path.mtu,
        sysctls: &sysctls,
        flows: 0,
        probe: false,
        log_packets: false,
        capture: None,
    })
    .map_err(Failure::failed)?;
    session.world.set_default_control(&cell.profile.congestion_control).map_err(Failure::failed)?;
    let protocol = match arguments.protocol {
        ProtocolArgument::H1 => Protocol::Http1,
        ProtocolArgument::H2 => Protocol::Http2,
    };
    let stopped = || stop.load(Ordering::Relaxed);
    let plan = WebPlan {
        near: &session.world.client,
        far: &session.world.server,
        server_addr: SERVER.into(),
        port: 443,
        protocol,
        congestion_control: cell.profile.congestion_control.clone(),
        loads: 1,
        timeout: arguments.timeout,
        stop: &stopped,
    };
    let mut own_share = None;
    let loads = web::measure(&plan, |progress| match progress {
        Progress::WarmingUp => eprintln!("  loading it twice without the path, for what the browser itself needs"),
        Progress::Baseline(load) => own_share = Some(load.fcp),
        _ => {}
    });
    let (world, emulator) = session.finish();
    let Some(load) = loads.map_err(Failure::failed)?.into_iter().next() else { return Ok(None) };
    let device_drops = world.device_drops().map_err(Failure::failed)?;
    let mut invalid = lab::run::late_or_lossy(&emulator, device_drops, cell.rtt);
    if let Some(own) = own_share.filter(|own| *own > MOST_OWN_SHARE) {
        invalid.push(format!("the machine is too busy for a browser: the page needs {own} without the path"));
    }
    eprintln!(
        "  First Contentful Paint {} (of it {} without the path), load {}, {} in {} requests by {}",
        load.fcp,
        own_share.unwrap_or_default(),
        load.load,
        load.bytes,
        load.requests,
        load.protocol
    );
    Ok(Some(run_report(scenario, cell, &load, &emulator, device_drops, &invalid, started_after_s)))
}

fn run_report(
    scenario: &Scenario,
    cell: &Cell,
    load: &PageLoad,
    emulator: &lab::emulator::EmulatorOutcome,
    device_drops: u64,
    invalid: &[String],
    started_after_s: f64,
) -> RunReport {
    RunReport {
        congestion_control_version: fill::version(&load.congestion_control),
        started_after_s,
        duration_s: load.load.as_secs_f64(),
        valid: invalid.is_empty(),
        invalid_reason: (!invalid.is_empty()).then(|| invalid.join("; ")),
        first_contentful_paint_ms: Some(load.fcp.as_millis_f64()),
        page_load_ms: Some(load.load.as_millis_f64()),
        retransmitted_segments: Some(load.retransmitted_segments),
        drops: fill::drop_counts(&emulator.down.counters),
        marks: emulator.down.counters.marked,
        emulator: Some(fill::emulator_report(emulator, device_drops)),
        ..fill::empty_run(scenario, cell)
    }
}
