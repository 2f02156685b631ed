//! Programs in which many values lead to the same place: comparisons such as `!=` and `>=`, membership in sets,
//! alternatives that end alike, and atomic sections that look at several variables. Engines that treat such
//! values together are tested with these.
//!
//! Most threads do a few things and stop. With [`Loops::Some`] some of them wait or start over.

use crate::brute::{self, Answer, Scope};
use crate::build::{
    all, assign, binary, declare, eq, int, labelled, locked, name, named, not, observe, property, read,
    shared, stmt, template, var,
};
use crate::random::Random;
use palisade_memory::{Machine, Model};
use palisade_program::written::{
    BinaryOp, Block, Count, Expr, InitValue, Observation, Outside, Place, Program, PropertyKind, Rmw, Start,
    Stmt, StmtKind, Type,
};
use palisade_program::{Instantiation, Value, lower};

/// Whether threads may loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loops {
    None,
    Some,
}

/// The program that a seed names. Half of the programs should be broken under some model, and half should not.
pub(super) fn generate(seed: u64, loops: Loops, many: bool) -> Program {
    let mut random = Random::new(seed ^ (0x5e << 56));
    let wanted = random.percent(50);
    let mut program = attempt(&mut random, loops, many);
    for _ in 0..6 {
        if is_broken(&program).is_none_or(|broken| broken == wanted) {
            break;
        }
        program = attempt(&mut random, loops, many);
    }
    program
}

fn is_broken(program: &Program) -> Option<bool> {
    let system = lower(program, Instantiation { any: 2, every: None });
    match brute::check(Machine::new(&system, Model::Tso), Scope { states: 2_000, buffer: Some(4) }) {
        Answer::Safe => Some(false),
        Answer::Unsafe(_) => Some(true),
        Answer::Inconclusive => None,
    }
}

const VARIABLES: [&str; 3] = ["x", "y", "z"];
const TEMPLATES: [&str; 3] = ["P", "Q", "R"];

fn attempt(random: &mut Random, loops: Loops, many: bool) -> Program {
    let variables = random.between(1, 3);
    let most = random.value(2, 4);
    let mut writer = Writer { random, variables, most, loops, registers: 0 };
    let mut program = Program::default();
    for variable in &VARIABLES[..variables] {
        let init = if writer.random.percent(15) { InitValue::Any } else { InitValue::Const(int(0)) };
        let ty = Type { outside: Outside::Block, ..Type::range(0, most) };
        program.shared.push(shared(variable, None, ty, init));
    }
    let templates = if many { writer.random.between(1, 2) } else { writer.random.between(2, 3) };
    let mut reached = Vec::new();
    for template_name in &TEMPLATES[..templates] {
        writer.registers = 0;
        let mut body = Vec::new();
        for _ in 0..writer.random.between(2, if templates == 3 { 3 } else { 5 }) {
            body.extend(writer.statement(1));
        }
        body.push(labelled("done", StmtKind::Skip));
        if loops == Loops::Some && writer.random.percent(30) {
            if writer.random.percent(70) {
                body.push(stmt(StmtKind::Fence));
            }
            body = vec![stmt(StmtKind::Loop(body))];
        }
        let count = match many {
            true => Count::Any,
            false if templates == 2 && writer.random.percent(15) => Count::Fixed(2),
            false => Count::Fixed(1),
        };
        program.templates.push(template(template_name, Vec::new(), count, Start::Initially, body));
        let there = Observation::Count { template: name(*template_name), label: name("done") };
        reached.push(binary(BinaryOp::Ge, observe(there), int(1)));
    }
    if !many && writer.random.percent(40) {
        reached.push(writer.load_comparison());
    }
    program.properties.push(property(PropertyKind::Forbid, all(reached)));
    program
}

struct Writer<'r> {
    random: &'r mut Random,
    variables: usize,
    /// The largest value of all variables.
    most: Value,
    loops: Loops,
    registers: usize,
}

