//! Makes a run shorter and easier to read.
//!
//! *Problem.* Engines find runs in the order of their own search. Such runs contain irrelevant steps, and
//! their threads are interleaved more finely than needed.
//!
//! *Method.* Steps are removed greedily as long as the rest is still a run to a bad state. This is checked on
//! the machine each time. The candidates are, in this order: the ends of threads, updates that are not
//! needed, loop iterations, and arbitrary blocks of steps. Then steps of the same thread are moved next to
//! each other where the run remains a witness.
//!
//! *Guarantee.* The result replays, ends in a bad state and is not longer than the input. It need not be a
//! shortest run. A run that is not a witness is returned unchanged.
//!
//! *Cost.* At most 2 × [`WORK`] machine steps, whatever the length of the run.

use crate::{Run, links, replay};
use palisade_base::{Id, limits};
use palisade_memory::{Action, Machine, Pending, Step, Thread};
use palisade_program::Value;
use palisade_program::running::{EdgeId, ThreadId};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// How many machine steps are spent on removing steps, and again on rearranging them. Each takes less than a
/// second.
const WORK: usize = 500_000;

/// Removes and rearranges steps of a witness.
pub fn shorten(machine: Machine<'_>, run: Run) -> Run {
    let Some(moves) = to_moves(machine, &run) else { return run };
    let mut work = usize::MAX;
    let best =
        perform(machine, &run.memory, &moves, &mut work).expect("the moves of a witness lead to a bad state");
    let mut shortener = Shortener { machine, memory: run.memory, work: WORK, best };
    loop {
        let before = shortener.best.moves.len();
        shortener.drop_common_rounds();
        shortener.drop_ends_of_threads();
        shortener.drop_rounds();
        shortener.drop_blocks();
        // In another order more steps may be removable.
        shortener.gather();
        if shortener.best.moves.len() == before || shortener.work == 0 {
            break;
        }
    }
    shortener.work = WORK;
    shortener.gather();
    Run { memory: shortener.memory, steps: shortener.best.steps }
}

/// How many times two consecutive steps belong to different threads.
pub fn context_switches(steps: &[Step]) -> usize {
    steps.windows(2).filter(|pair| pair[0].thread != pair[1].thread).count()
}

/// A step in terms that stay valid when other steps are removed or moved. A move is identified by its index
/// in the first run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Move {
    id: usize,
    owner: Owner,
    action: MoveAction,
}

