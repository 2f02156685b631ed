//! Steps of a single thread, taken by the trusted machine, and which of them are skipped.

use super::unfit;
use crate::Refusal;
use crate::dead;
use crate::seen::{Seen, forget, seen};
use palisade_base::{Id, limits};
use palisade_engine::Task;
use palisade_engine::proof::Activation;
use palisade_memory::{Action, Frame, Machine, Section, State, Step, Thread};
use palisade_program::Value;
use palisade_program::running::{
    Code, CodeId, EdgeId, Instr, Liveness, Location, PropertyKind, RegId, RoleId, System, ThreadId,
};
use std::sync::Arc;

/// Deeper stacks, and more nested sections, are not supported.
const MAX_DEEP: usize = 1 << 12;
/// The maximal number of thread states that are passed through at once.
const MAX_PASSED: usize = 1 << 14;

const ALONE: ThreadId = ThreadId(0);

/// A thread, and the number of its open atomic sections.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Body {
    pub thread: Thread,
    pub depth: u32,
}

/// A step: the fault it causes, or where it leads.
pub(super) enum Does {
    Fault,
    Goes { memory: Vec<Value>, body: Body, child: Option<RoleId> },
}

/// Threads of a program, one at a time.
pub(super) struct Alone<'a> {
    pub machine: Machine<'a>,
    liveness: Liveness,
    /// The locations and registers that `forbid` properties read, by code.
    seen: Vec<Seen>,
    /// Whether there is a stop, by code and location.
    stops: Vec<Vec<bool>>,
}

