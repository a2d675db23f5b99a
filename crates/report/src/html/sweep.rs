//! Curves over what a scenario sweeps: loss, queue or RTT.

use minijinja::Value;

use super::Figure;
use crate::groups::Group;
use crate::model::SummaryLine;
use crate::plot::{Axis, Chart, Line, Mark};
use crate::text;

/// A swept part of the path.
struct Dimension {
    name: &'static str,
    value: fn(&SummaryLine) -> f64,
    text: fn(&SummaryLine) -> String,
}

const LOSS: Dimension = Dimension { name: "loss", value: |line| line.loss, text: |line| text::loss(line.loss) };
const RTT: Dimension = Dimension { name: "RTT", value: |line| line.rtt_ms, text: |line| text::rtt(line.rtt_ms) };
const QUEUE: Dimension = Dimension {
    name: "bottleneck queue",
    value: |line| line.queue_bytes.map_or(0.0, |bytes| bytes as f64),
    text: |line| line.queue.clone(),
};

/// More small charts than this help nobody.
const MOST_CHARTS: usize = 8;

/// The curves of a scenario: over the part of the path with the most values, one set for each value of the others.
pub(super) fn curves(group: &Group, id: &str) -> Vec<Figure> {
    let Some((over, others)) = dimensions(group) else { return Vec::new() };
    let mut sets: Vec<(String, Vec<&SummaryLine>)> = Vec::new();
    for line in &group.lines {
        let words: Vec<String> = others.iter().map(|other| format!("{} {}", other.name, (other.text)(line))).collect();
        let name = words.join(", ");
        match sets.iter_mut().find(|(set, _)| *set == name) {
            Some((_, lines)) => lines.push(line),
            None => sets.push((name, vec![line])),
        }
    }
    let mut figures = Vec::new();
    for (name, lines) in &sets {
        let sweep = Sweep {
            group,
            over: &over,
            lines,
            suffix: if name.is_empty() { String::new() } else { format!(" ({name})") },
        };
        if lines.iter().any(|line| !line.shares.is_empty()) {
            figures.extend(sweep.shares(&format!("{id}w{}", figures.len())));
        }
        figures.extend(sweep.goodput(&format!("{id}w{}", figures.len())));
        figures.extend(sweep.loaded_rtt(&format!("{id}w{}", figures.len())));
    }
    figures.truncate(MOST_CHARTS);
    figures
}

fn dimensions(group: &Group) -> Option<(Dimension, Vec<Dimension>)> {
    let mut dimensions = Vec::new();
    for (varies, dimension) in [(group.varies.loss, LOSS), (group.varies.queue, QUEUE), (group.varies.rtt, RTT)] {
        if varies {
            let mut texts: Vec<String> = group.lines.iter().map(|line| (dimension.text)(line)).collect();
            texts.sort();
            texts.dedup();
            dimensions.push((texts.len(), dimension));
        }
    }
    // Loss before queue before RTT where they have as many values.
    dimensions.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let mut dimensions = dimensions.into_iter().map(|(_, dimension)| dimension);
    dimensions.next().map(|over| (over, dimensions.collect()))
}

struct Sweep<'a> {
    group: &'a Group<'a>,
    over: &'a Dimension,
    lines: &'a [&'a SummaryLine],
    suffix: String,
}

/// A curve before it has an axis: points by swept value.
struct Curve {
    name: String,
    style: usize,
    mark: Mark,
    points: Vec<(String, f64, (f64, f64))>,
}

