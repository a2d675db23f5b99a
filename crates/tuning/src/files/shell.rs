//! Settings out of shell scripts.

use super::shell_words::{Command, Pipeline, Word, script};
use super::{DefectKind, Found, Means, Setting, Span, is_dynamic, is_key_like, sysctl_d};

/// Reads every way in which a script sets sysctls.
pub(super) fn read(found: &mut Found<'_>, region: Span) {
    let script = script(found.text, region);
    found.document.comments.extend(script.comments);
    found.document.defects.extend(script.defects);
    for pipeline in &script.pipelines {
        read_pipeline(found, pipeline);
    }
}

fn read_pipeline(found: &mut Found<'_>, pipeline: &Pipeline) {
    let mut target = None;
    for command in pipeline {
        let words = without_prefixes(&command.words);
        let name = words.first().map_or("", |word| base(&word.text));
        if name == "tee" {
            let appends = words.iter().any(|word| matches!(word.text.as_str(), "-a" | "--append"));
            let file = words.iter().skip(1).find(|word| !word.text.starts_with('-'));
            target = file.map(|file| (file.text.clone(), appends)).or(target);
        } else if let Some((file, appends)) = command.writes.last() {
            target = Some((file.text.clone(), *appends));
        }
    }
    let loads = pipeline.iter().any(loads_standard_input);
    for command in pipeline {
        let words = without_prefixes(&command.words);
        let name = words.first().map_or("", |word| base(&word.text));
        match name {
            "sysctl" => read_sysctl(found, words),
            "docker" | "podman" | "nerdctl" => read_container(found, words),
            "echo" | "printf" => {
                if let Some((file, appends)) = &target {
                    read_echo(found, words, file, *appends);
                } else if loads {
                    read_arguments(found, words, &Means::Command);
                }
            }
            _ => {}
        }
        for body in &command.heredocs {
            match &target {
                Some((file, appends)) => read_body(found, *body, file, *appends),
                None if loads => sysctl_d::read(found, *body, &Means::Command),
                None if matches!(name, "sh" | "bash" | "ssh") => read(found, *body),
                None => {}
            }
        }
    }
}

/// Words without what may stand before a command: `sudo`, `then`, `VARIABLE=value`.
fn without_prefixes(words: &[Word]) -> &[Word] {
    const PREFIXES: [&str; 16] = [
        "sudo", "doas", "then", "do", "else", "if", "elif", "while", "!", "time", "nohup", "env", "busybox", "{",
        "exec", "command",
    ];
    let mut rest = words;
    let mut after_prefix = false;
    while let Some(word) = rest.first() {
        let text = word.text.as_str();
        let is_assignment = text
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        if PREFIXES.contains(&base(text)) || is_assignment || text == "$" {
            after_prefix = true;
        } else if !(after_prefix && text.starts_with('-')) {
            break;
        }
        rest = &rest[1..];
    }
    rest
}

fn base(command: &str) -> &str {
    command.rsplit('/').next().unwrap_or(command)
}

/// `sysctl -p -`, `sysctl -p /dev/stdin`, `sysctl --load=-`.
fn loads_standard_input(command: &Command) -> bool {
    let words = without_prefixes(&command.words);
    words.first().is_some_and(|word| base(&word.text) == "sysctl")
        && words
            .iter()
            .any(|word| matches!(word.text.as_str(), "-" | "/dev/stdin" | "-p-" | "--load=-" | "-p/dev/stdin"))
}

fn read_sysctl(found: &mut Found<'_>, words: &[Word]) {
    for (index, word) in words.iter().enumerate().skip(1) {
        let text = word.text.trim_start();
        if text.starts_with("--") || (text.starts_with('-') && !is_key_like(text.split('=').next().unwrap_or(""))) {
            continue;
        }
        if let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.trim().is_empty()) {
            let ignores_failure = key.starts_with('-');
            push(found, word, key.trim_start_matches('-').trim(), value.trim(), ignores_failure, &Means::Command);
        } else if words.get(index + 1).is_some_and(|next| next.text.starts_with('=')) && is_key_like(text) {
            // `sysctl -w net.core.somaxconn = 1`: three arguments, none of which is an assignment.
            let end = words.get(index + 2).unwrap_or(word).span.end;
            found.defect(Span::new(word.span.start, end), DefectKind::NotASetting);
        }
    }
}

/// `docker run --sysctl key=value` and `--sysctl=key=value`.
fn read_container(found: &mut Found<'_>, words: &[Word]) {
    let mut expects = false;
    for word in words {
        let text = word.text.as_str();
        let assignment = if expects { Some(text) } else { text.strip_prefix("--sysctl=") };
        expects = text == "--sysctl";
        if let Some((key, value)) = assignment.and_then(|a| a.split_once('=')).filter(|(key, _)| is_key_like(key)) {
            push(found, word, key, value, false, &Means::Container);
        }
    }
}

