//! What a journal says.

use serde::{Deserialize, Serialize};

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// The first one.
    Begin(Begin),
    /// One change, not made yet. Steps are numbered by their order, from 0.
    Step {
        /// What it does.
        step: Step,
        /// Whether it is for the next boot only: such steps are made last, and with `--confirm` only once that comes.
        lasting: bool,
    },
    /// All steps are named.
    Ready {
        /// How many there are.
        steps: usize,
    },
    /// When it undoes itself unless it is confirmed.
    Deadline {
        /// `CLOCK_BOOTTIME` of the boot in [`Begin`], which no setting of the clock changes.
        boottime_ns: u64,
    },
    /// A step is about to be made.
    Doing {
        /// Its number.
        step: usize,
    },
    /// Every live step is made and read back; the others wait for `confirm`.
    Waiting,
    /// Everything is made and stays.
    Kept,
    /// It is being undone.
    Undoing,
    /// `net.core.default_qdisc` is changed for a moment, so that the kernel gives a device back what it had.
    Borrowing {
        /// What it was.
        from: String,
        /// What it is for that moment.
        to: String,
    },
    /// It is what it was.
    Returned,
    /// It is undone, or never was.
    Closed {
        /// Why it ended: for people.
        why: String,
        /// What was left, because somebody else had changed it since.
        left: Vec<Left>,
    },
}

/// What a transaction is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begin {
    /// [`JOURNAL_FORMAT`](super::JOURNAL_FORMAT).
    pub format: String,
    /// Its number, from 1.
    pub id: u32,
    /// A fingerprint of the plan's changes.
    pub plan: String,
    /// What the plan is for, in a few words.
    pub purpose: String,
    /// The boot in which it began (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// The kernel's release.
    pub kernel: String,
    /// The version that wrote it.
    pub linerate_version: String,
    /// The clock's time, for people only.
    pub started_at: String,
    /// How long it waits for `confirm`; `None`: it doesn't.
    pub confirm_ns: Option<u64>,
    /// Whether nothing of it outlives the boot.
    pub live_only: bool,
}

/// One change with its inverse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// A key's live value, whitespace normalised.
    Sysctl {
        /// The key, with dots.
        key: String,
        /// Before.
        old: String,
        /// After.
        new: String,
    },
    /// A device's queue disciplines.
    Queues {
        /// The device.
        device: String,
        /// Before: always what the kernel put there by itself.
        old: Tree,
        /// After: the root's kind where there is one queue, else the kinds of the leaves.
        new: Vec<String>,
    },
    /// A size of a network card's ring.
    Ring {
        /// The device.
        device: String,
        /// Which of them.
        ring: Ring,
        /// Descriptors before.
        old: u32,
        /// And after.
        new: u32,
    },
    /// A directory that wasn't there.
    Folder {
        /// Its path.
        path: String,
    },
    /// A file, whole.
    File {
        /// Its path.
        path: String,
        /// Before; `None`: there was none.
        old: Option<Content>,
        /// After.
        new: Content,
    },
    /// A symbolic link that wasn't there.
    Link {
        /// Its path.
        path: String,
        /// Where it leads.
        target: String,
    },
}

/// A file's text and permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Every file that linerate writes is text.
    pub text: String,
    /// The lower twelve bits.
    pub mode: u32,
}

/// A device's disciplines on the way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// The kind of the first one: `fq_codel`, `mq`, `noqueue`.
    pub root: String,
    /// Its handle's major number; 0 where the kernel put it there by itself.
    pub handle: u32,
    /// The kinds of `mq`'s leaves, by queue; empty for others.
    pub leaves: Vec<String>,
}

/// Direction of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ring {
    /// Packets that come in.
    Rx,
    /// Packets that go out.
    Tx,
}

/// Something that was not put back, because it is no longer what the transaction made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// What: a key, a path, a device.
    pub what: String,
    /// What is there.
    pub found: String,
    /// What it was before the transaction.
    pub old: String,
    /// What the transaction made of it.
    pub new: String,
}

impl Step {
    /// What it acts on: a key, a device, a path.
    pub fn what(&self) -> &str {
        match self {
            Self::Sysctl { key, .. } => key,
            Self::Queues { device, .. } | Self::Ring { device, .. } => device,
            Self::Folder { path } | Self::File { path, .. } | Self::Link { path, .. } => path,
        }
    }
}
