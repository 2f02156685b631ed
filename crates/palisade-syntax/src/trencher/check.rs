//! Checks for undefined names, and finds where the lock is held.
//!
//! In Trencher, a misspelt register is a new register with value 0, and a misspelt state is a new state that
//! is never entered. We do the same, but warn, because programs that generate such files produce both. An
//! operator that was parsed as a register is an error, and so is an `unlock` that no `lock` leads to.

use super::file::File;
use super::file::{Instruction, RegisterId, StateId, Thread};
use super::read::shown;
use crate::report::Report;
use crate::suggest::nearest;
use palisade_base::{Diagnostic, Id, IdVec, Span, limits};
use rustc_hash::FxHashMap;

/// Suggestions are chosen from at most this many names.
const MAX_CANDIDATES: usize = 500;

/// The parts of a thread that run with the lock held.
pub(super) struct Sections {
    /// Whether a state can be entered without the lock.
    pub(super) outside: IdVec<StateId, bool>,
    /// One section per state that a `lock` leads to, in the order in which they are found.
    pub(super) sections: Vec<Section>,
}

/// The part between a `lock` and its `unlock`.
pub(super) struct Section {
    /// The state the `lock` leads to.
    pub(super) entry: StateId,
    /// The states entered before the `unlock`: the entry first, then in the order of the file.
    pub(super) states: Vec<StateId>,
    /// How many `lock` transitions lead here.
    pub(super) entrances: u32,
}

/// Characters of operators. A word that contains one is not meant to be a register.
const OPERATORS: &str = "+-*/%=!<>&|^~";

/// Reports undefined names and wrong uses of locks. Returns the sections of each thread.
pub(super) fn check(file: &File<'_>, report: &mut Report) -> Vec<Sections> {
    file.threads
        .iter()
        .map(|thread| {
            registers(thread, report);
            states(thread, report);
            sections(thread, report)
        })
        .collect()
}

/// Warns about registers that are read but never set in their thread. Their value is 0.
fn registers(thread: &Thread<'_>, report: &mut Report) {
    let mut set: IdVec<RegisterId, bool> = thread.registers.iter().map(|_| false).collect();
    for register in thread.transitions.iter().filter_map(|transition| transition.instruction.sets()) {
        set[register] = true;
    }
    let mut reported = set.clone();
    let mut unset: Vec<(RegisterId, Span)> = Vec::new();
    for term in thread.transitions.iter().flat_map(|transition| transition.instruction.terms()) {
        term.registers(&mut |register, span| {
            if !reported[register] {
                reported[register] = true;
                unset.push((register, span));
            }
        });
    }
    for (register, span) in unset {
        let name = thread.registers[register].text;
        let message =
            format!("register `{}` is never set in thread `{}`", shown(name), shown(thread.name.text));
        let known = thread.registers.iter_enumerated().filter(|&(register, _)| set[register]);
        let known = known.map(|(_, word)| word.text).take(MAX_CANDIDATES);
        let near = report.has_room().then(|| nearest(name, known)).flatten();
        if name.contains(|c: char| OPERATORS.contains(c)) {
            let help = "write the operator first, and separate everything with spaces: `== r 1`";
            report.push(Diagnostic::error("unknown-register", message).at(span, "").help(help));
            continue;
        }
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "set it with `read` or `local`, or write the number itself".to_owned(),
        };
        let message = format!("{message}, so it is 0");
        report.push(Diagnostic::warning("unknown-register", message).at(span, "").help(help));
    }
}

