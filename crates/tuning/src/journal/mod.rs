//! The journal of one transaction: what it will change, from what to what, and how far it came.
//!
//! A text, one record a line: a CRC-32 of the rest in eight hexadecimal digits, the line's number, and the record as JSON. It begins with
//! [`Record::Begin`], one [`Record::Step`] for each change and [`Record::Ready`]; that much is put in place as a whole before anything is
//! changed, so that a journal without it was damaged by somebody. Everything later is appended, one line at a time: only the last
//! line can be torn, and a torn line never happened.
//!
//! A step is known to be begun ([`Record::Doing`]) before it acts. So the old value of everything that can have been changed is known
//! at every moment, and undoing needs nothing but the journal and a look at what is there.

mod checksum;
mod record;
mod text;

pub use record::{Begin, Content, Left, Record, Ring, Step, Tree};
pub use text::{Damage, Journal, line};

/// The version of the format.
pub const JOURNAL_FORMAT: &str = "linerate.journal/1";
