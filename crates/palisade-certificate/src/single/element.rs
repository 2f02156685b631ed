//! Elements of a single-buffer proof as the checker sees them, and when one contains all of another.

use super::flow::Flow;
use crate::Refusal;
use crate::element::MAX_PROCESSES;
use crate::matching::each_has_its_own;
use palisade_engine::proof::{Cell, Message, Queue, Snapshot, Viewer};

/// A set of configurations. For each cell of memory: the value, and whether the cell is settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Config {
    pub memory: Vec<Option<(u32, bool)>>,
    pub processes: Vec<Viewer>,
}

impl Config {
    /// Reads an element, and checks that everything it names exists.
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

    /// The element in the form of a proof.
    pub fn written(&self) -> Snapshot {
        let named = self.memory.iter().enumerate();
        let cell = |(cell, content): (usize, &Option<(u32, bool)>)| {
            content.map(|(value, settled)| Cell { cell: cell as u32, value, settled })
        };
        Snapshot { memory: named.filter_map(cell).collect(), processes: self.processes.clone() }
    }

    /// The value of a cell at the end of the buffer, as far as it is known.
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

    /// Whether a queue of a process must be empty.
    pub fn has_empty_queue(&self, flow: &Flow, process: &Viewer, cell: u32) -> bool {
        process.word.iter().any(|letter| letter.cell == cell)
            || self.is_settled(cell)
            || queue_of(process, cell).is_some_and(|queue| queue.closed && queue.values.is_empty())
            || !flow.kinds[process.kind as usize].may_queue(process.state, cell)
    }

    /// Whether the end of the buffer can hold a value with the processes at their states.
    pub fn allows(&self, flow: &Flow, cell: u32, value: u32) -> bool {
        if flow.is_constant(cell) {
            return value == 0;
        }
        let Some((writer, values)) = flow.held.get(&cell) else { return true };
        let at = self.processes.iter().filter(|process| process.kind == *writer);
        at.filter_map(|process| process.state).all(|state| values[state as usize].contains(&value))
    }

