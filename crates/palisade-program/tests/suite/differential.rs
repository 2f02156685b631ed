//! Compares lowered programs with a direct interpreter of the written form, on random programs.
//!
//! One process runs alone and makes no choices, so there is one run and one outcome. The interpreter follows
//! the documentation of the written form. It shares only the arithmetic with lowering.

use palisade_base::{Origin, Span};
use palisade_conformance::random::Random;
use palisade_conformance::seeds;
use palisade_memory::{Machine, Model};
use palisade_program::running::{Fault, binary, unary};
use palisade_program::written::{
    BinaryOp, Block, Check, Count, Expr, ExprKind, Init, InitValue, Name, Param, Place, PlaceKind, Procedure,
    Program, Rmw, Shared, Start, Stmt, StmtKind, Template, Type, UnaryOp,
};
use palisade_program::{Instantiation, Value, lower, print, validate};
use std::collections::HashMap;

/// How many random programs are tried.
const PROGRAMS: u64 = 3000;
/// Runs longer than this are cut off.
const MAX_STEPS: usize = 3000;
/// Runs that nest calls deeper than this are cut off.
const MAX_CALLS: usize = 50;

#[test]
fn differential_random_programs_match_the_interpreter() {
    let (mut ended, mut faulted, mut stuck) = (0, 0, 0);
    let seeds = seeds(PROGRAMS);
    for seed in &seeds {
        let program = Generator { random: Random::new(seed), depth: 0 }.program();
        let errors: Vec<_> = validate(&program).into_iter().filter(|d| d.is_error()).collect();
        // Random constants may divide by zero. Such programs are rejected.
        if errors.iter().any(|d| d.id == "constant-fault" || d.id == "out-of-bounds") {
            continue;
        }
        assert_eq!(errors, [], "seed {seed}:\n{}", print::print(&program));
        let Some(expected) = interpret(&program) else { continue };
        match &expected {
            Outcome::Ended(_) => ended += 1,
            Outcome::Faulted => faulted += 1,
            Outcome::Stuck => stuck += 1,
        }
        assert_eq!(run(&program), expected, "seed {seed}:\n{}", print::print(&program));
    }
    let all_kinds = ended > 400 && faulted > 400 && stuck > 40;
    assert!(all_kinds || !seeds.suffice(), "{ended} ended, {faulted} faulted, {stuck} stuck");
}

#[derive(PartialEq, Eq, Debug)]
enum Outcome {
    /// The final memory.
    Ended(Vec<Value>),
    /// The faults themselves are not compared: a load can find its index out of bounds before a division to
    /// its left is evaluated.
    Faulted,
    /// An assumption is false.
    Stuck,
}

/// The only run of the lowered program.
fn run(program: &Program) -> Outcome {
    let system = lower(program, Instantiation::declared(1));
    let machine = Machine::new(&system, Model::Sc);
    let mut state = machine.initial_states().next().expect("there is an initial state");
    loop {
        if state.fault.is_some() {
            return Outcome::Faulted;
        }
        if state.threads.iter().all(|thread| thread.has_ended(&system)) {
            assert!(state.section.is_none(), "atomic sections are closed");
            return Outcome::Ended(state.memory.iter().copied().collect());
        }
        // A condition that faults does so on both of its edges.
        match machine.successors(&state).into_iter().next() {
            Some(successor) => state = successor.state,
            None => return Outcome::Stuck,
        }
    }
}

// The interpreter.

/// Why control does not continue with the next statement.
enum Leave {
    Break,
    Continue,
    Return(Value),
    Fault,
    Stuck,
    OutOfSteps,
}

impl From<Fault> for Leave {
    fn from(_: Fault) -> Leave {
        Leave::Fault
    }
}

struct Interpreter<'p> {
    program: &'p Program,
    memory: Vec<Value>,
    registers: Vec<HashMap<&'p str, Value>>,
    steps: usize,
}

fn interpret(program: &Program) -> Option<Outcome> {
    let memory = vec![0; program.shared.iter().map(|s| s.len.unwrap_or(1) as usize).sum()];
    let mut interpreter = Interpreter { program, memory, registers: vec![HashMap::new()], steps: 0 };
    Some(match interpreter.block(&program.templates[0].body) {
        Ok(()) | Err(Leave::Return(_)) => Outcome::Ended(interpreter.memory),
        Err(Leave::Fault) => Outcome::Faulted,
        Err(Leave::Stuck) => Outcome::Stuck,
        Err(Leave::OutOfSteps) => return None,
        Err(Leave::Break | Leave::Continue) => panic!("jumps stay inside loops"),
    })
}

