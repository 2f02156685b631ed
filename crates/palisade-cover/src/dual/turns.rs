//! The exact search and attempts at shorter proofs, in turns.
//!
//! The exact search goes first. It is the only one that is needed for a verdict. Whenever it has used its share of the
//! work, each kind of attempt gets its own, and then the shares grow. So all of them together do a few times as much work
//! as the one that answers.

use super::element::Element;
use super::guessing::Guessing;
use super::lifted::Lifted;
use super::proof;
use super::setup::Setup;
use super::tracked::{Attempt, Tracked};
use super::visited::{NoVisit, Visited};
use super::witness::{Program, Unfolded};
use crate::bad::{Bad, bad_combinations};
use crate::chain::{chain, count};
use crate::small::small;
use crate::spawns::{Doubt, Spawning};
use crate::start;
use crate::values::{Unanswered, ValueSets};
use palisade_base::IdVec;
use palisade_engine::{Analysis, Exhausted, Limits, Pace, Proof, Reason, Stats, Verdict, Witness};
use palisade_memory::Model;
use palisade_program::running::{CellId, System};
use palisade_wqo::{Closed, NodeId, Search, SearchEnd};
use rustc_hash::FxHashSet;

/// The number of configurations the exact search generates before it tries proofs that follow few processes.
/// After each round both get four times as much.
const FIRST_SHARE: u64 = 4096;

/// Attempts that need preparation begin with this share. Smaller searches are over before they pay.
const LIFTED_FROM: u64 = 16 * FIRST_SHARE;

/// Lifting gets this many times the share: where it succeeds, the exact search is far from its end.
const FOR_LIFTING: u64 = 4;

/// A visit may have this many times as many configurations as the share: they take less time than those of a search.
const FOR_VISITS: u64 = 4;

/// With more configurations than this, nothing is guessed.
const MAX_VISITED: u64 = 1 << 20;

/// A question about a program in which the values of some cells stay apart.
pub(crate) struct Asked<'a> {
    pub analysis: &'a Analysis<'a>,
    pub limits: &'a Limits,
    pub most_sets: usize,
    pub apart: &'a FxHashSet<CellId>,
}

impl Asked<'_> {
    /// The answer, and the proof of `safe` if one is wanted.
    pub fn answer(
        &self,
        stats: &mut Stats,
        proof: Option<&mut Option<Proof>>,
    ) -> Result<Verdict, Unanswered> {
        let prepared = start::prepared(self.analysis, self.limits)?;
        match self.search(&prepared, prepared.starts.into(), stats, proof) {
            Err(Unanswered::Unreal(doubt)) => {
                let prepared = start::drained(self.analysis, self.limits)?;
                match self.search(&prepared, Spawning::Drained, stats, None)? {
                    Verdict::Holds => Err(Unanswered::Unreal(doubt)),
                    verdict => Ok(verdict),
                }
            }
            answer => answer,
        }
    }

    fn search(
        &self,
        prepared: &start::Prepared,
        spawning: Spawning,
        stats: &mut Stats,
        proof: Option<&mut Option<Proof>>,
    ) -> Result<Verdict, Unanswered> {
        let Asked { analysis, limits, .. } = *self;
        if analysis.task.model == Model::Pso {
            let reason = "load buffers are for TSO and SC, not for PSO".into();
            return Err(Reason::Unsupported(reason).into());
        }
        let system = analysis.system(1);
        let start::Prepared { automata, merged, .. } = prepared;
        let sets = ValueSets::with_at_most(merged.automata.values.iter().map(IdVec::len), self.most_sets);
        let setup = Setup::with_sets(merged, analysis.task.model, spawning, self.apart.clone(), sets);
        let combinations = bad_combinations(&system, &merged.automata).map_err(Reason::Unsupported)?;
        let mut bad = Vec::new();
        for combination in &combinations {
            setup.bad_elements(combination, &mut |element, _| bad.push(element));
        }
        let mut search = Search::new(&setup);
        bad.iter().for_each(|element| search.add(element.clone()));
        let program = Program { automata, merged, setup: &setup, model: analysis.task.model };
        let mut turns = Turns {
            limits,
            runs: Runs { analysis, system: &system, program, combinations: &combinations },
            may_be_pending: prepared.may_be_pending(&combinations),
            tracked: Tracked::new(&setup, bad.clone()),
            lifted: Lifted::new(&setup, &bad),
            guessing: FromVisit::NotYet,
            bad,
            search,
            stats,
            parts: proof.is_some().then(|| proof::Writer::new(&setup)),
            pace: Pace::new(),
        };
        let verdict = turns.take()?;
        // Proofs may have needed more sets.
        turns.count()?;
        if let (Some(proof), Some(parts), Verdict::Holds) = (proof, turns.parts, &verdict) {
            *proof = Some(parts.proof(merged));
        }
        Ok(verdict)
    }
}

