//! The engine `lazy`: TSO reachability by a few searches under SC.
//!
//! *Source.* Bouajjani, Calin, Derevenetc and Meyer, "Lazy TSO reachability" (FASE 2015).
//!
//! *Method.* Algorithm 1. R is initially the program itself.
//! 1. Look for a bad state of R under SC.
//! 2. If there is none, ask the [oracle](oracle) for instructions that should be considered under TSO.
//! 3. If the oracle offers some, [extend](extend) R by them and repeat. If it offers none, R is robust, so
//!    the search under SC has covered everything.
//!
//! *Guarantee.*
//! - `unsafe` comes with a run: the run of R under SC, translated into a run of the program on the
//!   store-buffer machine.
//! - `safe` is exact: R reaches what the program reaches under TSO (Lemma 1), and it is robust (Lemma 5).
//! - Programs without loops are decided (Theorem 3). For them the extension removes the first instruction.
//! - Programs with loops are extended a few times without changing their loops (section 5). After that their
//!   loops are [unrolled](unroll) more and more (Theorem 4). That need not terminate, so it is bounded
//!   ([`palisade_engine::Options::unroll`]). When the bound is reached, the answer is `unknown`.
//!
//! *Differences from the paper.*
//! - Line 3 of Algorithm 1 has to search R, not P.
//! - All attacks are searched at once, so that a query to the oracle is one search.
//! - The first search gets only a share of the work. Everything it did not reach is in the next R as well.

pub(crate) mod draft;
pub(crate) mod extend;
pub(crate) mod oracle;
#[cfg(test)]
mod tests;
pub(crate) mod unroll;

use crate::attacks::find;
use crate::expand::Question;
use crate::search::Effort;
use draft::{Built, Draft};
use extend::{Variant, extend};
use oracle::{Sequence, sequences};
use palisade_engine::{
    Analysis, Engine, Exhausted, Limits, Note, ONLY_EXPLICIT_FINDS_RACES, Outcome, Reachability, Reached,
    Reason, Stats, Suitability, Verdict, Witness,
};
use palisade_memory::{Machine, Model};
use palisade_program::describe;
use palisade_program::running::CodeId;
use palisade_search::pool;
use palisade_trace::{Run, until_bad};
use rustc_hash::FxHashSet;

/// Lazy TSO reachability, on top of a search under SC.
#[derive(Clone, Copy)]
pub struct Lazy {
    /// The engine that searches under SC.
    pub sc: &'static dyn Reachability,
}

/// The number of states that the first search under SC of a series may visit.
const SHARE: u64 = 1 << 17;
/// How many times a program with loops is extended before its loops are unrolled.
const MAX_EXTENSIONS: usize = 4;
/// How many times a program without loops is extended. The programs tried so far needed a few dozen extensions at
/// most.
const MAX_DELETIONS: usize = 10_000;
/// The largest number of sequences per extension.
const MAX_SEQUENCES: usize = 16;

impl Engine for Lazy {
    fn name(&self) -> &'static str {
        "lazy"
    }

    fn suits(&self, analysis: &Analysis<'_>) -> Suitability {
        let fits = analysis.task.model == Model::Tso
            && !analysis.task.is_parameterized()
            && !analysis.structure().calls
            && !analysis.structure().has_plain
            && analysis.task.program.chosen_address().is_none();
        if fits { Suitability::Tries } else { Suitability::No }
    }

    fn check(&self, analysis: &Analysis<'_>, limits: &Limits) -> Outcome {
        let mut stats = Stats::new();
        let verdict = self.decide(analysis, limits, &mut stats);
        Outcome::new(self.name(), verdict, stats)
    }
}

/// How a series of extensions ended.
enum End {
    /// With a bad state.
    Bad(Run),
    /// With a robust program that has no bad state.
    Safe,
    /// With neither, for this reason.
    Open(Reason),
}

