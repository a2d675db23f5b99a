//! Short runs with what the host's CPUs do meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use host::activity::Activity;
use host::clock::Clock;
use indicatif::{ProgressBar, ProgressDrawTarget};
use measure::iperf::client::{self, ClientPlan, Ending, Length, TestError};
use measure::iperf::wire::Direction;
use measure::traffic::StopFlag;
use tuning::doctor::{Cpu, Run};
use units::Duration;

use crate::bench::resolve::{Family, resolve};
use crate::bench::{fill, read_token};
use crate::exit::Failure;
use crate::tune::split_port;

/// What was measured.
#[derive(Default)]
pub struct Measured {
    pub runs: Vec<Run>,
    /// Why not all runs were made.
    pub partial: Option<String>,
}

/// One connection each way, then four: enough to tell an end's limit from the path's.
const RUNS: [(Direction, u32); 3] = [(Direction::Forward, 1), (Direction::Reverse, 1), (Direction::Forward, 4)];

/// Makes the runs.
///
/// # Errors
/// Where not even the first could be made.
pub fn runs(host: &str, time: Duration, token: Option<&Path>, stop: Arc<AtomicBool>) -> Result<Measured, Failure> {
    let (name, port) = split_port(host, "HOST")?;
    let plan = ClientPlan {
        servers: resolve(name, port, Family::Any)?,
        from: None,
        direction: Direction::Forward,
        streams: 1,
        length: Length::Time(time),
        omit: Duration::from_secs(1),
        congestion_control: None,
        rate: None,
        sample_every: Duration::from_millis(10),
        probe: true,
        token: token.map(read_token).transpose()?,
        patience: Duration::from_secs(10),
        version: env!("CARGO_PKG_VERSION").into(),
        clock: Clock::start(),
        stop: StopFlag::from(stop.clone()),
    };
    let target = if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    let mut measured = Measured::default();
    for (number, (direction, streams)) in RUNS.into_iter().enumerate() {
        bar.set_message(format!("run {} of {}", number + 1, RUNS.len()));
        if stop.load(Ordering::Relaxed) {
            measured.partial = Some("stopped by a signal".to_owned());
            break;
        }
        let plan = ClientPlan { direction, streams, clock: Clock::start(), ..plan.clone() };
        let before = Activity::read();
        let result = client::run(&plan, &mut |_| bar.tick());
        let seen = Activity::read().since(&before);
        let why = match result {
            Ok(outcome) if outcome.ending == Ending::Complete => {
                measured.runs.push(run(&plan, &outcome, &seen));
                continue;
            }
            Ok(outcome) => match outcome.ending {
                Ending::Broken(why) => why,
                _ => "stopped by a signal".to_owned(),
            },
            Err(error @ TestError::BadPlan(_)) => return Err(Failure::usage(error)),
            Err(TestError::Stopped) => "stopped by a signal".to_owned(),
            Err(error) if measured.runs.is_empty() => return Err(Failure::failed(format_args!("{host}: {error}"))),
            Err(error) => error.to_string(),
        };
        measured.partial = Some(format!("run {} of {}: {why}", number + 1, RUNS.len()));
        break;
    }
    bar.finish_and_clear();
    Ok(measured)
}

fn run(plan: &ClientPlan, outcome: &client::TestOutcome, seen: &Activity) -> Run {
    let report = fill::run(plan, outcome, 0, std::time::Duration::ZERO);
    let first = report.directions.first();
    let path = first.and_then(|direction| direction.path.as_ref());
    let limited = first.and_then(|direction| direction.limited_by.as_ref());
    let per_second = |seconds: f64| if report.duration_s > 0.0 { seconds / report.duration_s } else { 0.0 };
    Run {
        sent: outcome.direction.has_forward(),
        streams: plan.streams,
        goodput_bps: first.and_then(|direction| direction.goodput_bps).unwrap_or(0),
        congestion_control: first.and_then(|direction| direction.congestion_control.clone()),
        retransmitted_share: first.and_then(|direction| direction.retransmitted_share),
        receive_window_share: limited.map(|limited| limited.receive_window),
        send_buffer_share: limited.map(|limited| limited.send_buffer),
        rtt_ms: (report.rtt_idle_ms.as_ref().map(|rtt| rtt.p50)).or_else(|| path.and_then(|path| path.min_rtt_ms)),
        rtt_loaded_ms: report.rtt_under_load_ms.as_ref().map(|rtt| rtt.p95),
        bottleneck_bps: path.filter(|path| !path.bottleneck_at_least).and_then(|path| path.bottleneck_bps),
        loss_kind: path.map(|path| path.loss_kind.clone()),
        because: path.map(|path| path.because.clone()),
        cpus: seen
            .cpus
            .iter()
            .filter_map(|cpu| {
                Some(Cpu {
                    number: cpu.number,
                    busy_share: cpu.busy_share()?,
                    softirq_share: cpu.softirq_share().unwrap_or(0.0),
                })
            })
            .collect(),
        server_cpu_share: report.cpu.server_s.map(per_second),
    }
}
