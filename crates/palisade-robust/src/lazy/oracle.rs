//! The oracle: which instructions should be considered under TSO, by a search for attacks.
//!
//! *Source.* Section 4 of "Lazy TSO reachability". A robust program needs no such instructions. Otherwise the
//! instructions of the attacker, from the store it holds back to its last load (or start of a thread), are a
//! sequence σ that leads out of SC.
//!
//! *Several at once* (section 5). All cycles that are found at the same depth of the search are examined. For
//! each attacker, store and load, there are two sources of a σ:
//! - the cycle whose store is held back earliest;
//! - a long walk of the attacker alone, from there to the same load, on which no thread state occurs more
//!   than twice. With it, bugs that need a loop to be delayed as a whole are found with a single extension.

use crate::search::Search;
use crate::state::State;
use crate::threads::{Letter, Move, Target, Threads, Way};
use crate::witness::{Kept, steps};
use palisade_automata::on_demand::LocalId;
use palisade_base::limits;
use palisade_memory::Action;
use palisade_program::running::{CellId, CodeId, EdgeId};
use palisade_search::StateId;
use rustc_hash::{FxHashMap, FxHashSet};

/// A sequence of instructions of one code to be put off.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Sequence {
    pub code: CodeId,
    pub edges: Vec<EdgeId>,
}

/// A walk is abandoned after this many steps of search.
const MAX_STEPS: usize = 50_000;
/// Walks are not longer than this.
const LONGEST: usize = 4_096;
/// A thread state occurs at most this often on a walk.
const OFTEN: u8 = 2;

/// The sequences of the cycles that are closed by steps from these states. Those found by the search come
/// first.
pub(crate) fn sequences(search: &mut Search<'_>, cycles: &[StateId]) -> Vec<Sequence> {
    // For each attacker, store and load: where the store was held back, and the steps from there.
    let mut best: Vec<(Attacked, StateId, Vec<Kept>)> = Vec::new();
    for &last in cycles.iter().take(MAX_CYCLES) {
        let (path, kept) = steps(search, last);
        let Some(start) = kept.iter().position(|kept| kept.held) else { continue };
        let attacker = kept[start].thread;
        let own: Vec<Kept> = kept[start..].iter().filter(|kept| kept.thread == attacker).cloned().collect();
        let leaves = |kept: &Kept| matches!(kept.mv.letter, Letter::Load(_) | Letter::Spawn);
        let Some(end) = own.iter().rposition(leaves) else { continue };
        let attacked = Attacked {
            attacker,
            store: search.threads.local(own[0].mv.local).thread.top().location.0,
            load: edge(&own[end].mv),
        };
        let origin = path[start];
        match best.iter_mut().find(|(other, ..)| *other == attacked) {
            Some((_, old, _)) if *old <= origin => {}
            Some(found) => *found = (attacked, origin, own[..=end].to_vec()),
            None => best.push((attacked, origin, own[..=end].to_vec())),
        }
    }
    let mut found = Vec::new();
    let mut longer = Vec::new();
    for (attacked, origin, own) in best {
        found.extend(sequence(&mut search.threads, &own));
        let words = search.state(origin).to_vec();
        let state = State { words: words.as_slice(), layout: search.layout };
        let codes = state.codes();
        if let Some(walk) = Walk::new(&mut search.threads, &codes, attacked.load).long(&own[0]) {
            longer.extend(sequence(&mut search.threads, &walk));
        }
    }
    found.append(&mut longer);
    let mut seen = FxHashSet::default();
    found.retain(|sequence| seen.insert(sequence.clone()));
    found
}

/// At most this many cycles are examined.
const MAX_CYCLES: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Attacked {
    attacker: usize,
    store: u32,
    load: EdgeId,
}

fn edge(mv: &Move) -> EdgeId {
    match mv.action {
        Action::Execute { edge, .. } => edge,
        Action::Update { .. } => unreachable!("threads have no buffers here"),
    }
}