impl<'p> Interpreter<'p> {
    fn block(&mut self, block: &'p [Stmt]) -> Result<(), Leave> {
        block.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'p Stmt) -> Result<(), Leave> {
        self.step()?;
        match &stmt.kind {
            StmtKind::Skip | StmtKind::Fence => {}
            StmtKind::Let { name, init, .. } => {
                let value = init.as_ref().map_or(Ok(0), |init| self.expr(init))?;
                self.set(name, value);
            }
            StmtKind::Assign { place, value } => {
                let value = self.expr(value)?;
                match &place.kind {
                    PlaceKind::Named(name) if self.frame().contains_key(name.as_str()) => {
                        self.set(name, value)
                    }
                    _ => {
                        let cell = self.cell(place)?;
                        self.memory[cell] = value;
                    }
                }
            }
            StmtKind::Eval(e) => {
                self.expr(e)?;
            }
            StmtKind::Assume(e) | StmtKind::Await(e) => {
                if self.expr(e)? == 0 {
                    return Err(Leave::Stuck);
                }
            }
            StmtKind::Assert(e, _) => {
                if self.expr(e)? == 0 {
                    return Err(Leave::Fault);
                }
            }
            StmtKind::If { condition, then, otherwise } => {
                let taken = if self.expr(condition)? != 0 { then } else { otherwise };
                self.block(taken)?;
            }
            StmtKind::While { condition, body } => {
                while self.expr(condition)? != 0 {
                    if self.round(body)? == Round::Last {
                        break;
                    }
                }
            }
            StmtKind::Loop(body) => while self.round(body)? == Round::Next {},
            StmtKind::Break => return Err(Leave::Break),
            StmtKind::Continue => return Err(Leave::Continue),
            StmtKind::Atomic(block) | StmtKind::Block(block) => self.block(block)?,
            StmtKind::Return(value) => {
                let value = value.as_ref().map_or(Ok(0), |value| self.expr(value))?;
                return Err(Leave::Return(value));
            }
            other => panic!("never generated: {other:?}"),
        }
        Ok(())
    }

    fn round(&mut self, body: &'p [Stmt]) -> Result<Round, Leave> {
        self.step()?;
        match self.block(body) {
            Ok(()) | Err(Leave::Continue) => Ok(Round::Next),
            Err(Leave::Break) => Ok(Round::Last),
            Err(leave) => Err(leave),
        }
    }

    fn step(&mut self) -> Result<(), Leave> {
        self.steps += 1;
        if self.steps > MAX_STEPS { Err(Leave::OutOfSteps) } else { Ok(()) }
    }

