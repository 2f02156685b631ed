//! Translates statements of the syntax tree into the written form.
//!
//! A statement that blocks in Memorax becomes a loop that repeats until it succeeds (reads, `cas`) or an
//! assumption (if it depends only on registers). In a locked block everything is an assumption: if the block
//! cannot run to its end, it behaves as if it had not begun.

use super::ast::{Access, Cell, Expr, ExprKind, Process, Statement, StatementKind, Word};
use super::forbidden::Group;
use super::linear::{Linear, constant};
use super::memory::{Memory, Pointer, View, binary, int, suggest};
use super::messages::Messages;
use super::registers::Registers;
use super::token::Here;
use palisade_base::{Diagnostic, Span, limits};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Expr as Written, ExprKind as WrittenKind, Name, Place, PlaceKind, Rmw, Stmt, StmtKind,
    UnaryOp,
};
use std::sync::Arc;

/// Translates the statements of a process, for some of its copies.
pub(crate) struct Body<'b, 'a, 'm> {
    /// The memory.
    pub memory: &'b Memory<'a>,
    /// The process.
    pub process: &'a Process<'a>,
    /// The copies.
    pub group: &'b Group<'a>,
    /// The parameter that distinguishes the copies.
    pub me: Option<Arc<str>>,
    /// The registers.
    pub registers: &'b mut Registers<'a>,
    /// Where errors are reported.
    pub messages: &'m mut Messages,
}

/// The context of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Outside locked blocks.
    Open,
    /// In a locked block that becomes an atomic block.
    Atomic,
}

/// Parts with errors are `None`. The program is rejected anyway.
type Maybe<T> = Option<T>;

impl<'a> Body<'_, 'a, '_> {
    /// The statements of the process. There is room for the declarations of its registers, which the caller
    /// puts before them.
    pub fn translate(&mut self) -> Block {
        let mut block = Block::with_capacity(self.process.body.len() + self.process.registers.len());
        self.append(&self.process.body, Section::Open, &mut block);
        block
    }

