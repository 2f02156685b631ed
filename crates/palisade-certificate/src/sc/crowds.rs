//! Proofs by numbers of threads, for programs that start threads without bound.
//!
//! An element represents a set of states. They have its memory, its thread states for the threads that exist
//! from the start, and, in each thread state, a number of started threads within bounds. A set of elements is
//! a proof as defined in the [header](super) of this folder: it contains the initial states, every step from
//! an element leads into one element, and no element contains a bad state.
//!
//! - A step of a started thread takes one from the number of its thread state and adds one to that of the
//!   next. Only those states of an element matter that have such a thread, so the number was at least 1.
//! - While an atomic section is open only its holder runs, and no property is evaluated (`forbid` waits for
//!   the end of the section, and a holder has not ended). The holder exists in all states of its element:
//!   there is exactly one.
//! - Threads that have ended and whose role is not counted there are left out. They take no step, and no
//!   property sees them.

use super::alone::{Alone, Body, Does};
use super::counts::{ANY, Situation, is_counted, may_be_bad};
use super::{Table, check_task, read_memories, unfit};
use crate::watch::Watch;
use crate::{Missing, Refusal, Summary};
use palisade_base::{Id, IdVec};
use palisade_engine::Task;
use palisade_engine::proof::{Activation, Crowd, Crowds, Number, ThreadState};
use palisade_memory::{Frame, Thread};
use palisade_program::Value;
use palisade_program::running::RoleId;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// An element. For each thread state of started threads, it has the minimal and maximal number of threads.
#[derive(Clone, Debug)]
struct Element {
    memory: u32,
    named: Vec<u32>,
    started: Vec<(u32, u32, u32)>,
}

/// A step of a thread: memory, and where the thread and the one it starts may wait next.
struct Leads {
    memory: u32,
    thread: Vec<u32>,
    child: Vec<u32>,
    starts: bool,
}

/// The thread that takes a step.
#[derive(Clone, Copy)]
enum Actor {
    Named(usize),
    Started(usize),
}

struct Checker<'a, 'b> {
    alone: Alone<'a>,
    watch: &'b Watch<'b>,
    bodies: Table<Body>,
    memories: Table<Vec<Value>>,
    elements: Vec<Element>,
    /// Elements by the parts that must be equal.
    index: FxHashMap<(u32, Vec<u32>), Vec<usize>>,
    steps: FxHashMap<(u32, u32), Rc<[Leads]>>,
    /// Roles whose threads are left out when they have ended.
    vanishing: IdVec<RoleId, bool>,
    summary: Summary,
}

/// Checks that a proof shows a program to be safe under SC.
pub(crate) fn verify(task: &Task<'_>, proof: &Crowds, watch: &Watch<'_>) -> Result<Summary, Refusal> {
    check_task(task)?;
    let system = task.lower(1);
    let counted = |(role, _)| is_counted(&system, role, system.role_code(role).exit);
    let mut checker = Checker {
        alone: Alone::new(task, &system, &proof.stops)?,
        watch,
        bodies: Table::new(),
        memories: Table::new(),
        elements: Vec::new(),
        index: FxHashMap::default(),
        steps: FxHashMap::default(),
        vanishing: system.roles.iter_enumerated().map(|role| !counted(role)).collect(),
        summary: Summary::default(),
    };
    checker.read(proof)?;
    checker.check_initial()?;
    for number in 0..checker.elements.len() {
        checker.check_element(number)?;
    }
    Ok(checker.summary)
}

impl Checker<'_, '_> {
    fn read(&mut self, proof: &Crowds) -> Result<(), Refusal> {
        let cells = self.alone.system().cells.len();
        let memories = read_memories(cells, &proof.memories, &mut self.memories)?;
        let mut threads = Vec::with_capacity(proof.threads.len());
        for thread in &proof.threads {
            let body = self.read_thread(thread)?;
            threads.push(self.bodies.id(body));
        }
        for element in &proof.elements {
            let element = self.read_element(element, &memories, &threads)?;
            let key = (element.memory, element.named.clone());
            self.index.entry(key).or_default().push(self.elements.len());
            self.elements.push(element);
        }
        Ok(())
    }

    fn read_thread(&self, thread: &ThreadState) -> Result<Body, Refusal> {
        let role = RoleId(thread.role);
        let frames: Result<Vec<_>, Refusal> =
            thread.frames.iter().map(|frame| self.alone.frame(frame)).collect();
        let frames = frames?;
        let code = self.alone.system().roles.get(role).map(|role| role.code);
        if code.is_none() || frames.first().map(|frame| frame.code) != code {
            return unfit("a thread state that the program does not have");
        }
        Ok(Body { thread: Thread { role, frames, buffer: Vec::new() }, depth: thread.depth })
    }

