//! Tables in plain text.

/// A table; the first column is aligned left, the others right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Table {
        Table { rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len(), "a row has as many cells as there are headings");
        self.rows.push(cells);
    }

    /// Prints it.
    pub fn print(&self) {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..self.rows[0].len()).map(|column| width(column).unwrap_or(0)).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).enumerate();
            let cells: Vec<String> = cells
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            println!("{}", cells.join("  ").trim_end());
            if number == 0 {
                println!("{}", widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>().join("  "));
            }
        }
    }
}

/// A number with thousands apart.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in megabytes.
pub fn megabytes(bytes: f64) -> String {
    format!("{:.2}", bytes / 1e6)
}

/// `ok` or `SHORT`.
pub fn judged(ok: bool) -> String {
    if ok { "ok" } else { "SHORT" }.to_owned()
}
