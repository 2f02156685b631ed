//! What runs reach: warnings about parts of a program that no run reaches, and `check --coverage`.
//!
//! *Problem.* `safe` says little about an assertion that no run reaches. Which statements, labels, waits,
//! ends and processes does no run reach?
//!
//! *Guarantee.* Everything reported holds for all runs under the memory model asked about:
//! - A part is *never reached* if no search that visited all states saw a step to it, or if it is absent from
//!   automata that do everything that runs do and more (`palisade_automata::Automata::coverage`).
//! - A part is *reached* if a search saw a step to it.
//! - Nothing is known about all other parts, and nothing is reported.
//!
//! *Cost.* A warning costs next to nothing: the engine that visits all states notes the steps it takes. If
//! another engine answers, up to [`PROBE_BUDGET`] states are visited. The automata are used if some engine
//! has built them.

use crate::Input;
use crate::answer::Answer;
use palisade_base::{Diagnostic, Span};
use palisade_engine::{Analysis, Coverage, Limits, Reason, Safety, Verdict};
use palisade_explore::Covered;
use palisade_program::Value;
use palisade_program::running::{
    BinaryOp, CodeId, Condition, Instr, Location, RoleId, System, TemplateId, binary, unary,
};
use palisade_program::written::{Block, Check, Program, PropertyKind, StmtKind};
use palisade_program::{Outline, Point, PointKind, outlines};
use palisade_report::CoverageNote;
use std::collections::BTreeMap;

/// Whether to find out what runs reach.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum CoverageWanted {
    /// No.
    #[default]
    No,
    /// As far as can be found out for a small share of the cost of the answer.
    IfCheap,
    /// Yes, as far as the limits allow.
    Yes,
}

/// How many states are visited to see what runs reach, if this was not asked for.
const PROBE_BUDGET: u64 = 1 << 10;

/// What is known about what runs reach.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The statements, if coverage was asked for.
    pub statements: Option<CoverageNote>,
    /// What no run reaches.
    unreached: Vec<Unreached>,
}

/// Something that no run reaches, and where it is.
#[derive(Clone, Debug)]
struct Unreached {
    what: What,
    span: Span,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum What {
    Label(String),
    Assert,
    /// What follows a wait.
    PastWait,
    /// The end, where a `final` is checked.
    Final,
    Process(String),
    Procedure(String),
}

impl Reach {
    /// What is known after an engine has answered the question of an analysis.
    pub(crate) fn after(analysis: &Analysis<'_>, wanted: CoverageWanted, limits: &Limits) -> Option<Reach> {
        // Each number of processes with identities has code of its own.
        if wanted == CoverageWanted::No || analysis.task.has_open_identities() {
            return None;
        }
        // If there is no time for it, it is left out: the answer matters more.
        let prepared = limits.within(|| (analysis.system(1), outlines(analysis.task.program)));
        let (system, outlines) = prepared.ok()?;
        let parts = Parts { program: analysis.task.program, system: &system, outlines: &outlines };
        let known = parts.known(analysis, wanted, limits);
        let mut reach = limits.clone().with_grace().within(|| parts.judge(&known)).ok()?;
        reach.statements = reach.statements.filter(|_| wanted == CoverageWanted::Yes);
        Some(reach)
    }
}

/// What is known about the steps of runs.
struct Known {
    /// Steps that some run takes.
    seen: Coverage,
    /// All steps that runs may take, if that is known. If the search visited everything, they are those that
    /// it saw.
    possible: Option<Coverage>,
    /// Why the search did not visit everything.
    missing: Option<Reason>,
}

impl Known {
    fn exactly(coverage: Coverage) -> Known {
        Known { seen: coverage.clone(), possible: Some(coverage), missing: None }
    }
}

/// A program with its running form, which have the same codes.
struct Parts<'a> {
    program: &'a Program,
    system: &'a System,
    outlines: &'a palisade_base::IdVec<CodeId, Outline>,
}

/// The codes of a template or procedure, whose statements are the same.
struct Body {
    codes: Vec<CodeId>,
    name: String,
    /// The heading.
    span: Span,
    kind: BodyKind,
}

#[derive(Clone, Copy)]
enum BodyKind {
    Process,
    Procedure,
}