    fn read_element(&self, crowd: &Crowd, memories: &[u32], threads: &[u32]) -> Result<Element, Refusal> {
        let instances = &self.alone.system().instances;
        let thread = |&number: &u32| threads.get(number as usize).copied();
        let named: Option<Vec<u32>> = crowd.named.iter().map(thread).collect();
        let started: Option<Vec<_>> = crowd
            .started
            .iter()
            .map(|number| Some((thread(&number.thread)?, number.least, number.most.unwrap_or(ANY))))
            .collect();
        let (Some(&memory), Some(named), Some(mut started)) =
            (memories.get(crowd.memory as usize), named, started)
        else {
            return unfit("an invalid element");
        };
        started.sort_unstable();
        let roles = named.iter().map(|&body| self.bodies.get(body).thread.role);
        if !roles.eq(instances.iter().map(|instance| instance.role))
            || started.windows(2).any(|pair| pair[0].0 == pair[1].0)
            || started.iter().any(|&(_, least, most)| least > most || least == ANY)
        {
            return unfit("an invalid element");
        }
        Ok(Element { memory, named, started })
    }

    fn check_initial(&mut self) -> Result<(), Refusal> {
        let machine = self.alone.machine;
        let mut starts = Vec::new();
        for instance in machine.system.instances.iter() {
            starts.push(self.settled(self.alone.start(instance.role))?);
        }
        for (number, state) in machine.initial_states().enumerate() {
            if number % 1024 == 0 {
                self.watch.look(0)?;
            }
            let memory = self.memories.id(state.memory.as_slice().to_vec());
            let mut choice = vec![0; starts.len()];
            loop {
                let named = starts.iter().zip(&choice).map(|(starts, &chosen): (_, &usize)| starts[chosen]);
                let element = Element { memory, named: named.collect(), started: Vec::new() };
                if !self.is_covered(&element) {
                    return Err(Refusal::InitialMissing);
                }
                let next = choice.iter_mut().zip(&starts).find_map(|(chosen, starts)| {
                    *chosen = (*chosen + 1) % starts.len();
                    (*chosen > 0).then_some(())
                });
                if next.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The waiting threads that a thread passes to, by index.
    fn settled(&mut self, body: Body) -> Result<Vec<u32>, Refusal> {
        let settled = self.alone.settled(body, |body| self.alone.passing(body))?;
        Ok(settled.into_iter().map(|body| self.bodies.id(body)).collect())
    }

    /// Whether all states are in one element.
    fn is_covered(&self, states: &Element) -> bool {
        let Some(candidates) = self.index.get(&(states.memory, states.named.clone())) else { return false };
        candidates.iter().any(|&number| covers(&self.elements[number].started, &states.started))
    }

    fn check_element(&mut self, number: usize) -> Result<(), Refusal> {
        if number.is_multiple_of(64) {
            let bytes = 200 * (self.bodies.len() + self.memories.len() + self.steps.len());
            self.watch.look(bytes as u64)?;
        }
        self.summary.elements += 1;
        self.watch.element()?;
        let element = self.elements[number].clone();
        let named = element.named.iter().enumerate().map(|(at, &body)| (Actor::Named(at), body, 1, 1));
        let started = element.started.iter().enumerate();
        let started = started.map(|(at, &(body, least, most))| (Actor::Started(at), body, least, most));
        let mut actors: Vec<(Actor, u32, u32, u32)> =
            named.chain(started).filter(|actor| actor.3 > 0).collect();
        let holders: Vec<_> =
            actors.iter().copied().filter(|&(_, body, ..)| self.bodies.get(body).depth > 0).collect();
        match holders[..] {
            [] if self.is_bad(&element) => return Err(Refusal::Bad(number)),
            [] => {}
            [holder] if (holder.2, holder.3) == (1, 1) => actors = vec![holder],
            _ => return unfit("an open section without exactly one holder"),
        }
        for (actor, body, ..) in actors {
            for leads in self.steps(body, element.memory, number)?.iter() {
                for &thread in &leads.thread {
                    // A thread that starts no other thread also has one choice for the child.
                    let children = leads.starts.then_some(leads.child.as_slice());
                    for child in children.map_or(vec![None], |all| all.iter().copied().map(Some).collect()) {
                        let mut next = Element { memory: leads.memory, ..element.clone() };
                        match actor {
                            Actor::Named(at) => next.named[at] = thread,
                            Actor::Started(at) => {
                                let (_, least, most) = &mut next.started[at];
                                *least = least.saturating_sub(1);
                                *most -= u32::from(*most != ANY);
                                self.put(&mut next.started, thread);
                            }
                        }
                        child.into_iter().for_each(|child| self.put(&mut next.started, child));
                        self.summary.predecessors += 1;
                        if !self.is_covered(&next) {
                            return Err(Refusal::Leaves { element: number, to: self.written(&next) });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// An element in the form of a proof, with everything it names.
    fn written(&self, element: &Element) -> Missing {
        let mut proof =
            Crowds { memories: vec![self.memories.get(element.memory).to_vec()], ..Crowds::default() };
        let mut thread = |body: u32| {
            let Body { thread, depth } = &**self.bodies.get(body);
            let frame = |frame: &Frame| Activation {
                code: frame.code.0,
                location: frame.location.0,
                registers: frame.registers.clone(),
                result: frame.result.map(|register| register.index() as u32),
            };
            let frames = thread.frames.iter().map(frame).collect();
            proof.threads.push(ThreadState { role: thread.role.0, frames, depth: *depth });
            proof.threads.len() as u32 - 1
        };
        let named = element.named.iter().map(|&body| thread(body)).collect();
        let number = |&(body, least, most): &(u32, u32, u32)| Number {
            thread: thread(body),
            least,
            most: (most != ANY).then_some(most),
        };
        let started = element.started.iter().map(number).collect();
        proof.elements.push(Crowd { memory: 0, named, started });
        Missing::Crowd(proof)
    }

    /// Adds one thread.
    fn put(&self, started: &mut Vec<(u32, u32, u32)>, thread: u32) {
        let body = self.bodies.get(thread);
        if self.vanishing[body.thread.role] && body.thread.has_ended(self.alone.system()) {
            return;
        }
        match started.binary_search_by_key(&thread, |&(thread, ..)| thread) {
            Ok(at) => {
                let (_, least, most) = &mut started[at];
                *most = most.saturating_add(1);
                *least = (*least + 1).min(ANY - 1);
            }
            Err(at) => started.insert(at, (thread, 1, 1)),
        }
    }

    fn is_bad(&self, element: &Element) -> bool {
        let thread = |body: &u32| &self.bodies.get(*body).thread;
        let situation = Situation {
            memory: self.memories.get(element.memory),
            named: element.named.iter().map(thread).collect(),
            started: element
                .started
                .iter()
                .map(|(body, least, most)| (thread(body), *least, *most))
                .collect(),
        };
        may_be_bad(self.alone.system(), &situation)
    }

    /// The steps of a thread with a given memory.
    fn steps(&mut self, body: u32, memory: u32, element: usize) -> Result<Rc<[Leads]>, Refusal> {
        if let Some(known) = self.steps.get(&(body, memory)) {
            return Ok(Rc::clone(known));
        }
        let (acting, before) = (Rc::clone(self.bodies.get(body)), Rc::clone(self.memories.get(memory)));
        let mut found = Vec::new();
        for does in self.alone.steps(&acting, &before, |_| true)? {
            let Does::Goes { memory, body, child } = does else { return Err(Refusal::Bad(element)) };
            let thread = self.settled(body)?;
            let started = match child {
                Some(role) => self.settled(self.alone.start(role))?,
                None => Vec::new(),
            };
            let memory = self.memories.id(memory);
            found.push(Leads { memory, thread, child: started, starts: child.is_some() });
        }
        let found: Rc<[Leads]> = found.into();
        self.steps.insert((body, memory), Rc::clone(&found));
        Ok(found)
    }
}

/// Whether all numbers within the second bounds are within the first.
fn covers(large: &[(u32, u32, u32)], small: &[(u32, u32, u32)]) -> bool {
    let bounds = |of: &[(u32, u32, u32)], thread: u32| {
        of.binary_search_by_key(&thread, |&(thread, ..)| thread).map_or((0, 0), |at| (of[at].1, of[at].2))
    };
    let threads = large.iter().chain(small).map(|&(thread, ..)| thread);
    threads.into_iter().all(|thread| {
        let (large, small) = (bounds(large, thread), bounds(small, thread));
        large.0 <= small.0 && small.1 <= large.1
    })
}
