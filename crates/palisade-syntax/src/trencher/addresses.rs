//! How much memory a program needs.
//!
//! *Problem.* Addresses are computed and memory has no declared size, but the written form needs an array of
//! a fixed size.
//!
//! *Method.* A fixpoint over finite sets of values: one set per register and state, and one per address. Only
//! registers whose values can reach an address are tracked, and memory only if loads set such a register. A
//! set with more than [`MAX_VALUES`] values becomes "anything". A `check` keeps the values for which it can
//! hold. Loads return values that were stored at some time, so every value that can occur in a run under any
//! memory model is in its set. So every address is found, except where a set became "anything".
//!
//! *Cost.* At most [`MAX_WORK`] evaluations. After that, every address that is not a constant counts as
//! unknown.

use super::file::{File, Instruction, RegisterId, StateId, Term, TermKind, Thread};
use super::read::MAX_CELLS;
use crate::report::{Report, plural};
use palisade_base::{Diagnostic, Id, Span, limits};
use palisade_program::Value;
use palisade_program::running;
use palisade_program::written::{BinaryOp, UnaryOp};
use std::collections::BTreeMap;

const MAX_VALUES: usize = 32;
const MAX_WORK: usize = 4_000_000;
/// An expression is evaluated for at most this many combinations of register values.
const MAX_COMBINATIONS: usize = 1024;
/// The number of cells if the addresses are not known.
const DEFAULT_CELLS: u32 = 64;

/// The memory of a program: an array whose first cell has the address `least`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Memory {
    /// The smallest address, 0 or negative.
    pub(super) least: Value,
    /// The number of cells; 0 if the program does not use memory.
    pub(super) cells: u32,
}

/// The memory that a program without errors needs.
pub(super) fn memory(file: &File<'_>, report: &mut Report) -> Memory {
    let none = Memory { least: 0, cells: 0 };
    if report.has_errors() {
        return none;
    }
    let mut found = AddressRange::default();
    let accesses =
        || file.threads.iter().flat_map(|thread| &thread.transitions).filter_map(|t| t.instruction.address());
    if let Some((cells, span)) = file.memory_size {
        for address in accesses() {
            if let TermKind::Int(value) = address.kind
                && !(0..cells.into()).contains(&value)
            {
                let message = format!(
                    "address {value} is outside memory, which has {}",
                    plural(cells as usize, "cell")
                );
                report.push(
                    Diagnostic::error("address-outside-memory", message)
                        .at(address.span, "")
                        .at(span, "the size of memory"),
                );
            }
        }
        if report.has_errors() {
            return none;
        }
    }
    if !accesses().all(|address| matches!(address.kind, TermKind::Int(_))) {
        match Analysis::run(file) {
            Some(values) => found = values,
            None => {
                found.unknown =
                    accesses().find(|address| !matches!(address.kind, TermKind::Int(_))).map(|a| a.span)
            }
        }
    }
    // Constants need their cells even in unreachable code.
    accesses().for_each(|address| found.constant(address));
    let Some((least, greatest)) = found.bounds else {
        return match (file.memory_size, found.unknown) {
            (Some((cells, _)), _) => Memory { least: 0, cells },
            (None, Some(place)) => {
                report.push(unknown(place, DEFAULT_CELLS));
                Memory { least: 0, cells: DEFAULT_CELLS }
            }
            (None, None) => none,
        };
    };
    if let Some((cells, span)) = file.memory_size {
        let ends = if least == greatest { &[least][..] } else { &[least, greatest] };
        for &(address, place) in ends {
            if (address < 0 || address >= cells.into()) && found.unknown.is_none() {
                let message = format!(
                    "this can access address {address}, but memory has {}",
                    plural(cells as usize, "cell")
                );
                let diagnostic = Diagnostic::warning("address-outside-memory", message).at(place, "");
                report.push(
                    diagnostic
                        .at(span, "the size of memory")
                        .help(format!("valid addresses are 0 to {}", cells - 1)),
                );
            }
        }
        return Memory { least: 0, cells };
    }
    let first = least.0.min(0);
    let needed = i128::from(greatest.0.max(0)) - i128::from(first) + 1;
    let Some(mut cells) = u32::try_from(needed).ok().filter(|&cells| cells <= MAX_CELLS) else {
        let far = if greatest.0.unsigned_abs() >= least.0.unsigned_abs() { greatest } else { least };
        let message = format!("address {} would need more than {MAX_CELLS} memory cells", far.0);
        report.push(
            Diagnostic::error("address-too-large", message).at(far.1, "").help("use smaller addresses"),
        );
        return none;
    };
    if let Some(place) = found.unknown {
        cells = cells.max(DEFAULT_CELLS);
        report.push(unknown(place, cells));
    }
    Memory { least: first, cells }
}

