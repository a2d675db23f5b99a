//! Lines that can't be read as they were meant.

use crate::files::{Defect, DefectKind, Document, Format, Means, Span};
use crate::lint::finding::{Edit, Fix};
use crate::lint::item::Item;
use crate::lint::rule::Severity;
use crate::lint::rules::syntax::*;
use crate::lint::run::Run;

pub(super) fn check(run: &mut Run<'_>) {
    for index in 0..run.documents.len() {
        for defect in &run.documents[index].defects {
            defect_of(run, index, defect);
        }
    }
    run.each(|run, index, item| {
        if is_line_of_settings(&run.documents[item.document], item) {
            value_as_written(run, index, item);
        }
        key_as_written(run, index, item);
    });
}

/// Whether it is read by systemd-sysctl or procps, where quotes and comments behind a value are none.
fn is_line_of_settings(document: &Document, item: &Item<'_>) -> bool {
    match item.setting.means {
        Means::Written { .. } => true,
        Means::File => matches!(document.format, Format::SysctlD | Format::Ufw),
        _ => false,
    }
}

fn defect_of(run: &mut Run<'_>, index: usize, defect: &Defect) {
    let text = run.text(index);
    let shown = |span: Span| {
        let line = span.of(text).trim();
        let short: String = line.chars().take(40).collect();
        if short.len() < line.len() { format!("{short}…") } else { short }
    };
    match &defect.kind {
        DefectKind::NotASetting => {
            let line = defect.span.of(text);
            let finding = run.say_at(&NOT_A_SETTING, index, defect.span, "this line is no setting: there is no `=`");
            finding.help("both appliers skip it and go on with the next line; write `key = value`");
            // `key value` and `key: value` are clear enough to mend.
            let parts = line.split_once(':').or_else(|| line.split_once([' ', '\t']));
            if let Some((key, value)) = parts.filter(|(key, value)| is_plain_key(key) && !value.trim().is_empty()) {
                finding.replace("put `=` between", defect.span, format!("{} = {}", key.trim(), value.trim()));
            }
        }
        DefectKind::Command => {
            let line = defect.span.of(text);
            let finding = run.say_at(
                &COMMAND,
                index,
                defect.span,
                format!("`{}` is a command, not a setting", shown(defect.span)),
            );
            finding.help("a settings file is not run; write the setting alone");
            if let Some(settings) = settings_of_command(line) {
                finding.replace("keep only the setting", defect.span, settings);
            }
        }
        DefectKind::Section => {
            let line = whole_line(&run.documents[index], defect.span);
            let finding = run.say_at(&SECTION, index, defect.span, "a settings file has no sections");
            finding.help("sections belong in tuned profiles; here the line is skipped");
            finding.replace("take the line out", line, "");
        }
        DefectKind::EmptyKey => {
            run.say_at(&EMPTY, index, defect.span, "there is no key before `=`");
        }
        DefectKind::EmptyValue => {
            run.say_at(&EMPTY, index, defect.span, "there is no value behind `=`");
        }
        DefectKind::Joined => {
            let settings = run.documents[index]
                .settings
                .iter()
                .find(|s| s.value_span.start <= defect.span.start && defect.span.end <= s.value_span.end);
            let span = settings.map_or(defect.span, |s| s.span);
            let line = span.of(text);
            let parts: Vec<_> = line.split(';').map(str::trim).filter(|part| !part.is_empty()).collect();
            let finding = run.say_at(
                &JOINED,
                index,
                defect.span,
                "a line is one setting: this is taken for a part of the value before it",
            );
            finding.help("write each setting on a line of its own").replace("one line each", span, parts.join("\n"));
        }
        DefectKind::HiddenCharacter(c) => {
            let message = format!("U+{:04X} is invisible and becomes a part of the key or value", u32::from(*c));
            let c = *c;
            let replacement =
                if matches!(c, '\u{a0}' | '\u{3000}' | '\u{2028}'..='\u{2029}' | '\u{202f}') { " " } else { "" };
            // All of the same line at once: they come in groups.
            let document = &run.documents[index];
            let line = document.source.line(document.position(defect.span).line);
            let edits = line
                .of(text)
                .char_indices()
                .filter(|(_, c)| super::is_invisible(*c))
                .map(|(at, c)| {
                    let keeps = matches!(c, '\u{a0}' | '\u{3000}' | '\u{202f}');
                    let span = Span::new(line.start + at, line.start + at + c.len_utf8());
                    Edit { span, text: if keeps { " ".to_owned() } else { String::new() } }
                })
                .collect::<Vec<_>>();
            let fix = if edits.is_empty() {
                Fix {
                    title: "take it out".to_owned(),
                    edits: vec![Edit { span: defect.span, text: replacement.to_owned() }],
                }
            } else {
                Fix { title: "take it out".to_owned(), edits }
            };
            run.say_at(&HIDDEN, index, defect.span, message).fix = Some(fix);
        }
        DefectKind::Encoding(name) => {
            let finding =
                run.say_at(&ENCODING, index, defect.span, format!("the file is not UTF-8, and was read as {name}"));
            if *name == "UTF-16" {
                finding
                    .severity(Severity::Error)
                    .help("the appliers read bytes: nothing of it is applied; save it as UTF-8");
            } else {
                finding.help("save it as UTF-8");
            }
        }
        DefectKind::Binary => {
            run.say_at(&UNREADABLE, index, defect.span, "this is no text; nothing of it was judged")
                .help("is it the right file? UTF-16 without a byte order mark has to be saved as UTF-8 first");
        }
        DefectKind::Yaml(what) => {
            run.say_at(&BROKEN, index, defect.span, format!("the YAML can't be read from here on: {what}"))
                .help("what stands before was judged; a template has to be rendered first");
        }
        DefectKind::Unfinished(what) => {
            run.say_at(&BROKEN, index, defect.span, format!("{what} starts here and doesn't end"));
        }
        DefectKind::LongLine => {
            run.say_at(
                &LONG_LINE,
                index,
                defect.span,
                "the line is longer than 1 MiB: systemd-sysctl stops reading here",
            );
        }
        DefectKind::LoneCarriageReturn => {
            run.say_at(
                &LINE_END,
                index,
                defect.span,
                "a carriage return inside a line: systemd-sysctl starts a new line here, procps does not",
            )
            .replace("start a new line", defect.span, "\n");
        }
    }
}