/// Adds what a word says, with places as exact as the quoting allows.
fn push(found: &mut Found<'_>, word: &Word, key: &str, value: &str, ignores_failure: bool, means: &Means) {
    let raw = word.span.of(found.text);
    let key_span = raw.find(key).map_or(word.span, |at| word.span.part(at, key.len()));
    let value_span = match found.text[key_span.end.min(word.span.end)..word.span.end].find('=') {
        Some(at) => {
            let start = key_span.end + at + 1;
            // The quote that ends the word belongs to the value only where the value opened it.
            let opened = raw.starts_with(['"', '\'']) && raw.len() > 1 && raw.ends_with(['"', '\'']);
            Span::new(start, word.span.end - usize::from(opened && start < word.span.end)).trimmed(found.text)
        }
        None => word.span,
    };
    found.document.settings.push(Setting {
        key: key.to_owned(),
        value: value.to_owned(),
        key_span,
        value_span,
        span: word.span,
        ignores_failure,
        only_raises: false,
        is_dynamic: is_dynamic(value) || is_dynamic(key),
        means: means.clone(),
    });
}

/// `echo TEXT > FILE`.
fn read_echo(found: &mut Found<'_>, words: &[Word], file: &str, appends: bool) {
    if let Some(at) = file.find("/proc/sys/") {
        let key = &file[at + "/proc/sys/".len()..];
        let arguments = arguments(words);
        if let (Some(first), Some(last), false) = (arguments.first(), arguments.last(), key.is_empty()) {
            let value_span = Span::new(first.span.start, last.span.end);
            let value = arguments.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            let command = words.first().map_or(value_span.start, |word| word.span.start);
            let after = found.text[value_span.end..].find(file).map_or(value_span.end, |at| value_span.end + at);
            let key_start = (after + at + "/proc/sys/".len()).min(found.text.len());
            let key_span = Span::new(key_start, (key_start + key.len()).min(found.text.len()));
            let is_placed = key_span.of(found.text) == key;
            found.document.settings.push(Setting {
                key: key.to_owned(),
                value: value.trim().to_owned(),
                key_span: if is_placed { key_span } else { value_span },
                value_span,
                span: Span::new(command, if is_placed { key_span.end } else { value_span.end }),
                ignores_failure: false,
                only_raises: false,
                is_dynamic: is_dynamic(&value) || is_dynamic(key),
                means: Means::Command,
            });
        }
    } else if is_sysctl_file(file) || is_dynamic(file) {
        read_arguments(found, words, &Means::Written { target: file.to_owned(), appends });
    }
}

/// The arguments of `echo` without its options.
fn arguments(words: &[Word]) -> &[Word] {
    let mut rest = words.get(1..).unwrap_or(&[]);
    while rest.first().is_some_and(|word| matches!(word.text.as_str(), "-e" | "-n" | "-en" | "-ne" | "-E" | "--")) {
        rest = &rest[1..];
    }
    rest
}

/// What `echo` or `printf` prints, as lines of a settings file.
fn read_arguments(found: &mut Found<'_>, words: &[Word], means: &Means) {
    let arguments = arguments(words);
    let region = match arguments {
        [] => return,
        [one] => one.inner(found.text),
        [first, .., last] => Span::new(first.span.start, last.span.end),
    };
    // Line ends as `\n` are two characters here, which `echo -e` and `printf` make one.
    let mut start = region.start;
    for line in region.of(found.text).split_inclusive('\n') {
        let line_end = start + line.len();
        let mut rest = start;
        for part in line.split("\\n") {
            let span = Span::new(rest, rest + part.len());
            rest = (span.end + 2).min(line_end);
            read_text_line(found, span, means);
        }
        start = line_end;
    }
}

fn read_body(found: &mut Found<'_>, body: Span, file: &str, appends: bool) {
    let is_sysctl = is_sysctl_file(file);
    if !is_sysctl && !is_dynamic(file) {
        return;
    }
    let means = Means::Written { target: file.to_owned(), appends };
    let mut start = body.start;
    for line in body.of(found.text).split_inclusive('\n') {
        let span = Span::new(start, start + line.len());
        start = span.end;
        if is_sysctl { read_written_line(found, span, &means) } else { read_text_line(found, span, &means) }
    }
}

/// A line of a file whose name says that it holds settings.
fn read_written_line(found: &mut Found<'_>, span: Span, means: &Means) {
    let line = span.of(found.text);
    if is_dynamic(line) && !line.contains('=') {
        return;
    }
    sysctl_d::read_line(found, span, means);
}

/// A line of a text that may hold settings: only such lines count.
fn read_text_line(found: &mut Found<'_>, span: Span, means: &Means) {
    let line = span.of(found.text).trim();
    if line.split_once('=').is_some_and(|(key, _)| is_key_like(key.trim())) || line.starts_with('#') {
        sysctl_d::read_line(found, span, means);
    }
}