impl Lazy {
    fn decide(&self, analysis: &Analysis<'_>, limits: &Limits, stats: &mut Stats) -> Verdict {
        let unsupported = |why: &str| Verdict::Unknown(Reason::Unsupported(why.to_owned()));
        if analysis.task.model != Model::Tso {
            return unsupported("the lazy engine supports only TSO");
        }
        if analysis.task.is_parameterized() {
            return unsupported("the lazy engine needs a fixed number of processes");
        }
        if analysis.task.program.chosen_address().is_some() {
            return unsupported("the lazy engine does not support variables with chosen addresses");
        }
        let system = analysis.system(1);
        if analysis.structure().has_plain {
            return unsupported(ONLY_EXPLICIT_FINDS_RACES);
        }
        if analysis.structure().calls {
            return unsupported("the lazy engine does not support procedures");
        }
        stats.set("states", 0);
        stats.set("chain_steps", 0);
        stats.set("sc_queries", 0);
        stats.set("extensions", 0);
        let pool = pool(limits);
        let effort = Effort { limits, pool: pool.as_ref() };
        let original = analysis.machine(&system);
        let run = Series { lazy: self, analysis, original, effort };
        let found = |run| Verdict::Violated(Witness { instantiation: analysis.instantiation(1), run });
        if !unroll::is_cyclic(&system) {
            return match run.extend(None, Variant::Deleting, MAX_DELETIONS, stats) {
                End::Bad(run) => found(run),
                End::Safe => Verdict::Holds,
                End::Open(reason) => Verdict::Unknown(reason),
            };
        }
        let mut reached = match run.extend(None, Variant::Superset, MAX_EXTENSIONS, stats) {
            End::Bad(run) => return found(run),
            End::Safe => return Verdict::Holds,
            End::Open(reason) if reason.what_ran_out().is_some() || reason.bug().is_some() => {
                return Verdict::Unknown(reason);
            }
            End::Open(reason) => reason,
        };
        for rounds in 1..=analysis.task.options.unroll {
            match run.extend(Some(rounds), Variant::Deleting, MAX_DELETIONS, stats) {
                End::Bad(run) => return found(run),
                // Safe up to this many rounds.
                End::Safe => reached = Reason::Unrolled(rounds),
                End::Open(reason) => {
                    let what = reason.what_ran_out();
                    return Verdict::Unknown(
                        what.map_or(reason, |what| Reason::exhausted(what, Some(reached))),
                    );
                }
            }
        }
        Verdict::Unknown(reached)
    }
}

/// A series of extensions of one program.
struct Series<'s> {
    lazy: &'s Lazy,
    analysis: &'s Analysis<'s>,
    original: Machine<'s>,
    effort: Effort<'s>,
}