/// Warns about states that cannot be entered but have transitions, which are then never taken.
fn states(thread: &Thread<'_>, report: &mut Report) {
    let mut entered: IdVec<StateId, bool> = thread.states.iter().map(|_| false).collect();
    entered[thread.initial] = true;
    for transition in thread.transitions.iter().filter(|transition| transition.from != transition.to) {
        entered[transition.to] = true;
    }
    let unentered = entered.iter_enumerated().filter(|(_, is_entered)| !**is_entered);
    for (state, _) in unentered {
        let name = thread.states[state].name.text;
        let Some(&first) = thread.states[state].out.first() else {
            // Only `final` mentions it.
            unknown_final(thread, state, report);
            continue;
        };
        let message =
            format!("no transition leads to state `{}`, and it is not the initial state", shown(name));
        let dead_ends =
            thread.states.iter_enumerated().filter(|(other, s)| entered[*other] && s.out.is_empty());
        let dead_ends = dead_ends.map(|(_, s)| s.name.text).take(MAX_CANDIDATES);
        let near = report.has_room().then(|| nearest(name, dead_ends)).flatten();
        let help = near.map_or_else(
            || "remove its transitions, or add a transition to it".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let span = thread.transitions[first].from_span;
        report.push(Diagnostic::warning("unreachable-state", message).at(span, "").help(help));
    }
    if let Some(last) = thread.last.filter(|&last| entered[last] && !reached(thread)[last]) {
        let [first, name] = [thread.initial, last].map(|state| shown(thread.states[state].name.text));
        let message = format!("the final state `{name}` cannot be reached from the initial state `{first}`");
        let help = "add transitions from one to the other, or remove `final`";
        let warning = Diagnostic::warning("unreachable-state", message).at(thread.states[last].name.span, "");
        report.push(warning.help(help));
    }
}

/// The states that are reachable from the initial state.
fn reached(thread: &Thread<'_>) -> IdVec<StateId, bool> {
    let mut reached: IdVec<StateId, bool> = thread.states.iter().map(|_| false).collect();
    reached[thread.initial] = true;
    let mut open = vec![thread.initial];
    while let Some(state) = open.pop() {
        limits::checkpoint();
        for &transition in &thread.states[state].out {
            let to = thread.transitions[transition].to;
            if !std::mem::replace(&mut reached[to], true) {
                open.push(to);
            }
        }
    }
    reached
}

fn unknown_final(thread: &Thread<'_>, state: StateId, report: &mut Report) {
    let word = thread.states[state].name;
    let message = format!("no transition leads to the final state `{}`", shown(word.text));
    let others = thread.states.iter().map(|other| other.name.text).filter(|name| *name != word.text);
    let mut diagnostic = Diagnostic::warning("unreachable-state", message).at(word.span, "");
    if let Some(near) = nearest(word.text, others.take(MAX_CANDIDATES)) {
        diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
    }
    report.push(diagnostic);
}

/// The sections of a thread can overlap. Together they can have at most this many states, so that the program
/// stays about as large as its text.
const MAX_COPIES: usize = 1_000_000;

/// Follows the lock through the thread.
fn sections(thread: &Thread<'_>, report: &mut Report) -> Sections {
    let mut outside: IdVec<StateId, bool> = thread.states.iter().map(|_| false).collect();
    let mut sections: Vec<Section> = Vec::new();
    let mut by_entry: FxHashMap<StateId, usize> = FxHashMap::default();
    let mut unlocked = vec![false; thread.transitions.len()];
    let mut relocked: Vec<usize> = Vec::new();
    let mut never_unlocked: Vec<StateId> = Vec::new();
    let mut copies = 0;
    // The section in which each state was last seen, so that no set needs to be cleared.
    let mut seen: IdVec<StateId, u32> = thread.states.iter().map(|_| u32::MAX).collect();

    let mut waiting = vec![thread.initial];
    while let Some(state) = waiting.pop() {
        limits::checkpoint();
        if std::mem::replace(&mut outside[state], true) {
            continue;
        }
        for &position in &thread.states[state].out {
            let transition = &thread.transitions[position];
            match transition.instruction {
                Instruction::Unlock => {}
                Instruction::Lock => {
                    if let Some(&known) = by_entry.get(&transition.to) {
                        sections[known].entrances += 1;
                        continue;
                    }
                    let number = sections.len();
                    by_entry.insert(transition.to, number);
                    let mut states = vec![transition.to];
                    seen[transition.to] = StateId::from_index(number).0;
                    let mut next = 0;
                    while let Some(&inside) = states.get(next) {
                        limits::checkpoint();
                        next += 1;
                        copies += 1;
                        if thread.states[inside].out.is_empty() {
                            never_unlocked.push(inside);
                        }
                        for &position in &thread.states[inside].out {
                            let step = &thread.transitions[position];
                            match step.instruction {
                                Instruction::Unlock => {
                                    unlocked[position] = true;
                                    waiting.push(step.to);
                                }
                                Instruction::Lock => relocked.push(position),
                                _ if seen[step.to] != number as u32 => {
                                    seen[step.to] = number as u32;
                                    states.push(step.to);
                                }
                                _ => {}
                            }
                        }
                    }
                    if copies > MAX_COPIES.max(4 * thread.states.len()) {
                        let message = format!(
                            "the locked parts of thread `{}` overlap too much",
                            shown(thread.name.text)
                        );
                        let diagnostic = Diagnostic::error("too-large", message).at(transition.span, "");
                        report.push(diagnostic.help("give each `lock` its own states up to the `unlock`"));
                        return Sections { outside, sections };
                    }
                    states[1..].sort_unstable();
                    sections.push(Section { entry: transition.to, states, entrances: 1 });
                }
                _ => waiting.push(transition.to),
            }
        }
    }
    lock_misuse(thread, &outside, &unlocked, relocked, never_unlocked, report);
    Sections { outside, sections }
}

fn lock_misuse(
    thread: &Thread<'_>,
    outside: &IdVec<StateId, bool>,
    unlocked: &[bool],
    mut relocked: Vec<usize>,
    mut never_unlocked: Vec<StateId>,
    report: &mut Report,
) {
    for (position, transition) in thread.transitions.iter().enumerate() {
        limits::checkpoint();
        if matches!(transition.instruction, Instruction::Unlock) && outside[transition.from] {
            if unlocked[position] {
                let message = "this `unlock` can also be reached without the lock; the thread is then stuck";
                report.push(Diagnostic::warning("unlock-without-lock", message).at(transition.span, ""));
            } else {
                let diagnostic = Diagnostic::error("unlock-without-lock", "no `lock` leads to this `unlock`");
                report.push(
                    diagnostic
                        .at(transition.span, "")
                        .help("in Trencher a thread would be stuck here forever"),
                );
            }
        }
    }
    relocked.sort_unstable();
    relocked.dedup();
    for position in relocked {
        let message =
            "this `lock` can be reached with the lock already held; the thread is then stuck forever";
        let diagnostic =
            Diagnostic::warning("nested-lock", message).at(thread.transitions[position].span, "");
        report.push(diagnostic);
    }
    never_unlocked.sort_unstable();
    never_unlocked.dedup();
    for state in never_unlocked {
        let word = thread.states[state].name;
        let message = format!(
            "the thread can end in state `{}` with the lock held; no other thread can run after that",
            shown(word.text)
        );
        report.push(Diagnostic::warning("lock-never-released", message).at(word.span, ""));
    }
}
