//! Files that set sysctls, read into settings with their places. Pure: bytes in, [`Document`] out.
//!
//! | module | reads |
//! | --- | --- |
//! | [`sysctl_d`] | `sysctl.d(5)`, `/etc/sysctl.conf`, `/etc/ufw/sysctl.conf`, and such text inside other files |
//! | `tuned` | tuned profiles |
//! | `shell` | scripts: heredocs, `echo … >>`, `tee`, `echo > /proc/sys/…`, `sysctl -w` |
//! | `yaml` | Ansible, cloud-init, Docker Compose, Kubernetes |
//! | `command_line` | the kernel's command line: `sysctl.key=value` |
//!
//! Nothing here fails: whatever a reader can't make sense of becomes a [`Defect`] with a place, and the rest is read.

mod command_line;
mod detect;
mod shell;
mod shell_words;
pub mod sysctl_d;
mod text;
mod tuned;
mod yaml;
mod yaml_tree;

pub use detect::detect;
pub use text::{Position, Source, Span};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `sysctl.d(5)`.
    SysctlD,
    /// `/etc/ufw/sysctl.conf`: the same grammar, applied by ufw.
    Ufw,
    /// A tuned profile.
    Tuned,
    /// A shell script.
    Shell,
    /// YAML of some kind.
    Yaml,
    /// A kernel command line.
    CommandLine,
}

impl Format {
    /// By the name that users write.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// The name that users write.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, format)| *format == self).map_or("sysctl.d", |(name, _)| name)
    }

    /// Names and formats.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("sysctl.d", Self::SysctlD),
        ("ufw", Self::Ufw),
        ("tuned", Self::Tuned),
        ("shell", Self::Shell),
        ("yaml", Self::Yaml),
        ("cmdline", Self::CommandLine),
    ];
}

/// How a setting reaches the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Means {
    /// A line of a file that somebody applies at boot.
    File,
    /// A line that a script writes into `target`; `appends`: with `>>`, so that running it twice leaves it twice.
    Written {
        /// The file, as the script names it.
        target: String,
        /// Whether what the file held stays.
        appends: bool,
    },
    /// `sysctl -w` or `echo > /proc/sys/…`: now, and gone after a reboot.
    Command,
    /// A container's or a pod's own namespace.
    Container,
    /// A playbook's task or a table in YAML.
    Table,
    /// The kernel's command line: before any file.
    CommandLine,
}

/// One assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// As written, without `-` and blanks: `net.ipv4.tcp_rmem`, `net/ipv4/tcp_rmem`.
    pub key: String,
    /// As its reader takes it: without blanks around, and without quotes where quotes are syntax.
    pub value: String,
    /// The key's place.
    pub key_span: Span,
    /// The value's place, quotes included.
    pub value_span: Span,
    /// All of the line, list item or command, without the line's end.
    pub span: Span,
    /// `-key = value`: a refusal is no failure.
    pub ignores_failure: bool,
    /// tuned's `>`: only where it is more than what the kernel has.
    pub only_raises: bool,
    /// The value holds a variable or a template: it isn't known.
    pub is_dynamic: bool,
    /// How it reaches the kernel.
    pub means: Means,
}

/// What could not be read, or not as it was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// Where.
    pub span: Span,
    /// What.
    pub kind: DefectKind,
}

/// Kinds of [`Defect`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefectKind {
    /// A line without `=`.
    NotASetting,
    /// A command as a line of a settings file.
    Command,
    /// `[section]` in a file without sections.
    Section,
    /// Nothing before `=`.
    EmptyKey,
    /// Nothing behind `=`.
    EmptyValue,
    /// Several settings joined by `;`: the value goes on to the line's end.
    Joined,
    /// A character that can't be seen, before or in the key or in the value.
    HiddenCharacter(char),
    /// The file isn't UTF-8; what it is taken for.
    Encoding(&'static str),
    /// The file is no text: nothing of it was read.
    Binary,
    /// YAML that is none, from here on not read.
    Yaml(String),
    /// A heredoc without its end, or a quote that stays open.
    Unfinished(&'static str),
    /// A line of more than 1 MiB: systemd-sysctl stops reading there.
    LongLine,
    /// A carriage return inside a line: systemd-sysctl starts a new line there, procps does not.
    LoneCarriageReturn,
}

/// Text in a file that is an exclusion from globs: `-net.ipv4.conf.eth0.rp_filter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// The key or pattern, as written.
    pub key: String,
    /// Its line.
    pub span: Span,
}