fn is_sysctl_file(file: &str) -> bool {
    file.contains("sysctl") && !file.contains("/proc/sys")
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Format};
    use super::*;

    fn read(text: &str) -> Document {
        Document::parse("x.sh", text.as_bytes(), Some(Format::Shell))
    }

    fn seen(text: &str) -> Vec<String> {
        let document = read(text);
        assert!(document.defects.is_empty(), "{:?}", document.defects);
        document
            .settings
            .iter()
            .map(|s| {
                let place = document.position(s.key_span);
                assert_eq!(s.key_span.of(document.source.text()), s.key);
                format!("{}:{} {}={}", place.line, place.column, s.key, s.value)
            })
            .collect()
    }

    #[test]
    fn heredocs_are_read_where_they_are_written_to_a_settings_file() {
        assert_eq!(
            seen("cat > /etc/sysctl.d/9.conf <<'EOF'\nnet.a = 1\n# c\nEOF\ncat <<E >/etc/x\nnet.b=1\nE\n"),
            ["2:1 net.a=1"]
        );
        assert_eq!(seen("sudo tee -a /etc/sysctl.conf <<-EOF\n\tnet.a=1 2\n\tEOF\n"), ["2:2 net.a=1 2"]);
        assert_eq!(seen("cat <<EOF | sudo tee /etc/sysctl.d/x.conf >/dev/null\nnet.a=1\nEOF\n"), ["2:1 net.a=1"]);
        assert_eq!(seen("sysctl -p - <<EOF\nnet.a=1\nEOF\n"), ["2:1 net.a=1"]);
        assert_eq!(seen("cat >>\"$CONF\" <<EOF\nnet.a=1\nsome text\nEOF\n"), ["2:1 net.a=1"]);
    }

    #[test]
    fn echoed_lines_and_writes_to_proc_are_read() {
        assert_eq!(seen("echo net.a=1 >> /etc/sysctl.conf\n"), ["1:6 net.a=1"]);
        assert_eq!(seen("echo 'net.a = 1 2' | sudo tee -a /etc/sysctl.conf\n"), ["1:7 net.a=1 2"]);
        assert_eq!(seen("echo -e \"\\nnet.a=1\\nnet.b=2\" >> /etc/sysctl.conf\n"), ["1:12 net.a=1", "1:21 net.b=2"]);
        assert_eq!(seen("echo \"\nnet.a=1\nnet.b=2\" >>/etc/sysctl.conf\n"), ["2:1 net.a=1", "3:1 net.b=2"]);
        assert_eq!(seen("echo 1 > /proc/sys/net/ipv4/ip_forward\n"), ["1:20 net/ipv4/ip_forward=1"]);
        assert_eq!(seen("echo \"1 2\" | tee /proc/sys/net/ipv4/x\n"), ["1:28 net/ipv4/x=1 2"]);
        assert_eq!(seen("echo net.a=1\necho 1 > /sys/class/net/eth0/x\n"), Vec::<String>::new());
    }

    #[test]
    fn sysctl_commands_are_read_in_every_way_of_quoting() {
        for (text, wanted) in [
            ("sudo sysctl -w net.a=1 net.b=2", vec!["1:16 net.a=1", "1:24 net.b=2"]),
            ("if true; then /sbin/sysctl -q -w net.a=\"1 2\" >/dev/null 2>&1; fi", vec!["1:34 net.a=1 2"]),
            ("sysctl -w \"net.a = 1 2 3\"", vec!["1:12 net.a=1 2 3"]),
            ("X=1 sysctl net.a=1 || true # net.b=2", vec!["1:12 net.a=1"]),
            ("sysctl -p /etc/x.conf; sysctl --system", vec![]),
            ("docker run --sysctl net.a=1 --sysctl=net.b=2 image c=3", vec!["1:21 net.a=1", "1:38 net.b=2"]),
        ] {
            assert_eq!(seen(text), wanted, "{text}");
        }
    }

    #[test]
    fn blanks_around_the_equals_sign_of_a_command_are_a_defect() {
        let document = read("sysctl -w net.core.somaxconn = 1\n");
        assert_eq!((document.settings.len(), document.defects.len()), (0, 1));
        assert_eq!(document.defects[0].kind, DefectKind::NotASetting);
        assert_eq!(document.defects[0].span.of(document.source.text()), "net.core.somaxconn = 1");
    }

    #[test]
    fn variables_make_a_value_unknown_and_an_open_heredoc_is_read_to_the_end() {
        let document = read("sysctl -w net.a=$VALUE net.b=$(nproc)\ncat >/etc/sysctl.d/x.conf <<EOF\nnet.c = 1\n");
        assert_eq!(document.settings.iter().map(|s| s.is_dynamic).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(document.defects[0].kind, DefectKind::Unfinished("a heredoc"));
    }
}
