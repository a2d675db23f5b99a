//! Settings out of YAML: `sysctls:` of Docker Compose and Kubernetes, Ansible's `sysctl` module and tables of variables,
//! cloud-init's `write_files` and `runcmd`, scripts inside any of them.

use super::yaml_tree::{Node, Value, parse};
use super::{Comment, DefectKind, Found, Means, Setting, Span, is_dynamic, is_key_like, shell, sysctl_d};

/// Reads every document of the file.
pub(super) fn read(found: &mut Found<'_>) {
    let text = found.text;
    comments(found);
    let (documents, error) = parse(text);
    for document in &documents {
        walk(found, document, None, &Means::Table);
    }
    if let Some((span, what)) = error {
        found.defect(span, DefectKind::Yaml(what));
    }
}

/// Lines that are comments, and comments behind values; a `#` in a block of text is taken for one too, which does no harm.
fn comments(found: &mut Found<'_>) {
    let mut start = 0;
    for line in found.text.split_inclusive('\n') {
        let at = if line.trim_start().starts_with('#') { line.find('#') } else { line.find(" #").map(|at| at + 1) };
        if let Some(at) = at {
            let span = Span::new(start + at, start + line.len()).trimmed(found.text);
            found.document.comments.push(Comment { span, is_alone: line[..at].trim().is_empty() });
        }
        start += line.len();
    }
}

fn walk(found: &mut Found<'_>, node: &Node, under: Option<&str>, means: &Means) {
    match &node.value {
        Value::Nothing => {}
        Value::Scalar { text, is_block } => scalar(found, node, text, *is_block, under, means),
        Value::List(list) => {
            for item in list {
                walk(found, item, under, means);
            }
        }
        Value::Map(map) => read_map(found, map, means),
    }
}

fn read_map(found: &mut Found<'_>, map: &[(Node, Node)], means: &Means) {
    let get = |names: &[&str]| {
        map.iter().find(|(key, _)| key.scalar().is_some_and(|k| names.contains(&k))).map(|(_, value)| value)
    };
    // `name: …` and `value: …` side by side: Ansible's module, Kubernetes' list, rows of a table.
    let named = get(&["name", "key", "sysctl", "param"]).filter(|name| name.scalar().is_some_and(is_key_like));
    if let (Some(name), Some(value)) = (named, get(&["value", "val"])) {
        let is_absent = get(&["state"]).and_then(Node::scalar) == Some("absent");
        if !is_absent {
            push(
                found,
                name,
                value,
                Span::new(name.span.start.min(value.span.start), name.span.end.max(value.span.end)),
                means,
            );
        }
        return;
    }
    // A file's name decides what its text is.
    let file = get(&["path", "dest", "destination"]).and_then(Node::scalar).unwrap_or("").to_owned();
    for (key, value) in map {
        let name = key.scalar().unwrap_or("");
        if is_key_like(name) && value.scalar().is_some() {
            push(found, key, value, Span::new(key.span.start, value.span.end), means);
            continue;
        }
        let is_settings = |file: &str| file.contains("sysctl") && !file.contains("/proc/");
        let is_file_text = matches!(name, "content" | "contents" | "inline" | "block" | "line") && is_settings(&file);
        if (is_file_text || (is_settings(name) && name.ends_with(".conf")))
            && let Some(text) = value.scalar()
        {
            let target = if file.is_empty() { name.to_owned() } else { file.clone() };
            let appends = matches!(name, "line" | "block");
            read_text(found, value, text, &Means::Written { target, appends });
            continue;
        }
        let inner = if name == "sysctls" { &Means::Container } else { means };
        walk(found, value, Some(name), inner);
    }
}