impl Series<'_> {
    /// Algorithm 1, with at most this many extensions. `rounds` is how often loops are unrolled, if they are.
    fn extend(&self, rounds: Option<usize>, variant: Variant, most: usize, stats: &mut Stats) -> End {
        let system = self.original.system;
        let mut draft = rounds.map_or_else(|| Draft::new(system), |rounds| unroll::unroll(system, rounds));
        let mut known: FxHashSet<(CodeId, Vec<usize>)> = FxHashSet::default();
        for round in 0.. {
            let built = draft.build();
            let share = if round == 0 { SHARE } else { u64::MAX };
            let searched = match self.search(&draft, &built, share, stats) {
                Ok(Some(run)) => return End::Bad(run),
                Ok(None) => true,
                Err(Reason::Exhausted(Exhausted::Work(_))) if share == SHARE => false,
                Err(reason) => return End::Open(reason),
            };
            if round >= most {
                let text = format!("extending the program {round} times did not decide the question");
                return End::Open(Reason::Observed(text));
            }
            let found = match self.ask(&built, &known, stats) {
                Ok(found) => found,
                Err(reason) => return End::Open(reason),
            };
            let Some(found) = found else {
                if searched {
                    return End::Safe;
                }
                // Robust: the search under SC decides, once it has finished. Other engines may be better at
                // it.
                if round == 0 && rounds.is_none() && self.analysis.facts().learn_robust() {
                    return End::Open(Reason::Robust);
                }
                return match self.search(&draft, &built, u64::MAX, stats) {
                    Ok(Some(run)) => End::Bad(run),
                    Ok(None) => End::Safe,
                    Err(reason) => End::Open(reason),
                };
            };
            let sequences = match variant {
                Variant::Superset => found.as_slice(),
                Variant::Deleting => &found[..found.len().min(1)],
            };
            let mut extended = false;
            for sequence in sequences.iter().take(MAX_SEQUENCES) {
                let path = numbers(&built, sequence);
                let note = delay_note(&draft, &built, sequence.code, &path);
                if extend(&mut draft, sequence.code, &path, variant) {
                    stats.add("extensions", 1);
                    self.effort.limits.note(&note);
                    known.insert((sequence.code, path));
                    extended = true;
                }
            }
            if !extended {
                let text = "no new sequence of instructions to delay was found";
                return End::Open(Reason::Observed(text.to_owned()));
            }
        }
        unreachable!("the rounds are bounded")
    }

    /// Searches R under SC. Returns a run of the program if a bad state is found.
    fn search(
        &self,
        draft: &Draft,
        built: &Built,
        share: u64,
        stats: &mut Stats,
    ) -> Result<Option<Run>, Reason> {
        stats.add("sc_queries", 1);
        let machine = Machine { system: &built.system, model: Model::Sc, ..self.original };
        let limits = match share {
            u64::MAX => self.effort.limits.clone(),
            share => self.effort.limits.clone().with_work(share),
        };
        let mut counted = Stats::new();
        let found = self.lazy.sc.reach(machine, &self.analysis.task.options, &limits, &mut counted);
        for name in ["states", "chain_steps"] {
            stats.add(name, counted.get(name).unwrap_or(0));
        }
        match found {
            Reached::Nothing => Ok(None),
            // A bounded result about R under SC says little about the program under TSO.
            Reached::Unknown(reason) if reason.is_bound() => {
                let why =
                    "there are more started processes or nested calls than the search under SC explores";
                Err(Reason::Unsupported(why.to_owned()))
            }
            Reached::Unknown(reason) => Err(reason),
            Reached::Bad(run) => {
                let run = draft.back(built, &run, self.original);
                let run = run.expect("a run of the extended program is one of the program");
                Ok(Some(until_bad(self.original, run)))
            }
        }
    }

    /// Asks the oracle. Returns `None` if R is robust, otherwise sequences that are not known yet.
    fn ask(
        &self,
        built: &Built,
        known: &FxHashSet<(CodeId, Vec<usize>)>,
        stats: &mut Stats,
    ) -> Result<Option<Vec<Sequence>>, Reason> {
        stats.add("sc_queries", 1);
        let mut system = built.system.clone();
        system.properties.clear();
        let machine = Machine { system: &system, ..self.original };
        let mut counted = Stats::new();
        let is_new = |sequence: &Sequence| !known.contains(&(sequence.code, numbers(built, sequence)));
        let mut old = false;
        let found = find(
            Question::Cycle,
            machine,
            &self.effort,
            &mut counted,
            |search, cycles| {
                old = true;
                if sequences(search, &cycles).iter().any(is_new) { cycles } else { Vec::new() }
            },
            |search, cycles| sequences(search, &cycles),
        );
        // A cycle without a run is not a bad state without a run.
        let found = found.map_err(|reason| match reason {
            Reason::Unshown(why) => Reason::Observed(why),
            reason => reason,
        })?;
        stats.add("states", counted.get("states").unwrap_or(0));
        let found = found.map(|mut found| {
            found.retain(is_new);
            found
        });
        // There are cycles, but they give no new sequence: R is not robust, and there is nothing to extend.
        Ok(if found.is_none() && old { Some(Vec::new()) } else { found })
    }
}

/// A note on the stores that are delayed. It lists the instructions of the program itself, not those that
/// earlier extensions added.
fn delay_note(draft: &Draft, built: &Built, code: CodeId, path: &[usize]) -> Note {
    let edges = path.iter().map(|&number| draft.code(code).edge(number));
    let own_edges: Vec<_> =
        edges.filter(|(_, tag)| !tag.only_if_faulting && *tag != draft::Tag::NOTHING).collect();
    let (system, own) = (&built.system, &built.system.codes[code]);
    let instrs: Vec<String> =
        own_edges.iter().map(|(edge, _)| describe::instruction(system, own, &edge.instr)).collect();
    Note {
        text: format!("{} delays its stores in: {}", own.name, instrs.join("; ")),
        places: own_edges.iter().map(|(edge, _)| edge.span).collect(),
    }
}

/// The numbers of a sequence's edges in the draft.
fn numbers(built: &Built, sequence: &Sequence) -> Vec<usize> {
    use palisade_base::Id;
    sequence.edges.iter().map(|edge| built.numbers[sequence.code][edge.index()]).collect()
}
