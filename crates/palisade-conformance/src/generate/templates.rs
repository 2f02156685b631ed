//! Random programs for any number of threads.
//!
//! A program has one or two templates, each with any number of instances and a small body: loads, stores,
//! fences, locked instructions, branches, sometimes a loop around all of it. Most programs are made from a
//! critical cycle ([`cycle`](super::cycle)): a thread that sees what the cycle expects reaches a label, and
//! the property forbids that all labels of the cycle are reached. The others consist of random statements and
//! forbid that several threads meet at one or two labels.
//!
//! *Guarantee.* The same seed gives the same program. Every program is valid, and all values are from small
//! ranges.

use super::cycle::{self, AccessKind};
use crate::brute::{self, Answer, Scope};
use crate::build::{
    all, assign, binary, declare, eq, int, labelled, locked, name, named, not, observe, property, read,
    shared, stmt, template, var,
};
use crate::random::Random;
use palisade_memory::{Machine, Model};
use palisade_program::written::{
    BinaryOp, Block, Count, Expr, InitValue, Observation, Outside, Program, PropertyKind, Rmw, Start,
    StmtKind, Type,
};
use palisade_program::{Instantiation, Value, lower};

/// The program that a seed names.
///
/// The seed also determines which kind of program is wanted. Of several attempts, the first of that kind is
/// taken, otherwise the last one.
pub fn generate_parameterized(seed: u64) -> Program {
    let mut random = Random::new(seed ^ (0x7a << 56));
    let wanted = *random.weighted(&[
        (35, Wanted::Safe),
        (10, Wanted::BrokenBySc),
        (30, Wanted::BrokenByTso),
        (15, Wanted::NeedsMany),
        (10, Wanted::Anything),
    ]);
    let mut program = attempt(&mut random);
    for _ in 0..8 {
        if wanted.fits(&program) {
            break;
        }
        program = attempt(&mut random);
    }
    program
}

/// Which kind of program is wanted, as far as small instances show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    /// Two threads of each kind do not break it.
    Safe,
    /// Two threads of each kind break it under SC.
    BrokenBySc,
    /// Two threads of each kind break it under TSO, but not under SC.
    BrokenByTso,
    /// Three or four threads of each kind break it, but two do not.
    NeedsMany,
    Anything,
}

impl Wanted {
    fn fits(self, program: &Program) -> bool {
        let broken = |any, model| {
            let system = lower(program, Instantiation { any, every: None });
            match brute::check(Machine::new(&system, model), Scope { states: 2_000, buffer: Some(4) }) {
                Answer::Safe => Some(false),
                Answer::Unsafe(_) => Some(true),
                Answer::Inconclusive => None,
            }
        };
        match self {
            Wanted::Safe => broken(2, Model::Tso) == Some(false),
            Wanted::BrokenBySc => broken(2, Model::Sc) == Some(true),
            Wanted::BrokenByTso => broken(2, Model::Sc) == Some(false) && broken(2, Model::Tso) == Some(true),
            Wanted::NeedsMany => {
                broken(2, Model::Tso) == Some(false)
                    && (broken(3, Model::Tso) == Some(true) || broken(4, Model::Sc) == Some(true))
            }
            Wanted::Anything => true,
        }
    }
}

fn attempt(random: &mut Random) -> Program {
    let mut writer =
        Writer { random: Random::new(random.next_word()), variables: 0, most: 1, role: 0, registers: [0; 2] };
    if writer.random.percent(60) { writer.around_cycle() } else { writer.at_random() }
}

const NAMES: [&str; 4] = ["x", "y", "z", "w"];

/// A program under construction.
struct Writer {
    random: Random,
    variables: usize,
    /// The largest value of all variables.
    most: Value,
    /// The template that is being written.
    role: usize,
    /// How many registers each template has.
    registers: [usize; 2],
}

