//! Columns that fit the terminal.

use anyhow::Result;
use console::{Style, measure_text_width, truncate_str};

use super::{out, style, text};

/// What is between two columns.
const GAP: usize = 2;

/// Rows under named columns.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A named column.
pub(crate) struct Column {
    name: &'static str,
    side: Side,
    /// How narrow it may become if the terminal is.
    narrowest: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// One text, and how it looks.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Column {
    /// Text that is always shown whole.
    pub(crate) fn whole(name: &'static str) -> Self {
        Self { name, side: Side::Left, narrowest: None }
    }

    /// Text that may be cut off, down to this width.
    pub(crate) fn elastic(name: &'static str, narrowest: usize) -> Self {
        Self { name, side: Side::Left, narrowest: Some(narrowest) }
    }

    /// Numbers and spans.
    pub(crate) fn number(name: &'static str) -> Self {
        Self { name, side: Side::Right, narrowest: None }
    }
}

impl Cell {
    /// A text that anybody may have written.
    pub(crate) fn new(shown: &str) -> Self {
        Self::styled(shown, Style::new())
    }

    /// The same in a style.
    pub(crate) fn styled(shown: &str, style: Style) -> Self {
        Self { text: text::shown(shown), style }
    }
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// A row with a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Prints it, as wide as the terminal allows.
    pub(crate) fn print(&self) -> Result<()> {
        out::print(&(self.lines(out::width()).join("\n") + "\n"))
    }

    /// The lines of the table, at most so wide; `None` for as wide as it takes.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let widths = self.widths(width);
        let heading = self.columns.iter().map(|column| Cell::styled(column.name, style::quiet())).collect();
        std::iter::once(&heading).chain(&self.rows).map(|row| self.line(row, &widths)).collect()
    }

    /// What each column needs, and what it gets: elastic ones give way, the widest first.
    fn widths(&self, width: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.name.len()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(measure_text_width(&cell.text));
            }
        }
        let Some(room) = width else { return widths };
        let gaps = GAP.saturating_mul(widths.len().saturating_sub(1));
        while widths.iter().sum::<usize>().saturating_add(gaps) > room {
            let elastic = widths.iter_mut().zip(&self.columns).filter_map(|(width, column)| {
                let narrowest = column.narrowest?.max(column.name.len());
                (*width > narrowest).then_some(width)
            });
            match elastic.max() {
                Some(widest) => *widest = widest.saturating_sub(1),
                None => break,
            }
        }
        widths
    }

    fn line(&self, row: &[Cell], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
            if !line.is_empty() {
                line.push_str(&" ".repeat(GAP));
            }
            let text = truncate_str(&cell.text, *width, "…");
            let padding = " ".repeat(width.saturating_sub(measure_text_width(&text)));
            let styled = cell.style.apply_to(&text).to_string();
            line.push_str(&match column.side {
                Side::Left => styled + &padding,
                Side::Right => padding + &styled,
            });
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::new(vec![Column::whole("id"), Column::elastic("name", 6), Column::number("age")]);
        table.row(vec![Cell::new("3f2a"), Cell::new("a-rather-long-name"), Cell::new("3m")]);
        table.row(vec![Cell::new("9c0d"), Cell::new("東京"), Cell::new("1h 2m")]);
        table
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        let lines = table().lines(None);
        assert_eq!(lines[1], "3f2a  a-rather-long-name     3m");
        assert_eq!(lines[2], "9c0d  東京                1h 2m");
    }

    #[test]
    fn what_is_elastic_gives_way_and_nothing_else() {
        let lines = table().lines(Some(22));
        assert_eq!(lines[1], "3f2a  a-rather…     3m");
        let lines = table().lines(Some(3));
        assert_eq!(lines[1], "3f2a  a-rat…     3m", "the narrowest there is, however narrow the terminal");
    }

    #[test]
    fn a_cell_cannot_move_the_cursor() {
        let mut table = Table::new(vec![Column::whole("owner")]);
        table.row(vec![Cell::new("x\u{1b}[1A")]);
        assert_eq!(table.lines(None)[1], "x\\u{1b}[1A");
    }
}
