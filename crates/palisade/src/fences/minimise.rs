//! Which fences and orders of a C program are unnecessary.
//!
//! *Problem.* A program is correct. Which of its full fences, `seq_cst` stores and exchanges can be weaker, one by one
//! and together, so that it stays correct?
//!
//! *Method.* All of them are made weaker at once. Then a cheapest set that has to become strong again is searched for
//! ([`mod@palisade_fences`]). All others can be weakened together.
//!
//! *Guarantee.*
//! - Each weaker program that is called correct was compiled from its text and checked like any other, for everything
//!   that was established about the original program. That holds for each change alone, and for all of them together.
//! - The set that stays is cheapest: for each of its members there is a run that becomes possible without it, while the
//!   others stay. If the program that was found is not confirmed, the set to weaken is grown one change at a time
//!   instead, with a check each time. Then it is maximal, but another may save more, and [`Minimised::is_cheapest`] is
//!   false.
//!
//! Nothing weaker than release and acquire is ever tried (see `c/weaker.rs`).

use super::confirming::Confirming;
use super::oracle::Engines;
use super::write::WriteError;
use super::{Changes, FencesError, FencesOptions, Goal, search_at};
use crate::c::{
    self, FilePatch, Rendering, Unsettled, Weakening, check_input, robust_input, settle, state_finish,
};
use crate::{AskError, Deadlocks, Input, Refused, RobustOptions};
use palisade_engine::{Limits, Verdict};
use palisade_fences::{
    AccessAt, Change, End, FenceKind, Fencing, PlaceId, Placement, Places, Stronger, Wanted, Which,
};
use palisade_memory::Model;
use palisade_report::{Alone, AsItIs, MinimisedFinding, ReportedWeakening, explain};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

/// Reads the program with these changes.
pub type Compile<'a> = &'a dyn Fn(&[FilePatch]) -> Result<Box<Input>, Refused>;

/// What is known about a program.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Judged {
    /// It is right, and this was also established.
    Right(Vec<String>),
    /// It is wrong, and how.
    Wrong(String),
    /// It is not known.
    Unknown(String),
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Minimised {
    /// The options of the question.
    pub options: FencesOptions,
    /// Whether the program is right as it is. Otherwise there is nothing else.
    pub as_it_is: AsItIs,
    /// All fences and orders that could be weaker, in the order of the text.
    pub weakenings: Vec<Weakening>,
    /// What is known about each.
    pub known: Vec<Known>,
    /// Whether nothing else that can go together saves more.
    pub is_cheapest: bool,
    /// How many orders matter to the compiler only.
    pub for_the_compiler: usize,
    /// How many programs were checked.
    pub checks: u64,
    /// Time taken.
    pub seconds: f64,
}

/// What is known about a fence or an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// What happens if it alone is weaker.
    pub alone: Alone,
    /// Whether it goes with the others.
    pub together: bool,
    /// What goes wrong if it goes with the others, if that is known.
    pub needed: Option<String>,
    /// What it costs.
    pub cost: u64,
}