fn unknown(place: Span, cells: u32) -> Diagnostic {
    let message = format!("the addresses of this access are unbounded; memory gets {cells} cells");
    Diagnostic::warning("unbounded-address", message).at(place, "").help(
        "an access outside memory is a run-time error; write `memory_size N` at the top of the file to change the size",
    )
}

/// The addresses that a program accesses.
#[derive(Default)]
struct AddressRange {
    /// The smallest and largest address, each with a place where it is used.
    bounds: Option<((Value, Span), (Value, Span))>,
    /// An access with an unknown address.
    unknown: Option<Span>,
}

impl AddressRange {
    fn constant(&mut self, address: &Term) {
        if let TermKind::Int(value) = address.kind {
            self.value(value, address.span);
        }
    }

    fn value(&mut self, value: Value, place: Span) {
        let (least, greatest) = self.bounds.get_or_insert(((value, place), (value, place)));
        if value < least.0 {
            *least = (value, place);
        }
        if value > greatest.0 {
            *greatest = (value, place);
        }
    }
}

/// A set of values.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Values {
    /// These values, sorted; at most [`MAX_VALUES`].
    Known(Vec<Value>),
    /// Any value.
    Any,
}

impl Values {
    fn collect(values: impl IntoIterator<Item = Value>) -> Values {
        let mut values: Vec<Value> = values.into_iter().collect();
        values.sort_unstable();
        values.dedup();
        if values.len() > MAX_VALUES { Values::Any } else { Values::Known(values) }
    }

    /// Adds the other set's values. Returns whether any of them were new.
    fn join(&mut self, other: &Values) -> bool {
        let (Values::Known(mine), Values::Known(theirs)) = (&*self, other) else {
            let grows = *self != Values::Any && *other == Values::Any;
            if grows {
                *self = Values::Any;
            }
            return grows;
        };
        if theirs.iter().all(|value| mine.binary_search(value).is_ok()) {
            return false;
        }
        *self = Values::collect(mine.iter().chain(theirs).copied());
        true
    }
}

/// The values of a thread's registers. Registers that are not listed are 0.
type Registers = BTreeMap<RegisterId, Values>;

struct Analysis<'f, 'a> {
    file: &'f File<'a>,
    /// For each thread and register: whether its value can reach an address.
    relevant: Vec<Vec<bool>>,
    /// Whether values in memory can reach an address.
    memory_matters: bool,
    /// For each thread and state; `None` if the state has not been entered yet.
    registers: Vec<Vec<Option<Registers>>>,
    memory: BTreeMap<Value, Values>,
    /// The values that may have been stored at any address.
    anywhere: Values,
    work: usize,
}

impl<'f, 'a> Analysis<'f, 'a> {
    /// All addresses, or `None` if the analysis would take too long.
    fn run(file: &'f File<'a>) -> Option<AddressRange> {
        let registers = file.threads.iter().map(|thread| vec![None; thread.states.len()]).collect();
        let anywhere = Values::Known(vec![0]);
        let (relevant, memory_matters) = relevant(file);
        let mut analysis = Analysis {
            file,
            relevant,
            memory_matters,
            registers,
            memory: BTreeMap::new(),
            anywhere,
            work: 0,
        };
        let mut waiting: Vec<(usize, StateId)> = Vec::new();
        for (t, thread) in file.threads.iter().enumerate() {
            analysis.registers[t][thread.initial.index()] = Some(Registers::new());
            waiting.push((t, thread.initial));
        }
        loop {
            let mut stored = false;
            while let Some((t, state)) = waiting.pop() {
                limits::checkpoint();
                stored |= analysis.visit(t, state, &mut waiting)?;
            }
            if !stored {
                break;
            }
            // Memory grew, so everything that reads it is visited again.
            for (t, thread) in file.threads.iter().enumerate() {
                let mut readers: Vec<StateId> = (thread.transitions.iter())
                    .filter(|transition| matches!(transition.instruction, Instruction::Read { .. }))
                    .map(|transition| transition.from)
                    .filter(|from| analysis.registers[t][from.index()].is_some())
                    .collect();
                readers.dedup();
                waiting.extend(readers.into_iter().map(|state| (t, state)));
            }
        }
        let mut found = AddressRange::default();
        for (t, thread) in file.threads.iter().enumerate() {
            for transition in &thread.transitions {
                limits::checkpoint();
                let Some(registers) = &analysis.registers[t][transition.from.index()] else { continue };
                let Some(address) = transition.instruction.address() else { continue };
                match evaluate(address, registers, &mut analysis.work) {
                    Values::Known(values) => {
                        values.iter().for_each(|&value| found.value(value, address.span))
                    }
                    Values::Any => _ = found.unknown.get_or_insert(address.span),
                }
            }
        }
        Some(found)
    }

