//! `linerate bench HOST`.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use host::clock::Clock;
use host::tcp::SetCongestionControlError;
use measure::iperf::client::{self, ClientPlan, Ending, Length, TestError};
use measure::iperf::wire::Direction;
use measure::traffic::StopFlag;
use measure::{order, stats};
use report::Interval;
use report::bench::{BenchReport, Settings};
use units::{Bytes, Duration, Rate};

use super::progress::Bar;
use super::resolve::{Family, resolve};
use super::{Test, fill, read_token};
use crate::exit::{Exit, Failure};
use crate::{document, output, stop};

/// Up to so many streams are sampled every 10 ms, more every 100 ms.
const FINELY_SAMPLED: u32 = 4;

/// Runs the tests, prints the table and writes the files asked for.
pub fn run(test: &Test) -> Result<Exit, Failure> {
    let host = test.host.as_deref().unwrap_or_default();
    check_outputs(test)?;
    check_controls(&test.cc)?;
    let stop = stop::on_signal()?;
    let family = match (test.ipv4, test.ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    let family = match test.bind {
        Some(address) if address.is_ipv4() => Family::V4,
        Some(_) => Family::V6,
        None => family,
    };
    let servers = resolve(host, test.port, family)?;
    let seed = test.seed.unwrap_or_else(draw_seed);
    let controls: Vec<Option<String>> =
        if test.cc.is_empty() { vec![None] } else { test.cc.iter().cloned().map(Some).collect() };
    let plan = ClientPlan {
        servers,
        from: test.bind,
        direction: direction(test),
        streams: test.parallel,
        length: test.bytes.map_or(Length::Time(test.time), Length::Bytes),
        omit: test.omit,
        congestion_control: None,
        rate: test.rate,
        sample_every: Duration::from_millis(if test.parallel <= FINELY_SAMPLED { 10 } else { 100 }),
        probe: !test.no_probe,
        token: test.token_file.as_deref().map(read_token).transpose()?,
        patience: test.connect_timeout,
        version: env!("CARGO_PKG_VERSION").into(),
        clock: Clock::start(),
        stop: StopFlag::from(stop.clone()),
    };
    let mut report = new_report(test, seed);
    host.clone_into(&mut report.server.name);
    let runs = order::interleaved(controls.len(), test.repeat, seed);
    let bar = Bar::new();
    let begun = Instant::now();
    let mut failure = None;
    for (done, (kind, repeat)) in runs.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let control = &controls[*kind];
        let plan = ClientPlan { congestion_control: control.clone(), ..plan.clone() };
        bar.run(done, runs.len(), &format!("{host}, {}", control.as_deref().unwrap_or("default congestion control")));
        let started_after = begun.elapsed();
        let started_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        match client::run(&plan, &mut |progress| bar.progress(progress)) {
            Ok(outcome) => {
                let ended = outcome.ending.clone();
                fill::server(&mut report, &outcome);
                let mut run = fill::run(&plan, &outcome, *repeat, started_after);
                run.iperf3 = client::iperf3_json(&plan, &outcome, started_s);
                report.results.push(run);
                if ended != Ending::Complete {
                    report.partial_reason =
                        Some(format!("run {} of {} {}", done + 1, runs.len(), ending_words(&ended)));
                    break;
                }
            }
            Err(TestError::Stopped) => {
                report.partial_reason = Some(format!("stopped by a signal in run {} of {}", done + 1, runs.len()));
                break;
            }
            Err(error) => {
                report.partial_reason = Some(format!("run {} of {}: {error}", done + 1, runs.len()));
                failure = Some(error);
                break;
            }
        }
    }
    bar.clear();
    if report.results.is_empty()
        && let Some(error) = failure
    {
        return Err(failed(host, &error));
    }
    report.partial = report.partial_reason.is_some() || report.results.len() < runs.len();
    if report.partial && report.partial_reason.is_none() {
        report.partial_reason =
            Some(format!("stopped by a signal after {} of {} runs", report.results.len(), runs.len()));
    }
    finish(&mut report, test, seed)?;
    match failure {
        Some(error) => Err(failed(host, &error)),
        None if report.partial || report.results.iter().any(|run| !run.valid) => Ok(Exit::Found),
        None => Ok(Exit::Done),
    }
}

