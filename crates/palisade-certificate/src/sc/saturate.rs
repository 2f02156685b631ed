//! Everything that a thread with one of many stacks can do alone.
//!
//! The thread is a pushdown system. It has a *control* (memory, and the threads it has started) and a stack
//! of *letters*, which are frames with information about atomic sections. A rule looks at the control and the
//! top:
//! - a step that stays in the procedure replaces the top;
//! - a call replaces it by two letters;
//! - a return removes the top and changes the letter below.
//!
//! An automaton that accepts the given stacks gets more edges until nothing is added (Bouajjani, Esparza and
//! Maler, CONCUR 1997). Suppose control c reads f to q.
//! - If a rule leads from (c, f) to (c', f'), then c' reads f' to q.
//! - For a call to (c', f' g'), c' reads f' to a state of its own, which reads g' to q.
//! - For a return, if q reads g to r and g becomes g', then c reads g' to r.
//!
//! By induction on the steps, everything the thread reaches is accepted.
//!
//! Sections nest across calls. A letter records whether a frame below has one open, and how many it has
//! opened itself. The sections of a frame are closed before it returns.

use super::alone::{Alone, Body, Does};
use super::inclusion::{END, Row};
use super::{Table, unfit};
use crate::Refusal;
use crate::watch::Watch;
use palisade_memory::{Frame, Thread};
use palisade_program::Value;
use palisade_program::running::{Instr, RoleId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Steps do not depend on the role for which they are taken.
const ANY_ROLE: RoleId = RoleId(0);

/// A frame on a stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Letter {
    pub frame: Frame,
    /// Whether a frame below has a section open.
    pub inherited: bool,
    /// The number of sections it has opened itself.
    pub opened: u32,
}

impl Letter {
    fn body(&self) -> Body {
        Body {
            thread: thread(vec![self.frame.clone()]),
            depth: self.opened.saturating_add(self.inherited.into()),
        }
    }
}

fn thread(frames: Vec<Frame>) -> Thread {
    Thread { role: ANY_ROLE, frames, buffer: Vec::new() }
}

/// A rule: the memory it leaves, the thread it starts, the top and perhaps a letter below.
#[derive(Clone, Copy)]
struct Rule {
    memory: u32,
    child: Option<RoleId>,
    top: u32,
    below: Option<u32>,
}

/// The rules for a letter on top, with a given memory.
#[derive(Clone)]
struct Moves {
    rules: Rc<[Rule]>,
    returns: bool,
}

/// Letters, memory contents, and the rules for them.
pub(super) struct Rules<'a> {
    pub alone: Alone<'a>,
    pub letters: Table<Letter>,
    pub memories: Table<Vec<Value>>,
    moves: FxHashMap<(u32, u32), Moves>,
    returns: FxHashMap<(u32, u32), Rc<[u32]>>,
    waits: FxHashMap<u32, bool>,
}

