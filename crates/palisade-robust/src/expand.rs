//! The steps of the search: SC steps, the start of an attack, and what may happen after it.
//!
//! *Problem.* Find a run whose happens-before has a cycle.
//!
//! *Source.* Bouajjani, Derevenetc, Meyer, "Checking and enforcing robustness against TSO" (ESOP 2013): Lemma
//! 6 and Figure 5 of "Lazy TSO reachability" (FASE 2015).
//!
//! *The search.* All threads run as under SC until one thread, the attacker, takes a store *s* to a cell *x*
//! and holds it back forever. From then on only events that happen after *s* are taken. These are the events
//! of the attacker, and those of threads with an event that conflicts with one taken since *s*. Such a thread
//! has **entered**.
//!
//! Rules for the attacker:
//! - Its later stores are held back as well. Under PSO only those are held back that *s* keeps from reaching
//!   memory: the stores to *x* and those after a store-store fence. The others reach memory at once.
//! - It sees its own stores. The other threads do not see them.
//! - It cannot take a step that waits for an empty buffer.
//!
//! If a thread that has entered accesses *x*, its access comes before *s* (from-read or coherence) and
//! happens after *s*. This is a cycle.
//!
//! *Guarantee.* Sound: the steps are those of a run of the store-buffer machine with such a cycle.
//!
//! Complete: let τ·e be a shortest run with a cycle.
//! 1. τ has no cycle, so there is an order ρ of its events that is a run under SC.
//! 2. The step e closes a cycle, so it accesses memory and has a new arrow to an older event. Only pending
//!    stores get new arrows from such an access. So e, of a thread u, accesses a cell x to which a store s of
//!    another thread t is pending, and s happens before e.
//! 3. Take the events of ρ before e that do not happen after s, in the order of ρ. Then take s. Then take the
//!    events that do happen after s, in the order of ρ, and finally e.
//! 4. The first part is a run under SC, since everything that happens before its events is in it.
//! 5. In the second part, the stores of t that s keeps back were pending in τ, so no other thread has read
//!    them. Only a load of t itself can have read them from memory under ρ. All other events read what they
//!    read in ρ.
//! 6. A store of a third thread to x that was pending in τ may now reach memory before e. Then e reads that
//!    store instead, and is still an access to x.
//! 7. The thread u has an event after s, so it has entered, by e at the latest.
//!
//! *Differences from the paper.* Conditions W3 and W5 require that after the attacker's last load everything
//! happens after that load. It is enough that everything happens after the store. This avoids guessing which
//! load is the last, and one search covers all attacks at once. A `spawn` of the attacker is an event through
//! which others enter. So are, under PSO, its stores that overtake s. Atomic sections are one event; the
//! attacker cannot take one.
//!
//! *Invariant*: without an attack no cell is marked, no value is held back, and no thread has entered (a
//! `debug_assert!` where states are expanded).

use crate::discard::Candidates;
use crate::sections::Passage;
use crate::state::{Attack, Layout, State};
use crate::threads::{DEAD, Letter, Move, Need, Target, Threads, Way};
use palisade_automata::on_demand::LocalId;
use palisade_memory::Model;
use palisade_program::running::CellId;

/// A step of the search, for witnesses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenMove<'t> {
    pub thread: usize,
    pub mv: Move,
    /// The code of the value read.
    pub code: u32,
    /// The way in which the thread continues.
    pub way: Way,
    pub led: Led<'t>,
    /// Whether its store is held back.
    pub held: bool,
}

/// The result of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Led<'t> {
    To(Target),
    Through(&'t Passage),
}

/// A receiver of the successors of a state.
pub(crate) trait Sink {
    /// A successor; `None` if the step closes a cycle.
    fn take(&mut self, taken: TakenMove<'_>, next: Option<&[u64]>);
}

/// Why the expansion of a state was not finished.
pub(crate) enum Trouble {
    /// The tables lack an entry.
    Needs,
    /// There is no room for another thread.
    Threads,
}

/// The goal of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// A cycle of happens-before.
    Cycle,
    /// A triangular race; see `triangular`.
    Triangle,
}