impl Writer {
    /// Threads that make the accesses of a critical cycle, or stop if something else happens.
    fn around_cycle(mut self) -> Program {
        let skeleton = cycle::critical_cycle(&mut self.random, 3);
        self.variables = skeleton.variables;
        self.most = 3;
        let templates = self.random.between(1, 2.min(skeleton.threads.len()));
        let mut program = self.declarations();
        let mut roles: Vec<Vec<Block>> = vec![Vec::new(); templates];
        let mut reached = Vec::new();
        for (index, accesses) in skeleton.threads.iter().enumerate() {
            let (role, label) = (index % templates, format!("done{index}"));
            self.role = role;
            let mut body = Vec::new();
            for access in accesses {
                if self.random.percent(20) {
                    body.extend(self.statement(1));
                }
                let place = named(NAMES[access.variable]);
                match access.kind {
                    AccessKind::Write(value) if self.random.percent(15) => {
                        let instruction = locked(Rmw::Exchange, place, vec![int(value)]);
                        body.push(stmt(StmtKind::Eval(instruction)));
                    }
                    AccessKind::Write(value) => body.push(assign(place, int(value))),
                    AccessKind::Read(value) => {
                        let expected = eq(read(place), int(value));
                        let waits = self.random.percent(30);
                        let kind = if waits { StmtKind::Await(expected) } else { StmtKind::Assume(expected) };
                        body.push(stmt(kind));
                    }
                }
            }
            body.push(labelled(&label, StmtKind::Skip));
            roles[role].push(body);
            let threads = if self.random.percent(15) { 2 } else { 1 };
            reached.push(at_least(role, &label, threads));
        }
        for (role, mut bodies) in roles.into_iter().enumerate() {
            let body = match bodies.len() {
                1 => bodies.remove(0),
                _ => vec![stmt(StmtKind::Choose(bodies))],
            };
            self.add(&mut program, role, body);
        }
        program.properties.push(property(PropertyKind::Forbid, all(reached)));
        program
    }

    /// Threads with random statements.
    fn at_random(mut self) -> Program {
        self.variables = self.random.between(1, 3);
        self.most = self.random.value(1, 2);
        let templates = self.random.between(1, 2);
        let mut program = self.declarations();
        let mut labels = Vec::new();
        for role in 0..templates {
            self.role = role;
            let mut body = Vec::new();
            for _ in 0..self.random.between(2, 4) {
                body.extend(self.statement(1));
            }
            body.push(labelled("done", StmtKind::Skip));
            labels.push((role, "done"));
            let middle = self.random.below(body.len() - 1);
            if body[middle].labels.is_empty() {
                body[middle].labels.push(name("mid"));
                labels.push((role, "mid"));
            }
            self.add(&mut program, role, body);
        }
        self.random.shuffle(&mut labels);
        let condition = if self.random.percent(50) {
            let (role, label) = labels[0];
            at_least(role, label, *self.random.weighted(&[(4, 1), (4, 2), (2, 3)]))
        } else {
            let several = |random: &mut Random| if random.percent(25) { 2 } else { 1 };
            all(labels.iter().take(2).map(|&(role, label)| at_least(role, label, several(&mut self.random))))
        };
        program.properties.push(property(PropertyKind::Forbid, condition));
        program
    }

    fn declarations(&mut self) -> Program {
        let mut program = Program::default();
        for variable in &NAMES[..self.variables] {
            // A value that is too large is rarely an error; otherwise no other violation would ever be found.
            let outside = if self.random.percent(90) { Outside::Block } else { Outside::Fault };
            let init = match self.random.below(12) {
                0 => InitValue::Any,
                1 => InitValue::Const(int(1)),
                _ => InitValue::Const(int(0)),
            };
            let ty = Type { outside, ..Type::range(0, self.most) };
            program.shared.push(shared(variable, None, ty, init));
        }
        program
    }

