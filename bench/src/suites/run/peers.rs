//! All executions under TSO, beside what other stateless model checkers need: the counts of GenMC 0.10.3 and Nidhugg on
//! tests of GenMC's suite, whose algorithms are written here in our own words, and how many executions per second there
//! are in one process compared with a process for each.

use super::native::{Folder, Settings, session_with};
use crate::table::{Table, judged, thousands};
use crate::watch::{measuring, say};
use anyhow::Result;
use palisade_harness::process::Scheduling;
use palisade_memory::Model;
use std::time::Instant;

/// A test: its name, its program with its options, and how many executions GenMC and Nidhugg run under TSO, where that
/// is known.
struct Test {
    name: &'static str,
    program: &'static str,
    options: &'static [&'static str],
    genmc: Option<u64>,
    nidhugg: Option<u64>,
}

const fn litmus(name: &'static str, options: &'static [&'static str], both: u64) -> Test {
    Test { name, program: "litmus", options, genmc: Some(both), nidhugg: Some(both) }
}

/// The same where Nidhugg is wrong: it counts fewer executions under TSO than under SC.
const fn by_genmc(name: &'static str, options: &'static [&'static str], genmc: u64) -> Test {
    Test { name, program: "litmus", options, genmc: Some(genmc), nidhugg: None }
}

const TESTS: [Test; 36] = [
    litmus("SB", &["-DP0=W(x,1)R(y)", "-DP1=W(y,1)R(x)"], 4),
    litmus("SB+4sc", &["-DP0=WSC(x,1)R(y)", "-DP1=WSC(y,1)R(x)"], 3),
    litmus("MP", &["-DP0=W(x,1)W(y,1)", "-DP1=R(y)R(x)"], 3),
    litmus("LB", &["-DP0=R(x)W(y,1)", "-DP1=R(y)W(x,1)"], 3),
    litmus("LB3", &["-DP0=R(x)W(y,1)", "-DP1=R(y)W(z,1)", "-DP2=R(z)W(x,1)"], 7),
    litmus("2+2W", &["-DP0=W(x,1)W(y,2)", "-DP1=W(y,1)W(x,2)"], 3),
    litmus("IRIWish", &["-DP0=W(x,1)", "-DP1=COPY(y,x)", "-DP2=R(x)R(y)", "-DP3=R(y)R(x)"], 27),
    litmus("CoRR2", &["-DP0=W(x,1)", "-DP1=W(x,2)", "-DP2=R(x)R(x)", "-DP3=R(x)R(x)"], 72),
    litmus(
        "inc+inc+RR+W+RR",
        &["-DP0=INC(x)", "-DP1=INC(x)", "-DP2=R(x)R(x)", "-DP3=W(x,9)", "-DP4=R(x)R(x)"],
        600,
    ),
    litmus("CoRR0", &["-DP0=W(x,1)", "-DP1=R(x)", "-DP2=R(x)"], 4),
    litmus("CoWR", &["-DP0=W(x,1)R(x)", "-DP1=W(x,2)"], 3),
    litmus("SB+rfis", &["-DP0=W(x,1)R(x)R(y)", "-DP1=W(y,1)R(y)R(x)"], 4),
    litmus("RWC+syncs", &["-DP0=W(x,1)", "-DP1=R(x)FENCE R(y)", "-DP2=W(y,1)FENCE R(x)"], 7),
    litmus("LB+fr-fr-data+data", &["-DP0=R(x)W(y,1)", "-DP1=R(y)R(y)W(x,1)", "-DP2=W(y,2)"], 16),
    litmus("MP2", &["-DP0=W(x,1)W(z,1)W(y,1)W(w,1)", "-DP1=R(y)R(x)", "-DP2=R(w)R(z)"], 9),
    litmus("isa2", &["-DP0=W(x,1)W(y,1)", "-DP1=R(y)W(z,1)", "-DP2=R(z)R(x)"], 7),
    litmus("small0", &["-DP0=R(x)", "-DP1=R(x)W(x,1)", "-DP2=W(x,2)"], 9),
    litmus("ori", &["-DP0=INC(x)W(y,1)", "-DP1=CAS(x,0,1)", "-DP2=IF(y,0,W(x,4))"], 5),
    litmus("viktor-relseq", &["-DP0=INC(x)INC(x)", "-DP1=INC(x)INC(x)", "-DP2=INC(x)", "-DP3=INC(x)"], 180),
    litmus(
        "MPU2+rels+acqf",
        &["-DP0=W(x,1)W(y,0)W(y,1)", "-DP1=CAS(y,2,3)", "-DP2=CAS(y,1,2)", "-DP3=IF(y,2,W(x,2))"],
        35,
    ),
    by_genmc("MPU+rels+acqf", &["-DP0=W(x,1)W(y,0)W(y,1)", "-DP1=INC(y)", "-DP2=IF(y,1,W(x,2))"], 12),
    by_genmc("Z6.U", &["-DP0=WSC(x,1)W(y,1)", "-DP1=INC(y)R(y)", "-DP2=WSC(y,3)R(x)"], 18),
    by_genmc("atomicpo", &["-DP0=W(y,1)W(x,1)", "-DP1=XCHG(x,1)XCHG(y,1)"], 3),
    litmus("2+2W+4sc", &["-DP0=WSC(x,1)WSC(y,2)", "-DP1=WSC(y,1)WSC(x,2)"], 3),
    litmus("MP+rels+acq", &["-DP0=W(x,1)W(y,0)W(y,1)", "-DP1=IF(y,0,R(x))"], 3),
    litmus("S+rels+acq", &["-DP0=W(x,1)W(y,0)W(y,1)", "-DP1=IF(y,0,W(x,2))"], 3),
    litmus("po-loc", &["-DP0=R(y)R(x)W(x,1)", "-DP1=COPY(y,x)"], 3),
    litmus("rfi-preserved", &["-DP0=R(x)W(y,1)COPY(z,y)", "-DP1=COPY(x,z)"], 3),
    litmus("rinc+wr", &["-DP0=INC(x)", "-DP1=W(x,2)R(x)"], 3),
    litmus("ccr", &["-DP0=CAS(x,0,42)", "-DP1=CAS(x,0,17)R(x)"], 2),
    litmus("cumul-release", &["-DP0=W(x,1)W(y,1)", "-DP1=COPY(z,y)", "-DP2=R(z)R(x)"], 7),
    litmus("rel-B-cumul-acq", &["-DP0=W(x,1)W(y,1)", "-DP1=COPY(z,y)", "-DP2=R(z)R(x)", "-DP3=R(y)"], 14),
    litmus(
        "MPU2+rel+acqf",
        &["-DP0=W(x,1)W(y,1)", "-DP1=CAS(y,2,3)", "-DP2=CAS(y,1,2)", "-DP3=IF(y,2,W(x,2))"],
        14,
    ),
    by_genmc("MPU+rel+acqf", &["-DP0=W(x,1)W(y,1)", "-DP1=INC(y)", "-DP2=IF(y,1,W(x,2))"], 6),
    Test { name: "fib_bench, 4", program: "fib", options: &["-DOPS=4"], genmc: None, nidhugg: None },
    Test { name: "fib_bench, 5", program: "fib", options: &["-DOPS=5"], genmc: Some(525_630), nidhugg: None },
];

/// With a process for each, no more executions than these are run.
const FORKED: u64 = 2_000;

/// Whether a second job helps is measured on tests with this many executions, with some of them.
const LONG: u64 = 10_000;
const SOME: u64 = 30_000;

pub fn run(folder: &Folder) -> Result<()> {
    say!("All executions under TSO, beside those of GenMC and Nidhugg");
    let mut table = Table::new(&[
        "test",
        "GenMC",
        "Nidhugg",
        "ours",
        "",
        "s",
        "executions/s",
        "forked/s",
        "ratio",
        "two jobs",
    ]);
    for test in TESTS {
        measuring(&format!("{}, all executions under TSO", test.name))?;
        let settings = Settings { threads: 2, ops: 4, fenced: false };
        let path = folder.compile_with(test.program, settings, &["-O1"], test.options)?;
        let measure = |scheduling: Scheduling, jobs: usize, most: u64| -> Result<(u64, bool, f64)> {
            let mut session = session_with(&path, Model::Tso, scheduling, jobs)?;
            let start = Instant::now();
            let searched = session.explore(None, most, |_| true);
            let fine = searched.complete && session.findings.failures.is_empty();
            Ok((searched.executions, fine, start.elapsed().as_secs_f64()))
        };
        let (executions, fine, seconds) = measure(Scheduling::Best, 1, u64::MAX)?;
        let (few, _, forked) = measure(Scheduling::Forked, 1, FORKED)?;
        let (rate, forked) = (executions as f64 / seconds, few as f64 / forked);
        let second = if executions < LONG {
            String::new()
        } else {
            let (executions, _, seconds) = measure(Scheduling::Best, 2, SOME)?;
            let (before, _, alone) = measure(Scheduling::Best, 1, SOME)?;
            format!("{:.2}", executions as f64 / seconds / (before as f64 / alone))
        };
        let least = test.nidhugg.into_iter().chain(test.genmc).min().unwrap_or(u64::MAX);
        table.row(vec![
            test.name.to_owned(),
            test.genmc.map_or_else(String::new, thousands),
            test.nidhugg.map_or_else(String::new, thousands),
            thousands(executions),
            judged(fine && executions <= least),
            format!("{seconds:.2}"),
            thousands(rate as u64),
            thousands(forked as u64),
            format!("{:.1}", rate / forked),
            second,
        ]);
    }
    table.print();
    say!(
        "GenMC, Nidhugg: complete executions; forked/s: executions per second with a process for each, of the first {FORKED}; the first executions of a search are always run like that; two jobs: executions per second with two jobs, compared with one\n"
    );
    Ok(())
}
