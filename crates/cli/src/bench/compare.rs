//! `linerate bench compare`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use measure::stats::{self, Difference, Method, Verdict};
use report::Interval;
use report::bench::{BenchComparison, BenchReport, BenchRun, ComparedRuns, DirectionReport};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::{document, output};

/// Arguments of `bench compare`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The first set: a file that `bench --json` wrote, with `:NAME` for one of its congestion controls
    a: String,
    /// The second. Without it: the other congestion control of the first file
    b: Option<String>,
    /// The figure that decides
    #[arg(long, value_enum, default_value_t)]
    figure: Figure,
    /// Runs of equal number in the two files were made side by side: compare them in pairs
    #[arg(long)]
    paired: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What is compared.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Figure {
    /// Application bytes per second at the receiver
    #[default]
    Goodput,
    /// Median RTT of a separate flow under load
    Rtt,
    /// Share of the payload that was sent again
    Retransmissions,
    /// Working latency in round trips per minute
    Rpm,
    /// Processor time of both ends per 10^9 bytes
    Cpu,
}

const FIGURES: [Figure; 5] = [Figure::Goodput, Figure::Rtt, Figure::Retransmissions, Figure::Rpm, Figure::Cpu];

impl Figure {
    fn key(self) -> &'static str {
        match self {
            Self::Goodput => "goodput_bps",
            Self::Rtt => "rtt_under_load_ms",
            Self::Retransmissions => "retransmitted_share",
            Self::Rpm => "rpm",
            Self::Cpu => "cpu_s_per_gb",
        }
    }

    fn of(self, run: &BenchRun, direction: &DirectionReport) -> Option<f64> {
        match self {
            Self::Goodput => direction.goodput_bps.map(|bps| bps as f64),
            Self::Rtt => run.rtt_under_load_ms.map(|rtt| rtt.p50),
            Self::Retransmissions => direction.retransmitted_share,
            Self::Rpm => run.responsiveness.map(|found| found.rpm),
            Self::Cpu => Some(run.cpu.client_s_per_gb? + run.cpu.server_s_per_gb?),
        }
    }
}

/// Runs of one congestion control in one file.
struct Set<'a> {
    report: &'a BenchReport,
    control: Option<String>,
    words: String,
}

/// Says whether the two differ; exit code 1 where they do, or where nothing can be said.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let (file_a, control_a) = split(&arguments.a);
    let (file_b, control_b) = arguments.b.as_deref().map_or((file_a.clone(), None), split);
    let (report_a, report_b) = (read(&file_a)?, read(&file_b)?);
    let same_file = same(&file_a, &file_b);
    let (a, b) = if arguments.b.is_none() || (same_file && control_a.is_none() && control_b.is_none()) {
        two_controls(&report_a, &report_b, &file_a, control_a.as_deref())?
    } else {
        (set(&report_a, &file_a, control_a)?, set(&report_b, &file_b, control_b)?)
    };
    if same_file && a.control == b.control {
        return Err(Failure::usage(
            "A and B are the same runs: name another file or another congestion control (FILE:NAME)",
        ));
    }
    // Runs of one repeat of one report are neighbours in time.
    let paired = same_file || arguments.paired;
    let comparison = compare(&a, &b, arguments.figure, paired);
    if arguments.json {
        let mut map = document::head("bench-compare");
        map.insert("differs".into(), comparison.differs().into());
        map.insert("comparison".into(), json!(comparison));
        document::print(map)?;
    } else {
        output::print(&report::bench::render_bench_compare(&comparison, output::width(), output::colour()))?;
    }
    match comparison.figures.first().map(|figure| figure.verdict) {
        Some("no-difference-seen") => Ok(Exit::Done),
        _ => Ok(Exit::Found),
    }
}

/// `FILE:NAME`, where no file has that whole name.
fn split(text: &str) -> (PathBuf, Option<String>) {
    if !Path::new(text).exists()
        && let Some((file, control)) = text.rsplit_once(':')
        && !control.is_empty()
    {
        return (file.into(), Some(control.to_owned()));
    }
    (text.into(), None)
}

fn same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

fn read(file: &Path) -> Result<BenchReport, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {error}", file.display()));
    let text = output::read_text(file, 1 << 30).map_err(|error| failed(&error))?;
    BenchReport::from_json(&text).map_err(|error| failed(&error))
}

fn controls(report: &BenchReport) -> Vec<Option<String>> {
    let mut all: Vec<Option<String>> = Vec::new();
    for run in &report.results {
        if !all.contains(&run.congestion_control) {
            all.push(run.congestion_control.clone());
        }
    }
    // In the order in which they were asked for.
    let place = |control: &Option<String>| {
        report.settings.congestion_controls.iter().position(|name| Some(name) == control.as_ref())
    };
    all.sort_by_key(place);
    all
}

fn names(controls: &[Option<String>]) -> String {
    controls.iter().map(|name| name.as_deref().unwrap_or("default")).collect::<Vec<_>>().join(", ")
}