    /// Whether every register of an expression is tracked.
    fn all_matter(&self, t: usize, term: &Term) -> bool {
        let mut all = true;
        term.registers(&mut |register, _| all &= self.relevant[t][register.index()]);
        all
    }

    /// Takes every transition that leaves the state. Returns whether memory grew.
    fn visit(&mut self, t: usize, state: StateId, waiting: &mut Vec<(usize, StateId)>) -> Option<bool> {
        let thread: &'f Thread<'a> = &self.file.threads[t];
        let registers =
            self.registers[t][state.index()].clone().expect("only entered states are in the work list");
        let mut stored = false;
        for &position in &thread.states[state].out {
            self.work += 1 + registers.len();
            if self.work > MAX_WORK {
                return None;
            }
            let transition = &thread.transitions[position];
            let mut after = registers.clone();
            let matters = |register: &RegisterId| self.relevant[t][register.index()];
            match &transition.instruction {
                Instruction::Write { value, address } if self.memory_matters => {
                    let value = evaluate(value, &registers, &mut self.work);
                    match evaluate(address, &registers, &mut self.work) {
                        Values::Known(addresses) => {
                            for address in addresses {
                                stored |= self
                                    .memory
                                    .entry(address)
                                    .or_insert_with(|| Values::Known(vec![0]))
                                    .join(&value);
                            }
                        }
                        Values::Any => stored |= self.anywhere.join(&value),
                    }
                }
                Instruction::Read { register, address } if matters(register) => {
                    let mut value = self.anywhere.clone();
                    match evaluate(address, &registers, &mut self.work) {
                        Values::Known(addresses) => {
                            for address in addresses {
                                if let Some(held) = self.memory.get(&address) {
                                    value.join(held);
                                }
                            }
                        }
                        Values::Any => self.memory.values().for_each(|held| _ = value.join(held)),
                    }
                    self.work += self.memory.len();
                    after.insert(*register, value);
                }
                Instruction::Local { register, value } if matters(register) => {
                    after.insert(*register, evaluate(value, &registers, &mut self.work));
                }
                Instruction::Check(condition)
                    if self.all_matter(t, condition) && !restrict(condition, &mut after, &mut self.work) =>
                {
                    continue;
                }
                _ => {}
            }
            let known = &mut self.registers[t][transition.to.index()];
            let grown = match known {
                None => {
                    // A register that one of the incoming transitions does not list is 0 there.
                    *known = Some(after);
                    true
                }
                Some(known) => merge(known, after),
            };
            if grown {
                waiting.push((t, transition.to));
            }
        }
        Some(stored)
    }
}

/// For each thread, the registers whose values can reach an address. Also whether values in memory can.
fn relevant(file: &File<'_>) -> (Vec<Vec<bool>>, bool) {
    let mut relevant: Vec<Vec<bool>> =
        file.threads.iter().map(|thread| vec![false; thread.registers.len()]).collect();
    let mut memory_matters = false;
    // For each register, the registers that it is computed from, and a work list of newly relevant registers.
    let mut sources: Vec<Vec<Vec<RegisterId>>> =
        file.threads.iter().map(|thread| vec![Vec::new(); thread.registers.len()]).collect();
    let mut loaded: Vec<Vec<bool>> = relevant.clone();
    let mut waiting: Vec<(usize, RegisterId)> = Vec::new();
    for (t, thread) in file.threads.iter().enumerate() {
        for transition in &thread.transitions {
            limits::checkpoint();
            if let Some(address) = transition.instruction.address() {
                address.registers(&mut |register, _| waiting.push((t, register)));
            }
            match &transition.instruction {
                Instruction::Read { register, .. } => loaded[t][register.index()] = true,
                Instruction::Local { register, value } => {
                    value.registers(&mut |from, _| sources[t][register.index()].push(from));
                }
                _ => {}
            }
        }
    }
    while let Some((t, register)) = waiting.pop() {
        limits::checkpoint();
        if std::mem::replace(&mut relevant[t][register.index()], true) {
            continue;
        }
        waiting.extend(std::mem::take(&mut sources[t][register.index()]).into_iter().map(|from| (t, from)));
        if loaded[t][register.index()] && !memory_matters {
            memory_matters = true;
            for (t, thread) in file.threads.iter().enumerate() {
                for transition in &thread.transitions {
                    limits::checkpoint();
                    if let Instruction::Write { value, .. } = &transition.instruction {
                        value.registers(&mut |from, _| waiting.push((t, from)));
                    }
                }
            }
        }
    }
    (relevant, memory_matters)
}

/// Joins the values of another transition into a state. Returns whether anything was new.
fn merge(known: &mut Registers, after: Registers) -> bool {
    let zero = Values::Known(vec![0]);
    let mut grown = false;
    for (_, values) in known.iter_mut().filter(|(register, _)| !after.contains_key(register)) {
        grown |= values.join(&zero);
    }
    for (register, values) in after {
        grown |= known.entry(register).or_insert_with(|| zero.clone()).join(&values);
    }
    grown
}

