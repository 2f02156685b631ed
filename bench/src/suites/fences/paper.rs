//! The programs of the paper's Table 1, from the corpus, compared with its figures.

use super::{Goal, Run, Sets};
use crate::corpus;
use crate::table::{Table, judged};
use crate::watch::{measuring, say};
use anyhow::Result;
use palisade_fences::Per;
use std::time::Duration;

/// A row: the paper's name, the program, our answer (the fences of all processes together), and the paper's
/// seconds for one set and for all sets.
type Row = (&'static str, &'static str, Sets, f64, f64);

const TABLE_1: [Row; 17] = [
    ("1. Simple Dekker", "mutex/dekker_simple.pal", Sets::one(2), 0.02, 0.02),
    ("2. Full Dekker", "mutex/dekker.pal", Sets::one(2), 0.28, 0.28),
    ("3. Peterson", "mutex/peterson.pal", Sets::one(2), 0.24, 0.6),
    ("4. Lamport Bakery", "mutex/bakery.pal", Sets::several(4, 4), 52.0, 538.0),
    ("5. Lamport Fast", "mutex/lamport_fast.pal", Sets::one(4), 6.5, 6.5),
    ("6. CLH Queue Lock", "locks/clh.pal", Sets::NoneNeeded, 26.0, 26.0),
    ("7. Sense Reversing Barrier", "barriers/sense_reversing.pal", Sets::NoneNeeded, 1.1, 1.1),
    ("8. Burns", "mutex/burns.pal", Sets::one(2), 0.07, 0.07),
    ("9. Dijkstra", "mutex/dijkstra.pal", Sets::one(2), 9.5, 10.0),
    ("10. Tournament Barriers", "barriers/tournament.pal", Sets::NoneNeeded, 1.2, 1.2),
    ("11. A Task Scheduling Algorithm", "protocols/task_scheduling.pal", Sets::NoneNeeded, 60.0, 60.0),
    ("12. Increasing Sequence", "protocols/increasing_sequence_20.pal", Sets::NoneNeeded, 25.0, 27.0),
    ("13. Alternating Bit", "protocols/alternating_bit.pal", Sets::NoneNeeded, 0.2, 0.2),
    ("14. Producer Consumer, v1, N=2", "data-structures/producer_consumer_1_2.pal", Sets::NoneHelp, 0.2, 0.2),
    ("15. Producer Consumer, v1, N=3", "data-structures/producer_consumer_1_3.pal", Sets::NoneHelp, 4.5, 4.5),
    (
        "16. Producer Consumer, v2, N=2",
        "data-structures/producer_consumer_2_2.pal",
        Sets::NoneNeeded,
        5.7,
        5.7,
    ),
    (
        "17. Producer Consumer, v2, N=3",
        "data-structures/producer_consumer_2_3.pal",
        Sets::NoneNeeded,
        580.0,
        583.0,
    ),
];

/// Prints the table.
pub fn run(limit: Duration) -> Result<()> {
    say!("The paper's Table 1: fences of all processes together, after stores\n");
    let mut table = Table::new(&[
        "program",
        "fences",
        "asked: one",
        "all",
        "Algorithm 2: one",
        "all",
        "seconds",
        "without engines",
        "paper",
        "",
    ]);
    let (mut ours, mut printed) = (0, 0);
    for (name, file, sets, _, paper) in TABLE_1 {
        measuring(name)?;
        let input = corpus::read(file)?;
        let run = Run::new(&input, Goal::Safety, Per::Instance, limit, true)?;
        let ok = run.sets() == sets && run.is_quicker() && run.printed.is_some();
        ours += run.all;
        printed += run.printed.map_or(0, |queries| queries.all as u64);
        let mut cells = vec![name.to_owned(), run.describe()];
        cells.extend(run.queries());
        cells.push(format!("{:.3}", run.seconds));
        cells.push(format!("{:.3}", run.outside));
        cells.push(format!("{paper}"));
        cells.push(judged(ok));
        table.row(cells);
    }
    table.print();
    say!("\nprograms checked for all sets: {ours}, by Algorithm 2: {printed}  {}\n", judged(ours < printed));
    Ok(())
}