fn is_plain_key(key: &str) -> bool {
    let key = key.trim();
    key.contains('.') && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b))
}

/// The settings of a `sysctl -w` line, one a line.
fn settings_of_command(line: &str) -> Option<String> {
    let rest = line.trim().trim_start_matches("sudo ").trim();
    let rest = rest.strip_prefix("sysctl ").or_else(|| rest.strip_prefix("/sbin/sysctl "))?.trim_start();
    let rest = rest.strip_prefix("-w ").unwrap_or(rest).trim();
    let rest = rest.trim_matches(['"', '\'']);
    let (key, value) = rest.split_once('=')?;
    let value = value.trim().trim_matches(['"', '\'']);
    (is_plain_key(key) && !value.contains('=')).then(|| format!("{} = {}", key.trim(), value))
}

fn whole_line(document: &Document, span: Span) -> Span {
    document.source.line(document.position(span).line)
}

fn value_as_written(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let setting = item.setting;
    let raw = setting.value.as_str();
    let span = setting.value_span;
    if let Some(quote) = raw.chars().next().filter(|c| matches!(c, '"' | '\'' | '“' | '”' | '‘' | '’')) {
        run.say(&QUOTED, index, item, format!("`{quote}` becomes a part of the value: the kernel refuses it"))
            .help("quotes have no meaning in a settings file")
            .replace("without quotes", span, raw.trim_matches(['"', '\'', '“', '”', '‘', '’']).trim());
        return;
    }
    if let Some(rest) = raw.strip_prefix(['>', '=']) {
        let what = if raw.starts_with('>') { "`=>` (only raise) is tuned's" } else { "`==` compares" };
        run.say(&OPERATOR, index, item, format!("{what}; here only `=` parts key and value")).replace(
            "with `=`",
            span,
            rest.trim(),
        );
    }
    let comment = raw.find(" #").or_else(|| raw.find("\t#")).or_else(|| raw.find('#').filter(|_| is_numeric(item)));
    let Some(at) = comment.filter(|_| !setting.is_dynamic) else { return };
    let behind = raw[at..].trim();
    let blanks = raw[at..].len() - raw[at..].trim_start().len();
    let is_text = !is_numeric(item);
    let message = if is_text {
        format!("`{behind}` becomes a part of the value: the kernel looks for a name that holds it (ENOENT)")
    } else {
        format!("`{behind}` is a part of the value: the kernel reads the numbers before it and drops the rest")
    };
    let text = run.text(item.document);
    let line = whole_line(&run.documents[item.document], setting.span);
    let indent = &text[line.start..setting.span.start.max(line.start)];
    let indent = if indent.trim().is_empty() { indent } else { "" };
    let moved = format!("{behind}\n{indent}{}", text[setting.span.start..span.start].to_owned() + raw[..at].trim());
    let finding = run.say_about(&INLINE_COMMENT, index, item, span.tail(at + blanks), message);
    finding.severity(if is_text { Severity::Error } else { Severity::Warning });
    finding.help("a comment has a line of its own").replace("put the comment on its own line", setting.span, moved);
}

fn is_numeric(item: &Item<'_>) -> bool {
    match &item.found {
        Some(found) => found.knob.kind.is_numeric(),
        None => item.value.split_whitespace().next().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit())),
    }
}

fn key_as_written(run: &mut Run<'_>, index: usize, item: &Item<'_>) {
    let key = item.setting.key.as_str();
    if matches!(item.setting.means, Means::File | Means::Written { .. } | Means::Table | Means::CommandLine) {
        let path = key.strip_prefix('/').unwrap_or(key);
        if let Some(rest) = path.strip_prefix("proc/sys/").or_else(|| path.strip_prefix("proc.sys.")) {
            run.say_about(
                &PROC_PATH,
                index,
                item,
                item.setting.key_span,
                "keys are relative to /proc/sys: this one is not there",
            )
            .replace("without it", item.setting.key_span, rest);
        }
    }
    if let Some(rest) = key.strip_suffix([':', '+', '>', '<', '?', '!']) {
        run.say_about(
            &OPERATOR,
            index,
            item,
            item.setting.key_span,
            format!("`{}=` is no operator here; the sign becomes a part of the key", &key[rest.len()..]),
        )
        .replace("with `=`", item.setting.key_span, rest.trim_end());
    }
}