    fn block(&mut self, statements: &'a [Statement<'a>], section: Section) -> Block {
        let mut block = Block::with_capacity(statements.len());
        self.append(statements, section, &mut block);
        block
    }

    fn append(&mut self, statements: &'a [Statement<'a>], section: Section, block: &mut Block) {
        for statement in statements {
            limits::checkpoint();
            let start = block.len();
            let _left_out = self.statement(statement, section, block);
            if let (Some(label), Some(first)) = (self.label(statement), block.get_mut(start))
                && let Some((name, _)) = self.group.labels.get(label.text)
            {
                first.labels.insert(0, Name::new(Arc::clone(name), label.here.span));
            }
        }
    }

    fn label(&self, statement: &Statement<'a>) -> Option<Word<'a>> {
        statement.label.map(|label| self.process.labels[label as usize])
    }

    /// Appends the translation of a statement, which has at least one statement.
    fn statement(&mut self, statement: &'a Statement<'a>, section: Section, block: &mut Block) -> Maybe<()> {
        let span = statement.here.span;
        let atomic = section == Section::Atomic;
        let kind = match &statement.kind {
            StatementKind::Nop | StatementKind::LoadFence => StmtKind::Skip,
            StatementKind::Fence => StmtKind::Fence,
            StatementKind::StoreFence => StmtKind::StoreFence,
            StatementKind::Assign(parts) => {
                let value = self.expr(&parts.1);
                let name = self.registers.mention(parts.0.text, parts.0.here, self.messages)?;
                self.check_domain(self.registers.domain(parts.0.text), &parts.1, "assignment");
                StmtKind::Assign {
                    place: Place::new(PlaceKind::Named(name), parts.0.here.span),
                    value: value?,
                }
            }
            StatementKind::Assume(condition) => StmtKind::Assume(self.expr(condition)?),
            StatementKind::Await(access, parts) => {
                let place = self.place(&parts.0, Some(&parts.1), "read", block);
                let value = self.expr(&parts.1)?;
                if *access == Access::Synchronised {
                    block.push(Stmt::new(StmtKind::Fence, span));
                }
                let condition = binary(BinaryOp::Eq, read(place?), value, span);
                if atomic { StmtKind::Assume(condition) } else { StmtKind::Await(condition) }
            }
            StatementKind::Load(access, parts) => {
                let name = self.registers.mention(parts.0.text, parts.0.here, self.messages);
                let place = self.place(&parts.1, None, "read", block)?;
                if *access == Access::Synchronised {
                    block.push(Stmt::new(StmtKind::Fence, span));
                }
                let register = Place::new(PlaceKind::Named(name?), parts.0.here.span);
                StmtKind::Assign { place: register, value: read(place) }
            }
            StatementKind::Write(access, parts) => {
                let place = self.place(&parts.0, Some(&parts.1), "write", block);
                let value = self.expr(&parts.1)?;
                let store = Stmt::new(StmtKind::Assign { place: place?, value }, span);
                let fence = || Stmt::new(StmtKind::StoreFence, span);
                match access {
                    _ if atomic => block.push(store),
                    Access::Plain => block.push(store),
                    Access::Locked | Access::Synchronised => {
                        block.push(Stmt::new(StmtKind::Atomic(vec![store]), span));
                    }
                    Access::StoreLocked => block.extend([fence(), store, fence()]),
                }
                return Some(());
            }
            StatementKind::Cas(parts) => {
                let (cell, old, new) = &**parts;
                let place = self.place(cell, Some(new), "cas", block);
                let (old, new) = (self.expr(old), self.expr(new));
                let (place, old, new) = (place?, old?, new?);
                if atomic {
                    let holds = binary(BinaryOp::Eq, read(place.clone()), old, span);
                    block.push(Stmt::new(StmtKind::Assume(holds), span));
                    StmtKind::Assign { place, value: new }
                } else {
                    let cas = WrittenKind::Locked(Rmw::Cas, place, vec![old, new]);
                    StmtKind::Await(Written::new(cas, span))
                }
            }
            StatementKind::If(parts) => {
                let (condition, then, otherwise) = &**parts;
                let condition = self.expr(condition);
                let (then, otherwise) = (self.block(then, section), self.block(otherwise, section));
                StmtKind::If { condition: condition?, then, otherwise }
            }
            StatementKind::While(parts) => {
                let condition = self.expr(&parts.0);
                let body = self.block(&parts.1, section);
                StmtKind::While { condition: condition?, body }
            }
            StatementKind::Goto(label) => match self.group.labels.get(label.text) {
                Some((name, _)) => StmtKind::Goto(Name::new(Arc::clone(name), label.here.span)),
                None => {
                    let message = format!("this process has no label `{}`", label.text);
                    let error = Diagnostic::error("unknown-label", message);
                    let error = suggest(error, label.text, self.group.labels.keys().copied());
                    self.messages.at(label.here, "", error);
                    return None;
                }
            },
            StatementKind::Either(alternatives) => self.choose(alternatives, section),
            StatementKind::Locked(alternatives) => self.locked(alternatives, statement.here, section),
            StatementKind::Block(statements) => StmtKind::Block(self.block(statements, section)),
        };
        block.push(Stmt::new(kind, span));
        Some(())
    }

    fn choose(&mut self, alternatives: &'a [Vec<Statement<'a>>], section: Section) -> StmtKind {
        let mut blocks: Vec<Block> = alternatives.iter().map(|body| self.block(body, section)).collect();
        match blocks.len() {
            1 => StmtKind::Block(blocks.remove(0)),
            _ => StmtKind::Choose(blocks),
        }
    }

    /// A locked block. It is atomic if it writes, or reads more than once. Otherwise it is the same as its
    /// contents.
    fn locked(&mut self, alternatives: &'a [Vec<Statement<'a>>], here: Here, section: Section) -> StmtKind {
        alternatives.iter().for_each(|body| self.check_locked(body));
        let contents = Contents::of_alternatives(alternatives);
        if section == Section::Atomic || !contents.writes && contents.reads <= 1 {
            return self.choose(alternatives, section);
        }
        if !contents.writes {
            let message =
                "this locked block reads several times and writes nothing; here it drains the store buffer";
            let help = "in Memorax it does not; with a `fence` before it both tools agree";
            self.messages.at(here, "", Diagnostic::warning("locked-reads", message).help(help));
        }
        let span = here.span;
        match self.choose(alternatives, Section::Atomic) {
            StmtKind::Block(block) => StmtKind::Atomic(block),
            choice => StmtKind::Atomic(vec![Stmt::new(choice, span)]),
        }
    }

    /// Reports what is not allowed in a locked block.
    fn check_locked(&mut self, statements: &'a [Statement<'a>]) {
        for statement in statements {
            limits::checkpoint();
            if let Some(label) = self.label(statement) {
                let error =
                    Diagnostic::error("label-in-locked-block", "a label is not allowed in a locked block");
                self.messages.at(
                    label.here,
                    "",
                    error.help("the whole block is one step; put the label before it"),
                );
            }
            let what = match &statement.kind {
                StatementKind::If(_) => "`if`",
                StatementKind::While(_) => "`while`",
                StatementKind::Goto(_) => "`goto`",
                StatementKind::Either(_) => "`either`",
                StatementKind::Fence | StatementKind::StoreFence | StatementKind::LoadFence => "a fence",
                StatementKind::Await(Access::Synchronised, _)
                | StatementKind::Load(Access::Synchronised, _)
                | StatementKind::Write(Access::Synchronised, _) => "a synchronised access",
                StatementKind::Block(statements) => {
                    self.check_locked(statements);
                    continue;
                }
                _ => continue,
            };
            let error =
                Diagnostic::error("not-in-locked-block", format!("{what} is not allowed in a locked block"));
            let help = "a locked block can contain reads, writes, assignments and assumptions, with `or` between alternatives";
            self.messages.at(statement.here, "", error.help(help));
        }
    }

    /// A memory location. Its guards are appended to the block.
    fn place(
        &mut self,
        cell: &'a Cell<'a>,
        value: Option<&Expr<'a>>,
        what: &str,
        block: &mut Block,
    ) -> Maybe<Place> {
        if let Cell::Pointer(pointer, _) = cell {
            // Undeclared registers are reported before the pointer is analysed.
            self.expr(pointer)?;
        }
        let registers = &*self.registers;
        let view = View {
            process: self.group.process,
            copies: &self.group.copies,
            me: self.me.as_ref(),
            domain: &|word| registers.domain(word),
        };
        let found = self.memory.find(cell, &view, self.messages)?;
        if let Some(value) = value {
            self.check_domain(found.domain, value, what);
        }
        match found.place {
            Ok(place) => Some(place),
            Err(pointer) => self.guarded(&pointer, block),
        }
    }

    /// The place that a pointer refers to. Address 1 is the variable `[0]`.
    fn guarded(&mut self, pointer: &Pointer<'a, 'a>, block: &mut Block) -> Maybe<Place> {
        let span = pointer.here.span;
        // Write `$p - 1 >= 0` as `$p >= 1`.
        let shift = match &pointer.sum {
            Some(Linear { constant, terms }) if terms.len() == 1 && terms[0].0 > 0 => *constant,
            _ => 0,
        };
        let mut compare = |op, bound: Value| -> Maybe<Written> {
            let (left, bound) = match bound.checked_sub(shift).filter(|_| shift != 0) {
                Some(bound) => (self.register(pointer.sum.as_ref()?.terms[0].1, pointer.here)?, bound),
                None => (self.expr(pointer.expr)?, bound),
            };
            Some(binary(op, left, int(bound, span), span))
        };
        let low = pointer.from_below.then(|| compare(BinaryOp::Ge, 0));
        let high = pointer.from_above.map(|count| compare(BinaryOp::Lt, count));
        let (low, high) = (low.flatten(), high.flatten());
        let guard = match (low, high) {
            (Some(low), Some(high)) => Some(binary(BinaryOp::And, low, high, span)),
            (low, high) => low.or(high),
        };
        block.extend(guard.map(|guard| Stmt::new(StmtKind::Assume(guard), span)));
        let address = match &pointer.sum {
            Some(sum) => self.sum(sum, 1, pointer.here)?,
            None => binary(BinaryOp::Add, self.expr(pointer.expr)?, int(1, span), span),
        };
        Some(Place::new(PlaceKind::Deref(Box::new(address)), span))
    }

    /// A sum plus a constant, with few terms.
    fn sum(&mut self, sum: &Linear<'a>, plus: Value, here: Here) -> Maybe<Written> {
        let constant = sum.constant.checked_add(plus)?;
        let mut total: Option<Written> = None;
        for (sign, word) in &sum.terms {
            let register = self.register(word, here)?;
            total = Some(match (total, *sign > 0) {
                (None, true) => register,
                (None, false) => {
                    Written::new(WrittenKind::Unary(UnaryOp::Neg, Box::new(register)), here.span)
                }
                (Some(total), true) => binary(BinaryOp::Add, total, register, here.span),
                (Some(total), false) => binary(BinaryOp::Sub, total, register, here.span),
            });
        }
        Some(match total {
            None => int(constant, here.span),
            Some(total) if constant == 0 => total,
            Some(total) if constant < 0 && constant != Value::MIN => {
                binary(BinaryOp::Sub, total, int(-constant, here.span), here.span)
            }
            Some(total) => binary(BinaryOp::Add, total, int(constant, here.span), here.span),
        })
    }

    fn register(&mut self, word: &'a str, here: Here) -> Maybe<Written> {
        let name = self.registers.mention(word, here, self.messages)?;
        Some(read(Place::new(PlaceKind::Named(name), here.span)))
    }

    fn expr(&mut self, expr: &Expr<'a>) -> Maybe<Written> {
        let span = expr.here.span;
        let unary = |op, operand| WrittenKind::Unary(op, Box::new(operand));
        let kind = match &expr.kind {
            ExprKind::Register(word) => return self.register(word, expr.here),
            ExprKind::Int(value) => WrittenKind::Int(*value),
            ExprKind::Bool(value) => WrittenKind::Bool(*value),
            ExprKind::Neg(operand) => unary(UnaryOp::Neg, self.expr(operand)?),
            ExprKind::Not(operand) => unary(UnaryOp::Not, self.expr(operand)?),
            ExprKind::Binary(op, operands) => {
                let (left, right) = (self.expr(&operands.0), self.expr(&operands.1));
                return Some(binary(*op, left?, right?, span));
            }
        };
        Some(Written::new(kind, span))
    }

    /// Warns about a value outside the domain.
    fn check_domain(&mut self, domain: Option<(Value, Value)>, value: &Expr<'a>, what: &str) {
        if let Some((lo, hi)) = domain
            && let Some(constant) = constant(value)
            && (constant < lo || hi < constant)
        {
            let message =
                format!("the value {constant} is outside the domain [{lo}:{hi}]: this {what} blocks forever");
            self.messages.at(value.here, "", Diagnostic::warning("outside-domain", message));
        }
    }
}