impl<'a> Rules<'a> {
    pub fn new(alone: Alone<'a>) -> Rules<'a> {
        Rules {
            alone,
            letters: Table::new(),
            memories: Table::new(),
            moves: FxHashMap::default(),
            returns: FxHashMap::default(),
            waits: FxHashMap::default(),
        }
    }

    /// The approximate number of bytes in the tables.
    pub fn bytes(&self) -> u64 {
        let tables = self.letters.len() + self.memories.len();
        (300 * tables + 120 * self.moves.len() + 60 * self.returns.len()) as u64
    }

    /// Whether others may run, and a thread waits, with this letter on top.
    pub fn waits(&mut self, letter: u32) -> Result<bool, Refusal> {
        if let Some(&known) = self.waits.get(&letter) {
            return Ok(known);
        }
        let body = self.letters.get(letter).body();
        let waits = body.depth == 0 && self.passing(&body)?.is_none();
        self.waits.insert(letter, waits);
        Ok(waits)
    }

    /// The steps of a thread that passes. Where it may call or return it waits here, so that passing concerns
    /// only the top frame.
    fn passing(&self, body: &Body) -> Result<Option<Vec<Body>>, Refusal> {
        let leaves = |instr: &Instr| matches!(instr, Instr::Call { .. } | Instr::Return(_));
        if self.alone.instructions(body.thread.top()).any(leaves) {
            Ok(None)
        } else {
            self.alone.passing(body)
        }
    }

    /// The letters of a newly started thread at the points where it first waits.
    pub fn starts(&mut self, role: RoleId) -> Result<Vec<u32>, Refusal> {
        let mut letters = Vec::new();
        for mut body in self.alone.settled(self.alone.start(role), |body| self.passing(body))? {
            let frame = body.thread.frames.remove(0);
            letters.push(self.letters.id(Letter { frame, inherited: false, opened: 0 }));
        }
        Ok(letters)
    }

    fn moves(&mut self, memory: u32, letter: u32) -> Result<Moves, Refusal> {
        if let Some(known) = self.moves.get(&(memory, letter)) {
            return Ok(known.clone());
        }
        let (before, contents) = (Rc::clone(self.letters.get(letter)), Rc::clone(self.memories.get(memory)));
        let is_return = |instr: &Instr| matches!(instr, Instr::Return(_));
        let mut rules = Vec::new();
        for does in self.alone.steps(&before.body(), &contents, |instr| !is_return(instr))? {
            let Does::Goes { memory, body, child } = does else { return Err(Refusal::BadReached) };
            let Some(opened) = body.depth.checked_sub(before.inherited.into()) else {
                return unfit("a procedure closes a section of its caller");
            };
            let mut frames = body.thread.frames.into_iter();
            let Some(frame) = frames.next() else { return unfit("a thread without frames") };
            let stays = self.letters.id(Letter { frame, inherited: before.inherited, opened });
            let callee = frames.next().map(|frame| Letter { frame, inherited: body.depth > 0, opened: 0 });
            let (top, below) = match callee {
                Some(callee) => (self.letters.id(callee), Some(stays)),
                None => (stays, None),
            };
            rules.push(Rule { memory: self.memories.id(memory), child, top, below });
        }
        let moves =
            Moves { rules: rules.into(), returns: self.alone.instructions(&before.frame).any(is_return) };
        if moves.returns && before.opened > 0 {
            return unfit("a section is left open");
        }
        self.moves.insert((memory, letter), moves.clone());
        Ok(moves)
    }

    /// The letters that the second one can become when the first returns to it.
    fn returned(&mut self, callee: u32, caller: u32) -> Result<Rc<[u32]>, Refusal> {
        if let Some(known) = self.returns.get(&(callee, caller)) {
            return Ok(Rc::clone(known));
        }
        let (top, below) = (Rc::clone(self.letters.get(callee)), Rc::clone(self.letters.get(caller)));
        let body = Body { thread: thread(vec![below.frame.clone(), top.frame.clone()]), depth: 0 };
        // Returns do not look at memory.
        let memory = vec![0; self.alone.system().cells.len()];
        let mut found = Vec::new();
        for does in self.alone.steps(&body, &memory, |instr| matches!(instr, Instr::Return(_)))? {
            let Does::Goes { mut body, .. } = does else { return Err(Refusal::BadReached) };
            let frame = body.thread.frames.remove(0);
            found.push(self.letters.id(Letter { frame, ..(*below).clone() }));
        }
        let found: Rc<[u32]> = found.into();
        self.returns.insert((callee, caller), Rc::clone(&found));
        Ok(found)
    }
}

/// Memory, and the threads that were started.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Control {
    pub memory: u32,
    pub started: Rc<[RoleId]>,
}

/// A saturated automaton.
pub(super) struct Saturated {
    /// The edges of each state.
    pub rows: Vec<Row>,
    /// Controls and their states.
    pub controls: Vec<(Control, u32)>,
}

struct Builder<'r, 'a> {
    rules: &'r mut Rules<'a>,
    done: Saturated,
    known: FxHashSet<(u32, u32, u32)>,
    open: Vec<(u32, u32, u32)>,
    state_of: FxHashMap<Control, u32>,
    control_of: FxHashMap<u32, usize>,
    entries: FxHashMap<(u32, u32), u32>,
    /// By the state below: the state of the control, and the letter that returns.
    returning: FxHashMap<u32, Vec<(u32, u32)>>,
    most_started: usize,
}

