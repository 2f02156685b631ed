//! Several engines, one answer.
//!
//! First every engine that is made for such programs gets a taste of the question, one after the other: most programs are small, and then who answers does not depend on
//! timing. What is not small is asked of all engines side by side ([`Race`]): the first who knows the answer stops the others. An engine that had to make room for others tries once more
//! when it has the memory to itself, so that whatever one engine decides alone is decided here.
//!
//! Engines share what they learn: automata with their value invariants (through [`Budget::learn`]), the bounds they have established, which go into the answer if nobody knows more, and robustness. As soon
//! as one of them finds out that the program is robust, the question is asked anew for SC, where there is less to search and more engines know their way; a run under SC is one in which no store waits.
//!
//! Where `safe` is to be proved, it is no answer without a proof, and if that is to be checked, none before it was: a proof may be soon found and long in checking. Then robustness does not help: proofs are
//! about the memory model.

use crate::CheckError;
use crate::check::{Asked, Wanted, ask, outcome_of_robust};
use palisade_engine::{
    Budget, Engine, Exhausted, Note, Outcome, Progress, Proofs, Race, Reason, Stats, Suitability, Task,
    Verdict,
};
use palisade_memory::Model;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// How many states or configurations an engine may look at in its taste of the question, and how long it may take.
const TASTE: (u64, Duration) = (1 << 10, Duration::from_millis(100));
/// The same where only one engine is made for the program: it may use all jobs, which it may not side by side with others.
const MEAL: (u64, Duration) = (1 << 20, Duration::from_secs(2));
/// The same where `safe` is to be proved, for engines whose proofs are checked by visiting all states, which is quick and may be many more than the engine looks at.
const SIP: (u64, Duration) = (1 << 12, Duration::from_millis(100));
/// Where `safe` is to be proved, how long the engines that are made for the program and give proofs are then asked side by side before all others are asked, too.
const DUEL: Duration = Duration::from_millis(100);
/// What those who are made for the program may compute while a reluctant engine computes 1.
const WEIGHT: u32 = 4;
/// Engines recurse over programs as deeply as the main thread does.
const STACK: usize = 16 << 20;

/// The answer, and what the other engines had found out by then.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) asked: Asked,
    pub(crate) others: Vec<Outcome>,
}

/// The engines to ask about a task, the most promising first.
pub(crate) type Suited<'e> = dyn Fn(&Task<'_>) -> Vec<&'e dyn Engine> + 'e;

/// Asks the engines until one knows the answer or the budget runs out. If none knows, the first one says why. A bug that shows in any of them is the answer, whatever the others say.
pub(crate) fn ask_all(
    suited: &Suited<'_>,
    task: &Task<'_>,
    budget: &Budget,
    progress: &dyn Progress,
    wanted: Wanted,
) -> Result<Said, CheckError> {
    let said = ask_them(suited, task, budget, progress, wanted)?;
    let outcomes = || std::iter::once(&said.asked.outcome).chain(&said.others);
    let breaks = |outcome: &&Outcome| {
        matches!(outcome.verdict, Verdict::Unsafe(_) | Verdict::Unknown(Reason::Unshown(_)))
    };
    match (outcomes().find(|outcome| outcome.verdict == Verdict::Safe), outcomes().find(breaks)) {
        (Some(safe), Some(other)) => Err(CheckError::Disagreement { safe: safe.engine, other: other.engine }),
        _ => Ok(said),
    }
}

