//! What one step does.

use crate::{Fault, Frame, Interlocked, Machine, Model, Pending, Section, State, Thread};
use palisade_base::Id;
use palisade_program::Value;
use palisade_program::running::{
    Address, BinaryOp, CellId, Check, CodeId, Edge, EdgeId, Instr, Outside, RegId, Rmw, ThreadId, Type,
    binary,
};
use std::fmt;
use std::sync::Arc;

/// A step of the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Step {
    /// The thread whose instruction runs, or whose buffer is updated.
    pub thread: ThreadId,
    /// What happens.
    pub action: Action,
}

/// What happens in a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// The thread takes an edge of its top frame's code.
    Execute {
        /// Which edge.
        edge: EdgeId,
        /// The value chosen, for `Havoc`.
        choice: Option<Value>,
    },
    /// A pending store of the thread reaches memory.
    Update {
        /// Its position in the buffer, oldest first: 0 under TSO.
        position: usize,
    },
}

/// What a step did to memory and buffers, for observers such as traces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// No access to memory.
    Local,
    /// A load from memory.
    ReadMemory(CellId, Value),
    /// A load that returned a pending store of its own thread.
    ReadBuffer(CellId, Value),
    /// A store into the buffer.
    Buffered(CellId, Value),
    /// A store straight to memory: under SC, or in an atomic section.
    Wrote(CellId, Value),
    /// A pending store reached memory.
    Updated(CellId, Value),
    /// A locked instruction read a value and, unless it was a failed cas, wrote one.
    Locked {
        /// The cell.
        cell: CellId,
        /// The value before.
        read: Value,
        /// The value written.
        wrote: Option<Value>,
    },
    /// A full fence was passed.
    Fenced,
    /// A store-store fence was passed.
    StoreFenced,
    /// A thread was started.
    Spawned(ThreadId),
    /// The step caused a run-time error.
    Faulted(Fault),
}

/// Why a step is not possible.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The state has no such thread.
    NoSuchThread,
    /// The thread is not at the start of that edge.
    WrongLocation,
    /// `Havoc` needs a choice inside its range. Other instructions take no choice.
    WrongChoice,
    /// The run has ended with a fault.
    AfterFault,
    /// Another thread's atomic section is open.
    SectionOpen,
    /// A fence, locked instruction or atomic section waits for pending stores.
    BufferNotEmpty,
    /// The assumption is false.
    AssumptionFalse,
    /// The value is outside a blocking domain.
    Blocked,
    /// There is no such pending store, or an older buffer entry must reach memory first.
    NotUpdatable,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NoSuchThread => "there is no such process",
            Refusal::WrongLocation => "the process is not at this instruction",
            Refusal::WrongChoice => "the chosen value does not fit the instruction",
            Refusal::AfterFault => "the run has already ended with an error",
            Refusal::SectionOpen => "another process is inside an atomic section",
            Refusal::BufferNotEmpty => "the store buffer must be empty first",
            Refusal::AssumptionFalse => "the condition is false",
            Refusal::Blocked => "the value is outside the domain, which blocks the process",
            Refusal::NotUpdatable => "no such pending store can reach memory now",
        })
    }
}

/// A possible step and where it leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Successor {
    /// The step.
    pub step: Step,
    /// What it does.
    pub effect: Effect,
    /// Where it leads.
    pub state: State,
}

/// Why an instruction does not complete: it is not possible, or it causes a fault.
enum Stop {
    Refused(Refusal),
    Faulted(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Faulted(fault)
    }
}

