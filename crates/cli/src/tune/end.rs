//! The end of the job on a host: keep or put back, and say so.

use report::bench::PathEstimate;
use serde_json::{Map, Value, json};
use tuning::plan::Plan;
use tuning::tune::{Limits, Outcome, Sample};

use super::host::HostEnds;
use super::idle::Idle;
use super::{Arguments, Path, text};
use crate::change::Kept;
use crate::exit::{Exit, Failure};
use crate::{document, output};

/// What was found, as far as the job came.
pub struct Report {
    document: Map<String, Value>,
    pub baseline: Option<Sample>,
    pub idle: Option<Idle>,
    pub path: Option<Path>,
    pub estimate: Option<PathEstimate>,
    pub plan: Option<Plan>,
}

/// What became of the host.
#[derive(Default)]
struct Ended {
    /// For programs.
    result: &'static str,
    transaction: Option<(u32, Option<u64>)>,
    /// For people.
    words: String,
    failure: Option<Failure>,
}

impl Report {
    /// With the head of the document.
    pub fn new(document: Map<String, Value>) -> Self {
        Self { document, baseline: None, idle: None, path: None, estimate: None, plan: None }
    }

    fn write(
        mut self,
        arguments: &Arguments,
        ends: &HostEnds,
        outcome: Option<&Outcome>,
        ended: &Ended,
    ) -> Result<(), Failure> {
        let Some(file) = &arguments.json else { return Ok(()) };
        let document = &mut self.document;
        document.insert("simulated".into(), false.into());
        document.insert("peer".into(), json!(ends.peer));
        document.insert("seed".into(), arguments.seed.into());
        document.insert("idle".into(), json!(self.idle));
        document.insert("baseline".into(), json!(self.baseline));
        document.insert("path".into(), json!(self.path));
        document.insert("estimate".into(), json!(self.estimate));
        document.insert("plan".into(), json!(self.plan));
        document.insert("limits".into(), json!(Limits::default()));
        document.insert("runs".into(), json!(ends.runs));
        if let Some(outcome) = outcome {
            document.insert("outcome".into(), json!(outcome));
        }
        document.insert("result".into(), ended.result.into());
        document.insert("transaction".into(), json!(ended.transaction.map(|(id, _)| id)));
        document.insert("undone_in_s".into(), json!(ended.transaction.and_then(|(_, seconds)| seconds)));
        document.insert("error".into(), json!(ended.failure.as_ref().map(ToString::to_string)));
        output::write(file, &document::text(self.document)?)
    }
}

/// After a dry run.
pub fn looked(arguments: &Arguments, report: Report, ends: &HostEnds) -> Result<Exit, Failure> {
    report.write(arguments, ends, None, &Ended { result: "would_try", ..Ended::default() })?;
    Ok(Exit::Done)
}

/// After the job: keeps what is to be kept, puts the rest back, reports.
pub fn finish(
    arguments: &Arguments,
    report: Report,
    mut ends: HostEnds,
    outcome: Result<Outcome, Failure>,
) -> Result<Exit, Failure> {
    let (outcome, ended) = match outcome {
        Ok(outcome) => {
            let ended = settle(arguments, &mut ends, &outcome);
            (Some(outcome), ended)
        }
        Err(failure) => (None, put_back(&mut ends, Some(failure), "")),
    };
    let partial = outcome.as_ref().is_none_or(|outcome| outcome.partial);
    report.write(arguments, &ends, outcome.as_ref(), &ended)?;
    if arguments.json.as_deref() != Some(std::path::Path::new("-"))
        && let Some(outcome) = &outcome
    {
        output::print(&output::plain(&(text::outcome(outcome, None, output::width()) + &ended.words)))?;
    }
    match ended.failure {
        Some(failure) => Err(failure),
        None if partial => Ok(Exit::Found),
        None => Ok(Exit::Done),
    }
}

fn settle(arguments: &Arguments, ends: &mut HostEnds, outcome: &Outcome) -> Ended {
    let real = &arguments.real;
    let changes: Vec<_> = outcome.kept().cloned().collect();
    if changes.is_empty() {
        return put_back(ends, None, if outcome.partial { "\nThe host is as it was before.\n" } else { "" });
    }
    if outcome.partial && !real.keep_partial {
        return put_back(
            ends,
            None,
            "\nThe host is as it was before; --keep-partial would have kept what was decided.\n",
        );
    }
    let stopped = ends.failure.take();
    let (Some(trials), Some(plan)) = (&mut ends.trials, &ends.plan) else {
        return Ended { result: "put_back", ..Ended::default() };
    };
    let plan = Plan { changes, ..plan.clone() };
    let kept = trials.keep(&plan, real.confirm, real.live_only);
    let mut ended = match kept {
        Ok(Some(Kept::Kept { id })) => Ended {
            result: "kept",
            transaction: Some((id, None)),
            words: format!(
                "\nKept as transaction {id}{}. `linerate rollback {id}` undoes it.\n",
                if real.live_only { " until the next restart" } else { ", also across restarts" }
            ),
            ..Ended::default()
        },
        Ok(Some(Kept::Waiting { id, deadline_ns })) => {
            let seconds = trials.seconds_left(deadline_ns);
            Ended {
                result: "waiting",
                transaction: Some((id, Some(seconds))),
                words: format!(
                    "\nSet as transaction {id}. It undoes itself in {seconds} s, and with a restart, unless `linerate confirm` comes.\n"
                ),
                ..Ended::default()
            }
        }
        Ok(None) => Ended { result: "nothing", ..Ended::default() },
        Err(failure) => Ended {
            result: if failure.code == Exit::NotUndone { "not_undone" } else { "put_back" },
            failure: Some(failure),
            ..Ended::default()
        },
    };
    ended.failure = ended.failure.or(stopped);
    ended
}

/// Puts everything back; a failure to do so matters more than why.
fn put_back(ends: &mut HostEnds, why: Option<Failure>, words: &str) -> Ended {
    let why = why.or(ends.failure.take());
    let back = ends.put_back();
    let failure = match (back, why) {
        (Err(back), Some(why)) if why.code != Exit::NotUndone => Some(back),
        (Err(back), None) => Some(back),
        (_, why) => why,
    };
    let undone = failure.as_ref().is_none_or(|failure| failure.code != Exit::NotUndone);
    let words = if undone { words.to_owned() } else { String::new() };
    let result = match (undone, &failure, words.is_empty()) {
        (false, ..) => "not_undone",
        (true, None, true) => "nothing",
        _ => "put_back",
    };
    // Interrupted by a signal is no failure of its own: the outcome is marked as partial.
    let failure = failure.filter(|failure| failure.code != Exit::Found);
    Ended { result, words, failure, ..Ended::default() }
}
