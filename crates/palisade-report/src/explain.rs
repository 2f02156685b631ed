//! Why a state is bad, in a sentence.
//!
//! A condition that holds is explained by the facts that make it true: both sides of a conjunction, the first
//! true side of a disjunction, and so on. The facts are where processes are, and what cells and registers
//! hold.

use crate::{explain_cycle, faults, forever, progress, whole_line};
use palisade_base::{Id, Span, limits};
use palisade_memory::{Action, State, Violation};
use palisade_program::Value;
use palisade_program::running::{
    BinaryOp, CellId, Condition, Location, PropertyKind, RoleId, ThreadId, UnaryOp, binary, unary,
};
use palisade_program::written::END_LABEL;
use palisade_trace::Evidence;
use palisade_trace::HappensBefore;
use std::fmt::Write;
use std::sync::Arc;

/// What is bad about the last state of a run, e.g. `P(0) and P(1) are both at cs (line 15: forbid …)`.
pub fn explain(evidence: &Evidence<'_>) -> String {
    match evidence.replay.violation {
        None => {
            let happens_before = HappensBefore::of(evidence.machine, evidence.run, evidence.replay);
            match happens_before.cycle() {
                Some(cycle) => explain_cycle(evidence, &happens_before, &cycle),
                None => "nothing is wrong with the run".to_owned(),
            }
        }
        Some(Violation::Fault(thread, fault)) => {
            let last = evidence.run.steps.len().checked_sub(1);
            let words = last.map_or_else(|| fault.to_string(), |step| faults::fault(evidence, step, fault));
            let mut text = format!("{words} in {}", evidence.name(thread));
            if let Some(place) = last.and_then(|last| place(evidence, last)) {
                write!(text, " at {place}").expect("writing to a string");
            }
            text
        }
        Some(Violation::Property(index)) => {
            let property = &evidence.machine.system.properties[index];
            let mut explainer = Explainer { evidence, state: evidence.last_state(), facts: Vec::new() };
            explainer.explain(&property.bad, true);
            let facts = sentence(explainer.facts);
            let when = match property.kind {
                PropertyKind::Forbid => "",
                PropertyKind::Final => "at the end, ",
            };
            let written = match evidence.source.line_in_words(property.span) {
                Some(line) => format!(" ({line}: {})", quote(evidence.source.slice(property.span))),
                None => String::new(),
            };
            let facts = if facts.is_empty() { "the property is violated".to_owned() } else { facts };
            format!("{when}{facts}{written}")
        }
        Some(Violation::Race(first, second, cell)) => race(evidence, first, second, cell),
        Some(Violation::Deadlock) => progress::deadlock(evidence),
        Some(Violation::Unreachable(goal)) => progress::out_of_reach(evidence, goal),
        Some(Violation::Forever { property, from }) => forever::explain(evidence, property, from),
    }
}

/// The place of the last instruction of a run, such as `line 12: assert(x == 0)`.
pub fn last_place(evidence: &Evidence<'_>) -> Option<String> {
    place(evidence, evidence.run.steps.len().checked_sub(1)?)
}

/// The error at the end of a run, if it ends with one.
pub fn last_fault(evidence: &Evidence<'_>) -> Option<String> {
    let Some(Violation::Fault(_, fault)) = evidence.replay.violation else { return None };
    Some(faults::fault(evidence, evidence.run.steps.len().checked_sub(1)?, fault))
}

