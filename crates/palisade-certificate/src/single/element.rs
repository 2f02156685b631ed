//! Elements of a single-buffer proof as the checker sees them, and when one contains all of another.

use super::flow::{Flow, ProcessKind};
use crate::Refusal;
use crate::element::{Letter, MAX_PROCESSES};
use crate::matching::each_has_its_own;
use crate::values::Values;
use palisade_engine::proof::{self, Cell, SetLetter, Snapshot};

/// A set of configurations. For each cell of memory: the values of which it holds one, and whether the cell is
/// settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Config {
    pub memory: Vec<Option<(Values, bool)>>,
    pub processes: Vec<Viewer>,
}

/// A process, in a class of states or anywhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Viewer {
    pub kind: u32,
    pub state: Option<u32>,
    /// Positions of the buffer, oldest first.
    pub word: Vec<Letter>,
    pub queues: Vec<Queue>,
}

/// Entries of a queue, each with one of these values, oldest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    pub cell: u32,
    pub closed: bool,
    pub values: Vec<Values>,
}

impl Queue {
    /// The requirement that nothing is pending.
    pub fn empty(cell: u32) -> Queue {
        Queue { cell, closed: true, values: Vec::new() }
    }
}

impl Viewer {
    /// A process that may be anywhere.
    pub fn anywhere(kind: u32) -> Viewer {
        Viewer { kind, state: None, word: Vec::new(), queues: Vec::new() }
    }

    pub fn has_letter(&self, cell: u32) -> bool {
        self.word.iter().any(|letter| letter.cell == cell)
    }

    pub fn queue(&self, cell: u32) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.cell == cell)
    }

    pub fn set_queue(&mut self, queue: Queue) {
        self.queues.retain(|other| other.cell != queue.cell);
        self.queues.push(queue);
    }
}

impl Config {
    /// Reads an element, and checks that everything it names exists.
    pub fn read(flow: &Flow, sets: &[Values], element: &Snapshot) -> Result<Config, Refusal> {
        let unfit = |what: &str| Err(Refusal::Unfit(format!("an element names {what} that does not exist")));
        let values = |cell: u32, set: u32| {
            let set = sets.get(set as usize)?;
            let count = *flow.values.get(cell as usize)?;
            set.iter().all(|value| value < count).then(|| set.clone())
        };
        let mut memory = vec![None; flow.values.len()];
        for cell in &element.memory {
            let Some(values) = values(cell.cell, cell.values) else { return unfit("a value in memory") };
            if memory[cell.cell as usize].is_some() {
                return Err(Refusal::Unfit("an element names a cell twice".into()));
            }
            memory[cell.cell as usize] = Some((values, cell.settled));
        }
        if element.processes.len() > MAX_PROCESSES {
            return Err(Refusal::Unfit("an element names too many processes".into()));
        }
        let mut processes = Vec::new();
        for process in &element.processes {
            let Some(kind) = flow.kinds.get(process.kind as usize) else { return unfit("an automaton") };
            if process.state.is_some_and(|state| state as usize >= kind.into.len()) {
                return unfit("a state");
            }
            let letter = |letter: &SetLetter| {
                let values = values(letter.cell, letter.values)?;
                Some(Letter { own: letter.own, cell: letter.cell, values })
            };
            let Some(word) = process.word.iter().map(letter).collect() else { return unfit("a letter") };
            let queue = |queue: &proof::Queue| {
                let entries = queue.values.iter().map(|&set| values(queue.cell, set));
                let exists = (queue.cell as usize) < flow.values.len();
                let values = entries.collect::<Option<_>>().filter(|_| exists)?;
                Some(Queue { cell: queue.cell, closed: queue.closed, values })
            };
            let Some(queues) = process.queues.iter().map(queue).collect() else { return unfit("a queue") };
            let process = Viewer { kind: process.kind, state: process.state, word, queues };
            if !is_well_formed(&process) {
                return Err(Refusal::Unfit("a word or the queues of a process contradict themselves".into()));
            }
            processes.push(process);
        }
        Ok(Config { memory, processes })
    }