/// What it takes to turn an initial element into a run.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'a> {
    analysis: &'a Analysis<'a>,
    system: &'a System,
    pub program: Program<'a>,
    combinations: &'a [Bad],
}

impl Runs<'_> {
    /// The run from an initial element to a bad one, found by a search with this setup.
    pub fn unfold(
        &self,
        setup: &Setup,
        search: &Search<'_, Setup>,
        initial: NodeId,
    ) -> Result<Witness, Reason> {
        let program = Program { setup, ..self.program };
        let witness = chain(setup, search, self.combinations, initial).and_then(|chain| {
            let unfolded = Unfolded::new(&program, &search.element(initial), &chain.links, &chain.bad);
            unfolded.timeline(program.automata).witness(self.analysis, self.system)
        });
        witness.ok_or_else(|| Reason::Bug("a bad state was found, but no run to it".into()))
    }
}

/// The searches.
struct Turns<'a, 's> {
    limits: &'a Limits,
    runs: Runs<'a>,
    /// Whether bad elements may be unreal because stores are delayed.
    may_be_pending: bool,
    bad: Vec<Element>,
    search: Search<'s, Setup>,
    tracked: Option<Tracked<'s>>,
    lifted: Option<Lifted<'s>>,
    guessing: FromVisit<'a>,
    stats: &'a mut Stats,
    /// The proof, if one is wanted.
    parts: Option<proof::Writer<'s>>,
    pace: Pace,
}

impl Turns<'_, '_> {
    fn take(&mut self) -> Result<Verdict, Unanswered> {
        let mut share = FIRST_SHARE;
        loop {
            let mut verdict = self.search_exactly(share)?;
            if verdict.is_none() {
                verdict = self.follow_few(share)?;
            }
            if verdict.is_none() && share >= LIFTED_FROM {
                verdict = self.lift(FOR_LIFTING * share)?;
            }
            if verdict.is_none() && share >= LIFTED_FROM {
                verdict = self.guess(share)?;
            }
            if let Some(verdict) = verdict {
                return Ok(verdict);
            }
            share *= 4;
        }
    }

    /// The number of elements generated by each kind of attempt.
    fn elsewhere(&self) -> [u64; 3] {
        let tracked = self.tracked.as_ref().map_or(0, |tracked| tracked.generated);
        let lifted = self.lifted.as_ref().map_or(0, Lifted::generated);
        let guessing = if let FromVisit::Guessing(search) = &self.guessing { search.generated() } else { 0 };
        [tracked, lifted, guessing]
    }

    /// The memory that attempts keep between their turns.
    fn bytes_elsewhere(&self) -> [u64; 2] {
        let lifted = self.lifted.as_ref().map_or(0, Lifted::bytes);
        let guessing = if let FromVisit::Guessing(search) = &self.guessing { search.bytes() } else { 0 };
        [lifted, guessing]
    }

    fn count(&mut self) -> Result<(), Unanswered> {
        let elsewhere = self.elsewhere().iter().sum();
        count(&self.search, elsewhere, &self.runs.program.merged.automata, self.stats);
        self.runs.program.setup.sets.overflown().map_or(Ok(()), |cell| Err(Unanswered::Overflow(cell)))
    }

