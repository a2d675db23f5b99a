//! Values the kernel refuses, or reads otherwise than meant.

use crate::catalogue::{Kind, Knob, OutOfRange};
use crate::lint::item::Item;
use crate::lint::rule::Severity;
use crate::lint::rules::danger::DCTCP;
use crate::lint::rules::values::*;
use crate::lint::run::Run;

pub(super) fn check(run: &mut Run<'_>) {
    run.each(|run, index, item| {
        let Some(knob) = item.found.as_ref().map(|found| found.knob) else { return };
        if item.setting.is_dynamic || item.value.is_empty() || !knob.exists_in(run.target.kernel) {
            return;
        }
        match knob.name.as_str() {
            "net.ipv4.tcp_congestion_control" => control(run, index, item),
            "net.core.default_qdisc" => qdisc(run, index, item),
            "net.ipv4.ip_local_reserved_ports" => ports(run, index, item),
            _ if knob.kind.is_numeric() => numbers(run, index, item, knob),
            _ => {}
        }
    });
}

fn numbers(run: &mut Run<'_>, index: usize, item: &Item<'_>, knob: &Knob) {
    let text = run.text(item.document);
    let words: Vec<&str> = item.value.split_whitespace().collect();
    if let Some(place) = words.iter().position(|word| plain(word).is_none()) {
        let word = words[place];
        let span = item.word_span(text, place);
        let unit = knob.kind.unit();
        let message = if unit.is_empty() {
            format!("`{word}` is no number")
        } else {
            format!("`{word}` is no number: the value is in {unit}, without a suffix")
        };
        let finding = run.say_about(&NOT_A_NUMBER, index, item, span, message);
        if let Some(number) = with_suffix(word, knob.kind) {
            finding.replace(format!("write {number}"), span, number.to_string());
        } else if let Some(number) = switch(word).filter(|_| matches!(knob.kind, Kind::Flag | Kind::Choice)) {
            finding.replace(format!("write {number}"), span, number);
        }
        return;
    }
    let (least, most) = (usize::from(knob.arity.0), usize::from(knob.arity.1));
    if words.len() > most || words.len() < least {
        let message = format!(
            "{} {}, and the key takes {}",
            words.len(),
            plural(words.len(), "value"),
            if least == most { most.to_string() } else { format!("{least} to {most}") }
        );
        let finding = run.say(&ARITY, index, item, message);
        if words.len() < least && words.len() > 1 {
            finding.severity(Severity::Warning).help("the kernel takes these and leaves the others as they are");
        } else if words.len() < least {
            finding.help("the kernel sets the first value and leaves the others as they are");
        } else {
            finding.help("the kernel reads as many as it wants and drops the rest, or refuses all");
        }
        if words.len() == 1 {
            return;
        }
    }
    if let Some(range) = knob.range_in(run.target.kernel) {
        let outside = |n: &i128| *n < i128::from(range.min) || *n > i128::from(range.max);
        if let Some(place) = item.numbers.iter().position(outside) {
            let span = item.word_span(text, place);
            let what = if range.min == i64::from(i32::MIN) {
                format!("at most {}", range.max)
            } else {
                format!("{} to {}", range.min, range.max)
            };
            let consequence = match knob.out_of_range {
                OutOfRange::Refused if item.numbers.len() > 1 => {
                    "the kernel answers EINVAL, and has changed the values before it all the same"
                }
                OutOfRange::Refused => "the kernel answers EINVAL and keeps the old value",
                OutOfRange::Clamped => "the kernel cuts it to fit",
            };
            let severity = if knob.out_of_range == OutOfRange::Clamped { Severity::Warning } else { Severity::Error };
            let value = item.numbers[place];
            let nearest = value.clamp(i128::from(range.min), i128::from(range.max));
            let finding = run.say_about(&OUT_OF_RANGE, index, item, span, format!("{value} is out of range: {what}"));
            finding.help(consequence).severity(severity);
            // A port of 65536 was meant as 65535; a wild number was meant as something else.
            if (value - nearest).abs() <= 1 {
                finding.replace(format!("write {nearest}"), span, nearest.to_string());
            }
            return;
        }
    }
    let known = |n: &i128| {
        let text = n.to_string();
        knob.choices.iter().any(|c| c.value == text && c.since.is_none_or(|since| since <= run.target.kernel))
    };
    if knob.kind == Kind::Choice && !knob.choices.is_empty() && item.number().is_some_and(|n| !known(&n)) {
        let choices: Vec<_> = knob.choices.iter().map(|c| format!("{} {}", c.value, c.means)).collect();
        run.say(&CHOICE, index, item, format!("`{}` means nothing here", item.value))
            .help(format!("known are {}", choices.join(", ")));
    }
    if knob.kind == Kind::Flag && item.number().is_some_and(|n| !(0..=1).contains(&n)) {
        run.say(&CHOICE, index, item, format!("`{}`: the key is on (1) or off (0)", item.value))
            .severity(Severity::Warning);
    }
    let rises = item.numbers.windows(2).all(|pair| pair[0] <= pair[1]);
    if !rises
        && (knob.kind == Kind::PortRange || (item.numbers.len() == 3 && matches!(knob.kind, Kind::Bytes | Kind::Pages)))
    {
        let message = if knob.kind == Kind::PortRange {
            "the first port is behind the last"
        } else {
            "the values should rise: least, usual, largest"
        };
        run.say(&DESCENDING, index, item, message);
    }
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 { word.to_owned() } else { format!("{word}s") }
}

fn plain(word: &str) -> Option<()> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_number = match digits.strip_prefix("0x") {
        Some(hexadecimal) => !hexadecimal.is_empty() && hexadecimal.bytes().all(|b| b.is_ascii_hexdigit()),
        None => !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()),
    };
    is_number.then_some(())
}