/// What two threads in a data race are about to do, or what the second one has done.
fn race(evidence: &Evidence<'_>, first: ThreadId, second: ThreadId, cell: CellId) -> String {
    let at = |id: ThreadId, span: Span| {
        let place = match evidence.source.line_in_words(span) {
            Some(line) => format!(" ({})", quoted(line, evidence.source.slice(span))),
            None => String::new(),
        };
        format!("{}{place}", evidence.name(id))
    };
    let about_to =
        |id: ThreadId| at(id, palisade_trace::next_span(evidence.machine, evidence.last_state(), id));
    let name = &evidence.machine.system.cells[cell].name;
    match palisade_trace::pending_in_race(
        evidence.machine,
        evidence.run,
        evidence.replay,
        (first, second),
        cell,
    ) {
        Some(stored) => format!(
            "data race on {name}: {} has stored to it, and {} accesses it before that store reaches memory",
            at(second, stored),
            about_to(first)
        ),
        None => format!(
            "data race on {name}: {} and {} are about to access it at the same time",
            about_to(first),
            about_to(second)
        ),
    }
}

/// `line 12: assert(x == 0)` for the instruction of a step.
fn place(evidence: &Evidence<'_>, step: usize) -> Option<String> {
    let Action::Execute { edge, .. } = evidence.run.steps[step].action else { return None };
    let thread = &evidence.replay.states[step].threads[evidence.run.steps[step].thread];
    let span = evidence.machine.system.codes[thread.top().code].edges()[edge].span;
    let line = evidence.source.line_in_words(span)?;
    Some(quoted(line, evidence.source.slice(span)))
}

/// `line 12: x = 1`, or only the line if its text is not known.
fn quoted(line: String, text: &str) -> String {
    match quote(text) {
        text if text.is_empty() => line,
        text => format!("{line}: {text}"),
    }
}

/// A property or instruction on one line. All of it: without its end, a property may mean the opposite.
pub(crate) fn quote(text: &str) -> String {
    whole_line(text).trim_end_matches([';', ' ']).to_owned()
}

/// A fact about a state.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Fact {
    /// These processes are at the place with this name.
    At(Vec<String>, String),
    /// Anything else.
    Other(String),
}

struct Explainer<'a> {
    evidence: &'a Evidence<'a>,
    state: &'a State,
    facts: Vec<Fact>,
}

