//! Two threads that allocate, free and use blocks through shared pointers, and which errors that can lead to.
//!
//! The programs are words for one C program, which is compiled once (`tests/programs/heap.c` of `palisade-harness`). The
//! judge knows all interleavings, with the store buffers of a memory model.
//!
//! *Steps.* A shared pointer is loaded in one step, and the block is freed or accessed in the next one. Stores to
//! pointers are sequentially consistent, so they wait until the buffer is empty. Stores to blocks wait in the buffer. A store
//! is an error if the block was freed when it is executed, or when it reaches memory and another thread has freed the
//! block.

use crate::random::Random;
use palisade_memory::Model;
use std::collections::{BTreeSet, HashSet};

/// How many shared pointers there are.
pub const POINTERS: usize = 2;

/// What a thread does with a shared pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Action {
    /// Points it to a new block.
    Allocate,
    /// Points it to nothing.
    Clear,
    /// Points it to nothing and frees the block.
    TakeAndFree,
    /// Frees the block.
    Free,
    /// Reads the block.
    Read,
    /// Writes the block.
    Write,
}

impl Action {
    const ALL: [(u32, Action); 6] = [
        (2, Action::Allocate),
        (2, Action::Clear),
        (3, Action::TakeAndFree),
        (2, Action::Free),
        (3, Action::Read),
        (4, Action::Write),
    ];

    fn letter(self) -> char {
        match self {
            Action::Allocate => 'm',
            Action::Clear => 'n',
            Action::TakeAndFree => 'x',
            Action::Free => 'f',
            Action::Read => 'r',
            Action::Write => 'w',
        }
    }
}

/// A program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Program {
    threads: [Vec<(Action, usize)>; 2],
}

/// What can go wrong first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HeapError {
    /// A block that was freed is accessed.
    UseAfterFree,
    /// A block that was freed is freed again.
    DoubleFree,
}

impl HeapError {
    /// The name that `palisade run` has for it.
    pub fn name(self) -> &'static str {
        match self {
            HeapError::UseAfterFree => "use-after-free",
            HeapError::DoubleFree => "double-free",
        }
    }
}

/// The program of a seed.
pub fn generate(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let mut thread = || {
        let length = random.between(1, 3);
        (0..length).map(|_| (*random.weighted(&Action::ALL), random.below(POINTERS))).collect()
    };
    Program { threads: [thread(), thread()] }
}

impl Program {
    /// What the threads do, as arguments of the C program: a letter and the index of a pointer for each action.
    pub fn arguments(&self) -> [String; 2] {
        self.threads.clone().map(|actions| {
            actions.into_iter().map(|(action, pointer)| format!("{}{pointer}", action.letter())).collect()
        })
    }

    /// The errors that some execution meets first.
    pub fn errors(&self, model: Model) -> BTreeSet<HeapError> {
        let mut errors = BTreeSet::new();
        let mut seen = HashSet::new();
        let mut left = vec![State::first()];
        while let Some(state) = left.pop() {
            if !seen.insert(state.clone()) {
                continue;
            }
            for thread in 0..2 {
                for next in state.steps(self, thread, model) {
                    match next {
                        Ok(next) => left.push(next),
                        Err(error) => _ = errors.insert(error),
                    }
                }
            }
        }
        errors
    }
}

/// A block, by its number.
type Block = usize;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    pointers: [Option<Block>; POINTERS],
    /// The thread that has freed each block.
    freed: Vec<Option<usize>>,
    threads: [ThreadState; 2],
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct ThreadState {
    /// How many actions it has finished.
    done: usize,
    /// The block of the current action, once its pointer was loaded.
    loaded: Option<Block>,
    /// Blocks to which stores are pending, oldest first.
    pending: Vec<Block>,
}

impl State {
    /// All pointers lead to blocks that the first thread has allocated.
    fn first() -> State {
        let mut state = State { pointers: [None; POINTERS], freed: Vec::new(), threads: Default::default() };
        for pointer in &mut state.pointers {
            *pointer = Some(state.freed.len());
            state.freed.push(None);
        }
        state
    }

    /// The steps of a thread and of its buffer.
    fn steps(&self, program: &Program, thread: usize, model: Model) -> Vec<Result<State, HeapError>> {
        let mut steps: Vec<Result<State, HeapError>> = Vec::new();
        let pending = &self.threads[thread].pending;
        for (position, &block) in pending.iter().enumerate() {
            let is_oldest = position == 0;
            let is_first_to_it = !pending[..position].contains(&block);
            if is_oldest || model == Model::Pso && is_first_to_it {
                let mut next = self.clone();
                next.threads[thread].pending.remove(position);
                let by_other = self.freed[block].is_some_and(|by| by != thread);
                steps.push(if by_other { Err(HeapError::UseAfterFree) } else { Ok(next) });
            }
        }
        let actions = &program.threads[thread];
        if let Some(&(action, pointer)) = actions.get(self.threads[thread].done) {
            let needs_empty = matches!(action, Action::Allocate | Action::Clear | Action::TakeAndFree)
                && self.threads[thread].loaded.is_none();
            if !needs_empty || pending.is_empty() {
                steps.push(self.clone().act(action, pointer, thread, model));
            }
        }
        steps
    }

    fn act(
        mut self,
        action: Action,
        pointer: usize,
        thread: usize,
        model: Model,
    ) -> Result<State, HeapError> {
        let me = &mut self.threads[thread];
        match (action, me.loaded.take()) {
            (Action::Allocate, _) => {
                self.pointers[pointer] = Some(self.freed.len());
                self.freed.push(None);
                me.done += 1;
            }
            (Action::Clear, _) => {
                self.pointers[pointer] = None;
                me.done += 1;
            }
            (_, None) => {
                me.loaded = self.pointers[pointer];
                if action == Action::TakeAndFree {
                    self.pointers[pointer] = None;
                }
                // Nothing happens to a pointer that leads nowhere.
                me.done += usize::from(me.loaded.is_none());
            }
            (Action::Free | Action::TakeAndFree, Some(block)) => {
                if self.freed[block].is_some() {
                    return Err(HeapError::DoubleFree);
                }
                self.freed[block] = Some(thread);
                me.done += 1;
            }
            (Action::Read | Action::Write, Some(block)) => {
                if self.freed[block].is_some() {
                    return Err(HeapError::UseAfterFree);
                }
                if action == Action::Write && model != Model::Sc {
                    me.pending.push(block);
                }
                me.done += 1;
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_programs() {
        use Action::{Clear, Free, Read, TakeAndFree, Write};
        use HeapError::{DoubleFree, UseAfterFree};
        let check =
            |one: &[(Action, usize)], two: &[(Action, usize)], model: Model, expected: &[HeapError]| {
                let program = Program { threads: [one.to_vec(), two.to_vec()] };
                let found: Vec<HeapError> = program.errors(model).into_iter().collect();
                assert_eq!(found, expected, "{program:?} {model:?}");
            };
        for model in Model::ALL {
            check(&[(Free, 0)], &[(Free, 0)], model, &[DoubleFree]);
            check(&[(TakeAndFree, 0)], &[(TakeAndFree, 0)], model, &[]);
            check(&[(TakeAndFree, 0)], &[(Read, 0)], model, &[UseAfterFree]);
            check(&[(Free, 0)], &[(Read, 1)], model, &[]);
            check(&[(Free, 0), (Write, 0)], &[], model, &[UseAfterFree]);
            check(&[(Clear, 0), (Free, 0)], &[(Read, 0)], model, &[]);
        }
    }
}
