//! `for i in 0..3 { … }`
//!
//! A loop is read as what it stands for, so that nothing else has to know it:
//!
//! ```text
//! { let i: -1..3 = -1; while i < 3 { i = i + 1; … } }
//! ```
//!
//! `break` and `continue` need no care in this form, and the body is in the program once: its labels are places,
//! and a fence in it is one fence. There are as many states as if the body were written out, because `i` is no
//! longer needed after the loop. The block has the heading as its place in the text; the statements that the
//! user did not write have none.
//!
//! A body may have several loops with the same variable. The first one declares it, with a domain for all of them.

use super::parser::{Failed, Parse, Parser};
use super::token::{Sign, Symbol, TokenKind, Word};
use palisade_base::{Diagnostic, Span};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Domain, Expr, ExprKind, Name, Place, PlaceKind, Stmt, StmtKind, Type, others_loop,
};

/// The loops of the body that is being parsed, and what has to be checked about them at the end of the program.
#[derive(Default)]
pub(super) struct Loops {
    variables: Vec<Variable>,
    /// The numbers of the loops around the current statement.
    around: Vec<u32>,
    count: u32,
    /// The labels inside loops, and the jumps, each with the loops around it.
    labels: Vec<(Name, Vec<u32>)>,
    jumps: Vec<(Name, Vec<u32>)>,
    /// The variables of the loops of processes, with the names of these processes.
    of_processes: Vec<(String, String)>,
    /// The registers that properties look at, with the names of their processes.
    pub observed: Vec<(Name, Name)>,
}

/// A loop variable of a body.
struct Variable {
    symbol: Symbol,
    lo: Value,
    hi: Value,
    /// Whether its loop is around the current statement.
    open: bool,
    range: Range,
}

/// What a loop goes through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Range {
    Numbers,
    /// The identities of all other processes.
    Others,
}

/// The heading of a loop: its variable, and the range of numbers unless it goes through all other processes.
type Heading = (Symbol, Name, Option<(Value, Value)>);

