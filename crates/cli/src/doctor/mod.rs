//! `linerate doctor`: the questions of troubleshooting chapters, answered by looking and by short runs. Changes nothing.

mod measure;

use std::path::PathBuf;

use serde_json::json;
use tuning::doctor::{Answer, Evidence, Verdict, answer};

use crate::exit::{Exit, Failure};
use crate::{audit, change, document, output, stop, wrap};

/// Arguments of `doctor`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A host where `linerate serve` (or `iperf3 -s`) runs: short runs to it answer what looking can't
    #[arg(value_name = "HOST[:PORT]")]
    host: Option<String>,
    /// Length of one run, a second of warm-up not counted
    #[arg(long, value_name = "T", default_value = "5s", value_parser = crate::lab::quantity::<units::Duration>, requires = "host")]
    duration: units::Duration,
    /// Token for a server that wants one
    #[arg(long, value_name = "FILE", requires = "host")]
    token_file: Option<PathBuf>,
    /// Print JSON (linerate.doctor/1)
    #[arg(long)]
    json: bool,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

/// Looks, measures, answers.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    output::check_writable(&arguments.output)?;
    let mut document = document::head("doctor");
    let facts = audit::gather::this_host();
    // Without root the journals can't be read: then what linerate applied is not known.
    let compared = change::compared();
    let measured = match &arguments.host {
        Some(host) => measure::runs(host, arguments.duration, arguments.token_file.as_deref(), stop::on_signal()?)?,
        None => measure::Measured::default(),
    };
    let (verify, applied) = compared.unwrap_or_default();
    let answers = answer(&Evidence { facts: &facts, verify: &verify, applied, runs: &measured.runs });
    let wrong = answers.iter().any(|answer| answer.wrong);
    let text = if arguments.json {
        document.insert("host".into(), json!(arguments.host));
        document.insert("answers".into(), json!(answers));
        document.insert("runs".into(), json!(measured.runs));
        document.insert("partial".into(), measured.partial.is_some().into());
        document.insert("partial_reason".into(), json!(measured.partial));
        document::text(document)?
    } else {
        let mut text = render(&answers, output::width().min(110));
        if let Some(why) = &measured.partial {
            text += &format!("\nNot all runs were made: {why}\n");
        }
        output::plain(&text)
    };
    output::write(&arguments.output, &text)?;
    Ok(if wrong || measured.partial.is_some() { Exit::Found } else { Exit::Done })
}

fn render(answers: &[Answer], width: usize) -> String {
    let mut out = String::new();
    for answer in answers {
        let verdict = match answer.verdict {
            Verdict::Yes => "yes",
            Verdict::No => "no",
            Verdict::NotKnown => "not known",
        };
        out += &wrap::hanging(&format!("{verdict:10}"), &format!("{} [{}]", answer.question, answer.id), width);
        for evidence in &answer.evidence {
            out += &wrap::hanging("           - ", evidence, width);
        }
        for advice in &answer.advice {
            out += &wrap::hanging("          => ", advice, width);
        }
    }
    out
}