impl Machine<'_> {
    /// All possible steps, in a fixed order: by thread, updates first.
    pub fn successors(&self, state: &State) -> Vec<Successor> {
        let mut found = Vec::new();
        for (thread, t) in state.threads.iter_enumerated() {
            let mut offer = |action| {
                let step = Step { thread, action };
                if let Ok((state, effect)) = self.step(state, step) {
                    found.push(Successor { step, effect, state });
                }
            };
            (0..t.buffer.len()).for_each(|position| offer(Action::Update { position }));
            let code = &self.system.codes[t.top().code];
            for edge in code.edges_from(t.top().location).map(EdgeId) {
                match code.edges()[edge].instr {
                    Instr::Havoc(_, lo, hi) => {
                        (lo..=hi).for_each(|value| offer(Action::Execute { edge, choice: Some(value) }));
                    }
                    _ => offer(Action::Execute { edge, choice: None }),
                }
            }
        }
        found
    }

    /// Takes a step.
    pub fn step(&self, state: &State, step: Step) -> Result<(State, Effect), Refusal> {
        let thread = state.threads.get(step.thread).ok_or(Refusal::NoSuchThread)?;
        if state.fault.is_some() {
            return Err(Refusal::AfterFault);
        }
        if state.section.is_some_and(|section| section.holder != step.thread) {
            return Err(Refusal::SectionOpen);
        }
        match step.action {
            Action::Update { position } => self.update(state, step.thread, position),
            Action::Execute { edge, choice } => {
                let code = &self.system.codes[thread.top().code];
                let edge = code.edges().get(edge).ok_or(Refusal::WrongLocation)?;
                if edge.source != thread.top().location {
                    return Err(Refusal::WrongLocation);
                }
                let fits = match edge.instr {
                    Instr::Havoc(_, lo, hi) => choice.is_some_and(|value| lo <= value && value <= hi),
                    _ => choice.is_none(),
                };
                if !fits {
                    return Err(Refusal::WrongChoice);
                }
                match self.execute(state, step.thread, edge, choice) {
                    Ok(taken) => Ok(taken),
                    Err(Stop::Refused(refusal)) => Err(refusal),
                    Err(Stop::Faulted(fault)) => {
                        let faulted = State { fault: Some((step.thread, fault)), ..state.clone() };
                        Ok((faulted, Effect::Faulted(fault)))
                    }
                }
            }
        }
    }

    /// A pending store reaches memory.
    fn update(&self, before: &State, id: ThreadId, position: usize) -> Result<(State, Effect), Refusal> {
        let buffer = &before.threads[id].buffer;
        let Some(&Pending::Store(cell, value)) = buffer.get(position) else {
            return Err(Refusal::NotUpdatable);
        };
        let in_its_way = |entry: &Pending| match (self.model, entry) {
            (Model::Pso, Pending::Store(older, _)) => *older == cell,
            _ => true,
        };
        if buffer[..position].iter().any(in_its_way) {
            return Err(Refusal::NotUpdatable);
        }
        let mut next = before.clone();
        let buffer = &mut Arc::make_mut(&mut next.threads[id]).buffer;
        buffer.remove(position);
        while buffer.first() == Some(&Pending::Barrier) {
            buffer.remove(0);
        }
        next.memory[cell] = value;
        Ok((next, Effect::Updated(cell, value)))
    }

    /// The thread takes an edge. What the instruction reads is worked out first, so that a state is only made for
    /// a step that is possible.
    fn execute(
        &self,
        before: &State,
        id: ThreadId,
        edge: &Edge,
        choice: Option<Value>,
    ) -> Result<(State, Effect), Stop> {
        let system = self.system;
        let thread = &*before.threads[id];
        let top = thread.top();
        let old = &top.registers;
        // The value as one of the register's.
        let fit_in = |frame: &Frame, register: RegId, value: Value| {
            fit(system.codes[frame.code].registers[register].ty, value)
        };
        // The next state, apart from what the instruction changes.
        let moved = || {
            let mut next = before.clone();
            running(&mut next, id).location = edge.target;
            next
        };
        let with_register = |register: RegId, value: Value| {
            let mut next = moved();
            running(&mut next, id).registers[register.index()] = value;
            next
        };
        match &edge.instr {
            Instr::Nop => Ok((moved(), Effect::Local)),
            Instr::Assign(register, value) => {
                let value = fit_in(top, *register, value.eval(old)?)?;
                Ok((with_register(*register, value), Effect::Local))
            }
            Instr::Havoc(register, _, _) => {
                let choice = choice.expect("the caller checked that there is a choice");
                let value = fit_in(top, *register, choice)?;
                Ok((with_register(*register, value), Effect::Local))
            }
            Instr::Assume(condition) => match condition.eval(old)? {
                0 => Err(Stop::Refused(Refusal::AssumptionFalse)),
                _ => Ok((moved(), Effect::Local)),
            },
            Instr::Assert(condition, check) => match condition.eval(old)? {
                0 if *check == Check::Assertion => Err(Stop::Faulted(Fault::AssertionFailed)),
                0 => Err(Stop::Faulted(Fault::CheckFailed(*check))),
                _ => Ok((moved(), Effect::Local)),
            },
            Instr::Load(register, address) => {
                let cell = self.resolve(address, old)?;
                let (value, effect) = match thread.newest_pending(cell) {
                    Some(value) => (value, Effect::ReadBuffer(cell, value)),
                    None => (before.memory[cell], Effect::ReadMemory(cell, before.memory[cell])),
                };
                let value = fit_in(top, *register, value)?;
                Ok((with_register(*register, value), effect))
            }
            Instr::Store(address, value) => {
                let value = value.eval(old)?;
                let cell = self.resolve(address, old)?;
                let value = fit(system.cells[cell].ty, value)?;
                let mut next = moved();
                if self.model == Model::Sc || before.section.is_some() {
                    next.memory[cell] = value;
                    Ok((next, Effect::Wrote(cell, value)))
                } else {
                    Arc::make_mut(&mut next.threads[id]).buffer.push(Pending::Store(cell, value));
                    Ok((next, Effect::Buffered(cell, value)))
                }
            }
            Instr::Fence => {
                drained(thread)?;
                Ok((moved(), Effect::Fenced))
            }
            Instr::StoreFence => {
                let mut next = moved();
                if self.model == Model::Pso && thread.buffer.last().is_some_and(|e| *e != Pending::Barrier) {
                    Arc::make_mut(&mut next.threads[id]).buffer.push(Pending::Barrier);
                }
                Ok((next, Effect::StoreFenced))
            }
            Instr::Locked { rmw, result, address, operands } => {
                let operands =
                    operands.iter().map(|operand| operand.eval(old)).collect::<Result<Vec<_>, _>>()?;
                let cell = self.resolve(address, old)?;
                match (self.model, self.interlocked) {
                    (Model::Pso, Interlocked::OwnAddress) => {
                        if !thread.may_lock_alone(cell) {
                            return Err(Stop::Refused(Refusal::BufferNotEmpty));
                        }
                    }
                    _ => drained(thread)?,
                }
                let (read, ty) = (before.memory[cell], system.cells[cell].ty);
                let (wrote, answer) = read_modify_write(*rmw, ty, read, &operands)?;
                let answer = fit_in(top, *result, answer)?;
                let wrote = wrote.map(|value| fit(ty, value)).transpose()?;
                let mut next = with_register(*result, answer);
                if let Some(value) = wrote {
                    next.memory[cell] = value;
                }
                Ok((next, Effect::Locked { cell, read, wrote }))
            }
            Instr::AtomicBegin => {
                drained(thread)?;
                let depth = before.section.map_or(0, |section| section.depth);
                let section = Some(Section { holder: id, depth: depth + 1 });
                Ok((State { section, ..moved() }, Effect::Local))
            }
            Instr::AtomicEnd => {
                let depth = before.section.expect("invariant 6: atomic sections nest properly").depth;
                let section = (depth > 1).then_some(Section { holder: id, depth: depth - 1 });
                Ok((State { section, ..moved() }, Effect::Local))
            }
            Instr::Call { code, args, result } => {
                let args = self.arguments(*code, args, old)?;
                let mut frame = Frame::enter(system, *code, &args, *result);
                let mut next = moved();
                let (own, handed_on) = (&mut running(&mut next, id).registers, &mut frame.registers);
                own[..system.privates].swap_with_slice(&mut handed_on[..system.privates]);
                Arc::make_mut(&mut next.threads[id]).frames.push(frame);
                Ok((next, Effect::Local))
            }
            Instr::Return(value) => {
                let value = value.as_ref().map_or(Ok(0), |value| value.eval(old))?;
                let value = system.codes[top.code].result.map_or(Ok(value), |ty| fit(ty, value))?;
                let caller = thread.frames.iter().nth_back(1).expect("only procedures return");
                let received = match top.result {
                    Some(register) => Some((register, fit_in(caller, register, value)?)),
                    None => None,
                };
                // The callee's frame goes, so it need not be moved to the end of the edge.
                let mut next = before.clone();
                Arc::make_mut(&mut next.threads[id]).frames.pop();
                let registers = &mut running(&mut next, id).registers;
                registers[..system.privates].copy_from_slice(&old[..system.privates]);
                if let Some((register, value)) = received {
                    registers[register.index()] = value;
                }
                Ok((next, Effect::Local))
            }
            Instr::Spawn(template, args) => {
                let args = args.iter().map(|arg| arg.eval(old)).collect::<Result<Vec<_>, _>>()?;
                let role = system
                    .role(*template, &args)
                    .ok_or_else(|| Fault::OutOfDomain(args.first().copied().unwrap_or(0)))?;
                let mut next = moved();
                let started = next.threads.push(Arc::new(Thread::start(system, role)));
                Ok((next, Effect::Spawned(started)))
            }
        }
    }

    /// The cell that an address refers to, given the register values.
    pub fn resolve(&self, address: &Address, registers: &[Value]) -> Result<CellId, Fault> {
        address.resolve(&self.system.addresses, registers)
    }

    fn arguments(
        &self,
        code: CodeId,
        args: &[palisade_program::running::Expr],
        registers: &[Value],
    ) -> Result<Vec<Value>, Stop> {
        let params = self.system.codes[code].registers.iter().skip(self.system.privates);
        args.iter().zip(params).map(|(arg, param)| fit(param.ty, arg.eval(registers)?)).collect()
    }
}

