//! The program that the search looks at: M identities, and loops over all others as single reads.
//!
//! The last of the M identities, *star*, stands for every process that an element does not name. Each array
//! with one cell per process gets one more cell, `EVERY`. Reading it means to read the cell of every other
//! process, one after the other, in some order. The engine interprets these reads; the program itself never
//! writes the cell, and it can hold any value of its domain.
//!
//! # Sequential consistency
//! With a fence after every store, TSO allows what SC allows. So under SC the program gets these fences.
//!
//! # Loops
//! `for other in others { B }` becomes a loop around a choice:
//! - *All pass.* Each other process passed the body. If a statement of B that every pass goes through is an
//!   `await` or `if` on the cell `a[other]` alone, every pass has read a value that lets it through. So this is
//!   `await C(a[EVERY])`, and nothing if there is no such statement.
//! - *One does not.* For some other process the body is left by a jump: `other` is any other process, B is
//!   executed, and its end is not reached (`assume(false)`).
//!
//! *Why every run of an instance is covered.* A pass of B only reads and waits: other bodies are refused. So the
//! reads of the passes depend on the process's own buffer alone and can be put off to the last one, like any
//! reads (see "one process at a time" in the header of [`crate::dual`]). Then the loop's reads are consecutive, in
//! some order of the processes. Reads that this form leaves out (further ones of the same pass, and passes
//! before a jump) only make it less restrictive. While a process waits in the loop, its state is that of the
//! choice, or of B with the process that it looks at.

use palisade_base::Span;
use palisade_memory::Model;
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Expr, ExprKind, Identities, Init, InitValue, Name, Place, PlaceKind, Program, Stmt,
    StmtKind, UnaryOp,
};

/// The program with `number` identities as the search sees it, or why there is none.
pub(crate) fn view(program: &Program, number: u32, model: Model) -> Result<Program, String> {
    let mut program = program.with_identities(number);
    let identities = program.identities.clone().expect("the program has identities");
    for shared in program.shared.iter_mut().filter(|shared| identities.arrays.contains(&shared.name.text)) {
        let Init::Every(value) = &shared.init else { unreachable!("validation: one initial value") };
        if shared.ty.domain.bounds().is_none() {
            return Err(format!("`{}` has one cell per process and no declared domain", shared.name));
        }
        if identities.is_identity(shared.ty.domain) {
            return Err(format!("`{}` holds an identity for each process", shared.name));
        }
        let mut values = vec![value.clone(); number as usize + 1];
        values.push(InitValue::Any);
        shared.init = Init::Each(values);
        shared.len = Some(number + 2);
    }
    for template in &mut program.templates {
        rewrite(&identities, &mut template.body, number)?;
    }
    if model == Model::Sc {
        let procedures = program.procedures.iter_mut().map(|procedure| &mut procedure.body);
        let templates = program.templates.iter_mut().map(|template| &mut template.body);
        procedures.chain(templates).for_each(fence_stores);
    }
    program.identities = None;
    Ok(program)
}

/// Puts a fence after every assignment. The parsers limit how deep blocks nest.
fn fence_stores(block: &mut Block) {
    let old = std::mem::take(block);
    for mut stmt in old {
        stmt.kind.blocks_mut().into_iter().for_each(fence_stores);
        let stores = matches!(stmt.kind, StmtKind::Assign { .. });
        block.push(stmt);
        if stores {
            block.push(generated(StmtKind::Fence));
        }
    }
}

fn rewrite(identities: &Identities, block: &mut Block, number: u32) -> Result<(), String> {
    for stmt in block {
        if let Some(found) = identities.loop_of(&stmt.kind) {
            let (variable, me) = (found.variable.clone(), found.me.clone());
            let mut body = found.body.clone();
            let passed = pass(identities, &variable, &body, number)?;
            rewrite(identities, &mut body, number)?;
            let StmtKind::Block(parts) = &mut stmt.kind else { unreachable!("the loop is a block") };
            parts[1] = generated(choice(&variable, &me, passed, body, number));
            continue;
        }
        for inner in stmt.kind.blocks_mut() {
            rewrite(identities, inner, number)?;
        }
    }
    Ok(())
}

fn generated(kind: StmtKind) -> Stmt {
    Stmt::new(kind, Span::NONE)
}

fn read(name: &Name) -> Expr {
    Expr::new(ExprKind::Read(Place::new(PlaceKind::Named(name.clone()), Span::NONE)), Span::NONE)
}

/// `loop { choose { PASS break; } or { other = any; assume(other != me); B assume(false); } }`
fn choice(variable: &Name, me: &Name, passed: Option<Expr>, body: Block, number: u32) -> StmtKind {
    let mut all: Block = passed.map(|condition| generated(StmtKind::Await(condition))).into_iter().collect();
    all.push(generated(StmtKind::Break));
    let place = Place::new(PlaceKind::Named(variable.clone()), Span::NONE);
    let any = Expr::new(ExprKind::Any { lo: 1, hi: Value::from(number) }, Span::NONE);
    let differs = ExprKind::Binary(BinaryOp::Ne, Box::new(read(variable)), Box::new(read(me)));
    let mut one = vec![
        generated(StmtKind::Assign { place, value: any }),
        generated(StmtKind::Assume(Expr::new(differs, Span::NONE))),
    ];
    one.extend(body);
    one.push(generated(StmtKind::Assume(Expr::int(0))));
    StmtKind::Loop(vec![generated(StmtKind::Choose(vec![all, one]))])
}