/// A comment, which may hold a suppression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Its place, `#` included.
    pub span: Span,
    /// Whether it has its line for itself.
    pub is_alone: bool,
}

/// A file that was read.
#[derive(Debug, Clone)]
pub struct Document {
    /// The name that messages use.
    pub name: String,
    /// What it was read as.
    pub format: Format,
    /// Its text.
    pub source: Source,
    /// Every assignment, in the order of the file.
    pub settings: Vec<Setting>,
    /// Exclusions from globs.
    pub exclusions: Vec<Exclusion>,
    /// Comments.
    pub comments: Vec<Comment>,
    /// What could not be read.
    pub defects: Vec<Defect>,
}

impl Document {
    /// Reads `bytes`. `name` is for messages and, where `format` is `None`, tells what the file is, together with its text.
    pub fn parse(name: &str, bytes: &[u8], format: Option<Format>) -> Self {
        let (source, defects) = Source::decode(bytes);
        let format = format.unwrap_or_else(|| detect(name, source.text()));
        let mut document = Self {
            name: name.to_owned(),
            format,
            source,
            settings: Vec::new(),
            exclusions: Vec::new(),
            comments: Vec::new(),
            defects,
        };
        if document.defects.iter().any(|defect| defect.kind == DefectKind::Binary) {
            return document;
        }
        let text = document.source.text().to_owned();
        let all = Span::new(0, text.len());
        let mut found = Found { text: &text, document: &mut document };
        match format {
            Format::SysctlD | Format::Ufw => sysctl_d::read(&mut found, all, &Means::File),
            Format::Tuned => tuned::read(&mut found),
            Format::Shell => shell::read(&mut found, all),
            Format::Yaml => yaml::read(&mut found),
            Format::CommandLine => command_line::read(&mut found),
        }
        document.settings.sort_by_key(|setting| setting.span.start);
        document.defects.sort_by_key(|defect| defect.span.start);
        document
    }

    /// The place of a span's start.
    pub fn position(&self, span: Span) -> Position {
        self.source.position(span.start)
    }
}

/// Where readers put what they find.
struct Found<'t> {
    text: &'t str,
    document: &'t mut Document,
}

impl Found<'_> {
    fn defect(&mut self, span: Span, kind: DefectKind) {
        self.document.defects.push(Defect { span, kind });
    }
}

/// Whether `text` looks like a sysctl key: `net.ipv4.tcp_rmem`, `-net/ipv4/…`.
fn is_key_like(text: &str) -> bool {
    const TREES: [&str; 8] = ["net", "vm", "kernel", "fs", "dev", "user", "sunrpc", "crypto"];
    let text = text.strip_prefix('-').unwrap_or(text);
    let Some(at) = text.find(['.', '/']) else { return false };
    TREES.contains(&&text[..at])
        && text.len() > at + 1
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/*?[]@:!".contains(&b))
}

/// Whether `value` holds a shell variable or a template.
fn is_dynamic(value: &str) -> bool {
    value.contains("{{") || value.contains("{%") || value.contains('`') || {
        let mut rest = value;
        loop {
            match rest.find('$') {
                None => break false,
                Some(at) => {
                    rest = &rest[at + 1..];
                    if rest.starts_with(|c: char| c == '{' || c == '(' || c == '_' || c.is_ascii_alphanumeric()) {
                        break true;
                    }
                }
            }
        }
    }
}
