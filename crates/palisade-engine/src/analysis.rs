//! Everything computed about a question, so that nothing has to be computed again.
//!
//! An [`Analysis`] belongs to one [`Task`]. It owns the running forms, what can be seen from their structure,
//! and the explicit automata of the processes. All of it is computed on demand and kept for every engine that
//! asks later. Nothing computed depends on the memory model, so the [same program under SC](Analysis::under)
//! shares it.
//!
//! *Invariant.* No lock is held during a computation. Otherwise an engine that waits for its turn would block
//! engines that have theirs. Two engines that ask at the same time may both compute a result. The first
//! result is kept, and the second is the same.

use crate::{Limits, Reason, Task};
use palisade_automata::{Automata, Coverage, MAX_DECLARED, MAX_STATES, MAX_VALUES, Merged, Trouble};
use palisade_memory::{Machine, Model};
use palisade_program::Instantiation;
use palisade_program::running::{Liveness, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use palisade_program::running::Structure;

/// A question, and what is known about it.
#[derive(Clone, Debug)]
pub struct Analysis<'p> {
    /// The question.
    pub task: Task<'p>,
    computed: Arc<Computed>,
    facts: Arc<Facts>,
    /// Where an engine leaves what runs do, if that is wanted.
    coverage: Option<Arc<OnceLock<Coverage>>>,
}

/// The part that does not depend on the memory model.
#[derive(Debug, Default)]
struct Computed {
    systems: ByInstances<System>,
    liveness: ByInstances<Liveness>,
    structure: OnceLock<Structure>,
    automata: OnceLock<Result<Arc<Automata>, Reason>>,
    merged: OnceLock<Arc<Merged>>,
}

/// Something that depends on how many instances represent "any number".
type ByInstances<T> = Mutex<BTreeMap<u32, Arc<T>>>;

fn once<T>(known: &ByInstances<T>, any: u32, compute: impl FnOnce() -> T) -> Arc<T> {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    let found = lock().get(&any).cloned();
    found.unwrap_or_else(|| {
        let computed = Arc::new(compute());
        lock().entry(any).or_insert(computed).clone()
    })
}

/// Facts that engines learn for each other while they work on a question.
#[derive(Debug, Default)]
pub struct Facts {
    /// Set once the program is known to be robust, if the question under SC then replaces this one.
    robust: Arc<AtomicBool>,
    uses_robustness: bool,
    bounds: Mutex<Vec<(&'static str, Reason)>>,
}

impl<'p> Analysis<'p> {
    /// An analysis in which nothing is known yet.
    pub fn new(task: Task<'p>) -> Analysis<'p> {
        Analysis { task, computed: Arc::default(), facts: Arc::default(), coverage: None }
    }

    /// The same, for engines that run side by side and drop the question once the program is known to be
    /// robust. The question is then asked under SC instead.
    pub fn using_robustness(self) -> Analysis<'p> {
        Analysis { facts: Arc::new(Facts { uses_robustness: true, ..Facts::default() }), ..self }
    }

    /// The same program under another memory model. If the program is robust, runs take the same steps under
    /// SC, so what they do there is what they do here.
    pub fn under(&self, model: Model) -> Analysis<'p> {
        let task = Task { model, ..self.task.clone() };
        let (computed, coverage) = (self.computed.clone(), self.coverage.clone());
        Analysis { task, computed, facts: Arc::default(), coverage }
    }

