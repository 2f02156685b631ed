//! Stepping through a program by hand: the chosen steps are taken on the trusted machine, and the possible
//! next steps are listed.
//!
//! Nothing is stored between requests: each request contains all choices made so far.

use crate::answer::subject;
use crate::question::Question;
use palisade::Evidence;
use palisade::Input;
use palisade::memory::{Action, Interlocked, Machine, State, Step};
use palisade::program::lower;
use palisade::program::running::{Cell, EdgeId, Instr};
use palisade::report::html;
use palisade::trace::{Replay, Run, process_name, take};
use serde_json::{Value, json};

/// The longest run that can be stepped through by hand.
const MAX_STEPS: usize = 2000;
/// The most values offered where a value is chosen.
const MAX_VALUES: i64 = 32;
/// The most initial states offered.
const MAX_STARTS: usize = 64;
/// Programs with more threads or cells than this are too large to display.
const MAX_THREADS: usize = 64;
const MAX_CELLS: usize = 10_000;

/// The run so far, and the possible next steps.
pub(crate) fn steps(question: &Question, input: &Input) -> Result<Value, String> {
    if question.choices.len() > MAX_STEPS {
        return Err(format!("a run of more than {MAX_STEPS} steps is too long to step through"));
    }
    let system = lower(&input.program, question.instantiation()?);
    if system.instances.len() > MAX_THREADS || system.cells.len() > MAX_CELLS {
        return Err("the program is too large to step through".to_owned());
    }
    let machine = Machine { system: &system, model: question.model()?, interlocked: Interlocked::default() };
    let starts: Vec<State> = machine.initial_states().take(MAX_STARTS).collect();
    let start = starts.get(question.start).ok_or("no such initial state")?;
    let mut run = Run { memory: start.memory.as_slice().to_vec(), steps: Vec::new() };
    let mut state = start.clone();
    for &choice in &question.choices {
        let step = *possible(machine, &state).get(choice).ok_or("no such step")?;
        (state, _) = machine.step(&state, step).map_err(|refusal| refusal.to_string())?;
        run.steps.push(step);
    }
    let next: Vec<Value> = possible(machine, &state)
        .into_iter()
        .map(|step| describe(input, machine, &run, &state, step))
        .collect();
    let replay = take(machine, &run).map_err(|error| error.to_string())?;
    let evidence =
        Evidence { source: &input.source, addresses: input.addresses(), machine, run: &run, replay: &replay };
    let entry = html::steps(subject(input), &evidence);
    Ok(json!({
        "event": "done",
        "word": entry.word,
        "html": entry.fragment(),
        "next": next,
        "starts": starts.iter().map(|start| memory(machine, start)).collect::<Vec<_>>(),
        "start": question.start,
        "choices": question.choices,
    }))
}

/// The possible steps, by thread, pending stores first. The machine decides which are possible.
fn possible(machine: Machine<'_>, state: &State) -> Vec<Step> {
    let mut found = Vec::new();
    for (thread, t) in state.threads.iter_enumerated() {
        let mut offer = |action| {
            let step = Step { thread, action };
            if machine.step(state, step).is_ok() {
                found.push(step);
            }
        };
        (0..t.buffer.len()).for_each(|position| offer(Action::Update { position }));
        let code = &machine.system.codes[t.top().code];
        for edge in code.edges_from(t.top().location).map(EdgeId) {
            match code.edges()[edge].instr {
                Instr::Havoc(_, lo, hi) => (lo..=hi.min(lo.saturating_add(MAX_VALUES - 1)))
                    .for_each(|value| offer(Action::Execute { edge, choice: Some(value) })),
                _ => offer(Action::Execute { edge, choice: None }),
            }
        }
    }
    found
}

/// The process that takes a step, its line, and what it does.
fn describe(input: &Input, machine: Machine<'_>, run: &Run, state: &State, step: Step) -> Value {
    let alone = Run { memory: run.memory.clone(), steps: vec![step] };
    let (after, effect) = machine.step(state, step).expect("the machine listed this step as possible");
    let replay = Replay { states: vec![state.clone(), after], effects: vec![effect], violation: None };
    let evidence = Evidence {
        source: &input.source,
        addresses: input.addresses(),
        machine,
        run: &alone,
        replay: &replay,
    };
    let words = palisade::report::step_in_words(&evidence, 0);
    json!({
        "process": process_name(machine.system, state, step.thread),
        "thread": step.thread.0,
        "line": words.line,
        "text": words.text,
        "effect": words.effect,
    })
}

/// The initial content of the cells that may start with any value.
fn memory(machine: Machine<'_>, start: &State) -> String {
    let free = machine.system.cells.iter().zip(start.memory.iter()).filter(|(cell, _)| cell.init.is_none());
    let shown = |cell: &Cell, value: i64| {
        let name = machine.system.value_name(cell.ty.domain, value);
        name.map_or_else(|| value.to_string(), str::to_owned)
    };
    let contents: Vec<String> =
        free.take(8).map(|(cell, &value)| format!("{} = {}", cell.name, shown(cell, value))).collect();
    contents.join(", ")
}