/// The value that a locked instruction writes (`None` for a failed cas) and the value it returns. In a cell
/// whose type wraps, arithmetic wraps, and `cas` compares what the operand becomes in the cell.
fn read_modify_write(
    rmw: Rmw,
    ty: Type,
    read: Value,
    operands: &[Value],
) -> Result<(Option<Value>, Value), Fault> {
    let with = |op| Ok((Some(binary(op, read, operands[0])?), read));
    let (left, right) = (i128::from(read), i128::from(operands[0]));
    match rmw {
        Rmw::FetchAdd | Rmw::FetchSub if ty.outside == Outside::Wrap => {
            let exact = if rmw == Rmw::FetchAdd { left + right } else { left - right };
            Ok((ty.wrapped(exact), read))
        }
        Rmw::Cas if read == ty.wrapped(right).unwrap_or(operands[0]) => Ok((Some(operands[1]), 1)),
        Rmw::Cas => Ok((None, 0)),
        Rmw::Exchange => Ok((Some(operands[0]), read)),
        Rmw::FetchAdd => with(BinaryOp::Add),
        Rmw::FetchSub => with(BinaryOp::Sub),
        Rmw::FetchAnd => with(BinaryOp::BitAnd),
        Rmw::FetchOr => with(BinaryOp::BitOr),
        Rmw::FetchXor => with(BinaryOp::BitXor),
    }
}

/// The frame of a thread that is running.
fn running(state: &mut State, id: ThreadId) -> &mut Frame {
    let frames = &mut Arc::make_mut(&mut state.threads[id]).frames;
    frames.last_mut().expect("a thread always has the frame of its process body")
}

fn drained(thread: &Thread) -> Result<(), Stop> {
    if thread.buffer.is_empty() { Ok(()) } else { Err(Stop::Refused(Refusal::BufferNotEmpty)) }
}

/// The value as a value of the type's domain, if it is one or wraps to one.
fn fit(ty: Type, value: Value) -> Result<Value, Stop> {
    match ty.outside {
        _ if ty.domain.contains(value) => Ok(value),
        Outside::Fault => Err(Stop::Faulted(Fault::OutOfDomain(value))),
        Outside::Block => Err(Stop::Refused(Refusal::Blocked)),
        Outside::Wrap => Ok(ty.wrapped(value.into()).expect("the type wraps")),
    }
}