    /// The same, for engines that also report what runs do.
    pub fn with_coverage(self) -> Analysis<'p> {
        Analysis { coverage: Some(Arc::default()), ..self }
    }

    /// Whether engines report what runs do.
    pub fn wants_coverage(&self) -> bool {
        self.coverage.is_some()
    }

    /// Records what runs do: exactly, by a search that visited everything.
    pub fn learn_coverage(&self, found: Coverage) {
        if let Some(coverage) = &self.coverage {
            // The first result is kept, and a second is the same.
            let _ = coverage.set(found);
        }
    }

    /// What runs do, if an engine found out.
    pub fn coverage(&self) -> Option<&Coverage> {
        self.coverage.as_ref()?.get()
    }

    /// The facts that engines have learned for each other.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The running form, with `any` instances of each template whose number of instances is not fixed.
    pub fn system(&self, any: u32) -> Arc<System> {
        once(&self.computed.systems, any, || self.task.lower(any))
    }

    /// The machine for a running form of this program.
    pub fn machine<'s>(&self, system: &'s System) -> Machine<'s> {
        self.task.machine(system)
    }

    /// The instantiation with `any` instances of each template whose number of instances is not fixed.
    pub fn instantiation(&self, any: u32) -> Instantiation {
        self.task.instantiation(any)
    }

    /// Which features the program uses.
    pub fn structure(&self) -> Structure {
        match self.computed.structure.get() {
            Some(structure) => *structure,
            None => {
                let structure = Structure::new(&self.system(1));
                *self.computed.structure.get_or_init(|| structure)
            }
        }
    }

    /// Which registers are read again, in the running form with `any` instances of each template whose number
    /// of instances is not fixed.
    pub fn liveness(&self, any: u32) -> Arc<Liveness> {
        once(&self.computed.liveness, any, || Liveness::new(&self.system(any)))
    }

    /// The explicit automata of all processes, or why they do not exist.
    pub fn automata(&self, limits: &Limits) -> Result<Arc<Automata>, Reason> {
        if let Some(known) = self.computed.automata.get() {
            return known.clone();
        }
        if self.task.has_open_identities() {
            return Err(Reason::Unsupported(IDENTITIES.into()));
        }
        if self.structure().has_plain {
            return Err(Reason::Unsupported(ONLY_EXPLICIT_FINDS_RACES.into()));
        }
        let system = self.system(1);
        let mut exhausted = None;
        let may_continue = || {
            exhausted = limits.check(0).err();
            exhausted.is_none()
        };
        let built = Automata::build_with(
            &system,
            self.liveness(1),
            |role| self.task.population(&system, role),
            may_continue,
        );
        if let Some(what) = exhausted {
            return Err(Reason::Exhausted(what));
        }
        let built = built.map(Arc::new).map_err(|trouble| explain(&system, trouble));
        self.computed.automata.get_or_init(|| built).clone()
    }

    /// The explicit automata, if some engine has built them.
    pub fn known_automata(&self) -> Option<Arc<Automata>> {
        self.computed.automata.get()?.clone().ok()
    }

    /// The same with bisimilar states merged.
    pub fn merged(&self, limits: &Limits) -> Result<Arc<Merged>, Reason> {
        if let Some(known) = self.computed.merged.get() {
            return Ok(known.clone());
        }
        let merged = Arc::new(self.automata(limits)?.merged(&self.system(1)));
        Ok(self.computed.merged.get_or_init(|| merged).clone())
    }
}

/// Why engines that treat processes as interchangeable do not answer.
pub const IDENTITIES: &str = "the processes have identities, and their number is open";

impl Facts {
    /// Records that the program is robust under its memory model: whatever is reachable is reachable under
    /// SC. Returns whether the question is dropped for the one under SC.
    pub fn learn_robust(&self) -> bool {
        if self.uses_robustness {
            self.robust.store(true, Ordering::Relaxed);
        }
        self.uses_robustness
    }

    /// Whether the question was dropped because the program is robust.
    pub fn is_robust(&self) -> bool {
        self.robust.load(Ordering::Relaxed)
    }

    /// The flag that [`is_robust`](Facts::is_robust) reads, for code that stops when it is set.
    pub fn robust_flag(&self) -> Arc<AtomicBool> {
        self.robust.clone()
    }

    /// Records that an engine has established a bound up to which nothing bad happens.
    pub fn learn_bound(&self, engine: &'static str, bound: Reason) {
        debug_assert!(bound.is_bound(), "only bounds are kept: {bound:?}");
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds.retain(|(other, _)| *other != engine);
        bounds.push((engine, bound));
    }

