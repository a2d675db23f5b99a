//! Files with everything that a program was told and decided, for replay.
//!
//! Version 1, in the byte order of the machine that wrote it:
//!
//! | bytes | what |
//! | --- | --- |
//! | 16 | `linerate bbr3\n`, then two zero bytes |
//! | 4 | version: 1 |
//! | 4 | 0x01020304 |
//! | 4 | bytes of `struct bbr3_knobs`, then the structure |
//! | 4 | bytes of `struct bbr3_features`, then the structure |
//! | 4 | bytes of the name it was registered by, then the name (UTF-8) |
//! | 4 | bytes of the kernel's release, then the release (UTF-8) |
//! | | any number of events: 4 bytes with its length, then the event as events.h defines it |
//!
//! A file that ends within an event, because its writer was killed, is good up to that event.

use std::io::{self, Read, Write};

use zerocopy::{FromBytes, IntoBytes};

use crate::events::{Event, EventError};
use crate::raw::{Features, RawKnobs};

const MAGIC: [u8; 16] = *b"linerate bbr3\n\0\0";
const VERSION: u32 = 1;
const BYTE_ORDER: u32 = 0x0102_0304;
/// Longest text or event that is believed.
const LONGEST: u32 = 1 << 16;

/// What a recording begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The program's parameters.
    pub knobs: RawKnobs,
    /// What it was told of the kernel.
    pub features: Features,
    /// The name it was registered by.
    pub name: String,
    /// The kernel's release.
    pub kernel: String,
}

/// Why a file is no recording that can be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It does not begin as one.
    #[error("this is no recording of linerate's BBRv3")]
    NotARecording,
    /// Of another version.
    #[error("a recording of version {0}; this reads version {VERSION}")]
    Version(u32),
    /// Written on a machine of the other byte order.
    #[error("a recording of a machine with the other byte order")]
    ByteOrder,
    /// Its parts have other sizes than this version's.
    #[error("a recording whose {0} has another size than in this version")]
    Layout(&'static str),
    /// An event that this version does not know.
    #[error("event {number} of the recording: {source}")]
    Event {
        /// Counted from one.
        number: u64,
        /// What is wrong.
        source: EventError,
    },
    /// It can't be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Writes a recording.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
}

impl<W: Write> Writer<W> {
    /// Writes the header. Give it something buffered.
    ///
    /// # Errors
    /// Where writing fails.
    pub fn new(mut to: W, header: &Header) -> io::Result<Self> {
        to.write_all(&MAGIC)?;
        to.write_all(&VERSION.to_ne_bytes())?;
        to.write_all(&BYTE_ORDER.to_ne_bytes())?;
        for part in
            [header.knobs.as_bytes(), header.features.as_bytes(), header.name.as_bytes(), header.kernel.as_bytes()]
        {
            write_part(&mut to, part)?;
        }
        Ok(Self { to })
    }

    /// Adds an event, as it came from the program.
    ///
    /// # Errors
    /// Where writing fails.
    pub fn add(&mut self, event: &[u8]) -> io::Result<()> {
        write_part(&mut self.to, event)
    }

    /// Ends it.
    ///
    /// # Errors
    /// Where writing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}

fn write_part(to: &mut impl Write, part: &[u8]) -> io::Result<()> {
    to.write_all(&(part.len() as u32).to_ne_bytes())?;
    to.write_all(part)
}

/// Reads a recording, event by event.
#[derive(Debug)]
pub struct Recording<R> {
    from: R,
    header: Header,
    events: u64,
}

impl<R: Read> Recording<R> {
    /// Reads the header. Give it something buffered.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn open(mut from: R) -> Result<Self, RecordingError> {
        let mut magic = [0; 16];
        read_or(&mut from, &mut magic, || RecordingError::NotARecording)?;
        if magic != MAGIC {
            return Err(RecordingError::NotARecording);
        }
        let version = read_word(&mut from)?;
        if read_word(&mut from)? != BYTE_ORDER {
            return Err(RecordingError::ByteOrder);
        }
        if version != VERSION {
            return Err(RecordingError::Version(version));
        }
        let knobs =
            RawKnobs::read_from_bytes(&part(&mut from, "knobs")?).map_err(|_| RecordingError::Layout("knobs"))?;
        let features =
            Features::read_from_bytes(&part(&mut from, "features")?).map_err(|_| RecordingError::Layout("features"))?;
        let name = text(&part(&mut from, "name")?);
        let kernel = text(&part(&mut from, "kernel release")?);
        Ok(Self { from, header: Header { knobs, features, name, kernel }, events: 0 })
    }

