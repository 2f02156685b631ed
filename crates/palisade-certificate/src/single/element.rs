//! Elements of a single-buffer proof as the checker sees them, and when one holds all of another.

use super::flow::Flow;
use crate::Refusal;
use crate::element::MAX_PROCESSES;
use crate::matching::each_has_its_own;
use palisade_engine::proof::{Cell, Message, Queue, Snapshot, Viewer};

/// A set of configurations. Memory by cell: the value, and whether the cell is settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Config {
    pub memory: Vec<Option<(u32, bool)>>,
    pub processes: Vec<Viewer>,
}

impl Config {
    /// Reads an element, and sees that everything it names is there.
    pub fn read(flow: &Flow, element: &Snapshot) -> Result<Config, Refusal> {
        let unfit = |what: &str| Err(Refusal::Unfit(format!("an element names {what} that does not exist")));
        let exists =
            |cell: u32, value: u32| flow.values.get(cell as usize).is_some_and(|&count| value < count);
        let mut memory = vec![None; flow.values.len()];
        for &Cell { cell, value, settled } in &element.memory {
            if !exists(cell, value) || memory[cell as usize].is_some() {
                return unfit("a value in memory");
            }
            memory[cell as usize] = Some((value, settled));
        }
        if element.processes.len() > MAX_PROCESSES {
            return Err(Refusal::Unfit("an element names too many processes".into()));
        }
        for process in &element.processes {
            let Some(kind) = flow.kinds.get(process.kind as usize) else { return unfit("an automaton") };
            if process.state.is_some_and(|state| state as usize >= kind.into.len()) {
                return unfit("a state");
            }
            if process.word.iter().any(|letter| !exists(letter.cell, letter.value)) {
                return unfit("a letter");
            }
            let values = |queue: &Queue| queue.values.iter().all(|&value| exists(queue.cell, value));
            if !process.queues.iter().all(|queue| (queue.cell as usize) < flow.values.len() && values(queue))
            {
                return unfit("a queue");
            }
            if !is_well_formed(process) {
                return Err(Refusal::Unfit("a word or the queues of a process contradict themselves".into()));
            }
        }
        Ok(Config { memory, processes: element.processes.clone() })
    }

    /// As a proof writes it.
    pub fn written(&self) -> Snapshot {
        let named = self.memory.iter().enumerate();
        let cell = |(cell, content): (usize, &Option<(u32, bool)>)| {
            content.map(|(value, settled)| Cell { cell: cell as u32, value, settled })
        };
        Snapshot { memory: named.filter_map(cell).collect(), processes: self.processes.clone() }
    }

    /// What the end of the buffer holds in a cell, as far as that is known.
    pub fn value(&self, flow: &Flow, cell: u32) -> Option<u32> {
        if let Some((value, _)) = self.memory[cell as usize] {
            return Some(value);
        }
        if flow.is_constant(cell) {
            return Some(0);
        }
        let (writer, values) = flow.held.get(&cell)?;
        let state = self.processes.iter().find(|process| process.kind == *writer)?.state?;
        let mut values = values[state as usize].iter();
        match (values.next(), values.next()) {
            (Some(&only), None) => Some(only),
            _ => None,
        }
    }

    pub fn is_settled(&self, cell: u32) -> bool {
        self.memory[cell as usize].is_some_and(|(_, settled)| settled)
    }

    /// Whether nothing can be in a queue of a process.
    pub fn has_empty_queue(&self, flow: &Flow, process: &Viewer, cell: u32) -> bool {
        process.word.iter().any(|letter| letter.cell == cell)
            || self.is_settled(cell)
            || queue_of(process, cell).is_some_and(|queue| queue.closed && queue.values.is_empty())
            || !flow.kinds[process.kind as usize].may_queue(process.state, cell)
    }

    /// Whether the end of the buffer can hold a value with the processes where they are.
    pub fn allows(&self, flow: &Flow, cell: u32, value: u32) -> bool {
        if flow.is_constant(cell) {
            return value == 0;
        }
        let Some((writer, values)) = flow.held.get(&cell) else { return true };
        let at = self.processes.iter().filter(|process| process.kind == *writer);
        at.filter_map(|process| process.state).all(|state| values[state as usize].contains(&value))
    }

