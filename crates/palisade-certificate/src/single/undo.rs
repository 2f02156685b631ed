//! Undoing one step. The rules are those of the module's header.
//!
//! Instructions are undone for one value at a time, although elements have sets of values. So each rule
//! follows from the definition of an element, and proofs with and without sets are checked alike.

use super::element::{Config, Queue, Viewer};
use super::flow::{Act, Edge, Flow, ProcessKind};
use crate::element::Letter;
use crate::values::Values;
use std::collections::BTreeSet;

pub(crate) struct Undo<'a> {
    pub flow: &'a Flow,
}

/// The process that puts something at the end of the buffer.
#[derive(Clone, Copy)]
enum By {
    /// A process, by a store to a cell.
    Store(usize, u32),
    /// A process, by a locked instruction.
    Locked(usize),
}

type Give<'g> = &'g mut dyn FnMut(Config);

impl Undo<'_> {
    fn kind(&self, process: &Viewer) -> &ProcessKind {
        &self.flow.kinds[process.kind as usize]
    }

    /// The processes whose last instruction, whichever it was, can be moved to the end of the run.
    pub fn postponable(&self, element: &Config) -> Vec<usize> {
        let can = |process: &Viewer| {
            let kind = self.kind(process);
            let Some(state) = process.state.filter(|&state| !kind.is_start[state as usize]) else {
                return false;
            };
            kind.arriving[state as usize].iter().all(|&number| {
                let edge = &kind.edges[number];
                match edge.act {
                    Act::Read(cell, value) => {
                        !kind.newest(edge.source, cell).is_some_and(|newest| newest.has(value))
                    }
                    Act::Store(cell, _) => process.queue(cell).is_some_and(|queue| !queue.values.is_empty()),
                    Act::StoreFence => true,
                    Act::Fence => process.word.is_empty(),
                    Act::Silent | Act::Spawn(_) | Act::Locked { .. } => false,
                }
            })
        };
        (0..element.processes.len()).filter(|&index| can(&element.processes[index])).collect()
    }

    /// The predecessors by instructions of one process of the element.
    pub fn by(&self, element: &Config, actor: usize, give: Give<'_>) {
        let process = &element.processes[actor];
        let kind = self.kind(process);
        if let Some(state) = process.state {
            kind.into[state as usize]
                .iter()
                .for_each(|&number| self.edge(element, actor, &kind.edges[number], give));
            return;
        }
        // It may be anywhere after the last of the required stores.
        for edge in &kind.edges {
            if let Act::Store(cell, value) = edge.act
                && process
                    .queue(cell)
                    .and_then(|queue| queue.values.last())
                    .is_some_and(|last| last.has(value))
            {
                self.edge(element, actor, edge, give);
            }
        }
    }

    fn edge(&self, element: &Config, actor: usize, edge: &Edge, give: Give<'_>) {
        let mut at_source = |config: Config| self.give_at(config, actor, edge.source, give);
        match &edge.act {
            Act::Read(cell, value) => self.read(element, actor, edge.source, *cell, *value, &mut at_source),
            Act::Store(cell, value) => {
                if let Some(config) = self.store(element, actor, *cell, *value) {
                    at_source(config);
                }
            }
            Act::StoreFence | Act::Fence => {
                let mut config = element.clone();
                let at_end = edge.act == Act::StoreFence || self.put_at_end(&mut config, actor, 0, None);
                if at_end && self.wait(&mut config, actor, edge) {
                    at_source(config);
                }
            }
            Act::Locked { .. } => self.locked(element, actor, edge, &mut |config, _| at_source(config)),
            Act::Spawn(child) => {
                let mut config = element.clone();
                if self.put_at_end(&mut config, actor, 0, None) && self.wait(&mut config, actor, edge) {
                    self.give_at(config.clone(), actor, edge.source, give);
                    self.spawn(&config, actor, *child, edge.source, give);
                }
            }
            Act::Silent => {}
        }
    }

    /// The predecessors in which a named process did not exist yet, which the actor starts. Everything that is
    /// required of it is at the end of the buffer, and its queues are empty.
    fn spawn(&self, element: &Config, actor: usize, kind: u32, source: u32, give: Give<'_>) {
        for (child, process) in element.processes.iter().enumerate() {
            let is_start = &self.flow.kinds[kind as usize].is_start;
            // A process that may be anywhere may be at its start.
            let starts = process.kind == kind && process.state.is_none_or(|state| is_start[state as usize]);
            if child == actor || !starts || process.queues.iter().any(|queue| !queue.values.is_empty()) {
                continue;
            }
            let mut config = element.clone();
            if self.put_at_end(&mut config, child, 0, None) {
                config.processes.remove(child);
                let actor = if child < actor { actor - 1 } else { actor };
                self.give_at(config, actor, source, give);
            }
        }
    }

    /// The predecessors by processes that the element does not name, or whose state it does not name, which start
    /// one that it names.
    pub fn by_parents(&self, element: &Config, give: Give<'_>) {
        for (number, kind) in self.flow.kinds.iter().enumerate() {
            for edge in &kind.edges {
                let Act::Spawn(child) = edge.act else { continue };
                let mut with = element.clone();
                with.processes.push(Viewer::anywhere(number as u32));
                for actor in 0..with.processes.len() {
                    let process = &with.processes[actor];
                    if process.kind as usize != number || process.state.is_some() {
                        continue;
                    }
                    let named = actor < element.processes.len();
                    let mut config = if named { element.clone() } else { with.clone() };
                    if self.put_at_end(&mut config, actor, 0, None) && self.wait(&mut config, actor, edge) {
                        self.spawn(&config, actor, child, edge.source, give);
                    }
                }
            }
        }
    }

    fn read(&self, element: &Config, actor: usize, source: u32, cell: u32, value: u32, give: Give<'_>) {
        let process = &element.processes[actor];
        let kind = self.kind(process);
        let seen = |own: bool| Letter { own, cell, values: Values::one(value) };
        if let Some(own) = process.word.iter().position(|letter| letter.own && letter.cell == cell) {
            if process.word[own].values.has(value) {
                let mut config = element.clone();
                config.processes[actor].word[own] = seen(true);
                give(config);
            }
            return;
        }
        let nothing = Queue { cell, closed: false, values: Vec::new() };
        let queue = process.queue(cell).cloned().unwrap_or(nothing);
        let empty =
            element.is_settled(cell) || process.has_letter(cell) || queue.closed && queue.values.is_empty();
        let is_last = queue.values.last().is_some_and(|last| last.has(value));
        let newest = kind.newest(source, cell).is_some_and(|newest| newest.has(value));
        if !empty && newest && (!queue.closed || is_last) {
            let mut queue = queue.clone();
            // A newer entry with that value would only make the queue longer.
            if is_last {
                queue.values.pop();
            }
            queue.values.push(Values::one(value));
            queue.closed = true;
            let mut config = element.clone();
            config.processes[actor].set_queue(queue);
            give(config);
        }
        if !queue.values.is_empty() {
            return;
        }
        let mut config = element.clone();
        let word = &mut config.processes[actor].word;
        match word.first_mut() {
            Some(first) if !first.own && first.cell == cell && first.values.has(value) => {
                *first = seen(false)
            }
            _ => word.insert(0, seen(false)),
        }
        give(config);
        if kind.ahead(source, cell).is_some_and(|ahead| ahead.has(value)) {
            let newest = process.word.iter().position(|letter| letter.cell == cell);
            for place in 0..=newest.unwrap_or(process.word.len()) {
                let mut config = element.clone();
                config.processes[actor].word.insert(place, seen(true));
                give(config);
            }
        }
    }

    fn store(&self, element: &Config, actor: usize, cell: u32, value: u32) -> Option<Config> {
        let mut config = element.clone();
        let process = &mut config.processes[actor];
        if element.is_settled(cell) || process.has_letter(cell) {
            return None;
        }
        if let Some(queue) = process.queues.iter_mut().find(|queue| queue.cell == cell) {
            if queue.values.last().is_some_and(|last| last.has(value)) {
                queue.values.pop();
                queue.closed = false;
            } else if queue.closed {
                return None;
            }
        }
        Some(config)
    }

    /// The predecessors by required stores that take effect, of processes named or not.
    pub fn by_effects(&self, element: &Config, give: Give<'_>) {
        for (cell, value) in wanted(element) {
            for actor in 0..element.processes.len() {
                let process = &element.processes[actor];
                let queued = self.kind(process).queued(process.state, cell);
                if queued.is_some_and(|queued| queued.has(value)) {
                    self.effect(element.clone(), actor, cell, value, give);
                }
            }
            for (number, kind) in self.flow.kinds.iter().enumerate() {
                if kind.queued(None, cell).is_some_and(|stored| stored.has(value)) {
                    let mut config = element.clone();
                    config.processes.push(Viewer::anywhere(number as u32));
                    self.effect(config, element.processes.len(), cell, value, give);
                }
            }
        }
    }

    fn effect(&self, config: Config, actor: usize, cell: u32, value: u32, give: Give<'_>) {
        let (is_required, settled) = (config.memory[cell as usize].is_some(), config.is_settled(cell));
        self.at_end(config, &[(cell, value)], By::Store(actor, cell), &mut |mut config, put| {
            if !is_required && !put {
                return;
            }
            config.memory[cell as usize] = None;
            let nothing = Queue { cell, closed: settled, values: Vec::new() };
            let mut queue = config.processes[actor].queue(cell).cloned().unwrap_or(nothing);
            queue.values.insert(0, Values::one(value));
            config.processes[actor].set_queue(queue);
            // The process stays where it arrived. Silent steps belong to its next instruction.
            if let Some(config) = config.narrowed(self.flow) {
                give(config);
            }
        });
    }

    /// The predecessors by queues that must be empty and that took effect as a whole, while nothing is
    /// required of their cells.
    pub fn by_idle_effects(&self, element: &Config, give: Give<'_>) {
        for (actor, process) in element.processes.iter().enumerate() {
            for queue in process.queues.iter().filter(|queue| queue.closed && queue.values.is_empty()) {
                let cell = queue.cell;
                let idle = element.memory[cell as usize].is_none() && !process.has_letter(cell);
                if idle && self.kind(process).queued(process.state, cell).is_some() {
                    let mut config = element.clone();
                    config.processes[actor].queues.retain(|other| other.cell != cell);
                    give(config);
                }
            }
        }
    }

    /// The predecessors by locked instructions that put a required value into memory. They belong to
    /// processes that are not named, or whose state is not.
    pub fn by_others(&self, element: &Config, give: Give<'_>) {
        let wanted = wanted(element);
        for (number, kind) in self.flow.kinds.iter().enumerate() {
            for edge in &kind.edges {
                let Act::Locked { effect, .. } = &edge.act else { continue };
                if !effect.iter().any(|written| wanted.contains(written)) {
                    continue;
                }
                let is_required = effect.iter().any(|&(cell, _)| element.memory[cell as usize].is_some());
                let mut with = element.clone();
                with.processes.push(Viewer::anywhere(number as u32));
                for actor in 0..with.processes.len() {
                    let process = &with.processes[actor];
                    if process.kind as usize != number || process.state.is_some() {
                        continue;
                    }
                    let named = actor < element.processes.len();
                    let config = if named { element.clone() } else { with.clone() };
                    self.locked(&config, actor, edge, &mut |config, put| {
                        if is_required || put {
                            self.give_at(config, actor, edge.source, give);
                        }
                    });
                }
            }
        }
    }

    fn locked(&self, element: &Config, actor: usize, edge: &Edge, give: &mut dyn FnMut(Config, bool)) {
        let Act::Locked { guard, effect, .. } = &edge.act else { return };
        self.at_end(element.clone(), effect, By::Locked(actor), &mut |mut config, put| {
            for &(cell, _) in effect {
                let read = guard.iter().find(|(guarded, _)| *guarded == cell);
                let settled = config.is_settled(cell);
                config.memory[cell as usize] = read.map(|&(_, value)| (Values::one(value), settled));
            }
            let unwritten = |&&(cell, _): &&(u32, u32)| effect.iter().all(|&(written, _)| written != cell);
            let mut guarded = guard.iter().filter(unwritten);
            let guarded = guarded.all(|&(cell, value)| self.require(&mut config, cell, &Values::one(value)));
            if guarded && self.wait(&mut config, actor, edge) {
                give(config, put);
            }
        });
    }

    /// Requires that the queues an edge waits for are empty.
    fn wait(&self, config: &mut Config, actor: usize, edge: &Edge) -> bool {
        let waits = |cell: &u32| edge.act.empties(*cell) || matches!(edge.act, Act::Spawn(_));
        for cell in (0..self.flow.values.len() as u32).filter(waits) {
            let process = &config.processes[actor];
            if process.queue(cell).is_some_and(|queue| !queue.values.is_empty()) {
                return false;
            }
            if self.kind(process).queued(Some(edge.source), cell).is_some() {
                config.processes[actor].set_queue(Queue::empty(cell));
            }
        }
        true
    }

    /// The end of the buffer is what was just put there, for every choice of letters that are there. Passes
    /// on whether there are any.
    fn at_end(&self, mut config: Config, effect: &[(u32, u32)], by: By, give: &mut dyn FnMut(Config, bool)) {
        if effect.iter().all(|&(cell, value)| self.require(&mut config, cell, &Values::one(value))) {
            self.choose(config, effect, by, 0, false, give);
        }
    }

    fn choose(
        &self,
        config: Config,
        effect: &[(u32, u32)],
        by: By,
        process: usize,
        put: bool,
        give: &mut dyn FnMut(Config, bool),
    ) {
        let Some(viewer) = config.processes.get(process) else { return give(config, put) };
        let word = &viewer.word;
        // The letters from here on must be at the end.
        let most = match by {
            By::Store(actor, cell) if actor == process => {
                word.iter().position(|letter| letter.cell == cell).unwrap_or(word.len())
            }
            By::Locked(actor) if actor == process => 0,
            By::Store(..) | By::Locked(_) => word.len(),
        };
        for first in 0..=most {
            let begins = word.get(first).is_some_and(|letter| {
                effect.iter().any(|&(cell, value)| letter.cell == cell && letter.values.has(value))
            });
            if first == most || begins {
                let mut config = config.clone();
                if self.put_at_end(&mut config, process, first, Some(by)) {
                    self.choose(config, effect, by, process + 1, put || first < word.len(), give);
                }
            }
        }
    }

    /// Places the letters of a process from `first` on at the end of the buffer. The queues of their cells
    /// are empty.
    fn put_at_end(&self, config: &mut Config, process: usize, first: usize, by: Option<By>) -> bool {
        let letters = config.processes[process].word.split_off(first);
        letters.iter().all(|letter| {
            let just_stored =
                matches!(by, Some(By::Store(actor, cell)) if actor == process && cell == letter.cell);
            if self.kind(&config.processes[process]).stores_to(letter.cell) {
                config.processes[process].set_queue(Queue::empty(letter.cell));
            }
            (!letter.own || just_stored) && self.require(config, letter.cell, &letter.values)
        })
    }

    /// Requires that the end of the buffer holds one of these values. They are named even if they follow from the
    /// state of a process, since they may not follow from its state before the step. False if that is impossible.
    fn require(&self, config: &mut Config, cell: u32, values: &Values) -> bool {
        let named = match config.memory[cell as usize].take() {
            Some((named, settled)) => (named.and(values), settled),
            None => (values.clone(), false),
        };
        config.memory[cell as usize] = Some(named);
        config.values(self.flow, cell).is_some_and(|held| !held.is_empty())
    }

    /// Whether an initial configuration is in the element.
    pub fn is_initial(&self, element: &Config) -> bool {
        let starts = |process: &Viewer| {
            // A process that may be anywhere may be at its start.
            let start = process.state.is_none_or(|state| self.kind(process).is_start[state as usize]);
            start
                && process.queues.iter().all(|queue| queue.values.is_empty())
                && process.word.iter().all(|letter| !letter.own)
        };
        let initial = self.flow.initial.iter().map(|&count| Values::of(0..count));
        let mut memory: Vec<Values> = initial
            .zip(&element.memory)
            .map(|(initial, named)| named.as_ref().map_or(initial.clone(), |named| named.0.and(&initial)))
            .collect();
        for letter in element.processes.iter().flat_map(|process| &process.word) {
            memory[letter.cell as usize] = memory[letter.cell as usize].and(&letter.values);
        }
        let few = |(number, kind): (usize, &ProcessKind)| {
            let count = element.processes.iter().filter(|process| process.kind as usize == number).count();
            kind.initially.is_none_or(|most| count <= most as usize)
        };
        element.processes.iter().all(starts)
            && self.flow.kinds.iter().enumerate().all(few)
            && memory.iter().all(|values| !values.is_empty())
    }

    /// Passes on the configuration with the actor at a state, or at the start of the silent edges to it,
    /// unless it is impossible.
    fn give_at(&self, config: Config, actor: usize, state: u32, give: Give<'_>) {
        for &state in self.flow.before((config.processes[actor].kind, state)) {
            let mut config = config.clone();
            config.processes[actor].state = Some(state);
            if let Some(config) = config.narrowed(self.flow) {
                give(config);
            }
        }
    }
}

