//! From lines to a journal, and what can be wrong with them.

use super::JOURNAL_FORMAT;
use super::checksum::crc32;
use super::record::{Begin, Left, Record, Step};

/// A record as the line of this number, counted from 1, with the line feed.
pub fn line(number: usize, record: &Record) -> String {
    let json = serde_json::to_string(record).unwrap_or_default();
    let text = format!("{number} {json}");
    format!("{:08x} {text}\n", crc32(text.as_bytes()))
}

/// Why a journal can't be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A line is not as it was written.
    #[error("line {0} was changed or damaged since it was written")]
    Line(usize),
    /// It does not begin as it must, or the list of steps is not whole: it was cut.
    #[error("it was cut: its first lines do not name every step")]
    Cut,
    /// It is of another version.
    #[error("it is of format {0:?}, and this linerate knows {JOURNAL_FORMAT}")]
    Format(String),
    /// Whole lines, in an order that linerate does not write.
    #[error("line {0} does not belong there")]
    Order(usize),
}

/// A journal that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// What the transaction is.
    pub begin: Begin,
    /// Its steps, and whether each is for the next boot only.
    pub steps: Vec<(Step, bool)>,
    /// Which steps were begun.
    pub begun: Vec<bool>,
    /// The step that was begun and of which nothing tells that it was completed.
    pub in_flight: Option<usize>,
    /// When it undoes itself.
    pub deadline_ns: Option<u64>,
    /// Whether all live steps were made.
    pub waiting: bool,
    /// Whether all steps were made and stay.
    pub kept: bool,
    /// Whether undoing it has begun.
    pub undoing: bool,
    /// `net.core.default_qdisc` as it was and as it is for the moment.
    pub borrowed: Option<(String, String)>,
    /// Why it ended and what was left; `None`: it is in force.
    pub closed: Option<(String, Vec<Left>)>,
    /// How many bytes are whole lines: what is behind them never happened.
    pub whole: usize,
    /// How many lines those are.
    pub lines: usize,
}

impl Journal {
    /// Reads a journal. A torn last line is passed over.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Damage> {
        let mut journal = Self::empty();
        let mut ready = false;
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for (index, bytes) in lines.iter().enumerate() {
            let record = match record(bytes) {
                Some((number, record)) if number == index + 1 => record,
                // A line before it is missing.
                Some(_) => return Err(Damage::Line(index + 1)),
                // Appended and cut off by a crash: whatever it was to say was not done yet.
                None if ready && index + 1 == lines.len() && !bytes.ends_with(b"\n") => break,
                None if !ready && index + 1 == lines.len() => return Err(Damage::Cut),
                None => return Err(Damage::Line(index + 1)),
            };
            let ends_head = matches!(record, Record::Ready { .. });
            journal.take(record, index + 1, ready)?;
            ready |= ends_head;
            journal.whole += bytes.len();
            journal.lines += 1;
        }
        if ready { Ok(journal) } else { Err(Damage::Cut) }
    }

    /// The steps that whole lines of a damaged journal name, each with `true` for begun: what can still be undone by it.
    pub fn salvage(bytes: &[u8]) -> Self {
        let mut journal = Self::empty();
        for bytes in bytes.split_inclusive(|byte| *byte == b'\n') {
            match record(bytes).map(|(_, record)| record) {
                Some(Record::Begin(begin)) => journal.begin = begin,
                Some(Record::Step { step, lasting }) => journal.steps.push((step, lasting)),
                Some(Record::Kept) => journal.kept = true,
                _ => {}
            }
        }
        // Which of them were begun isn't known.
        journal.begun = vec![true; journal.steps.len()];
        journal
    }

    fn empty() -> Self {
        Self {
            begin: Begin::default(),
            steps: Vec::new(),
            begun: Vec::new(),
            in_flight: None,
            deadline_ns: None,
            waiting: false,
            kept: false,
            undoing: false,
            borrowed: None,
            closed: None,
            whole: 0,
            lines: 0,
        }
    }

    /// `ready`: whether the head is complete.
    fn take(&mut self, record: Record, at: usize, ready: bool) -> Result<(), Damage> {
        let is_head = matches!(record, Record::Begin(_) | Record::Step { .. } | Record::Ready { .. });
        let is_first = matches!(record, Record::Begin(_));
        if is_first != (at == 1) || is_head == ready || self.closed.is_some() {
            return Err(Damage::Order(at));
        }
        match record {
            Record::Begin(begin) if begin.format == JOURNAL_FORMAT => self.begin = begin,
            Record::Begin(begin) => return Err(Damage::Format(begin.format)),
            Record::Step { step, lasting } => self.steps.push((step, lasting)),
            Record::Ready { steps } if steps == self.steps.len() => self.begun = vec![false; steps],
            Record::Ready { .. } => return Err(Damage::Cut),
            Record::Deadline { boottime_ns } => self.deadline_ns = Some(boottime_ns),
            Record::Doing { step } => {
                *self.begun.get_mut(step).ok_or(Damage::Order(at))? = true;
                self.in_flight = Some(step);
            }
            Record::Waiting => (self.waiting, self.in_flight) = (true, None),
            Record::Kept => (self.kept, self.waiting, self.in_flight) = (true, false, None),
            Record::Undoing => self.undoing = true,
            Record::Borrowing { from, to } => self.borrowed = Some((from, to)),
            Record::Returned => self.borrowed = None,
            Record::Closed { why, left } => self.closed = Some((why, left)),
        }
        Ok(())
    }
}

