//! The layout of tables in text.

use tabled::builder::Builder;
use tabled::grid::util::string::get_line_width;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Padding, Style};

/// A table in text: each column is as wide as its widest cell, columns are two spaces apart, and lines have no trailing
/// spaces. `columns` has a letter for each column, as in LaTeX's `tabular`: `l` aligns it to the left, `r` to the
/// right.
#[must_use]
pub fn table<R>(columns: &str, rows: impl IntoIterator<Item = R>) -> String
where
    R: IntoIterator,
    R::Item: Into<String>,
{
    let mut builder = Builder::default();
    rows.into_iter().for_each(|row| builder.push_record(row));
    let mut table = builder.build();
    table.with(Style::blank()).with(Padding::new(0, 1, 0, 0));
    for (index, _) in columns.char_indices().filter(|(_, c)| *c == 'r') {
        table.modify(Columns::one(index), Alignment::right());
    }
    let text = table.to_string();
    text.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// A line of a matrix. Each cell is a minimum column width and a text, which is aligned to the right. Escape sequences
/// do not count towards the width.
#[must_use]
pub fn matrix_line(cells: impl IntoIterator<Item = (usize, String)>) -> String {
    let cell = |(width, text): (usize, String)| {
        let missing = width.saturating_sub(get_line_width(&text));
        " ".repeat(missing) + &text
    };
    cells.into_iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_matrix_end_below_each_other() {
        let line = |a: &str, b: &str| matrix_line([(4, a.to_owned()), (5, b.to_owned())]);
        assert_eq!(line("1", "\x1b[1m23\x1b[0m"), "   1   \x1b[1m23\x1b[0m");
        assert_eq!(line("12345", "2"), "12345    2");
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        let rows = [["name", "GB"], ["行列", "1.5"], ["\x1b[31mred\x1b[0m", "12"]];
        let text = table("lr", rows);
        assert_eq!(text, "name   GB\n行列  1.5\n\x1b[31mred\x1b[0m    12\n");
    }
}