    /// The most recent bound that an engine has established.
    pub fn bound_of(&self, engine: &str) -> Option<Reason> {
        let bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds.iter().find(|(other, _)| *other == engine).map(|(_, bound)| bound.clone())
    }
}

/// Why an engine does not answer about a program with plain accesses.
pub const ONLY_EXPLICIT_FINDS_RACES: &str = "only explicit search looks for data races";

/// Why a program has no explicit automata.
fn explain(system: &System, trouble: Trouble) -> Reason {
    match trouble {
        Trouble::Spawn => Reason::Unsupported("threads are started in atomic sections".into()),
        Trouble::CallDepth(depth) => {
            Reason::Unsupported(format!("there may be more than {depth} nested calls"))
        }
        Trouble::Stopped => unreachable!("the limits say so first"),
        Trouble::Values(cell) if system.cells[cell].ty.domain.bounds().is_some() => {
            let name = &system.cells[cell].name;
            Reason::Unsupported(format!("`{name}` can hold more than {MAX_DECLARED} values"))
        }
        Trouble::Values(cell) => {
            Reason::Growing { name: system.cells[cell].name.clone(), values: MAX_VALUES + 1 }
        }
        Trouble::States(role) => {
            let name = &system.roles[role].name;
            Reason::Unsupported(format!(
                "process {name} may have more than {MAX_STATES} states of its own; declare the domains of its registers, or bound all integers with --int-range LO..HI"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Threads};
    use palisade_memory::Interlocked;
    use palisade_program::written::Program;

    fn task(program: &Program) -> Task<'_> {
        let (threads, model, interlocked) = (Threads::Declared, Model::Tso, Interlocked::default());
        Task { program, threads, model, interlocked, options: Options::default() }
    }

    #[test]
    fn everything_is_computed_once_and_shared_between_models() {
        let program = Program::default();
        let analysis = Analysis::new(task(&program));
        let under_sc = analysis.under(Model::Sc);
        assert!(Arc::ptr_eq(&analysis.system(1), &under_sc.system(1)));
        assert!(Arc::ptr_eq(&analysis.liveness(1), &under_sc.liveness(1)));
        let limits = Limits::unlimited(1);
        let automata = |analysis: &Analysis<'_>| analysis.automata(&limits).expect("there are no processes");
        assert!(Arc::ptr_eq(&automata(&analysis), &automata(&under_sc)));
    }

    #[test]
    fn no_lock_is_held_during_a_computation() {
        let known = ByInstances::default();
        let value = once(&known, 1, || known.try_lock().is_ok());
        assert!(*value);
    }

    #[test]
    fn running_out_is_not_kept() {
        let program = Program::default();
        let analysis = Analysis::new(task(&program));
        let stopped = Limits::unlimited(1);
        stopped.stop();
        // Without processes nothing checks the limits. Whatever this call returns, the next result is right.
        let _ = analysis.automata(&stopped);
        assert!(analysis.automata(&Limits::unlimited(1)).is_ok());
    }

    #[test]
    fn robustness_is_learned_where_it_is_used() {
        let program = Program::default();
        let check = |analysis: Analysis<'_>, used: bool| {
            assert_eq!((analysis.facts().learn_robust(), analysis.facts().is_robust()), (used, used));
            assert!(!analysis.under(Model::Sc).facts().is_robust(), "this is another question");
        };
        check(Analysis::new(task(&program)), false);
        check(Analysis::new(task(&program)).using_robustness(), true);
    }

    #[test]
    fn the_last_bound_of_an_engine_counts() {
        let facts = Facts::default();
        facts.learn_bound("rounds", Reason::Rounds(1));
        facts.learn_bound("rounds", Reason::Rounds(2));
        assert_eq!((facts.bound_of("rounds"), facts.bound_of("age")), (Some(Reason::Rounds(2)), None));
    }
}
