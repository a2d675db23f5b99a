//! `linerate apply`.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use tuning::journal::{Begin, JOURNAL_FORMAT};
use tuning::plan::{Host, Plan, Role};
use tuning::transaction::{self, Check, Ended, Failed, Prepared, Refusal, Request};
use units::{Duration, Rate};

use super::apply_live::Live;
use super::{Place, load, lock, render, seconds_left};
use crate::exit::{Exit, Failure};
use crate::{document, output, plan, stop};

/// Plans are some dozen kilobytes.
const MOST_BYTES: u64 = 16 << 20;

/// Arguments of `apply`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The plan, as `linerate plan --json` prints it; `-` for standard input
    #[arg(value_name = "PLAN", conflicts_with_all = ["bandwidth", "rtt", "role", "connections"])]
    plan: Option<PathBuf>,
    /// Plan on the spot: what one connection should reach, such as 10gbit
    #[arg(long, value_name = "RATE", requires = "rtt", requires = "role", required_unless_present = "plan")]
    bandwidth: Option<Rate>,
    /// Plan on the spot: the path's round-trip time without a queue, such as 100ms
    #[arg(long, value_name = "TIME", requires = "bandwidth")]
    rtt: Option<Duration>,
    /// Plan on the spot: what the host is for
    #[arg(long, value_parser = plan::role, value_name = "ROLE", requires = "bandwidth")]
    role: Option<Role>,
    /// Plan on the spot: how many connections there are at the same time
    #[arg(long, value_name = "N", requires = "bandwidth")]
    connections: Option<u64>,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Undo everything by itself after this time (1s to 1h) unless `linerate confirm` comes; a restart undoes it too
    #[arg(long, value_name = "TIME")]
    confirm: Option<Duration>,
    /// Set live values only: nothing is written that a restart would keep
    #[arg(long)]
    live_only: bool,
    /// Act in a network namespace other than the host's
    #[arg(long, hide = true)]
    in_namespace: bool,
    #[command(flatten)]
    place: Place,
}

/// Shows the difference, asks, and makes it.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let patience = patience(arguments.confirm)?;
    let (plan, facts) = the_plan(arguments)?;
    let live = if arguments.dry_run { arguments.place.look()? } else { arguments.place.live()? };
    let mut live = live.with_guard(guard_command(&arguments.place.root)?);
    let host = Host { name: facts.hostname, id: facts.machine, kernel: facts.kernel, memory_bytes: facts.memory_bytes };
    let container = if arguments.in_namespace { None } else { plan::facts::not_the_host() };
    let look = |live: &Live| prepare(arguments, live, &plan, &host, container.clone());
    let prepared = match look(&live)? {
        Ok(prepared) => prepared,
        Err(refusals) => return refuse(arguments, &refusals),
    };
    if prepared.steps.is_empty() || arguments.dry_run {
        let result = if prepared.steps.is_empty() { "nothing_to_do" } else { "would_apply" };
        return report(arguments, &prepared, result, None, "");
    }
    if !arguments.yes {
        ask(&prepared, arguments)?;
    }
    // From here on a signal waits until the transaction is whole.
    let _signals = stop::on_signal()?;
    let _lock = lock(&mut live, "apply")?;
    // What was looked at may have changed while somebody thought about it.
    let prepared = match look(&live)? {
        Ok(prepared) => prepared,
        Err(refusals) => return refuse(arguments, &refusals),
    };
    let begin = Begin {
        format: JOURNAL_FORMAT.to_owned(),
        plan: fingerprint(&plan),
        purpose: purpose(&plan),
        kernel: host.kernel,
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        confirm_ns: patience,
        live_only: arguments.live_only,
        ..Begin::default()
    };
    let request = Request { begin, steps: prepared.steps.clone() };
    match transaction::apply(&mut live, request) {
        Ok(Ended::Kept { id }) => {
            let kept = if arguments.live_only { "set until the next restart" } else { "kept across restarts" };
            let done = format!("Applied as transaction {id}: read back, and {kept}. `linerate rollback` undoes it.\n");
            report(arguments, &prepared, "applied", Some((id, None)), &done)
        }
        Ok(Ended::Waiting { id, deadline_ns }) => {
            let seconds = seconds_left(&live, deadline_ns);
            let done = format!(
                "Applied as transaction {id} and read back. It undoes itself in {seconds} s, and with a restart, unless `linerate confirm` \
                 comes.\n"
            );
            report(arguments, &prepared, "waiting", Some((id, Some(seconds))), &done)
        }
        Err(failed) => fail(arguments, failed),
    }
}

