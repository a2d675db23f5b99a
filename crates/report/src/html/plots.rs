//! The plots of one run over time.

use minijinja::Value;

use super::Figure;
use super::cell::shared_labels;
use crate::model::{FlowReport, FlowTraffic, RunReport};
use crate::plot::{Axis, Chart, Line, Mark};
use crate::series::Series;
use crate::text::{self, RateUnit};

/// A plot is about 400 units wide: more points than this do not show.
const MOST_POINTS: usize = 400;
/// More lines than this cannot be told apart.
const MOST_FLOWS: usize = 12;

/// One line of a plot: its name (empty where it is the only one) and its style.
struct Curve {
    name: String,
    style: usize,
    series: Series,
}

/// A plot before it has axes.
struct Plot {
    quantity: &'static str,
    unit: String,
    /// Values are divided by this to be in `unit`.
    scale: f64,
    /// The vertical axis need not start at zero.
    may_float: bool,
    /// The vertical axis goes to at least this.
    at_least: f64,
    curves: Vec<Curve>,
}

/// Goodput, RTT under load, queue depth, drops by cause, marks, congestion window and pacing rate, as far as they were recorded.
pub(super) fn plots(run: &RunReport, id: &str) -> Vec<Figure> {
    let depth = Series::extremes(run.series.queue_depth_bytes.clone(), MOST_POINTS);
    let deep = depth.points().any(|(_, bytes)| bytes >= 2e6);
    let rtt = if run.series.rtt_under_load_ms.is_empty() {
        Plot::of("Smoothed RTT", "ms", flows(run, |flow| flow.series.smoothed_rtt_ms.clone().extremes(MOST_POINTS)))
    } else {
        Plot::of("RTT under load", "ms", alone(run.series.rtt_under_load_ms.clone().extremes(MOST_POINTS)))
    };
    let mut drops = Plot::of("Drops by cause", "packets", drops(run));
    if let Some(step) = drops.curves.iter().find_map(|curve| usual_step(&curve.series)) {
        drops.unit = format!("packets per {:.0} ms", step * 1e3);
    }
    let plots = [
        Plot::of_rates("Goodput", flows(run, |flow| flow.series.goodput_bps.clone().means(MOST_POINTS))),
        Plot { may_float: true, ..rtt },
        Plot {
            scale: if deep { 1e6 } else { 1e3 },
            ..Plot::of("Queue depth", if deep { "MB" } else { "kB" }, alone(depth))
        },
        Plot { at_least: 4.0, ..drops },
        Plot { at_least: 4.0, ..Plot::of("CE marks", "packets", marks(run)) },
        Plot::of(
            "Congestion window",
            "segments",
            flows(run, |flow| flow.series.cwnd_segments.clone().extremes(MOST_POINTS)),
        ),
        Plot::of_rates("Pacing rate", flows(run, |flow| flow.series.pacing_rate_bps.clone().extremes(MOST_POINTS))),
    ];
    let drawn = plots.iter().enumerate().filter_map(|(index, plot)| plot.draw(run, &format!("{id}t{index}")));
    drawn.collect()
}

fn alone(series: Series) -> Vec<Curve> {
    vec![Curve { name: String::new(), style: 0, series }]
}

/// One curve for each bulk flow, named where there are several.
fn flows(run: &RunReport, series: impl Fn(&FlowReport) -> Series) -> Vec<Curve> {
    let bulk: Vec<&FlowReport> = run.flows.iter().filter(|flow| flow.traffic == FlowTraffic::Bulk).collect();
    let shared = shared_labels(run);
    let curves = bulk.iter().take(MOST_FLOWS).enumerate().map(|(style, flow)| Curve {
        name: if bulk.len() > 1 { flow.name(shared) } else { String::new() },
        style,
        series: series(flow),
    });
    curves.collect()
}