/// The values that the end of the buffer must hold at some point.
fn wanted(element: &Config) -> BTreeSet<(u32, u32)> {
    let known = element.memory.iter().enumerate();
    let known = known.filter_map(|(cell, content)| Some((cell as u32, &content.as_ref()?.0)));
    let letters = element.processes.iter().flat_map(|process| &process.word);
    let all = known.chain(letters.map(|letter| (letter.cell, &letter.values)));
    all.flat_map(|(cell, values)| values.iter().map(move |value| (cell, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_automata::{Automata, Population, Starts};
    use palisade_base::Source;
    use palisade_memory::Interlocked;
    use palisade_program::{Instantiation, lower};
    use palisade_syntax::{Language, parse};

    /// Checks which last instructions of a process can be moved to the end of the run: with nothing required
    /// of its buffer, with a letter, and with an entry in the queue of x.
    fn check(body: &str, is_last: impl Fn(&Act) -> bool, expected: [bool; 3]) {
        let text = format!("shared x, y: 0..1; process P {{ {body} }}");
        let program = parse(Language::Pal, &Source::new("p", &text)).expect("a program").program;
        let system = lower(&program, Instantiation { any: 1, every: None });
        let automata = Automata::build(&system, |_| Population::Fixed(1), || true).expect("it has automata");
        let flow = Flow::new(&system, &automata, (Interlocked::WholeBuffer, Starts::Anytime), &[], false)
            .expect("it fits");
        let edge = flow.kinds[0].edges.iter().find(|edge| is_last(&edge.act)).expect("there is such an edge");
        let process = Viewer { state: Some(edge.target), ..Viewer::anywhere(0) };
        let word = vec![Letter { own: false, cell: 1, values: Values::one(0) }];
        let queues = vec![Queue { cell: 0, closed: false, values: vec![Values::one(1)] }];
        let variants =
            [process.clone(), Viewer { word, ..process.clone() }, Viewer { queues, ..process.clone() }];
        let found = variants.map(|process| {
            let element = Config { memory: vec![None; 2], processes: vec![process] };
            Undo { flow: &flow }.postponable(&element) == [0]
        });
        assert_eq!(found, expected, "{text}: {:?}", edge.act);
    }

    #[test]
    fn last_instructions_that_can_be_put_at_the_end() {
        let reads = |cell: u32, value: u32| move |act: &Act| *act == Act::Read(cell, value);
        check("x = 1; let r = y;", reads(1, 0), [true; 3]);
        // An entry of the queue may have been read, but not if there was a fence in between.
        check("x = 1; let r = x; y = r;", reads(0, 1), [false; 3]);
        check("x = 1; let r = x; y = r;", reads(0, 0), [true; 3]);
        check("x = 1; sfence; let r = x;", reads(0, 1), [true; 3]);
        check("x = 1; skip;", |act| matches!(act, Act::Store(..)), [false, false, true]);
        check("x = 1; sfence;", |act| *act == Act::StoreFence, [true; 3]);
        check("x = 1; fence;", |act| *act == Act::Fence, [true, false, true]);
        check("let r = xchg(x, 1);", |act| matches!(act, Act::Locked { .. }), [false; 3]);
        // All ways to a state count. A store also leads into the loop.
        check("let s = y; loop { choose { let r = y; } or { x = 1; } }", reads(1, 0), [false, false, true]);
    }

    #[test]
    fn instructions_of_a_process_at_its_start_are_not_postponed() {
        let program = "shared x: 0..1; process P { loop { let r = x; } }";
        let program = parse(Language::Pal, &Source::new("p", program)).expect("a program").program;
        let system = lower(&program, Instantiation { any: 1, every: None });
        let automata = Automata::build(&system, |_| Population::Fixed(1), || true).expect("it has automata");
        let flow = Flow::new(&system, &automata, (Interlocked::WholeBuffer, Starts::Anytime), &[], false)
            .expect("it fits");
        let start = flow.kinds[0].is_start.iter().position(|&is_start| is_start).expect("there is a start");
        for state in [None, Some(start as u32)] {
            let element =
                Config { memory: vec![None], processes: vec![Viewer { state, ..Viewer::anywhere(0) }] };
            assert!(Undo { flow: &flow }.postponable(&element).is_empty(), "{state:?}");
        }
    }
}
