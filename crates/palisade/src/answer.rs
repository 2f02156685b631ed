//! An answer to a question, with the evidence for it.

use crate::Input;
use crate::coverage::Reach;
use crate::progress::Deadlocks;
use crate::question::{Ask, Confirmed};
use palisade_base::Source;
use palisade_certificate::{CellDomain, Certificate};
use palisade_engine::proof::Ranking;
use palisade_engine::{Certified, Outcome, Proof, Reason, Robustness, Safety, Threads, TriangularRaces};
use palisade_memory::{Interlocked, Machine, Model, State, Violation};
use palisade_program::Instantiation;
use palisade_program::running::{Condition, ThreadId};
use palisade_program::written::{Count, Program, Start};
use palisade_report::{Finding, ProgressNote};
use palisade_trace::{Addresses, Cycle, Evidence, HappensBefore, Origin, Triangle, WitnessFile, text_hash};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An answer. A violation comes with its run.
#[derive(Clone, Debug)]
pub struct Answer<Q: Ask = Safety> {
    /// The verdict, the engine that gave it, and what was counted.
    pub outcome: Outcome<Q>,
    /// What the other engines had found by then.
    pub others: Vec<Outcome<Q>>,
    /// The memory model.
    pub model: Model,
    /// What locked instructions wait for under PSO.
    pub interlocked: Interlocked,
    /// How many instances each template has.
    pub threads: Threads,
    /// Time taken.
    pub seconds: f64,
    /// The peak memory of this process, if the host reports it.
    pub peak_memory_bytes: Option<u64>,
    /// The proof of a positive answer, if it was requested and found.
    pub proof: Option<Proved>,
    /// The proof of what must stay possible, if it was requested and found.
    pub ranking: Option<Ranking>,
    /// For a C program, the proof that it is free of deadlocks and can finish, if it was requested and found.
    pub finish: Option<Ranking>,
    /// Domains that the proof is about, and proves as well.
    pub domains: Vec<CellDomain>,
    /// The number that integers were taken modulo in the proof.
    pub modulus: Option<u32>,
    /// Whether deadlocks were asked about, whatever the program says.
    pub deadlocks: Deadlocks,
    /// How the proof was checked, if that was requested.
    pub certified: Option<Certified>,
    /// What is known about progress.
    pub progress: Option<ProgressNote>,
    /// What runs reach, if that was asked for and is known.
    pub reach: Option<Reach>,
    /// Whether the run is a shortest one, if that was requested; if this is not known, why.
    pub shortest: Option<Result<(), Reason>>,
    /// Whether the program is unsafe under SC as well, if that was asked for and is known.
    pub also_under_sc: Option<bool>,
    /// What addresses mean in the program.
    pub(crate) addresses: Option<Arc<dyn Addresses>>,
    /// The run, replayed on the trusted machine. Present if and only if there is a violation.
    pub(crate) confirmed: Option<Confirmed<Q>>,
}

/// A proof.
#[derive(Clone, Debug)]
pub struct Proved {
    /// The engine that gave the proof: the one that answered, or another one if that one gives no proofs.
    pub engine: &'static str,
    /// The proof.
    pub proof: Proof,
}

impl<Q: Ask> Answer<Q> {
    /// The run that shows a violation, ready to be explained.
    pub fn evidence<'a>(&'a self, source: &'a Source) -> Option<Evidence<'a>> {
        let (confirmed, witness) = (self.confirmed.as_ref()?, self.outcome.verdict.witness()?);
        let model = Q::WITNESSES_UNDER.unwrap_or(self.model);
        let machine = Machine { system: &confirmed.system, model, interlocked: self.interlocked };
        Some(Evidence {
            source,
            addresses: self.addresses.as_deref(),
            machine,
            run: &witness.run,
            replay: &confirmed.replay,
        })
    }

    /// The run that shows a violation, in the form that is stored in files.
    pub fn witness_file(&self, input: &Input) -> Option<WitnessFile> {
        let (evidence, witness) = (self.evidence(&input.source)?, self.outcome.verdict.witness()?);
        let origin = Origin {
            source: &input.source,
            language: input.language.name(),
            build: input.c.as_ref().map(|c| &c.build),
            instantiation: witness.instantiation,
            several: self.threads == Threads::Several,
            int_range: input.int_range.map(|range| (range.lo, range.hi)),
        };
        Some(WitnessFile::new(evidence.machine, origin, evidence.run, evidence.replay))
    }

