//! What it means for a program to finish, and whether its text has a path to that.
//!
//! *Problem.* A program that waits forever although it was meant to end has a bug. A server that runs forever does
//! not. The text says which of the two a program is: if no path leads from the beginning of `main` to its end,
//! whatever conditions hold, it is not meant to end.
//!
//! *How.* A thread can end if a path leads to its end on which it joins only threads that can end. This is the least
//! such set of threads, so threads that join each other cannot end.

use crate::expr::Expr;
use crate::flat::{BlockId, Code, End, Step, StepKind};
use crate::memory::ThreadNumber;
use crate::{Finish, Roots};
use rustc_hash::FxHashSet;

/// Which ends a thread has a path to.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Ways {
    /// Its own end.
    own: bool,
    /// The end of the program.
    program: bool,
}

/// What it means for the program to finish, before threads are started and joined by cells.
pub(crate) fn by_text(threads: &[(ThreadNumber, &Code)], roots: &Roots) -> Finish {
    let mut ending: FxHashSet<ThreadNumber> = FxHashSet::default();
    let mut over = false;
    loop {
        let before = ending.len();
        let all_started = threads.iter().skip(1).all(|(number, _)| ending.contains(number));
        for (number, code) in threads {
            let ways = ways(code, &|step| match step {
                StepKind::Join { thread: Expr::Int(thread), .. } => ending.contains(thread),
                StepKind::Join { .. } => !ending.is_empty(),
                StepKind::AwaitThreads => all_started,
                StepKind::Assert(Expr::Int(0), _) | StepKind::Unsupported(_) => false,
                _ => true,
            });
            over |= ways.program;
            if ways.own {
                ending.insert(*number);
            }
        }
        // What has changed may open a path to the end of the program.
        if ending.len() == before {
            break;
        }
    }
    let starts = |(_, code): &(ThreadNumber, &Code)| {
        let blocks = code.reachable().into_iter();
        let mut steps = blocks.flat_map(|block| &code.block(block).steps);
        steps.any(|step| matches!(step.kind, StepKind::Start { .. }))
    };
    match roots {
        Roots::Main if over => Finish::Over,
        Roots::Main => Finish::Never,
        Roots::Functions { .. } if threads.iter().any(starts) => {
            Finish::NotFollowed("the functions start threads themselves")
        }
        Roots::Functions { .. } if over => Finish::NotFollowed("a function ends the program"),
        Roots::Functions { .. } if ending.len() == threads.len() => Finish::AllEnded,
        Roots::Functions { .. } => Finish::Never,
    }
}

/// The ends that paths lead to, on which all steps let the thread pass.
fn ways(code: &Code, passes: &dyn Fn(&StepKind) -> bool) -> Ways {
    let mut found = Ways::default();
    let mut seen = vec![false; code.blocks.len()];
    let mut open = vec![BlockId(0)];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        let block = code.block(id);
        if !block.steps.iter().all(|step: &Step| passes(&step.kind)) {
            continue;
        }
        match &block.end {
            End::Stop => found.own = true,
            End::Over => found.program = true,
            end => end.for_each_successor(|to| open.push(to)),
        }
    }
    found
}
