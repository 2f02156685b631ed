//! Which markings are bad, and when values count as growing without bound.

use super::{ANY, Marking, Population};
use crate::contexts::Interrupted;
use crate::numbers::{may_hold, size};
use crate::rules::Growing;
use palisade_automata::Hold;
use palisade_automata::on_demand::LocalId;
use palisade_base::limits;
use palisade_memory::{Section, State};
use palisade_program::running::ThreadId;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// More thread states or contents of memory than this count as growth without bound.
const MAX_DISTINCT: usize = 1 << 20;

/// How many combinations of numbers of threads are tried where any number is possible.
const MAX_COMBINATIONS: u64 = 1 << 12;

/// To judge a state, at most this many threads in one thread state are written out.
const MAX_THREADS: u64 = 200;

impl Population<'_, '_> {
    /// Whether the marking, or one of those it represents, is bad.
    pub(super) fn is_bad(&self, marking: &Marking) -> bool {
        let tokens = &self.tokens;
        let locals = marking.named.iter().chain(marking.started.iter().map(|(local, _)| local));
        if locals.clone().any(|&local| tokens.local(local).fault.is_some()) {
            return true;
        }
        let machine = tokens.machine.machine;
        let memory = self.memories.get(marking.memory);
        if !machine.system.properties.iter().any(|property| may_hold(&property.bad, memory)) {
            return false;
        }
        let holds = locals.into_iter().any(|&local| tokens.local(local).hold != Hold::Outside);
        let thread = |local: &LocalId| Arc::new(tokens.local(*local).thread.clone());
        let mut state = State {
            memory: memory.to_vec().into(),
            threads: marking.named.iter().map(thread).collect(),
            section: holds.then_some(Section { holder: ThreadId(0), depth: 1 }),
            fault: None,
        };
        let seen = |local: LocalId| self.all_seen || self.is_counted(local);
        let exact = marking.started.iter().filter(|&&(local, count)| count != ANY && seen(local));
        let open = marking.started.iter().filter(|&&(local, count)| count == ANY && seen(local));
        let open: Vec<LocalId> = open.map(|&(local, _)| local).collect();
        let all = exact.flat_map(|(local, count)| std::iter::repeat_n(thread(local), *count as usize));
        for thread in all {
            state.threads.push(thread);
        }
        let with = |numbers: &[u32]| {
            let mut state = state.clone();
            for (local, &number) in open.iter().zip(numbers) {
                for _ in 0..number {
                    state.threads.push(thread(local));
                }
            }
            machine.violation(&state).is_some()
        };
        let enough = machine.system.properties.iter().map(|property| size(&property.bad, &state)).max();
        let enough = enough.unwrap_or(0).saturating_add(1);
        // Where the numbers cannot be determined, the marking counts as bad.
        if !open.is_empty() && (enough > MAX_THREADS || !(self.monotone || self.simple)) {
            return true;
        }
        if self.monotone {
            return with(&vec![enough as u32; open.len()]);
        }
        let choices = enough + 1;
        if choices.checked_pow(open.len() as u32).is_none_or(|all| all > MAX_COMBINATIONS) {
            return true;
        }
        let mut numbers = vec![0usize; open.len()];
        loop {
            limits::checkpoint();
            let chosen: Vec<u32> = numbers.iter().map(|&number| number as u32).collect();
            if with(&chosen) {
                return true;
            }
            if !next_combination(&mut numbers, |_| choices as usize) {
                return false;
            }
        }
    }

    /// Whether a thread is at a location where some condition counts threads.
    fn is_counted(&self, local: LocalId) -> bool {
        let thread = &self.tokens.local(local).thread;
        thread.frames.len() == 1 && self.counted.contains(&(thread.role, thread.frames[0].location))
    }

    pub fn check_growth(&self) -> Result<(), Interrupted> {
        let system = self.tokens.system();
        if self.memories.len() > MAX_DISTINCT {
            let values = |cell: usize| {
                let values = self.memories.iter().map(|memory| memory[cell]);
                values.collect::<FxHashSet<_>>().len()
            };
            let most = (0..system.cells.len()).map(|cell| (values(cell), cell)).max();
            let (values, cell) = most.expect("memory differs in a cell");
            let name = system.cells.as_slice()[cell].name.clone();
            return Err(Interrupted::Growing(Growing { name, values }));
        }
        if self.tokens.len() > MAX_DISTINCT {
            let frames = self.tokens.locals().iter().flat_map(|local| local.thread.frames.iter());
            return Err(Interrupted::Growing(Growing::of_registers(system, frames)));
        }
        Ok(())
    }
}

/// Advances to the next combination of numbers below the given ends. Returns false after the last one.
pub(super) fn next_combination(numbers: &mut [usize], end: impl Fn(usize) -> usize) -> bool {
    for (position, number) in numbers.iter_mut().enumerate() {
        *number += 1;
        if *number < end(position) {
            return true;
        }
        *number = 0;
    }
    false
}
