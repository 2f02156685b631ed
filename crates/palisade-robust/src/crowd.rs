//! Cycles with any number of threads: coverability.
//!
//! *Problem.* Is there a cycle with some number of threads, where the numbers of some kinds of threads are not fixed, or
//! threads are started without bound?
//!
//! *Idea.* In the search of [`expand`](crate::expand), whether a thread may take a step depends on memory, on the marks
//! of its cells, on the attack and on the thread itself, and never on how many other threads there are or what they do. So
//! it is enough to count how many threads are in each thread state, apart from the attacker. These counts form a vector
//! addition system whose control states are memory with its marks, the attack and the attacker. A step moves one thread
//! from one count to another, or adds one that is started. A step that closes a cycle needs one thread: this is a question
//! of coverability.
//!
//! *Source.* Karp, Miller, "Parallel program schemata" (JCSS 1969). Bouajjani, Derevenetc, Meyer (ESOP 2013) reduce
//! robustness to reachability under SC for any number of threads, too.
//!
//! *Guarantee.* Exact, and it terminates if there are finitely many thread states and values.
//! - Sound and complete for the counts: a count that can be made as large as one likes becomes [`MANY`]. This happens if a
//!   node is at least as large as one of its ancestors with the same control state: the steps between them can be repeated.
//! - A node that is covered by another one is not expanded, since the other one can take all its steps. No node is ever
//!   removed, so the known mistake of pruned trees (removing a node that others rest on) cannot occur.
//! - With the argument in `expand`, which holds for every number of threads: there is a cycle with some number of threads
//!   if and only if a node can take a step that closes one.
//!
//! *Differences from the paper.* The attack is not guessed first: one search covers all attacks.
//!
//! *Cost.* Not bounded by any primitive recursive function, but the counts of real programs are 0, 1 or [`MANY`].
//!
//! A run is not returned: the number of threads that it needs is not known. It is found by a search with that number.

use crate::discard::Candidates;
use crate::expand::{Expander, Question, Sink, TakenMove, Trouble};
use crate::state::{Attack, Layout, MAX_CELLS, MAX_THREADS, State};
use crate::threads::{CODES, DEAD, Need, Threads};
use palisade_automata::Population;
use palisade_automata::on_demand::LocalId;
use palisade_base::Id;
use palisade_base::limits::Pace;
use palisade_engine::{Limits, Reason, Stats};
use palisade_memory::Machine;
use palisade_program::running::{CellId, RoleId};
use rustc_hash::FxHashMap;

/// A count that can be as large as one likes.
const MANY: u32 = u32::MAX;

/// A thread state, and whether the thread has entered.
type Kind = (LocalId, bool);

/// How many threads of each kind there are, in the order of the kinds. Threads that can do nothing more are left out.
type Counts = Vec<(Kind, u32)>;

/// What is not counted: the attack, the cells, and the attacker's thread state.
type Control = (Vec<u32>, Option<LocalId>);

struct Node {
    control: Control,
    counts: Counts,
    parent: Option<usize>,
}

/// The nodes found so far.
struct Tree<'a> {
    threads: Threads<'a>,
    nodes: Vec<Node>,
    /// The nodes with each control state.
    with: FxHashMap<Control, Vec<usize>>,
    /// The nodes that were not expanded yet.
    open: Vec<usize>,
}

/// Whether there is a cycle with some number of threads. `population` says how many threads of each role exist from
/// the start.
pub(crate) fn has_cycle(
    machine: Machine<'_>,
    population: &dyn Fn(RoleId) -> Population,
    candidates: &Candidates,
    limits: &Limits,
    stats: &mut Stats,
) -> Result<bool, Reason> {
    let system = machine.system;
    if system.cells.len() >= MAX_CELLS {
        return Err(Reason::Unsupported("the program has too many variables for this engine".to_owned()));
    }
    let threads = Threads::new(system, machine.model, machine.interlocked);
    let mut tree = Tree { threads, nodes: Vec::new(), with: FxHashMap::default(), open: Vec::new() };
    tree.begin(machine, population)?;
    let mut pace = Pace::default();
    let mut found = Ok(false);
    while let Some(node) = tree.open.pop() {
        let checked = limits.check_often(&mut pace, || tree.bytes());
        let checked = checked.and_then(|()| limits.check_work(tree.nodes.len() as u64));
        if let Err(what) = checked {
            found = Err(Reason::Exhausted(what));
            break;
        }
        match tree.expand(node, machine, candidates) {
            Ok(false) => {}
            other => {
                found = other;
                break;
            }
        }
    }
    stats.add("counted_states", tree.nodes.len() as u64);
    found
}

