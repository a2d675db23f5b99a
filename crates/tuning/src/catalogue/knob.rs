//! One knob.

use serde::{Deserialize, Serialize};

use crate::kernel::KernelVersion;

/// One sysctl key, or one pattern of keys (`net.ipv4.conf.*.rp_filter`), and what is known about it.
///
/// Facts hold for Linux 6.1 to 7.2 on 64-bit machines; where older versions are known to differ, they say so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knob {
    /// The key with dots; `*` for a component that names an interface, a CPU or the like.
    pub name: String,
    /// How much it matters for this tool.
    pub importance: Importance,
    /// What its value is.
    pub kind: Kind,
    /// How many values it takes, at least and at most.
    pub arity: (u8, u8),
    /// What the kernel accepts for each of its numbers, by version. Empty: no number, or not known.
    pub range: Vec<Range>,
    /// What happens to a number outside of that.
    pub out_of_range: OutOfRange,
    /// What a value means, where it is one of a few.
    pub choices: Vec<Choice>,
    /// The kernel's default, by version. Empty: it depends on the machine.
    pub default: Vec<Default>,
    /// What the default depends on, in words, where it isn't constant.
    pub default_note: Option<String>,
    /// Whether every network namespace has its own, by version.
    pub scope: Vec<ScopeFrom>,
    /// Whether it can be read and written.
    pub access: Access,
    /// The module without which the key isn't there; `None`: part of every kernel with networking.
    pub module: Option<String>,
    /// The first version that has it; `None`: 6.1 and some before.
    pub since: Option<KernelVersion>,
    /// The first version that no longer has it; `None`: the newest known still has it.
    pub until: Option<KernelVersion>,
    /// Kernels of which distribution or patch have it, where mainline never had.
    pub only_in: Option<String>,
    /// What it does, in about two sentences.
    pub what: String,
    /// When to change it and to what; `None`: there is no good reason known.
    pub change: Option<Advice>,
    /// What changing it can cost.
    pub risk: Option<String>,
    /// Circumstances in which the kernel doesn't look at it.
    pub ignored: Vec<Ignored>,
    /// Lists on the web carry it, and why that is a mistake.
    pub popular: Option<Popular>,
    /// Where the facts come from: a kernel file, an RFC, a document.
    pub source: String,
}

/// How much a knob matters for a host's network performance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Importance {
    /// Decides throughput, latency or how many connections fit.
    Main,
    /// Touches the network, seldom its performance.
    Related,
    /// Not a matter of the network, or never worth touching.
    Other,
}

/// What a value is: the unit of a number, or the form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// 0 or 1.
    Flag,
    /// One of a few numbers, listed in `choices`.
    Choice,
    /// A sum of numbers, each listed in `choices`.
    Bits,
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// KiB.
    Kibibytes,
    /// Pages of memory: 4096 bytes on x86 and most of arm64.
    Pages,
    /// Packets.
    Packets,
    /// TCP segments.
    Segments,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Hundredths of a second (`USER_HZ`).
    Centiseconds,
    /// Ticks of the kernel's timer: how long one is depends on `CONFIG_HZ`.
    Jiffies,
    /// Percent.
    Percent,
    /// A number whose unit `what` explains.
    Number,
    /// The power of two in a shift or a factor.
    Exponent,
    /// A port.
    Port,
    /// The first and the last of a range of ports.
    PortRange,
    /// Ports and ranges joined by commas.
    PortList,
    /// A name out of a set: `choices`, or what the kernel has (`tcp_congestion_control`).
    Name,
    /// Names joined by blanks.
    Names,
    /// A mask of CPUs in hexadecimal.
    CpuMask,
    /// Text of another form.
    Text,
    /// Writing anything makes the kernel do something once.
    Trigger,
}

impl Kind {
    /// Whether values are decimal numbers, which the kernel reads up to the first character that is none.
    pub fn is_numeric(self) -> bool {
        !matches!(self, Self::PortList | Self::Name | Self::Names | Self::CpuMask | Self::Text)
    }

    /// The unit, as it stands behind a number; empty where there is none.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Kibibytes => "KiB",
            Self::Pages => "pages",
            Self::Packets => "packets",
            Self::Segments => "segments",
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Microseconds => "microseconds",
            Self::Nanoseconds => "nanoseconds",
            Self::Centiseconds => "hundredths of a second",
            Self::Jiffies => "jiffies",
            Self::Percent => "percent",
            _ => "",
        }
    }
}

