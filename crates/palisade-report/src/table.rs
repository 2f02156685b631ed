//! Columns of text.

use palisade_base::limits;

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A column: its heading, its alignment, and a cell per row.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub heading: String,
    pub align: Align,
    pub cells: Vec<String>,
}

/// The text between columns.
const GAP: &str = "  ";

impl Column {
    pub(crate) fn new(heading: impl Into<String>, align: Align, cells: Vec<String>) -> Column {
        Column { heading: heading.into(), align, cells }
    }

    pub(crate) fn width(&self) -> usize {
        self.cells.iter().chain([&self.heading]).map(|text| text.chars().count()).max().unwrap_or(0)
    }
}

/// The total width of columns placed side by side.
pub(crate) fn width(columns: &[Column]) -> usize {
    columns.iter().map(Column::width).sum::<usize>() + GAP.len() * columns.len().saturating_sub(1)
}

/// The lines of a table, heading first, without trailing blanks.
pub(crate) fn lines(columns: &[Column]) -> Vec<String> {
    let widths: Vec<usize> = columns.iter().map(Column::width).collect();
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let line = |cell: &dyn Fn(&Column) -> String| {
        limits::checkpoint();
        let cells: Vec<String> = columns
            .iter()
            .zip(&widths)
            .map(|(column, &width)| {
                let text = cell(column);
                let blanks = " ".repeat(width - text.chars().count());
                match column.align {
                    Align::Left => text + &blanks,
                    Align::Right => blanks + &text,
                }
            })
            .collect();
        cells.join(GAP).trim_end().to_owned()
    };
    std::iter::once(line(&|column| column.heading.clone()))
        .chain((0..rows).map(|row| line(&|column| column.cells.get(row).cloned().unwrap_or_default())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_aligned_and_lines_end_without_blanks() {
        let columns = [
            Column::new("n", Align::Right, vec!["1".into(), "10".into()]),
            Column::new("what", Align::Left, vec!["ç".into(), "".into()]),
        ];
        assert_eq!(lines(&columns), [" n  what", " 1  ç", "10"]);
        assert_eq!(width(&columns), 8);
    }
}