pub(super) fn patience(confirm: Option<Duration>) -> Result<Option<u64>, Failure> {
    let range = Duration::from_secs(1)..=Duration::from_secs(3600);
    match confirm {
        Some(time) if !range.contains(&time) => {
            Err(Failure::usage("--confirm takes 1s to 1h: time to look, and to type `linerate confirm`"))
        }
        time => Ok(time.map(Duration::as_nanos)),
    }
}

/// The plan, and this host's facts.
fn the_plan(arguments: &Arguments) -> Result<(Plan, tuning::plan::Facts), Failure> {
    let Some(file) = &arguments.plan else {
        let facts = plan::facts::of_this_host();
        let (Some(bandwidth), Some(rtt), Some(role)) = (arguments.bandwidth, arguments.rtt, arguments.role) else {
            return Err(Failure::usage("name a plan, or --bandwidth, --rtt and --role to make one"));
        };
        let target = tuning::plan::Target { bandwidth, rtt, role, connections: arguments.connections };
        return Ok((tuning::plan::plan(&facts, &target).map_err(Failure::usage)?, facts));
    };
    let (name, text) = if file == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(MOST_BYTES).read_to_string(&mut text);
        ("standard input".to_owned(), read.map(|_| text))
    } else {
        (file.display().to_string(), output::read_text(file, MOST_BYTES))
    };
    let wrong = |why: String| Failure::usage(format_args!("{name}: {why}"));
    let text = text.map_err(|error| wrong(error.to_string()))?;
    let plan = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("it is no plan: {error}. `linerate plan … --json` prints one")))?;
    Ok((plan, plan::facts::identity()))
}

fn prepare(
    arguments: &Arguments,
    live: &Live,
    plan: &Plan,
    host: &Host,
    container: Option<String>,
) -> Result<Result<Prepared, Vec<Refusal>>, Failure> {
    // Whoever may not read the journals may still see what would be done.
    let transactions = match load(live) {
        Err(_) if arguments.dry_run && !nix::unistd::geteuid().is_root() => Vec::new(),
        result => result?,
    };
    let disk = arguments.place.disk();
    let check = Check {
        host,
        container,
        root: &disk,
        transactions: &transactions,
        live_only: arguments.live_only,
        // In a folder that stands for another machine: where it will be there.
        exec: if live.is_machine() { crate::installed::own_program() } else { Ok("/usr/local/bin/linerate".into()) },
        systemd: live.has_systemd() || !live.is_machine(),
    };
    Ok(transaction::prepare(live, plan, &check))
}

/// This program with what a guard needs; a number is appended.
pub(super) fn guard_command(root: &Path) -> Result<Vec<std::ffi::OsString>, Failure> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::failed(format_args!("find the own program: {error}")))?;
    let root = std::path::absolute(root).map_err(Failure::failed)?;
    Ok(vec![program.into(), "guard".into(), "--root".into(), root.into()])
}