    /// The element in the form of a proof, with the sets that it names.
    pub fn written(&self) -> (Snapshot, Vec<Vec<u32>>) {
        let mut sets: Vec<Vec<u32>> = Vec::new();
        let mut set = |values: &Values| -> u32 {
            let values: Vec<u32> = values.iter().collect();
            let place = sets.iter().position(|other| *other == values).unwrap_or_else(|| {
                sets.push(values);
                sets.len() - 1
            });
            place as u32
        };
        let mut memory = Vec::new();
        for (cell, content) in self.memory.iter().enumerate() {
            if let Some((values, settled)) = content {
                memory.push(Cell { cell: cell as u32, values: set(values), settled: *settled });
            }
        }
        let process = |process: &Viewer| proof::Viewer {
            kind: process.kind,
            state: process.state,
            word: process
                .word
                .iter()
                .map(|letter| SetLetter { own: letter.own, cell: letter.cell, values: set(&letter.values) })
                .collect(),
            queues: process
                .queues
                .iter()
                .map(|queue| proof::Queue {
                    cell: queue.cell,
                    closed: queue.closed,
                    values: queue.values.iter().map(&mut set).collect(),
                })
                .collect(),
        };
        let processes = self.processes.iter().map(process).collect();
        (Snapshot { memory, processes }, sets)
    }

    /// The values that the end of the buffer can hold in a cell because of the named processes, if these restrict
    /// them.
    fn implied(&self, flow: &Flow, cell: u32) -> Option<Values> {
        if flow.is_constant(cell) {
            return Some(Values::one(0));
        }
        let (writer, values) = flow.held.get(&cell)?;
        let writers = self.processes.iter().filter(|process| process.kind == *writer);
        let held = writers.filter_map(|process| Some(values[process.state? as usize].clone()));
        held.reduce(|a, b| a.and(&b))
    }

    /// The values that the end of the buffer can hold in a cell, as far as something is known about it.
    pub fn values(&self, flow: &Flow, cell: u32) -> Option<Values> {
        match (&self.memory[cell as usize], self.implied(flow, cell)) {
            (None, implied) => implied,
            (Some((named, _)), None) => Some(named.clone()),
            (Some((named, _)), Some(implied)) => Some(named.and(&implied)),
        }
    }

    /// Whether the end of the buffer always holds one of these values in a cell.
    fn holds_one_of(&self, flow: &Flow, cell: u32, values: &Values) -> bool {
        match self.values(flow, cell) {
            Some(held) => held.is_subset(values),
            None => (0..flow.values[cell as usize]).all(|value| values.has(value)),
        }
    }

    pub fn is_settled(&self, cell: u32) -> bool {
        self.memory[cell as usize].as_ref().is_some_and(|(_, settled)| *settled)
    }

    /// Whether a queue of a process must be empty.
    pub fn has_empty_queue(&self, flow: &Flow, process: &Viewer, cell: u32) -> bool {
        process.has_letter(cell)
            || self.is_settled(cell)
            || process.queue(cell).is_some_and(|queue| queue.closed && queue.values.is_empty())
            || flow.kinds[process.kind as usize].queued(process.state, cell).is_none()
    }

    /// The same configurations, as far as the forward analysis allows them. `None` if there are none.
    pub fn narrowed(&self, flow: &Flow) -> Option<Config> {
        for (kind, of_kind) in flow.kinds.iter().enumerate() {
            let count = self.processes.iter().filter(|process| process.kind as usize == kind).count();
            if of_kind.population.is_some_and(|most| count > most as usize) {
                return None;
            }
        }
        let mut config = self.clone();
        for process in &mut config.processes {
            narrow(&flow.kinds[process.kind as usize], process)?;
        }
        for cell in 0..self.memory.len() {
            let values = self.values(flow, cell as u32);
            if values.as_ref().is_some_and(Values::is_empty) {
                return None;
            }
            if let (Some(content), Some(values)) = (&mut config.memory[cell], values) {
                content.0 = values;
            }
        }
        Some(config)
    }

