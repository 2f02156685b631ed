//! Threads as pushdown systems: what a thread does with the top of its stack.
//!
//! *Problem.* A thread with procedures is a pushdown system. Its *control* is memory, which all frames share.
//! Its stack holds frames. A rule looks at the control and at the top frame, changes the control, and
//! replaces the top frame by no frame (a return), one frame, or two frames (a call).
//!
//! *Guarantee.* The rules are those of the trusted machine. Each rule is a step that [`ThreadMachine`] takes
//! with the top frame alone, or with the two topmost frames for a return.
//!
//! *How the machine's state is taken apart*
//! 1. A return passes a value from one frame to the one below. A rule that sees only one frame cannot do
//!    this, so a return takes two rules. The first pops the frame and keeps it in the control
//!    ([`Control::returning`]). The second takes the machine's step with the frame below. Registers that are
//!    never read again count as 0, so little more than the value is kept.
//! 2. Atomic sections nest across calls, so their depth may grow with the stack. Each frame knows how many
//!    sections it has opened itself, and whether some frame below has one open ([`Symbol`]). Together these
//!    determine, with finitely many symbols, whether a section is open.
//! 3. Threads that are started while the thread runs are listed in the control, in order. Their number may
//!    have no bound, so the length of the list is limited.

use palisade_automata::{After, Hold, Local, StepKind, ThreadMachine, most_varied_register};
use palisade_base::{Id, Interner, define_id, limits};
use palisade_memory::{Action, Frame, Machine, Thread};
use palisade_program::Value;
use palisade_program::running::{CellId, EdgeId, Instr, Liveness, RoleId, System};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::Arc;

define_id!(
    /// Contents of memory.
    MemoryId
);
define_id!(
    /// A letter of stacks.
    SymbolId
);
define_id!(
    /// A control state.
    ControlId
);

/// A frame on a stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Symbol {
    pub frame: Frame,
    /// Whether a frame below has an atomic section open.
    pub inherited: bool,
    /// How many sections this frame has open.
    pub opened: u32,
}

impl Symbol {
    fn depth(&self) -> u32 {
        u32::from(self.inherited) + self.opened
    }

    /// Whether an atomic section is open when this frame is on top.
    pub fn holds(&self) -> bool {
        self.depth() > 0
    }
}

/// The part of a thread's state that all its frames share.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Control {
    pub memory: MemoryId,
    /// The threads started since the context began.
    pub started: Rc<[RoleId]>,
    /// A frame popped by a return whose second half has not been taken yet.
    pub returning: Option<(SymbolId, Action)>,
}

/// A rule for a given control and symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// The machine step that begins with this rule. `None` for the second half of a return.
    pub action: Option<Action>,
    pub then: Then,
}

/// The effect of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// The thread runs into an error of the program.
    Fault,
    /// The top frame is replaced.
    Stay(ControlId, SymbolId),
    /// A procedure is entered.
    Push { control: ControlId, callee: SymbolId, caller: SymbolId },
    /// The top frame is removed.
    Pop(ControlId),
}

/// A possible step of the thread with a symbol on top.
#[derive(Clone, Copy, Debug)]
struct Move {
    action: Action,
    kind: MoveKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MoveKind {
    /// Neither reads memory nor returns.
    Plain,
    Reads(CellId),
    Returns,
}

/// The result of a move that does not return.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Blocked,
    Fault,
    Done { top: SymbolId, caller: Option<SymbolId>, write: Option<(CellId, Value)>, child: Option<RoleId> },
}

/// The result of a return.
#[derive(Clone, Copy, Debug)]
enum Returned {
    Blocked,
    Fault,
    To(SymbolId),
}

/// Why the rules cannot be written down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Growing {
    pub name: String,
    pub values: usize,
}

impl Growing {
    /// The register with the most values in these frames.
    pub fn of_registers<'f>(system: &System, frames: impl Iterator<Item = &'f Frame>) -> Growing {
        let most = most_varied_register(frames);
        let (code, register, values) = most.expect("frames differ in a register");
        Growing { name: system.codes[code].registers[register].name.clone(), values }
    }
}

