//! `linerate lab list`.

use scenario::Scenario;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::output;

/// Arguments of `lab list`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the built-in scenarios.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let scenarios = scenario::builtin()
        .iter()
        .map(|(name, _)| Scenario::builtin(name).map_err(Failure::failed))
        .collect::<Result<Vec<_>, _>>()?;
    if arguments.json {
        let list: Vec<_> = scenarios
            .iter()
            .map(|scenario| {
                json!({
                    "name": scenario.name,
                    "title": scenario.title,
                    "about": scenario.about,
                    "profiles": scenario.profiles.iter().map(|p| &p.name).collect::<Vec<_>>(),
                    "runs": scenario.cells().map(|cells| cells.len()).unwrap_or(0),
                    "seconds": scenario.cells().map(|cells| cells.len()).unwrap_or(0) as f64 * scenario.run.duration.as_secs_f64(),
                })
            })
            .collect();
        let text = serde_json::to_string_pretty(&json!({
            "schema": "linerate.lab-list/1",
            "linerate_version": env!("CARGO_PKG_VERSION"),
            "scenarios": list,
        }));
        output::print(&format!("{}\n", text.map_err(Failure::failed)?))?;
        return Ok(Exit::Done);
    }
    let longest = scenarios.iter().map(|s| s.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for scenario in &scenarios {
        let runs = scenario.cells().map_err(Failure::failed)?.len() as u64;
        let minutes = (scenario.run.duration * runs).as_secs_f64() / 60.0;
        text += &format!("{:longest$}  {:5.1} min  {}\n", scenario.name, minutes, scenario.title);
    }
    output::print(&text)?;
    Ok(Exit::Done)
}