fn ask_them(
    suited: &Suited<'_>,
    task: &Task<'_>,
    budget: &Budget,
    progress: &dyn Progress,
    wanted: Wanted,
) -> Result<Said, CheckError> {
    let prove = wanted > Wanted::Answer;
    let suited_and_eager = budget.within(|| {
        let engines = suited(task);
        // Where there is one engine only, it is asked anyway.
        let eager = match engines.as_slice() {
            [] | [_] => Vec::new(),
            engines => engines.iter().map(|engine| engine.suits(task) > Suitability::Reluctant).collect(),
        };
        (engines, eager)
    });
    let (engines, mut eager): (_, Vec<bool>) = match suited_and_eager {
        Ok(suited) => suited,
        Err(what) => return Ok(Said { asked: nobody(Reason::Exhausted(what)), others: Vec::new() }),
    };
    match engines.as_slice() {
        [] => Ok(Said { asked: nobody(unsuited()), others: Vec::new() }),
        [engine] => {
            let lane = Lane::new(0, engine.name(), progress);
            Ok(Said { asked: ask(*engine, task, budget, budget, &lane, wanted)?, others: Vec::new() })
        }
        _ => {
            // One that argues is heard in any case.
            let argues = engines.iter().position(|engine| prove && engine.proofs() == Proofs::Argued);
            argues.into_iter().for_each(|seat| eager[seat] = true);
            let weight = |(engine, eager): (&&dyn Engine, &bool)| match prove {
                true if engine.proofs() > Proofs::None => WEIGHT,
                false if *eager => WEIGHT,
                _ => 1,
            };
            let weights: Vec<u32> = engines.iter().zip(&eager).map(weight).collect();
            let race = Race::new(&weights, budget.jobs(), !prove);
            let question = Question { engines: &engines, eager, task, budget, progress, wanted, race: &race };
            match question.answer()? {
                Course::Answered(said) => Ok(*said),
                Course::Robust(said) => {
                    let sc = Task { model: Model::Sc, ..task.clone() };
                    ask_all(suited, &sc, budget, progress, wanted)?.of_robust(task, said, budget)
                }
            }
        }
    }
}

fn unsuited() -> Reason {
    Reason::Unsupported("no engine can handle this program".to_owned())
}

fn nobody(why: Reason) -> Asked {
    let outcome = Outcome { verdict: Verdict::Unknown(why), engine: "auto", stats: Stats::new() };
    Asked { outcome, replayed: None, proof: None, certified: None }
}

/// How asking ends.
enum Course {
    Answered(Box<Said>),
    /// The program is robust: SC tells all. What was said before that was known.
    Robust(Vec<Option<Asked>>),
}

impl Said {
    /// What was said about the program under SC, as said about a memory model under which it is robust, besides what had been said before.
    fn of_robust(
        self,
        task: &Task<'_>,
        before: Vec<Option<Asked>>,
        budget: &Budget,
    ) -> Result<Said, CheckError> {
        let Said { asked, mut others } = self;
        let asked = asked.of_robust(task, budget)?;
        others.iter_mut().for_each(outcome_of_robust);
        for Asked { outcome, .. } in before.into_iter().flatten() {
            let again = |other: &Outcome| other.engine == outcome.engine;
            if !again(&asked.outcome) && !others.iter().any(again) {
                others.push(outcome);
            }
        }
        Ok(Said { asked, others })
    }
}

struct Question<'q> {
    engines: &'q [&'q dyn Engine],
    /// Which of them get a taste of the question.
    eager: Vec<bool>,
    task: &'q Task<'q>,
    budget: &'q Budget,
    progress: &'q dyn Progress,
    wanted: Wanted,
    race: &'q Race,
}