/// Each cause keeps its style, whichever others there are.
fn drops(run: &RunReport) -> Vec<Curve> {
    let drops = &run.series.drops_packets;
    let causes =
        [("random", &drops.random), ("queue full", &drops.overflow), ("AQM", &drops.aqm), ("policer", &drops.policer)];
    let curves = causes.into_iter().enumerate().map(|(style, (cause, series))| Curve {
        name: cause.to_owned(),
        style,
        series: series.clone().sums(MOST_POINTS / 2),
    });
    curves.filter(|curve| curve.series.points().any(|(_, packets)| packets > 0.0)).collect()
}

fn marks(run: &RunReport) -> Vec<Curve> {
    let any = run.series.marks_packets.points().any(|(_, packets)| packets > 0.0);
    if any { alone(run.series.marks_packets.clone().sums(MOST_POINTS / 2)) } else { Vec::new() }
}

/// The usual distance between two points, in seconds.
fn usual_step(series: &Series) -> Option<f64> {
    let times: Vec<f64> = series.points().map(|(time, _)| time).collect();
    let mut steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 2).copied()
}

impl Plot {
    fn of(quantity: &'static str, unit: &str, curves: Vec<Curve>) -> Self {
        Self { quantity, unit: unit.to_owned(), scale: 1.0, may_float: false, at_least: 0.0, curves }
    }

    fn of_rates(quantity: &'static str, curves: Vec<Curve>) -> Self {
        let rates: Vec<f64> = curves
            .iter()
            .flat_map(|curve| curve.series.points().map(|(_, bps)| bps))
            .filter(|bps| *bps > 0.0)
            .collect();
        let unit = RateUnit::for_all(rates.into_iter());
        Self { scale: unit.bps(), ..Self::of(quantity, unit.name(), curves) }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.curves.iter().flat_map(|curve| curve.series.points().map(|(_, value)| value / self.scale))
    }

    fn draw(&self, run: &RunReport, id: &str) -> Option<Figure> {
        self.values().next()?;
        let (low, high) =
            self.values().fold((f64::INFINITY, self.at_least), |(low, high), v| (low.min(v), high.max(v)));
        // What varies is shown where zero is far away, but noise is not blown up.
        let y = if self.may_float && high < 2.5 * low {
            Axis::linear("", low, high.max(low * 1.1), 4)
        } else {
            Axis::from_zero("", high, 4)
        };
        let mut caption = format!("{}, {}", self.quantity, self.unit);
        let bulk = run.flows.iter().filter(|flow| flow.traffic == FlowTraffic::Bulk).count();
        if bulk > MOST_FLOWS && self.curves.len() == MOST_FLOWS {
            caption = format!("{caption} (the first {MOST_FLOWS} of {bulk} flows)");
        }
        let described: Vec<String> = self.curves.iter().filter_map(|curve| self.describe(curve)).collect();
        let chart = Chart {
            title: caption.clone(),
            description: format!("Over {:.0} seconds. {}.", run.duration_s, described.join(". ")),
            x: Axis::exact("seconds", 0.0, run.duration_s.max(0.001), 5),
            y,
            lines: self.curves.iter().map(|curve| self.line(curve)).collect(),
            shaded_to: (run.warmup_s > 0.0).then_some(run.warmup_s),
        };
        Some(Figure { caption, svg: Value::from_safe_string(chart.svg(id)) })
    }

    fn line(&self, curve: &Curve) -> Line {
        Line {
            name: curve.name.clone(),
            style: curve.style,
            mark: Mark::Line,
            points: curve.series.points().map(|(time, value)| (time, value / self.scale)).collect(),
            intervals: Vec::new(),
        }
    }

    fn describe(&self, curve: &Curve) -> Option<String> {
        let values: Vec<f64> = curve.series.points().map(|(_, value)| value / self.scale).collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let [low, mean, high] = [low, mean, high].map(text::three_digits);
        let figures = format!("lowest {low}, mean {mean}, highest {high}");
        Some(if curve.name.is_empty() { format!("The line: {figures}") } else { format!("{}: {figures}", curve.name) })
    }
}