/// The possible values of an expression.
fn evaluate(term: &Term, registers: &Registers, work: &mut usize) -> Values {
    match combinations(term, registers) {
        Some(choices) => {
            let mut results = Vec::new();
            let exact = for_each(&choices, work, |chosen| match compute(term, chosen) {
                Some(value) => {
                    results.push(value);
                    true
                }
                None => false,
            });
            if exact { Values::collect(results) } else { Values::Any }
        }
        None => rough(term, registers, work),
    }
}

/// The values of an expression if a register can have any value or there are too many combinations.
fn rough(term: &Term, registers: &Registers, work: &mut usize) -> Values {
    *work += 1;
    match &term.kind {
        TermKind::Int(value) => Values::Known(vec![*value]),
        TermKind::Register(register) => values_of(*register, registers),
        TermKind::Not(_) => Values::Known(vec![0, 1]),
        TermKind::Binary(op, left, right) => match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => Values::Any,
            BinaryOp::BitAnd => {
                let mask = [left, right].into_iter().find_map(|side| match side.kind {
                    TermKind::Int(mask) if (0..MAX_VALUES as Value).contains(&mask) => Some(mask),
                    _ => None,
                });
                mask.map_or(Values::Any, |mask| {
                    Values::collect((0..=mask).filter(|value| value & mask == *value))
                })
            }
            _ => Values::Known(vec![0, 1]),
        },
    }
}

/// Keeps the register values for which the condition can hold. Returns whether there are any.
fn restrict(condition: &Term, registers: &mut Registers, work: &mut usize) -> bool {
    let Some(choices) = combinations(condition, registers) else { return true };
    let mut kept: Vec<Vec<Value>> = vec![Vec::new(); choices.len()];
    let mut holds = false;
    let exact = for_each(&choices, work, |chosen| match compute(condition, chosen) {
        Some(0) => true,
        Some(_) => {
            holds = true;
            kept.iter_mut().zip(chosen).for_each(|(kept, (_, value))| kept.push(*value));
            true
        }
        None => false,
    });
    if !exact {
        return true;
    }
    for ((register, _), kept) in choices.iter().zip(kept) {
        registers.insert(*register, Values::collect(kept));
    }
    holds
}

fn values_of(register: RegisterId, registers: &Registers) -> Values {
    registers.get(&register).cloned().unwrap_or_else(|| Values::Known(vec![0]))
}

/// The registers of an expression with their values, if all are known and there are not too many
/// combinations.
fn combinations(term: &Term, registers: &Registers) -> Option<Vec<(RegisterId, Vec<Value>)>> {
    let mut mentioned = Vec::new();
    term.registers(&mut |register, _| mentioned.push(register));
    mentioned.sort_unstable();
    mentioned.dedup();
    let mut count = 1;
    let mut choices = Vec::new();
    for register in mentioned {
        let Values::Known(values) = values_of(register, registers) else { return None };
        count *= values.len();
        if count > MAX_COMBINATIONS {
            return None;
        }
        choices.push((register, values));
    }
    Some(choices)
}

/// Calls `visit` with every combination until it returns false. Returns whether it never did.
fn for_each(
    choices: &[(RegisterId, Vec<Value>)],
    work: &mut usize,
    mut visit: impl FnMut(&[(RegisterId, Value)]) -> bool,
) -> bool {
    let Some(mut chosen) = choices
        .iter()
        .map(|(register, values)| Some((*register, *values.first()?)))
        .collect::<Option<Vec<_>>>()
    else {
        return true;
    };
    let mut positions = vec![0; choices.len()];
    loop {
        *work += 1 + choices.len();
        if !visit(&chosen) {
            return false;
        }
        let Some(turn) = (0..choices.len()).rev().find(|&i| positions[i] + 1 < choices[i].1.len()) else {
            return true;
        };
        for i in turn..choices.len() {
            positions[i] = if i == turn { positions[i] + 1 } else { 0 };
            chosen[i].1 = choices[i].1[positions[i]];
        }
    }
}

/// The value of an expression, unless it overflows.
fn compute(term: &Term, chosen: &[(RegisterId, Value)]) -> Option<Value> {
    match &term.kind {
        TermKind::Int(value) => Some(*value),
        TermKind::Register(register) => {
            chosen.iter().find(|(other, _)| other == register).map(|(_, value)| *value)
        }
        TermKind::Not(operand) => running::unary(UnaryOp::Not, compute(operand, chosen)?).ok(),
        TermKind::Binary(op, left, right) => {
            running::binary(*op, compute(left, chosen)?, compute(right, chosen)?).ok()
        }
    }
}
