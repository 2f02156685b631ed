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
            Action::Update { position } => {
                let mut next = state.clone();
                let effect = self.update(&mut next, step.thread, position)?;
                Ok((next, effect))
            }
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
                let mut next = state.clone();
                match self.execute(&mut next, step.thread, edge, choice) {
                    Ok(effect) => Ok((next, effect)),
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
    fn update(&self, state: &mut State, thread: ThreadId, position: usize) -> Result<Effect, Refusal> {
        let buffer = &mut Arc::make_mut(&mut state.threads[thread]).buffer;
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
        buffer.remove(position);
        while buffer.first() == Some(&Pending::Barrier) {
            buffer.remove(0);
        }
        state.memory[cell] = value;
        Ok(Effect::Updated(cell, value))
    }

    /// The thread takes an edge. On `Err` the state is only partly updated and must be discarded.
    fn execute(
        &self,
        state: &mut State,
        id: ThreadId,
        edge: &Edge,
        choice: Option<Value>,
    ) -> Result<Effect, Stop> {
        let system = self.system;
        let thread = Arc::make_mut(&mut state.threads[id]);
        let depth = thread.frames.len();
        let top = &mut thread.frames[depth - 1];
        let old = top.registers.clone();
        top.location = edge.target;
        let set = |frame: &mut Frame, register: RegId, value: Value| {
            frame.registers[register.index()] = fit(system.codes[frame.code].registers[register].ty, value)?;
            Ok::<(), Stop>(())
        };
        match &edge.instr {
            Instr::Nop => Ok(Effect::Local),
            Instr::Assign(register, value) => {
                set(top, *register, value.eval(&old)?)?;
                Ok(Effect::Local)
            }
            Instr::Havoc(register, _, _) => {
                set(top, *register, choice.expect("the caller checked that there is a choice"))?;
                Ok(Effect::Local)
            }
            Instr::Assume(condition) => match condition.eval(&old)? {
                0 => Err(Stop::Refused(Refusal::AssumptionFalse)),
                _ => Ok(Effect::Local),
            },
            Instr::Assert(condition, check) => match condition.eval(&old)? {
                0 if *check == Check::Assertion => Err(Stop::Faulted(Fault::AssertionFailed)),
                0 => Err(Stop::Faulted(Fault::CheckFailed(*check))),
                _ => Ok(Effect::Local),
            },
            Instr::Load(register, address) => {
                let cell = self.resolve(address, &old)?;
                let (value, effect) = match thread.newest_pending(cell) {
                    Some(value) => (value, Effect::ReadBuffer(cell, value)),
                    None => (state.memory[cell], Effect::ReadMemory(cell, state.memory[cell])),
                };
                set(&mut thread.frames[depth - 1], *register, value)?;
                Ok(effect)
            }
            Instr::Store(address, value) => {
                let value = value.eval(&old)?;
                let cell = self.resolve(address, &old)?;
                let value = fit(system.cells[cell].ty, value)?;
                if self.model == Model::Sc || state.section.is_some() {
                    state.memory[cell] = value;
                    Ok(Effect::Wrote(cell, value))
                } else {
                    thread.buffer.push(Pending::Store(cell, value));
                    Ok(Effect::Buffered(cell, value))
                }
            }
            Instr::Fence => {
                drained(thread)?;
                Ok(Effect::Fenced)
            }
            Instr::StoreFence => {
                if self.model == Model::Pso && thread.buffer.last().is_some_and(|e| *e != Pending::Barrier) {
                    thread.buffer.push(Pending::Barrier);
                }
                Ok(Effect::StoreFenced)
            }
            Instr::Locked { rmw, result, address, operands } => {
                let operands =
                    operands.iter().map(|operand| operand.eval(&old)).collect::<Result<Vec<_>, _>>()?;
                let cell = self.resolve(address, &old)?;
                match (self.model, self.interlocked) {
                    (Model::Pso, Interlocked::OwnAddress) => {
                        if !thread.may_lock_alone(cell) {
                            return Err(Stop::Refused(Refusal::BufferNotEmpty));
                        }
                    }
                    _ => drained(thread)?,
                }
                let read = state.memory[cell];
                let (wrote, answer) = read_modify_write(*rmw, system.cells[cell].ty, read, &operands)?;
                set(&mut thread.frames[depth - 1], *result, answer)?;
                if let Some(value) = wrote {
                    state.memory[cell] = fit(system.cells[cell].ty, value)?;
                }
                let wrote = wrote.map(|_| state.memory[cell]);
                Ok(Effect::Locked { cell, read, wrote })
            }
            Instr::AtomicBegin => {
                drained(thread)?;
                let depth = state.section.map_or(0, |section| section.depth);
                state.section = Some(Section { holder: id, depth: depth + 1 });
                Ok(Effect::Local)
            }
            Instr::AtomicEnd => {
                let depth = state.section.expect("invariant 6: atomic sections nest properly").depth;
                state.section = (depth > 1).then_some(Section { holder: id, depth: depth - 1 });
                Ok(Effect::Local)
            }
            Instr::Call { code, args, result } => {
                let args = self.arguments(*code, args, &old)?;
                let mut frame = Frame::enter(system, *code, &args, *result);
                let (own, handed_on) = (&mut thread.frames[depth - 1].registers, &mut frame.registers);
                own[..system.privates].swap_with_slice(&mut handed_on[..system.privates]);
                thread.frames.push(frame);
                Ok(Effect::Local)
            }
            Instr::Return(value) => {
                let value = value.as_ref().map_or(Ok(0), |value| value.eval(&old))?;
                let callee = thread.frames.pop().expect("a thread always has a frame");
                let caller = thread.frames.last_mut().expect("only procedures return");
                caller.registers[..system.privates].copy_from_slice(&callee.registers[..system.privates]);
                let value = system.codes[callee.code].result.map_or(Ok(value), |ty| fit(ty, value))?;
                if let Some(register) = callee.result {
                    set(caller, register, value)?;
                }
                Ok(Effect::Local)
            }
            Instr::Spawn(template, args) => {
                let args = args.iter().map(|arg| arg.eval(&old)).collect::<Result<Vec<_>, _>>()?;
                let role = system
                    .role(*template, &args)
                    .ok_or_else(|| Fault::OutOfDomain(args.first().copied().unwrap_or(0)))?;
                Ok(Effect::Spawned(state.threads.push(Arc::new(Thread::start(system, role)))))
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
