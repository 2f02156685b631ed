//! Backward search: what several processes would have to exchange, and the most that they could gain.
//!
//! *How.* The exact search of the load-buffer engine is run in this process, as it is and in rounds, and everything is
//! counted that several processes would send ([`palisade_cover::Sharing`]). Each predecessor goes to its owner. If the owner
//! has nothing below it, it asks the others: those that have something that could be below, or, if it does not know what
//! they have, all that could have.
//!
//! *The most that can be gained* by N processes is bounded by two things that no implementation can avoid:
//! - In a round, the process with most to expand decides how long it takes.
//! - What is looked up at another process is looked up twice.
//!
//! Messages are taken to cost nothing. The last column adds what waiting costs: in every round, all processes wait for
//! each other four times (predecessors, questions, answers, and what all of them have to know), [`STEP`] each.

use crate::measure::machine;
use crate::table::{Table, thousands};
use crate::watch::{measuring, say, stop};
use anyhow::{Result, anyhow};
use palisade_base::Source;
use palisade_corpus::Fences;
use palisade_corpus::mutex::{bakery, burns, filter_lock, lamport_fast, szymanski};
use palisade_cover::{Dual, Owners, SharedSearch, Shares, shared_search};
use palisade_engine::{Engine, Limits, Options, Task, Threads};
use palisade_memory::{Interlocked, Model};
use palisade_program::written::Program;
use palisade_syntax::{Language, parse};
use std::time::{Duration, Instant};

/// A family of programs, by the number of threads.
type Family = fn(u32, Fences) -> String;

/// The searches, with fences, so that all of it has to be searched.
const SEARCHES: [(&str, Family, u32); 9] = [
    ("lamport_fast", lamport_fast, 3),
    ("lamport_fast", lamport_fast, 4),
    ("lamport_fast", lamport_fast, 5),
    ("lamport_fast", lamport_fast, 6),
    ("filter_lock", filter_lock, 4),
    ("szymanski", szymanski, 4),
    ("szymanski", szymanski, 5),
    ("burns", burns, 5),
    ("bakery, 3 threads", |numbers, fences| bakery(3, numbers, fences), 3),
];

/// Numbers of processes.
const PROCESSES: [usize; 3] = [2, 4, 16];

/// How long it takes until every process knows that all of them have come to the end of a step, without anything to do in
/// between: on the loopback interface, about half of the time that a search with small levels waits per level (`cluster`,
/// `waited_ms`).
const STEP: Duration = Duration::from_micros(500);
/// How many steps a round has.
const STEPS: u32 = 4;

/// Runs the suite.
pub fn run(limit: Duration) -> Result<()> {
    say!("{}; at most {} s per search\n", machine(), limit.as_secs());
    let mut alone = Table::new(&[
        "search",
        "engine, s",
        "exact search, s",
        "configurations",
        "in rounds",
        "rounds",
        "expanding, s",
        "looking up, s",
        "bytes each",
    ]);
    let mut shared = Table::new(&[
        "search",
        "processes",
        "owners by",
        "sent",
        "MB",
        "decided by the owner",
        "asked of others",
        "if blindly",
        "decided by others",
        "messages each",
        "most gained",
        "with waiting",
    ]);
    for (name, text, size) in SEARCHES {
        let name = format!("{name} {size}");
        measuring(&name)?;
        let source = Source::new(name.as_str(), text(size, Fences::Tso));
        let parsed = parse(Language::Pal, &source).map_err(|errors| anyhow!("{name}: {errors:?}"))?;
        let Some((engine, search)) = measured(&parsed.program, limit) else {
            alone.row(std::iter::once(name).chain((0..8).map(|_| "-".to_owned())).collect());
            continue;
        };
        let SharedSearch { alone: (time, configurations), in_rounds, bytes, sharing, .. } = &search;
        alone.row(vec![
            name.clone(),
            format!("{:.2}", engine.as_secs_f64()),
            format!("{:.2}", time.as_secs_f64()),
            thousands(*configurations),
            thousands(*in_rounds),
            thousands(sharing.rounds),
            format!("{:.2}", sharing.expanding.as_secs_f64()),
            format!("{:.2}", sharing.looking_up.as_secs_f64()),
            thousands(bytes / in_rounds.max(&1)),
        ]);
        for shares in &sharing.shares {
            shared.row(cells(&name, &search, shares));
        }
    }
    say!("The search in one process");
    alone.print();
    say!(
        "engine: with its attempts at shorter proofs; in rounds: configurations if all of the smallest weight are expanded"
    );
    say!("at once\n");
    say!("What several processes would do");
    shared.print();
    say!(
        "of all predecessors: sent to another process; decided by the owner alone; other processes asked per predecessor, if"
    );
    say!(
        "it is known who has something below or blindly; decided by another process only. Most gained: see `backward.rs`"
    );
    Ok(())
}

/// The time of the engine as it is, and the search.
fn measured(program: &Program, limit: Duration) -> Option<(Duration, SharedSearch)> {
    let options = Options::default();
    let (threads, interlocked) = (Threads::Declared, Interlocked::default());
    let task = Task { program, threads, model: Model::Tso, interlocked, options };
    let limits = || Limits::unlimited(1).with_timeout(limit).with_memory(4 << 30).with_stop(stop());
    let start = Instant::now();
    Dual.check(&task.analysis(), &limits());
    let engine = start.elapsed();
    Some((engine, shared_search(&task.analysis(), &limits, &PROCESSES)?))
}

fn cells(name: &str, search: &SharedSearch, shares: &Shares) -> Vec<String> {
    let all = search.in_rounds.max(1) as f64;
    let percent = |count: u64| format!("{:.1} %", 100.0 * count as f64 / all);
    let each = |count: u64| format!("{:.2}", count as f64 / all);
    let sent_bytes = search.bytes as f64 / all * (shares.sent + shares.asked) as f64;
    vec![
        name.to_owned(),
        shares.processes.to_string(),
        match shares.owners {
            Owners::ByKeys => "states",
            Owners::ByKeysAndCells => "states, cells",
        }
        .to_owned(),
        percent(shares.sent),
        format!("{:.1}", sent_bytes / 1e6),
        percent(shares.decided),
        each(shares.asked),
        each(shares.asked_blindly),
        percent(shares.decided_elsewhere),
        each(shares.sent + 2 * shares.asked),
        format!("{:.2}", most_gained(search, shares, Duration::ZERO)),
        format!("{:.2}", most_gained(search, shares, STEP)),
    ]
}

/// How much faster the processes can be than the search in one process, at most.
fn most_gained(search: &SharedSearch, shares: &Shares, step: Duration) -> f64 {
    let SharedSearch { alone: (alone, _), in_rounds, sharing, .. } = search;
    let expanding = sharing.expanding.as_secs_f64() * shares.longest as f64 / sharing.expanded.max(1) as f64;
    let asked_again = 1.0 + shares.asked as f64 / (*in_rounds).max(1) as f64;
    let looking_up = sharing.looking_up.as_secs_f64() * asked_again / shares.processes as f64;
    let waiting = (step * STEPS).as_secs_f64() * sharing.rounds as f64;
    alone.as_secs_f64() / (expanding + looking_up + waiting)
}
