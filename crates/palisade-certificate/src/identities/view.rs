//! The program whose automata the checker looks at: M identities, and loops over all others as single reads.
//!
//! Each array with one cell per process gets one more cell, *every*, which no process writes and which holds any value
//! of its domain. Reading it stands for reading the cell of each other process, in some order.
//!
//! A loop over all others becomes `loop { choose { await C; break; } or { other = any; assume(other != me); B;
//! assume(false); } }`, where B is its body and C a condition on the cell *every*.
//!
//! # Why this covers every run
//! B is accepted only if it consists of waits, assumptions, and `if`s that leave the loop. So a pass of B that reaches
//! its end only reads, and assigns nothing.
//! - A process that has gone through all others has read, for each of them, a value that satisfies C, if C is the
//!   condition of a statement that every pass goes through, which reads one cell of the other process and nothing
//!   else. Reads depend on the process's own buffer alone. They can all be put off to the last one if messages are not
//!   deleted before: then the messages are the oldest ones of the buffer, one after the other. So the reads come one
//!   immediately after the other. What else a pass reads is left out, which only adds runs.
//! - A process that is inside the loop, or leaves it from the middle, looks at one other process. What it did with the
//!   ones before it only read. So it can be at the second alternative at once, with any other process.
//!
//! Under SC there is a fence after each store, and TSO allows what SC allows then.

use palisade_base::Span;
use palisade_memory::Model;
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Expr, ExprKind, Identities, Init, InitValue, Name, Place, PlaceKind, Program, Stmt,
    StmtKind, UnaryOp,
};

/// The program with this many identities, or why it has none.
pub(super) fn with_every(program: &Program, number: u32, model: Model) -> Result<Program, &'static str> {
    let mut program = program.with_identities(number);
    let Some(identities) = program.identities.take() else { return Err("no process has an identity") };
    for shared in &mut program.shared {
        if !identities.arrays.contains(&shared.name.text) {
            continue;
        }
        let Init::Every(initial) = shared.init.clone() else { return Err("cells start differently") };
        if shared.ty.domain.bounds().is_none() || identities.is_identity(shared.ty.domain) {
            return Err("an array with one cell per process holds no data of a declared domain");
        }
        let cells = (0..=number).map(|_| initial.clone());
        shared.init = Init::Each(cells.chain([InitValue::Any]).collect());
        shared.len = Some(number + 2);
    }
    let loops = Loops { identities: &identities, number };
    for template in &mut program.templates {
        loops.replace(&mut template.body)?;
        if model == Model::Sc {
            template.body = fenced(std::mem::take(&mut template.body));
        }
    }
    Ok(program)
}

fn made(kind: StmtKind) -> Stmt {
    Stmt::new(kind, Span::NONE)
}

fn named(name: &Name) -> Place {
    Place::new(PlaceKind::Named(name.clone()), Span::NONE)
}

fn negated(e: Expr) -> Expr {
    Expr::new(ExprKind::Unary(UnaryOp::Not, Box::new(e)), Span::NONE)
}

/// With a fence after each store. The parsers limit how deep blocks nest.
fn fenced(block: Block) -> Block {
    let mut all = Vec::new();
    for mut stmt in block {
        for inner in stmt.kind.blocks_mut() {
            *inner = fenced(std::mem::take(inner));
        }
        let fence = matches!(stmt.kind, StmtKind::Assign { .. });
        all.push(stmt);
        all.extend(fence.then(|| made(StmtKind::Fence)));
    }
    all
}

struct Loops<'p> {
    identities: &'p Identities,
    number: u32,
}