    /// Whether some configuration of the set can be reached, as far as the forward analysis can say.
    pub fn is_possible(&self, flow: &Flow) -> bool {
        let few = |(kind, of_kind): (usize, &super::flow::ProcessKind)| {
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

    /// Whether this set contains all of another.
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

/// At most one own letter on each cell, with plain ones on the cell only after it. One queue for each cell,
/// and no nonempty queue together with a letter.
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

/// Whether the letters of a process can be found with a candidate, or at the end of the buffer, none of them
/// before an older one.
fn holds_word(flow: &Flow, process: &Viewer, other: &Config, candidate: &Viewer) -> bool {
    let word = &candidate.word;
    let mut from = 0;
    for letter in &process.word {
        // The candidate's own stores to the cell are not after its first letter on it, so any letter can
        // match a plain one.
        let serves = |place: &usize| {
            let Message { own, cell, value } = word[*place];
            (cell, value) == (letter.cell, letter.value) && (own || !letter.own)
        };
        match (from..word.len()).find(serves) {
            Some(place) => from = place,
            None => {
                let held = other.value(flow, letter.cell) == Some(letter.value);
                if letter.own || !held || !other.has_empty_queue(flow, candidate, letter.cell) {
                    return false;
                }
                from = word.len();
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_automata::{Automata, Population};
    use palisade_base::Source;
    use palisade_memory::Interlocked;
    use palisade_program::{Instantiation, lower};
    use palisade_syntax::{Language, parse};

    const X: u32 = 0;
    const Y: u32 = 1;

    fn flow() -> Flow {
        let text = "shared x, y: 0..2; process P { x = 1; x = 2; y = 1; y = 2; a: let r = x; x = r; }
            process Q { x = 1; x = 2; y = 1; y = 2; a: let r = x; x = r; } final x == 2;";
        let program = parse(Language::Pal, &Source::new("p", text)).expect("a program").program;
        let system = lower(&program, Instantiation { any: 1, every: None });
        let automata = Automata::build(&system, |_| Population::Fixed(1), || true).expect("it has automata");
        Flow::new(&automata, Interlocked::WholeBuffer)
    }

    fn letter(own: bool, cell: u32, value: u32) -> Message {
        Message { own, cell, value }
    }

    fn queue(cell: u32, closed: bool, values: &[u32]) -> Queue {
        Queue { cell, closed, values: values.to_vec() }
    }

    /// Checks whether the first process contains the second with such memory.
    fn check(process: Viewer, memory: [Option<(u32, bool)>; 2], candidate: Viewer, expected: bool) {
        let text = format!("{process:?}\n{memory:?} {candidate:?}");
        let element = Config { memory: vec![None; 2], processes: vec![process] };
        let other = Config { memory: memory.to_vec(), processes: vec![candidate] };
        assert_eq!(element.holds(&flow(), &other), expected, "{text}");
    }

    #[test]
    fn processes_at_states_or_anywhere() {
        let flow = flow();
        let start = (0..flow.kinds[0].is_start.len()).position(|state| flow.kinds[0].is_start[state]);
        let start = start.expect("there is a start") as u32;
        let full = (0..flow.kinds[0].is_start.len() as u32)
            .find(|&state| [X, Y].iter().all(|&cell| flow.kinds[0].may_queue(Some(state), cell)))
            .expect("stores may wait there");
        let at = |kind, state| Viewer { kind, state, word: Vec::new(), queues: Vec::new() };
        let open = [None; 2];
        check(at(0, None), open, at(0, Some(full)), true);
        check(at(0, None), open, at(0, None), true);
        check(at(0, None), open, at(1, None), false);
        check(at(0, Some(full)), open, at(0, None), false);
        check(at(0, Some(full)), open, at(0, Some(full)), true);
        check(at(0, Some(full)), open, at(0, Some(start)), false);
        check(at(0, Some(full)), open, at(1, Some(full)), false);
        // An empty queue. At the start nothing can be in it; elsewhere something must imply that it is empty.
        let queues = |state, queues: &[Queue]| Viewer { queues: queues.to_vec(), ..at(0, Some(state)) };
        let words = |word: &[Message]| Viewer { word: word.to_vec(), ..at(0, Some(full)) };
        let empty = || queues(full, &[queue(X, true, &[])]);
        check(queues(start, &[queue(X, true, &[])]), open, at(0, Some(start)), true);
        check(empty(), open, at(0, Some(full)), false);
        check(empty(), [Some((1, true)), None], at(0, Some(full)), true);
        check(empty(), [Some((1, false)), None], at(0, Some(full)), false);
        check(empty(), [None, Some((1, true))], at(0, Some(full)), false);
        check(empty(), open, words(&[letter(false, X, 1)]), true);
        check(empty(), open, words(&[letter(false, Y, 1)]), false);
        check(empty(), open, empty(), true);
        check(empty(), open, queues(full, &[queue(Y, true, &[])]), false);
        check(empty(), open, queues(full, &[queue(X, false, &[])]), false);
        check(empty(), open, queues(full, &[queue(X, true, &[1])]), false);
        check(queues(full, &[queue(X, false, &[])]), open, at(0, Some(full)), true);
        // The entries of a queue, in order, and the newest one.
        let ones = |closed, values: &[u32]| queues(full, &[queue(X, closed, values)]);
        check(ones(false, &[1]), open, at(0, Some(full)), false);
        check(ones(false, &[1]), open, ones(false, &[2, 1, 2]), true);
        check(ones(false, &[1]), open, queues(full, &[queue(Y, false, &[1])]), false);
        check(ones(false, &[1, 2]), open, ones(true, &[1, 2]), true);
        check(ones(false, &[1, 2]), open, ones(true, &[2, 1]), false);
        check(ones(true, &[1]), open, ones(true, &[2, 1]), true);
        check(ones(true, &[1]), open, ones(false, &[2, 1]), false);
        check(ones(true, &[1]), open, ones(true, &[1, 2]), false);
        // Own letters are matched by own letters, in order.
        let (own_x, own_y) = (letter(true, X, 1), letter(true, Y, 1));
        check(words(&[own_x, own_y]), open, words(&[own_x, own_y]), true);
        check(words(&[own_x, own_y]), open, words(&[own_y, own_x]), false);
        check(words(&[own_x]), open, words(&[own_y, own_x]), true);
        check(words(&[own_x]), open, words(&[letter(false, X, 1)]), false);
        check(words(&[own_x]), open, words(&[letter(true, X, 2)]), false);
        check(words(&[own_x]), [Some((1, true)), None], at(0, Some(full)), false);
        // Plain letters can also be at the end, where the queue must be empty. Then all later ones are there
        // too.
        let (x, y) = (letter(false, X, 1), letter(false, Y, 1));
        check(words(&[x, y]), open, words(&[x, y]), true);
        check(words(&[x, y]), open, words(&[y, x]), false);
        check(words(&[x, y]), [None, Some((1, true))], words(&[y, x]), true);
        check(words(&[x]), open, words(&[own_x]), true);
        check(words(&[x]), open, words(&[letter(true, X, 2), x]), true);
        check(words(&[x]), open, words(&[letter(false, X, 2)]), false);
        check(words(&[x]), [Some((1, true)), None], at(0, Some(full)), true);
        check(words(&[x]), [Some((2, true)), None], at(0, Some(full)), false);
        check(words(&[x]), [Some((1, false)), None], at(0, Some(full)), false);
        check(words(&[x]), [Some((1, false)), None], empty(), true);
        check(words(&[x, y]), [Some((1, true)), None], words(&[y]), false);
        check(words(&[x, y]), [Some((1, true)), Some((1, true))], words(&[y]), true);
    }
}
