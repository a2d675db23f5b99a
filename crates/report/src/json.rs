//! The JSON file: written so that people can read and diff it, read back for `lab compare`.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::model::{LAB_SCHEMA, LabReport, SIM_SCHEMA};

/// Why a file is not a lab report.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON, or a key is missing or of the wrong type. Says where.
    #[error("not a lab report: {0}")]
    Json(#[from] serde_json::Error),
    /// It has no `schema`.
    #[error("not a linerate report: it has no `schema`")]
    NoSchema,
    /// It is the report of another command or version.
    #[error("its schema is `{found}`; this version reads `{LAB_SCHEMA}` and `{SIM_SCHEMA}`")]
    OtherSchema {
        /// What it says it is.
        found: String,
    },
}

impl LabReport {
    /// As JSON, ending in a line feed. Objects have one key per line; lists of numbers and words stay on one line.
    pub fn to_json(&self) -> String {
        lines(self)
    }

    /// Reads what [`LabReport::to_json`] wrote. Unknown keys are ignored: a later version may add some.
    ///
    /// # Errors
    ///
    /// Where `text` is not JSON, not a report, or a report of another schema.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        #[derive(serde::Deserialize)]
        struct Head {
            schema: Option<String>,
        }
        let head: Head = serde_json::from_str(text)?;
        match head.schema {
            None => Err(ReadError::NoSchema),
            Some(found) if ![LAB_SCHEMA, SIM_SCHEMA].contains(&found.as_str()) => Err(ReadError::OtherSchema { found }),
            Some(_) => Ok(serde_json::from_str(text)?),
        }
    }
}

/// A value as JSON with one key per line, ending in a line feed.
pub(crate) fn lines<T: Serialize>(value: &T) -> String {
    let mut out = Vec::new();
    // Writing plain values with string keys into memory has no way to fail.
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, Lines::default()));
    debug_assert!(written.is_ok(), "{written:?}");
    out.push(b'\n');
    String::from_utf8(out).unwrap_or_default()
}

/// Indents objects, and keeps lists on one line apart from the objects in them.
#[derive(Default)]
struct Lines {
    depth: usize,
}

impl Lines {
    fn line(&self, out: &mut (impl io::Write + ?Sized)) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Lines {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        self.line(out)?;
        out.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}