/// What a locked block does to memory.
#[derive(Clone, Copy, Default)]
struct Contents {
    /// Whether any alternative writes something.
    writes: bool,
    /// The largest number of reads on one path through it.
    reads: usize,
}

impl Contents {
    fn of_alternatives(alternatives: &[Vec<Statement<'_>>]) -> Contents {
        let mut all = Contents::default();
        for body in alternatives {
            let contents = Contents::of(body);
            all = Contents { writes: all.writes || contents.writes, reads: all.reads.max(contents.reads) };
        }
        all
    }

    fn of(body: &[Statement<'_>]) -> Contents {
        let mut all = Contents::default();
        for statement in body {
            let contents = match &statement.kind {
                StatementKind::Await(..) | StatementKind::Load(..) => Contents { writes: false, reads: 1 },
                StatementKind::Write(..) | StatementKind::Cas(_) => Contents { writes: true, reads: 0 },
                StatementKind::Block(body) => Contents::of(body),
                StatementKind::Either(alternatives) | StatementKind::Locked(alternatives) => {
                    Contents::of_alternatives(alternatives)
                }
                _ => Contents::default(),
            };
            all = Contents { writes: all.writes || contents.writes, reads: all.reads + contents.reads };
        }
        all
    }
}

fn read(place: Place) -> Written {
    let span: Span = place.span();
    Written::new(WrittenKind::Read(place), span)
}
