//! Which registers may be read before they are written.
//!
//! A register with an arbitrary initial value that is always written first can start with any fixed value. A
//! search then need not try the other values. If the domain is `Z`, there is no other way to run the program.
//!
//! *Guarantee*: a register is never reported as written first when it is not. Conditions are ignored, so a
//! register that is always written first may be missed.
//!
//! *How it works*: the body becomes a list of reads, writes and jumps. For each register the list is walked
//! from the start, stopping at each write of the register.

use super::ast::{Cell, Expr, ExprKind, Process, Statement, StatementKind};
use palisade_base::limits;
use rustc_hash::FxHashMap;

/// After this many steps the remaining registers are assumed to be read first.
const MAX_STEPS: usize = 20_000_000;

/// For each register, whether it may be read before it is written.
pub(crate) fn read_before_written(process: &Process<'_>, registers: &[&str]) -> Vec<bool> {
    if registers.is_empty() {
        return Vec::new();
    }
    let numbers = registers.iter().enumerate().map(|(number, name)| (*name, number)).collect();
    let mut list =
        List { process, numbers, steps: Vec::new(), labels: FxHashMap::default(), gotos: Vec::new() };
    list.statements(&process.body);
    list.steps.push(Step::Stop);
    for (at, label) in std::mem::take(&mut list.gotos) {
        list.steps[at] = list.labels.get(label).map_or(Step::Stop, |target| Step::Jump(*target));
    }
    let mut seen = vec![usize::MAX; list.steps.len()];
    let mut budget = MAX_STEPS;
    (0..registers.len()).map(|register| reaches_use(&list.steps, register, &mut seen, &mut budget)).collect()
}

/// Whether a read of the register can be reached without a write of it. `seen` holds, for each step, the last
/// register for which it was visited.
fn reaches_use(steps: &[Step], register: usize, seen: &mut [usize], budget: &mut usize) -> bool {
    let mut open = vec![0];
    while let Some(mut at) = open.pop() {
        limits::checkpoint();
        while seen[at] != register {
            limits::checkpoint();
            if *budget == 0 {
                return true;
            }
            *budget -= 1;
            seen[at] = register;
            match steps[at] {
                Step::Use(used) if used == register => return true,
                Step::Set(set) if set == register => break,
                Step::Use(_) | Step::Set(_) => at += 1,
                Step::Jump(target) => at = target,
                Step::Fork(target) => {
                    open.push(target);
                    at += 1;
                }
                Step::Stop => break,
            }
        }
    }
    false
}

/// One step of the list.
#[derive(Clone, Copy)]
enum Step {
    /// Reads a register.
    Use(usize),
    /// Writes a register.
    Set(usize),
    /// Continues at another step.
    Jump(usize),
    /// Continues with the next step or at another step.
    Fork(usize),
    /// Ends.
    Stop,
}

struct List<'p, 'a> {
    process: &'p Process<'a>,
    numbers: FxHashMap<&'p str, usize>,
    steps: Vec<Step>,
    labels: FxHashMap<&'a str, usize>,
    gotos: Vec<(usize, &'a str)>,
}

impl<'a> List<'_, 'a> {
    fn statements(&mut self, statements: &[Statement<'a>]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement<'a>) {
        if let Some(label) = statement.label {
            self.labels.insert(self.process.labels[label as usize].text, self.steps.len());
        }
        match &statement.kind {
            StatementKind::Nop
            | StatementKind::Fence
            | StatementKind::StoreFence
            | StatementKind::LoadFence => {}
            StatementKind::Await(_, parts) | StatementKind::Write(_, parts) => {
                self.cell(&parts.0);
                self.uses(&parts.1);
            }
            StatementKind::Load(_, parts) => {
                self.cell(&parts.1);
                self.set(parts.0.text);
            }
            StatementKind::Cas(parts) => {
                self.cell(&parts.0);
                self.uses(&parts.1);
                self.uses(&parts.2);
            }
            StatementKind::Assign(parts) => {
                self.uses(&parts.1);
                self.set(parts.0.text);
            }
            StatementKind::Assume(condition) => self.uses(condition),
            StatementKind::If(parts) => {
                self.uses(&parts.0);
                let fork = self.hole();
                self.statements(&parts.1);
                let jump = self.hole();
                self.steps[fork] = Step::Fork(self.steps.len());
                self.statements(&parts.2);
                self.steps[jump] = Step::Jump(self.steps.len());
            }
            StatementKind::While(parts) => {
                let head = self.steps.len();
                self.uses(&parts.0);
                let fork = self.hole();
                self.statements(&parts.1);
                self.steps.push(Step::Jump(head));
                self.steps[fork] = Step::Fork(self.steps.len());
            }
            StatementKind::Goto(label) => {
                let goto = self.hole();
                self.gotos.push((goto, label.text));
            }
            StatementKind::Either(alternatives) | StatementKind::Locked(alternatives) => {
                let mut jumps = Vec::new();
                for alternative in alternatives {
                    let fork = self.hole();
                    self.statements(alternative);
                    jumps.push(self.hole());
                    self.steps[fork] = Step::Fork(self.steps.len());
                }
                self.steps.push(Step::Stop);
                let end = self.steps.len();
                jumps.into_iter().for_each(|jump| self.steps[jump] = Step::Jump(end));
            }
            StatementKind::Block(statements) => self.statements(statements),
        }
    }

    /// Adds a placeholder that is filled in later.
    fn hole(&mut self) -> usize {
        self.steps.push(Step::Stop);
        self.steps.len() - 1
    }

    fn set(&mut self, name: &str) {
        self.steps.extend(self.numbers.get(name).map(|number| Step::Set(*number)));
    }

    fn cell(&mut self, cell: &Cell<'a>) {
        if let Cell::Pointer(pointer, _) = cell {
            self.uses(pointer);
        }
    }

    fn uses(&mut self, expr: &Expr<'a>) {
        match &expr.kind {
            ExprKind::Register(name) => {
                self.steps.extend(self.numbers.get(name).map(|number| Step::Use(*number)))
            }
            ExprKind::Int(_) | ExprKind::Bool(_) => {}
            ExprKind::Neg(operand) | ExprKind::Not(operand) => self.uses(operand),
            ExprKind::Binary(_, operands) => {
                self.uses(&operands.0);
                self.uses(&operands.1);
            }
        }
    }
}
