//! The statements of a process or procedure: the accesses of the skeleton, made more or less directly, and
//! other statements between them.
//!
//! *Invariants*: (1) a register is read only after its declaration; (2) registers that hold addresses are
//! kept apart from those that hold values, since the order of declarations determines addresses; (3) in
//! programs with loops every value stays within a small range, so that there are finitely many.

use super::cycle::{Access, AccessKind};
use super::{Generator, Home, Profile};
use crate::build::{
    assign, binary, declare, deref, element, eq, expr, int, labelled, locked, named, not, read, stmt, var,
};
use crate::random::Random;
use palisade_program::written::{
    BinaryOp, Block, Check, Expr, ExprKind, Outside, Place, Rmw, StmtKind, Type,
};

/// The kind of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BodyKind {
    Process,
    Procedure,
}

/// A body under construction.
pub(super) struct Body<'g> {
    generator: &'g mut Generator,
    kind: BodyKind,
    /// Registers that hold values and can be assigned.
    registers: Vec<String>,
    /// Parameters: values that cannot be assigned.
    params: Vec<String>,
    /// Registers that hold addresses.
    pointers: Vec<String>,
    labels: Vec<String>,
    next_register: usize,
    next_label: usize,
    /// How many loops are open.
    loops: usize,
    /// Whether an atomic block is open.
    atomic: bool,
    /// Whether some statement jumps to the label `done` at the end.
    jumps: bool,
    /// Whether the whole body is in a loop without an exit.
    endless: bool,
}

/// What can be put between the accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Noise {
    Fence,
    StoreFence,
    Load,
    Store,
    Locked,
    Compute,
    Pointer,
    Any,
    Assume,
    Assert,
    Branch,
    Choose,
    Jump,
    Atomic,
    Call,
    Recurse,
    Await,
    While,
    Loop,
    Back,
}