fn set<'a>(report: &'a BenchReport, file: &Path, control: Option<String>) -> Result<Set<'a>, Failure> {
    let has = controls(report);
    let control = match control {
        Some(name) if has.contains(&Some(name.clone())) => Some(name),
        Some(name) => {
            return Err(Failure::usage(format_args!(
                "{} has no runs with `{name}` (it has {})",
                file.display(),
                names(&has)
            )));
        }
        None if has.len() == 1 => has[0].clone(),
        None if has.is_empty() => return Err(Failure::usage(format_args!("{} has no runs", file.display()))),
        None => {
            return Err(Failure::usage(format_args!(
                "{} has runs with {}: say which, as {}:NAME",
                file.display(),
                names(&has),
                file.display()
            )));
        }
    };
    let words = format!("{}, {}", file.display(), control.as_deref().unwrap_or("default congestion control"));
    Ok(Set { report, control, words })
}

/// The two congestion controls of one file.
fn two_controls<'a>(
    first: &'a BenchReport,
    second: &'a BenchReport,
    file: &Path,
    a: Option<&str>,
) -> Result<(Set<'a>, Set<'a>), Failure> {
    let has = controls(first);
    let [one, two] = has.as_slice() else {
        return Err(Failure::usage(format_args!(
            "{} has runs with {}: say which two, as FILE:NAME FILE:NAME",
            file.display(),
            names(&has)
        )));
    };
    let (one, two) = if a.is_some() && two.as_deref() == a { (two, one) } else { (one, two) };
    Ok((set(first, file, one.clone())?, set(second, file, two.clone())?))
}

fn compare(a: &Set<'_>, b: &Set<'_>, decides: Figure, paired: bool) -> BenchComparison {
    let mut figures = Vec::new();
    let order = std::iter::once(decides).chain(FIGURES.into_iter().filter(|figure| *figure != decides));
    for figure in order {
        for direction in ["forward", "reverse"] {
            // What a run has once stands with its first direction.
            let of_direction = matches!(figure, Figure::Goodput | Figure::Retransmissions);
            if !of_direction && direction == "reverse" && a.report.settings.direction == "both" {
                continue;
            }
            figures.extend(compare_figure(a, b, figure, direction, paired));
        }
    }
    BenchComparison {
        a: a.words.clone(),
        b: b.words.clone(),
        paired,
        level: stats::LEVEL,
        other_conditions: other_conditions(a.report, b.report),
        figures,
    }
}

/// Values of the valid runs, with their repeats.
fn values(set: &Set<'_>, figure: Figure, direction: &str) -> Vec<(u32, f64)> {
    let runs = set.report.results.iter().filter(|run| run.valid && run.congestion_control == set.control);
    runs.filter_map(|run| Some((run.repeat, figure.of(run, run.direction(direction)?)?)))
        .filter(|(_, value)| value.is_finite())
        .collect()
}

fn compare_figure(a: &Set<'_>, b: &Set<'_>, figure: Figure, direction: &str, paired: bool) -> Option<ComparedRuns> {
    let (of_a, of_b) = (values(a, figure, direction), values(b, figure, direction));
    let pairs: Vec<(f64, f64)> = of_a
        .iter()
        .filter_map(|(repeat, value)| Some((*value, of_b.iter().find(|(other, _)| other == repeat)?.1)))
        .collect();
    let (of_a, of_b): (Vec<f64>, Vec<f64>) = if paired {
        pairs.iter().copied().unzip()
    } else {
        (of_a.into_iter().map(|(_, value)| value).collect(), of_b.into_iter().map(|(_, value)| value).collect())
    };
    let found: Difference = if paired { stats::paired(&pairs) } else { stats::unpaired(&of_a, &of_b) };
    let test = found.test?;
    let interval = |values: &[f64]| -> Interval {
        let range = report::median_and_range(values);
        stats::median_interval(values, 1).map_or(range, |i| Interval { low: i.low, high: i.high, ..range })
    };
    Some(ComparedRuns {
        figure: figure.key().to_owned(),
        direction: direction.to_owned(),
        runs_a: of_a.len(),
        runs_b: of_b.len(),
        a: interval(&of_a),
        b: interval(&of_b),
        method: match found.method {
            Method::SignedRank => "signed-rank",
            Method::MannWhitney => "mann-whitney",
        },
        p: test.p,
        effect: test.effect,
        shift: test.shift,
        shift_low: test.interval.map(|interval| interval.low),
        shift_high: test.interval.map(|interval| interval.high),
        verdict: match found.verdict {
            Verdict::Differs => "differs",
            Verdict::NotSeen => "no-difference-seen",
            Verdict::TooFew => "too-few-runs",
        },
    })
}

fn other_conditions(a: &BenchReport, b: &BenchReport) -> Vec<String> {
    let mut differ = Vec::new();
    let mut check = |what: &str, a: String, b: String| {
        if a != b {
            differ.push(format!("{what}: {a} in A, {b} in B"));
        }
    };
    let seconds = |time: Option<f64>| time.map_or_else(|| "by bytes".to_owned(), |time| format!("{time} s"));
    check("kernel", a.kernel.clone(), b.kernel.clone());
    check("linerate", a.linerate_version.clone(), b.linerate_version.clone());
    check("server", a.server.name.clone(), b.server.name.clone());
    check("direction", a.settings.direction.clone(), b.settings.direction.clone());
    check("streams", a.settings.streams.to_string(), b.settings.streams.to_string());
    check("length of a run", seconds(a.settings.duration_s), seconds(b.settings.duration_s));
    check("warm-up", seconds(Some(a.settings.omit_s)), seconds(Some(b.settings.omit_s)));
    differ
}