/// The numbers the kernel accepts, from `min` to `max`, both among them, from version `since` to before `until`.
///
/// Nothing outside is accepted. Inside, another key (`ip_unprivileged_port_start` below a port range), the length of a tick or a
/// later stable update may leave less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The least.
    pub min: i64,
    /// The most; a 64-bit key's true end may lie above.
    pub max: i64,
    /// The first version for which this holds; `None`: all before `until`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<KernelVersion>,
    /// The first version for which it no longer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<KernelVersion>,
}

/// What the kernel does with a number outside the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutOfRange {
    /// `write` fails with `EINVAL` and the value stays (6.1 leaves a few keys of IPv6 as they are without an error). Several values in one key: those before the bad one are changed all the same.
    Refused,
    /// Cut to fit, or stored and cut where it is used.
    Clamped,
}

/// One value and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The value as it is written.
    pub value: String,
    /// In a few words.
    pub means: String,
    /// The first version that knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<KernelVersion>,
}

/// The kernel's default from version `since` to before `until`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Default {
    /// As `/proc/sys` shows it, whitespace normalised to single blanks.
    pub value: String,
    /// The first version that has it; `None`: all before `until`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<KernelVersion>,
    /// The first version with another default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<KernelVersion>,
}

/// Where a knob holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Each network namespace has its own: containers can set theirs.
    Namespace,
    /// One for the host, and the key isn't there in other network namespaces.
    Host,
    /// One for the host; other network namespaces see it and can't write it.
    HostReadOnly,
    /// One for the host, and not a key of networking: the same file in every network namespace.
    System,
}

/// A scope and the first version with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeFrom {
    /// The scope.
    pub scope: Scope,
    /// The first version; `None`: since always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<KernelVersion>,
}

/// What can be done with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Read and written.
    ReadWrite,
    /// Only read: writing gives `EACCES` or `EPERM`.
    ReadOnly,
    /// Only written.
    WriteOnly,
}

/// When to change a knob, and to what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// The circumstances.
    pub when: String,
    /// The value, in words or as a number.
    pub to: String,
}

/// A circumstance in which the kernel doesn't look at a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ignored {
    /// Such as `congestion control bbr`, `namespace other than the host's`; for people.
    pub when: String,
    /// The congestion controls for which it holds, where that is the circumstance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion_control: Vec<String>,
    /// The first version from which on it is always ignored, where that is the circumstance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<KernelVersion>,
}

/// Why lists on the web carry a knob by mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Popular {
    /// The values most often seen, as they are written there.
    #[serde(default)]
    pub values: Vec<String>,
    /// What is wrong with it, in one sentence.
    pub why: String,
    /// What to do instead; `None`: leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

impl Knob {
    /// Whether kernel `version` has it (with its module).
    pub fn exists_in(&self, version: KernelVersion) -> bool {
        self.since.is_none_or(|since| since <= version) && self.until.is_none_or(|until| version < until)
    }

    /// The range in kernel `version`.
    pub fn range_in(&self, version: KernelVersion) -> Option<Range> {
        self.range.iter().find(|r| holds(r.since, r.until, version)).copied()
    }

    /// The default in kernel `version`; `None` where it depends on the machine or isn't known.
    pub fn default_in(&self, version: KernelVersion) -> Option<&str> {
        self.default.iter().find(|d| holds(d.since, d.until, version)).map(|d| d.value.as_str())
    }

    /// The scope in kernel `version`.
    pub fn scope_in(&self, version: KernelVersion) -> Scope {
        let newest = self.scope.iter().rev().find(|s| s.since.is_none_or(|since| since <= version));
        newest.or(self.scope.first()).map_or(Scope::System, |s| s.scope)
    }

    /// Whether congestion control `name` never looks at it.
    pub fn ignored_by(&self, name: &str) -> Option<&Ignored> {
        self.ignored.iter().find(|i| i.congestion_control.iter().any(|c| c == name))
    }

    /// Whether one component of the name stands for an interface or the like.
    pub fn is_pattern(&self) -> bool {
        self.name.contains('*')
    }
}

/// Whether `version` lies in `[since, until)`.
fn holds(since: Option<KernelVersion>, until: Option<KernelVersion>, version: KernelVersion) -> bool {
    since.is_none_or(|since| since <= version) && until.is_none_or(|until| version < until)
}