impl Body {
    /// A body that is never entered. A procedure matters only if something in it would have been checked.
    fn unreached(self, points: &[Point]) -> Option<Unreached> {
        let is_checked = |point: &Point| matches!(point.kind, PointKind::Label(_) | PointKind::Assert);
        let what = match self.kind {
            BodyKind::Process => What::Process(self.name),
            BodyKind::Procedure if points.iter().any(is_checked) => What::Procedure(self.name),
            BodyKind::Procedure => return None,
        };
        Some(Unreached { what, span: self.span })
    }
}

/// Which parts of a body are reached, by the index of their point.
struct BodyReach {
    /// Whether a process is started, or a procedure called.
    entered: bool,
    starts: Vec<bool>,
    afters: Vec<bool>,
}

impl Parts<'_> {
    fn known(&self, analysis: &Analysis<'_>, wanted: CoverageWanted, limits: &Limits) -> Known {
        if let Some(exact) = analysis.coverage() {
            return Known::exactly(exact.clone());
        }
        let limits = match wanted {
            CoverageWanted::Yes => limits.clone(),
            _ => limits.clone().at_most_work(PROBE_BUDGET).with_jobs(1),
        };
        let is_enough = |coverage: &Coverage| self.are_all_reached(coverage);
        let (seen, missing) = match palisade_explore::coverage(analysis, &is_enough, &limits) {
            Ok(Covered { coverage, missing: None, .. }) => return Known::exactly(coverage),
            Ok(Covered { coverage, missing, .. }) => (coverage, missing),
            Err(reason) => (Coverage::new(self.system), Some(reason)),
        };
        let automata = match wanted {
            CoverageWanted::Yes => limits.within(|| analysis.automata(&limits).ok()).ok().flatten(),
            _ => analysis.known_automata(),
        };
        Known { seen, possible: automata.map(|automata| automata.coverage.clone()), missing }
    }

    fn judge(&self, known: &Known) -> Reach {
        let mut statements = CoverageNote::default();
        let mut unreached = Vec::new();
        for body in self.bodies() {
            let points = body.codes.first().map_or(&[][..], |&code| &self.outlines[code].points);
            let seen = self.reach(&body, &known.seen);
            let possible = known.possible.as_ref().map(|possible| self.reach(&body, possible));
            let cannot = |index: usize| possible.as_ref().is_some_and(|possible| !possible.starts[index]);
            let is_statement = |kind: &PointKind| !matches!(kind, PointKind::Label(_));
            for (index, point) in points.iter().enumerate().filter(|(_, point)| is_statement(&point.kind)) {
                statements.count += 1;
                match seen.starts[index] {
                    true => {}
                    false if cannot(index) => statements.never.push(point.span),
                    false => statements.open.push(point.span),
                }
            }
            let Some(possible) = possible else { continue };
            if !possible.entered {
                unreached.extend(body.unreached(points));
                continue;
            }
            // A place that must not be reached is not a place where something was to be checked.
            let is_bad = |point: &Point| match &point.kind {
                PointKind::Label(name) => {
                    body.codes.iter().any(|&code| self.is_forbidden(code, name.as_str()))
                }
                PointKind::Fail => true,
                PointKind::Assert | PointKind::Wait | PointKind::Other => false,
            };
            let leads_to_bad = |point: &Point| {
                let outline = &self.outlines[body.codes[0]];
                outline.at_once(point.after).into_iter().any(|index| is_bad(&points[index]))
            };
            let found = points.iter().enumerate().filter_map(|(index, point)| {
                let what = match (&point.kind, possible.starts[index]) {
                    _ if is_bad(point) => return None,
                    (PointKind::Label(name), false) => What::Label(name.to_string()),
                    (PointKind::Assert, false) => What::Assert,
                    (PointKind::Wait, true) if !possible.afters[index] && !leads_to_bad(point) => {
                        What::PastWait
                    }
                    _ => return None,
                };
                Some(Unreached { what, span: point.span })
            });
            unreached.extend(found);
        }
        if known.possible.as_ref().is_some_and(|possible| !possible.ends) {
            unreached.extend(self.finals().map(|span| Unreached { what: What::Final, span }));
        }
        unreached.retain(|part| !part.span.is_none());
        statements.missing = known.missing.as_ref().filter(|_| !statements.open.is_empty()).map(describe);
        Reach { statements: Some(statements), unreached }
    }

    fn bodies(&self) -> Vec<Body> {
        let processes = self.program.templates.iter().zip(0..).map(|(template, index)| {
            let roles = &self.system.templates[TemplateId(index)].roles;
            Body {
                codes: roles.iter().map(|&role| self.system.roles[role].code).collect(),
                name: template.name.to_string(),
                span: template.origin.0,
                kind: BodyKind::Process,
            }
        });
        let first = self.system.codes.len() - self.program.procedures.len();
        let procedures = self.program.procedures.iter().zip(first..).map(|(procedure, code)| Body {
            codes: vec![CodeId(code as u32)],
            name: procedure.name.to_string(),
            span: procedure.origin.0,
            kind: BodyKind::Procedure,
        });
        processes.chain(procedures).collect()
    }

    fn reach(&self, body: &Body, coverage: &Coverage) -> BodyReach {
        let points = body.codes.first().map_or(0, |&code| self.outlines[code].points.len());
        let mut reach =
            BodyReach { entered: false, starts: vec![false; points], afters: vec![false; points] };
        for &code in &body.codes {
            if !self.is_entered(code, coverage) {
                continue;
            }
            reach.entered = true;
            let outline = &self.outlines[code];
            let reached = outline.reached(
                |edge| coverage.is_taken(code, edge),
                |location| coverage.is_returned_to(code, location),
            );
            let is_reached = |location: Location| reached[location.0 as usize];
            for (index, point) in outline.points.iter().enumerate() {
                reach.starts[index] |= is_reached(point.start);
                reach.afters[index] |= is_reached(point.after);
            }
        }
        reach
    }

    /// Whether a thread runs a code.
    fn is_entered(&self, code: CodeId, coverage: &Coverage) -> bool {
        let mut roles = self.system.roles.iter_enumerated();
        if let Some((role, _)) = roles.find(|(_, role)| role.code == code) {
            return coverage.is_started(role);
        }
        self.system.codes.iter_enumerated().any(|(caller, within)| {
            let mut edges = within.edges().iter_enumerated();
            edges.any(|(id, edge)| {
                matches!(edge.instr, Instr::Call { code: called, .. } if called == code)
                    && coverage.is_taken(caller, id)
            })
        })
    }

    /// Whether every statement is reached, every wait is passed, and some run ends if the program says what
    /// holds at the end.
    fn are_all_reached(&self, coverage: &Coverage) -> bool {
        (coverage.ends || self.finals().next().is_none())
            && self.bodies().iter().all(|body| {
                let points = body.codes.first().map_or(&[][..], |&code| &self.outlines[code].points);
                let reach = self.reach(body, coverage);
                let passed = points
                    .iter()
                    .zip(&reach.afters)
                    .all(|(point, passed)| *passed || point.kind != PointKind::Wait);
                reach.entered && passed && reach.starts.iter().all(|&reached| reached)
            })
    }

    /// Whether a property forbids that any thread is at a label of a process.
    fn is_forbidden(&self, code: CodeId, label: &str) -> bool {
        let Some(location) = self.system.codes[code].label(label) else { return false };
        let is_there = |role: RoleId, at: Location| self.system.roles[role].code == code && at == location;
        self.system.properties.iter().filter(|property| property.kind == PropertyKind::Forbid).any(
            |property| {
                // With one thread there, and with many.
                [1, Value::from(u32::MAX)].into_iter().all(|count| {
                    let value = |condition: &Condition| match condition {
                        Condition::At(thread, at) if is_there(self.system.instances[*thread].role, *at) => {
                            Some(1)
                        }
                        Condition::Count(places) if places.iter().any(|&(role, at)| is_there(role, at)) => {
                            Some(count)
                        }
                        _ => None,
                    };
                    known_value(&property.bad, &value).is_some_and(|value| value != 0)
                })
            },
        )
    }

    fn finals(&self) -> impl Iterator<Item = Span> {
        let finals = self.program.properties.iter().filter(|property| property.kind == PropertyKind::Final);
        finals.map(|property| property.origin.0)
    }
}