fn failed(host: &str, error: &TestError) -> Failure {
    let sentence = format!("{host}: {error}");
    match error {
        TestError::BadPlan(_) => Failure::usage(sentence),
        _ => Failure::failed(sentence),
    }
}

fn ending_words(ending: &Ending) -> String {
    match ending {
        Ending::Complete => "is complete".into(),
        Ending::Stopped => "was stopped by a signal".into(),
        Ending::Broken(why) => format!("broke: {why}"),
    }
}

fn direction(test: &Test) -> Direction {
    match (test.reverse, test.bidir) {
        (true, _) => Direction::Reverse,
        (_, true) => Direction::Both,
        _ => Direction::Forward,
    }
}

fn draw_seed() -> u64 {
    // Anything that differs from run to run does: the seed decides an order, and is printed.
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| u64::from(since.subsec_nanos()))
}

fn check_outputs(test: &Test) -> Result<(), Failure> {
    if test.html.is_some() && test.html == test.json {
        return Err(Failure::usage("--html and --json name the same file: one would overwrite the other"));
    }
    [&test.html, &test.json].into_iter().flatten().try_for_each(|file| output::check_writable(file))
}

/// Refuses what this end can't use before the server is troubled. The server says for itself.
fn check_controls(controls: &[String]) -> Result<(), Failure> {
    for (index, name) in controls.iter().enumerate() {
        if controls[..index].contains(name) {
            return Err(Failure::usage(format_args!("--cc names `{name}` twice")));
        }
        match host::cc::probe_version(name) {
            Ok(_) => {}
            Err(error @ SetCongestionControlError::Unknown { .. }) if name.starts_with("bbr3") => {
                return Err(Failure::usage(format_args!("{error}: `linerate cc load` loads BBRv3")));
            }
            Err(error) => return Err(Failure::usage(error)),
        }
    }
    Ok(())
}

fn new_report(test: &Test, seed: u64) -> BenchReport {
    let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let settings = Settings {
        direction: fill::direction_name(direction(test)).to_owned(),
        streams: test.parallel,
        duration_s: test.bytes.is_none().then(|| test.time.as_secs_f64()),
        bytes: test.bytes.map(Bytes::as_u64),
        omit_s: test.omit.as_secs_f64(),
        rate_bps: test.rate.map(Rate::as_bps),
        congestion_controls: test.cc.clone(),
        repeats: test.repeat,
        seed,
    };
    BenchReport::new(env!("CARGO_PKG_VERSION"), &document::release(), std::env::args().collect(), &started_at, settings)
}

/// Summarises, prints the table, and writes the files. One that can't be written costs neither the table nor the other.
fn finish(report: &mut BenchReport, test: &Test, seed: u64) -> Result<(), Failure> {
    report.summarise(&|values: &[f64]| interval(values, seed));
    let files: Vec<&Path> = [&test.html, &test.json].into_iter().flatten().map(AsRef::as_ref).collect();
    let to_stdout = files.contains(&Path::new("-"));
    let table = report::bench::render_bench(report, output::width(), output::colour() && !to_stdout);
    let mut result = if to_stdout {
        eprint!("{table}");
        Ok(())
    } else {
        output::print(&table)
    };
    let texts = [(&test.json, report.to_json()), (&test.html, report::bench::render_bench_html(report))];
    for (file, text) in texts.iter().filter_map(|(file, text)| Some((file.as_deref()?, text))) {
        match output::write(file, text) {
            Ok(()) if file == Path::new("-") => {}
            Ok(()) => eprintln!("Wrote {}", file.display()),
            Err(failure) => result = result.and(Err(failure)),
        }
    }
    result
}

/// The median with its 95 % bootstrap interval; with fewer than three values, with their range.
fn interval(values: &[f64], seed: u64) -> Interval {
    let range = report::median_and_range(values);
    match stats::median_interval(values, seed) {
        Some(stats::Interval { low, high }) => Interval { low, high, ..range },
        None => range,
    }
}