    /// The answer, ready to be reported. `limits` is what the answer is limited to, in words. `witness` is
    /// the run in the form that is stored in files, if it was requested.
    pub fn finding<'a>(
        &'a self,
        input: &'a Input,
        limits: Option<&'a str>,
        witness: Option<&'a WitnessFile>,
    ) -> Finding<'a, Q> {
        Finding {
            source: &input.source,
            warnings: &input.warnings,
            model: self.model,
            outcome: &self.outcome,
            others: &self.others,
            limits,
            assumptions: input.assumptions(),
            circumstances: input.circumstances(),
            seconds: self.seconds,
            peak_memory_bytes: self.peak_memory_bytes,
            evidence: self.evidence(&input.source),
            shows: self.confirmed.as_ref().map(|confirmed| &confirmed.shows),
            witness,
            threads: self.threads_of_any(&input.program),
            threads_of: threads_of(&input.program),
            certified: self.certified,
            progress: self.progress.as_ref(),
            coverage: self.reach.as_ref().and_then(|reach| reach.statements.as_ref()),
            shortest: self.shortest.as_ref(),
            also_under_sc: self.also_under_sc,
        }
    }

    /// The instance counts of the program that has the run.
    pub fn instantiation(&self) -> Option<Instantiation> {
        Some(self.outcome.verdict.witness()?.instantiation)
    }

    /// How many threads take part in the run that shows a violation, or are mentioned by the violated property, if
    /// the number of threads is not fixed. In a program with identities, how many processes have one, if that is open.
    /// That is also what `--threads` sets there. Each of them counts in loops over all others, whether it takes a
    /// step or not.
    pub fn threads_of_any(&self, program: &Program) -> Option<usize> {
        let starts = program.templates.iter().filter(|template| template.start == Start::Initially);
        let any = match self.threads {
            Threads::Any => true,
            Threads::Declared | Threads::Several => {
                starts.into_iter().any(|template| template.count == Count::Any)
            }
            Threads::Each(_) => false,
        };
        let run = &self.outcome.verdict.witness().filter(|_| any)?.run;
        let mut threads: BTreeSet<ThreadId> = run.steps.iter().map(|step| step.thread).collect();
        if let (Some(confirmed), Some(identities)) = (&self.confirmed, &program.identities) {
            let system = &confirmed.system;
            let has_identity =
                |role| system.templates[system.roles[role].template].name == *identities.process;
            let all = system.instances.iter_enumerated().filter(|(_, instance)| has_identity(instance.role));
            if program.has_open_identities() {
                return Some(all.count());
            }
            threads.extend(all.map(|(thread, _)| thread));
        }
        if let Some(confirmed) = &self.confirmed
            && let Some(Violation::Property(index)) = confirmed.replay.violation
        {
            let property = &confirmed.system.properties[index];
            mentioned(&property.bad, confirmed.replay.states.last()?, &mut threads);
        }
        let threads = threads.len();
        // If the initial state is bad, no thread has to take a step.
        Some(threads).filter(|&threads| threads > 0)
    }
}

impl Answer<Safety> {
    /// Adds to what the answer says besides its verdict.
    pub(crate) fn add_note(&mut self, note: String) {
        self.progress.get_or_insert_default().holds.push(note);
    }
}

/// The process that [`Answer::threads_of_any`] counts, if it is only one.
fn threads_of(program: &Program) -> Option<&str> {
    let identities = program.identities.as_ref().filter(|_| program.has_open_identities())?;
    Some(&identities.process)
}

/// The threads that a condition is about in a state.
fn mentioned(condition: &Condition, state: &State, threads: &mut BTreeSet<ThreadId>) {
    match condition {
        Condition::Const(_) | Condition::Cell(_) => {}
        Condition::At(thread, _) | Condition::Register(thread, _) => _ = threads.insert(*thread),
        Condition::Count(places) => {
            threads.extend(state.threads.iter_enumerated().filter_map(|(id, thread)| {
                let there = |&(role, location)| thread.role == role && thread.is_at(location);
                places.iter().any(there).then_some(id)
            }));
        }
        Condition::Unary(_, a) => mentioned(a, state, threads),
        Condition::Binary(_, a, b) => {
            mentioned(a, state, threads);
            mentioned(b, state, threads);
        }
    }
}

impl Answer<Safety> {
    /// The proof of `safe`, in the form that is stored in files.
    pub fn certificate(&self, input: &Input) -> Option<Certificate> {
        let Proved { engine, proof } = self.proof.clone()?;
        Some(Certificate {
            file: input.source.name().to_owned(),
            language: input.language.name().to_owned(),
            hash: text_hash(&input.source.identity()),
            build: input.c.as_ref().map(|c| c.build.clone()),
            model: self.model,
            interlocked: self.interlocked,
            threads: self.threads,
            int_range: input.int_range.map(|range| (range.lo, range.hi)),
            constants: input.source.constants().iter().cloned().collect(),
            engine: engine.to_owned(),
            deadlocks: self.deadlocks == Deadlocks::Asked,
            proof,
            ranking: self.ranking.clone(),
            finish: self.finish.clone(),
            domains: self.domains.clone(),
            modulus: self.modulus,
        })
    }
}

impl Answer<Robustness> {
    /// How the events of the run are ordered, and the cycle among them.
    pub fn cycle(&self) -> Option<(&HappensBefore, &Cycle)> {
        let (happens_before, cycle) = &self.confirmed.as_ref()?.shows;
        Some((happens_before, cycle))
    }
}

impl Answer<TriangularRaces> {
    /// The race at the end of the run.
    pub fn race(&self) -> Option<Triangle> {
        self.confirmed.as_ref().map(|confirmed| confirmed.shows)
    }
}