impl<'a> Alone<'a> {
    /// The threads of a program, with the stops of a proof.
    pub fn new(task: &Task<'_>, system: &'a System, stops: &[Vec<u32>]) -> Result<Alone<'a>, Refusal> {
        if stops.len() != system.codes.len() {
            return unfit("it has stops for the wrong number of codes");
        }
        let codes = system.codes.iter().zip(stops);
        let stops = codes.map(|(code, stops)| read_stops(code, stops)).collect::<Result<_, _>>()?;
        Ok(Alone {
            machine: task.machine(system),
            liveness: dead::checked(system)?,
            seen: seen(system, |kind| kind == PropertyKind::Forbid),
            stops,
        })
    }

    pub fn system(&self) -> &'a System {
        self.machine.system
    }

    /// A frame of a proof.
    pub fn frame(&self, frame: &Activation) -> Result<Frame, Refusal> {
        let code = CodeId(frame.code);
        let fits = self.system().codes.get(code).is_some_and(|code| {
            (frame.location as usize) < code.location_count() && frame.registers.len() == code.registers.len()
        });
        if !fits {
            return unfit("a frame that the program does not have");
        }
        let result = frame.result.map(RegId);
        Ok(Frame { code, location: Location(frame.location), registers: frame.registers.clone(), result })
    }

    /// A thread at its start.
    pub fn start(&self, role: RoleId) -> Body {
        self.forget(Body { thread: Thread::start(self.system(), role), depth: 0 })
    }

    /// The instructions a thread may take next.
    pub fn instructions(&self, frame: &Frame) -> impl Iterator<Item = &'a Instr> + use<'a> {
        let code = &self.system().codes[frame.code];
        code.edges_from(frame.location).map(|edge| &code.edges()[EdgeId(edge)].instr)
    }

    /// All steps of a thread with such instructions while no other thread has a section open.
    pub fn steps(
        &self,
        body: &Body,
        memory: &[Value],
        passes: impl Fn(&Instr) -> bool,
    ) -> Result<Vec<Does>, Refusal> {
        if body.thread.frames.len() > MAX_DEEP || body.depth as usize > MAX_DEEP {
            return unfit("a stack is too deep");
        }
        let state = State {
            memory: memory.to_vec().into(),
            threads: vec![Arc::new(body.thread.clone())].into(),
            section: (body.depth > 0).then_some(Section { holder: ALONE, depth: body.depth }),
            fault: None,
        };
        let code = &self.system().codes[body.thread.top().code];
        let mut found = Vec::new();
        let mut take = |edge, choice| {
            let step = Step { thread: ALONE, action: Action::Execute { edge, choice } };
            let Ok((next, _)) = self.machine.step(&state, step) else { return };
            let child = next.threads.get(ThreadId(1)).map(|child| child.role);
            let depth = next.section.map_or(0, |section| section.depth);
            found.push(match next.fault {
                Some(_) => Does::Fault,
                None => {
                    let thread = next.threads.into_iter().next().expect("a thread stays when it has ended");
                    let thread = Arc::unwrap_or_clone(thread);
                    let body = self.forget(Body { thread, depth });
                    Does::Goes { memory: next.memory.as_slice().to_vec(), body, child }
                }
            });
        };
        for edge in code.edges_from(body.thread.top().location).map(EdgeId) {
            let instr = &code.edges()[edge].instr;
            if !passes(instr) {
                continue;
            }
            self.check_sense(body, instr)?;
            match instr {
                Instr::Havoc(_, lo, hi) => (*lo..=*hi).for_each(|value| take(edge, Some(value))),
                _ => take(edge, None),
            }
        }
        Ok(found)
    }

    /// Rejects threads in impossible positions. A proof may contain threads that do not occur in the program.
    fn check_sense(&self, body: &Body, instr: &Instr) -> Result<(), Refusal> {
        let frames = &body.thread.frames;
        match instr {
            Instr::AtomicEnd if body.depth == 0 => unfit("a section is closed without being open"),
            Instr::Return(_) => {
                let Some(below) = frames.len().checked_sub(2) else {
                    return unfit("a procedure without a caller");
                };
                let registers = self.system().codes[frames[below].code].registers.len();
                let result = body.thread.top().result.map_or(0, |register| register.index() + 1);
                if result > registers { unfit("a result for an undefined register") } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// The thread without values that are never read again.
    fn forget(&self, mut body: Body) -> Body {
        forget(&self.liveness, &mut body.thread);
        body
    }

    /// The steps of a thread that passes; `None` if it waits.
    pub fn passing(&self, body: &Body) -> Result<Option<Vec<Body>>, Refusal> {
        let top = body.thread.top();
        let quiet = |instr: &Instr| {
            use Instr::{Assert, Assign, Assume, Call, Fence, Havoc, Nop, Return, StoreFence};
            matches!(
                instr,
                Nop | Assign(..)
                    | Havoc(..)
                    | Assume(_)
                    | Assert(..)
                    | Call { .. }
                    | Return(_)
                    | Fence
                    | StoreFence
            )
        };
        if self.stops[top.code.index()][top.location.index()] || !self.instructions(top).all(quiet) {
            return Ok(None);
        }
        let memory = vec![0; self.system().cells.len()];
        let mut reached = Vec::new();
        for does in self.steps(body, &memory, |_| true)? {
            match does {
                Does::Goes { body: next, .. } if self.looks_alike(body, &next) => reached.push(next),
                _ => return Ok(None),
            }
        }
        Ok((!reached.is_empty()).then_some(reached))
    }

    /// Whether no `forbid` can distinguish two states of a thread.
    fn looks_alike(&self, a: &Body, b: &Body) -> bool {
        let seen = &self.seen[a.thread.frames[0].code.index()];
        let bottom = |body: &Body, register: &RegId| body.thread.frames[0].registers[register.index()];
        seen.locations.iter().all(|&location| a.thread.is_at(location) == b.thread.is_at(location))
            && seen.registers.iter().all(|register| bottom(a, register) == bottom(b, register))
    }

    /// The waiting threads that a thread passes to, given the steps of threads that pass.
    pub fn settled(
        &self,
        body: Body,
        passing: impl Fn(&Body) -> Result<Option<Vec<Body>>, Refusal>,
    ) -> Result<Vec<Body>, Refusal> {
        let mut found = vec![body];
        let mut waiting = Vec::new();
        let mut at = 0;
        while let Some(body) = found.get(at) {
            limits::checkpoint();
            match passing(body)? {
                None => waiting.push(body.clone()),
                Some(next) => next.into_iter().for_each(|next| {
                    if !found.contains(&next) {
                        found.push(next);
                    }
                }),
            }
            at += 1;
            if found.len() > MAX_PASSED {
                return Err(Refusal::NotInductive("too many local steps in a row".into()));
            }
        }
        Ok(waiting)
    }
}

/// The stops of a code, after checking that every loop has one.
fn read_stops(code: &Code, stops: &[u32]) -> Result<Vec<bool>, Refusal> {
    let mut is_stop = vec![false; code.location_count()];
    for &stop in stops {
        match is_stop.get_mut(stop as usize) {
            Some(location) => *location = true,
            None => return unfit("a stop at a location that does not exist"),
        }
    }
    // Locations are removed when nothing leads to them. Those that are left are in loops, or after them.
    let mut into = vec![0; is_stop.len()];
    let from_here = code.edges().iter().filter(|edge| !is_stop[edge.source.index()]);
    from_here.for_each(|edge| into[edge.target.index()] += 1);
    let mut free: Vec<usize> =
        (0..is_stop.len()).filter(|&location| !is_stop[location] && into[location] == 0).collect();
    let mut left = is_stop.iter().filter(|stop| !**stop).count();
    while let Some(location) = free.pop() {
        left -= 1;
        for edge in code.edges_from(Location::from_index(location)) {
            let target = code.edges()[EdgeId(edge)].target.index();
            if !is_stop[target] {
                into[target] -= 1;
                if into[target] == 0 {
                    free.push(target);
                }
            }
        }
    }
    if left > 0 {
        return Err(Refusal::NotInductive(format!("a loop of {} has no stop", code.name)));
    }
    Ok(is_stop)
}
