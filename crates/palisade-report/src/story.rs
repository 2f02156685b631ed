//! The steps of a run in words: what each did, where it is in the source, which are worth reporting, and
//! which overtook stores.
//!
//! Every rendering of a run (the table, the picture) uses these words.

use crate::explain::enumeration;
use crate::{forever, one_line};
use palisade_base::{Id, Span};
use palisade_memory::{Action, Effect, State};
use palisade_program::running::{CellId, CodeId, Condition, Edge, Instr, Location, RegId, System, ThreadId};
use palisade_program::written::END_LABEL;
use palisade_trace::Evidence;
use palisade_trace::{Links, links};
use std::collections::BTreeSet;

/// A run to be put into words.
pub(crate) struct Story<'a> {
    evidence: &'a Evidence<'a>,
    /// Which steps overtook which stores.
    pub(crate) links: Links,
    watched: BTreeSet<(CodeId, Location)>,
    /// The processes whose steps in a cycle are all local. These are shown.
    spinning: Vec<ThreadId>,
}

/// The places that properties refer to.
fn watched_places(system: &System) -> BTreeSet<(CodeId, Location)> {
    fn collect(condition: &Condition, system: &System, places: &mut BTreeSet<(CodeId, Location)>) {
        match condition {
            Condition::At(thread, location) => {
                places.insert((system.roles[system.instances[*thread].role].code, *location));
            }
            Condition::Count(counted) => {
                places.extend(counted.iter().map(|&(role, location)| (system.roles[role].code, location)));
            }
            Condition::Unary(_, a) => collect(a, system, places),
            Condition::Binary(_, a, b) => {
                collect(a, system, places);
                collect(b, system, places);
            }
            Condition::Const(_) | Condition::Cell(_) | Condition::Register(..) => {}
        }
    }
    let mut places = BTreeSet::new();
    system.properties.iter().for_each(|property| collect(&property.bad, system, &mut places));
    places
}

