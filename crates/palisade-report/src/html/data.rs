//! What the page's script needs to step through a run: names, the first state, and the changes in each step.
//!
//! States are stored as differences, so that the page of a long run stays small. The script reconstructs
//! them.

use super::idle::Cast;
use crate::forever;
use crate::story::Story;
use palisade_base::{Id, Span};
use palisade_memory::{Action, Effect, Pending, State};
use palisade_program::running::{CellId, ThreadId};
use palisade_trace::Evidence;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The data of a run.
pub(super) fn data(evidence: &Evidence<'_>, story: &Story<'_>, cast: &Cast) -> Value {
    let teller = Data { evidence, story, cells: story.cells(), stores: stores(evidence, story) };
    let threads: Vec<ThreadId> = evidence.last_state().threads.ids().collect();
    let first = &evidence.replay.states[0];
    let names: Vec<String> = threads.iter().map(|&thread| evidence.name(thread)).collect();
    let cells: Vec<&str> =
        teller.cells.iter().map(|&cell| evidence.machine.system.cells[cell].name.as_str()).collect();
    let memory: Vec<Value> =
        teller.cells.iter().map(|&cell| teller.value(cell, first.memory[cell])).collect();
    let start: Vec<Value> = threads.iter().map(|&thread| teller.thread(0, thread)).collect();
    let steps: Vec<Value> = (0..evidence.run.steps.len()).map(|step| teller.step(step)).collect();
    json!({
        "threads": names,
        "cells": cells,
        "others": evidence.machine.system.cells.len() - teller.cells.len(),
        "memory": memory,
        "start": start,
        "steps": steps,
        "cycle": forever::first_step(evidence),
        "idle": cast.idle.iter().map(|thread| thread.index()).collect::<Vec<_>>(),
    })
}

/// For each state and thread, the steps of the stores in its buffer (`None` for barriers).
fn stores(evidence: &Evidence<'_>, story: &Story<'_>) -> Vec<Vec<Vec<Option<usize>>>> {
    let mut now: Vec<Vec<Option<usize>>> = vec![Vec::new(); evidence.last_state().threads.len()];
    let mut all = vec![now.clone()];
    for (index, step) in evidence.run.steps.iter().enumerate() {
        let buffer = &evidence.replay.states[index + 1].threads[step.thread].buffer;
        let mine = &mut now[step.thread.index()];
        let known = std::mem::take(mine);
        let mut known: Vec<usize> = known.into_iter().flatten().collect();
        if matches!(evidence.replay.effects[index], Effect::Buffered(..)) {
            known.push(index);
        }
        if matches!(step.action, Action::Update { .. }) {
            known.retain(|&store| Some(store) != story.links.store_of[index]);
        }
        let mut known = known.into_iter();
        *mine = buffer
            .iter()
            .map(|entry| match entry {
                Pending::Store(..) => known.next(),
                Pending::Barrier => None,
            })
            .collect();
        all.push(now.clone());
    }
    all
}

struct Data<'a> {
    evidence: &'a Evidence<'a>,
    story: &'a Story<'a>,
    cells: Vec<CellId>,
    stores: Vec<Vec<Vec<Option<usize>>>>,
}

impl Data<'_> {
    /// A value of a cell: a number, or words that say more.
    fn value(&self, cell: CellId, value: i64) -> Value {
        match self.evidence.addresses {
            None => self.evidence.words(cell, value).map_or_else(|| value.into(), Value::from),
            Some(_) => self.evidence.value(cell, value).into(),
        }
    }

    fn step(&self, step: usize) -> Value {
        let taken = self.evidence.run.steps[step];
        let (before, after) = (&self.evidence.replay.states[step], &self.evidence.replay.states[step + 1]);
        let changed: Vec<Value> = self
            .cells
            .iter()
            .enumerate()
            .filter(|&(_, &cell)| before.memory[cell] != after.memory[cell])
            .map(|(index, &cell)| json!([index, self.value(cell, after.memory[cell])]))
            .collect();
        let (kind, cell) = kind(&self.evidence.replay.effects[step]);
        let mut record = json!({
            "t": taken.thread.index(),
            "line": self.story.row(step),
            "text": crate::fit(&self.story.source(step), 200),
            "effect": self.story.effect(step),
            "kind": kind,
            "cell": cell.and_then(|cell| self.cells.iter().position(|&other| other == cell)),
            "over": self.story.links.overtakes[step],
            "thread": self.thread(step + 1, taken.thread),
            "memory": changed,
        });
        if self.evidence.source.files().len() > 1 {
            record["at"] = self.story.line(step).into();
        }
        if self.story.is_local(step) {
            record["local"] = true.into();
        }
        if let Some(note) = self.story.note(step) {
            record["note"] = note.into();
        }
        if let Effect::Spawned(thread) = self.evidence.replay.effects[step] {
            record["spawned"] = json!([thread.index(), self.thread(step + 1, thread)]);
        }
        record
    }

    /// A thread in a state: its location, its named registers, its buffer. Null if it does not exist yet.
    fn thread(&self, state: usize, id: ThreadId) -> Value {
        let at: &State = &self.evidence.replay.states[state];
        let Some(thread) = at.threads.get(id) else { return Value::Null };
        let system = self.evidence.machine.system;
        let frame = thread.top();
        let code = &system.codes[frame.code];
        let next = code.edges_from(frame.location).map(|edge| &code.edges().as_slice()[edge as usize]);
        let span = next.map(|edge| edge.span).find(|span| !span.is_none()).unwrap_or(Span::NONE);
        let source = self.evidence.source;
        let line = source.row(span);
        let label = code.labels.iter().find(|(_, location)| *location == frame.location);
        let mut names = BTreeSet::new();
        let registers: Vec<Value> = code
            .registers
            .iter()
            .zip(&frame.registers)
            .filter(|(register, _)| !register.is_temporary() && names.insert(&register.name))
            .map(|(register, &value)| json!([register.name, self.evidence.register_value(register, value)]))
            .collect();
        let buffer: Vec<Value> = thread
            .buffer
            .iter()
            .zip(&self.stores[state][id.index()])
            .map(|(entry, store)| match *entry {
                Pending::Store(cell, value) => {
                    json!([self.evidence.machine.system.cells[cell].name, self.value(cell, value), store])
                }
                Pending::Barrier => Value::Null,
            })
            .collect();
        let mut record = json!({
            "line": line,
            "label": label.map(|(label, _)| label),
            "ended": thread.has_ended(system),
            "in": (thread.frames.len() > 1).then_some(code.name.as_str()),
            "registers": registers,
            "buffer": buffer,
        });
        if source.files().len() > 1 {
            record["at"] = source.line_number(span).into();
        }
        record
    }
}

/// The kind of a step, which decides how it looks, and the cell it touches.
pub(super) fn kind(effect: &Effect) -> (&'static str, Option<CellId>) {
    match *effect {
        Effect::Local => ("local", None),
        Effect::ReadMemory(cell, _) => ("read", Some(cell)),
        Effect::ReadBuffer(cell, _) => ("own", Some(cell)),
        Effect::Buffered(cell, _) => ("store", Some(cell)),
        Effect::Wrote(cell, _) => ("write", Some(cell)),
        Effect::Updated(cell, _) => ("update", Some(cell)),
        Effect::Locked { cell, .. } => ("locked", Some(cell)),
        Effect::Fenced | Effect::StoreFenced => ("fence", None),
        Effect::Spawned(_) => ("spawn", None),
        Effect::Faulted(_) => ("fault", None),
    }
}