/// More symbols or contents of memory than this count as growth without bound.
const MAX_DISTINCT: usize = 1 << 21;

/// The rules of all threads, generated on demand.
pub(crate) struct Rules<'a> {
    machine: ThreadMachine<'a>,
    symbols: Interner<SymbolId, Symbol>,
    memories: Interner<MemoryId, Vec<Value>>,
    controls: Interner<ControlId, Control>,
    moves: Vec<Option<Rc<[Move]>>>,
    outcomes: FxHashMap<(SymbolId, Action, Value), Outcome>,
    returns: FxHashMap<(SymbolId, SymbolId, Action), Returned>,
    /// How many threads a thread may start in one context.
    pub most_started: usize,
    /// Whether a thread wanted to start more.
    pub too_many_started: bool,
}

/// Steps of frames do not depend on the role they run for.
const ANY_ROLE: RoleId = RoleId(0);

impl<'a> Rules<'a> {
    /// The rules of a program under SC.
    pub fn new(machine: Machine<'a>, liveness: Arc<Liveness>, most_started: usize) -> Rules<'a> {
        Rules {
            machine: ThreadMachine::new(machine, liveness, usize::MAX, false),
            symbols: Interner::new(),
            memories: Interner::new(),
            controls: Interner::new(),
            moves: Vec::new(),
            outcomes: FxHashMap::default(),
            returns: FxHashMap::default(),
            most_started,
            too_many_started: false,
        }
    }

    /// The machine that defines the steps.
    pub fn machine(&self) -> Machine<'a> {
        self.machine.machine
    }

