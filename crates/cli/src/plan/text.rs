//! A plan for people.

use tuning::plan::{ChangeKind, Facts, Place, Plan, bdp, not_known};

use crate::wrap;

/// The plan in at most `width` columns. `container`: how it is known that what holds for the host can't be set here.
pub fn render(plan: &Plan, facts: &Facts, container: Option<&str>, width: usize) -> String {
    let width = width.min(110);
    let target = &plan.target;
    let mut out = format!(
        "{} x {} = {} in flight, role {}. {}, Linux {}, {} of memory.\n",
        target.bandwidth,
        target.rtt,
        bdp(target),
        target.role.name(),
        if plan.host.name.is_empty() { "A host" } else { &plan.host.name },
        plan.host.kernel,
        memory(plan.host.memory_bytes),
    );
    if let Some(container) = container {
        out += &wrap::hanging("Not the host: ", container, width);
    }
    out += &match plan.changes.len() {
        0 if !not_known(facts, target.role).is_empty() => "\nNothing to change in what is known.\n".to_owned(),
        0 => "\nNothing to change: what is there carries this.\n".to_owned(),
        1 => "\nOne change:\n".to_owned(),
        many => format!("\n{many} changes, in this order:\n"),
    };
    for (number, change) in plan.changes.iter().enumerate() {
        let sign = if change.kind == ChangeKind::Sysctl { " = " } else { ": " };
        out += &format!("\n{}. {}{sign}{}\n", number + 1, change.key, change.to);
        let here = match (change.place, container) {
            (Place::Host, Some(_)) => "host-wide: it has to be set on the host, not in this container",
            _ => "",
        };
        let from = if change.from.is_empty() { "empty" } else { &change.from };
        for (heading, text) in [
            ("now", from),
            ("why", &change.why),
            ("effect", &change.effect),
            ("risk", &change.risk),
            ("where", here),
            ("source", &change.source),
        ] {
            if !text.is_empty() {
                out += &wrap::hanging(&format!("   {heading:8}"), text, width);
            }
        }
    }
    if !plan.kept.is_empty() {
        out += "\nLooked at and left alone:\n";
        for kept in &plan.kept {
            let value = if kept.value.is_empty() { "empty" } else { &kept.value };
            out += &wrap::hanging("  - ", &format!("{} = {value}: {}", kept.key, kept.why), width);
        }
    }
    if !plan.notes.is_empty() {
        out += "\nTo know:\n";
        for note in &plan.notes {
            out += &wrap::hanging("  - ", note, width);
        }
    }
    out
}

/// Memory to a tenth of a GiB: it is never a round number.
fn memory(bytes: u64) -> String {
    let tenths = u128::from(bytes) * 10 / (1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
