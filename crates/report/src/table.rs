//! Tables for a terminal, drawn by comfy-table: no lines but one under the heading, figures to the right, nothing wrapped.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, TableComponent, presets};

/// How text stands out where colours are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Warning,
}

/// A table without lines but one under its heading. Headings say whether their column is to the left.
pub(crate) fn draw_table(headings: Vec<(String, bool)>, rows: Vec<Vec<(String, Style)>>, colour: bool) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_style(TableComponent::HeaderLines, '─').set_style(TableComponent::MiddleHeaderIntersections, '─');
    if colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header(headings.iter().map(|(heading, _)| Cell::new(heading)));
    for row in rows {
        table.add_row(row.into_iter().map(|(text, style)| match style {
            Style::Plain => Cell::new(text),
            Style::Bold => Cell::new(text).add_attribute(Attribute::Bold),
            Style::Warning => Cell::new(text).fg(Color::Yellow),
        }));
    }
    let last = headings.len().saturating_sub(1);
    for (index, (_, left)) in headings.iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            // One more column of space stands between them, where other styles have a line.
            column.set_padding((0, u16::from(index != last)));
            column.set_cell_alignment(if *left { CellAlignment::Left } else { CellAlignment::Right });
        }
    }
    let mut out = String::new();
    for line in table.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// `text` in a style, where colours are wanted.
pub(crate) fn paint(text: &str, style: Style, colour: bool) -> String {
    match (colour, style) {
        (false, _) | (_, Style::Plain) => text.to_owned(),
        (true, Style::Bold) => format!("\x1b[1m{text}\x1b[0m"),
        (true, Style::Warning) => format!("\x1b[33m{text}\x1b[0m"),
    }
}