/// The instructions of some steps. Of the last step, only the first instruction is included. `None` if the
/// instructions are in several procedures.
fn sequence(threads: &mut Threads<'_>, own: &[Kept]) -> Option<Sequence> {
    let code = threads.local(own[0].mv.local).thread.top().code;
    let mut edges = Vec::new();
    for (index, kept) in own.iter().enumerate() {
        let thread = &threads.local(kept.mv.local).thread;
        if thread.top().code != code || thread.frames.len() > 1 {
            return None;
        }
        edges.push(edge(&kept.mv));
        if index + 1 < own.len() {
            let target = kept.to.expect("an attacker opens no sections");
            for action in threads.steps_after(&kept.mv, kept.code, kept.way, target) {
                limits::checkpoint();
                let Action::Execute { edge, .. } = action else { continue };
                edges.push(edge);
            }
        }
    }
    Some(Sequence { code, edges })
}

/// The attacker alone, from the store that it holds back.
struct Walk<'w, 'a> {
    threads: &'w mut Threads<'a>,
    memory: &'w [u32],
    load: EdgeId,
    visits: FxHashMap<LocalId, u8>,
    steps: usize,
}

/// A step that may be taken next on a walk.
#[derive(Clone)]
struct Next {
    mv: Move,
    code: u32,
    target: Target,
    held: Vec<(CellId, u32)>,
}

impl<'w, 'a> Walk<'w, 'a> {
    fn new(threads: &'w mut Threads<'a>, memory: &'w [u32], load: EdgeId) -> Walk<'w, 'a> {
        Walk { threads, memory, load, visits: FxHashMap::default(), steps: 0 }
    }

    /// A long walk that begins with a store that is held back and ends with the load.
    fn long(mut self, store: &Kept) -> Option<Vec<Kept>> {
        let Letter::Store(cell) = store.mv.letter else { return None };
        let target = store.to?;
        let mut walk: Vec<Kept> = vec![store.clone()];
        let mut choices: Vec<Vec<Next>> = vec![self.next_steps(target.local, &[(cell, target.write()?)])];
        self.visits.insert(target.local, 1);
        while let Some(open) = choices.last_mut() {
            limits::checkpoint();
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return None;
            }
            let Some(next) = open.pop() else {
                choices.pop();
                let done = walk.pop()?;
                if let Some(visits) = done.to.and_then(|target| self.visits.get_mut(&target.local)) {
                    *visits -= 1;
                }
                continue;
            };
            let kept = store.clone_with(next.mv, next.code, next.target);
            if self.is_end(&next) {
                walk.push(kept);
                return Some(walk);
            }
            let visits = self.visits.entry(next.target.local).or_insert(0);
            if *visits >= OFTEN || walk.len() >= LONGEST {
                continue;
            }
            *visits += 1;
            walk.push(kept);
            let next_steps = self.next_steps(next.target.local, &next.held);
            choices.push(next_steps);
        }
        None
    }

    fn is_end(&self, next: &Next) -> bool {
        edge(&next.mv) == self.load && matches!(next.mv.letter, Letter::Load(_) | Letter::Spawn)
    }

    /// What the attacker can do next. The load that ends the walk comes first, so that it is tried last.
    fn next_steps(&mut self, local: LocalId, held: &[(CellId, u32)]) -> Vec<Next> {
        let way = Way::Attacking;
        let moves = self.threads.automaton.work_out_moves(local, way).to_vec();
        let mut found = Vec::new();
        for mv in moves {
            let own =
                |cell: CellId| held.iter().rev().find(|(other, _)| *other == cell).map(|&(_, code)| code);
            let code = match mv.letter {
                Letter::Load(cell) => own(cell).unwrap_or(self.memory[palisade_base::Id::index(cell)]),
                _ => 0,
            };
            let targets = self.threads.automaton.work_out(&mv, code, way).to_vec();
            for target in targets.into_iter().filter(|target| !target.mark.faults()) {
                let mut held = held.to_vec();
                if let (Letter::Store(cell), Some(code)) = (mv.letter, target.write()) {
                    held.retain(|(other, _)| *other != cell);
                    held.push((cell, code));
                }
                found.push(Next { mv, code, target, held });
            }
        }
        found.sort_by_key(|next| !self.is_end(next));
        found
    }
}

impl Kept {
    fn clone_with(&self, mv: Move, code: u32, target: Target) -> Kept {
        Kept { mv, code, to: Some(target), ..self.clone() }
    }
}