impl Writer<'_> {
    fn statement(&mut self, depth: u32) -> Block {
        let value = int(self.random.value(0, self.most));
        let loops = if self.loops == Loops::Some { 3 } else { 0 };
        match *self.random.weighted(&[
            (7, 0),
            (1, 1),
            (6, 2),
            (3, 3),
            (2 * depth, 4),
            (3 * depth, 5),
            (2, 6),
            (loops, 7),
            (loops, 8),
            (2, 9),
        ]) {
            0 if self.random.percent(30) => {
                // A store and a fence, or a store and a read of it.
                let place = self.place();
                let next = match self.random.below(2) {
                    0 => stmt(StmtKind::Fence),
                    _ => stmt(StmtKind::Assume(self.comparison(read(place.clone())))),
                };
                vec![assign(place, value), next]
            }
            0 => vec![assign(self.place(), value)],
            1 => vec![stmt(StmtKind::Fence)],
            2 => self.check(StmtKind::Assume),
            3 => {
                let place = self.place();
                let expected = int(self.random.value(0, self.most));
                let instruction = match self.random.below(3) {
                    0 => locked(Rmw::Exchange, place, vec![value]),
                    1 => locked(Rmw::FetchAdd, place, vec![int(0)]),
                    _ => locked(Rmw::Cas, place, vec![expected, value]),
                };
                match self.random.below(3) {
                    0 => vec![stmt(StmtKind::Eval(instruction))],
                    1 => vec![stmt(StmtKind::Assume(not(instruction)))],
                    _ => vec![stmt(StmtKind::Assume(self.comparison(instruction)))],
                }
            }
            // Alternatives that end in the same state.
            4 => {
                let alternatives =
                    (0..self.random.between(2, 3)).map(|_| self.check(StmtKind::Assume)).collect();
                vec![stmt(StmtKind::Choose(alternatives))]
            }
            5 => {
                let condition = self.load_comparison();
                let then = self.statement(depth - 1);
                let otherwise = if self.random.percent(40) { self.statement(depth - 1) } else { Vec::new() };
                vec![stmt(StmtKind::If { condition, then, otherwise })]
            }
            6 => {
                let mut body = self.check(StmtKind::Assume);
                body.extend(self.check(StmtKind::Assume));
                if self.random.percent(60) {
                    body.push(assign(self.place(), value));
                }
                vec![stmt(StmtKind::Atomic(body))]
            }
            7 => vec![stmt(StmtKind::Await(self.load_comparison()))],
            8 => {
                let condition = self.load_comparison();
                let body = if self.random.percent(50) { Vec::new() } else { self.statement(0) };
                vec![stmt(StmtKind::While { condition, body })]
            }
            _ => {
                // A value that is kept for later.
                let register = self.fresh_register();
                vec![
                    declare(&register, Type::range(0, self.most), read(self.place())),
                    assign(self.place(), var(&register)),
                ]
            }
        }
    }

    /// A comparison of a variable, of its value in a register, or membership in a set.
    fn check(&mut self, check: fn(Expr) -> StmtKind) -> Block {
        if self.random.percent(60) {
            return vec![stmt(check(self.load_comparison()))];
        }
        let register = self.fresh_register();
        let load: Stmt = declare(&register, Type::range(0, self.most), read(self.place()));
        let members = (0..self.random.between(2, 3)).map(|_| int(self.random.value(0, self.most)));
        let members: Vec<Expr> = members.collect();
        let mut either = members.into_iter().map(|member| eq(var(&register), member));
        let first = either.next().expect("a set has members");
        let condition = either.fold(first, |any, next| binary(BinaryOp::Or, any, next));
        vec![load, stmt(check(condition))]
    }

    fn comparison(&mut self, subject: Expr) -> Expr {
        let op = *self.random.weighted(&[
            (5, BinaryOp::Ne),
            (3, BinaryOp::Ge),
            (3, BinaryOp::Le),
            (2, BinaryOp::Lt),
            (3, BinaryOp::Eq),
        ]);
        binary(op, subject, int(self.random.value(0, self.most)))
    }

    fn load_comparison(&mut self) -> Expr {
        let load = read(self.place());
        self.comparison(load)
    }

    fn place(&mut self) -> Place {
        named(VARIABLES[self.random.below(self.variables)])
    }

    fn fresh_register(&mut self) -> String {
        self.registers += 1;
        format!("r{}", self.registers - 1)
    }
}