/// The thread that makes a move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Owner {
    /// A thread that exists from the start.
    Initial(ThreadId),
    /// The thread spawned by this move.
    SpawnedBy(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MoveAction {
    Execute {
        edge: EdgeId,
        choice: Option<Value>,
    },
    /// The store of this move reaches memory.
    Update(usize),
}

/// The moves of a witness; `None` if the run is not a witness.
fn to_moves(machine: Machine<'_>, run: &Run) -> Option<Vec<Move>> {
    let replay = replay(machine, run).ok()?;
    let links = links(run, &replay);
    let mut owners: Vec<Owner> = machine.system.instances.ids().map(Owner::Initial).collect();
    let mut moves = Vec::new();
    for (id, step) in run.steps.iter().enumerate() {
        limits::checkpoint();
        let action = match step.action {
            Action::Execute { edge, choice } => MoveAction::Execute { edge, choice },
            Action::Update { .. } => MoveAction::Update(links.store_of[id].expect("an update has a store")),
        };
        moves.push(Move { id, owner: owners[step.thread.index()], action });
        if replay.states[id + 1].threads.len() > owners.len() {
            owners.push(Owner::SpawnedBy(id));
        }
    }
    Some(moves)
}

/// Moves that were executed and lead to a bad state.
struct Performed {
    moves: Vec<Move>,
    steps: Vec<Step>,
    /// Where the thread was before its move, as a hash of its frames' codes and locations. Equal hashes only
    /// suggest a candidate, which is then tried, so a collision does no harm.
    places: Vec<u64>,
    /// Where all threads were before the move, as a hash.
    places_of_all: Vec<u64>,
}

/// Executes the moves up to the first bad state. Updates whose store was not executed are left out, and so
/// are the moves of threads that were not spawned. `None` if a move is not possible, no bad state is reached,
/// or the work is used up.
fn perform(machine: Machine<'_>, memory: &[Value], moves: &[Move], work: &mut usize) -> Option<Performed> {
    let mut state = machine.initial_state(memory)?;
    let mut done = Performed { moves: vec![], steps: vec![], places: vec![], places_of_all: vec![] };
    let mut threads: HashMap<Owner, ThreadId> =
        machine.system.instances.ids().map(|thread| (Owner::Initial(thread), thread)).collect();
    let mut shadows: HashMap<Owner, Vec<Option<usize>>> = HashMap::new();
    for mv in moves {
        limits::checkpoint();
        if machine.violation(&state).is_some() {
            break;
        }
        let Some(&thread) = threads.get(&mv.owner) else { continue };
        let shadow = shadows.entry(mv.owner).or_default();
        let action = match mv.action {
            MoveAction::Execute { edge, choice } => Action::Execute { edge, choice },
            MoveAction::Update(store) => match shadow.iter().position(|&entry| entry == Some(store)) {
                Some(position) => Action::Update { position },
                None => continue,
            },
        };
        let step = Step { thread, action };
        // A step copies the state, which is slow when stacks are deep.
        let frames: usize = state.threads.iter().map(|thread| thread.frames.len()).sum();
        *work = work.checked_sub(1 + frames / 8)?;
        let (next, _) = machine.step(&state, step).ok()?;
        follow(shadow, mv.id, action, &next.threads[thread].buffer);
        if next.threads.len() > state.threads.len() {
            threads.insert(Owner::SpawnedBy(mv.id), ThreadId::from_index(state.threads.len()));
        }
        done.moves.push(*mv);
        done.steps.push(step);
        done.places.push(place(std::slice::from_ref(&state.threads[thread])));
        done.places_of_all.push(place(state.threads.as_slice()));
        state = next;
    }
    machine.violation(&state).map(|_| done)
}

/// Keeps the list of moves whose stores are pending (`None` for barriers) in step with the buffer.
pub(crate) fn follow(shadow: &mut Vec<Option<usize>>, id: usize, action: Action, buffer: &[Pending]) {
    match action {
        Action::Update { position } => {
            shadow.remove(position);
            let barriers = shadow.iter().take_while(|entry| entry.is_none()).count();
            shadow.drain(..barriers);
        }
        Action::Execute { .. } if buffer.len() > shadow.len() => {
            shadow.push(matches!(buffer.last(), Some(Pending::Store(..))).then_some(id));
        }
        Action::Execute { .. } => {}
    }
}

fn place(threads: &[Arc<Thread>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for thread in threads {
        thread.frames.len().hash(&mut hasher);
        thread.frames.iter().for_each(|frame| (frame.code, frame.location).hash(&mut hasher));
    }
    hasher.finish()
}

struct Shortener<'a> {
    machine: Machine<'a>,
    memory: Vec<Value>,
    /// Machine steps that can still be executed.
    work: usize,
    best: Performed,
}

impl Shortener<'_> {
    /// Accepts the moves if they lead to a bad state.
    fn accept(&mut self, moves: &[Move]) -> bool {
        if self.work < moves.len() {
            self.work = 0;
            return false;
        }
        match perform(self.machine, &self.memory, moves, &mut self.work) {
            Some(done) => {
                self.best = done;
                true
            }
            None => false,
        }
    }

    /// Accepts the best run without the moves at these (ascending) indices, if that leads to a bad state.
    fn accept_without(&mut self, dropped: &[usize]) -> bool {
        let kept = |index: &usize| dropped.binary_search(index).is_err();
        let indices = (0..self.best.moves.len()).filter(kept);
        let moves: Vec<Move> = indices.map(|index| self.best.moves[index]).collect();
        self.accept(&moves)
    }

    fn owners(&self) -> Vec<Owner> {
        let mut owners: Vec<Owner> = Vec::new();
        for mv in &self.best.moves {
            limits::checkpoint();
            if !owners.contains(&mv.owner) {
                owners.push(mv.owner);
            }
        }
        owners
    }

    /// Indices of the moves of a thread.
    fn indices(&self, owner: Owner, wanted: fn(MoveAction) -> bool) -> Vec<usize> {
        limits::checkpoint();
        let moves = self.best.moves.iter().enumerate();
        moves.filter(|(_, mv)| mv.owner == owner && wanted(mv.action)).map(|(index, _)| index).collect()
    }

    /// Removes the last moves of threads, and the last updates.
    fn drop_ends_of_threads(&mut self) {
        for owner in self.owners() {
            for wanted in [|_| true, |action| matches!(action, MoveAction::Update(_))] {
                let mut size = self.indices(owner, wanted).len();
                while size > 0 {
                    limits::checkpoint();
                    let indices = self.indices(owner, wanted);
                    size = size.min(indices.len());
                    if size == 0 || !self.accept_without(&indices[indices.len() - size..]) {
                        size /= 2;
                    }
                }
            }
        }
    }

    /// Removes common iterations: everything that all threads do until they are all back where they were.
    /// Earlier stores may still reach memory in the meantime.
    fn drop_common_rounds(&mut self) {
        let mut from = 0;
        while from < self.best.moves.len() && self.work > 0 {
            limits::checkpoint();
            let here = self.best.places_of_all[from];
            let again = |&later: &usize| self.best.places_of_all[later] == here;
            let last = (from + 1..self.best.moves.len()).rev().find(again);
            let next = (from + 1..self.best.moves.len()).find(again);
            let dropped = [last, next.filter(|_| next != last)].into_iter().flatten().any(|to| {
                let executed = |at: &usize| matches!(self.best.moves[*at].action, MoveAction::Execute { .. });
                let instructions: Vec<usize> = (from..to).filter(executed).collect();
                let everything: Vec<usize> = (from..to).collect();
                (!instructions.is_empty() && self.accept_without(&instructions))
                    || self.accept_without(&everything)
            });
            if !dropped {
                from += 1;
            }
        }
    }

    /// Removes iterations: everything a thread does from one visit of a place to a later visit of the same
    /// place.
    fn drop_rounds(&mut self) {
        for owner in self.owners() {
            let mut from = 0;
            loop {
                let indices = self.indices(owner, |action| matches!(action, MoveAction::Execute { .. }));
                if from >= indices.len() || self.work == 0 {
                    break;
                }
                let here = self.best.places[indices[from]];
                let again = |&later: &usize| self.best.places[indices[later]] == here;
                let last = (from + 1..indices.len()).rev().find(again);
                let next = (from + 1..indices.len()).find(again);
                let dropped = last.is_some_and(|to| self.accept_without(&indices[from..to]))
                    || (next != last && next.is_some_and(|to| self.accept_without(&indices[from..to])));
                if !dropped {
                    from += 1;
                }
            }
        }
    }

    /// Removes blocks of arbitrary steps, large ones first.
    fn drop_blocks(&mut self) {
        let mut size = self.best.moves.len() / 2;
        while size > 0 && self.work > 0 {
            limits::checkpoint();
            let mut end = self.best.moves.len();
            while end >= size {
                let block: Vec<usize> = (end - size..end).collect();
                if self.accept_without(&block) {
                    end = end.min(self.best.moves.len());
                }
                end = end.saturating_sub(size.max(1));
            }
            size /= 2;
        }
    }

    /// Moves a thread's next steps up to its previous ones where that saves context switches.
    fn gather(&mut self) {
        let mut at = 1;
        while at < self.best.moves.len() && self.work > 0 {
            limits::checkpoint();
            let moves = &self.best.moves;
            let owner = moves[at - 1].owner;
            let own = |index: &usize| moves[*index].owner == owner;
            let start = (at..moves.len()).find(own).filter(|&start| start > at);
            let candidate = start.map(|start| {
                let end = (start..moves.len()).find(|index| !own(index)).unwrap_or(moves.len());
                [&moves[..at], &moves[start..end], &moves[at..start], &moves[end..]].concat()
            });
            let gathered = candidate.is_some_and(|candidate| self.accept(&candidate));
            if !gathered {
                at += 1;
            }
        }
    }
}