    /// Whether this set contains all of another, in which the forward analysis is taken into account.
    pub fn holds(&self, flow: &Flow, other: &Config) -> bool {
        let cell = |(cell, content): (usize, &Option<(Values, bool)>)| match content {
            None => true,
            Some((values, settled)) => {
                (!settled || other.is_settled(cell as u32)) && other.holds_one_of(flow, cell as u32, values)
            }
        };
        self.memory.iter().enumerate().all(cell)
            && each_has_its_own(self.processes.len(), other.processes.len(), &|process, candidate| {
                holds_process(flow, &self.processes[process], other, &other.processes[candidate])
            })
    }
}

/// Restricts the letters and queues of a process to what the forward analysis allows.
fn narrow(kind: &ProcessKind, process: &mut Viewer) -> Option<()> {
    let Some(state) = process.state else { return Some(()) };
    for letter in process.word.iter_mut().filter(|letter| letter.own) {
        letter.values = kind.own(state, letter.cell, &letter.values);
        (!letter.values.is_empty()).then_some(())?;
    }
    for queue in &mut process.queues {
        let newest = queue.values.len().checked_sub(1).filter(|_| queue.closed);
        for (place, values) in queue.values.iter_mut().enumerate() {
            let possible = match Some(place) == newest {
                true => kind.newest(state, queue.cell),
                false => kind.queued(Some(state), queue.cell),
            };
            *values = values.and(possible?);
            (!values.is_empty()).then_some(())?;
        }
    }
    Some(())
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
        once && (queue.values.is_empty() || !process.has_letter(queue.cell))
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
    let Some(there) = candidate.queue(queue.cell) else { return false };
    let mut next = 0;
    for values in &there.values {
        if queue.values.get(next).is_some_and(|wanted| values.is_subset(wanted)) {
            next += 1;
        }
    }
    let last = queue.values.last().zip(there.values.last());
    let newest = !queue.closed || there.closed && last.is_some_and(|(a, b)| b.is_subset(a));
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
            let there = &word[*place];
            there.cell == letter.cell && there.values.is_subset(&letter.values) && (there.own || !letter.own)
        };
        match (from..word.len()).find(serves) {
            Some(place) => from = place,
            None => {
                let held = other.holds_one_of(flow, letter.cell, &letter.values);
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
    use palisade_automata::{Automata, Population, Starts};
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
        Flow::new(&system, &automata, (Interlocked::WholeBuffer, Starts::Anytime), &[], false)
            .expect("it fits")
    }

    fn letter(own: bool, cell: u32, value: u32) -> Letter {
        Letter { own, cell, values: Values::one(value) }
    }

    fn queue(cell: u32, closed: bool, values: &[u32]) -> Queue {
        Queue { cell, closed, values: values.iter().copied().map(Values::one).collect() }
    }

    /// Checks whether the first process contains the second with such memory.
    fn check(process: Viewer, memory: [Option<(u32, bool)>; 2], candidate: Viewer, expected: bool) {
        let text = format!("{process:?}\n{memory:?} {candidate:?}");
        let element = Config { memory: vec![None; 2], processes: vec![process] };
        let known =
            |content: Option<(u32, bool)>| content.map(|(value, settled)| (Values::one(value), settled));
        let other = Config { memory: memory.map(known).to_vec(), processes: vec![candidate] };
        assert_eq!(element.holds(&flow(), &other), expected, "{text}");
    }

    #[test]
    fn processes_at_states_or_anywhere() {
        let flow = flow();
        let start = (0..flow.kinds[0].is_start.len()).position(|state| flow.kinds[0].is_start[state]);
        let start = start.expect("there is a start") as u32;
        let full = (0..flow.kinds[0].is_start.len() as u32)
            .find(|&state| [X, Y].iter().all(|&cell| flow.kinds[0].queued(Some(state), cell).is_some()))
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
        let words = |word: &[Letter]| Viewer { word: word.to_vec(), ..at(0, Some(full)) };
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
        let own_x = || letter(true, X, 1);
        let own_y = || letter(true, Y, 1);
        check(words(&[own_x(), own_y()]), open, words(&[own_x(), own_y()]), true);
        check(words(&[own_x(), own_y()]), open, words(&[own_y(), own_x()]), false);
        check(words(&[own_x()]), open, words(&[own_y(), own_x()]), true);
        check(words(&[own_x()]), open, words(&[letter(false, X, 1)]), false);
        check(words(&[own_x()]), open, words(&[letter(true, X, 2)]), false);
        check(words(&[own_x()]), [Some((1, true)), None], at(0, Some(full)), false);
        // Plain letters can also be at the end, where the queue must be empty. Then all later ones are there
        // too.
        let x = || letter(false, X, 1);
        let y = || letter(false, Y, 1);
        check(words(&[x(), y()]), open, words(&[x(), y()]), true);
        check(words(&[x(), y()]), open, words(&[y(), x()]), false);
        check(words(&[x(), y()]), [None, Some((1, true))], words(&[y(), x()]), true);
        check(words(&[x()]), open, words(&[own_x()]), true);
        check(words(&[x()]), open, words(&[letter(true, X, 2), x()]), true);
        check(words(&[x()]), open, words(&[letter(false, X, 2)]), false);
        check(words(&[x()]), [Some((1, true)), None], at(0, Some(full)), true);
        check(words(&[x()]), [Some((2, true)), None], at(0, Some(full)), false);
        check(words(&[x()]), [Some((1, false)), None], at(0, Some(full)), false);
        check(words(&[x()]), [Some((1, false)), None], empty(), true);
        check(words(&[x(), y()]), [Some((1, true)), None], words(&[y()]), false);
        check(words(&[x(), y()]), [Some((1, true)), Some((1, true))], words(&[y()]), true);
    }

    #[test]
    fn sets_of_values() {
        let flow = flow();
        let full = (0..flow.kinds[0].is_start.len() as u32)
            .find(|&state| [X, Y].iter().all(|&cell| flow.kinds[0].queued(Some(state), cell).is_some()))
            .expect("stores may wait there");
        let at = || Viewer { state: Some(full), ..Viewer::anywhere(0) };
        let set = |values: &[u32]| Values::of(values.iter().copied());
        let word =
            |own, values: &[u32]| Viewer { word: vec![Letter { own, cell: X, values: set(values) }], ..at() };
        let open = [None; 2];
        check(word(false, &[1, 2]), open, word(false, &[1]), true);
        check(word(false, &[1]), open, word(false, &[1, 2]), false);
        check(word(true, &[1, 2]), open, word(true, &[2]), true);
        check(word(true, &[2]), open, word(true, &[1, 2]), false);
        check(word(false, &[1, 2]), [Some((1, true)), None], at(), true);
        check(word(false, &[0, 2]), [Some((1, true)), None], at(), false);
        // A letter that allows all values can be at the end, whatever memory holds.
        let empty = || Viewer { queues: vec![Queue::empty(X)], ..at() };
        check(word(false, &[0, 1, 2]), open, empty(), true);
        check(word(false, &[0, 1]), open, empty(), false);
        let queue = |closed, values: &[&[u32]]| {
            let values = values.iter().map(|values| set(values)).collect();
            Viewer { queues: vec![Queue { cell: X, closed, values }], ..at() }
        };
        check(queue(false, &[&[1, 2]]), open, queue(false, &[&[1]]), true);
        check(queue(false, &[&[1]]), open, queue(false, &[&[1, 2]]), false);
        check(queue(true, &[&[1, 2]]), open, queue(true, &[&[1], &[2]]), true);
        check(queue(true, &[&[1, 2]]), open, queue(true, &[&[1], &[0, 2]]), false);
        let memory = |values: &[u32], settled| Config {
            memory: vec![Some((set(values), settled)), None],
            processes: vec![at()],
        };
        for (few, many, expected) in [
            (memory(&[1, 2], false), memory(&[1], false), true),
            (memory(&[1, 2], false), memory(&[1], true), true),
            (memory(&[1, 2], true), memory(&[1], false), false),
            (memory(&[1, 2], true), memory(&[2], true), true),
            (memory(&[1], true), memory(&[1, 2], true), false),
        ] {
            assert_eq!(few.holds(&flow, &many), expected, "{few:?}\n{many:?}");
        }
    }
}