    /// Continues the exact search up to this many elements.
    fn search_exactly(&mut self, share: u64) -> Result<Option<Verdict>, Unanswered> {
        let elsewhere: u64 = self.elsewhere().iter().sum();
        let kept: u64 = self.bytes_elsewhere().iter().sum();
        let alone =
            self.tracked.is_none() && self.lifted.is_none() && matches!(self.guessing, FromVisit::Not);
        let Turns { limits, runs, search, stats, pace, .. } = self;
        let mut exhausted = None;
        let mut expanded = 0u64;
        let found = search.run(|search| {
            expanded += 1;
            if expanded.is_multiple_of(256) {
                count(search, elsewhere, &runs.program.merged.automata, stats);
                limits.report("searching backward with load buffers", stats);
                let work = limits.check_work(search.generated() + elsewhere);
                exhausted = limits.check(search.bytes() + kept).and(work).err();
            } else {
                exhausted = limits.check_often(pace, || search.bytes() + kept).err();
            }
            let within = alone || search.generated() < share;
            exhausted.is_none() && within && runs.program.setup.sets.overflown().is_none()
        });
        self.count()?;
        match (found, exhausted) {
            (_, Some(exhausted)) => Err(exhausted.into()),
            (None, None) => Ok(None),
            (Some(SearchEnd::Closed), _) => {
                if let Some(parts) = &mut self.parts {
                    let closed = self.search.closed();
                    let elements = small(closed, &self.bad, self.search.generated(), self.limits)?;
                    parts.add(None, &elements);
                }
                Ok(Some(Verdict::Holds))
            }
            (Some(SearchEnd::Initial(_)), _) if !self.runs.program.setup.exact => {
                Err(Unanswered::Unreal(Doubt::Early))
            }
            (Some(SearchEnd::Initial(node)), _) => {
                match self.runs.unfold(self.runs.program.setup, &self.search, node) {
                    Err(Reason::Bug(_)) if self.may_be_pending => Err(Unanswered::Unreal(Doubt::Pending)),
                    witness => Ok(Some(Verdict::Violated(witness?))),
                }
            }
        }
    }

