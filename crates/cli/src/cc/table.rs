//! Columns of text.

/// Rows under a head, each column as wide as its widest cell, two blanks apart. Cells are plain text.
pub fn columns(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    let head: Vec<String> = head.iter().map(|&title| title.to_owned()).collect();
    std::iter::once(head.as_slice()).chain(rows.iter().map(Vec::as_slice)).map(line).collect()
}

/// `1 socket`, `2 sockets`.
pub fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["cubic".to_owned(), "1".to_owned()], vec!["a".to_owned(), String::new()]];
        assert_eq!(columns(&["NAME", "N"], &rows), "NAME   N\ncubic  1\na\n");
    }
}
