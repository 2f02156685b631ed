//! What comes before every search: the automata of a task, within its budget.

use palisade_automata::{Automata, Population, StateId, Trouble};
use palisade_base::{IdVec, limits};
use palisade_engine::{Budget, Exhausted, Reason, Task, Threads};
use palisade_program::running::{RoleId, System};
use palisade_program::written::{Count, Program};
use std::sync::Arc;

/// Automata, with what they are of.
struct Built {
    program: Program,
    threads: Threads,
    automata: Arc<Automata>,
}

/// The automata of a task, or why there are none. Engines side by side build them once.
pub(crate) fn build_automata(
    task: &Task<'_>,
    system: &System,
    budget: &Budget,
) -> Result<Arc<Automata>, Reason> {
    if let Some(built) = budget.learned::<Built>()
        && built.threads == task.threads
        && built.program == *task.program
    {
        return Ok(built.automata.clone());
    }
    // Letters count cells with sixteen bits.
    if system.cells.len() >= 1 << 16 {
        return Err(Reason::Unsupported(format!(
            "there are too many shared variables ({})",
            system.cells.len()
        )));
    }
    let mut exhausted = None;
    let go_on = || {
        exhausted = budget.check(0).err();
        exhausted.is_none()
    };
    let automata = Automata::build(system, |role| population(task, system, role), go_on);
    let automata = match (automata, exhausted) {
        (_, Some(exhausted)) => return Err(Reason::Exhausted(exhausted)),
        (automata, None) => Arc::new(automata.map_err(|trouble| explain(system, trouble))?),
    };
    let built = Built { program: task.program.clone(), threads: task.threads, automata: automata.clone() };
    budget.learn(Arc::new(built));
    Ok(automata)
}

/// How many threads run a role.
pub(crate) fn population(task: &Task<'_>, system: &System, role: RoleId) -> Population {
    let template = &task.program.templates[system.roles[role].template.0 as usize];
    match (task.threads, template.count) {
        (Threads::Any, _) | (Threads::Declared, Count::Any) => Population::Any,
        _ => {
            Population::Fixed(system.instances.iter().filter(|instance| instance.role == role).count() as u32)
        }
    }
}

/// The states from which a state is reached silently and that matter by themselves; it may be one of them.
pub(crate) fn roots(
    state: StateId,
    silent: &IdVec<StateId, Vec<StateId>>,
    matters: impl Fn(StateId) -> bool,
) -> Vec<StateId> {
    let mut seen = vec![state];
    let mut next = 0;
    while next < seen.len() {
        limits::go_on();
        let before: Vec<_> = silent[seen[next]].iter().copied().filter(|s| !seen.contains(s)).collect();
        seen.extend(before);
        next += 1;
    }
    seen.retain(|&state| matters(state));
    seen
}

fn explain(system: &System, trouble: Trouble) -> Reason {
    match trouble {
        Trouble::Spawn => Reason::Unsupported("threads are started at run time".into()),
        Trouble::CallDepth(depth) => {
            Reason::Unsupported(format!("there may be more than {depth} nested calls"))
        }
        Trouble::Stopped => Reason::Exhausted(Exhausted::Stopped),
        Trouble::Values(cell) if system.cells[cell].ty.domain.bounds().is_some() => {
            let name = &system.cells[cell].name;
            Reason::Unsupported(format!(
                "`{name}` can hold more than {} values",
                palisade_automata::MOST_DECLARED
            ))
        }
        Trouble::Values(cell) => Reason::Growing {
            name: system.cells[cell].name.clone(),
            values: palisade_automata::MOST_VALUES + 1,
        },
        Trouble::States(role) => {
            let (name, most) = (&system.roles[role].name, palisade_automata::MOST_STATES);
            Reason::Unsupported(format!(
                "process {name} may have more than {most} states of its own; declare the domains of its registers, or bound all integers with --int-range LO..HI"
            ))
        }
    }
}
