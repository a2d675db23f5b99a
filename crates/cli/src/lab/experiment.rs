//! Runs scenarios cell by cell, shows how far it is, and writes the report. Ctrl-C keeps what was measured.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use host::sysctl::SysctlError;
use host::tcp::SetCongestionControlError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::run::{Options, PathSeen, RunError, run_cell};
use lab::session::SessionError;
use lab::world::WorldError;
use measure::stats;
use measure::traffic::{Progress, StopFlag};
use report::{Interval, Kernel, LabReport};
use scenario::{Cell, Scenario};
use units::Rate;

use super::arguments::{EmulatorKind, Outputs};
use super::fill;
use crate::exit::{Exit, Failure};
use crate::{output, stop};

/// Bootstrap resamples and their seed: the same results give the same intervals.
const RESAMPLES_SEED: u64 = 1;

/// Runs every cell of `scenarios`, prints the table and writes the files asked for. Where the machine allows no namespaces, the simulator
/// does, and says so.
pub fn run(scenarios: &[Scenario], outputs: &Outputs, emulator: EmulatorKind) -> Result<Exit, Failure> {
    check_outputs(outputs)?;
    let stop = stop::on_signal()?;
    let (mut report, failure) = match measure(scenarios, outputs, emulator, &stop) {
        Ok(measured) => measured,
        Err(Unmeasured::NoNamespaces(why)) if emulator == EmulatorKind::Model && outputs.pcap.is_none() => {
            return simulate_instead(scenarios, outputs, &why);
        }
        Err(other) => return Err(other.into()),
    };
    finish(&mut report, outputs)?;
    match failure {
        Some(error) => Err(Failure::failed(error)),
        None if report.partial || report.results.iter().any(|run| !run.valid) => Ok(Exit::Found),
        None => Ok(Exit::Done),
    }
}

/// Why nothing could be measured.
pub enum Unmeasured {
    /// The machine gives no namespaces, or no devices in them; and why.
    NoNamespaces(String),
    /// Anything else.
    Other(Failure),
}

impl From<Failure> for Unmeasured {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl From<Unmeasured> for Failure {
    fn from(unmeasured: Unmeasured) -> Self {
        match unmeasured {
            Unmeasured::NoNamespaces(why) => Self::failed(why),
            Unmeasured::Other(failure) => failure,
        }
    }
}

/// The same scenarios in virtual time, labelled so.
fn simulate_instead(scenarios: &[Scenario], outputs: &Outputs, why: &str) -> Result<Exit, Failure> {
    eprintln!("linerate: no experiment with this kernel is possible: {}", output::plain(why));
    eprintln!("Simulating the scenarios instead (`linerate sim`): no kernel's TCP takes part.");
    let warning = format!("simulated, because no experiment with this kernel is possible: {why}");
    crate::sim::run_scenarios(scenarios, outputs, None, vec![warning])
}

/// Runs every cell of `scenarios` on this kernel. Returns the report, not summarised yet, and the error that ended it early.
///
/// # Errors
/// [`Unmeasured`], where there is no result at all.
pub fn measure(
    scenarios: &[Scenario],
    outputs: &Outputs,
    emulator: EmulatorKind,
    stop: &Arc<AtomicBool>,
) -> Result<(LabReport, Option<RunError>), Unmeasured> {
    let memory = units::Bytes::new(lab::world::memory_available().map_err(Failure::failed)?.as_u64() / 2);
    let mut plans = Vec::new();
    for scenario in scenarios {
        plans.push((scenario, scenario.cells_within(memory).map_err(Failure::usage)?));
    }
    // In the first namespace: another one's root may not load programs.
    let bbr3 = super::bbr3::load_for(scenarios);
    super::prerequisites().map_err(|failure| Unmeasured::NoNamespaces(failure.to_string()))?;
    let _bbr3 = bbr3?;
    check_controls(scenarios)?;
    check_sysctls(scenarios)?;
    let runs: usize = plans.iter().map(|(_, cells)| cells.len()).sum();
    let mut report = new_report();
    report.scenarios = scenarios.iter().map(|scenario| fill::scenario_report(scenario, emulator.name())).collect();
    let bar = Bar::new(&plans);
    let begun = Instant::now();
    let mut done = 0;
    let mut failure = None;
    'all: for (scenario, cells) in &plans {
        let flows = scenario.expanded_flows();
        for cell in cells {
            if stop.load(Ordering::Relaxed) {
                break 'all;
            }
            let pcap = outputs.pcap.as_deref().map(|file| numbered(file, done, runs));
            let options = Options {
                pcap: pcap.as_deref(),
                log_packets: false,
                carrier: emulator.into(),
                stop: StopFlag::from(stop.clone()),
            };
            let started_after = begun.elapsed();
            bar.cell(done, runs, scenario, cell);
            match run_cell(scenario, cell, &options, &mut |progress| bar.progress(progress)) {
                Ok(outcome) => {
                    warn_once(&mut report, &outcome);
                    report.results.push(fill::run_report(scenario, cell, &flows, &outcome, started_after));
                }
                Err(error) => {
                    failure = Some(error);
                    break 'all;
                }
            }
            done += 1;
            bar.finished(scenario);
        }
    }
    bar.clear();
    if report.results.is_empty()
        && let Some(error) = failure
    {
        return Err(match &error {
            RunError::NetNs(_) | RunError::Session(SessionError::World(WorldError::NetNs(_) | WorldError::Tun(_))) => {
                Unmeasured::NoNamespaces(error.to_string())
            }
            _ => Unmeasured::Other(Failure::failed(error)),
        });
    }
    if done < runs || report.results.iter().any(|run| run.invalid_reason.as_deref() == Some(report::STOPPED)) {
        report.partial = true;
        report.partial_reason = Some(match &failure {
            Some(error) => format!("run {} of {runs} failed: {error}", done + 1),
            None => format!("stopped by a signal in run {} of {runs}", done.max(1)),
        });
    }
    Ok((report, failure))
}

