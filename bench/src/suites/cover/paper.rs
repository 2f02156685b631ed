//! The programs of the paper's tables, from the corpus, compared with the numbers of configurations given
//! there.
//!
//! The paper gives the number of processes, but not always how many there are of each kind. The numbers of
//! each kind are taken from the files published with its tool.

use super::{Run, headings, parse, row};
use crate::corpus;
use crate::table::{Table, judged, thousands};
use crate::verdict::SafetyVerdict;
use crate::watch::{measuring, say};
use anyhow::{Context, Result};
use palisade_corpus::Safety;
use palisade_corpus::litmus::{Copies, SHAPES, litmus};
use palisade_engine::Threads;
use palisade_program::written::Program;
use palisade_syntax::Language;
use std::time::Duration;

/// Where the program of a row is.
enum From {
    /// A file of the corpus.
    File(&'static str),
    /// A litmus test with this many threads of each kind.
    Litmus(&'static str, Copies<'static>),
}

/// A row: the paper's name, the program, the verdict under TSO, the paper's number of configurations.
type Row = (&'static str, From, Safety, u64);

/// Table 1: fixed numbers of processes.
const TABLE_1: [Row; 20] = [
    ("SB (5)", From::Litmus("sb", Copies::Fixed(&[2, 3])), Safety::Unsafe, 10_641),
    ("LB (3)", From::Litmus("lb", Copies::Fixed(&[1, 2])), Safety::Safe, 2_048),
    ("WRC (4)", From::Litmus("wrc", Copies::Fixed(&[1, 1, 2])), Safety::Safe, 1_507),
    ("ISA2 (3)", From::Litmus("isa2", Copies::Fixed(&[1, 1, 1])), Safety::Safe, 509),
    ("RWC (5)", From::Litmus("rwc", Copies::Fixed(&[1, 2, 2])), Safety::Unsafe, 4_277),
    ("W+RWC (4)", From::Litmus("w+rwc", Copies::Fixed(&[1, 1, 2])), Safety::Unsafe, 1_713),
    ("IRIW (4)", From::Litmus("iriw", Copies::Fixed(&[1, 1, 1, 1])), Safety::Safe, 520),
    ("MP (4)", From::Litmus("mp", Copies::Fixed(&[2, 2])), Safety::Safe, 883),
    ("Simple Dekker (2)", From::File("mutex/dekker_simple.pal"), Safety::Unsafe, 98),
    ("Dekker (2)", From::File("mutex/dekker.pal"), Safety::Unsafe, 5_053),
    ("Peterson (2)", From::File("mutex/peterson_once.pal"), Safety::Unsafe, 5_442),
    ("Repeated Peterson (2)", From::File("mutex/peterson.pal"), Safety::Unsafe, 7_632),
    ("Bakery (2)", From::File("mutex/bakery.pal"), Safety::Unsafe, 82_050),
    ("Dijkstra (2)", From::File("mutex/dijkstra.pal"), Safety::Unsafe, 8_324),
    ("Szymanski (2)", From::File("mutex/szymanski.pal"), Safety::Unsafe, 29_018),
    ("Ticket Spin Lock (3)", From::File("locks/ticket_3.pal"), Safety::Safe, 18_963),
    ("Lamport's Fast Mutex (3)", From::File("mutex/lamport_fast_3.pal"), Safety::Unsafe, 292_543),
    ("Burns (4)", From::File("mutex/burns_4.pal"), Safety::Unsafe, 2_762_578),
    ("NBW-W-WR (2)", From::File("protocols/nbw_w_wr.pal"), Safety::Safe, 222),
    ("Sense Reversing Barrier (2)", From::File("barriers/flags.pal"), Safety::Safe, 1_704),
];

/// Table 2: any number of processes.
const TABLE_2: [Row; 8] = [
    ("SB", From::Litmus("sb", Copies::Any), Safety::Unsafe, 147),
    ("LB", From::Litmus("lb", Copies::Any), Safety::Safe, 1_028),
    ("MP", From::Litmus("mp", Copies::Any), Safety::Safe, 149),
    ("WRC", From::Litmus("wrc", Copies::Any), Safety::Safe, 618),
    ("ISA2", From::Litmus("isa2", Copies::Any), Safety::Safe, 1_539),
    ("RWC", From::Litmus("rwc", Copies::Any), Safety::Unsafe, 293),
    ("W+RWC", From::Litmus("w+rwc", Copies::Any), Safety::Unsafe, 828),
    ("IRIW", From::Litmus("iriw", Copies::Any), Safety::Safe, 648),
];

/// Prints both tables.
pub fn run(limit: Duration) -> Result<()> {
    say!("The paper's Table 1: fixed numbers of threads\n");
    table(&TABLE_1, limit)?;
    say!("\nThe paper's Table 2: any number of threads\n");
    table(&TABLE_2, limit)?;
    say!();
    Ok(())
}

fn table(rows: &[Row], limit: Duration) -> Result<()> {
    let mut table = Table::new(&headings(&["program"], &["paper", ""]));
    for (name, from, verdict, paper) in rows {
        measuring(name)?;
        let run = Run::new(&program(from)?, Threads::Declared, limit);
        let ok = run.verdict == SafetyVerdict::from(*verdict) && run.configurations <= *paper;
        table.row(row(vec![(*name).to_owned()], &run, vec![thousands(*paper), judged(ok)]));
    }
    table.print();
    Ok(())
}

fn program(from: &From) -> Result<Program> {
    match from {
        From::File(path) => Ok(corpus::read(path)?.program),
        From::Litmus(name, copies) => {
            let shape =
                SHAPES.iter().find(|shape| shape.name == *name).context("the corpus has all shapes")?;
            parse(Language::Pal, name, litmus(shape, *copies))
        }
    }
}
