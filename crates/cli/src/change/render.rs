//! Transactions for people and programs.

use serde_json::{Value, json};
use tuning::journal::{Left, Step};
use tuning::transaction::{Fate, Prepared, Undone};

/// A step as: what it acts on, before, after.
pub fn parts(step: &Step) -> (String, String, String) {
    let or_empty = |text: &str| if text.is_empty() { "empty".to_owned() } else { text.to_owned() };
    match step {
        Step::Sysctl { key, old, new } => (key.clone(), or_empty(old), or_empty(new)),
        Step::Queues { device, old, new } if old.leaves.is_empty() => {
            (format!("{device} root"), old.root.clone(), new.join(" "))
        }
        Step::Queues { device, old, new } => (format!("{device} leaves"), old.leaves.join(" "), new.join(" ")),
        Step::Ring { device, ring, old, new } => {
            (format!("{device} {ring:?} ring").to_lowercase(), old.to_string(), new.to_string())
        }
        Step::Folder { path } => (path.clone(), "not there".into(), "a directory".into()),
        Step::File { path, old, .. } => {
            let old = if old.is_some() { "of an earlier apply" } else { "not there" };
            (path.clone(), old.into(), "written".into())
        }
        Step::Link { path, target } => (path.clone(), "not there".into(), format!("a link to {target}")),
    }
}

/// What would change, in a table.
pub fn difference(prepared: &Prepared, live_only: bool, width: usize) -> String {
    let rows: Vec<(String, String, String)> = prepared
        .steps
        .iter()
        .filter(|(step, _)| !matches!(step, Step::Folder { .. } | Step::Link { .. }))
        .map(|(step, _)| parts(step))
        .collect();
    let longest = rows.iter().map(|(what, ..)| what.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (what, old, new) in &rows {
        if longest + old.chars().count() + new.chars().count() + 10 <= width.min(140) {
            out += &format!("  {what:longest$}  {old} -> {new}\n");
        } else {
            out += &format!("  {what}\n    - {old}\n    + {new}\n");
        }
    }
    if live_only {
        out += "  (until the next restart only)\n";
    }
    for note in &prepared.notes {
        out += &crate::wrap::hanging("Note: ", note, width.min(110));
    }
    out
}

/// The same for programs.
pub fn steps_json(prepared: &Prepared) -> Value {
    let step = |(step, lasting): &(Step, bool)| {
        let (what, from, to) = parts(step);
        let mut value = json!({ "what": what, "from": from, "to": to, "lasting": lasting });
        value["kind"] = json!(step)["kind"].clone();
        value
    };
    prepared.steps.iter().map(step).collect()
}

/// Open connections by congestion control: none of them changes.
pub fn connections() -> Vec<(String, u64)> {
    let users = host::tcp::control_users().unwrap_or_default();
    users.into_iter().map(|(name, users)| (name, users.connections)).filter(|(_, count)| *count > 0).collect()
}

/// The same as a sentence; empty where there are none.
pub fn connections_sentence() -> String {
    let all = connections();
    if all.is_empty() {
        return String::new();
    }
    let list: Vec<String> = all.iter().map(|(name, count)| format!("{count} on {name}")).collect();
    format!(
        "Connections that are open keep their congestion control and buffers ({}); so do listening sockets until they listen anew.\n",
        list.join(", ")
    )
}

/// What is left of a transaction that failed.
pub fn failure(cause: &str, undone: &Undone) -> String {
    let mut out = cause.to_owned();
    let failures: Vec<String> =
        undone.failures().map(|(step, why)| format!("\n  - {}: {why}", parts(step).0)).collect();
    if failures.is_empty() {
        out += ". Everything is as it was before";
        out += &undone.left().map(left).collect::<String>();
    } else {
        out += &format!(
            ". NOT everything could be undone; `linerate rollback {}` tries again. Still changed:{}",
            undone.id,
            failures.concat()
        );
    }
    if let Some(why) = &undone.journal {
        out += &format!("\nThe journal could not be closed, which `linerate rollback {}` does later: {why}", undone.id);
    }
    out
}

/// Something that was left, as a line that begins with a line feed.
pub fn left(left: &Left) -> String {
    format!(
        "\n  - {}: somebody else has changed it since, to {}; left (it was {}, and linerate made it {})",
        left.what, left.found, left.old, left.new
    )
}

/// The fates of a transaction's steps for programs.
pub fn undone_json(undone: &Undone) -> Value {
    let step = |(step, fate): &(Step, Fate)| {
        let (what, old, new) = parts(step);
        let (name, more) = match fate {
            Fate::Restored => ("restored", Value::Null),
            Fate::WasOld => ("was_old", Value::Null),
            Fate::OfAnotherBoot => ("reverted_by_restart", Value::Null),
            Fate::Gone => ("gone", Value::Null),
            Fate::InUse => ("in_use", Value::Null),
            Fate::Changed(left) => ("changed_since", json!(left.found)),
            Fate::Failed(why) => ("failed", json!(why.to_string())),
        };
        json!({ "what": what, "old": old, "new": new, "fate": name, "detail": more })
    };
    json!({
        "transaction": undone.id,
        "complete": undone.is_complete(),
        "unreadable": undone.unreadable,
        "remains": undone.remains,
        "steps": undone.fates.iter().map(step).collect::<Vec<_>>(),
        "journal_error": undone.journal,
    })
}
