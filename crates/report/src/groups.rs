//! The lines of a summary by scenario, and what tells them apart there.

use crate::model::{LabReport, ScenarioReport, SummaryLine};
use crate::text::{self, RateUnit};

/// The lines of one scenario.
pub(crate) struct Group<'a> {
    pub name: &'a str,
    pub spec: Option<&'a ScenarioReport>,
    pub lines: Vec<&'a SummaryLine>,
    /// Whether lines differ in loss, RTT and queue: what does not vary stands in the heading.
    pub varies: Varies,
}

/// Which parts of the path differ between the lines of a group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Varies {
    pub loss: bool,
    pub rtt: bool,
    pub queue: bool,
    pub congestion_control: bool,
}

/// The report's lines by scenario, in the order of its summary; then scenarios of which nothing was run.
pub(crate) fn groups(report: &LabReport) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for line in &report.summary {
        match groups.iter_mut().find(|group| group.name == line.scenario) {
            Some(group) => group.lines.push(line),
            None => groups.push(Group::new(&line.scenario, report.scenario(&line.scenario), vec![line])),
        }
    }
    for spec in &report.scenarios {
        if !groups.iter().any(|group| group.name == spec.name) {
            groups.push(Group::new(&spec.name, Some(spec), Vec::new()));
        }
    }
    for group in &mut groups {
        group.varies = Varies::among(&group.lines);
    }
    groups
}

impl Varies {
    fn among(lines: &[&SummaryLine]) -> Self {
        let Some(first) = lines.first() else { return Self::default() };
        let any = |differs: &dyn Fn(&SummaryLine) -> bool| lines.iter().any(|line| differs(line));
        Self {
            loss: any(&|line| line.loss != first.loss),
            rtt: any(&|line| line.rtt_ms != first.rtt_ms),
            queue: any(&|line| line.queue != first.queue),
            // One profile run with several congestion controls (`--cc a,b`).
            congestion_control: lines
                .iter()
                .any(|a| lines.iter().any(|b| a.profile == b.profile && a.congestion_control != b.congestion_control)),
        }
    }
}

impl<'a> Group<'a> {
    fn new(name: &'a str, spec: Option<&'a ScenarioReport>, lines: Vec<&'a SummaryLine>) -> Self {
        Self { name, spec, lines, varies: Varies::default() }
    }

    /// The unit of its rates, measured and published.
    pub(crate) fn rate_unit(&self) -> RateUnit {
        let measured = self.lines.iter().filter_map(|line| line.goodput_bps.map(|goodput| goodput.median));
        let published = self.lines.iter().filter_map(|line| line.published_goodput_bps.map(|bps| bps as f64));
        RateUnit::for_all(measured.chain(published))
    }

    /// The path in a few words, without what varies between its lines.
    pub(crate) fn path_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(spec) = self.spec {
            words.push(spec.path.rate.clone());
        }
        if let Some(line) = self.lines.first() {
            if !self.varies.rtt {
                words.push(format!("RTT {}", text::rtt(line.rtt_ms)));
            }
            if !self.varies.loss {
                words.push(if line.loss > 0.0 {
                    format!("loss {}", text::loss(line.loss))
                } else {
                    "no loss".to_owned()
                });
            }
            if !self.varies.queue {
                words.push(format!("queue {}", queue_words(line)));
            }
        }
        if let Some(spec) = self.spec {
            let bursts = spec.path.loss.iter().any(|loss| *loss > 0.0) && !spec.path.loss_model.is_empty();
            if bursts && spec.path.loss_model != "independent" {
                words.push(format!("loss {}", spec.path.loss_model));
            }
            if !spec.path.discipline.is_empty() && spec.path.discipline != "drop-tail" {
                words.push(spec.path.discipline.clone());
            }
            words.push(format!("{:.0} s", spec.duration_s));
        }
        words
    }

    /// What tells a line from the others of the scenario, apart from the profile: `1.5% loss, queue 2 BDP`.
    pub(crate) fn cell_words(&self, line: &SummaryLine) -> String {
        let mut words = Vec::new();
        if self.varies.loss {
            words.push(if line.loss > 0.0 { format!("{} loss", text::loss(line.loss)) } else { "no loss".to_owned() });
        }
        if self.varies.rtt {
            words.push(format!("RTT {}", text::rtt(line.rtt_ms)));
        }
        if self.varies.queue {
            words.push(format!("queue {}", line.queue));
        }
        words.join(", ")
    }

    /// What the congestion controls are by probe, where the name does not say it: `bbr is BBRv1`.
    pub(crate) fn versions(&self) -> Option<String> {
        let mut versions: Vec<String> = Vec::new();
        for line in &self.lines {
            if let Some(version) = &line.congestion_control_version {
                let words = format!("{} is {version}", line.congestion_control);
                if *version != line.congestion_control && !versions.contains(&words) {
                    versions.push(words);
                }
            }
        }
        (!versions.is_empty()).then(|| format!("By probe, {}.", text::and_list(&versions)))
    }

    /// The profile's name, with the congestion control where that alone tells two lines apart.
    pub(crate) fn profile_words(&self, line: &SummaryLine) -> String {
        if self.varies.congestion_control {
            format!("{} ({})", line.profile, line.congestion_control)
        } else {
            line.profile.clone()
        }
    }
}

/// The queue as written, with its bytes where that says something new.
fn queue_words(line: &SummaryLine) -> String {
    match line.queue_bytes {
        Some(bytes) if text::bytes(bytes) != line.queue && !line.queue.ends_with('B') => {
            format!("{} ({})", line.queue, text::bytes(bytes))
        }
        _ => line.queue.clone(),
    }
}
