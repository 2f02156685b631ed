//! Tables in plain text, or as lines of JSON.

use crate::watch::{self, say};
use serde_json::{Map, Value, json};

/// A table. The first column is aligned left, the others right. If its suite ends before the table is
/// printed, it is printed when it is dropped, so that no measurement is lost.
pub struct Table {
    rows: Vec<Vec<String>>,
    printed: bool,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Table {
        let rows = vec![headings.iter().map(|&heading| heading.to_owned()).collect()];
        Table { rows, printed: false }
    }

    /// Adds a row, unless its measurement was aborted.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.rows[0].len(), "a row has as many cells as there are headings");
        if !watch::is_stopped() {
            self.rows.push(cells);
        }
    }

    /// Prints it.
    pub fn print(mut self) {
        self.print_now();
    }

    fn print_now(&mut self) {
        if std::mem::replace(&mut self.printed, true) {
            return;
        }
        if watch::prints_json() {
            self.objects(watch::suite()).iter().for_each(|object| println!("{object}"));
        } else {
            self.lines().iter().for_each(|line| say!("{line}"));
        }
    }

    fn lines(&self) -> Vec<String> {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..self.rows[0].len()).map(|column| width(column).unwrap_or(0)).collect();
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).enumerate();
            let cells: Vec<String> = cells
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            lines.push(cells.join("  ").trim_end().to_owned());
            if number == 0 {
                lines.push(widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>().join("  "));
            }
        }
        lines
    }

    /// An object for each row, with the headings as keys. A repeated heading gets a number. The column
    /// without a heading says whether an aim is reached.
    fn objects(&self, suite: &str) -> Vec<Value> {
        let mut keys: Vec<String> = Vec::new();
        for heading in &self.rows[0] {
            let name = if heading.is_empty() { "aim" } else { heading };
            let again = (2..).map(|number| format!("{name} {number}"));
            let new = std::iter::once(name.to_owned()).chain(again).find(|key| !keys.contains(key));
            keys.extend(new);
        }
        let cells = |row: &Vec<String>| {
            keys.iter().cloned().zip(row.iter().cloned().map(Value::from)).collect::<Map<_, _>>()
        };
        let object =
            |row| json!({ "schema_version": 1, "command": "bench", "suite": suite, "row": cells(row) });
        self.rows[1..].iter().map(object).collect()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.rows.len() > 1 {
            self.print_now();
        }
    }
}

/// A number with separators between thousands.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_as_text_and_as_an_object() {
        let mut table = Table::new(&["program", "s", "", "s", ""]);
        table.row(["a", "1", "ok", "10", "SHORT"].map(str::to_owned).to_vec());
        assert_eq!(
            table.lines(),
            ["program  s       s", "-------  -  --  --  -----", "a        1  ok  10  SHORT"]
        );
        let row = json!({ "program": "a", "s": "1", "aim": "ok", "s 2": "10", "aim 2": "SHORT" });
        let object = json!({ "schema_version": 1, "command": "bench", "suite": "auto", "row": row });
        assert_eq!(table.objects("auto"), [object]);
        table.printed = true;
    }
}