/// Checks every file before anything is measured.
pub fn check_outputs(outputs: &Outputs) -> Result<(), Failure> {
    let files: Vec<_> = [&outputs.html, &outputs.json, &outputs.pcap].into_iter().flatten().collect();
    for (index, file) in files.iter().enumerate() {
        if files[..index].contains(file) {
            let name = file.display();
            return Err(Failure::usage(format_args!("{name} is given for two outputs: one would overwrite the other")));
        }
    }
    [&outputs.html, &outputs.json, &outputs.pcap]
        .into_iter()
        .flatten()
        .try_for_each(|file| output::check_writable(file))
}

/// Refuses a congestion control that the kernel does not have, before anything is measured.
fn check_controls(scenarios: &[Scenario]) -> Result<(), Failure> {
    for scenario in scenarios {
        let profiles = scenario.profiles.iter().map(|profile| &profile.congestion_control);
        for name in profiles.chain(scenario.flows.iter().filter_map(|flow| flow.congestion_control.as_ref())) {
            if let Err(error @ SetCongestionControlError::Unknown { .. }) = host::cc::probe_version(name) {
                return Err(Failure::usage(format_args!("{}: {error}", scenario.name)));
            }
        }
    }
    Ok(())
}

/// Refuses a sysctl that this kernel does not have: left out silently, it would be an experiment without the setting.
fn check_sysctls(scenarios: &[Scenario]) -> Result<(), Failure> {
    for scenario in scenarios {
        let own = scenario.profiles.iter().flat_map(|profile| &profile.sysctls);
        for (key, _) in scenario.sysctls.iter().chain(own) {
            if let Err(error @ (SysctlError::Missing { .. } | SysctlError::BadKey { .. })) = host::sysctl::read(key) {
                return Err(Failure::usage(format_args!("{}: {error}", scenario.name)));
            }
        }
    }
    Ok(())
}

/// A report of this machine, kernel, command and time, without results.
pub fn new_report() -> LabReport {
    let started_at = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    LabReport::new(env!("CARGO_PKG_VERSION"), kernel(), std::env::args().collect(), &started_at)
}

/// One line per cell, with the intervals that every report has.
pub fn summarise(report: &mut LabReport) {
    report.summarise(&|values: &[f64]| interval(values));
}

/// Summarises the report, writes the files asked for and prints the table.
pub fn finish(report: &mut LabReport, outputs: &Outputs) -> Result<(), Failure> {
    summarise(report);
    let to_stdout = [&outputs.html, &outputs.json].into_iter().flatten().any(|file| file == Path::new("-"));
    let table = report::render_lab_table(report, output::width(), output::colour() && !to_stdout);
    let printed = if to_stdout {
        eprint!("{table}");
        Ok(())
    } else {
        output::print(&table)
    };
    if report.results.iter().any(|run| run.invalid_reason.as_ref().is_some_and(|why| why.contains("was late"))) {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or("?").to_owned();
        eprintln!(
            "A late emulator means a busy machine (load average now {load}, {} CPUs): stop what else runs, or lower the path's rate.",
            report.kernel.cpus
        );
    }
    // One file that can't be written costs neither the table nor the other.
    let files = [(&outputs.json, report.to_json()), (&outputs.html, report::render_html(report))];
    let mut result = printed;
    for (file, text) in files.iter().filter_map(|(file, text)| Some((file.as_ref()?, text))) {
        match output::write(file, text) {
            Ok(()) if file == Path::new("-") => {}
            Ok(()) => eprintln!("Wrote {}", file.display()),
            Err(failure) => result = result.and(Err(failure)),
        }
    }
    result
}