impl Loops<'_> {
    fn replace(&self, block: &mut Block) -> Result<(), &'static str> {
        for stmt in block {
            let found = self.identities.loop_of(&stmt.kind);
            let found = found.map(|found| (found.variable.clone(), found.me.clone(), found.body.clone()));
            let Some((variable, me, mut body)) = found else {
                stmt.kind.blocks_mut().into_iter().try_for_each(|inner| self.replace(inner))?;
                continue;
            };
            let passed = self.passed(&variable, &body)?;
            self.replace(&mut body)?;
            let mut all: Block = Vec::new();
            all.extend(passed.map(|condition| made(StmtKind::Await(condition))));
            all.push(made(StmtKind::Break));
            let any = ExprKind::Any { lo: 1, hi: self.number.into() };
            let read = |name: &Name| Box::new(Expr::new(ExprKind::Read(named(name)), Span::NONE));
            let other = ExprKind::Binary(BinaryOp::Ne, read(&variable), read(&me));
            let mut one = vec![
                made(StmtKind::Assign { place: named(&variable), value: Expr::new(any, Span::NONE) }),
                made(StmtKind::Assume(Expr::new(other, Span::NONE))),
            ];
            one.append(&mut body);
            one.push(made(StmtKind::Assume(Expr::int(0))));
            let StmtKind::Block(parts) = &mut stmt.kind else { return Err("a loop has another form") };
            parts[1] = made(StmtKind::Loop(vec![made(StmtKind::Choose(vec![all, one]))]));
        }
        Ok(())
    }

    /// What a pass has read in the cell of the other process, if a statement shows that.
    fn passed(&self, variable: &Name, body: &Block) -> Result<Option<Expr>, &'static str> {
        let mut first = None;
        for stmt in body {
            let condition = match &stmt.kind {
                StmtKind::Skip => continue,
                StmtKind::Await(condition) | StmtKind::Assume(condition) => condition.clone(),
                StmtKind::While { condition, body } if body.is_empty() => negated(condition.clone()),
                StmtKind::If { condition, then, otherwise } if otherwise.is_empty() => {
                    if !leaves(then) || jumps_to_labels_of(body) {
                        return Err("a loop over all others does more than read, wait and leave");
                    }
                    negated(condition.clone())
                }
                _ => return Err("a loop over all others does more than read, wait and leave"),
            };
            let mut cells = 0;
            let (everywhere, alone) = self.of_every(variable, &condition, &mut cells)?;
            if first.is_none() && alone && cells == 1 {
                first = Some(everywhere);
            }
        }
        Ok(first)
    }

    /// The condition with *every* in place of the other process, and whether it reads nothing else. An error if it
    /// does more than read.
    fn of_every(&self, variable: &Name, e: &Expr, cells: &mut usize) -> Result<(Expr, bool), &'static str> {
        let (kind, alone) = match &e.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) => (e.kind.clone(), true),
            ExprKind::Unary(op, a) => {
                let (a, alone) = self.of_every(variable, a, cells)?;
                (ExprKind::Unary(*op, Box::new(a)), alone)
            }
            ExprKind::Binary(op, a, b) => {
                let (a, first) = self.of_every(variable, a, cells)?;
                let (b, second) = self.of_every(variable, b, cells)?;
                (ExprKind::Binary(*op, Box::new(a), Box::new(b)), first && second)
            }
            ExprKind::Read(place) => match &place.kind {
                PlaceKind::Element(array, index)
                    if self.identities.arrays.contains(&array.text)
                        && index.kind == ExprKind::Read(named(variable)) =>
                {
                    *cells += 1;
                    let every = Expr::int(Value::from(self.number) + 1);
                    let place = PlaceKind::Element(array.clone(), Box::new(every));
                    (ExprKind::Read(Place::new(place, Span::NONE)), true)
                }
                PlaceKind::Named(_) => (e.kind.clone(), false),
                PlaceKind::Element(_, index) => {
                    self.of_every(variable, index, &mut 0)?;
                    (e.kind.clone(), false)
                }
                PlaceKind::Deref(_) => return Err("it computes with addresses"),
            },
            _ => return Err("a loop over all others makes calls or locked instructions"),
        };
        Ok((Expr::new(kind, e.span()), alone))
    }
}

/// Whether a block always leaves the loop around it: it ends with a jump, and does not go on with the next pass.
fn leaves(block: &Block) -> bool {
    fn goes_on(block: &Block) -> bool {
        block.iter().any(|stmt| match &stmt.kind {
            StmtKind::Continue => true,
            StmtKind::While { .. } | StmtKind::Loop(_) => false,
            kind => kind.blocks().into_iter().any(goes_on),
        })
    }
    let last = block.last().map(|stmt| &stmt.kind);
    matches!(last, Some(StmtKind::Goto(_) | StmtKind::Break | StmtKind::Return(_))) && !goes_on(block)
}

/// Whether a jump in the block leads to a label in it.
fn jumps_to_labels_of(block: &Block) -> bool {
    fn visit<'b>(block: &'b Block, found: &mut impl FnMut(&'b Stmt)) {
        for stmt in block {
            found(stmt);
            stmt.kind.blocks().into_iter().for_each(|inner| visit(inner, found));
        }
    }
    let mut labels: Vec<&str> = Vec::new();
    visit(block, &mut |stmt| labels.extend(stmt.labels.iter().map(Name::as_str)));
    let mut inside = false;
    visit(block, &mut |stmt| {
        if let StmtKind::Goto(label) = &stmt.kind {
            inside |= labels.contains(&label.as_str());
        }
    });
    inside
}
