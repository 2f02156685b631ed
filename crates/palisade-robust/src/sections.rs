//! Atomic sections as single events: all paths through a section, for given contents of memory when it opens.

use crate::threads::{ByEvents, Letter, Move, Need, Way};
use palisade_automata::on_demand::{LocalId, ThreadAutomaton};
use palisade_automata::{After, Hold, Local, MAX_FRAMES};
use palisade_base::{Id, limits};
use palisade_memory::Action;
use palisade_program::running::{CellId, Instr, RoleId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A section is abandoned after this many steps.
const MAX_STEPS: usize = 1 << 14;

/// The effect of a whole atomic section.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    /// The thread state after it. `None` if it never closes.
    pub local: Option<LocalId>,
    /// The cells it reads before it writes them.
    pub reads: Vec<CellId>,
    /// The cells it writes, with the codes of the final values.
    pub writes: Vec<(CellId, u32)>,
    /// The threads it starts.
    pub children: Vec<LocalId>,
    /// All its steps.
    pub steps: Vec<Action>,
}

/// A section, given by the number of its move and the contents of memory.
type Entry = (u32, Box<[u32]>);

/// The sections found so far.
#[derive(Default)]
pub(crate) struct Sections {
    passages: FxHashMap<Entry, Box<[Passage]>>,
    /// Whether some section was abandoned.
    pub too_long: bool,
    bytes: u64,
}

impl Sections {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The possible effects of a section with this memory, if known.
    pub fn passages(&self, mv: &Move, memory: &[u32]) -> Result<&[Passage], Need> {
        debug_assert_eq!(mv.letter, Letter::Section, "the move opens a section");
        let key = (mv.number(), Box::from(memory));
        self.passages.get(&key).map(|passages| &**passages).ok_or(Need::Passages(key.0, key.1))
    }

    /// Computes what the section that a move opens can do with this memory.
    pub fn supply(&mut self, automaton: &mut ThreadAutomaton<'_, ByEvents>, number: u32, memory: Box<[u32]>) {
        let key = (number, memory);
        if self.passages.contains_key(&key) {
            return;
        }
        let mut passing = Passing { automaton, memory: &key.1, open: Vec::new(), found: Vec::new() };
        self.too_long |= !passing.pass(number);
        let found = passing.found;
        self.bytes += 128 * (1 + found.len() as u64);
        self.passages.insert(key, found.into());
    }
}

/// A point inside a section.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Inside {
    local: Local,
    reads: Vec<CellId>,
    writes: Vec<(CellId, u32)>,
    roles: Vec<RoleId>,
}

/// A search for all paths through a section.
struct Passing<'p, 'a> {
    automaton: &'p mut ThreadAutomaton<'a, ByEvents>,
    memory: &'p [u32],
    open: Vec<(Inside, Vec<Action>)>,
    found: Vec<Passage>,
}

impl Passing<'_, '_> {
    /// Finds all paths through the section that a move opens. Returns whether the search finished.
    fn pass(&mut self, number: u32) -> bool {
        let mv = self.automaton.numbered(number);
        let local = self.automaton.local(mv.local).clone();
        let mut seen = FxHashSet::default();
        let start = Inside { local, reads: Vec::new(), writes: Vec::new(), roles: Vec::new() };
        self.step(&start, &[], mv.action);
        while let Some((at, steps)) = self.open.pop() {
            limits::checkpoint();
            let closed = at.local.hold == Hold::Outside && at.local.fault.is_none();
            if closed {
                self.close(at, steps);
                continue;
            }
            if !seen.insert(at.clone()) {
                continue;
            }
            if seen.len() > MAX_STEPS || at.local.thread.frames.len() > MAX_FRAMES {
                return false;
            }
            if at.local.fault.is_none() {
                let machine = &self.automaton.machine;
                let edges = machine.edges(&at.local);
                let actions: Vec<_> = edges.flat_map(|edge| machine.actions(&at.local, edge)).collect();
                for action in actions {
                    self.step(&at, &steps, action);
                }
            }
            // The section may stop here forever. What it has accessed so far counts.
            let accesses_the_same = |other: &Passage| {
                let cells =
                    |writes: &[(CellId, u32)]| writes.iter().map(|&(cell, _)| cell).collect::<Vec<_>>();
                other.reads == at.reads && cells(&other.writes) == cells(&at.writes)
            };
            if !self.found.iter().any(|other| other.local.is_none() && accesses_the_same(other)) {
                let Inside { reads, writes, .. } = at;
                self.found.push(Passage { local: None, reads, writes, children: Vec::new(), steps });
            }
        }
        true
    }

    /// Takes one step inside a section.
    fn step(&mut self, at: &Inside, steps: &[Action], action: Action) {
        let Action::Execute { edge, .. } = action else { unreachable!("there are no buffers here") };
        let machine = self.automaton.machine.machine;
        let top = at.local.thread.top();
        let read = match &machine.system.codes[top.code].edges()[edge].instr {
            Instr::Load(_, address) | Instr::Locked { address, .. } => {
                machine.resolve(address, &top.registers).ok()
            }
            _ => None,
        };
        let held = |cell: CellId| at.writes.iter().find(|(other, _)| *other == cell).map(|&(_, code)| code);
        let value = read.map(|cell| {
            let code = held(cell).unwrap_or(self.memory[cell.index()]);
            (cell, self.automaton.values.value(cell, code))
        });
        let Some(after) = self.automaton.machine.step(&at.local, action, value) else { return };
        let mut next = Inside { local: after.local, ..at.clone() };
        if let Some(cell) = read.filter(|&cell| held(cell).is_none())
            && let Err(place) = next.reads.binary_search(&cell)
        {
            next.reads.insert(place, cell);
        }
        if let Some((cell, value)) = after.write {
            let code = self.automaton.values.code(cell, value);
            match next.writes.binary_search_by_key(&cell, |&(other, _)| other) {
                Ok(place) => next.writes[place].1 = code,
                Err(place) => next.writes.insert(place, (cell, code)),
            }
        }
        next.roles.extend(after.child.map(|child| child.thread.role));
        self.open.push((next, steps.iter().copied().chain([action]).collect()));
    }

    fn close(&mut self, at: Inside, steps: Vec<Action>) {
        let children: Vec<LocalId> =
            at.roles.iter().flat_map(|&role| self.automaton.starts(role).to_vec()).collect();
        let after = After { local: at.local, write: None, child: None };
        for (local, arrival) in self.automaton.run_on(after, Way::Plain) {
            self.found.push(Passage {
                local: (!arrival.mark.faults()).then_some(local),
                reads: at.reads.clone(),
                writes: at.writes.clone(),
                children: children.clone(),
                steps: steps.iter().copied().chain(arrival.steps).collect(),
            });
        }
    }
}
