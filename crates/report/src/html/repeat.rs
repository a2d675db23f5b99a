//! How to repeat the report, and how accurate its emulator was.

use serde::Serialize;

use super::{Data, Head, Table};
use crate::groups::groups;
use crate::model::{EmulatorReport, LabReport, ScenarioReport, Setting, TimingError};
use crate::text;

#[derive(Serialize)]
pub(super) struct Repeat {
    command: String,
    facts: Vec<(String, String)>,
    scenarios: Vec<ScenarioSettings>,
}

#[derive(Serialize)]
struct ScenarioSettings {
    name: String,
    facts: Vec<(String, String)>,
    sysctls: Vec<Setting>,
    profiles: Vec<ProfileSettings>,
}

#[derive(Serialize)]
struct ProfileSettings {
    name: String,
    congestion_control: String,
    sysctls: Vec<Setting>,
}

impl Repeat {
    pub(super) fn of(report: &LabReport) -> Self {
        let kernel = &report.kernel;
        let mut facts = vec![
            fact("linerate", &report.linerate_version),
            fact("Kernel", &format!("{} {}", kernel.release, kernel.architecture)),
            fact("CPUs", &kernel.cpus.to_string()),
        ];
        if let Some(bytes) = kernel.memory_bytes {
            facts.push(fact("Memory", &text::bytes(bytes)));
        }
        facts.push(fact("BTF", if kernel.btf { "yes" } else { "no" }));
        if !kernel.available_congestion_controls.is_empty() {
            facts.push(fact("Congestion controls", &kernel.available_congestion_controls.join(" ")));
        }
        facts.push(fact("Started", &report.started_at));
        Self {
            command: text::shell_line(&report.command_line),
            facts,
            scenarios: report.scenarios.iter().map(ScenarioSettings::of).collect(),
        }
    }
}

impl ScenarioSettings {
    fn of(scenario: &ScenarioReport) -> Self {
        let path = &scenario.path;
        let list = |values: Vec<String>| values.join(", ");
        let mut facts = vec![
            fact("Rate", &path.rate),
            fact("RTT", &list(path.rtt_ms.iter().map(|ms| text::rtt(*ms)).collect())),
            fact("Loss", &list(path.loss.iter().map(|loss| text::loss(*loss)).collect())),
            fact("Loss model", &path.loss_model),
            fact("Queue", &list(path.queue.clone())),
            fact("Discipline", &path.discipline),
            fact("MTU", &format!("{} bytes", path.mtu_bytes)),
            fact("Emulator", &path.emulator),
            fact("Run", &format!("{} s, of which {} s warm-up", scenario.duration_s, scenario.warmup_s)),
            fact("Repeats", &scenario.repeats.to_string()),
            fact("Seed", &format!("{} + repeat, from 0", scenario.seed)),
        ];
        facts.extend(path.details.iter().map(|detail| fact(&detail.name, &detail.value)));
        facts.retain(|(_, value)| !value.is_empty());
        let profiles = scenario.profiles.iter().map(|profile| ProfileSettings {
            name: profile.name.clone(),
            congestion_control: profile.congestion_control.clone(),
            sysctls: profile.sysctls.clone(),
        });
        Self { name: scenario.name.clone(), facts, sysctls: scenario.sysctls.clone(), profiles: profiles.collect() }
    }
}

fn fact(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// The worst of every scenario's runs; `None` where no run has an emulator's account.
pub(super) fn emulator_table(report: &LabReport) -> Option<Table> {
    let mut rows = Vec::new();
    for group in groups(report) {
        let accounts = || {
            let runs = report.results.iter().filter(|run| run.scenario == group.name);
            runs.filter_map(|run| run.emulator.as_ref())
        };
        let Some(first) = accounts().next() else { continue };
        let worst = |timing: fn(&EmulatorReport) -> Option<TimingError>, figure: fn(&TimingError) -> f64| {
            let values = accounts().filter_map(|account| timing(account).as_ref().map(figure));
            Data::figure(values.reduce(f64::max).map_or("–".to_owned(), |micros| format!("{micros:.0}")))
        };
        let outside: u64 = accounts().map(|account| account.outside_drops).sum();
        let outside_data = Data::figure(text::count(outside as f64));
        rows.push(vec![
            Data::name(group.name),
            Data::name(first.kind.clone()),
            Data::figure(accounts().count().to_string()),
            Data::figure(text::count(accounts().map(|account| account.packets).sum::<u64>() as f64)),
            if outside > 0 { Data { class: "figure off", ..outside_data } } else { outside_data },
            worst(|account| account.lateness_us, |timing| timing.p50),
            worst(|account| account.lateness_us, |timing| timing.p99),
            worst(|account| account.lateness_us, |timing| timing.p999),
            worst(|account| account.lateness_us, |timing| timing.max),
            worst(|account| account.intake_us, |timing| timing.p999),
        ]);
    }
    let head = vec![
        Head::name("scenario"),
        Head::name("emulator"),
        Head::figure("runs", ""),
        Head::figure("packets", ""),
        Head::figure("lost outside the model", "packets"),
        Head::figure("lateness p50", "µs"),
        Head::figure("p99", "µs"),
        Head::figure("p99.9", "µs"),
        Head::figure("worst", "µs"),
        Head::figure("intake p99.9", "µs"),
    ];
    let caption =
        "How late packets left the emulated path, and how long they waited to be taken in: the worst run of each.";
    (!rows.is_empty()).then(|| Table { caption: caption.to_owned(), head, rows })
}