/// What every pass of a loop's body has read of `EVERY`, if that is known. An error if a pass does more than
/// read and wait.
fn pass(identities: &Identities, variable: &Name, body: &Block, number: u32) -> Result<Option<Expr>, String> {
    if jumps_inside(body) {
        return Err("a loop over all others jumps inside its body".to_owned());
    }
    let mut found = None;
    for stmt in body {
        let condition = match &stmt.kind {
            StmtKind::Skip => continue,
            StmtKind::Await(condition) | StmtKind::Assume(condition) => condition.clone(),
            StmtKind::While { condition, body } if body.is_empty() => not(condition),
            StmtKind::If { condition, then, otherwise } if otherwise.is_empty() && leaves(then) => {
                not(condition)
            }
            _ => {
                let why = "a loop over all others does more than read and wait";
                return Err(why.to_owned());
            }
        };
        let mut looked = Looked { identities, variable, number, reads: 0, others: 0 };
        let condition = looked.replace(&condition);
        if looked.others > 0 && !is_silent(&stmt.kind) {
            return Err("a loop over all others makes calls or locked instructions".to_owned());
        }
        if found.is_none() && looked.reads == 1 && looked.others == 0 {
            found = Some(condition);
        }
    }
    Ok(found)
}

/// Whether the condition of a statement only reads.
fn is_silent(kind: &StmtKind) -> bool {
    fn only_reads(e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) => true,
            ExprKind::Read(place) => match &place.kind {
                PlaceKind::Named(_) => true,
                PlaceKind::Element(_, index) => only_reads(index),
                PlaceKind::Deref(_) => false,
            },
            ExprKind::Unary(_, a) => only_reads(a),
            ExprKind::Binary(_, a, b) => only_reads(a) && only_reads(b),
            _ => false,
        }
    }
    match kind {
        StmtKind::Await(condition)
        | StmtKind::Assume(condition)
        | StmtKind::While { condition, .. }
        | StmtKind::If { condition, .. } => only_reads(condition),
        _ => false,
    }
}

fn not(condition: &Expr) -> Expr {
    Expr::new(ExprKind::Unary(UnaryOp::Not, Box::new(condition.clone())), Span::NONE)
}

/// Whether a block always leaves the loop around it.
fn leaves(block: &Block) -> bool {
    let jumps = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Goto(_) | StmtKind::Break | StmtKind::Return(_));
    block.last().is_some_and(jumps) && !continues(block)
}

/// Whether a jump in the block leads to a label in the block.
fn jumps_inside(body: &Block) -> bool {
    fn collect<'b>(block: &'b Block, labels: &mut Vec<&'b str>, jumps: &mut Vec<&'b str>) {
        for stmt in block {
            labels.extend(stmt.labels.iter().map(Name::as_str));
            if let StmtKind::Goto(label) = &stmt.kind {
                jumps.push(label.as_str());
            }
            stmt.kind.blocks().into_iter().for_each(|inner| collect(inner, labels, jumps));
        }
    }
    let (mut labels, mut jumps) = (Vec::new(), Vec::new());
    collect(body, &mut labels, &mut jumps);
    jumps.iter().any(|jump| labels.contains(jump))
}

fn continues(block: &Block) -> bool {
    block.iter().any(|stmt| match &stmt.kind {
        StmtKind::Continue => true,
        StmtKind::While { .. } | StmtKind::Loop(_) => false,
        kind => kind.blocks().into_iter().any(continues),
    })
}

/// Replaces `a[other]` by `a[EVERY]`, and counts what else a condition reads.
struct Looked<'a> {
    identities: &'a Identities,
    variable: &'a Name,
    number: u32,
    /// How many cells of the other process it reads.
    reads: usize,
    /// What else there is: other variables, the identity itself, calls.
    others: usize,
}

impl Looked<'_> {
    fn replace(&mut self, e: &Expr) -> Expr {
        let kind = match &e.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) => e.kind.clone(),
            ExprKind::Read(Place { kind: PlaceKind::Element(array, index), .. })
                if self.identities.arrays.contains(&array.text)
                    && matches!(&index.kind, ExprKind::Read(Place { kind: PlaceKind::Named(name), .. })
                        if name == self.variable) =>
            {
                self.reads += 1;
                let every = Box::new(Expr::int(Value::from(self.number) + 1));
                ExprKind::Read(Place::new(PlaceKind::Element(array.clone(), every), Span::NONE))
            }
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, Box::new(self.replace(a))),
            ExprKind::Binary(op, a, b) => {
                let a = self.replace(a);
                ExprKind::Binary(*op, Box::new(a), Box::new(self.replace(b)))
            }
            _ => {
                self.others += 1;
                e.kind.clone()
            }
        };
        Expr::new(kind, e.span())
    }
}