    fn frame(&self) -> &HashMap<&'p str, Value> {
        self.registers.last().expect("a body is running")
    }

    fn set(&mut self, name: &'p Name, value: Value) {
        self.registers.last_mut().expect("a body is running").insert(name.as_str(), value);
    }

    fn expr(&mut self, e: &'p Expr) -> Result<Value, Leave> {
        match &e.kind {
            ExprKind::Int(value) => Ok(*value),
            ExprKind::Bool(value) => Ok((*value).into()),
            ExprKind::Read(place) => match &place.kind {
                PlaceKind::Named(name) if self.frame().contains_key(name.as_str()) => {
                    Ok(self.frame()[name.as_str()])
                }
                _ => {
                    let cell = self.cell(place)?;
                    Ok(self.memory[cell])
                }
            },
            ExprKind::AddressOf(place) => match &place.kind {
                PlaceKind::Deref(pointer) => self.expr(pointer),
                _ => Ok(self.cell(place)? as Value + 1),
            },
            ExprKind::Unary(op, a) => Ok(unary(*op, self.expr(a)?)?),
            ExprKind::Binary(BinaryOp::And, a, b) => Ok((self.expr(a)? != 0 && self.expr(b)? != 0).into()),
            ExprKind::Binary(BinaryOp::Or, a, b) => Ok((self.expr(a)? != 0 || self.expr(b)? != 0).into()),
            ExprKind::Binary(op, a, b) => Ok(binary(*op, self.expr(a)?, self.expr(b)?)?),
            ExprKind::Locked(rmw, place, operands) => {
                let operands = operands.iter().map(|e| self.expr(e)).collect::<Result<Vec<_>, _>>()?;
                let cell = self.cell(place)?;
                let old = self.memory[cell];
                match rmw {
                    Rmw::Cas => {
                        if old == operands[0] {
                            self.memory[cell] = operands[1];
                        }
                        Ok((old == operands[0]).into())
                    }
                    Rmw::Exchange => {
                        self.memory[cell] = operands[0];
                        Ok(old)
                    }
                    Rmw::FetchAdd => {
                        self.memory[cell] = binary(BinaryOp::Add, old, operands[0])?;
                        Ok(old)
                    }
                    other => panic!("never generated: {other:?}"),
                }
            }
            ExprKind::Call(name, args) => {
                let procedure = self
                    .program
                    .procedures
                    .iter()
                    .find(|p| p.name == *name)
                    .expect("the called procedure exists");
                let mut frame = HashMap::new();
                for (param, arg) in procedure.params.iter().zip(args) {
                    frame.insert(param.name.as_str(), self.expr(arg)?);
                }
                self.step()?;
                if self.registers.len() > MAX_CALLS {
                    return Err(Leave::OutOfSteps);
                }
                self.registers.push(frame);
                let result = self.block(&procedure.body);
                self.registers.pop();
                match result {
                    Ok(()) => Ok(0),
                    Err(Leave::Return(value)) => Ok(value),
                    Err(leave) => Err(leave),
                }
            }
            other => panic!("never generated: {other:?}"),
        }
    }

    /// The cell that a shared place refers to.
    fn cell(&mut self, place: &'p Place) -> Result<usize, Leave> {
        let find = |wanted: &Name| {
            let mut base = 0;
            for shared in &self.program.shared {
                if shared.name == *wanted {
                    return (base, shared.len.unwrap_or(1));
                }
                base += shared.len.unwrap_or(1) as usize;
            }
            panic!("`{wanted}` is declared")
        };
        match &place.kind {
            PlaceKind::Named(name) => Ok(find(name).0),
            PlaceKind::Element(name, index) => {
                let (base, len) = find(name);
                let index = self.expr(index)?;
                let inside = (0..Value::from(len)).contains(&index);
                if inside { Ok(base + index as usize) } else { Err(Leave::Fault) }
            }
            PlaceKind::Deref(pointer) => {
                let address = self.expr(pointer)?;
                let inside = (1..=self.memory.len() as Value).contains(&address);
                if inside { Ok(address as usize - 1) } else { Err(Leave::Fault) }
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Round {
    Next,
    Last,
}

// The generator.

struct Generator {
    random: Random,
    depth: u32,
}

/// What is allowed at the current position.
#[derive(Clone, Copy)]
struct Context {
    in_loop: bool,
    in_procedure: bool,
}

const REGISTERS: [&str; 3] = ["r", "s", "t"];

impl Generator {
    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n as usize) as u64
    }

    fn program(mut self) -> Program {
        let shared = |name: &str, len| Shared {
            name: Name::generated(name),
            len,
            ty: Type::INT,
            init: Init::Every(InitValue::Const(Expr::int(0))),
            at: None,
            origin: Origin::NONE,
        };
        let procedure = Procedure {
            name: Name::generated("f"),
            params: vec![Param { name: Name::generated("r"), ty: Type::INT }],
            result: Some(Type::INT),
            body: self.body(Context { in_loop: false, in_procedure: true }, &REGISTERS[1..]),
            origin: Origin::NONE,
        };
        let template = Template {
            name: Name::generated("P"),
            params: Vec::new(),
            count: Count::Fixed(1),
            start: Start::Initially,
            body: self.body(Context { in_loop: false, in_procedure: false }, &REGISTERS),
            origin: Origin::NONE,
        };
        Program {
            enums: Vec::new(),
            shared: vec![shared("x", None), shared("a", Some(3)), shared("y", None)],
            privates: Vec::new(),
            procedures: vec![procedure],
            templates: vec![template],
            properties: Vec::new(),
            progress: Vec::new(),
            identities: None,
        }
    }

    fn body(&mut self, context: Context, registers: &[&str]) -> Block {
        let declare = |name: &&str| StmtKind::Let { name: Name::generated(*name), ty: Type::INT, init: None };
        let mut block: Block = registers.iter().map(|name| Stmt::new(declare(name), Span::NONE)).collect();
        let wanted = 4 + self.below(5);
        block.extend((0..wanted).map(|_| self.stmt(context)));
        block
    }

    fn block(&mut self, context: Context) -> Block {
        (0..self.below(4)).map(|_| self.stmt(context)).collect()
    }

    fn stmt(&mut self, context: Context) -> Stmt {
        self.depth += 1;
        let choice = if self.depth > 4 { self.below(9) } else { self.below(17) };
        let kind = match choice {
            0 => StmtKind::Skip,
            1 => StmtKind::Fence,
            2..=4 => StmtKind::Assign { place: self.place(), value: self.expr(0) },
            5 => StmtKind::Assign { place: self.register(), value: self.expr(0) },
            6 if context.in_loop => [StmtKind::Break, StmtKind::Continue][self.below(2) as usize].clone(),
            7 if self.below(3) == 0 && context.in_procedure => StmtKind::Return(Some(self.expr(0))),
            7 if self.below(6) == 0 && !context.in_procedure => StmtKind::Return(None),
            6..=8 => StmtKind::Eval(self.locked(1)),
            9 if self.below(2) == 0 => StmtKind::Assume(self.expr(0)),
            9 if self.below(3) == 0 => StmtKind::Assert(self.expr(0), Check::Assertion),
            9 | 10 => StmtKind::Assign { place: self.register(), value: self.expr(0) },
            11 | 12 => StmtKind::If {
                condition: self.expr(0),
                then: self.block(context),
                otherwise: self.block(context),
            },
            13 => StmtKind::While {
                condition: self.expr(0),
                body: self.block(Context { in_loop: true, ..context }),
            },
            14 => StmtKind::Loop(self.block(Context { in_loop: true, ..context })),
            15 => StmtKind::Atomic(self.block(context)),
            _ => StmtKind::Block(self.block(context)),
        };
        self.depth -= 1;
        Stmt::new(kind, Span::NONE)
    }

    fn register(&mut self) -> Place {
        let name = REGISTERS[self.below(3) as usize];
        Place::new(PlaceKind::Named(Name::generated(name)), Span::NONE)
    }

    /// A shared place.
    fn place(&mut self) -> Place {
        let kind = match self.below(5) {
            0 | 1 => PlaceKind::Named(Name::generated("x")),
            2 => PlaceKind::Named(Name::generated("y")),
            3 => {
                // Mostly in bounds.
                let index = self.expr(3);
                let index = ExprKind::Binary(
                    BinaryOp::BitAnd,
                    Box::new(index),
                    Box::new(Expr::int(self.below(4) as Value)),
                );
                PlaceKind::Element(Name::generated("a"), Box::new(Expr::new(index, Span::NONE)))
            }
            _ => PlaceKind::Deref(Box::new(self.address())),
        };
        Place::new(kind, Span::NONE)
    }

    fn address(&mut self) -> Expr {
        let place = match self.below(3) {
            0 => PlaceKind::Named(Name::generated("y")),
            1 => PlaceKind::Element(Name::generated("a"), Box::new(Expr::int(self.below(3) as Value))),
            _ => PlaceKind::Element(Name::generated("a"), Box::new(self.expr(4))),
        };
        Expr::new(ExprKind::AddressOf(Place::new(place, Span::NONE)), Span::NONE)
    }

    fn locked(&mut self, depth: u32) -> Expr {
        let place = self.place();
        let kind = match self.below(3) {
            0 => ExprKind::Locked(Rmw::Cas, place, vec![self.expr(depth + 1), self.expr(depth + 1)]),
            1 => ExprKind::Locked(Rmw::Exchange, place, vec![self.expr(depth + 1)]),
            _ => ExprKind::Locked(Rmw::FetchAdd, place, vec![self.expr(depth + 1)]),
        };
        Expr::new(kind, Span::NONE)
    }

    fn expr(&mut self, depth: u32) -> Expr {
        use BinaryOp::*;
        const OPERATORS: [BinaryOp; 16] =
            [Add, Add, Sub, Mul, Rem, Eq, Eq, Ne, Lt, Ge, And, And, And, Or, Or, BitXor];
        let choice = if depth > 3 { self.below(5) } else { self.below(16) };
        let kind = match choice {
            0 | 1 => ExprKind::Int(self.below(3) as Value),
            2 | 3 => ExprKind::Read(self.register()),
            4 => ExprKind::Read(Place::new(PlaceKind::Named(Name::generated("x")), Span::NONE)),
            5 | 6 => ExprKind::Read(self.place()),
            7 => {
                let op = [UnaryOp::Neg, UnaryOp::Not, UnaryOp::Not, UnaryOp::BitNot][self.below(4) as usize];
                ExprKind::Unary(op, Box::new(self.expr(depth + 1)))
            }
            8 => return self.locked(depth),
            9 if self.below(3) == 0 => ExprKind::Call(Name::generated("f"), vec![self.expr(depth + 1)]),
            10 if self.below(3) == 0 => return self.address(),
            _ => {
                let op = OPERATORS[self.below(16) as usize];
                ExprKind::Binary(op, Box::new(self.expr(depth + 1)), Box::new(self.expr(depth + 1)))
            }
        };
        Expr::new(kind, Span::NONE)
    }
}