/// The median with its 95 % bootstrap interval; with fewer than three values, with their range.
fn interval(values: &[f64]) -> Interval {
    let range = report::median_and_range(values);
    match stats::median_interval(values, RESAMPLES_SEED) {
        Some(stats::Interval { low, high }) => Interval { low, high, ..range },
        None => range,
    }
}

/// Says once what held for all runs.
fn warn_once(report: &mut LabReport, outcome: &lab::run::CellOutcome) {
    let mut add = |warning: String| {
        if !report.warnings.contains(&warning) {
            report.warnings.push(warning);
        }
    };
    if !outcome.left_alone.is_empty() {
        let keys: Vec<&str> = outcome.left_alone.iter().map(|left| left.key.as_str()).collect();
        add(format!(
            "left alone, because they belong to the whole host and an experiment changes nothing outside itself: {}",
            keys.join(", ")
        ));
    }
    if let PathSeen::Netem(seen) = &outcome.path {
        seen.notes.iter().cloned().for_each(&mut add);
        add("netem counts random loss and a full queue as one number, and does not say how late it was".to_owned());
    }
    if outcome.path.model().is_some_and(|seen| !seen.realtime) {
        add("the emulator ran without real-time priority (root has it): expect more runs marked invalid on a busy machine".to_owned());
    }
    match &outcome.captured {
        Some(Ok((_, left_out @ 1..))) => {
            add(format!("{left_out} packets are missing in the capture: the disk was slower than the path"));
        }
        Some(Err(why)) => add(format!("the capture is not whole: {why}")),
        _ => {}
    }
}

/// `trace.pcapng` for a single run, `trace-03.pcapng` for the third of several.
fn numbered(file: &Path, index: usize, runs: usize) -> PathBuf {
    if runs == 1 {
        return file.to_owned();
    }
    let width = runs.to_string().len();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = match file.extension() {
        Some(extension) => format!("{stem}-{:0width$}.{}", index + 1, extension.to_string_lossy()),
        None => format!("{stem}-{:0width$}", index + 1),
    };
    file.with_file_name(name)
}

fn kernel() -> Kernel {
    let uname = nix::sys::utsname::uname().ok();
    let text = |f: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
        uname.as_ref().map_or_else(String::new, |u| f(u).to_string_lossy().into_owned())
    };
    Kernel {
        release: text(|u| u.release()),
        architecture: text(|u| u.machine()),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: lab::world::memory_total().ok().map(units::Bytes::as_u64),
        btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        available_congestion_controls: host::cc::available().unwrap_or_default(),
    }
}

/// What stands on the terminal meanwhile: one line that moves, or one line per run where it is no terminal.
struct Bar {
    bar: ProgressBar,
    terminal: bool,
    /// Milliseconds of the runs before this one.
    before: std::cell::Cell<u64>,
}

impl Bar {
    fn new(plans: &[(&Scenario, Vec<Cell>)]) -> Self {
        let total: u64 = plans.iter().map(|(s, cells)| s.run.duration.as_millis() * cells.len() as u64).sum();
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let style =
            ProgressStyle::with_template("{wide_bar:.dim} {msg} (about {eta} left)").expect("a constant template");
        bar.set_style(style);
        Self { bar, terminal, before: std::cell::Cell::new(0) }
    }

    fn cell(&self, done: usize, runs: usize, scenario: &Scenario, cell: &Cell) {
        let text = format!(
            "run {} of {runs}: {}, {}, loss {}, queue {}",
            done + 1,
            scenario.name,
            cell.profile.name,
            cell.loss,
            cell.queue
        );
        let text = output::plain(&text);
        if !self.terminal {
            eprintln!("{text}");
        }
        self.bar.set_prefix(text);
        self.bar.set_message(self.bar.prefix());
    }

    fn progress(&self, progress: Progress) {
        let rate = Rate::from_transfer(progress.received, progress.elapsed);
        self.bar.set_message(format!("{}: {rate}", self.bar.prefix()));
        self.bar.set_position(self.before.get() + progress.elapsed.min(progress.duration).as_millis());
    }

    fn finished(&self, scenario: &Scenario) {
        self.before.set(self.before.get() + scenario.run.duration.as_millis());
        self.bar.set_position(self.before.get());
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