    /// Whether some configuration of the set can be reached, as far as the forward analysis tells.
    pub fn is_possible(&self, flow: &Flow) -> bool {
        let few = |(kind, of_kind): (usize, &super::flow::Kind)| {
            let count = self.processes.iter().filter(|process| process.kind as usize == kind).count();
            of_kind.population.is_none_or(|most| count <= most as usize)
        };
        let process = |process: &Viewer| {
            let kind = &flow.kinds[process.kind as usize];
            let Some(state) = process.state else { return true };
            let letter = |l: &Message| !l.own || kind.may_be_own(state, l.cell, l.value);
            let queue = |queue: &Queue| {
                let there =
                    queue.values.iter().all(|&value| kind.queued.contains(&(state, queue.cell, value)));
                let last = queue.values.last().filter(|_| queue.closed);
                there && last.is_none_or(|&last| kind.newest.contains(&(state, queue.cell, last)))
            };
            process.word.iter().all(letter) && process.queues.iter().all(queue)
        };
        let cell = |(cell, content): (usize, &Option<(u32, bool)>)| {
            content.is_none_or(|(value, _)| self.allows(flow, cell as u32, value))
        };
        flow.kinds.iter().enumerate().all(few)
            && self.processes.iter().all(process)
            && self.memory.iter().enumerate().all(cell)
    }

    /// Whether all of another set is in this one.
    pub fn holds(&self, flow: &Flow, other: &Config) -> bool {
        let cell = |(cell, content): (usize, &Option<(u32, bool)>)| match *content {
            None => true,
            Some((value, true)) => other.memory[cell] == Some((value, true)),
            Some((value, false)) => other.value(flow, cell as u32) == Some(value),
        };
        self.memory.iter().enumerate().all(cell)
            && each_has_its_own(self.processes.len(), other.processes.len(), &|process, candidate| {
                holds_process(flow, &self.processes[process], other, &other.processes[candidate])
            })
    }
}

pub(crate) fn queue_of(process: &Viewer, cell: u32) -> Option<&Queue> {
    process.queues.iter().find(|queue| queue.cell == cell)
}

/// At most one own letter on each cell, with plain ones on the cell only behind it; one queue for each cell, and none that is not empty beside a letter.
fn is_well_formed(process: &Viewer) -> bool {
    let word = &process.word;
    let own_first = word
        .iter()
        .enumerate()
        .all(|(place, letter)| !letter.own || word[..place].iter().all(|older| older.cell != letter.cell));
    let queue = |(place, queue): (usize, &Queue)| {
        let once = process.queues[..place].iter().all(|other| other.cell != queue.cell);
        once && (queue.values.is_empty() || word.iter().all(|letter| letter.cell != queue.cell))
    };
    own_first && process.queues.iter().enumerate().all(queue)
}

fn holds_process(flow: &Flow, process: &Viewer, other: &Config, candidate: &Viewer) -> bool {
    let same =
        process.kind == candidate.kind && (process.state.is_none() || process.state == candidate.state);
    same && process.queues.iter().all(|queue| holds_queue(flow, queue, other, candidate))
        && holds_word(flow, process, other, candidate)
}

fn holds_queue(flow: &Flow, queue: &Queue, other: &Config, candidate: &Viewer) -> bool {
    if queue.values.is_empty() {
        return !queue.closed || other.has_empty_queue(flow, candidate, queue.cell);
    }
    let Some(there) = queue_of(candidate, queue.cell) else { return false };
    let mut next = 0;
    for value in &there.values {
        if queue.values.get(next) == Some(value) {
            next += 1;
        }
    }
    let newest = !queue.closed || there.closed && queue.values.last() == there.values.last();
    newest && next == queue.values.len()
}

/// Whether the letters of a process can be found with a candidate, or at the end of the buffer, none of them before an older one.
fn holds_word(flow: &Flow, process: &Viewer, other: &Config, candidate: &Viewer) -> bool {
    let word = &candidate.word;
    let mut from = 0;
    for (index, letter) in process.word.iter().enumerate() {
        if letter.own {
            match (from..word.len()).find(|&place| word[place] == *letter) {
                Some(place) => from = place,
                None => return false,
            }
            continue;
        }
        let is_first = process.word[..index].iter().all(|older| older.cell != letter.cell);
        if is_first && flow.kinds[process.kind as usize].stores_to(letter.cell) {
            // The candidate's own stores to the cell are not behind its first letter on it.
            let first = word.iter().position(|other| other.cell == letter.cell);
            from = from.max(first.unwrap_or(word.len()));
        }
        let same = |place: &usize| (word[*place].cell, word[*place].value) == (letter.cell, letter.value);
        match (from..word.len()).find(same) {
            Some(place) => from = place,
            None => {
                let held = other.value(flow, letter.cell) == Some(letter.value);
                if !held || !other.has_empty_queue(flow, candidate, letter.cell) {
                    return false;
                }
                from = word.len();
            }
        }
    }
    true
}