impl Parser<'_> {
    /// Parses a loop with its heading. Not inlined, so that other statements need less stack.
    #[inline(never)]
    pub fn for_loop(&mut self) -> Parse<(StmtKind, Span)> {
        let start = self.current.span;
        self.advance();
        let heading = match self.for_heading() {
            Ok(heading) => Some(heading),
            Err(Failed) => {
                self.skip_to_block()?;
                None
            }
        };
        let span = self.since(start);
        let (symbol, name, lo, hi) = match heading {
            Some((symbol, name, Some((lo, hi)))) => (symbol, name, lo, hi),
            Some((symbol, name, None)) => return self.others_loop(start, symbol, name),
            None => {
                self.block()?;
                return Ok((StmtKind::Skip, span));
            }
        };
        let declare = self.open_loop(symbol, lo, hi, Range::Numbers);
        self.note_bounds(&name, lo, hi);
        let body = self.block();
        self.forget_bounds(&name);
        self.close_loop(symbol);
        let read =
            || Expr::new(ExprKind::Read(variable(Name::new(name.text.clone(), Span::NONE))), Span::NONE);
        let number = |value| super::constants::literal(value, Span::NONE);
        let binary = |op, a, b| Expr::new(ExprKind::Binary(op, Box::new(a), Box::new(b)), Span::NONE);
        let next = StmtKind::Assign {
            place: variable(Name::new(name.text.clone(), Span::NONE)),
            value: binary(BinaryOp::Add, read(), number(1)),
        };
        let mut inside = vec![Stmt::new(next, Span::NONE)];
        inside.extend(body?);
        let again = StmtKind::While { condition: binary(BinaryOp::Lt, read(), number(hi)), body: inside };
        let first = if declare {
            StmtKind::Let { name, ty: Type::range(lo - 1, hi), init: Some(number(lo - 1)) }
        } else {
            StmtKind::Assign { place: variable(name), value: number(lo - 1) }
        };
        let block = vec![Stmt::new(first, Span::NONE), Stmt::new(again, Span::NONE)];
        Ok((StmtKind::Block(block), span))
    }

    /// `for other in others { … }`
    fn others_loop(&mut self, start: Span, symbol: Symbol, name: Name) -> Parse<(StmtKind, Span)> {
        let span = self.since(start);
        let me = self.identity.me.clone().expect("the heading says so");
        let identities = self.program.identities.as_ref().expect("a process has an identity");
        let (domain, number) = (identities.domain(), identities.number);
        let declare = self.open_loop(symbol, 1, Value::from(number), Range::Others);
        self.note_bounds(&name, 1, Value::from(number));
        let body = self.block();
        self.forget_bounds(&name);
        self.close_loop(symbol);
        Ok((others_loop(&name, &me, domain, number, declare, body?), span))
    }

    /// `i in 0..3`, both ends included. A range without values has an end that is one less than its beginning.
    fn for_heading(&mut self) -> Parse<Heading> {
        if self.at(Sign::LeftParen) {
            let diagnostic = self.unexpected("the variable of the loop").help("write `for i in 0..3 { … }`");
            return Err(self.fail(diagnostic));
        }
        let (symbol, name) = self.name("the variable of the loop")?;
        self.declare(symbol, name.span());
        let others = self.at_name("in") && self.next_is_others();
        let (lo, hi, range) = match others {
            true => {
                self.advance();
                self.advance();
                (1, 1, self.previous)
            }
            false => self.in_range("for")?,
        };
        if !self.at(Sign::LeftBrace) {
            let mut diagnostic = self.unexpected("`{`");
            diagnostic.id = "missing-block";
            return Err(self.fail(diagnostic.help("write `for i in 0..3 { … }`")));
        }
        if lo == Value::MIN {
            let message = format!("a loop cannot begin at {lo}");
            return Err(self.fail(Diagnostic::error("bad-range", message).at(range, "")));
        }
        let around = |known: &Variable| known.open || others != (known.range == Range::Others);
        if self.loops.variables.iter().any(|known| known.symbol == symbol && around(known)) {
            let message = match self.loops.variables.iter().any(|known| known.symbol == symbol && known.open)
            {
                true => format!("`{name}` is already the variable of a loop around this one"),
                false => format!("`{name}` is already the variable of a loop over other values"),
            };
            return Err(self.fail(Diagnostic::error("duplicate-name", message).at(name.span(), "")));
        }
        Ok((symbol, name, (!others).then_some((lo, hi.max(lo - 1)))))
    }

    /// `in 0..3`, and where the range is.
    pub fn in_range(&mut self, what: &str) -> Parse<(Value, Value, Span)> {
        if !self.at_name("in") {
            let diagnostic = self.unexpected("`in`").help(format!("write `{what} i in 0..3`"));
            return Err(self.fail(diagnostic));
        }
        self.advance();
        let start = self.current.span;
        let enumeration = match self.current.kind {
            TokenKind::Name(symbol) => self.constants.enumeration(symbol),
            _ => None,
        };
        let domain = match enumeration {
            Some(domain) => {
                self.advance();
                domain
            }
            None => self.range(start)?,
        };
        let (lo, hi) = domain.bounds().expect("a range has bounds");
        Ok((lo, hi, self.since(start)))
    }

    /// Whether this is the first loop of the body with this variable.
    fn open_loop(&mut self, symbol: Symbol, lo: Value, hi: Value, range: Range) -> bool {
        self.loops.count += 1;
        self.loops.around.push(self.loops.count);
        if let Some(known) = self.loops.variables.iter_mut().find(|known| known.symbol == symbol) {
            *known = Variable { symbol, lo: known.lo.min(lo - 1), hi: known.hi.max(hi), open: true, range };
            return false;
        }
        self.loops.variables.push(Variable { symbol, lo: lo - 1, hi, open: true, range });
        true
    }

    fn close_loop(&mut self, symbol: Symbol) {
        self.loops.around.pop();
        let known = self.loops.variables.iter_mut().find(|known| known.symbol == symbol);
        known.expect("the loop was opened").open = false;
    }

    /// Notes the labels of a statement.
    pub fn note_labels(&mut self, labels: &[Name]) {
        if !self.loops.around.is_empty() {
            let around = &self.loops.around;
            self.loops.labels.extend(labels.iter().map(|label| (label.clone(), around.clone())));
        }
    }

    /// Notes a `goto`.
    pub fn note_jump(&mut self, label: &Name) {
        self.loops.jumps.push((label.clone(), self.loops.around.clone()));
    }

    /// Reports an error if this name is that of a loop variable, and the loop is over.
    pub fn check_in_loop(&mut self, symbol: Symbol, span: Span) -> Parse<()> {
        if self.loops.variables.iter().all(|known| known.symbol != symbol || known.open) {
            return Ok(());
        }
        let name = self.lexer.names.text(symbol);
        let message = format!("`{name}` is the variable of a loop that is over");
        let help = "copy it to a register inside the loop";
        Err(self.fail(Diagnostic::error("loop-variable", message).at(span, "").help(help)))
    }

    /// Reports an error if a place that is assigned is a loop variable.
    pub fn check_not_loop_variable(&mut self, place: &Place) -> Parse<()> {
        let PlaceKind::Named(name) = &place.kind else { return Ok(()) };
        let names = &self.lexer.names;
        if self.loops.variables.iter().all(|known| names.text(known.symbol) != name.as_str()) {
            return Ok(());
        }
        let message = format!("`{name}` is the variable of a loop and cannot be assigned");
        let help = "leave the loop with `break;`, or write a `while` loop with a register";
        Err(self.fail(Diagnostic::error("loop-variable", message).at(name.span(), "").help(help)))
    }

    /// At the end of a body: gives the loop variables their domains, and checks the jumps.
    pub fn finish_loops(&mut self, body: &mut Block, process: Option<&Name>) {
        let loops = &mut self.loops;
        let (variables, labels) = (std::mem::take(&mut loops.variables), std::mem::take(&mut loops.labels));
        let jumps = std::mem::take(&mut loops.jumps);
        let names = &self.lexer.names;
        for known in variables.iter().filter(|known| known.range == Range::Numbers) {
            let domain = Domain::Range { lo: known.lo, hi: known.hi };
            set_domain(body, names.text(known.symbol), domain);
        }
        if let Some(process) = process {
            let texts = variables.iter().map(|known| names.text(known.symbol).to_owned());
            loops.of_processes.extend(texts.map(|text| (process.to_string(), text)));
        }
        for (label, around) in &labels {
            let into = |(_, from): &&(Name, Vec<u32>)| !from.starts_with(around);
            for (jump, _) in jumps.iter().filter(|(jump, _)| jump == label).filter(into) {
                let message = format!("`goto {jump}` jumps into a `for` loop");
                let diagnostic = Diagnostic::error("goto-into-loop", message)
                    .at(jump.span(), "")
                    .at(label.span(), "the label is inside a `for` loop")
                    .help(
                        "a `for` loop can be entered only at its start; write a `while` loop with a register",
                    );
                self.report.push(diagnostic);
            }
        }
    }

    /// At the end of the program: properties cannot refer to loop variables.
    pub fn check_observed(&mut self) {
        for (process, register) in std::mem::take(&mut self.loops.observed) {
            let is_it = |(known, variable): &(String, String)| {
                process.as_str() == known && register.as_str() == variable
            };
            if self.loops.of_processes.iter().any(is_it) {
                let message =
                    format!("`{register}` is the variable of a loop, which properties cannot refer to");
                let help = format!("copy it to a register inside the loop: `let r = {register};`");
                self.report
                    .push(Diagnostic::error("loop-variable", message).at(register.span(), "").help(help));
            }
        }
    }

    /// The word that begins a loop, or a C programmer's loop.
    pub fn at_for(&self) -> bool {
        self.at_word(Word::For) && !matches!(self.next.kind, TokenKind::Sign(Sign::LeftParen))
    }
}

fn variable(name: Name) -> Place {
    let span = name.span();
    Place::new(PlaceKind::Named(name), span)
}

/// Sets the domain of a register where it is declared by a loop. The parser limits how deep blocks nest.
fn set_domain(block: &mut Block, register: &str, domain: Domain) {
    for stmt in block {
        match &mut stmt.kind {
            StmtKind::Let { name, ty, .. } if name.as_str() == register && stmt.origin.0.is_none() => {
                ty.domain = domain;
            }
            kind => kind.blocks_mut().into_iter().for_each(|inner| set_domain(inner, register, domain)),
        }
    }
}
