//! Looking at every connection for a while, with progress.

use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::thread;

use facts::Observed;
use host::audit::{Tree, counters};
use host::clock::Clock;
use host::tcp::diag::{States, each_socket};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tuning::audit::Observer;
use units::{Duration, Instant};

use super::gather::Bounds;
use crate::exit::Failure;
use crate::stop;

/// How soon a Ctrl-C is noticed.
const PATIENCE: Duration = Duration::from_millis(50);
/// Looking takes one part in so many of a CPU at most.
const SHARE: u64 = 4;

/// Looks at all connections `every` so often, for `time`, or until Ctrl-C.
pub fn connections(time: Duration, every: Duration) -> Result<Observed, Failure> {
    let stop = stop::on_signal()?;
    let tree = Tree::of_this_host();
    let before = counters::read(&tree);
    let bounds = Bounds::read();
    let mut observer = Observer::new(bounds.listening, bounds.largest_receive_buffer);
    let bar = bar(time);
    let clock = Clock::start();
    let end = Instant::ZERO + time;
    let mut next = Instant::ZERO;
    let took = loop {
        let began = clock.now();
        observer.begin(began.since(Instant::ZERO));
        match each_socket(States::WITH_DATA, |sample| observer.add(sample)) {
            Ok(()) => observer.end(),
            Err(error) if observer.looks() == 1 => {
                return Err(Failure::failed(format_args!("can't look at this host's connections: {error}")));
            }
            Err(error) => observer.failed(error.to_string()),
        }
        let now = clock.now();
        show(&bar, &observer, now.since(Instant::ZERO), time);
        if began >= end || stop.load(Ordering::Relaxed) {
            break began.since(Instant::ZERO);
        }
        // The last look is at the end exactly: what happens until then counts.
        next = (next + every).max(began + now.since(began) * SHARE).min(end);
        while clock.now() < next && !stop.load(Ordering::Relaxed) {
            thread::sleep(clock.until(next).min(PATIENCE).into());
            bar.set_position(clock.now().since(Instant::ZERO).as_millis());
        }
    };
    bar.finish_and_clear();
    let grown = match (counters::read(&tree).value, before.value) {
        (Some(now), Some(before)) => now.since(&before),
        _ => facts::Counters::default(),
    };
    Ok(observer.finish(took, time, grown))
}

fn bar(time: Duration) -> ProgressBar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(time.as_millis()), target);
    bar.set_style(ProgressStyle::with_template("{bar:20.dim} {msg}").expect("a constant template"));
    if bar.is_hidden() {
        eprintln!("linerate: looking at all connections for {time} (Ctrl-C ends it and shows what was seen)");
    }
    bar
}

fn show(bar: &ProgressBar, observer: &Observer, now: Duration, time: Duration) {
    let held = observer.held();
    let percent = |part: u64| (held.share(part) * 100.0).round();
    bar.set_position(now.as_millis());
    bar.set_message(format!(
        "{} of {} s, {} connections; held by send buffer {} %, peer's window {} %, congestion window {} %; Ctrl-C ends it",
        now.as_millis() / 1_000,
        time.as_millis() / 1_000,
        observer.open(),
        percent(held.sndbuf_limited_us),
        percent(held.rwnd_limited_us),
        percent(held.cwnd_limited_us),
    ));
}