/// Finds the fences and orders of a C program that are unnecessary.
pub fn minimise(
    input: &Input,
    options: &FencesOptions,
    compile: Compile<'_>,
    limits: &Limits,
) -> Result<Minimised, FencesError> {
    let start = Instant::now();
    let mut search = Search { input, options, compile, limits, established: Vec::new(), checks: 0 };
    let as_it_is = match search.judge(input.clone())? {
        Judged::Right(notes) => {
            search.established = notes;
            AsItIs::Right
        }
        Judged::Wrong(why) => AsItIs::Wrong(why),
        Judged::Unknown(why) => AsItIs::Unknown(why),
    };
    if as_it_is != AsItIs::Right {
        return Ok(Minimised {
            options: options.clone(),
            as_it_is,
            weakenings: Vec::new(),
            known: Vec::new(),
            is_cheapest: false,
            for_the_compiler: 0,
            checks: search.checks,
            seconds: start.elapsed().as_secs_f64(),
        });
    }
    let (weakenings, base) = search.weaker_program()?;
    let (weakenings, found) = match base {
        Some(base) => search.together(weakenings, base)?,
        None => (Vec::new(), None),
    };
    let mut known = Vec::new();
    for (index, weakening) in weakenings.iter().enumerate() {
        let alone = match search.judge_without(&[weakening])? {
            Judged::Right(_) => Alone::Unnecessary,
            Judged::Wrong(why) => Alone::Needed(why),
            Judged::Unknown(why) => Alone::Unknown(why),
        };
        let (together, needed) = match &found {
            Some(found) => (found[index].is_none(), found[index].clone().flatten()),
            None => (false, None),
        };
        known.push(Known { alone, together, needed, cost: search.cost(weakening) });
    }
    if found.is_none() {
        search.grow(&weakenings, &mut known)?;
    }
    Ok(Minimised {
        options: options.clone(),
        as_it_is,
        is_cheapest: found.is_some(),
        for_the_compiler: c::for_the_compiler(&input.source, &weakenings),
        weakenings,
        known,
        checks: search.checks,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// For each of the weakenings: `None` if it goes; otherwise why it stays, if that is known.
type Together = Vec<Option<Option<String>>>;

struct Search<'a> {
    input: &'a Input,
    options: &'a FencesOptions,
    compile: Compile<'a>,
    limits: &'a Limits,
    /// What was established about the program as it is.
    established: Vec<String>,
    checks: u64,
}

impl Search<'_> {
    fn cost(&self, weakening: &Weakening) -> u64 {
        let model = self.options.check.model;
        let strong = self.options.costs.of(weakening.change, model, true);
        // What is left of it under PSO orders stores, and costs something too.
        let left = match (model, weakening.change) {
            (Model::Pso, Change::Fence) => self.options.costs.of(Change::StoreFence, model, true),
            (Model::Pso, _) => self.options.costs.of(Change::Release, model, true),
            _ => 0,
        };
        strong.saturating_sub(left).max(1)
    }

    /// The whole question about a program.
    fn judge(&mut self, mut input: Input) -> Result<Judged, AskError> {
        self.checks += 1;
        let check = &self.options.check;
        Ok(match self.options.goal {
            Goal::Safety => {
                let answer = check_input(&mut input, check, self.limits)?;
                match &answer.outcome.verdict {
                    Verdict::Holds => {
                        let notes = answer.progress.map_or_else(Vec::new, |progress| progress.holds);
                        match self.established.iter().find(|note| !notes.contains(note)) {
                            None => Judged::Right(notes),
                            Some(note) => {
                                Judged::Unknown(format!("it is not known whether this holds: {note}"))
                            }
                        }
                    }
                    Verdict::Violated(_) => Judged::Wrong(
                        answer.evidence(&input.source).as_ref().map_or_else(String::new, explain),
                    ),
                    Verdict::Unknown(reason) => Judged::Unknown(reason.to_string()),
                }
            }
            Goal::Robustness => {
                let options = RobustOptions {
                    model: check.model,
                    interlocked: check.interlocked,
                    threads: check.threads,
                    engine: check.engine.clone(),
                    options: check.options.clone(),
                };
                let answer = robust_input(&mut input, &options, self.limits)?;
                match &answer.outcome.verdict {
                    Verdict::Holds => Judged::Right(Vec::new()),
                    Verdict::Violated(_) => Judged::Wrong("it is no longer robust".to_owned()),
                    Verdict::Unknown(reason) => Judged::Unknown(reason.to_string()),
                }
            }
        })
    }

    /// The whole question about the program with some weaker orders.
    fn judge_without(&mut self, weakenings: &[&Weakening]) -> Result<Judged, AskError> {
        match (self.compile)(&c::weakened(&self.input.source, weakenings, Rendering::Final)) {
            Ok(program) => self.judge(*program),
            Err(_) => Ok(Judged::Unknown("the weaker program does not compile".to_owned())),
        }
    }

    /// All that could be weaker and compiles so, and the program with all of it.
    fn weaker_program(&mut self) -> Result<(Vec<Weakening>, Option<Box<Input>>), AskError> {
        let source = &self.input.source;
        let mut all = c::weakenings(source, &self.input.program, self.options.check.model);
        for attempt in 0..2 {
            if all.is_empty() {
                break;
            }
            let together: Vec<&Weakening> = all.iter().collect();
            if let Ok(base) = (self.compile)(&c::weakened(source, &together, Rendering::Probe)) {
                return Ok((all, Some(base)));
            }
            if attempt == 0 {
                all.retain(|one| (self.compile)(&c::weakened(source, &[one], Rendering::Probe)).is_ok());
            }
        }
        Ok((Vec::new(), None))
    }

    /// Finds what can go together. Orders that no thread of the program uses are left out. A store that a fence
    /// follows anyway is not a place to search at, and goes.
    fn together(
        &mut self,
        weakenings: Vec<Weakening>,
        mut base: Box<Input>,
    ) -> Result<(Vec<Weakening>, Option<Together>), FencesError> {
        let start = Instant::now();
        let mut options =
            FencesOptions { which: Which::Cheapest, changes: Changes::Accesses, ..self.options.clone() };
        let check = options.check.clone();
        let model = if options.goal == Goal::Robustness { Model::Sc } else { check.model };
        let unsettled = settle(&mut base, model, check.threads, self.limits)?;
        if options.goal == Goal::Safety {
            options.check.deadlocks = state_finish(&mut base).unwrap_or(Deadlocks::IfStated);
        }
        let base = Input { program: base.program.without_plain(), ..*base };
        let all: Vec<&Weakening> = weakenings.iter().collect();
        let ranges = c::places_after(&all);
        let owners: RefCell<BTreeMap<AccessAt, usize>> = RefCell::default();
        let stronger = |access: AccessAt| {
            let (file, replaced) = c::replacement(&base.source, access, FenceKind::Full)?;
            let is_here = |index: &usize| {
                let range = &ranges[*index];
                all[*index].file == file
                    && range.start <= replaced.range.start
                    && replaced.range.end <= range.end
            };
            let owner = (0..all.len()).find(is_here)?;
            owners.borrow_mut().insert(access, owner);
            Some(Stronger { full: all[owner].change, weak: None })
        };
        let wanted = Wanted {
            placement: Placement::AfterWrites,
            per: palisade_fences::Per::Source,
            store_fences: check.model == Model::Pso,
            can_write: &|_| false,
            stronger: &stronger,
            allows: &|_| true,
        };
        let within = self.limits.within(|| Places::new(&base.program, &wanted));
        let places = within.map_err(FencesError::Exhausted)?;
        let owners = owners.into_inner();
        let owner = |place: PlaceId| places.places()[place].stronger().map(|access| owners[&access]);
        let owner = |place: PlaceId| owner(place).expect("all places are accesses");
        let statements = c::statements(&self.input.program);
        let is_executed = |index: usize| {
            statements.iter().any(|span| {
                let other = all[index].statement;
                span.start < other.end && other.start < span.end
            })
        };
        let is_used = |index: usize| owners.values().any(|&owner| owner == index) || is_executed(index);
        let used: Vec<usize> = (0..all.len()).filter(|&index| is_used(index)).collect();
        let kept_only: Vec<Weakening> = used.iter().map(|&index| weakenings[index].clone()).collect();
        if unsettled.as_ref().is_some_and(|unsettled| matches!(unsettled, Unsettled::Exceeded(_))) {
            return Ok((kept_only, None));
        }
        let going = |fencing: &Fencing| -> Vec<&Weakening> {
            let stays = |index: usize| {
                fencing.iter_enumerated().any(|(place, kind)| kind.is_some() && owner(place) == index)
            };
            used.iter().filter(|&&index| !stays(index)).map(|&index| all[index]).collect()
        };
        let this = RefCell::new(&mut *self);
        let confirm = |_: &Places, fencing: &Fencing, _: &Limits| {
            let going = going(fencing);
            if going.is_empty() {
                return Ok(());
            }
            match this.borrow_mut().judge_without(&going).map_err(WriteError::Ask)? {
                Judged::Right(_) => Ok(()),
                Judged::Wrong(_) | Judged::Unknown(_) => Err(WriteError::NotRight),
            }
        };
        let limits = this.borrow().limits;
        let costs: Vec<u64> = all.iter().map(|weakening| this.borrow().cost(weakening)).collect();
        let weight = |place: PlaceId, _: FenceKind| costs[owner(place)];
        let engines = Engines { goal: options.goal, options: &options.check, undecided: None };
        let oracle = Confirming::new(engines, None, Some(&confirm));
        let answer = search_at(&base, &options, places.clone(), &weight, &oracle, start, limits);
        let answer = answer?;
        // Without anything strong, nothing was confirmed yet.
        let is_found = matches!(answer.findings.end, End::Complete)
            && answer.findings.accepted
            && answer.findings.sets.len() == 1;
        if !is_found {
            return Ok((kept_only, None));
        }
        let set = &answer.findings.sets[0];
        if set.fences.is_empty() {
            let everything: Vec<&Weakening> = used.iter().map(|&index| all[index]).collect();
            if !matches!(this.borrow_mut().judge_without(&everything)?, Judged::Right(_)) {
                return Ok((kept_only, None));
            }
        }
        let finding = answer.finding(&base, None);
        let mut together: Together = vec![None; used.len()];
        for (fence, reported) in set.fences.iter().zip(&finding.sets[0]) {
            let index = used.iter().position(|&index| index == owner(fence.place)).expect("places are used");
            together[index] = Some(Some(reported.shows()));
        }
        Ok((kept_only, Some(together)))
    }

    /// Weakens what can be weaker, one after the other, the most expensive first.
    fn grow(&mut self, weakenings: &[Weakening], known: &mut [Known]) -> Result<(), AskError> {
        let mut order: Vec<usize> =
            (0..known.len()).filter(|&index| known[index].alone == Alone::Unnecessary).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(known[index].cost));
        let mut gone: Vec<usize> = Vec::new();
        for index in order {
            gone.push(index);
            let all: Vec<&Weakening> = gone.iter().map(|&index| &weakenings[index]).collect();
            let is_right = all.len() == 1
                || match self.judge_without(&all)? {
                    Judged::Right(_) => true,
                    Judged::Wrong(why) => {
                        known[index].needed = Some(why);
                        false
                    }
                    Judged::Unknown(_) => false,
                };
            if !is_right {
                gone.pop();
            }
            known[index].together = is_right;
        }
        Ok(())
    }
}