impl Sweep<'_> {
    /// The swept values, rising, with their texts.
    fn places(&self) -> Vec<(f64, String)> {
        let mut places: Vec<(f64, String)> =
            self.lines.iter().map(|line| ((self.over.value)(line), (self.over.text)(line))).collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        places.dedup();
        places
    }

    fn profiles(&self) -> Vec<String> {
        let mut profiles: Vec<String> = Vec::new();
        for line in self.lines {
            let profile = self.group.profile_words(line);
            if !profiles.contains(&profile) {
                profiles.push(profile);
            }
        }
        profiles
    }

    fn curve(&self, name: &str, style: usize, figure: impl Fn(&SummaryLine) -> Option<(f64, f64, f64)>) -> Curve {
        let of_profile = self.lines.iter().filter(|line| self.group.profile_words(line) == name);
        let points = of_profile
            .filter_map(|line| figure(line).map(|(middle, low, high)| ((self.over.text)(line), middle, (low, high))));
        Curve { name: name.to_owned(), style, mark: Mark::Filled, points: points.collect() }
    }

    fn goodput(&self, id: &str) -> Option<Figure> {
        let unit = self.group.rate_unit();
        let mut curves = Vec::new();
        for (style, profile) in self.profiles().iter().enumerate() {
            let published = self.curve(profile, style, |line| {
                line.published_goodput_bps.map(|bps| bps as f64 / unit.bps()).map(|value| (value, value, value))
            });
            curves.push(Curve { name: String::new(), mark: Mark::Hollow, ..published });
            curves.push(self.curve(profile, style, |line| {
                line.goodput_bps.map(|g| (g.median / unit.bps(), g.low / unit.bps(), g.high / unit.bps()))
            }));
        }
        self.figure(id, &format!("Goodput over {}, {}", self.over.name, unit.name()), curves, Bottom::Zero)
    }

    fn loaded_rtt(&self, id: &str) -> Option<Figure> {
        let profiles = self.profiles();
        let curves = profiles.iter().enumerate().map(|(style, profile)| {
            self.curve(profile, style, |line| {
                line.rtt_under_load_ms.map(|rtt| (rtt.p95.median, rtt.p95.low, rtt.p95.high))
            })
        });
        let caption = format!("RTT under load (p95) over {}, ms", self.over.name);
        self.figure(id, &caption, curves.collect(), Bottom::Zero)
    }

    fn shares(&self, id: &str) -> Vec<Figure> {
        let profiles = self.profiles();
        let several = profiles.len() > 1;
        let figures = profiles.iter().enumerate().filter_map(|(number, profile)| {
            let mut names: Vec<String> = Vec::new();
            for line in self.lines.iter().filter(|line| self.group.profile_words(line) == *profile) {
                for share in &line.shares {
                    let name = crate::shares::name(share);
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
            let curves = names.iter().enumerate().map(|(style, name)| {
                let curve = self.curve(profile, style, |line| {
                    let share = line.shares.iter().find(|share| crate::shares::name(share) == *name)?.share;
                    Some((share.median * 100.0, share.low * 100.0, share.high * 100.0))
                });
                Curve { name: name.clone(), ..curve }
            });
            let of = if several { format!("{profile}: share") } else { "Share".to_owned() };
            let caption = format!("{of} of the goodput over {}, %", self.over.name);
            self.figure(&format!("{id}p{number}"), &caption, curves.collect(), Bottom::Percent)
        });
        figures.collect()
    }

    fn figure(&self, id: &str, caption: &str, curves: Vec<Curve>, bottom: Bottom) -> Option<Figure> {
        let curves: Vec<Curve> = curves.into_iter().filter(|curve| !curve.points.is_empty()).collect();
        if curves.iter().all(|curve| curve.points.len() < 2) {
            return None;
        }
        let x = Axis::named(self.over.name, &self.places());
        let places = self.places();
        let values = || curves.iter().flat_map(|curve| curve.points.iter().map(|(_, value, _)| *value));
        let high = curves.iter().flat_map(|c| c.points.iter().map(|(_, _, (_, high))| *high)).fold(0.0, f64::max);
        let low = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let y = match bottom {
            Bottom::Percent => Axis::from_zero("", 100.0, 4),
            Bottom::Zero if low.is_finite() && high / low > 20.0 => Axis::logarithmic("", low, high),
            Bottom::Zero => Axis::from_zero("", high, 4),
        };
        let described: Vec<String> = curves.iter().map(Curve::description).collect();
        let hollow = curves.iter().any(|curve| curve.mark == Mark::Hollow);
        let lines = curves.into_iter().map(|curve| {
            let mut points: Vec<(f64, f64, (f64, f64))> = curve
                .points
                .iter()
                .filter_map(|(at, value, interval)| {
                    let index = places.iter().position(|(_, text)| text == at)?;
                    Some((x.place(index), *value, *interval))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line {
                name: curve.name,
                style: curve.style,
                mark: curve.mark,
                intervals: points.iter().map(|(_, _, interval)| *interval).collect(),
                points: points.into_iter().map(|(at, value, _)| (at, value)).collect(),
            }
        });
        let lines: Vec<Line> = lines.collect();
        let caption = format!("{caption}{}", self.suffix);
        let chart = Chart {
            title: caption.clone(),
            description: format!("{}.", described.join(". ")),
            x,
            y,
            lines,
            shaded_to: None,
        };
        let caption = if hollow { format!("{caption} · hollow, dotted: published") } else { caption };
        Some(Figure { caption, svg: Value::from_safe_string(chart.svg(id)) })
    }
}

/// Where the vertical axis starts and whether it may be logarithmic.
enum Bottom {
    Zero,
    Percent,
}

impl Curve {
    fn description(&self) -> String {
        let points = self.points.iter().map(|(at, value, _)| format!("{} at {at}", text::three_digits(*value)));
        let name = match self.mark {
            Mark::Hollow => "published",
            _ => self.name.as_str(),
        };
        format!("{name}: {}", points.collect::<Vec<_>>().join(", "))
    }
}
