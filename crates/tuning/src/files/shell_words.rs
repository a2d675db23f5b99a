//! A shell script in pieces: pipelines of commands with their words, redirections and heredocs. Enough of the grammar to find
//! what is written where; nothing is expanded or run.

use super::{Comment, Defect, DefectKind, Span};

/// A word with its quotes taken off.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) span: Span,
    pub(super) text: String,
}

impl Word {
    /// The part of the source between the quotes, where the whole word stands in one pair of them; else all of it.
    pub(super) fn inner(&self, source: &str) -> Span {
        let raw = self.span.of(source);
        let quote = raw.chars().next().filter(|c| matches!(c, '"' | '\''));
        match quote {
            Some(quote) if raw.len() >= 2 && raw.ends_with(quote) && !raw[1..raw.len() - 1].contains(quote) => {
                Span::new(self.span.start + 1, self.span.end - 1)
            }
            _ => self.span,
        }
    }
}

/// One command.
#[derive(Debug, Clone, Default)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// Files it writes to; `true`: `>>`.
    pub(super) writes: Vec<(Word, bool)>,
    /// Bodies of its heredocs.
    pub(super) heredocs: Vec<Span>,
}

/// Commands joined by `|`.
pub(super) type Pipeline = Vec<Command>;

/// What a script consists of.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) comments: Vec<Comment>,
    pub(super) defects: Vec<Defect>,
}