    /// Tries to prove the program by following few processes.
    fn follow_few(&mut self, share: u64) -> Result<Option<Verdict>, Unanswered> {
        let [_, lifted, guessing] = self.elsewhere();
        let kept = self.bytes_elsewhere().iter().sum();
        let Turns { limits, search, tracked, stats, parts, .. } = self;
        let Some(attempts) = tracked else { return Ok(None) };
        let others = Others { generated: lifted + guessing, bytes: kept };
        let mut check = checks(limits, search, stats, "following few processes with load buffers", others);
        let mut keep = |tracked: &[u32], closed: Closed<'_, Setup>, bad: &[Element], work: u64| {
            if let Some(parts) = parts {
                parts.add(Some(tracked.to_vec()), &small(closed, bad, work, limits)?);
            }
            Ok(())
        };
        let attempt = attempts.attempt(share, &mut check, &mut keep);
        drop(check);
        self.count()?;
        match attempt {
            Attempt::Proved => return Ok(Some(Verdict::Holds)),
            Attempt::Unfinished => {}
            Attempt::Hopeless => self.tracked = None,
            Attempt::Exhausted(exhausted) => return Err(exhausted.into()),
        }
        Ok(None)
    }

    /// Tries to prove the program by lifting.
    fn lift(&mut self, work: u64) -> Result<Option<Verdict>, Unanswered> {
        let [tracked, _, guessing] = self.elsewhere();
        let [_, kept] = self.bytes_elsewhere();
        let Turns { limits, runs, bad, search, lifted, stats, parts, .. } = self;
        let Some(attempts) = lifted else { return Ok(None) };
        let others = Others { generated: tracked + guessing, bytes: kept };
        let mut check = checks(limits, search, stats, "lifting proofs of few processes to all", others);
        let mut violated = None;
        let attempt = attempts.attempt(&runs.program, work, &mut check, &mut |setup, search, node| {
            violated = Some(runs.unfold(setup, search, node));
        });
        drop(check);
        if let (Attempt::Proved, Some(parts)) = (&attempt, parts) {
            let (closed, found) = attempts.closed();
            parts.add(None, &small(closed, bad, found, limits)?);
        }
        self.count()?;
        if let Some(witness) = violated {
            return Ok(Some(Verdict::Violated(witness?)));
        }
        match attempt {
            Attempt::Proved => return Ok(Some(Verdict::Holds)),
            Attempt::Unfinished => {}
            Attempt::Hopeless => self.lifted = None,
            Attempt::Exhausted(exhausted) => return Err(exhausted.into()),
        }
        Ok(None)
    }

    /// Tries to prove the program with guesses from a visit.
    fn guess(&mut self, share: u64) -> Result<Option<Verdict>, Unanswered> {
        let [tracked, lifted, _] = self.elsewhere();
        let [kept, _] = self.bytes_elsewhere();
        let Turns { limits, runs, bad, search, stats, parts, .. } = self;
        if let FromVisit::NotYet = self.guessing {
            let setup = runs.program.setup;
            let most = (FOR_VISITS * share).min(MAX_VISITED) as usize;
            let has_room = |bytes| limits.check(search.bytes() + kept + bytes).is_ok();
            let visited = limits.within(|| Visited::new(setup, bad, most, &has_room))?;
            self.guessing = match visited {
                Ok(visited) => FromVisit::Guessing(Box::new(Guessing::from_visit(setup, bad, visited))),
                Err(NoVisit::TooLarge) if FOR_VISITS * share < MAX_VISITED => FromVisit::NotYet,
                Err(NoVisit::TooLarge | NoVisit::Useless) => FromVisit::Not,
            };
        }
        let FromVisit::Guessing(attempts) = &mut self.guessing else { return Ok(None) };
        let what = "searching backward with guesses from a visit";
        let others = Others { generated: tracked + lifted, bytes: kept };
        let mut check = checks(limits, search, stats, what, others);
        let mut violated = None;
        let most = attempts.generated() + share;
        let attempt = attempts.attempt(&runs.program, most, &mut check, &mut |setup, search, node| {
            violated = Some(runs.unfold(setup, search, node));
        });
        drop(check);
        if let (Attempt::Proved, Some(parts)) = (&attempt, parts) {
            parts.add(None, &small(attempts.closed(), bad, attempts.generated(), limits)?);
        }
        self.count()?;
        if let Some(witness) = violated {
            return Ok(Some(Verdict::Violated(witness?)));
        }
        match attempt {
            Attempt::Proved => return Ok(Some(Verdict::Holds)),
            Attempt::Unfinished => {}
            Attempt::Hopeless => self.guessing = FromVisit::Not,
            Attempt::Exhausted(exhausted) => return Err(exhausted.into()),
        }
        Ok(None)
    }
}

/// The attempt with guesses from a visit.
enum FromVisit<'s> {
    /// Nothing was visited yet, or not all.
    NotYet,
    Guessing(Box<Guessing<'s>>),
    /// There is too much to visit, or guesses do not help.
    Not,
}

/// What the attempts that have no turn have generated, and the memory that they keep.
struct Others {
    generated: u64,
    bytes: u64,
}

/// What the limits say to a number of elements generated by attempts, and to the memory they take.
fn checks<'c>(
    limits: &'c Limits,
    search: &'c Search<'_, Setup>,
    stats: &'c mut Stats,
    what: &'static str,
    others: Others,
) -> impl FnMut(u64, u64) -> Result<(), Exhausted> + 'c {
    let (generated, bytes) = (search.generated() + others.generated, search.bytes() + others.bytes);
    move |here, more| {
        stats.set("configurations", generated + here);
        limits.report(what, stats);
        limits.check(bytes + more).and(limits.check_work(generated + here))
    }
}