impl Question<'_> {
    fn answer(&self) -> Result<Course, CheckError> {
        let seats = self.engines.len();
        let mut said: Vec<Option<Asked>> = (0..seats).map(|_| None).collect();
        let mut open = Vec::new();
        for seat in (0..seats).filter(|&seat| self.eager[seat]) {
            let asked = self.ask(seat, &self.taste(seat))?;
            if self.knows(&asked) {
                return Ok(Course::Answered(told(said, seat, asked).into()));
            }
            if let Err(what) = self.budget.check(0) {
                said[seat] = Some(asked);
                // What ran out is not the taste.
                said.iter_mut().flatten().for_each(|asked| asked.ran_out_of(what));
                return Ok(Course::Answered(no_answer(said).into()));
            }
            if ran_out(&asked).is_some() {
                open.push(seat);
            }
            said[seat] = Some(asked);
            if self.race.is_robust() {
                return Ok(Course::Robust(said));
            }
        }
        let mut proving = open.clone();
        proving.retain(|&seat| self.proves() && self.engines[seat].proofs() > Proofs::None);
        if proving.len() > 1 {
            let budget = self.budget.clone().at_most(DUEL);
            if let Some((seat, asked)) = self.side_by_side(&proving, &budget, &mut said)? {
                return Ok(Course::Answered(told(said, seat, asked).into()));
            }
        }
        open.extend((0..seats).filter(|&seat| !self.eager[seat]));
        if let [seat] = open.as_slice() {
            let asked = self.ask(*seat, self.budget)?;
            return Ok(Course::Answered(self.last_word(said, *seat, asked).into()));
        }
        if let Some((seat, asked)) = self.side_by_side(&open, self.budget, &mut said)? {
            return Ok(Course::Answered(told(said, seat, asked).into()));
        }
        if self.race.is_robust() {
            return Ok(Course::Robust(said));
        }
        for seat in open.into_iter().filter(|&seat| self.race.was_evicted(seat)) {
            if self.budget.check(0).is_err() {
                break;
            }
            let asked = self.ask(seat, self.budget)?;
            if self.knows(&asked) {
                return Ok(Course::Answered(told(said, seat, asked).into()));
            }
            said[seat] = Some(asked);
        }
        Ok(Course::Answered(no_answer(said).into()))
    }

    fn taste(&self, seat: usize) -> Budget {
        let budget = self.race.budget(seat, self.budget);
        let (budget, (work, time)) = match self.eager.iter().filter(|eager| **eager).count() {
            _ if self.proves() && self.engines[seat].proofs() == Proofs::ByVisitingAll => (budget, SIP),
            1 if !self.proves() => (budget.with_jobs(self.budget.jobs()), MEAL),
            _ => (budget, TASTE),
        };
        budget.with_work(work).at_most(time)
    }

    /// All of these at once. Whoever knows the answer first, if anybody does; what the others say is kept.
    fn side_by_side(
        &self,
        open: &[usize],
        budget: &Budget,
        said: &mut [Option<Asked>],
    ) -> Result<Option<(usize, Asked)>, CheckError> {
        let first = Mutex::new(None);
        let results: Vec<(usize, Result<Asked, CheckError>)> = std::thread::scope(|scope| {
            let runners: Vec<_> = open
                .iter()
                .map(|&seat| {
                    let first = &first;
                    let run = move || {
                        // Also if the engine panics: nobody is to wait for it.
                        let _finish = Finish { race: self.race, seat, first };
                        let _entered = self.race.enter(seat);
                        let asked = self.ask(seat, &self.race.budget(seat, budget));
                        if !asked.as_ref().is_ok_and(|asked| !self.knows(asked)) {
                            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(seat);
                        }
                        (seat, asked)
                    };
                    std::thread::Builder::new()
                        .stack_size(STACK)
                        .spawn_scoped(scope, run)
                        .expect("the host lets a process have a thread per engine")
                })
                .collect();
            let ended = runners.into_iter().map(|runner| runner.join());
            // All have to end before a panic goes on.
            let ended: Vec<_> = ended.collect();
            ended
                .into_iter()
                .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut winner = None;
        for (seat, asked) in results {
            // A run that does not replay is a bug in Palisade, whatever the others say.
            let asked = asked?;
            match Some(seat) == first {
                true => winner = Some((seat, asked)),
                false => said[seat] = Some(asked),
            }
        }
        Ok(winner)
    }

    fn ask(&self, seat: usize, budget: &Budget) -> Result<Asked, CheckError> {
        let engine = self.engines[seat];
        let lane = Lane::new(seat, engine.name(), self.progress);
        // A proof by visiting all states is none before they were.
        let wanted = match engine.proofs() {
            Proofs::ByVisitingAll if self.proves() => Wanted::Checked,
            _ => self.wanted,
        };
        ask(engine, self.task, budget, self.budget, &lane, wanted)
    }

    fn proves(&self) -> bool {
        self.wanted > Wanted::Answer
    }

    /// Whether this is an answer to what was asked.
    fn knows(&self, asked: &Asked) -> bool {
        match asked.outcome.verdict {
            Verdict::Safe => !self.proves() || asked.proof.is_some(),
            Verdict::Unsafe(_) => true,
            Verdict::Unknown(_) => false,
        }
    }

    /// The word of the only engine that was left.
    fn last_word(&self, mut said: Vec<Option<Asked>>, seat: usize, asked: Asked) -> Said {
        if self.knows(&asked) {
            return told(said, seat, asked);
        }
        said[seat] = Some(asked);
        no_answer(said)
    }
}

/// Ends the race when the seat has an answer, or none can come any more.
struct Finish<'r> {
    race: &'r Race,
    seat: usize,
    first: &'r Mutex<Option<usize>>,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let first = *self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first == Some(self.seat) || std::thread::panicking() {
            self.race.finish();
        }
    }
}