    /// What it was recorded from.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn next_event(&mut self) -> Result<Option<Event>, RecordingError> {
        let mut length = [0; 4];
        match self.from.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let length = u32::from_ne_bytes(length);
        let broken = |events| RecordingError::Event {
            number: events,
            source: EventError::Length { kind: 0, length: length as usize },
        };
        self.events += 1;
        if length > LONGEST {
            return Err(broken(self.events));
        }
        let mut bytes = vec![0; length as usize];
        match self.from.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        Event::from_bytes(&bytes).map(Some).map_err(|source| RecordingError::Event { number: self.events, source })
    }
}

impl<R: Read> Iterator for Recording<R> {
    type Item = Result<Event, RecordingError>;

    /// The next event. After an error there may be more; after `None` there is none.
    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

fn read_or(
    from: &mut impl Read,
    bytes: &mut [u8],
    short: impl FnOnce() -> RecordingError,
) -> Result<(), RecordingError> {
    match from.read_exact(bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(short()),
        other => Ok(other?),
    }
}

fn read_word(from: &mut impl Read) -> Result<u32, RecordingError> {
    let mut word = [0; 4];
    read_or(from, &mut word, || RecordingError::NotARecording)?;
    Ok(u32::from_ne_bytes(word))
}

fn part(from: &mut impl Read, what: &'static str) -> Result<Vec<u8>, RecordingError> {
    let length = read_word(from)?;
    if length > LONGEST {
        return Err(RecordingError::Layout(what));
    }
    let mut bytes = vec![0; length as usize];
    read_or(from, &mut bytes, || RecordingError::Layout(what))?;
    Ok(bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::raw::{CallEvent, EventHead};

    fn header() -> Header {
        Header {
            knobs: crate::Knobs::default().to_raw().unwrap(),
            features: Features { cong_control_four_args: 1, app_limited_writable: 1 },
            name: "bbr3".into(),
            kernel: "6.18.0".into(),
        }
    }

    fn call(flow: u64) -> CallEvent {
        let event = EventHead { kind: 4, size: size_of::<CallEvent>() as u32, flow, time_ns: 1 };
        CallEvent { event, call: 1, cwnd: 10, ..CallEvent::default() }
    }

    fn file() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        writer.add(call(1).as_bytes()).unwrap();
        writer.add(call(2).as_bytes()).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let file = file();
        let mut recording = Recording::open(file.as_slice()).unwrap();
        assert_eq!(recording.header(), &header());
        for flow in [1, 2] {
            assert_eq!(recording.next().unwrap().unwrap(), Event::Call(Box::new(call(flow))));
        }
        assert!(recording.next().is_none());
    }

    #[test]
    fn a_file_that_ends_within_an_event_is_good_up_to_it() {
        let file = file();
        let recording = Recording::open(&file[..file.len() - 1]).unwrap();
        assert_eq!(recording.filter(Result::is_ok).count(), 1);
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        let file = file();
        let changed = |at: usize, byte: u8| {
            let mut other = file.clone();
            other[at] = byte;
            Recording::open(other.as_slice()).err()
        };
        assert!(matches!(changed(0, b'x'), Some(RecordingError::NotARecording)));
        assert!(matches!(changed(16, 9), Some(RecordingError::Version(9))));
        assert!(matches!(changed(20, 9), Some(RecordingError::ByteOrder)));
        assert!(matches!(changed(24, 9), Some(RecordingError::Layout("knobs"))));
        assert!(matches!(Recording::open(&file[..10]), Err(RecordingError::NotARecording)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0_usize..3000, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut file = file();
            let at = at.min(file.len());
            let end = (at + bytes.len()).min(file.len());
            file[at..end].copy_from_slice(&bytes[..end - at]);
            if let Ok(recording) = Recording::open(file.as_slice()) {
                prop_assert!(recording.take(100).count() <= 100);
            }
        }
    }
}