impl Minimised {
    /// The main file, and others that change: all that goes together is weaker. `None` if nothing goes.
    pub fn patches(&self, input: &Input) -> Option<Vec<FilePatch>> {
        let going: Vec<&Weakening> = self
            .weakenings
            .iter()
            .zip(&self.known)
            .filter(|(_, known)| known.together)
            .map(|(one, _)| one)
            .collect();
        (!going.is_empty()).then(|| c::weakened(&input.source, &going, Rendering::Final))
    }

    /// The answer, ready to be reported.
    pub fn finding<'a>(&'a self, input: &'a Input) -> MinimisedFinding<'a> {
        let reported = |(weakening, known): (&'a Weakening, &'a Known)| ReportedWeakening {
            span: weakening.statement,
            change: weakening.change,
            becomes: &weakening.becomes,
            cost: known.cost,
            alone: &known.alone,
            together: known.together,
            needed: known.needed.as_deref(),
        };
        MinimisedFinding {
            source: &input.source,
            model: self.options.check.model,
            goal: self.options.goal.name(),
            warnings: &input.warnings,
            as_it_is: &self.as_it_is,
            weakenings: self.weakenings.iter().zip(&self.known).map(reported).collect(),
            is_cheapest: self.is_cheapest,
            for_the_compiler: self.for_the_compiler,
            checks: self.checks,
            seconds: self.seconds,
        }
    }
}