    /// The program.
    pub fn system(&self) -> &'a System {
        self.machine.machine.system
    }

    /// The symbol of a process body at its start.
    pub fn start(&mut self, role: RoleId) -> SymbolId {
        let mut local = self.machine.start(role);
        let frame = local.thread.frames.pop().expect("a thread has a frame");
        self.symbols.id(Symbol { frame, inherited: false, opened: 0 })
    }

    /// Contents of memory by number.
    pub fn memory_id(&mut self, memory: Vec<Value>) -> MemoryId {
        self.memories.id(memory)
    }

    /// Contents of memory.
    pub fn memory(&self, id: MemoryId) -> &Rc<Vec<Value>> {
        self.memories.get(id)
    }

    /// A control state by number.
    pub fn control_id(&mut self, control: Control) -> ControlId {
        self.controls.id(control)
    }

    /// A control state.
    pub fn control(&self, id: ControlId) -> &Rc<Control> {
        self.controls.get(id)
    }

    /// A frame.
    pub fn symbol(&self, id: SymbolId) -> &Rc<Symbol> {
        self.symbols.get(id)
    }

    /// How many frames and contents of memory there are.
    pub fn counts(&self) -> (usize, usize) {
        (self.symbols.len(), self.memories.len())
    }

    /// Roughly how much memory the tables take.
    pub fn bytes(&self) -> u64 {
        let registers = self.symbols.iter().next().map_or(8, |symbol| 8 * symbol.frame.registers.len());
        let symbols = self.symbols.len() * (200 + registers);
        let memories = self.memories.len() * (100 + 8 * self.system().cells.len());
        let steps = (self.outcomes.len() + self.returns.len()) * 96 + self.controls.len() * 160;
        (symbols + memories + steps) as u64
    }

    /// Whether the values of some variable seem to grow without bound.
    pub fn check_growth(&self) -> Result<(), Growing> {
        if self.memories.len() > MAX_DISTINCT {
            let cells = self.system().cells.ids();
            let values = |cell: CellId| {
                self.memories.iter().map(|memory| memory[cell.index()]).collect::<FxHashSet<_>>().len()
            };
            let (values, cell) =
                cells.map(|cell| (values(cell), cell)).max().expect("memory differs in a cell");
            return Err(Growing { name: self.system().cells[cell].name.clone(), values });
        }
        if self.symbols.len() > MAX_DISTINCT {
            let frames = self.symbols.iter().map(|symbol| &symbol.frame);
            return Err(Growing::of_registers(self.system(), frames));
        }
        Ok(())
    }

    /// The instruction of an edge of the symbol's code.
    fn instr(&self, symbol: SymbolId, edge: EdgeId) -> &'a Instr {
        &self.system().codes[self.symbols.get(symbol).frame.code].edges()[edge].instr
    }

    /// The thread state with a stack of these frames, bottom first.
    fn local(&self, stack: &[SymbolId]) -> Local {
        let top = self.symbols.get(*stack.last().expect("a thread has a frame"));
        let hold = match top.depth() {
            0 => Hold::Outside,
            depth => Hold::Entered(depth),
        };
        let frames = stack.iter().map(|&symbol| self.symbols.get(symbol).frame.clone()).collect();
        Local {
            thread: Thread { role: ANY_ROLE, frames, buffer: Vec::new() },
            hold,
            fault: None,
            passed: Vec::new(),
        }
    }

    fn moves(&mut self, symbol: SymbolId) -> Rc<[Move]> {
        if self.moves.len() <= symbol.index() {
            self.moves.resize(symbol.index() + 1, None);
        }
        if let Some(moves) = &self.moves[symbol.index()] {
            return Rc::clone(moves);
        }
        let local = self.local(&[symbol]);
        let mut moves = Vec::new();
        for edge in self.machine.edges(&local) {
            limits::checkpoint();
            let kind = match (self.instr(symbol, edge), self.machine.kind(&local, edge)) {
                (Instr::Return(_), _) => MoveKind::Returns,
                (_, StepKind::Reads(cell)) => MoveKind::Reads(cell),
                _ => MoveKind::Plain,
            };
            moves.extend(self.machine.actions(&local, edge).map(|action| Move { action, kind }));
        }
        let moves: Rc<[Move]> = moves.into();
        self.moves[symbol.index()] = Some(Rc::clone(&moves));
        moves
    }

    /// Takes a move that does not return. `value` is the value of the cell it reads.
    fn outcome(&mut self, symbol: SymbolId, mv: Move, value: Value) -> Outcome {
        let key = (symbol, mv.action, value);
        if let Some(&known) = self.outcomes.get(&key) {
            return known;
        }
        let read = match mv.kind {
            MoveKind::Reads(cell) => Some((cell, value)),
            MoveKind::Plain | MoveKind::Returns => None,
        };
        let outcome = match self.machine.step(&self.local(&[symbol]), mv.action, read) {
            None => Outcome::Blocked,
            Some(After { local, .. }) if local.fault.is_some() => Outcome::Fault,
            Some(After { local, write, child }) => {
                let before = Rc::clone(self.symbols.get(symbol));
                let depth = match local.hold {
                    Hold::Outside => 0,
                    Hold::Armed(depth) | Hold::Entered(depth) => depth,
                };
                let mut frames = local.thread.frames.into_iter();
                let frame = frames.next().expect("only returns take a frame away");
                let opened = depth - u32::from(before.inherited);
                let stays = self.symbols.id(Symbol { frame, inherited: before.inherited, opened });
                let child = child.map(|child| child.thread.role);
                match frames.next() {
                    None => Outcome::Done { top: stays, caller: None, write, child },
                    Some(frame) => {
                        let callee = self.symbols.id(Symbol { frame, inherited: depth > 0, opened: 0 });
                        Outcome::Done { top: callee, caller: Some(stays), write, child }
                    }
                }
            }
        };
        self.outcomes.insert(key, outcome);
        outcome
    }

    /// Takes a return from the first frame to the second.
    fn returned(&mut self, callee: SymbolId, action: Action, caller: SymbolId) -> Returned {
        let key = (callee, caller, action);
        if let Some(&known) = self.returns.get(&key) {
            return known;
        }
        debug_assert_eq!(self.symbols.get(callee).opened, 0, "sections are closed before a return");
        let returned = match self.machine.step(&self.local(&[caller, callee]), action, None) {
            None => Returned::Blocked,
            Some(After { local, .. }) if local.fault.is_some() => Returned::Fault,
            Some(After { mut local, .. }) => {
                let before = Rc::clone(self.symbols.get(caller));
                let frame = local.thread.frames.pop().expect("the caller's frame stays");
                Returned::To(self.symbols.id(Symbol { frame, ..(*before).clone() }))
            }
        };
        self.returns.insert(key, returned);
        returned
    }

    /// All rules for a control and a symbol, in a fixed order.
    pub fn rules(&mut self, control: ControlId, symbol: SymbolId) -> Vec<Rule> {
        let at = Rc::clone(self.controls.get(control));
        if let Some((callee, action)) = at.returning {
            let then = match self.returned(callee, action, symbol) {
                Returned::Blocked => return Vec::new(),
                Returned::Fault => Then::Fault,
                Returned::To(to) => {
                    Then::Stay(self.controls.id(Control { returning: None, ..(*at).clone() }), to)
                }
            };
            return vec![Rule { action: None, then }];
        }
        let memory = Rc::clone(self.memories.get(at.memory));
        let mut rules = Vec::new();
        for mv in self.moves(symbol).iter().copied() {
            let value = match mv.kind {
                MoveKind::Returns => {
                    let returning = Some((symbol, mv.action));
                    let popped = self.controls.id(Control { returning, ..(*at).clone() });
                    rules.push(Rule { action: Some(mv.action), then: Then::Pop(popped) });
                    continue;
                }
                MoveKind::Reads(cell) => memory[cell.index()],
                MoveKind::Plain => 0,
            };
            let then = match self.outcome(symbol, mv, value) {
                Outcome::Blocked => continue,
                Outcome::Fault => Then::Fault,
                Outcome::Done { top, caller, write, child } => {
                    let Some(control) = self.after(control, &at, write, child) else { continue };
                    match caller {
                        None => Then::Stay(control, top),
                        Some(caller) => Then::Push { control, callee: top, caller },
                    }
                }
            };
            rules.push(Rule { action: Some(mv.action), then });
        }
        rules
    }

    /// The control after a store and the start of a thread. `None` if that is one thread too many.
    fn after(
        &mut self,
        id: ControlId,
        at: &Control,
        write: Option<(CellId, Value)>,
        child: Option<RoleId>,
    ) -> Option<ControlId> {
        if write.is_none() && child.is_none() {
            return Some(id);
        }
        let mut next = at.clone();
        if let Some((cell, value)) = write {
            let mut memory = self.memories.get(at.memory).to_vec();
            memory[cell.index()] = value;
            next.memory = self.memories.id(memory);
        }
        if let Some(role) = child {
            if at.started.len() >= self.most_started {
                self.too_many_started = true;
                return None;
            }
            next.started = at.started.iter().copied().chain([role]).collect();
        }
        Some(self.controls.id(next))
    }

    /// Where the local steps lead with a symbol on top, if it can take only local steps. `None` if it may
    /// access memory, start a thread, open a section, call, or return.
    pub fn local_steps(&mut self, symbol: SymbolId) -> Option<Vec<SymbolId>> {
        let mut reached = Vec::new();
        let local = self.local(&[symbol]);
        for mv in self.moves(symbol).iter().copied() {
            let Action::Execute { edge, .. } = mv.action else { return None };
            let instr = self.instr(symbol, edge);
            if mv.kind != MoveKind::Plain
                || self.machine.kind(&local, edge) != StepKind::Local
                || matches!(instr, Instr::Call { .. } | Instr::AtomicBegin | Instr::AtomicEnd)
            {
                return None;
            }
            match self.outcome(symbol, mv, 0) {
                Outcome::Blocked => {}
                Outcome::Done { top, caller: None, write: None, child: None } => reached.push(top),
                Outcome::Fault | Outcome::Done { .. } => return None,
            }
        }
        Some(reached)
    }
}