impl Tree<'_> {
    /// Adds the initial nodes.
    fn begin(
        &mut self,
        machine: Machine<'_>,
        population: &dyn Fn(RoleId) -> Population,
    ) -> Result<(), Reason> {
        let mut counts = Counts::new();
        for role in machine.system.roles.ids() {
            let number = match population(role) {
                Population::Fixed(number) => number,
                Population::Any => MANY,
            };
            if number > 0 {
                add(&mut counts, (self.threads.start(role), false), number);
            }
        }
        let layout = Layout { cells: machine.system.cells.len(), threads: 0 };
        for initial in machine.initial_states() {
            palisade_base::limits::checkpoint();
            let mut state = State { words: vec![0; layout.words()], layout };
            for (cell, &value) in initial.memory.iter().enumerate() {
                let cell = CellId::from_index(cell);
                let code = self.threads.automaton.values.code(cell, value);
                if code >= CODES {
                    return Err(self.growing(machine, cell));
                }
                state.set_memory(cell, code);
            }
            self.add(Node { control: (state.shared(), None), counts: counts.clone(), parent: None });
        }
        Ok(())
    }

    /// Adds the successors of a node. Returns whether one of its steps closes a cycle.
    fn expand(&mut self, node: usize, machine: Machine<'_>, candidates: &Candidates) -> Result<bool, Reason> {
        let Node { control: (shared, attacker), counts, .. } = &self.nodes[node];
        // One thread of each kind, and room for one that is started.
        let slots: Vec<Kind> = attacker
            .iter()
            .map(|&local| (local, false))
            .chain(counts.iter().map(|&(kind, _)| kind))
            .collect();
        let layout = Layout { cells: machine.system.cells.len(), threads: slots.len() + 1 };
        if layout.threads > MAX_THREADS {
            let why = format!("threads are in more than {MAX_THREADS} different states at once");
            return Err(Reason::Unsupported(why));
        }
        let mut state = State { words: vec![0; layout.words()], layout };
        state.set_shared(shared);
        for (slot, &(local, entered)) in slots.iter().enumerate() {
            state.set_thread(slot, local);
            if entered {
                state.enter(slot);
            }
        }
        let attackers = usize::from(attacker.is_some());
        let old = (counts.clone(), attackers, slots.len());
        let successors = loop {
            let expander = Expander {
                question: Question::Cycle,
                threads: &self.threads,
                layout,
                model: machine.model,
                candidates,
            };
            let (mut sink, mut needs): (_, Vec<Need>) = (Collect::new(layout), Vec::new());
            match expander.expand(&state.words, &mut sink, &mut needs) {
                Ok(()) if sink.cycle => return Ok(true),
                Ok(()) => break sink.successors,
                Err(Trouble::Needs) => needs.into_iter().for_each(|need| self.threads.supply(need)),
                Err(Trouble::Threads) => unreachable!("a step starts at most one thread"),
            }
            if let Some(trouble) = self.threads.trouble() {
                return Err(self.trouble(machine, trouble));
            }
        };
        for (thread, next) in successors {
            let successor = successor(&old, thread, &next, node);
            self.add_accelerated(successor);
        }
        Ok(false)
    }

    /// Adds a node, with counts that can be made as large as one likes, unless another node covers it.
    fn add_accelerated(&mut self, mut node: Node) {
        let mut ancestor = node.parent;
        while let Some(index) = ancestor {
            let Node { control, counts, parent } = &self.nodes[index];
            if *control == node.control && covers(&node.counts, counts) {
                for (kind, count) in &mut node.counts {
                    if count_of(counts, *kind) < *count {
                        *count = MANY;
                    }
                }
            }
            ancestor = *parent;
        }
        self.add(node);
    }

    fn add(&mut self, node: Node) {
        let known = self.with.entry(node.control.clone()).or_default();
        if known.iter().any(|&other| covers(&self.nodes[other].counts, &node.counts)) {
            return;
        }
        known.push(self.nodes.len());
        self.open.push(self.nodes.len());
        self.nodes.push(node);
    }

    /// Roughly how much memory the nodes take.
    fn bytes(&self) -> u64 {
        let of = |node: &Node| 96 + 8 * node.control.0.len() + 12 * node.counts.len();
        let last = self.nodes.last().map_or(0, of);
        self.threads.bytes() + (self.nodes.len() * 2 * last) as u64
    }

    fn trouble(&self, machine: Machine<'_>, trouble: crate::threads::Trouble) -> Reason {
        match trouble {
            crate::threads::Trouble::Values(cell) => self.growing(machine, cell),
            crate::threads::Trouble::Calls => Reason::Unsupported("calls nest too deep".to_owned()),
            crate::threads::Trouble::Section => {
                Reason::Unsupported("an atomic section takes too many steps".to_owned())
            }
        }
    }

    fn growing(&self, machine: Machine<'_>, cell: CellId) -> Reason {
        let name = machine.system.cells[cell].name.clone();
        Reason::Growing { name, values: self.threads.automaton.values.size(cell) as usize }
    }
}