    fn add(&mut self, program: &mut Program, role: usize, mut body: Block) {
        if self.random.percent(20) {
            if self.random.percent(50) {
                body.push(stmt(StmtKind::Fence));
            }
            body = vec![stmt(StmtKind::Loop(body))];
        }
        program.templates.push(template(TEMPLATES[role], Vec::new(), Count::Any, Start::Initially, body));
    }

    /// One statement, including those nested in it. Branches are nested at most `depth` deep.
    fn statement(&mut self, depth: u32) -> Block {
        let place = named(NAMES[self.random.below(self.variables)]);
        let value = self.random.value(0, self.most);
        match *self.random.weighted(&[
            (6, TemplateKind::Store),
            (5, TemplateKind::Load),
            (2, TemplateKind::Fence),
            (4, TemplateKind::Locked),
            (4, TemplateKind::Assume),
            (1, TemplateKind::Await),
            (3 * depth, TemplateKind::Branch),
        ]) {
            TemplateKind::Store => match self.some_register() {
                Some(register) if self.random.percent(25) => vec![assign(place, var(&register))],
                _ => vec![assign(place, int(value))],
            },
            TemplateKind::Load => {
                let register = self.fresh_register();
                vec![declare(&register, self.register_type(), read(place))]
            }
            TemplateKind::Fence => vec![stmt(StmtKind::Fence)],
            TemplateKind::Locked => {
                let instruction = match self.random.below(3) {
                    0 => {
                        let expected = self.random.value(0, self.most);
                        locked(Rmw::Cas, place, vec![int(expected), int(value)])
                    }
                    1 => locked(Rmw::Exchange, place, vec![int(value)]),
                    _ => locked(Rmw::FetchAdd, place, vec![int(1)]),
                };
                match self.random.below(3) {
                    0 => vec![stmt(StmtKind::Assume(instruction))],
                    1 => vec![stmt(StmtKind::Eval(instruction))],
                    _ => {
                        let register = self.fresh_register();
                        vec![declare(&register, self.register_type(), instruction)]
                    }
                }
            }
            TemplateKind::Assume => vec![stmt(StmtKind::Assume(self.condition()))],
            TemplateKind::Await => vec![stmt(StmtKind::Await(eq(read(place), int(value))))],
            TemplateKind::Branch => {
                let condition = self.condition();
                // Registers declared in a branch are 0 if it is not taken.
                let then = self.statement(depth - 1);
                let otherwise = if self.random.percent(40) { self.statement(depth - 1) } else { Vec::new() };
                vec![stmt(StmtKind::If { condition, then, otherwise })]
            }
        }
    }

    /// A condition over a register or a load.
    fn condition(&mut self) -> Expr {
        let value = int(self.random.value(0, self.most));
        let subject = match self.some_register() {
            Some(register) if self.random.percent(65) => var(&register),
            _ => read(named(NAMES[self.random.below(self.variables)])),
        };
        match self.random.below(4) {
            0 => binary(BinaryOp::Ne, subject, value),
            1 => not(subject),
            _ => eq(subject, value),
        }
    }

    fn register_type(&self) -> Type {
        Type::range(0, self.most)
    }

    fn some_register(&mut self) -> Option<String> {
        let known = self.registers[self.role];
        (known > 0).then(|| format!("r{}", self.random.below(known)))
    }

    fn fresh_register(&mut self) -> String {
        self.registers[self.role] += 1;
        format!("r{}", self.registers[self.role] - 1)
    }
}

const TEMPLATES: [&str; 2] = ["P", "Q"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TemplateKind {
    Store,
    Load,
    Fence,
    Locked,
    Assume,
    Await,
    Branch,
}

/// `count(P@l) >= n`
fn at_least(role: usize, label: &str, threads: Value) -> Expr {
    let count = Observation::Count { template: name(TEMPLATES[role]), label: name(label) };
    binary(BinaryOp::Ge, observe(count), int(threads))
}