fn scalar(found: &mut Found<'_>, node: &Node, text: &str, is_block: bool, under: Option<&str>, means: &Means) {
    // `- net.core.somaxconn=1024` under `sysctls:`.
    if let Some((key, value)) = text.split_once('=').filter(|(key, _)| is_key_like(key.trim()) && !text.contains('\n'))
    {
        let raw = node.span.of(found.text);
        let equals = raw.find('=').unwrap_or(0);
        let open = usize::from(raw.starts_with(['"', '\'']));
        let close = usize::from(open == 1 && raw.len() > 1 && raw.ends_with(['"', '\'']));
        add(
            found,
            Setting {
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
                key_span: node.span.part(open, equals.max(open) - open).trimmed(found.text),
                value_span: Span::new(node.span.start + equals + 1, node.span.end - close).trimmed(found.text),
                span: node.span,
                ignores_failure: false,
                only_raises: false,
                is_dynamic: is_dynamic(value),
                means: means.clone(),
            },
        );
        return;
    }
    let is_module = under.is_some_and(|name| name == "sysctl" || name.ends_with(".sysctl"));
    if is_module && text.contains("name=") {
        free_form(found, node, text, means);
        return;
    }
    if text.contains("sysctl") || text.contains("/proc/sys/") {
        // Escapes of double quotes are not the shell's, but the places stay right where there are none.
        let region = if is_block { block(found.text, node.span) } else { inner(found.text, node.span) };
        let before = found.document.settings.len();
        let comments = found.document.comments.len();
        shell::read(found, region);
        // Prose that mentions sysctl is no script: its open quotes are not defects.
        if found.document.settings.len() == before {
            found.document.defects.retain(|defect| {
                !(defect.span.start >= region.start
                    && matches!(defect.kind, DefectKind::Unfinished(_) | DefectKind::NotASetting))
            });
        }
        found.document.comments.truncate(comments);
    }
}

/// Ansible's old way: `sysctl: name=net.core.somaxconn value=1024 state=present`.
fn free_form(found: &mut Found<'_>, node: &Node, text: &str, means: &Means) {
    let field = |name: &str| {
        text.split_once(name).map(|(_, rest)| match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next().unwrap_or("").to_owned(),
            _ => rest.split_whitespace().next().unwrap_or("").to_owned(),
        })
    };
    let (Some(key), Some(value)) = (field("name="), field("value=")) else { return };
    if text.contains("state=absent") || !is_key_like(&key) {
        return;
    }
    let raw = node.span.of(found.text);
    let place = |part: &str, from: usize| {
        raw.get(from..).and_then(|rest| rest.find(part)).map_or(node.span, |at| node.span.part(from + at, part.len()))
    };
    let key_span = place(&key, 0);
    let value_span = place(&value, raw.find("value=").map_or(0, |at| at + "value=".len()));
    add(
        found,
        Setting {
            is_dynamic: is_dynamic(&value),
            key,
            value,
            key_span,
            value_span,
            span: node.span,
            ignores_failure: false,
            only_raises: false,
            means: means.clone(),
        },
    );
}

/// Text that will be a settings file.
fn read_text(found: &mut Found<'_>, node: &Node, text: &str, means: &Means) {
    if let Value::Scalar { is_block: true, .. } = node.value {
        sysctl_d::read(found, block(found.text, node.span), means);
    } else if !text.contains('\n') {
        sysctl_d::read(found, inner(found.text, node.span), means);
    }
}

/// The lines of a block of text, whose span may start at its `|`.
fn block(text: &str, span: Span) -> Span {
    let raw = span.of(text);
    let first_line = raw.find('\n').map_or(raw.len(), |newline| newline + 1);
    let header = if raw.starts_with(['|', '>']) { first_line } else { 0 };
    Span::new(span.start + header, span.end)
}

/// A scalar without its quotes.
fn inner(text: &str, span: Span) -> Span {
    let raw = span.of(text);
    let is_quoted = raw.len() >= 2 && ['"', '\''].iter().any(|quote| raw.starts_with(*quote) && raw.ends_with(*quote));
    if is_quoted { Span::new(span.start + 1, span.end - 1) } else { span }
}

fn push(found: &mut Found<'_>, key: &Node, value: &Node, span: Span, means: &Means) {
    let (Some(name), Some(text)) = (key.scalar(), value.scalar()) else { return };
    add(
        found,
        Setting {
            key: name.trim().to_owned(),
            value: text.trim().to_owned(),
            key_span: inner(found.text, key.span),
            value_span: value.span,
            span,
            ignores_failure: false,
            only_raises: false,
            is_dynamic: is_dynamic(text),
            means: means.clone(),
        },
    );
}

