//! YAML as a tree whose leaves know their places.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::Span;

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) value: Value,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum Value {
    /// Text; `is_block`: behind `|` or `>`.
    Scalar {
        text: String,
        is_block: bool,
    },
    List(Vec<Node>),
    /// Pairs in the order of the file.
    Map(Vec<(Node, Node)>),
    /// An alias, or what was too deep.
    Nothing,
}

impl Node {
    pub(super) fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// No file that people write is nested deeper.
const DEEPEST: usize = 64;

/// The documents of a file, up to the first error: its place and what is wrong.
pub(super) fn parse(text: &str) -> (Vec<Node>, Option<(Span, String)>) {
    let offsets = Offsets::new(text);
    let mut parser = Parser::new_from_str(text);
    let mut documents = Vec::new();
    let mut open: Vec<Node> = Vec::new();
    let mut too_deep = 0_usize;
    let mut error = None;
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok(event) => event,
            Err(e) => {
                let at = offsets.byte(e.marker());
                error = Some((Span::new(at, at), e.info().to_owned()));
                break;
            }
        };
        let span = Span::new(offsets.byte(&span.start), offsets.byte(&span.end));
        let finished = match event {
            Event::Scalar(value, style, ..) => {
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                Some(Node { span, value: Value::Scalar { text: value.into_owned(), is_block } })
            }
            Event::Alias(_) => Some(Node { span, value: Value::Nothing }),
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEEPEST => {
                too_deep += 1;
                None
            }
            Event::SequenceStart(..) => {
                open.push(Node { span, value: Value::List(Vec::new()) });
                None
            }
            Event::MappingStart(..) => {
                open.push(Node { span, value: Value::Map(Vec::new()) });
                None
            }
            Event::SequenceEnd | Event::MappingEnd if too_deep > 0 => {
                too_deep -= 1;
                (too_deep == 0).then_some(Node { span, value: Value::Nothing })
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|mut node| {
                node.span = Span::new(node.span.start, span.end);
                node
            }),
            Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {
                None
            }
        };
        if let Some(node) = finished.filter(|_| too_deep == 0) {
            add(&mut open, &mut documents, node);
        }
    }
    // What was open at an error is still worth reading.
    while let Some(node) = open.pop() {
        add(&mut open, &mut documents, node);
    }
    (documents, error)
}

/// Puts a finished node where it belongs. A map's keys wait for their values with an empty one.
fn add(open: &mut [Node], documents: &mut Vec<Node>, node: Node) {
    match open.last_mut().map(|parent| &mut parent.value) {
        Some(Value::List(list)) => list.push(node),
        Some(Value::Map(map)) => match map.last_mut() {
            Some((_, value)) if value.span == AWAITED => *value = node,
            _ => map.push((node, Node { span: AWAITED, value: Value::Nothing })),
        },
        _ => documents.push(node),
    }
}

const AWAITED: Span = Span { start: usize::MAX, end: usize::MAX };

/// From the parser's characters to bytes.
struct Offsets {
    /// `None`: ASCII, where they are the same.
    of: Option<Vec<usize>>,
    end: usize,
}

impl Offsets {
    fn new(text: &str) -> Self {
        let of = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { of, end: text.len() }
    }

    fn byte(&self, marker: &Marker) -> usize {
        match &self.of {
            None => marker.index().min(self.end),
            Some(of) => of.get(marker.index()).copied().unwrap_or(self.end),
        }
    }
}
