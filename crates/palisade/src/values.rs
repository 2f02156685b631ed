//! The values that shared variables can take.
//!
//! *Guarantee.* No run under any memory model puts another value into the cell: threads are assumed to read any value
//! that a cell may hold (`palisade_automata::Automata`). Some of these values may not occur in any run.

use palisade_engine::{Analysis, Limits, Reason};
use palisade_program::Value;
use palisade_program::written::Program;

/// The values that a cell can hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellValues {
    /// The cell: `x`, or `a[0]`.
    pub cell: String,
    /// No run puts another value into it. In order.
    pub values: Vec<Value>,
}

/// The values of all cells, within limits. If they are not known, why.
pub fn possible_values(program: &Program, limits: &Limits) -> Result<Vec<CellValues>, Reason> {
    // Plain accesses are accesses like others here. The program has the same runs without them.
    let program = limits.within(|| program.without_plain()).map_err(Reason::Exhausted)?;
    let options = crate::CheckOptions::default();
    let analysis = Analysis::new(options.task(&program));
    let automata = analysis.automata(limits)?;
    let system = limits.within(|| analysis.system(1)).map_err(Reason::Exhausted)?;
    let cells = system.cells.iter_enumerated().map(|(cell, described)| {
        let mut values: Vec<Value> = automata.values[cell].iter().copied().collect();
        values.sort_unstable();
        values.dedup();
        CellValues { cell: described.name.clone(), values }
    });
    Ok(cells.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_base::Source;
    use palisade_syntax::{Language, parse};

    #[test]
    fn values_that_are_stored_and_no_others() {
        let text = "shared x: 0..9 = 2; shared a[2];\nprocess P { x = 4; a[1] = x + 1; }\n";
        let program = parse(Language::Pal, &Source::new("p", text)).expect("it is valid").program;
        let found = possible_values(&program, &Limits::unlimited(1)).expect("they are known");
        let found: Vec<_> = found.iter().map(|cell| (cell.cell.as_str(), cell.values.as_slice())).collect();
        assert_eq!(found, [("x", &[2, 4][..]), ("a[0]", &[0][..]), ("a[1]", &[0, 3, 5][..])]);
    }

    #[test]
    fn values_without_bound_are_not_listed() {
        let text = "shared x;\nprocess P { loop { x = x + 1; } }\n";
        let program = parse(Language::Pal, &Source::new("p", text)).expect("it is valid").program;
        let limits = Limits::unlimited(1).with_work(10_000).with_memory(1 << 26);
        possible_values(&program, &limits).expect_err("there are too many");
    }
}
