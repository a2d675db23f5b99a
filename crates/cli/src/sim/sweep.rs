//! `--flows` and `--sweep`: scenarios made from scenarios.

use path::RateModel;
use scenario::{QueueSpec, Scenario};
use units::{Duration, Probability, Rate};

use crate::exit::Failure;
use crate::lab::quantity;

/// More scenarios than this are a mistake in the command line.
const MOST: usize = 10_000;

/// One thing to vary.
enum Values {
    Flows(Vec<u16>),
    Rate(Vec<Rate>),
    Rtt(Vec<Duration>),
    Loss(Vec<Probability>),
    Queue(Vec<QueueSpec>),
    Duration(Vec<Duration>),
}

impl Values {
    fn parse(text: &str) -> Result<Self, Failure> {
        let bad = |why: String| Failure::usage(format_args!("--sweep {text}: {why}"));
        let (key, values) = text
            .split_once('=')
            .filter(|(_, values)| !values.is_empty())
            .ok_or_else(|| bad("write it as KEY=A,B,…, for example flows=1,10,100".to_owned()))?;
        Ok(match key {
            "flows" => Self::Flows(
                list(values, |word| match word.parse() {
                    Ok(count @ 1..=60_000) => Ok(count),
                    _ => Err("a number of flows is 1 to 60000".to_owned()),
                })
                .map_err(bad)?,
            ),
            "rate" => Self::Rate(list(values, quantity).map_err(bad)?),
            "rtt" => Self::Rtt(list(values, quantity).map_err(bad)?),
            "loss" => Self::Loss(list(values, quantity).map_err(bad)?),
            "queue" => Self::Queue(list(values, quantity).map_err(bad)?),
            "duration" => Self::Duration(list(values, quantity).map_err(bad)?),
            _ => return Err(bad("known keys are flows, rate, rtt, loss, queue and duration".to_owned())),
        })
    }
}

fn list<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(|word| read(word.trim()).map_err(|error| format!("{word}: {error}"))).collect()
}

/// Every combination of the scenarios with the values of each sweep.
pub fn expand(scenarios: Vec<Scenario>, sweeps: &[String]) -> Result<Vec<Scenario>, Failure> {
    let mut all = scenarios;
    for sweep in sweeps {
        let values = Values::parse(sweep)?;
        let mut next = Vec::new();
        for scenario in &all {
            match &values {
                Values::Flows(counts) => {
                    for count in counts {
                        let mut one = named(scenario, &format!("{count}-flows"), &format!("{count} flows"));
                        set_flows(&mut one, *count)?;
                        next.push(one);
                    }
                }
                Values::Rate(rates) => next.extend(rates.iter().map(|rate| {
                    let mut one = named(scenario, &format!("{}bps", rate.as_bps()), &rate.to_string());
                    one.path.forward.rate = RateModel::Constant(*rate);
                    one
                })),
                Values::Duration(durations) => next.extend(durations.iter().map(|duration| {
                    let mut one = named(scenario, &format!("{}ms", duration.as_millis()), &duration.to_string());
                    one.run.duration = *duration;
                    one
                })),
                // These the scenario sweeps itself.
                Values::Rtt(rtts) => next.push(with(scenario, |one| one.path.rtts.clone_from(rtts))),
                Values::Loss(losses) => next.push(with(scenario, |one| one.path.losses.clone_from(losses))),
                Values::Queue(queues) => next.push(with(scenario, |one| one.path.queues.clone_from(queues))),
            }
            if next.len() > MOST {
                return Err(Failure::usage(format_args!("--sweep {sweep}: more than {MOST} scenarios")));
            }
        }
        all = next;
    }
    all.iter().try_for_each(|scenario| scenario.check().map_err(Failure::usage))?;
    Ok(all)
}

fn with(scenario: &Scenario, change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut one = scenario.clone();
    change(&mut one);
    one
}

fn named(scenario: &Scenario, suffix: &str, words: &str) -> Scenario {
    with(scenario, |one| {
        one.name = format!("{}-{suffix}", scenario.name);
        one.title = format!("{} ({words})", scenario.title);
        // What was published holds for the scenario as it was.
        one.published.clear();
    })
}

/// Sets how many flows of the first kind there are.
pub fn set_flows(scenario: &mut Scenario, flows: u16) -> Result<(), Failure> {
    let Some(first) = scenario.flows.first_mut() else {
        return Err(Failure::usage(format_args!("{}: it has no flow", scenario.name)));
    };
    first.count = flows;
    scenario.check().map_err(Failure::usage)
}