impl Answer<Safety> {
    /// Warnings about what no run reaches, if the program is safe: the parts that `safe` says nothing about.
    pub fn vacuity(&self, input: &Input) -> Vec<Diagnostic> {
        let (Some(reach), Verdict::Holds) = (&self.reach, &self.outcome.verdict) else { return Vec::new() };
        let terms = input.terms(self.threads).map(|terms| format!(" {terms}")).unwrap_or_default();
        let run = format!("no run under {}{terms}", self.model.name().to_uppercase());
        if input.c.is_some() {
            return untested_assertions(input, &reach.unreached)
                .iter()
                .map(|part| part.warning(&run))
                .collect();
        }
        reach.unreached.iter().map(|part| part.warning(&run)).collect()
    }
}

/// The assertions of a C program that no thread reaches. A function that several threads call has a copy in each,
/// and what the translation checks, waits for and names is not the program's.
fn untested_assertions<'a>(input: &Input, unreached: &'a [Unreached]) -> Vec<&'a Unreached> {
    // All that is asserted at a place, and whether the program's own assertion is among it.
    let mut asserted: BTreeMap<Span, (usize, bool)> = BTreeMap::new();
    let mut blocks: Vec<&Block> = input.program.templates.iter().map(|template| &template.body).collect();
    while let Some(block) = blocks.pop() {
        for statement in block {
            if let StmtKind::Assert(_, check) = statement.kind {
                let (count, own) = asserted.entry(statement.origin.0).or_default();
                (*count, *own) = (*count + 1, *own || check == Check::Assertion);
            }
            blocks.extend(statement.kind.blocks());
        }
    }
    let assertions = || unreached.iter().filter(|part| matches!(part.what, What::Assert));
    let mut untested: Vec<&Unreached> = assertions()
        .filter(|part| {
            let missed = assertions().filter(|other| other.span == part.span).count();
            asserted.get(&part.span) == Some(&(missed, true))
        })
        .collect();
    untested.sort_by_key(|part| part.span);
    untested.dedup_by_key(|part| part.span);
    untested
}

