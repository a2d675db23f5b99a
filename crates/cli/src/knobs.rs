//! `linerate knobs`.

use std::io::IsTerminal;

use serde_json::{Value, json};
use tuning::catalogue::{Importance, Knob, facts, first_sentence};
use tuning::{Catalogue, KernelVersion};

use crate::exit::{Exit, Failure};
use crate::{document, output, wrap};

/// Arguments of `knobs`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A knob (net.ipv4.tcp_rmem, tcp_rmem, net/ipv4/tcp_rmem), or a part of names, with * for any text (net.core., tcp_*mem)
    names: Vec<String>,
    /// List every knob, not only those that decide performance
    #[arg(long)]
    all: bool,
    /// Speak of this kernel version instead of the running one
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelVersion>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A knob that was asked for, and the key in which it was.
struct Asked {
    knob: &'static Knob,
    key: Option<String>,
}

/// Prints what the catalogue knows.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let catalogue = Catalogue::builtin();
    let kernel = arguments.kernel.or_else(|| document::release().parse().ok());
    let mut found = Vec::new();
    let mut one_each = !arguments.names.is_empty();
    for name in &arguments.names {
        if name.trim().is_empty() {
            return Err(Failure::usage("no knob has an empty name; `linerate knobs` lists those that matter"));
        }
        let matches = find(catalogue, name);
        if matches.is_empty() {
            return Err(unknown(catalogue, name));
        }
        one_each &= matches.len() == 1;
        found.extend(matches);
    }
    if arguments.names.is_empty() {
        let shown = catalogue.knobs().iter().filter(|knob| arguments.all || knob.importance == Importance::Main);
        found.extend(shown.map(|knob| Asked { knob, key: None }));
    }
    if arguments.json {
        let mut document = document::head("knobs");
        document.insert("for_kernel".into(), json!(kernel));
        document.insert("knobs".into(), found.iter().map(|asked| as_json(asked, kernel)).collect());
        document::print(document)?;
    } else if one_each {
        let entries: Vec<String> = found.iter().map(|asked| entry(asked, kernel)).collect();
        output::print(&entries.join("\n"))?;
    } else {
        output::print(&list(&found, kernel))?;
        if arguments.names.is_empty() && !arguments.all {
            let rest = catalogue.knobs().len() - found.len();
            eprintln!("{rest} more with --all; `linerate knobs NAME` says all about one");
        }
    }
    Ok(Exit::Done)
}

/// What `name` means: a key, the last part of one, or text with `*`.
fn find(catalogue: &'static Catalogue, name: &str) -> Vec<Asked> {
    if let Some(found) = catalogue.lookup(name) {
        // `net.ipv4.conf.*.rp_filter` is the pattern itself.
        let key = found.instance.filter(|instance| instance != "*").map(|_| found.key.to_string());
        return vec![Asked { knob: found.knob, key }];
    }
    let dotted = name.replace('/', ".");
    let all = || catalogue.knobs().iter();
    let last: Vec<_> = all().filter(|knob| knob.name.rsplit('.').next() == Some(&dotted)).collect();
    let matching = if last.is_empty() { all().filter(|knob| matches(&dotted, &knob.name)).collect() } else { last };
    matching.into_iter().map(|knob| Asked { knob, key: None }).collect()
}

/// Whether `part` stands in `name` with its pieces between `*` in this order. Without `*`, `name` has to begin with it, or to
/// hold it after a dot.
fn matches(part: &str, name: &str) -> bool {
    if part.is_empty() {
        return false;
    }
    if !part.contains('*') {
        return name.match_indices(part).any(|(at, _)| at == 0 || name.as_bytes()[at - 1] == b'.');
    }
    let mut rest = name;
    let mut pieces = part.split('*').peekable();
    let mut first = true;
    while let Some(piece) = pieces.next() {
        let at = if pieces.peek().is_none() { rest.strip_suffix(piece).map(str::len) } else { rest.find(piece) };
        match at {
            Some(at) if !first || at == 0 || name.as_bytes()[at - 1] == b'.' => {
                rest = &rest[(at + piece.len()).min(rest.len())..];
            }
            _ => return false,
        }
        first = false;
    }
    true
}

fn unknown(catalogue: &Catalogue, name: &str) -> Failure {
    let shown = output::plain(name);
    let hint = match catalogue.nearest(name) {
        Some(near) => format!("did you mean {}?", near.key),
        None => match nearest_last_part(catalogue, name) {
            Some(near) => format!("did you mean {near}?"),
            None => "`linerate knobs --all` lists all that are known".to_owned(),
        },
    };
    Failure::usage(format_args!("no knob `{shown}` is known to this version; {hint}"))
}