/// Saturates the automaton of some stacks with a memory. No thread may start more than this many others.
pub(super) fn saturate(
    rules: &mut Rules<'_>,
    stacks: &[Row],
    memory: u32,
    most_started: usize,
    watch: &Watch<'_>,
) -> Result<Saturated, Refusal> {
    let mut builder = Builder {
        rules,
        done: Saturated { rows: vec![Row::new(); stacks.len()], controls: Vec::new() },
        known: FxHashSet::default(),
        open: Vec::new(),
        state_of: FxHashMap::default(),
        control_of: FxHashMap::default(),
        entries: FxHashMap::default(),
        returning: FxHashMap::default(),
        most_started,
    };
    let start = builder.control(Control { memory, started: [].into() });
    for (state, row) in stacks.iter().enumerate() {
        for &(letter, to) in row {
            builder.add(state as u32, letter, to);
            if state == 0 {
                builder.add(start, letter, to);
            }
        }
    }
    let mut edges = 0u64;
    while let Some((from, letter, to)) = builder.open.pop() {
        edges += 1;
        if edges.is_multiple_of(4096) {
            watch.look(builder.rules.bytes() + 60 * builder.known.len() as u64)?;
        }
        for (control, callee) in builder.returning.get(&from).cloned().unwrap_or_default() {
            builder.uncover(control, callee, letter, to)?;
        }
        if let Some(&control) = builder.control_of.get(&from) {
            builder.apply(control, letter, to)?;
        }
    }
    Ok(builder.done)
}

impl Builder<'_, '_> {
    fn state(&mut self) -> u32 {
        self.done.rows.push(Row::new());
        self.done.rows.len() as u32 - 1
    }

    fn control(&mut self, control: Control) -> u32 {
        if let Some(&state) = self.state_of.get(&control) {
            return state;
        }
        let state = self.state();
        self.state_of.insert(control.clone(), state);
        self.control_of.insert(state, self.done.controls.len());
        self.done.controls.push((control, state));
        state
    }

    fn add(&mut self, from: u32, letter: u32, to: u32) {
        if self.known.insert((from, letter, to)) {
            self.done.rows[from as usize].push((letter, to));
            self.open.push((from, letter, to));
        }
    }

    /// Applies all rules for the letter of an edge.
    fn apply(&mut self, number: usize, letter: u32, to: u32) -> Result<(), Refusal> {
        let (control, from) = self.done.controls[number].clone();
        let moves = self.rules.moves(control.memory, letter)?;
        for rule in moves.rules.iter() {
            let mut next = Control { memory: rule.memory, ..control.clone() };
            if let Some(role) = rule.child {
                next.started = next.started.iter().copied().chain([role]).collect();
                if next.started.len() > self.most_started {
                    return Err(Refusal::NotInductive(
                        "more threads are started than the proof names".into(),
                    ));
                }
            }
            let control = self.control(next);
            match rule.below {
                None => self.add(control, rule.top, to),
                Some(below) => {
                    let entry = match self.entries.get(&(control, rule.top)) {
                        Some(&entry) => entry,
                        None => {
                            let entry = self.state();
                            self.entries.insert((control, rule.top), entry);
                            entry
                        }
                    };
                    self.add(control, rule.top, entry);
                    self.add(entry, below, to);
                }
            }
        }
        if moves.returns {
            if to == END {
                return unfit("a procedure without a caller");
            }
            self.returning.entry(to).or_default().push((from, letter));
            for (below, to) in self.done.rows[to as usize].clone() {
                self.uncover(from, letter, below, to)?;
            }
        }
        Ok(())
    }

    /// Handles a letter that returns to the one below, which is read to a state.
    fn uncover(&mut self, control: u32, callee: u32, below: u32, to: u32) -> Result<(), Refusal> {
        for &after in self.rules.returned(callee, below)?.iter() {
            self.add(control, after, to);
        }
        Ok(())
    }
}
