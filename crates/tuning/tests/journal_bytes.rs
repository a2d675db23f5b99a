//! Journals of any bytes, and plans that were cut and changed anywhere: an error or a journal, never a panic.

use proptest::prelude::*;
use tuning::journal::{Begin, JOURNAL_FORMAT, Journal, Record, Step, line};

fn whole() -> Vec<u8> {
    let begin = Begin { format: JOURNAL_FORMAT.into(), id: 1, ..Begin::default() };
    let step = Step::Sysctl { key: "net.ipv4.tcp_rmem".into(), old: "1 2 3".into(), new: "1 2 4".into() };
    let records = [
        Record::Begin(begin),
        Record::Step { step, lasting: false },
        Record::Ready { steps: 1 },
        Record::Doing { step: 0 },
        Record::Kept,
        Record::Undoing,
        Record::Closed { why: "x".into(), left: Vec::new() },
    ];
    records.iter().enumerate().map(|(index, record)| line(index + 1, record)).collect::<String>().into_bytes()
}

proptest! {
    #[test]
    fn any_bytes_are_a_journal_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Journal::parse(&bytes);
        let _ = Journal::salvage(&bytes);
    }

    #[test]
    fn a_journal_whose_lines_were_changed_is_never_taken_for_another(
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = whole();
        for (from, to, byte) in cuts {
            if bytes.is_empty() { break; }
            let (a, b) = (from.index(bytes.len()), to.index(bytes.len()));
            match byte % 3 {
                0 => { bytes.drain(a.min(b)..a.max(b)); }
                1 => bytes[a] = byte,
                _ => bytes.insert(a, byte),
            }
        }
        // What is read is the whole beginning of what was written: whatever came later was cut off at a line's end.
        if let Ok(journal) = Journal::parse(&bytes) {
            prop_assert!(whole().starts_with(&bytes[..journal.whole]), "{:?}", String::from_utf8_lossy(&bytes));
        }
        let salvaged = Journal::salvage(&bytes);
        prop_assert!(salvaged.steps.len() <= 1);
    }
}