/// For a name without dots: the knob whose last part is nearest.
fn nearest_last_part<'c>(catalogue: &'c Catalogue, name: &str) -> Option<&'c str> {
    if name.contains(['.', '/', '*']) {
        return None;
    }
    let likely = catalogue.knobs().iter().filter(|knob| knob.importance != Importance::Other);
    let candidates = likely.map(|knob| {
        let last = knob.name.rsplit('.').next().unwrap_or_default();
        (strsim::osa_distance(name, last), knob)
    });
    let near = candidates.filter(|(distance, _)| *distance <= 1 + name.chars().count() / 6);
    near.min_by_key(|(distance, knob)| (*distance, knob.importance)).map(|(_, knob)| knob.name.as_str())
}

/// What this host shows for a knob now; `None` where it can't be read here.
fn value_here(asked: &Asked) -> Option<(String, String)> {
    let key = asked.key.clone().or_else(|| (!asked.knob.is_pattern()).then(|| asked.knob.name.clone()))?;
    let value = host::sysctl::read(&key).ok()?;
    Some((key, value))
}

/// A knob in full.
fn entry(asked: &Asked, kernel: Option<KernelVersion>) -> String {
    const INDENT: usize = 12;
    let width = output::width().min(110);
    let knob = asked.knob;
    let mut text = match &asked.key {
        Some(key) => format!("{} ({})\n", output::plain(key), knob.name),
        None => format!("{}\n", knob.name),
    };
    text += &wrap::hanging("  ", &knob.what, width);
    if let Some(kernel) = kernel.filter(|kernel| !knob.exists_in(*kernel)) {
        text +=
            &wrap::hanging(&format!("  {:INDENT$}", "not here"), &format!("Linux {kernel} does not have it."), width);
    }
    if let Some((_, value)) = value_here(asked) {
        let value = if value.is_empty() { "empty".to_owned() } else { output::plain(&value) };
        text += &wrap::hanging(&format!("  {:INDENT$}", "now"), &value, width);
    }
    for (heading, fact) in facts(knob) {
        text += &wrap::hanging(&format!("  {heading:INDENT$}"), &fact, width);
    }
    text
}

/// Knobs, one a line.
fn list(found: &[Asked], kernel: Option<KernelVersion>) -> String {
    // Only a terminal would break the line.
    let width = if std::io::stdout().is_terminal() { output::width() } else { usize::MAX };
    // A few long names don't take the room of all the sentences.
    let longest = found.iter().map(|asked| asked.knob.name.len()).max().unwrap_or(0).min((width / 2).max(36));
    let mut text = String::new();
    for Asked { knob, .. } in found {
        let gone = kernel.is_some_and(|kernel| !knob.exists_in(kernel));
        let kernel = kernel.map(|k| k.to_string()).unwrap_or_default();
        let note = if gone { format!("(not in {kernel}) ") } else { String::new() };
        let line = format!("{:longest$}  {note}{}", knob.name, first_sentence(knob));
        text += &format!("{}\n", cut(line.trim_end(), width));
    }
    text
}

/// `line` in at most `width` columns.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn as_json(asked: &Asked, kernel: Option<KernelVersion>) -> Value {
    let mut value = json!(asked.knob);
    if let Value::Object(map) = &mut value {
        map.insert("key".into(), json!(asked.key));
        map.insert("unit".into(), json!(asked.knob.kind.unit()));
        map.insert("exists".into(), json!(kernel.map(|kernel| asked.knob.exists_in(kernel))));
        map.insert("default_for_kernel".into(), json!(kernel.and_then(|kernel| asked.knob.default_in(kernel))));
        map.insert("now".into(), json!(value_here(asked).map(|(_, value)| value)));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn parts_of_names_match_from_a_dot_on() {
        for (part, name, yes) in [
            ("net.core.", "net.core.rmem_max", true),
            ("tcp_r", "net.ipv4.tcp_rmem", true),
            ("mem", "net.ipv4.tcp_rmem", false),
            ("tcp_*mem", "net.ipv4.tcp_rmem", true),
            ("tcp_*mem", "net.ipv4.tcp_rmem_x", false),
            ("*mem", "net.ipv4.tcp_rmem", true),
            ("net.*.tcp_*", "net.ipv4.tcp_sack", true),
            ("core*", "net.core.rmem_max", true),
            ("ore*", "net.core.rmem_max", false),
            ("", "net.core.rmem_max", false),
            ("*", "net.core.rmem_max", true),
        ] {
            assert_eq!(matches(part, name), yes, "{part} in {name}");
        }
    }
}