/// The node after a step of the thread in a slot. `old` is the counts before, the number of attackers, and the number of
/// slots.
fn successor(old: &(Counts, usize, usize), thread: usize, next: &State<Vec<u64>>, parent: usize) -> Node {
    let (counts, attackers, slots) = old;
    let mut counts = counts.clone();
    let kind = |slot: usize| (next.thread(slot), next.entered(slot));
    let attack = next.attack();
    if thread >= *attackers {
        remove(&mut counts, thread - attackers);
        if attack.is_none_or(|attack| attack.attacker != thread) {
            add(&mut counts, kind(thread), 1);
        }
    }
    add(&mut counts, kind(*slots), 1);
    let attacker = attack.map(|attack| next.thread(attack.attacker));
    let mut next = next.clone();
    if let Some(attack) = attack {
        next.set_attack(Attack { attacker: 0, ..attack });
    }
    Node { control: (next.shared(), attacker), counts, parent: Some(parent) }
}

/// Collects successors, with the thread that took the step.
struct Collect {
    layout: Layout,
    successors: Vec<(usize, State<Vec<u64>>)>,
    cycle: bool,
}

impl Collect {
    fn new(layout: Layout) -> Collect {
        Collect { layout, successors: Vec::new(), cycle: false }
    }
}

impl Sink for Collect {
    fn take(&mut self, taken: TakenMove<'_>, next: Option<&[u64]>) {
        match next {
            Some(words) => {
                self.successors.push((taken.thread, State { words: words.to_vec(), layout: self.layout }));
            }
            None => self.cycle = true,
        }
    }
}

fn count_of(counts: &Counts, kind: Kind) -> u32 {
    counts.binary_search_by_key(&kind, |&(kind, _)| kind).map_or(0, |at| counts[at].1)
}

/// Whether there are at least as many of each kind.
fn covers(larger: &Counts, smaller: &Counts) -> bool {
    smaller.iter().all(|&(kind, count)| count_of(larger, kind) >= count)
}

/// Adds threads of a kind. Those that can do nothing more do not count.
fn add(counts: &mut Counts, kind: Kind, number: u32) {
    if kind.0 == DEAD || kind.0 == LocalId::NONE {
        return;
    }
    match counts.binary_search_by_key(&kind, |&(kind, _)| kind) {
        Ok(at) => counts[at].1 = counts[at].1.saturating_add(number),
        Err(at) => counts.insert(at, (kind, number)),
    }
}

/// Takes away one thread of the kind at a position.
fn remove(counts: &mut Counts, at: usize) {
    match &mut counts[at].1 {
        &mut MANY => {}
        1 => drop(counts.remove(at)),
        count => *count -= 1,
    }
}
