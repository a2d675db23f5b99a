//! Keys that are not there.

use std::collections::{HashMap, HashSet};

use crate::catalogue::{Access, Catalogue};
use crate::files::Means;
use crate::lint::item::Item;
use crate::lint::rule::Severity;
use crate::lint::rules::danger::NAT;
use crate::lint::rules::names::*;
use crate::lint::run::Run;

pub(super) fn check(run: &mut Run<'_>) {
    // Looking for a near name costs, and lists repeat themselves.
    let mut modules = Modules::new(run);
    let mut nearest: HashMap<String, Option<String>> = HashMap::new();
    run.each(|run, index, item| {
        let span = item.setting.key_span;
        let kernel = run.target.kernel;
        let Some(found) = &item.found else {
            if crate::effective::pattern::is_pattern(&item.setting.key)
                || item.setting.key.contains('$')
                || run.is_told(index)
            {
                return;
            }
            let catalogue = run.catalogue;
            let near = nearest
                .entry(item.key.clone())
                .or_insert_with(|| {
                    if item.key.len() > LONGEST_KEY {
                        return None;
                    }
                    // A name that ends in a wildcard is near to everything.
                    if let Some(meant) = misplaced(catalogue, &item.key) {
                        return Some(meant);
                    }
                    let near = catalogue.nearest(&item.setting.key).filter(|near| !near.knob.name.ends_with('*'));
                    near.map(|near| near.key)
                })
                .clone();
            match near {
                Some(near) => {
                    let message = format!("there is no key `{}`; did you mean `{near}`?", item.key);
                    run.say_about(&MISSPELT, index, item, span, message).replace(format!("write {near}"), span, near);
                }
                // Other trees than net are not complete here.
                None if item.key.starts_with("net.") => {
                    let message = format!(
                        "`{}` is not known to this version, which knows the keys of Linux 6.1 to 7.2",
                        item.key
                    );
                    run.say_about(&UNKNOWN, index, item, span, message);
                }
                None if !item.key.contains('.') => {
                    let message =
                        format!("`{}` is no key: keys have a tree's name in front, such as `net.core.`", item.key);
                    run.say_about(&UNKNOWN, index, item, span, message).severity(Severity::Warning);
                }
                None => {}
            }
            return;
        };
        let knob = found.knob;
        let written = item.setting.key.trim_start_matches(super::is_invisible);
        if crate::Key::parse(written).is_ok_and(|key| key != found.key) && !written.starts_with("proc/sys/") {
            let right = found.key.to_string();
            let message = format!("`{written}` names a directory for each part of the interface; write `{right}`");
            run.say_about(&DOTS, index, item, span, message).replace(format!("write {right}"), span, right);
        }
        if let Some(until) = knob.until.filter(|until| *until <= kernel) {
            let message = match knob.name.as_str() {
                // No mainline kernel ever had it; the data says since when that is so in its own way.
                _ if until.major <= 3 && until.minor == 0 => format!("kernel {kernel} has no `{}`", item.key),
                _ => format!("`{}` is gone since Linux {until}: \"cannot stat\" on {kernel}", item.key),
            };
            let fix = run.removal(item);
            let why = knob.popular.as_ref().map(|popular| match &popular.instead {
                Some(instead) => format!("{} Instead: {instead}.", popular.why),
                None => popular.why.clone(),
            });
            let finding = run.say_about(&REMOVED, index, item, item.setting.span, message);
            finding.fix = fix;
            finding.help = Some(why.unwrap_or_else(|| knob.what.clone()));
            return;
        }
        if knob.name == "net.ipv4.tcp_tw_recycle" && item.number().is_some_and(|n| n != 0) {
            let fix = run.removal(item);
            let finding =
                run.say_about(&NAT, index, item, item.setting.span, "drops clients that share an address behind NAT");
            finding.help("take it out; newer kernels no longer have it").fix = fix;
            return;
        }
        if let Some(since) = knob.since.filter(|since| *since > kernel) {
            let message = format!("`{}` comes with Linux {since}; {kernel} doesn't have it", item.key);
            run.say_about(&NEWER, index, item, span, message);
            return;
        }
        if knob.access == Access::ReadOnly {
            run.say_about(&READ_ONLY, index, item, span, format!("`{}` can only be read", item.key));
        }
        if let Some(module) = &knob.module {
            needs_module(run, index, item, module, &mut modules);
        }
    });
}

/// No key is longer; what is, is no slip of one.
const LONGEST_KEY: usize = 120;

/// The key that was meant where a part of its path is missing or another one: `tcp_rmem`, `net.ipv4_timestamps`, `net.core.tcp_sack`.
fn misplaced(catalogue: &Catalogue, key: &str) -> Option<String> {
    let key = key.to_lowercase();
    let last = key.rsplit('.').next().unwrap_or(&key);
    let behind = key.strip_prefix("net.ipv4_").or_else(|| key.strip_prefix("net.core_")).unwrap_or(last);
    let candidates = [
        key.replace('_', "."),
        format!("net.{key}"),
        format!("net.ipv4.{behind}"),
        format!("net.ipv4.tcp_{behind}"),
        format!("net.core.{behind}"),
        format!("net.netfilter.{behind}"),
    ];
    let known = |candidate: &&String| catalogue.lookup(candidate).is_some_and(|found| !found.knob.name.ends_with('*'));
    // Below another tree a last part alone says little: `net.ipv6.conf.all.x` is not about IPv4.
    let is_short = key.matches('.').count() <= 2;
    candidates.iter().find(known).filter(|_| is_short).cloned()
}

/// What is known about modules.
struct Modules<'a> {
    /// Those that a file of modules-load.d names.
    named: HashSet<&'a str>,
    /// Documents and modules of which something was said: once a file is enough.
    told: HashSet<(usize, String)>,
}

impl<'a> Modules<'a> {
    fn new(run: &Run<'a>) -> Self {
        let files = run.documents.iter().filter(|document| document.name.contains("modules-load.d"));
        Self { named: files.flat_map(|file| file.source.text().lines().map(str::trim)).collect(), told: HashSet::new() }
    }
}

fn needs_module(run: &mut Run<'_>, index: usize, item: &Item<'_>, module: &str, modules: &mut Modules<'_>) {
    if !matches!(item.setting.means, Means::File | Means::Written { .. } | Means::CommandLine) {
        return;
    }
    let is_loaded = run.surroundings.modules.as_ref().map(|modules| modules.contains(module));
    if is_loaded == Some(true)
        || modules.named.contains(module)
        || !modules.told.insert((item.document, module.to_owned()))
    {
        return;
    }
    // A script that loads the module, or names it for the next boot, has thought of it.
    let text = run.text(item.document);
    if text.contains(&format!("modprobe {module}")) || text.contains("modules-load.d") {
        return;
    }
    let message = format!("the key isn't there before {module} is loaded: at boot it is skipped");
    let finding = run.say_about(&NEEDS_MODULE, index, item, item.setting.key_span, message);
    finding.help(format!("echo {module} > /etc/modules-load.d/{module}.conf"));
    if is_loaded.is_none() {
        finding.severity(Severity::Note);
    }
}