pub(crate) struct Expander<'e, 'a> {
    pub question: Question,
    pub threads: &'e Threads<'a>,
    pub layout: Layout,
    pub model: Model,
    pub candidates: &'e Candidates,
}

impl Expander<'_, '_> {
    /// Passes all successors of a state to the sink. Missing table entries go to `needs`; in that case the
    /// sink may already have received some successors.
    pub fn expand(&self, words: &[u64], sink: &mut impl Sink, needs: &mut Vec<Need>) -> Result<(), Trouble> {
        let state = State { words, layout: self.layout };
        let attack = state.attack();
        debug_assert!(attack.is_some() || state.is_unmarked(), "there are no marks without an attack");
        let mut next = State { words: words.to_vec(), layout: self.layout };
        let before = needs.len();
        for thread in 0..self.layout.threads {
            let local = state.thread(thread);
            if local == LocalId::NONE {
                break;
            }
            let way = match attack {
                Some(attack) if attack.attacker == thread => Way::Attacking,
                _ => Way::Plain,
            };
            match self.threads.moves(local, way) {
                Ok(moves) => {
                    for mv in moves {
                        let mut step = Stepping {
                            of: self,
                            state: &state,
                            attack,
                            thread,
                            way,
                            mv,
                            next: &mut next,
                            sink,
                        };
                        match step.step() {
                            Ok(()) => {}
                            Err(Missing::Need(need)) => needs.push(need),
                            Err(Missing::Room) => return Err(Trouble::Threads),
                        }
                    }
                }
                Err(need) => needs.push(need),
            }
        }
        if needs.len() > before { Err(Trouble::Needs) } else { Ok(()) }
    }
}

/// A store that another thread can take now.
pub(crate) struct Rival {
    pub thread: usize,
    /// Its steps: either one step, or those of a section up to its store.
    pub steps: Vec<palisade_memory::Action>,
}

impl Expander<'_, '_> {
    /// Some other thread that can store to the cell now.
    pub fn rival<W: AsRef<[u64]>>(
        &self,
        state: &State<W>,
        except: usize,
        cell: CellId,
    ) -> Result<Option<Rival>, Need> {
        for thread in (0..self.layout.threads).filter(|&thread| thread != except) {
            for mv in self.threads.moves(state.thread(thread), Way::Plain)? {
                let single = vec![mv.action];
                let steps = match mv.letter {
                    Letter::Store(other) if other == cell => {
                        let possible = !self.threads.targets(mv, 0, Way::Plain)?.is_empty();
                        possible.then_some(single)
                    }
                    Letter::Locked(other) if other == cell => {
                        let targets = self.threads.targets(mv, state.memory(cell), Way::Plain)?;
                        targets.iter().any(|target| target.write().is_some()).then_some(single)
                    }
                    Letter::Section => {
                        let mut passages = self.threads.passages(mv, &state.codes())?.iter();
                        let found =
                            passages.find(|passage| passage.writes.iter().any(|&(other, _)| other == cell));
                        found.map(|passage| passage.steps.clone())
                    }
                    _ => None,
                };
                if let Some(steps) = steps {
                    return Ok(Some(Rival { thread, steps }));
                }
            }
        }
        Ok(None)
    }
}

pub(crate) enum Missing {
    Need(Need),
    Room,
}

impl From<Need> for Missing {
    fn from(need: Need) -> Missing {
        Missing::Need(need)
    }
}

/// One move of one thread in one state.
struct Stepping<'s, 'e, 'a, S> {
    of: &'s Expander<'e, 'a>,
    state: &'s State<&'s [u64]>,
    attack: Option<Attack>,
    thread: usize,
    way: Way,
    mv: &'s Move,
    next: &'s mut State<Vec<u64>>,
    sink: &'s mut S,
}

/// The access of a step to a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Loads,
    Stores,
}