impl<'a> Story<'a> {
    /// The story of a run.
    pub(crate) fn new(evidence: &'a Evidence<'a>) -> Story<'a> {
        let links = links(evidence.run, evidence.replay);
        let watched = watched_places(evidence.machine.system);
        let mut story = Story { evidence, links, watched, spinning: Vec::new() };
        if let Some(from) = forever::first_step(evidence) {
            let cycle =
                || (from..evidence.run.steps.len()).map(|step| (step, evidence.run.steps[step].thread));
            let shown: BTreeSet<ThreadId> =
                cycle().filter(|&(step, _)| !story.is_local(step)).map(|(_, thread)| thread).collect();
            story.spinning =
                cycle().map(|(_, thread)| thread).filter(|thread| !shown.contains(thread)).collect();
        }
        story
    }

    /// `x=1`
    pub(crate) fn assignment(&self, cell: CellId, value: i64) -> String {
        format!("{}={}", self.evidence.machine.system.cells[cell].name, self.evidence.value(cell, value))
    }

    /// The cells that the run reads or writes.
    pub(crate) fn cells(&self) -> Vec<CellId> {
        let touched = self.evidence.replay.effects.iter().filter_map(|effect| match *effect {
            Effect::ReadMemory(cell, _)
            | Effect::ReadBuffer(cell, _)
            | Effect::Buffered(cell, _)
            | Effect::Wrote(cell, _)
            | Effect::Updated(cell, _)
            | Effect::Locked { cell, .. } => Some(cell),
            _ => None,
        });
        touched.collect::<BTreeSet<CellId>>().into_iter().collect()
    }

    /// The edge that a step takes, or `None` for an update.
    fn edge(&self, step: usize) -> Option<&Edge> {
        let taken = self.evidence.run.steps[step];
        let Action::Execute { edge, .. } = taken.action else { return None };
        let top = self.evidence.replay.states[step].threads[taken.thread].top();
        Some(&self.evidence.machine.system.codes[top.code].edges()[edge])
    }

    /// Whether a step touches nothing shared, opens or closes no atomic section, and does not lead to a
    /// watched place. Of a process that only takes such steps in a cycle, they count as more.
    pub(crate) fn is_local(&self, step: usize) -> bool {
        let matters =
            |edge: &Edge| matches!(edge.instr, Instr::AtomicBegin | Instr::AtomicEnd | Instr::Havoc(..));
        let repeated = forever::first_step(self.evidence).is_some_and(|from| step >= from);
        self.evidence.replay.effects[step] == Effect::Local
            && !(repeated && self.spinning.contains(&self.evidence.run.steps[step].thread))
            && !self.edge(step).is_some_and(matters)
            && self.reached(step).is_none()
    }

    /// The label of the watched place that a step reaches.
    fn reached(&self, step: usize) -> Option<&str> {
        let thread = self.evidence.run.steps[step].thread;
        let place = |state: &State| {
            let top = state.threads[thread].top();
            (top.code, top.location)
        };
        let (before, after) = (&self.evidence.replay.states[step], &self.evidence.replay.states[step + 1]);
        let (code, location) = place(after);
        if place(before) == (code, location) || !self.watched.contains(&(code, location)) {
            return None;
        }
        let code = &self.evidence.machine.system.codes[code];
        let label = code.labels.iter().find(|(_, at)| *at == location);
        Some(label.map_or(END_LABEL, |(label, _)| label.as_str()))
    }

    /// The line of the instruction. Empty for an update.
    pub(crate) fn line(&self, step: usize) -> String {
        let line = self.edge(step).and_then(|edge| self.evidence.source.line_number(edge.span));
        line.unwrap_or_default()
    }

    /// The row of the instruction in the source. `None` for an update.
    pub(crate) fn row(&self, step: usize) -> Option<u32> {
        self.edge(step).and_then(|edge| self.evidence.source.row(edge.span))
    }

    /// The instruction as written, or for an update, which store it belongs to.
    pub(crate) fn source(&self, step: usize) -> String {
        match (self.edge(step), self.links.store_of[step]) {
            (Some(edge), _) => one_line(self.evidence.source.slice(edge.span)),
            (None, Some(store)) => format!("(store of step {})", store + 1),
            (None, None) => "(pending store)".to_owned(),
        }
    }

    /// What a step read, wrote or did, and the place it led to if that place is watched.
    pub(crate) fn effect(&self, step: usize) -> String {
        let did = self.did(step);
        match self.reached(step) {
            Some(label) if did.is_empty() => format!("now at {label}"),
            Some(label) => format!("{did}, now at {label}"),
            None => did,
        }
    }

    fn did(&self, step: usize) -> String {
        let name = |cell: CellId| &self.evidence.machine.system.cells[cell].name;
        let is = |cell: CellId, value: i64| format!("{} = {}", name(cell), self.evidence.value(cell, value));
        match self.evidence.replay.effects[step] {
            Effect::Local => self.local_effect(step),
            Effect::ReadMemory(cell, value) => format!("read {}", is(cell, value)),
            Effect::ReadBuffer(cell, value) => format!("read {} (own)", is(cell, value)),
            Effect::Buffered(cell, value) => format!("store {}", is(cell, value)),
            Effect::Wrote(cell, value) => format!("write {}", is(cell, value)),
            Effect::Updated(cell, value) => format!("{} to memory", is(cell, value)),
            Effect::Locked { cell, read, wrote: Some(value) } => {
                let (read, value) = (self.evidence.value(cell, read), self.evidence.value(cell, value));
                format!("{}: {read} -> {value}", name(cell))
            }
            Effect::Locked { cell, read, wrote: None } => {
                format!("{}: {} kept", name(cell), self.evidence.value(cell, read))
            }
            Effect::Fenced => "fence".to_owned(),
            Effect::StoreFenced => "sfence".to_owned(),
            Effect::Spawned(thread) => format!("start {}", self.evidence.name(thread)),
            Effect::Faulted(fault) => crate::faults::fault(self.evidence, step, fault),
        }
    }

    fn local_effect(&self, step: usize) -> String {
        let Some(edge) = self.edge(step) else { return String::new() };
        let thread = self.evidence.run.steps[step].thread;
        let after = &self.evidence.replay.states[step + 1].threads[thread];
        let register = |register: RegId| {
            let declared = &self.evidence.machine.system.codes[after.top().code].registers[register];
            let value = after.top().registers[register.index()];
            // Temporaries introduced by the lowering mean nothing to a reader.
            if declared.is_temporary() {
                return String::new();
            }
            format!("{} = {}", declared.name, self.evidence.register_value(declared, value))
        };
        match &edge.instr {
            Instr::Assign(to, _) => register(*to),
            Instr::Havoc(to, ..) => format!("chose {}", after.top().registers[to.index()]),
            Instr::AtomicBegin => "atomic begins".to_owned(),
            Instr::AtomicEnd => "atomic ends".to_owned(),
            Instr::Call { code, .. } => format!("enter {}", self.evidence.machine.system.codes[*code].name),
            Instr::Return(_) => "return".to_owned(),
            _ => String::new(),
        }
    }

    /// A sentence for each step that overtook stores.
    pub(crate) fn notes(&self) -> Vec<String> {
        let steps = 0..self.links.overtakes.len();
        steps.filter_map(|step| Some(format!("* step {}: {}", step + 1, self.note(step)?))).collect()
    }

    /// A remark about a step that overtook stores.
    pub(crate) fn note(&self, step: usize) -> Option<String> {
        let stores = &self.links.overtakes[step];
        let numbers: Vec<String> = stores.iter().map(|store| (store + 1).to_string()).collect();
        let (stores, are) = match stores.len() {
            0 => return None,
            1 => ("its store from step", "is"),
            _ => ("its stores from steps", "are"),
        };
        let name = |cell: CellId| &self.evidence.machine.system.cells[cell].name;
        let process = self.evidence.name(self.evidence.run.steps[step].thread);
        let what = match self.evidence.replay.effects[step] {
            Effect::Updated(cell, _) => format!("{process}'s store to {} reaches memory", name(cell)),
            Effect::Locked { cell, .. } => format!("{process} changes {}", name(cell)),
            Effect::ReadMemory(cell, _) => format!("{process} reads {}", name(cell)),
            _ => format!("{process} continues"),
        };
        let before = enumeration(&numbers);
        Some(format!("{what} while {stores} {before} {are} still in the buffer"))
    }
}

/// A step in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepInWords {
    /// The file of its instruction, if it is not the main file.
    pub file: Option<String>,
    /// The line of its instruction, or `None` for a pending store that reaches memory.
    pub line: Option<u32>,
    /// The instruction as written.
    pub text: String,
    /// What it does.
    pub effect: String,
}

/// A step of a run, counted from 0, in words. The run may begin anywhere, so the result does not say which
/// store an update belongs to.
pub fn step_in_words(evidence: &Evidence<'_>, step: usize) -> StepInWords {
    let steps = evidence.run.steps.len();
    let links = Links { overtakes: vec![Vec::new(); steps], store_of: vec![None; steps] };
    let watched = watched_places(evidence.machine.system);
    let story = Story { evidence, links, watched, spinning: Vec::new() };
    let span = story.edge(step).map_or(Span::NONE, |edge| edge.span);
    StepInWords {
        file: evidence.source.other_file(span).map(str::to_owned),
        line: evidence.source.position(span).map(|position| position.line),
        text: story.source(step),
        effect: story.effect(step),
    }
}