fn refuse(arguments: &Arguments, refusals: &[Refusal]) -> Result<Exit, Failure> {
    let malformed = refusals.iter().any(|refusal| refusal.is_malformed);
    let sentences: Vec<&str> = refusals.iter().map(|refusal| refusal.why.as_str()).collect();
    if arguments.place.json {
        let mut document = document::head("apply");
        document.insert("result".into(), "refused".into());
        document.insert("refusals".into(), json!(sentences));
        document::print(document)?;
        return Ok(if malformed { Exit::Usage } else { Exit::Refused });
    }
    let text = match sentences.as_slice() {
        [one] => format!("nothing was changed: {one}"),
        many => many.iter().fold("nothing was changed:".to_owned(), |text, why| text + "\n  - " + why),
    };
    Err(if malformed { Failure::usage(text) } else { Failure::refused(text) })
}

/// Asks whoever sits there.
fn ask(prepared: &Prepared, arguments: &Arguments) -> Result<(), Failure> {
    if arguments.place.json || arguments.plan.as_deref() == Some(Path::new("-")) || !std::io::stdin().is_terminal() {
        return Err(Failure::refused(
            "there is nobody to ask here: --yes does it without, --dry-run shows what it would do",
        ));
    }
    output::print(&output::plain(&render::difference(prepared, arguments.live_only, output::width())))?;
    output::print("\nApply this? [y/N] ")?;
    let _ = std::io::stdout().flush();
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::refused("nothing was changed"))
}

fn report(
    arguments: &Arguments,
    prepared: &Prepared,
    result: &str,
    transaction: Option<(u32, Option<u64>)>,
    done: &str,
) -> Result<Exit, Failure> {
    if arguments.place.json {
        let mut document = document::head("apply");
        document.insert("result".into(), result.into());
        if let Some((id, seconds)) = transaction {
            document.insert("transaction".into(), id.into());
            document.insert("undone_in_s".into(), json!(seconds));
        }
        document.insert("steps".into(), render::steps_json(prepared));
        document.insert("notes".into(), json!(prepared.notes));
        document.insert("connections_unchanged".into(), json!(render::connections()));
        return told(document::print(document), transaction.is_some());
    }
    let mut text = String::new();
    match result {
        "nothing_to_do" => text += "Nothing to do: everything is as the plan wants it.\n",
        // Who was asked has seen it.
        _ if arguments.yes || arguments.dry_run => {
            text += &render::difference(prepared, arguments.live_only, output::width())
        }
        _ => {}
    }
    if arguments.dry_run && result == "would_apply" {
        text += "\nNothing of this was done.\n";
    }
    if !done.is_empty() {
        text += "\n";
        text += done;
        text += &render::connections_sentence();
    }
    told(output::print(&output::plain(&text)), transaction.is_some())
}

/// The exit code tells what became of the host: a terminal that is gone, or a full disk behind `>`, doesn't undo what was applied.
fn told(printed: Result<(), Failure>, applied: bool) -> Result<Exit, Failure> {
    match printed {
        Err(failure) if !applied => Err(failure),
        _ => Ok(Exit::Done),
    }
}

fn fail(arguments: &Arguments, failed: Failed) -> Result<Exit, Failure> {
    let Failed::Step { id, cause, undone } = failed else { return Err(Failure::failed(failed)) };
    let complete = undone.is_complete();
    if arguments.place.json {
        let mut document = document::head("apply");
        document.insert("result".into(), if complete { "failed_and_undone" } else { "failed_and_not_undone" }.into());
        document.insert("transaction".into(), id.into());
        document.insert("cause".into(), cause.as_str().into());
        document.insert("undone".into(), render::undone_json(&undone));
        document::print(document)?;
        return Ok(if complete { Exit::Failed } else { Exit::NotUndone });
    }
    let text = render::failure(&cause, &undone);
    Err(if complete { Failure::failed(text) } else { Failure::not_undone(text) })
}

/// FNV-1a of the plan's changes: tells one plan from another.
pub(super) fn fingerprint(plan: &Plan) -> String {
    let text = serde_json::to_string(&plan.changes).unwrap_or_default();
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

pub(super) fn purpose(plan: &Plan) -> String {
    format!("{} x {}, role {}", plan.target.bandwidth, plan.target.rtt, plan.target.role.name())
}