impl<S: Sink> Stepping<'_, '_, '_, S> {
    /// A step after the store of a triangle. All threads continue as under SC, except that the thread that
    /// stored takes no step that waits for its buffer. The cells it has stored to are marked.
    fn step_of_triangle(&mut self) -> Result<(), Missing> {
        let attacks = self.attacks();
        match self.mv.letter {
            Letter::Load(cell) if attacks => {
                let code = self.state.memory(cell);
                let races =
                    !self.state.stored(cell) && self.of.rival(self.state, self.thread, cell)?.is_some();
                for target in self.targets(code, self.way)? {
                    if races {
                        self.emit_cycle(code, target);
                        return Ok(());
                    }
                    if !target.mark.faults() {
                        self.begin(target.local);
                        self.emit_plainly(code, target);
                    }
                }
            }
            Letter::Locked(_) if attacks => {}
            Letter::Load(cell) | Letter::Locked(cell) => {
                let code = self.state.memory(cell);
                for target in self.targets(code, self.way)? {
                    if !target.mark.faults() {
                        self.begin(target.local);
                        if let Some(write) = target.write() {
                            self.next.set_memory(cell, write);
                        }
                        self.emit_plainly(code, target);
                    }
                }
            }
            Letter::Store(cell) => {
                for target in self.targets(0, self.way)? {
                    if !target.mark.faults() {
                        self.begin(target.local);
                        self.next.set_memory(cell, target.write().expect("a store writes"));
                        if attacks {
                            self.next.set_stored(cell);
                        }
                        self.emit_plainly(0, target);
                    }
                }
            }
            Letter::Spawn => {
                for target in self.targets(0, self.way)? {
                    if attacks {
                        self.emit_cycle(0, target);
                        return Ok(());
                    }
                    if let (false, Some(child)) = (target.mark.faults(), target.child()) {
                        self.begin(target.local);
                        self.start(child)?;
                        self.emit_plainly(0, target);
                    }
                }
            }
            Letter::Section => return self.section(),
            Letter::Local | Letter::StoreFence => {
                for target in self.targets(0, self.way)? {
                    if !target.mark.faults() {
                        self.begin(target.local);
                        self.emit_plainly(0, target);
                    }
                }
            }
        }
        Ok(())
    }

    /// Passes on a successor without the check for hopeless states. Successors in which the attacker is dead
    /// are dropped.
    fn emit_plainly(&mut self, code: u32, target: Target) {
        let (thread, mv, way) = (self.thread, *self.mv, self.way);
        let attacker = self.attack.map_or(thread, |attack| attack.attacker);
        if self.next.thread(attacker) != DEAD {
            let taken = TakenMove { thread, mv, code, way, led: Led::To(target), held: false };
            self.sink.take(taken, Some(&self.next.words));
        }
    }

    fn step(&mut self) -> Result<(), Missing> {
        if self.of.question == Question::Triangle && self.attack.is_some() {
            return self.step_of_triangle();
        }
        match self.mv.letter {
            Letter::Local => self.local(false),
            Letter::StoreFence => self.local(true),
            Letter::Spawn => self.spawn(),
            Letter::Load(cell) => self.load(cell),
            Letter::Store(cell) => self.store(cell),
            Letter::Locked(cell) => self.locked(cell),
            Letter::Section => self.section(),
        }
    }

    fn attacks(&self) -> bool {
        self.way == Way::Attacking
    }

    fn targets(&self, code: u32, way: Way) -> Result<Vec<Target>, Missing> {
        Ok(self.of.threads.targets(self.mv, code, way)?.to_vec())
    }

    /// Whether an access may be taken. Without an attack, and for the attacker, it always may. Otherwise it
    /// may if it happens after the attack's start.
    fn may(&self, cell: CellId, access: Access) -> bool {
        let conflicts = match access {
            Access::Loads => self.state.stored(cell),
            Access::Stores => self.state.loaded(cell) || self.state.stored(cell),
        };
        self.attack.is_none() || self.attacks() || self.state.entered(self.thread) || conflicts
    }

    /// Whether an access that may be taken closes a cycle.
    fn closes(&self, cell: CellId) -> bool {
        self.attack.is_some_and(|attack| attack.attacker != self.thread && attack.cell == cell)
    }

    /// Copies the state into the next state, with the thread moved on.
    fn begin(&mut self, local: LocalId) {
        self.next.words.copy_from_slice(self.state.words);
        self.next.set_thread(self.thread, local);
    }

    /// Marks an access in the next state.
    fn mark(&mut self, cell: CellId, access: Access) {
        if self.attack.is_none() {
            return;
        }
        match access {
            Access::Loads => self.next.set_loaded(cell),
            Access::Stores => self.next.set_stored(cell),
        }
        if !self.attacks() {
            self.next.enter(self.thread);
        }
    }

    fn emit(&mut self, code: u32, target: Target) {
        if !self.next.is_hopeless() {
            let taken = TakenMove {
                thread: self.thread,
                mv: *self.mv,
                code,
                way: self.way,
                led: Led::To(target),
                held: false,
            };
            self.sink.take(taken, Some(&self.next.words));
        }
    }

    fn emit_held(&mut self, target: Target) {
        if !self.next.is_hopeless() {
            let way = Way::Attacking;
            let taken = TakenMove {
                thread: self.thread,
                mv: *self.mv,
                code: 0,
                way,
                led: Led::To(target),
                held: true,
            };
            self.sink.take(taken, Some(&self.next.words));
        }
    }

    fn emit_cycle(&mut self, code: u32, target: Target) {
        let taken = TakenMove {
            thread: self.thread,
            mv: *self.mv,
            code,
            way: self.way,
            led: Led::To(target),
            held: false,
        };
        self.sink.take(taken, None);
    }

    fn local(&mut self, fences: bool) -> Result<(), Missing> {
        for target in self.targets(0, self.way)? {
            if !target.mark.faults() {
                self.begin(target.local);
                if let Some(attack) = self.attack.filter(|_| fences) {
                    self.next.set_attack(Attack { fenced: true, ..attack });
                }
                self.emit(0, target);
            }
        }
        Ok(())
    }

    fn spawn(&mut self) -> Result<(), Missing> {
        if self.attack.is_some() && !self.attacks() && !self.state.entered(self.thread) {
            return Ok(());
        }
        for target in self.targets(0, self.way)? {
            if let (false, Some(child)) = (target.mark.faults(), target.child()) {
                self.begin(target.local);
                self.start(child)?;
                self.emit(0, target);
            }
        }
        Ok(())
    }

    /// Starts a thread in the next state.
    fn start(&mut self, child: LocalId) -> Result<(), Missing> {
        let threads = self.of.layout.threads;
        let free =
            (0..threads).find(|&thread| self.next.thread(thread) == LocalId::NONE).ok_or(Missing::Room)?;
        self.next.set_thread(free, child);
        if self.attack.is_some() && self.of.question == Question::Cycle {
            self.next.enter(free);
        }
        Ok(())
    }

    fn load(&mut self, cell: CellId) -> Result<(), Missing> {
        let held = self.state.held(cell).filter(|_| self.attacks());
        if !self.may(cell, Access::Loads) {
            return Ok(());
        }
        let code = held.unwrap_or(self.state.memory(cell));
        for target in self.targets(code, self.way)? {
            if self.closes(cell) {
                self.emit_cycle(code, target);
                return Ok(());
            }
            if !target.mark.faults() {
                self.begin(target.local);
                if held.is_none() {
                    self.mark(cell, Access::Loads);
                }
                self.emit(code, target);
            }
        }
        Ok(())
    }

    fn store(&mut self, cell: CellId) -> Result<(), Missing> {
        if !self.may(cell, Access::Stores) {
            return Ok(());
        }
        let holds = self.attack.is_some_and(|attack| {
            self.attacks() && (self.of.model != Model::Pso || attack.fenced || attack.cell == cell)
        });
        for target in self.targets(0, self.way)? {
            let code = target.write().expect("a store writes");
            if self.closes(cell) {
                self.emit_cycle(0, target);
                return Ok(());
            }
            if target.mark.faults() {
                continue;
            }
            self.begin(target.local);
            if holds {
                self.next.hold(cell, code);
                self.emit_held(target);
            } else {
                self.next.set_memory(cell, code);
                self.mark(cell, Access::Stores);
                self.emit(0, target);
            }
        }
        let may_attack = || {
            let local = self.of.threads.local(self.mv.local);
            self.of.candidates.may_attack(local, self.mv.action, cell)
        };
        if self.attack.is_none() && may_attack() {
            self.begin_attack(cell)?;
        }
        Ok(())
    }

    /// Takes a store with which an attack starts.
    fn begin_attack(&mut self, cell: CellId) -> Result<(), Missing> {
        let way = Way::Attacking;
        for target in self.targets(0, way)? {
            if target.mark.faults() || target.local == DEAD {
                continue;
            }
            let code = target.write().expect("a store writes");
            self.begin(target.local);
            self.next.set_attack(Attack { attacker: self.thread, cell, fenced: false });
            match self.of.question {
                Question::Cycle => {
                    self.next.hold(cell, code);
                    self.emit_held(target);
                }
                Question::Triangle => {
                    self.next.set_memory(cell, code);
                    self.next.set_stored(cell);
                    let (thread, mv) = (self.thread, *self.mv);
                    let taken = TakenMove { thread, mv, code: 0, way, led: Led::To(target), held: false };
                    self.sink.take(taken, Some(&self.next.words));
                }
            }
        }
        Ok(())
    }

    fn locked(&mut self, cell: CellId) -> Result<(), Missing> {
        // An attacker can reach this point only if locked instructions wait for their own address alone.
        if self.attack.is_some_and(|attack| attack.fenced) && self.attacks()
            || self.attacks() && self.state.held(cell).is_some()
        {
            return Ok(());
        }
        let code = self.state.memory(cell);
        for target in self.targets(code, self.way)? {
            let access = if target.write().is_some() { Access::Stores } else { Access::Loads };
            if !self.may(cell, access) {
                continue;
            }
            if self.closes(cell) {
                self.emit_cycle(code, target);
                return Ok(());
            }
            if !target.mark.faults() {
                self.begin(target.local);
                if let Some(write) = target.write() {
                    self.next.set_memory(cell, write);
                }
                self.mark(cell, access);
                self.emit(code, target);
            }
        }
        Ok(())
    }

    fn section(&mut self) -> Result<(), Missing> {
        let passages = self.of.threads.passages(self.mv, &self.state.codes())?;
        for passage in passages {
            let cycles = self.of.question == Question::Cycle;
            let entered = self.attack.is_none()
                || !cycles
                || self.state.entered(self.thread)
                || passage.reads.iter().any(|&cell| self.may(cell, Access::Loads))
                || passage.writes.iter().any(|&(cell, _)| self.may(cell, Access::Stores));
            let cells = || passage.reads.iter().copied().chain(passage.writes.iter().map(|&(cell, _)| cell));
            let neutral = cells().next().is_none() && passage.children.is_empty();
            if !entered && !neutral {
                continue;
            }
            let taken = TakenMove {
                thread: self.thread,
                mv: *self.mv,
                code: 0,
                way: self.way,
                led: Led::Through(passage),
                held: false,
            };
            if cycles && entered && cells().any(|cell| self.closes(cell)) {
                self.sink.take(taken, None);
                return Ok(());
            }
            let Some(local) = passage.local else { continue };
            self.begin(local);
            for &cell in passage.reads.iter().filter(|_| cycles) {
                self.mark(cell, Access::Loads);
            }
            for &(cell, code) in &passage.writes {
                self.next.set_memory(cell, code);
                if cycles {
                    self.mark(cell, Access::Stores);
                }
            }
            for &child in &passage.children {
                self.start(child)?;
            }
            if !cycles || !self.next.is_hopeless() {
                self.sink.take(taken, Some(&self.next.words));
            }
        }
        Ok(())
    }
}
