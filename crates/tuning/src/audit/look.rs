//! What every rule sees, and where its findings go.

use super::{Facts, Finding, Report};
use crate::KernelVersion;

pub(super) struct Look<'a> {
    pub facts: &'a Facts,
    pub kernel: Option<KernelVersion>,
    findings: Vec<Finding>,
}

impl<'a> Look<'a> {
    pub fn new(facts: &'a Facts) -> Self {
        Self { facts, kernel: facts.plan.kernel.parse().ok(), findings: Vec::new() }
    }

    pub fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// A protocol counter since boot.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.facts.host.counters.get()?.get(name)
    }

    /// The same, 0 where the kernel has none.
    pub fn count(&self, name: &str) -> u64 {
        self.counter(name).unwrap_or(0)
    }

    /// Where counters were read.
    pub fn counters_from(&self) -> &'a str {
        &self.facts.host.counters.from
    }

    /// The time that counters since boot cover.
    pub fn since_boot(&self) -> String {
        match self.facts.host.system.uptime_seconds.get() {
            Some(seconds) => format!("since boot ({})", time(*seconds)),
            None => "since boot".to_owned(),
        }
    }

    /// A key's numbers.
    pub fn numbers(&self, key: &str) -> Option<Vec<u64>> {
        self.facts.plan.numbers(key)
    }

    /// A key's first number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.facts.plan.number(key)
    }

    /// Where a key is read.
    pub fn sysctl(key: &str) -> String {
        format!("sysctl {key}")
    }

    pub fn finish(mut self) -> Report {
        // Stable: rules that come first win among equals.
        self.findings.sort_by_key(|finding| core::cmp::Reverse((finding.severity, finding.weight)));
        Report { findings: self.findings }
    }
}

/// `5 h`, `3 days`: to two digits, as nobody needs more.
pub(super) fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// `0.12 %`, `17 %`: two digits at least.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p >= 10.0 => format!("{p:.0} %"),
        p if p >= 1.0 => format!("{p:.1} %"),
        p if p >= 0.01 => format!("{p:.2} %"),
        p if p > 0.0 => format!("{p:.1e} %"),
        _ => "0 %".to_owned(),
    }
}

/// `one`, or the number and `many`.
pub(super) fn plural(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// `part / whole`, 0 for an empty whole.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_times_are_written_short() {
        assert_eq!(percent(0.173), "17 %");
        assert_eq!(percent(0.0123), "1.2 %");
        assert_eq!(percent(0.000_5), "0.05 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(time(59), "59 s");
        assert_eq!(time(18_000), "5 h");
        assert_eq!(time(400_000), "4 days");
    }
}
