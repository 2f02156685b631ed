//! Any number of threads that run the same function.
//!
//! *Problem.* A program starts three identical threads. Is it safe with any number of them?
//!
//! *How.* Threads that run the same code are instances of one process ([`mod@palisade_c`]). Now there is any number of
//! instances:
//! - They wait for the cell that is set when the last one is started, so any number of them can start there.
//! - At its end, a thread counts itself, so that the joining thread knows when all have ended. With any number there is
//!   no such count. A thread that joins them stops there, and the answer says so.
//!
//! *Guarantee.* Up to the point where the threads are joined, every run of a program that starts n threads in the same
//! way is a run of this one with n instances. Differences between the threads are refused: different arguments, and
//! memory of their own, such as a variable whose address is taken, a node on the heap, or their number in
//! a mutex.

use palisade_base::{Diagnostic, Span};
use palisade_c::{Finish, Note, ThreadCell, Translation};
use palisade_program::written::{Block, Count, Expr, ExprKind, PlaceKind, Program, Rmw, StmtKind};
use std::collections::BTreeSet;

/// Allows any number of the threads that are alike.
pub(super) fn any_number(translation: &mut Translation) -> Result<(), Vec<Diagnostic>> {
    let functions = functions(translation);
    let program = &mut translation.program;
    let is_alike = |count: Count| matches!(count, Count::Fixed(count) if count > 1);
    let alike: Vec<usize> =
        (0..program.templates.len()).filter(|&index| is_alike(program.templates[index].count)).collect();
    let refused = |message: String| {
        let help = "with --threads any, threads that run the same function must take the same argument and have no memory \
                    of their own: no local variable whose address is taken, no heap, no mutex";
        vec![Diagnostic::error("c-threads", message).help(help)]
    };
    for (index, own) in functions.iter().enumerate() {
        if functions.iter().skip(index + 1).any(|other| other.iter().any(|function| own.contains(function))) {
            let names = own.join("` or `");
            return Err(refused(format!(
                "the threads that run `{names}` differ, so their number cannot be left open"
            )));
        }
    }
    if alike.is_empty() {
        return Err(refused(
            "the program does not start several threads that run the same function".to_owned(),
        ));
    }
    let ended: BTreeSet<String> = program
        .shared
        .iter()
        .filter(|shared| {
            let cell = shared.at.and_then(|at| translation.waits.cell(at.address));
            matches!(cell, Some(ThreadCell::Ended(_)))
        })
        .map(|shared| shared.name.as_str().to_owned())
        .collect();
    let mut counts = BTreeSet::new();
    let mut started = Vec::new();
    for &index in &alike {
        let template = &mut program.templates[index];
        if let Count::Fixed(count) = template.count {
            started.push(format!(
                "any number of threads run `{}`, of which the source starts {count}",
                functions[index].join("` or `")
            ));
        }
        template.count = Count::Any;
        uncount(&mut template.body, &ended, &mut counts);
    }
    let mut is_cut = false;
    for template in &mut program.templates {
        // Other threads that are joined together with these count themselves in the same cell.
        uncount(&mut template.body, &counts, &mut BTreeSet::new());
        cut(&mut template.body, &counts, &mut is_cut);
    }
    if counts.iter().any(|count| is_used(program, count)) {
        return Err(refused("the way these threads are joined is not supported".to_owned()));
    }
    let fixed = |note: &Note| note.0.contains(" besides `");
    translation.notes.retain(|note| !fixed(note));
    translation.notes.extend(started.into_iter().map(Note));
    if is_cut {
        let note = "what happens after these threads have been joined is not checked";
        translation.notes.push(Note(note.to_owned()));
    }
    let note = "deadlocks, and whether the program can finish, are not checked for any number of threads";
    translation.notes.push(Note(note.to_owned()));
    translation.finish = Finish::NotFollowed("the number of threads is not known");
    (translation.outlives, translation.allocations) = (false, None);
    Ok(())
}

/// The functions that the instances of each process run.
fn functions(translation: &Translation) -> Vec<Vec<String>> {
    let mut at = 0;
    let of = |count: Count| match count {
        Count::Fixed(count) => count as usize,
        Count::Any => 1,
    };
    let templates = translation.program.templates.iter();
    templates
        .map(|template| {
            let first = translation.threads.get(at).map_or_else(Vec::new, |thread| thread.functions.clone());
            at += of(template.count);
            first
        })
        .collect()
}

/// Removes the steps by which threads count themselves at their end, and collects the cells that they count in.
fn uncount(block: &mut Block, ended: &BTreeSet<String>, counts: &mut BTreeSet<String>) {
    for stmt in block {
        let value = match &stmt.kind {
            StmtKind::Eval(value) | StmtKind::Assign { value, .. } => Some(value),
            _ => None,
        };
        if let Some(ExprKind::Locked(Rmw::FetchAdd, place, _)) = value.map(|value| &value.kind)
            && let PlaceKind::Named(name) = &place.kind
            && ended.contains(name.as_str())
        {
            counts.insert(name.as_str().to_owned());
            stmt.kind = StmtKind::Skip;
        }
        stmt.kind.blocks_mut().into_iter().for_each(|block| uncount(block, ended, counts));
    }
}

/// Stops threads where they wait for the end of such threads.
fn cut(block: &mut Block, counts: &BTreeSet<String>, is_cut: &mut bool) {
    for stmt in block {
        if let StmtKind::Await(condition) = &stmt.kind
            && counts.iter().any(|count| mentions(condition, count))
        {
            stmt.kind = StmtKind::Assume(Expr::new(ExprKind::Bool(false), Span::NONE));
            *is_cut = true;
        }
        stmt.kind.blocks_mut().into_iter().for_each(|block| cut(block, counts, is_cut));
    }
}

fn mentions(e: &Expr, name: &str) -> bool {
    match &e.kind {
        ExprKind::Read(place) | ExprKind::AddressOf(place) => {
            matches!(&place.kind, PlaceKind::Named(known) if known.as_str() == name)
        }
        ExprKind::Unary(_, a) => mentions(a, name),
        ExprKind::Binary(_, a, b) => mentions(a, name) || mentions(b, name),
        _ => false,
    }
}

/// Whether a process still uses a cell. Looks at everything that a statement can contain.
fn is_used(program: &Program, name: &str) -> bool {
    program.templates.iter().any(|template| format!("{:?}", template.body).contains(&format!("{name:?}")))
}