fn add(found: &mut Found<'_>, setting: Setting) {
    if setting.value.is_empty() {
        found.defect(setting.span, DefectKind::EmptyValue);
    }
    found.document.settings.push(setting);
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Format};
    use super::*;

    fn read(text: &str) -> Document {
        Document::parse("x.yaml", text.as_bytes(), Some(Format::Yaml))
    }

    fn seen(text: &str) -> Vec<String> {
        let document = read(text);
        assert!(document.defects.is_empty(), "{:?}", document.defects);
        let source = document.source.text();
        document
            .settings
            .iter()
            .map(|s| {
                assert_eq!(s.key_span.of(source), s.key);
                assert!(s.value_span.of(source).contains(&s.value), "{:?} {}", s.value_span.of(source), s.value);
                let container = if s.means == Means::Container { " container" } else { "" };
                format!("{} {}={}{container}", document.position(s.key_span).line, s.key, s.value)
            })
            .collect()
    }

    #[test]
    fn compose_takes_a_map_or_a_list() {
        assert_eq!(
            seen(
                "services:\n  a:\n    sysctls:\n      net.core.somaxconn: 1024\n      net.ipv4.tcp_rmem: \"4096 1 2\"\n"
            ),
            ["4 net.core.somaxconn=1024 container", "5 net.ipv4.tcp_rmem=4096 1 2 container"]
        );
        assert_eq!(
            seen(
                "services:\n  a:\n    sysctls:\n      - net.core.somaxconn=1024\n      - 'net.ä=1'\n      - \"net.b=1 2\"\n"
            ),
            ["4 net.core.somaxconn=1024 container", "6 net.b=1 2 container"]
        );
    }

    #[test]
    fn kubernetes_lists_names_and_values_and_runs_scripts_in_init_containers() {
        assert_eq!(
            seen(
                "spec:\n  securityContext:\n    sysctls:\n    - name: net.core.somaxconn\n      value: \"1024\"\n  \
                 initContainers:\n  - name: x\n    command: [sh, -c, \"sysctl -w net.b=2\"]\n  - command:\n    - sysctl\n    - -w\n    - net.c=3\n"
            ),
            ["4 net.core.somaxconn=1024 container", "8 net.b=2", "12 net.c=3"]
        );
    }

    #[test]
    fn ansible_is_read_as_a_module_in_free_form_and_as_a_table() {
        assert_eq!(
            seen(
                "- hosts: all\n  tasks:\n  - name: buffers\n    ansible.posix.sysctl:\n      name: net.a\n      value: 1\n      state: present\n  \
                 - sysctl: name=net.b value=2 state=present\n  - sysctl: {name: net.c, value: '{{ c }}'}\n  \
                 - sysctl: {name: net.d, value: 1, state: absent}\n  vars:\n    sysctl_config:\n      net.e: 5\n"
            ),
            ["5 net.a=1", "8 net.b=2", "9 net.c={{ c }}", "13 net.e=5"]
        );
    }

    #[test]
    fn cloud_init_writes_files_and_runs_commands() {
        assert_eq!(
            seen(
                "#cloud-config\nwrite_files:\n- path: /etc/sysctl.d/9.conf\n  content: |\n    net.a = 1\n    # comment\n    net.b=2\n\
                 - path: /etc/motd\n  content: |\n    net.c = 3\nruncmd:\n- sysctl -w net.d=4\n- [sysctl, -w, net.e=5]\n"
            ),
            ["5 net.a=1", "7 net.b=2", "12 net.d=4", "13 net.e=5"]
        );
    }

    #[test]
    fn what_stands_before_broken_yaml_is_read_and_the_place_is_named() {
        let document = read("sysctls:\n  net.a: 1\n  x: [\n");
        assert_eq!(document.settings.len(), 1);
        assert!(matches!(document.defects[0].kind, DefectKind::Yaml(_)), "{:?}", document.defects);
        let nested = |depth| read(&format!("x: {}1{}\nnet.a: 1\n", "[".repeat(depth), "]".repeat(depth)));
        assert_eq!(nested(100).settings.len(), 1);
        assert!(nested(100_000).settings.len() <= 1);
    }
}