impl Asked {
    /// If it ran out of something, it was of this.
    fn ran_out_of(&mut self, what: Exhausted) {
        if let Verdict::Unknown(Reason::Exhausted(ran_out) | Reason::Partly(ran_out, _)) =
            &mut self.outcome.verdict
        {
            *ran_out = what;
        }
    }
}

fn ran_out(asked: &Asked) -> Option<Exhausted> {
    match &asked.outcome.verdict {
        Verdict::Unknown(reason) => reason.what_ran_out(),
        Verdict::Safe | Verdict::Unsafe(_) => None,
    }
}

/// The answer of one engine. What engines say that were stopped counts too.
fn told(said: Vec<Option<Asked>>, seat: usize, asked: Asked) -> Said {
    let others = said.into_iter().enumerate().filter(|(other, _)| *other != seat);
    Said { asked, others: others.filter_map(|(_, asked)| Some(asked?.outcome)).collect() }
}

/// Nobody has an answer. If somebody knows it without proof, that is better than nothing; else the first engine that would have gone on says why, or else the first that has a reason at all.
fn no_answer(said: Vec<Option<Asked>>) -> Said {
    let mut said: Vec<Asked> = said.into_iter().flatten().collect();
    let would_go_on = |asked: &Asked| match ran_out(asked) {
        _ if asked.outcome.verdict == Verdict::Safe => -1,
        Some(Exhausted::Time(_) | Exhausted::Memory(_) | Exhausted::Stopped) => 0,
        None => 1,
        Some(Exhausted::Work(_)) => 2,
    };
    let Some(best) = (0..said.len()).min_by_key(|&index| would_go_on(&said[index])) else {
        return Said { asked: nobody(unsuited()), others: Vec::new() };
    };
    let mut asked = said.remove(best);
    // What another engine has established is worth more than that time is over.
    let found = |which: fn(&Reason) -> bool| said.iter().find_map(|other| found_out(&other.outcome, which));
    if let Verdict::Unknown(Reason::Exhausted(what)) = asked.outcome.verdict
        && let Some(reached) =
            found(Reason::is_bound).or_else(|| found(|reason| matches!(reason, Reason::Growing { .. })))
    {
        asked.outcome.verdict = Verdict::Unknown(Reason::exhausted(what, Some(reached.clone())));
    }
    Said { asked, others: said.into_iter().map(|asked| asked.outcome).collect() }
}

/// What an engine has found out, if it is of this kind.
fn found_out(outcome: &Outcome, which: fn(&Reason) -> bool) -> Option<&Reason> {
    let reason = match &outcome.verdict {
        Verdict::Unknown(Reason::Partly(_, reached)) => reached,
        Verdict::Unknown(reason) => reason,
        Verdict::Safe | Verdict::Unsafe(_) => return None,
    };
    which(reason).then_some(reason)
}

/// Tells which engine it is that tells, from its start to its end.
pub(crate) struct Lane<'p> {
    number: usize,
    engine: &'static str,
    progress: &'p dyn Progress,
}

impl<'p> Lane<'p> {
    pub(crate) fn new(number: usize, engine: &'static str, progress: &'p dyn Progress) -> Lane<'p> {
        let lane = Lane { number, engine, progress };
        lane.tell("starting", &Stats::new());
        lane
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        self.progress.ended(self.number);
    }
}

impl Progress for Lane<'_> {
    fn tell(&self, doing: &str, stats: &Stats) {
        self.progress.tell_of(self.number, self.engine, doing, stats);
    }

    fn note(&self, note: &Note) {
        let text = format!("{}: {}", self.engine, note.text);
        self.progress.note(&Note { text, places: note.places.clone() });
    }
}

#[cfg(test)]
pub(crate) mod tests;