impl Unreached {
    /// The warning. `run` is `no run`, and which runs these are.
    fn warning(&self, run: &str) -> Diagnostic {
        let (id, message, help) = match &self.what {
            What::Label(name) => (
                "never-reached",
                format!("{run} reaches the label `{name}`"),
                "a property about this label holds only because no process gets there",
            ),
            What::Assert => ("never-reached", format!("{run} reaches this assertion"), "it was never tested"),
            What::PastWait => {
                ("never-passed", format!("{run} gets past this wait"), "the statements after it never run")
            }
            What::Final => (
                "never-ends",
                format!("{run} ends, so this `final` is never checked"),
                "some process never reaches its end",
            ),
            What::Process(name) => {
                ("never-started", format!("{run} starts the process `{name}`"), "nothing in it ever runs")
            }
            What::Procedure(name) => {
                ("never-reached", format!("{run} calls the procedure `{name}`"), "nothing in it was tested")
            }
        };
        Diagnostic::warning(id, message).at(self.span, "").help(help)
    }
}

/// The value of a condition, if it follows from the values of some of its parts.
fn known_value(condition: &Condition, given: &dyn Fn(&Condition) -> Option<Value>) -> Option<Value> {
    let known = |condition: &Condition| known_value(condition, given);
    match condition {
        Condition::Const(value) => Some(*value),
        Condition::Unary(op, a) => unary(*op, known(a)?).ok(),
        Condition::Binary(BinaryOp::Or, a, b) => match (known(a), known(b)) {
            (Some(value), _) | (_, Some(value)) if value != 0 => Some(1),
            (a, b) => Some((a? != 0 || b? != 0).into()),
        },
        Condition::Binary(BinaryOp::And, a, b) => match (known(a), known(b)) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (a, b) => Some((a? != 0 && b? != 0).into()),
        },
        Condition::Binary(op, a, b) => binary(*op, known(a)?, known(b)?).ok(),
        other => given(other),
    }
}

/// Why a search did not visit everything.
fn describe(reason: &Reason) -> String {
    match (reason.what_ran_out(), reason.covered()) {
        (Some(what), _) => what.to_string(),
        (None, Some(covered)) => format!("only runs with {covered} were searched"),
        (None, None) => reason.to_string(),
    }
}