impl<'g> Body<'g> {
    pub(super) fn new(generator: &'g mut Generator, kind: BodyKind, params: &[&str]) -> Body<'g> {
        Body {
            generator,
            kind,
            registers: Vec::new(),
            params: params.iter().map(|&param| param.to_owned()).collect(),
            pointers: Vec::new(),
            labels: Vec::new(),
            next_register: 0,
            next_label: 0,
            loops: 0,
            atomic: false,
            jumps: false,
            endless: false,
        }
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.generator.random
    }

    /// The registers that hold values.
    pub(super) fn values(&self) -> Vec<String> {
        self.registers.clone()
    }

    /// Whether the whole body is in a loop without an exit (except perhaps a jump).
    pub(super) fn is_endless(&self) -> bool {
        self.endless
    }

    /// The labels.
    pub(super) fn labels(&self) -> Vec<String> {
        self.labels.clone()
    }

    /// Completes the body: loops around it, the label that is jumped to, labels to be observed.
    pub(super) fn finish(&mut self, mut stmts: Block) -> Block {
        let profile = self.generator.profile;
        if !profile.is_acyclic() && self.kind == BodyKind::Process && self.random().percent(35) {
            let mut body = std::mem::take(&mut stmts);
            // Without a fence or a similar instruction in the loop, buffers grow without bound.
            match self.random().below(4) {
                0 | 1 => body.push(stmt(StmtKind::Fence)),
                2 => body
                    .insert(0, stmt(StmtKind::Eval(locked(Rmw::FetchAdd, self.random_home(), vec![int(0)])))),
                _ => {}
            }
            let kind = match (self.random().below(3), self.registers.last().cloned()) {
                (0, Some(register)) => {
                    let leave = stmt(StmtKind::Break);
                    body.push(stmt(StmtKind::If {
                        condition: var(&register),
                        then: vec![leave],
                        otherwise: vec![],
                    }));
                    StmtKind::Loop(body)
                }
                (1, _) => {
                    // The registers are declared inside.
                    let condition = binary(BinaryOp::Le, read(self.random_home()), int(1));
                    StmtKind::While { condition, body }
                }
                _ => {
                    self.endless = true;
                    StmtKind::Loop(body)
                }
            };
            stmts.push(stmt(kind));
        }
        if self.jumps {
            stmts.push(labelled("done", StmtKind::Skip));
            self.labels.push("done".to_owned());
        }
        for statement in &mut stmts {
            if statement.labels.is_empty() && self.generator.random.percent(25) {
                let label = self.fresh_label();
                statement.labels.push(crate::build::name(label));
            }
        }
        stmts
    }

    /// An access of the skeleton. For a read, also the register that receives the value, if the access is
    /// made in this body.
    pub(super) fn access(&mut self, access: Access) -> (Block, Option<String>) {
        match access.kind {
            AccessKind::Write(value) => (self.write(access.variable, value), None),
            AccessKind::Read(_) => {
                let (stmts, register) = self.read(access.variable);
                (stmts, Some(register))
            }
        }
    }

    fn write(&mut self, variable: usize, value: i64) -> Block {
        let home = self.generator.home(variable);
        match self.random().below(24) {
            0 => vec![stmt(StmtKind::Eval(locked(Rmw::Exchange, home, vec![int(value)])))],
            1 => vec![stmt(StmtKind::Eval(locked(Rmw::Cas, home, vec![int(0), int(value)])))],
            2 => {
                let pointer = self.fresh_pointer();
                let address = expr(ExprKind::AddressOf(home));
                vec![declare(&pointer, Type::INT, address), assign(deref(var(&pointer)), int(value))]
            }
            3 | 4 => match self.some_register() {
                // A dependency that does not change the value.
                Some(register) => {
                    let nothing = binary(BinaryOp::BitXor, var(&register), var(&register));
                    vec![assign(home, binary(BinaryOp::Add, nothing, int(value)))]
                }
                None => vec![assign(home, int(value))],
            },
            5 if self.has_structure() => {
                vec![stmt(StmtKind::Atomic(vec![assign(home, int(value))]))]
            }
            6 if self.has_structure() => {
                let body = vec![assign(home, var("v"))];
                let procedure = self.generator.procedure(&[("v", Type::range(0, 3))], None, body);
                vec![stmt(StmtKind::Eval(call(&procedure, vec![int(value)])))]
            }
            7 => vec![assign(home.clone(), int(value - 1)), assign(home, int(value))],
            _ => vec![assign(home, int(value))],
        }
    }

    fn read(&mut self, variable: usize) -> (Block, String) {
        let home = self.generator.home(variable);
        let register_type = self.register_type();
        let choice = self.random().below(24);
        let mut stmts = Vec::new();
        let (ty, value) = match choice {
            0 => (Type::INT, locked(Rmw::FetchAdd, home, vec![int(0)])),
            1 => {
                let pointer = self.fresh_pointer();
                stmts.push(declare(&pointer, Type::INT, expr(ExprKind::AddressOf(home))));
                (Type::INT, read(deref(var(&pointer))))
            }
            2 => match (self.generator.homes[variable].clone(), self.some_register()) {
                // A dependency that does not change the address.
                (Home::Element(array, index), Some(register)) => {
                    let nothing = binary(BinaryOp::Sub, var(&register), var(&register));
                    let index = binary(BinaryOp::Add, nothing, int(index.into()));
                    (Type::INT, read(element(&array, index)))
                }
                _ => (Type::INT, read(home)),
            },
            3 if self.has_structure() => {
                let body = vec![stmt(StmtKind::Return(Some(read(home))))];
                let procedure = self.generator.procedure(&[], Some(Type::range(-1, 3)), body);
                (Type::INT, call(&procedure, vec![]))
            }
            _ => (register_type, read(home)),
        };
        let register = self.fresh_register();
        stmts.push(declare(&register, ty, value));
        (stmts, register)
    }

    /// At most one statement, including those nested in it, as long as there is noise left.
    pub(super) fn noise(&mut self, depth: usize) -> Block {
        if self.generator.noise == 0 {
            return Vec::new();
        }
        self.generator.noise -= 1;
        let nested = if depth > 0 { 1 } else { 0 };
        let structure = if self.has_structure() && !self.atomic { 1 } else { 0 };
        let has_loops = !self.generator.profile.is_acyclic() && !self.atomic;
        let cyclic = if has_loops { 1 } else { 0 };
        let recursion = if self.generator.profile == Profile::Full && !self.atomic { 1 } else { 0 };
        let process = if self.kind == BodyKind::Process { 1 } else { 0 };
        let pick = *self.random().weighted(&[
            (10, Noise::Fence),
            (8, Noise::StoreFence),
            (10, Noise::Load),
            (10, Noise::Store),
            (9, Noise::Locked),
            (4, Noise::Compute),
            (3, Noise::Pointer),
            (3, Noise::Any),
            (3, Noise::Assume),
            (2, Noise::Assert),
            (9 * nested, Noise::Branch),
            (4 * nested, Noise::Choose),
            (2 * process * nested, Noise::Jump),
            (8 * structure * nested, Noise::Atomic),
            (8 * structure * nested, Noise::Call),
            (4 * recursion, Noise::Recurse),
            (6 * cyclic, Noise::Await),
            (5 * cyclic * nested, Noise::While),
            (5 * cyclic * nested, Noise::Loop),
            (3 * cyclic * process * nested, Noise::Back),
        ]);
        self.statement(pick, depth.saturating_sub(1))
    }

    fn statement(&mut self, pick: Noise, depth: usize) -> Block {
        match pick {
            Noise::Fence => vec![stmt(StmtKind::Fence)],
            Noise::StoreFence => vec![stmt(StmtKind::StoreFence)],
            Noise::Load => {
                let place = self.place();
                let ty = self.register_type();
                let register = self.fresh_register();
                vec![declare(&register, ty, read(place))]
            }
            Noise::Store => {
                let value = self.value();
                vec![assign(self.place(), value)]
            }
            Noise::Locked => {
                let instruction = self.locked();
                if self.random().percent(50) {
                    vec![stmt(StmtKind::Eval(instruction))]
                } else {
                    let register = self.fresh_register();
                    vec![declare(&register, Type::INT, instruction)]
                }
            }
            Noise::Compute => {
                let value = self.value();
                match self.registers.last().cloned() {
                    Some(register) if self.random().percent(50) => vec![assign(named(&register), value)],
                    _ => {
                        let register = self.fresh_register();
                        vec![declare(&register, Type::INT, value)]
                    }
                }
            }
            Noise::Pointer => {
                let place = self.place();
                let pointer = self.fresh_pointer();
                vec![declare(&pointer, Type::INT, expr(ExprKind::AddressOf(place)))]
            }
            Noise::Any => {
                let register = self.fresh_register();
                vec![declare(&register, Type::INT, expr(ExprKind::Any { lo: 0, hi: 1 }))]
            }
            Noise::Assume => vec![stmt(StmtKind::Assume(self.condition()))],
            // Mostly true; otherwise no other violation would ever be found.
            Noise::Assert => {
                let condition = match self.some_register() {
                    Some(register) => binary(BinaryOp::Le, var(&register), int(self.random().value(1, 3))),
                    None => binary(BinaryOp::Le, read(self.place()), int(2)),
                };
                vec![stmt(StmtKind::Assert(condition, Check::Assertion))]
            }
            Noise::Branch => {
                let condition = self.condition();
                let then = self.small_block(depth);
                let otherwise = if self.random().percent(40) { self.small_block(depth) } else { Vec::new() };
                vec![stmt(StmtKind::If { condition, then, otherwise })]
            }
            Noise::Choose => {
                let alternatives = (0..2).map(|_| self.small_block(depth)).collect();
                vec![stmt(StmtKind::Choose(alternatives))]
            }
            Noise::Jump => {
                let condition = self.condition();
                let leave = if self.random().percent(50) {
                    self.jumps = true;
                    StmtKind::Goto(crate::build::name("done"))
                } else {
                    StmtKind::Return(None)
                };
                vec![stmt(StmtKind::If { condition, then: vec![stmt(leave)], otherwise: Vec::new() })]
            }
            Noise::Atomic => {
                self.atomic = true;
                let mut block = self.small_block(depth);
                block.extend(self.small_block(depth));
                self.atomic = false;
                vec![stmt(StmtKind::Atomic(block))]
            }
            Noise::Call => self.call_something(depth),
            Noise::Recurse => self.recurse(),
            Noise::Await => vec![stmt(StmtKind::Await(self.condition()))],
            Noise::While => {
                let condition = self.condition();
                self.loops += 1;
                let body = if self.random().percent(40) { Vec::new() } else { self.small_block(depth) };
                self.loops -= 1;
                vec![stmt(StmtKind::While { condition, body })]
            }
            Noise::Loop => {
                self.loops += 1;
                let mut body = self.small_block(depth);
                let condition = self.condition();
                let leave = if self.random().percent(80) { StmtKind::Break } else { StmtKind::Continue };
                body.push(stmt(StmtKind::If { condition, then: vec![stmt(leave)], otherwise: Vec::new() }));
                self.loops -= 1;
                vec![stmt(StmtKind::Loop(body))]
            }
            Noise::Back => {
                let label = self.fresh_label();
                let mut block = self.small_block(depth);
                block[0].labels.push(crate::build::name(label.as_str()));
                let back = vec![stmt(StmtKind::Goto(crate::build::name(label)))];
                block.push(stmt(StmtKind::If {
                    condition: self.condition(),
                    then: back,
                    otherwise: Vec::new(),
                }));
                block
            }
        }
    }

    /// At least one statement.
    fn small_block(&mut self, depth: usize) -> Block {
        let block = self.noise(depth);
        if !block.is_empty() {
            return block;
        }
        let value = self.value();
        match self.random().below(3) {
            0 => vec![stmt(StmtKind::Skip)],
            1 => vec![assign(self.place(), value)],
            _ => self.statement(Noise::Load, 0),
        }
    }

    /// A call of a new procedure with a parameter, locals and perhaps a result.
    fn call_something(&mut self, depth: usize) -> Block {
        let argument = self.value();
        let mut inner = Body::new(self.generator, BodyKind::Procedure, &["v"]);
        let mut body = inner.small_block(depth);
        body.extend(inner.small_block(0));
        let result = inner.random().percent(50).then(|| inner.value());
        let ty = result.as_ref().map(|_| Type::INT);
        if let Some(value) = result {
            body.push(stmt(StmtKind::Return(Some(value))));
        }
        let procedure = self.generator.procedure(&[("v", Type::INT)], ty, body);
        let call = call(&procedure, vec![argument]);
        if ty.is_some() && self.random().percent(70) {
            let register = self.fresh_register();
            vec![declare(&register, Type::INT, call)]
        } else {
            vec![stmt(StmtKind::Eval(call))]
        }
    }

    /// `proc f(n: 0..2) -> 0..2 { if n == 0 { return x; } y = n; return f(n - 1); }`
    fn recurse(&mut self) -> Block {
        let procedure = format!("f{}", self.generator.next_procedure);
        let (last, each) = (self.random_home(), self.random_home());
        let base = vec![stmt(StmtKind::Return(Some(read(last))))];
        let again = call(&procedure, vec![binary(BinaryOp::Sub, var("n"), int(1))]);
        let body = vec![
            stmt(StmtKind::If { condition: eq(var("n"), int(0)), then: base, otherwise: Vec::new() }),
            assign(each, var("n")),
            stmt(StmtKind::Return(Some(again))),
        ];
        let named = self.generator.procedure(&[("n", Type::range(0, 2))], Some(Type::range(-1, 3)), body);
        debug_assert_eq!(named, procedure);
        let register = self.fresh_register();
        let depth = self.random().value(0, 2);
        vec![declare(&register, Type::INT, call(&procedure, vec![int(depth)]))]
    }

    /// A place in memory: by name, by computed index, or by pointer.
    fn place(&mut self) -> Place {
        if let Some(pointer) = self.pointers.last().cloned()
            && self.random().percent(40)
        {
            return deref(var(&pointer));
        }
        let variable = self.random_variable();
        match (self.generator.homes[variable].clone(), self.some_register()) {
            (Home::Element(array, _), Some(register)) if self.random().percent(40) => {
                let cells = self.generator.homes.len() as i64;
                let index = if self.random().percent(85) {
                    // A value may be -1. Its square is never negative.
                    let square = binary(BinaryOp::Mul, var(&register), var(&register));
                    binary(BinaryOp::Rem, square, int(cells))
                } else {
                    var(&register)
                };
                element(&array, index)
            }
            _ => self.generator.home(variable),
        }
    }

    /// A locked instruction whose result stays in the domain.
    fn locked(&mut self) -> Expr {
        let place = self.place();
        let value = self.random().value(0, 2);
        match self.random().below(8) {
            0..=2 => {
                let expected = self.random().value(0, 2);
                locked(Rmw::Cas, place, vec![int(expected), int(value)])
            }
            3 | 4 => locked(Rmw::Exchange, place, vec![int(value)]),
            5 => locked(Rmw::FetchAdd, place, vec![int(value.min(1))]),
            6 => locked(Rmw::FetchAnd, place, vec![int(value)]),
            _ => locked(Rmw::FetchOr, place, vec![int(value.min(1))]),
        }
    }

    /// A value: mostly a literal, sometimes computed from registers, rarely outside the domains.
    fn value(&mut self) -> Expr {
        let literal = int(self.random().value(0, 2));
        let Some(register) = self.some_register() else { return literal };
        let register = var(&register);
        let bounded = |e: Expr| binary(BinaryOp::Rem, e, int(3));
        match self.random().below(20) {
            0..=1 => register,
            2 => bounded(binary(BinaryOp::Add, register, int(1))),
            3 => bounded(binary(BinaryOp::Mul, register, int(2))),
            4 => binary(BinaryOp::BitAnd, register, int(1)),
            5 => binary(BinaryOp::Eq, register, int(1)),
            6 => not(register),
            7 => bounded(binary(BinaryOp::Shl, binary(BinaryOp::BitAnd, register, int(1)), int(1))),
            8 if self.generator.profile.is_acyclic() => binary(BinaryOp::Add, register, int(1)),
            9 if self.generator.profile.is_acyclic() => binary(BinaryOp::Div, int(2), register),
            _ => literal,
        }
    }

    /// A condition over a register or a load.
    fn condition(&mut self) -> Expr {
        let value = int(self.random().value(0, 1));
        let subject = match self.some_register() {
            Some(register) if self.random().percent(65) => var(&register),
            _ => read(self.place()),
        };
        match self.random().below(10) {
            0..=3 => eq(subject, value),
            4 | 5 => binary(BinaryOp::Ne, subject, value),
            6 => binary(BinaryOp::Gt, subject, value),
            7 => {
                let second = eq(read(self.place()), int(self.random().value(0, 1)));
                let op = if self.random().percent(50) { BinaryOp::And } else { BinaryOp::Or };
                binary(op, eq(subject, value), second)
            }
            8 => not(subject),
            _ => subject,
        }
    }

    /// Mostly any integer; sometimes a range that may be too small.
    fn register_type(&mut self) -> Type {
        match self.random().below(20) {
            0 => Type { outside: Outside::Block, ..Type::range(0, 1) },
            1 => Type { outside: Outside::Block, ..Type::range(-1, 2) },
            2 | 3 => Type::range(-1, 3),
            _ => Type::INT,
        }
    }

    fn has_structure(&self) -> bool {
        self.generator.profile.has_structure() && !self.atomic
    }

    fn random_variable(&mut self) -> usize {
        let variables = self.generator.homes.len();
        self.random().below(variables)
    }

    fn random_home(&mut self) -> Place {
        let variable = self.random_variable();
        self.generator.home(variable)
    }

    /// A register or parameter that holds a value.
    fn some_register(&mut self) -> Option<String> {
        let known = self.registers.len() + self.params.len();
        (known > 0).then(|| {
            let at = self.generator.random.below(known);
            self.registers
                .iter()
                .chain(&self.params)
                .nth(at)
                .expect("at is below the number of names")
                .clone()
        })
    }

    fn fresh_register(&mut self) -> String {
        let text = format!("r{}", self.next_register);
        self.next_register += 1;
        self.registers.push(text.clone());
        text
    }

    fn fresh_pointer(&mut self) -> String {
        let text = format!("p{}", self.pointers.len());
        self.pointers.push(text.clone());
        text
    }

    fn fresh_label(&mut self) -> String {
        let text = format!("l{}", self.next_label);
        self.next_label += 1;
        self.labels.push(text.clone());
        text
    }
}

fn call(procedure: &str, args: Vec<Expr>) -> Expr {
    expr(ExprKind::Call(crate::build::name(procedure), args))
}
