//! Tables in Markdown, aligned so that a terminal can be read too.

use std::fmt;

pub(super) struct Table {
    pub(super) title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(title: impl Into<String>, head: &[&str]) -> Self {
        Self {
            title: title.into(),
            head: head.iter().map(|&cell| cell.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn width(&self, column: usize) -> usize {
        let rows = self.rows.iter().chain([&self.head]);
        let widths = rows.filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        widths.max().unwrap_or_default()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.head.len()).map(|column| self.width(column)).collect();
        for (index, row) in [&self.head].into_iter().chain(&self.rows).enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Words to the left, numbers to the right.
                if column == 0 {
                    write!(f, "| {cell:<width$} ")?;
                } else {
                    write!(f, "| {cell:>width$} ")?;
                }
            }
            writeln!(f, "|")?;
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width + 1);
                    write!(f, "|{dashes}{}", if column == 0 { '-' } else { ':' })?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_stand_under_each_other() {
        let mut table = Table::new("title", &["cell", "µs"]);
        table.row(vec!["unary".to_owned(), "7".to_owned()]);
        assert_eq!(table.to_string(), "| cell  | µs |\n|-------|---:|\n| unary |  7 |\n");
    }
}
