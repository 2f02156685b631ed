//! From timed events to a run of the store-buffer machine.
//!
//! The backward engines do not search the machine's own semantics but equivalent ones. A run found there is
//! described by events: steps of actors and stores that reach memory, each at a time. In the order of their
//! times they are a run of the machine, once every actor is assigned a thread of its role.

use palisade_automata::{Edge, Population, Schedule};
use palisade_base::limits;
use palisade_engine::{Analysis, Witness};
use palisade_memory::{Action, Effect, Machine, Pending, Step};
use palisade_program::Value;
use palisade_program::running::{CellId, RoleId, System, ThreadId};
use palisade_trace::{Run, replay, until_bad};

/// An event: what happens, to which actor, and when.
pub(crate) struct Event {
    pub time: u64,
    pub actor: usize,
    pub what: What,
}

/// The action of an event.
pub(crate) enum What {
    /// Steps of the actor. The last `armed` ones belong to a section that is not entered yet. A thread that they
    /// start is that of the actor `starts`, if there is one.
    Steps { actions: Vec<Action>, armed: usize, starts: Option<usize> },
    /// The actor's oldest pending store to a cell reaches memory.
    Update(CellId),
}

impl What {
    /// The steps of an edge.
    pub fn edge(edge: &Edge) -> What {
        What::Steps { actions: edge.steps.clone(), armed: edge.armed, starts: None }
    }
}

/// Events, the roles of their actors, and memory at the start.
pub(crate) struct Timeline {
    /// `None` for actors that are started by others.
    pub roles: Vec<Option<RoleId>>,
    pub events: Vec<Event>,
    pub memory: Vec<Value>,
}

impl Timeline {
    /// The run. Where there may be any number of threads, it has as many as it needs.
    pub fn witness(&self, analysis: &Analysis<'_>, system: &System) -> Option<Witness> {
        let of_any = |role: &RoleId| analysis.task.population(system, *role) == Population::Any;
        let any = system.roles.ids().filter(of_any).map(|role| self.threads_of(role)).max();
        let any = any.unwrap_or(1).max(1) as u32;
        let system = analysis.system(any);
        let run = self.run(analysis.machine(&system))?;
        Some(Witness { instantiation: analysis.instantiation(any), run })
    }

    /// The number of threads of a role that the run needs.
    fn threads_of(&self, role: RoleId) -> usize {
        self.roles.iter().filter(|&&other| other == Some(role)).count()
    }

    /// The run on a machine, with threads chosen such that it ends in a bad state. `None` if there is no such
    /// choice (which would be a bug).
    pub fn run(&self, machine: Machine<'_>) -> Option<Run> {
        let mut order: Vec<&Event> = self.events.iter().collect();
        // The sort is stable. Events at the same time stay in the order in which they were added, which is
        // program order for each actor.
        order.sort_by_key(|event| event.time);
        self.choose_threads(machine, &order, &mut Vec::new(), &mut 0)
    }

    /// Tries threads for the actors. Any thread of the right role is suitable, except where a property names
    /// threads.
    fn choose_threads(
        &self,
        machine: Machine<'_>,
        order: &[&Event],
        chosen: &mut Vec<Option<ThreadId>>,
        tries: &mut usize,
    ) -> Option<Run> {
        const MAX_TRIES: usize = 10_000;
        let Some(&role) = self.roles.get(chosen.len()) else {
            *tries += 1;
            let run = until_bad(machine, self.with_threads(machine, order, chosen)?);
            return replay(machine, &run).is_ok().then_some(run);
        };
        let Some(role) = role else {
            chosen.push(None);
            let run = self.choose_threads(machine, order, chosen, tries);
            chosen.pop();
            return run;
        };
        let instances = machine.system.instances.iter_enumerated();
        for thread in instances.filter(|(_, instance)| instance.role == role).map(|(thread, _)| thread) {
            if !chosen.contains(&Some(thread)) && *tries < MAX_TRIES {
                chosen.push(Some(thread));
                if let Some(run) = self.choose_threads(machine, order, chosen, tries) {
                    return Some(run);
                }
                chosen.pop();
            }
        }
        None
    }

    /// The run with these threads, as far as it goes. It ends early if an error of the program ends it.
    fn with_threads(
        &self,
        machine: Machine<'_>,
        order: &[&Event],
        threads: &[Option<ThreadId>],
    ) -> Option<Run> {
        let mut threads = threads.to_vec();
        let mut schedules = vec![Schedule::default(); threads.len()];
        let mut state = machine.initial_state(&self.memory)?;
        let mut steps = Vec::new();
        for event in order {
            limits::checkpoint();
            let thread = threads[event.actor]?;
            let mut started = None;
            let actions = match &event.what {
                What::Update(cell) => {
                    let of_cell = |entry: &Pending| matches!(entry, Pending::Store(c, _) if c == cell);
                    let position = state.threads[thread].buffer.iter().position(of_cell)?;
                    vec![Action::Update { position }]
                }
                What::Steps { actions, armed, starts } => {
                    started = *starts;
                    schedules[event.actor].take(actions.clone(), *armed)
                }
            };
            for action in actions {
                let step = Step { thread, action };
                let (next, effect) = machine.step(&state, step).ok()?;
                state = next;
                steps.push(step);
                if let (Effect::Spawned(new), Some(actor)) = (effect, started) {
                    threads[actor] = Some(new);
                }
                if state.fault.is_some() {
                    return Some(Run { memory: self.memory.clone(), steps });
                }
            }
        }
        Some(Run { memory: self.memory.clone(), steps })
    }
}
