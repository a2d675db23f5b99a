//! The journals: one file each in a directory that only root may enter.

use std::io;

use super::file;
use super::world::{Found, World};
use crate::journal::{Damage, Journal, Record, line};

/// Where journals are.
pub const STATE: &str = "/var/lib/linerate";

/// No journal is larger.
const LARGEST: usize = 16 << 20;

/// Why the journals can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory or a journal is not only root's.
    #[error("{path} {why}: what stands there is not trusted")]
    Untrusted {
        /// Which.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// It can't be read or written.
    #[error("can't {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

pub(super) fn io(what: &'static str, path: &str) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { what, path: path.to_owned(), source }
}

/// One transaction as it was read.
#[derive(Debug)]
pub struct Transaction {
    /// Its number: that of the file.
    pub id: u32,
    /// The file.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// What that says.
    pub journal: Result<Journal, Damage>,
}

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its journal is damaged.
    Damaged,
    /// It was interrupted before all was made, or while it was undone.
    Interrupted,
    /// It waits for `confirm`.
    Waiting,
    /// It stays.
    Kept,
    /// It was not confirmed, or not completed, before the machine started again: nothing of it is left.
    OfAnotherBoot,
    /// It is undone.
    Closed,
}

impl Standing {
    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Interrupted => "interrupted",
            Self::Waiting => "waiting for confirm",
            Self::Kept => "in force",
            Self::OfAnotherBoot => "reverted by a restart",
            Self::Closed => "rolled back",
        }
    }
}

/// Where a transaction stands in the boot `boot_id`.
pub fn standing(transaction: &Transaction, boot_id: &str) -> Standing {
    let Ok(journal) = &transaction.journal else { return Standing::Damaged };
    let other_boot = journal.begin.boot_id != boot_id;
    let lasting_begun = journal.steps.iter().zip(&journal.begun).any(|((_, lasting), begun)| *lasting && *begun);
    match journal {
        journal if journal.closed.is_some() => Standing::Closed,
        journal if journal.kept && !journal.undoing => Standing::Kept,
        // Files that last may be there; without them a restart has undone everything.
        _ if other_boot && !lasting_begun => Standing::OfAnotherBoot,
        journal if journal.waiting && !journal.undoing && !lasting_begun => Standing::Waiting,
        _ => Standing::Interrupted,
    }
}

/// All journals in the order of their numbers. An empty list where there are none.
///
/// # Errors
/// [`StoreError`]; a damaged journal is none.
pub fn load<W: World>(world: &W) -> Result<Vec<Transaction>, StoreError> {
    match world.look(STATE).map_err(io("read", STATE))? {
        Found::Nothing => return Ok(Vec::new()),
        Found::Folder { mode, own: true } if mode & 0o077 == 0 => {}
        Found::Folder { own: false, .. } => return Err(untrusted(STATE, "belongs to somebody else")),
        Found::Folder { .. } => return Err(untrusted(STATE, "can be entered by others (chmod 700)")),
        _ => return Err(untrusted(STATE, "is no directory")),
    }
    let names = world.list(STATE).map_err(io("read", STATE))?;
    let mut ids: Vec<u32> = names.iter().filter_map(|name| id_of(name)).collect();
    ids.sort_unstable();
    ids.into_iter().map(|id| read(world, id)).collect()
}

fn read<W: World>(world: &W, id: u32) -> Result<Transaction, StoreError> {
    let path = path_of(id);
    match world.look(&path).map_err(io("read", &path))? {
        Found::File { bytes, mode, own } => {
            if !own {
                return Err(untrusted(&path, "belongs to somebody else"));
            }
            if mode & 0o022 != 0 {
                return Err(untrusted(&path, "can be written by others"));
            }
            if bytes.len() > LARGEST {
                return Err(untrusted(&path, "is larger than any journal"));
            }
            let journal = Journal::parse(&bytes)
                // A journal under another's name would be undone in the wrong order.
                .and_then(|journal| if journal.begin.id == id { Ok(journal) } else { Err(Damage::Order(1)) });
            Ok(Transaction { id, path, bytes, journal })
        }
        _ => Err(untrusted(&path, "is no regular file")),
    }
}

fn untrusted(path: &str, why: &'static str) -> StoreError {
    StoreError::Untrusted { path: path.to_owned(), why }
}

/// The journal of a transaction.
pub fn path_of(id: u32) -> String {
    format!("{STATE}/{id:04}.journal")
}

fn id_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".journal")?;
    let id = digits.parse().ok()?;
    (format!("{id:04}") == digits && id > 0).then_some(id)
}

/// A journal that is written.
pub(super) struct Pen {
    path: String,
    /// Bytes that are whole lines.
    whole: u64,
    /// How many lines those are.
    lines: usize,
    /// Whether there may be a torn line behind them.
    torn: bool,
}

impl Pen {
    /// Puts the head of a new journal in its place.
    pub(super) fn begin<W: World>(world: &mut W, id: u32, head: &[Record]) -> Result<Self, StoreError> {
        let path = path_of(id);
        let text: String = head.iter().enumerate().map(|(index, record)| line(index + 1, record)).collect();
        file::put(world, &path, text.as_bytes(), 0o600).map_err(io("write", &path))?;
        Ok(Self { path, whole: text.len() as u64, lines: head.len(), torn: false })
    }

    /// Goes on with a journal that was read.
    pub(super) fn resume(transaction: &Transaction) -> Self {
        let journal = transaction.journal.as_ref();
        let (whole, lines) = journal.map_or((transaction.bytes.len(), 0), |journal| (journal.whole, journal.lines));
        Self { path: transaction.path.clone(), whole: whole as u64, lines, torn: whole < transaction.bytes.len() }
    }

    /// Appends a record and waits until it is on the disk.
    pub(super) fn write<W: World>(&mut self, world: &mut W, record: &Record) -> Result<(), StoreError> {
        let text = line(self.lines + 1, record);
        let failed = io("write", &self.path);
        let mut write = || {
            let mut file = world.open_end(&self.path)?;
            if self.torn {
                world.cut(&mut file, self.whole)?;
            }
            self.torn = true;
            file::write_all(world, &mut file, text.as_bytes())?;
            world.sync(&mut file)
        };
        write().map_err(failed)?;
        self.torn = false;
        self.whole += text.len() as u64;
        self.lines += 1;
        Ok(())
    }

    /// Removes the file.
    pub(super) fn destroy<W: World>(self, world: &mut W) -> Result<(), StoreError> {
        file::remove(world, &self.path).map_err(io("remove", &self.path))
    }
}