/// Takes `region` of `text` to pieces.
pub(super) fn script(text: &str, region: Span) -> Script {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: region.start,
        end: region.end,
        out: Script::default(),
        pipeline: Vec::new(),
        command: Command::default(),
        pending: Vec::new(),
    };
    reader.read();
    reader.out
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    end: usize,
    out: Script,
    pipeline: Pipeline,
    command: Command,
    /// Heredocs whose bodies start at the next line: their ends, and whether tabs before it are taken off.
    pending: Vec<(String, bool, Span)>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        (at < self.end).then(|| self.bytes[at])
    }

    fn read(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.bodies();
                    self.end_pipeline();
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.peek(1) == Some(b'\n') => self.at += 2,
                b'#' => self.comment(),
                b';' | b'(' | b')' => {
                    self.at += 1;
                    self.end_pipeline();
                }
                b'&' if self.peek(1) == Some(b'>') => {
                    self.at += 1;
                    self.redirection();
                }
                b'&' => {
                    self.at += 1 + usize::from(self.peek(1) == Some(b'&'));
                    self.end_pipeline();
                }
                b'|' if self.peek(1) == Some(b'|') => {
                    self.at += 2;
                    self.end_pipeline();
                }
                b'|' => {
                    self.at += 1;
                    self.end_command();
                }
                b'>' | b'<' => self.redirection(),
                _ => {
                    let word = self.word();
                    let is_descriptor = !word.text.is_empty()
                        && word.text.bytes().all(|b| b.is_ascii_digit())
                        && matches!(self.peek(0), Some(b'>' | b'<'));
                    if !is_descriptor {
                        self.command.words.push(word);
                    }
                }
            }
        }
        self.bodies();
        self.end_pipeline();
    }

    fn comment(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(|b| b != b'\n') {
            self.at += 1;
        }
        let is_alone = self.command.words.is_empty() && self.pipeline.is_empty();
        self.out.comments.push(Comment { span: Span::new(start, self.at).trimmed(self.text), is_alone });
    }

    fn end_command(&mut self) {
        let command = std::mem::take(&mut self.command);
        if !command.words.is_empty() || !command.heredocs.is_empty() || !command.writes.is_empty() {
            self.pipeline.push(command);
        }
    }

    fn end_pipeline(&mut self) {
        self.end_command();
        if !self.pipeline.is_empty() {
            self.out.pipelines.push(std::mem::take(&mut self.pipeline));
        }
    }

    fn redirection(&mut self) {
        let operator = self.peek(0);
        let start = self.at;
        while self.peek(0).is_some_and(|b| Some(b) == operator) && self.at - start < 3 {
            self.at += 1;
        }
        let length = self.at - start;
        let strips_tabs = operator == Some(b'<') && length == 2 && self.peek(0) == Some(b'-');
        if strips_tabs || matches!(self.peek(0), Some(b'|' | b'&')) {
            self.at += 1;
        }
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.peek(0).is_none_or(|b| b"\n;|&<>()#".contains(&b)) {
            return;
        }
        let word = self.word();
        match (operator, length) {
            (Some(b'<'), 2) => self.pending.push((word.text, strips_tabs, word.span)),
            (Some(b'>'), _) => self.command.writes.push((word, length > 1)),
            _ => {}
        }
    }

    /// The bodies of heredocs that were announced on the line that ended just now.
    fn bodies(&mut self) {
        for (end, strips_tabs, announced) in std::mem::take(&mut self.pending) {
            let start = self.at;
            let mut is_finished = false;
            while self.at < self.end && !is_finished {
                let rest = &self.text[self.at..self.end];
                let length = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
                let line = rest[..length].trim_end_matches(['\n', '\r']);
                let line = if strips_tabs { line.trim_start_matches('\t') } else { line };
                is_finished = line == end;
                if is_finished {
                    let body = Span::new(start, self.at);
                    self.command_of_heredoc().heredocs.push(body);
                }
                self.at += length;
            }
            if !is_finished {
                let kind = DefectKind::Unfinished("a heredoc");
                self.out.defects.push(Defect { span: announced, kind });
                let body = Span::new(start, self.end);
                self.command_of_heredoc().heredocs.push(body);
            }
        }
    }

    /// The command that announced it: a `tee` behind a pipe reads what the first command wrote.
    fn command_of_heredoc(&mut self) -> &mut Command {
        match self.pipeline.last_mut() {
            Some(last) if self.command.words.is_empty() && self.command.writes.is_empty() => last,
            _ => &mut self.command,
        }
    }

    fn word(&mut self) -> Word {
        let start = self.at;
        let mut text = String::new();
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b';' | b'|' | b'&' | b'<' | b'>' | b'(' | b')' => break,
                b'\'' => self.quoted(b'\'', &mut text),
                b'"' => self.quoted(b'"', &mut text),
                b'`' => self.up_to(b'`', &mut text),
                b'$' if self.peek(1) == Some(b'(') => self.bracketed(b'(', b')', &mut text),
                b'$' if self.peek(1) == Some(b'{') => self.bracketed(b'{', b'}', &mut text),
                b'\\' => {
                    self.at += 1;
                    if self.peek(0) == Some(b'\n') {
                        self.at += 1;
                    } else {
                        self.take(&mut text);
                    }
                }
                _ => self.take(&mut text),
            }
        }
        if self.at == start {
            self.take(&mut text);
        }
        Word { span: Span::new(start, self.at), text }
    }

    /// One character as it is.
    fn take(&mut self, text: &mut String) {
        if let Some(c) = self.text[self.at..self.end].chars().next() {
            text.push(c);
            self.at += c.len_utf8();
        }
    }

    fn quoted(&mut self, quote: u8, text: &mut String) {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek(0) {
                None => {
                    let kind = DefectKind::Unfinished("a quote");
                    self.out.defects.push(Defect { span: Span::new(start, start + 1), kind });
                    return;
                }
                Some(byte) if byte == quote => {
                    self.at += 1;
                    return;
                }
                Some(b'\\') if quote == b'"' && matches!(self.peek(1), Some(b'"' | b'\\' | b'$' | b'`')) => {
                    self.at += 1;
                    self.take(text);
                }
                Some(_) => self.take(text),
            }
        }
    }

    fn up_to(&mut self, end: u8, text: &mut String) {
        self.take(text);
        while let Some(byte) = self.peek(0) {
            self.take(text);
            if byte == end {
                return;
            }
        }
    }

    /// `$(…)` and `${…}`: a part of the word, whatever is in it.
    fn bracketed(&mut self, open: u8, close: u8, text: &mut String) {
        let mut depth = 0_u32;
        while let Some(byte) = self.peek(0) {
            self.take(text);
            if byte == open {
                depth += 1;
            } else if byte == close {
                depth -= 1;
                if depth == 0 {
                    return;
                }
            }
        }
    }
}