impl Explainer<'_> {
    /// Collects what makes the condition true (or false, if `holds` is false).
    fn explain(&mut self, condition: &Condition, holds: bool) {
        use Condition as C;
        match condition {
            C::Unary(UnaryOp::Not, inner) => self.explain(inner, !holds),
            C::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                let both_matter = (*op == BinaryOp::And) == holds;
                if both_matter {
                    self.explain(a, holds);
                    self.explain(b, holds);
                } else {
                    let first = self.is_true(a) == holds;
                    self.explain(if first { a } else { b }, holds);
                }
            }
            C::At(thread, location) => {
                let (name, place) = (self.evidence.name(*thread), self.place_of_thread(*thread, *location));
                if holds {
                    self.add(Fact::At(vec![name], place));
                } else {
                    self.add(Fact::Other(format!("{name} is not at {place}")));
                }
            }
            C::Binary(BinaryOp::Ge | BinaryOp::Gt | BinaryOp::Eq, a, _)
                if holds && matches!(**a, C::Count(_)) =>
            {
                self.counted(a);
            }
            _ => self.values(condition),
        }
    }

    /// Collects the processes that a count counts.
    fn counted(&mut self, count: &Condition) {
        let Condition::Count(places) = count else { return };
        let mut names = Vec::new();
        for (id, thread) in self.state.threads.iter_enumerated() {
            limits::checkpoint();
            if places.iter().any(|&(role, location)| thread.role == role && thread.is_at(location)) {
                names.push(self.evidence.name(id));
            }
        }
        let place = places.first().map(|&(role, location)| self.place_of_role(role, location));
        match place {
            Some(place) if names.is_empty() => self.add(Fact::Other(format!("no process is at {place}"))),
            Some(place) => self.add(Fact::At(names, place)),
            None => self.add(Fact::Other("no process is counted".to_owned())),
        }
    }

    /// Collects the values of everything that the condition looks at.
    fn values(&mut self, condition: &Condition) {
        use Condition as C;
        match condition {
            C::Const(_) => {}
            C::Cell(cell) => {
                let name = &self.evidence.machine.system.cells[*cell].name;
                let value = self.state.memory[*cell];
                let words = self
                    .evidence
                    .machine
                    .system
                    .value_name(self.evidence.machine.system.cells[*cell].ty.domain, value);
                let words = words.map_or_else(|| value.to_string(), str::to_owned);
                self.add(Fact::Other(format!("{name} = {words}")));
            }
            C::Register(thread, register) => {
                let code = self.evidence.machine.system.role_code(self.state.threads[*thread].role);
                let value = self.state.threads[*thread].frames[0].registers[register.index()];
                let declared = &code.registers[*register];
                let (process, value) =
                    (self.evidence.name(*thread), self.evidence.register_value(declared, value));
                self.add(Fact::Other(format!("{process}.{} = {value}", declared.name)));
            }
            C::At(..) => self.explain(condition, self.is_true(condition)),
            C::Count(_) => self.counted(condition),
            C::Unary(_, a) => self.values(a),
            C::Binary(_, a, b) => {
                self.values(a);
                self.values(b);
            }
        }
    }

    /// Adds a fact, once. Processes at the same place are reported together.
    fn add(&mut self, fact: Fact) {
        if let Fact::At(names, place) = &fact {
            for known in &mut self.facts {
                if let Fact::At(others, other_place) = known
                    && other_place == place
                {
                    others.extend(
                        names.iter().filter(|name| !others.contains(name)).cloned().collect::<Vec<_>>(),
                    );
                    return;
                }
            }
        }
        if !self.facts.contains(&fact) {
            self.facts.push(fact);
        }
    }

    fn place_of_thread(&self, thread: ThreadId, location: Location) -> String {
        self.place_of_role(self.state.threads[thread].role, location)
    }

    fn place_of_role(&self, role: RoleId, location: Location) -> String {
        let code = self.evidence.machine.system.role_code(role);
        match code.labels.iter().find(|(_, at)| *at == location) {
            Some((label, _)) => label.clone(),
            None if location == code.exit => END_LABEL.to_owned(),
            None => format!("location {}", location.0),
        }
    }

    fn is_true(&self, condition: &Condition) -> bool {
        self.value(condition).is_some_and(|value| value != 0)
    }

    /// The value of a condition, for choosing what to report. The verdict never depends on it.
    fn value(&self, condition: &Condition) -> Option<Value> {
        use Condition as C;
        Some(match condition {
            C::Const(value) => *value,
            C::Cell(cell) => self.state.memory[*cell],
            C::Register(thread, register) => {
                self.state.threads[*thread].frames[0].registers[register.index()]
            }
            C::At(thread, location) => self.state.threads[*thread].is_at(*location).into(),
            C::Count(places) => {
                let there = |thread: &&Arc<palisade_memory::Thread>| {
                    places.iter().any(|&(role, location)| thread.role == role && thread.is_at(location))
                };
                self.state.threads.iter().filter(there).count() as Value
            }
            C::Unary(op, a) => unary(*op, self.value(a)?).ok()?,
            C::Binary(BinaryOp::And, a, b) => (self.is_true(a) && self.is_true(b)).into(),
            C::Binary(BinaryOp::Or, a, b) => (self.is_true(a) || self.is_true(b)).into(),
            C::Binary(op, a, b) => binary(*op, self.value(a)?, self.value(b)?).ok()?,
        })
    }
}

/// The facts as one sentence without a full stop.
fn sentence(facts: Vec<Fact>) -> String {
    let sentences: Vec<String> = facts
        .into_iter()
        .map(|fact| match fact {
            Fact::Other(text) => text,
            Fact::At(names, place) => {
                let verb = match names.len() {
                    1 => "is",
                    2 => "are both",
                    _ => "are all",
                };
                format!("{} {verb} at {place}", enumeration(&names))
            }
        })
        .collect();
    enumeration(&sentences)
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn enumeration(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