/// A whole line's number and record.
fn record(line: &[u8]) -> Option<(usize, Record)> {
    let text = str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (sum, text) = text.split_once(' ')?;
    let sum = u32::from_str_radix(sum, 16).ok().filter(|_| sum.len() == 8)?;
    if sum != crc32(text.as_bytes()) {
        return None;
    }
    let (number, json) = text.split_once(' ')?;
    Some((number.parse().ok()?, serde_json::from_str(json).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysctl(new: &str) -> Record {
        let step = Step::Sysctl { key: "net.a".into(), old: "1".into(), new: new.into() };
        Record::Step { step, lasting: false }
    }

    fn head() -> Vec<Record> {
        let begin = Begin { format: JOURNAL_FORMAT.into(), id: 1, ..Begin::default() };
        vec![Record::Begin(begin), sysctl("2"), sysctl("3"), Record::Ready { steps: 2 }]
    }

    fn text(records: &[Record]) -> Vec<u8> {
        let lines = records.iter().enumerate().map(|(index, record)| line(index + 1, record));
        lines.collect::<String>().into_bytes()
    }

    #[test]
    fn what_is_written_is_read_back_and_says_how_far_it_came() {
        let mut records = head();
        let journal = Journal::parse(&text(&records)).unwrap();
        assert_eq!((journal.steps.len(), journal.begun.as_slice()), (2, [false, false].as_slice()));
        records.extend([Record::Deadline { boottime_ns: 5 }, Record::Doing { step: 0 }, Record::Doing { step: 1 }]);
        let journal = Journal::parse(&text(&records)).unwrap();
        assert_eq!((journal.in_flight, journal.deadline_ns, journal.waiting), (Some(1), Some(5), false));
        records.extend([Record::Waiting, Record::Undoing]);
        let journal = Journal::parse(&text(&records)).unwrap();
        assert_eq!((journal.in_flight, journal.waiting, journal.undoing), (None, true, true));
        records.push(Record::Closed { why: "x".into(), left: Vec::new() });
        assert!(Journal::parse(&text(&records)).unwrap().closed.is_some());
    }

    #[test]
    fn a_torn_last_line_never_happened_and_every_other_cut_is_found() {
        let mut records = head();
        records.push(Record::Doing { step: 0 });
        let whole = text(&records);
        let head_length = text(&head()).len();
        for length in 0..whole.len() {
            let parsed = Journal::parse(&whole[..length]);
            if length < head_length {
                assert_eq!(parsed, Err(Damage::Cut), "{length}");
            } else {
                let journal = parsed.unwrap();
                assert_eq!((journal.whole, journal.begun[0]), (head_length, false), "{length}");
            }
        }
    }

    #[test]
    fn every_changed_byte_is_found_with_its_line() {
        let mut records = head();
        records.push(Record::Doing { step: 1 });
        let whole = text(&records);
        let untouched = Journal::parse(&whole).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            match Journal::parse(&bytes) {
                Err(_) => {}
                // Only the very last line feed: then its line is a torn one.
                Ok(journal) => assert!(at + 1 == whole.len() && journal != untouched, "{at}: {journal:?}"),
            }
        }
        let mut bytes = whole;
        let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 12;
        bytes[second] ^= 4;
        assert_eq!(Journal::parse(&bytes), Err(Damage::Line(2)));
        assert_eq!(Journal::salvage(&bytes).steps.len(), 1);
        // A whole line that was taken out is missed.
        let whole = text(&records);
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let without = [&lines[..1], &lines[2..]].concat().concat();
        assert_eq!(Journal::parse(&without), Err(Damage::Line(2)));
    }

    #[test]
    fn whole_lines_in_another_order_and_another_format_are_refused() {
        let closed = Record::Closed { why: String::new(), left: Vec::new() };
        for (records, at) in [
            ([head(), vec![sysctl("9")]].concat(), 5),
            ([head(), head()].concat(), 5),
            ([head(), vec![Record::Doing { step: 2 }]].concat(), 5),
            ([head(), vec![closed, Record::Kept]].concat(), 6),
        ] {
            assert_eq!(Journal::parse(&text(&records)), Err(Damage::Order(at)), "{records:?}");
        }
        let begin = Begin { format: "linerate.journal/9".into(), ..Begin::default() };
        let other = text(&[Record::Begin(begin), Record::Ready { steps: 0 }]);
        assert_eq!(Journal::parse(&other), Err(Damage::Format("linerate.journal/9".into())));
        assert_eq!(Journal::parse(b""), Err(Damage::Cut));
        assert_eq!(Journal::parse(b"banana\nbanana\n"), Err(Damage::Line(1)));
    }
}