/// `16M`, `4 GiB` without its blank, in the key's unit.
fn with_suffix(word: &str, kind: Kind) -> Option<u64> {
    let end = word.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
    let number: u64 = word[..end].parse().ok()?;
    let bytes = match word[end..].to_ascii_lowercase().as_str() {
        "k" | "kb" | "kib" => number.checked_mul(1 << 10)?,
        "m" | "mb" | "mib" => number.checked_mul(1 << 20)?,
        "g" | "gb" | "gib" => number.checked_mul(1 << 30)?,
        "s" | "sec" if kind == Kind::Seconds => return Some(number),
        "ms" if kind == Kind::Milliseconds => return Some(number),
        _ => return None,
    };
    match kind {
        Kind::Bytes => Some(bytes),
        Kind::Kibibytes => Some(bytes >> 10),
        Kind::Pages => Some(bytes / 4096),
        _ => None,
    }
}

fn switch(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "enable" | "enabled" => Some("1"),
        "false" | "no" | "off" | "disable" | "disabled" => Some("0"),
        _ => None,
    }
}

/// Congestion controls of mainline kernels.
const IN_TREE: [&str; 17] = [
    "reno",
    "cubic",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// Those that patches and modules bring.
const OUT_OF_TREE: [&str; 14] = [
    "bbrplus",
    "bbr2",
    "bbr3",
    "bbr1",
    "bbrz",
    "tsunami",
    "bbr_tsunami",
    "nanqinlang",
    "bbr_nanqinlang",
    "bbr_powered",
    "bbrplus2",
    "brutal",
    "bbr2plus",
    "tcp_bbr",
];

fn control(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let name = item.value;
    let has = run.target.congestion_controls.clone();
    let list = |names: &[String]| names.join(", ");
    let is_there = has.as_ref().map(|names| names.iter().any(|n| n == name));
    if is_there == Some(false) {
        let what = if OUT_OF_TREE.contains(&name) { " and no mainline kernel has" } else { "" };
        let names = has.as_deref().unwrap_or(&[]);
        run.say(
            &CONTROL,
            index,
            item,
            format!("this kernel does not have{what} `{name}`: the write fails, and the old one stays"),
        )
        .help(format!("it has {}", list(names)));
    } else if is_there.is_none() && OUT_OF_TREE.contains(&name) {
        let instead = if name.contains("bbr3") || name.contains("bbr2") {
            "`linerate cc` tells what a kernel has"
        } else {
            "`bbr` is in the kernel since 4.9"
        };
        run.say(
            &CONTROL,
            index,
            item,
            format!(
                "`{name}` is in no mainline kernel: where it isn't patched in, the write fails and the old one stays"
            ),
        )
        .help(instead);
    } else if is_there.is_none() && !IN_TREE.contains(&name) {
        let near = IN_TREE
            .iter()
            .map(|known| (strsim::osa_distance(name, known), *known))
            .min()
            .filter(|(distance, _)| *distance <= 2);
        let finding = run.say(&CONTROL, index, item, format!("no kernel has a congestion control called `{name}`"));
        if let Some((_, near)) = near {
            finding.help(format!("did you mean `{near}`?")).replace(
                format!("write {near}"),
                item.setting.value_span,
                near,
            );
        }
    } else if name == "bbr" && run.target.kernel < crate::KernelVersion::new(4, 9) {
        run.say(&CONTROL, index, item, format!("bbr came with Linux 4.9; {} does not have it", run.target.kernel));
    } else if name == "dctcp" {
        run.say(
            &DCTCP,
            index,
            item,
            "dctcp is for data centres whose every queue marks early; on the Internet it harms others and itself",
        );
    }
}

/// Queue disciplines of mainline kernels that work without parameters.
const QDISCS: [&str; 19] = [
    "fq",
    "fq_codel",
    "fq_pie",
    "cake",
    "codel",
    "pie",
    "sfq",
    "pfifo",
    "bfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "hhf",
    "noqueue",
    "mq",
    "dualpi2",
    "sfb",
    "ets",
    "drr",
    "choke",
];

fn qdisc(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let name = item.value;
    if QDISCS.contains(&name) || ["htb", "prio", "multiq", "qfq", "red", "tbf", "netem"].contains(&name) {
        return;
    }
    let close = |known: &&str| strsim::osa_distance(&name.to_lowercase(), known);
    let near = QDISCS.iter().map(|known| (close(known), *known)).min().filter(|(distance, _)| *distance <= 2);
    let finding =
        run.say(&QDISC, index, item, format!("there is no queue discipline `{name}`: the write fails (ENOENT)"));
    if let Some((_, near)) = near {
        finding.help(format!("did you mean `{near}`?")).replace(format!("write {near}"), item.setting.value_span, near);
    }
}

fn ports(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let is_entry = |entry: &str| match entry.split_once('-') {
        Some((first, last)) => is_port(first) && is_port(last) && first.parse::<u16>().ok() <= last.parse::<u16>().ok(),
        None => is_port(entry),
    };
    let entries: Vec<_> = item.value.split(',').collect();
    if entries.iter().all(|entry| is_entry(entry)) {
        return;
    }
    let words: Vec<_> = item.value.split([' ', ',', '\t', ';']).filter(|w| !w.is_empty()).collect();
    let finding = run.say(&PORTS, index, item, "the kernel wants ports and ranges joined by commas, without blanks");
    if words.iter().all(|entry| is_entry(entry)) {
        let right = words.join(",");
        finding.replace(format!("write {right}"), item.setting.value_span, right);
    }
}
