//! Integers modulo a number: a proof for counters that grow without bound.
//!
//! *Problem.* The tickets of a ticket lock grow forever. No proof can list their values. But the lock only adds to
//! tickets, copies them and compares them for equality, and a lock for two threads is right even if all that is known
//! about a ticket is its remainder modulo 3.
//!
//! *Theorem.* Let m be at least 2. In the wrapped program ([`wrapped`]) some variables without a domain, the *wide*
//! ones, have the domain 0..m-1 and wrap around. If the wrapped program is safe, then no run of the program that stays
//! clear of 64-bit overflow reaches a bad state. An overflow takes at least 2^40 steps.
//!
//! *Why.* Take a run of the program without overflow, and replace the value of every wide variable, in memory, in
//! buffers and in registers, by its remainder modulo m. This is a run of the wrapped program, step by step:
//! 1. Taking remainders is a ring homomorphism: it commutes with `+`, `-` and constants. So a store to a wide variable
//!    stores the right remainder, although it is computed from remainders. `fetch_add`, `fetch_sub` and `xchg` likewise.
//! 2. Expressions without wide variables have the same value in both.
//! 3. If a == b, then a and b have the same remainder; if not, they may have the same or not. So where their remainders
//!    are the same, the wrapped program chooses whether they are equal: `a == b` becomes
//!    `(a - b) % m == 0 && any(0..1)`, and `a != b` becomes `(a - b) % m != 0 || any(0..1)`. Both operands are evaluated
//!    as before, with the same loads and effects in the same order. The choice comes after them, at a place without a
//!    label. So properties see the same.
//! 4. What `<` and the like say is not known from remainders. They become `(a - b) % m * 0 != 0 || any(0..1)`.
//! 5. `cas(x, a, b)` becomes `any(0..1) && cas(x, a, b)`. If x holds `a`, then their remainders are the same. The
//!    wrapped program chooses 1, and its `cas` succeeds as well. Otherwise it chooses 0. It leaves out the `cas`, which
//!    would have changed nothing, and the wait for an empty buffer. The operands must not load: a load that is left out
//!    could be seen by a property that says that a process is *not* at a label.
//!
//! Choices are left out where one of their results is of no use:
//! - In `assume` and `await`: `a == b`, if it has to be true for the condition to be true, becomes `(a - b) % m == 0`.
//!   The other choice makes the condition false, and the process stays where it is, which it may do anyway. (An `await`
//!   that only loads makes one attempt: lowering relies on the same argument.) If the whole condition is a `cas`, it
//!   stays: a `cas` that fails leads back to where it started.
//! - In `assert`: `a != b`, if it has to be true, becomes `(a - b) % m != 0`. The other choice leads on only if this
//!   one, which is a violation, is possible too.
//!
//! Properties have no choices. The condition of a `forbid` becomes one that is true if the original may be true, and
//! that of a `final` one that is true only if the original must be true. Where the original does not overflow, the new
//! condition does not either: what is subtracted are remainders, or few of them and small numbers.
//!
//! *Overflow.* The program faults if a result does not fit into 64 bits. The wrapped program does not. So what is
//! stored in a wide variable may be at most one wide value, plus or minus something of at most [`MAX_STEP`], and
//! comparisons have at most [`MAX_OPERANDS`] wide values. After n steps no wide variable holds more than 2^16 (n + 1).
//!
//! *What is refused.* Everything that this argument does not cover:
//! - other operators on wide values (products, quotients, bits, words), and their use as truth values;
//! - wide values in indices, arguments, results and variables with domains or without growth;
//! - other locked instructions on wide variables;
//! - pointers, which might lead to a wide variable;
//! - initial values that are arbitrary or not numbers;
//! - processes with identities, because such a program stands for one program per number of processes.
//!
//! What must stay possible is not asked of the wrapped program. Its `live` and similar properties are left out.

mod growth;
mod values;

use crate::Refusal;
use growth::{BodyIndex, growing};
use palisade_program::Value;
use palisade_program::written::{
    BinaryOp, Block, Expr, ExprKind, Init, InitValue, Program, PropertyKind, Shared, Stmt, StmtKind, Type,
    UnaryOp,
};
use values::{Demand, Names, Truth};

/// By how much one step may change a wide value.
const MAX_STEP: u64 = 1 << 16;

/// How many wide values a comparison may have.
const MAX_OPERANDS: u64 = 16;

/// The largest modulus. Larger ones have too many values to list.
const MAX_MODULUS: u32 = 1 << 10;

/// Whether some variables of the program seem to grow without bound, so that [`wrapped`] has something to do.
pub fn runs_away(program: &Program) -> bool {
    !growing(program).is_empty()
}

/// The program with the values of variables that grow taken modulo a number. If it is safe, so is the program, as long
/// as nothing overflows.
pub fn wrapped(program: &Program, modulus: u32) -> Result<Program, Refusal> {
    if !(2..=MAX_MODULUS).contains(&modulus) {
        return Err(Refusal::Unfit(format!("integers modulo {modulus}")));
    }
    if program.identities.is_some() {
        return Err(Refusal::Unfit(
            "integers are taken modulo a number, but processes have identities".to_owned(),
        ));
    }
    let growing = growing(program);
    if growing.is_empty() {
        return Err(Refusal::Unfit("integers are taken modulo a number, but none grows".to_owned()));
    }
    let rewriter = Rewriter { names: Names::new(program, &growing, modulus), modulus };
    let mut result = program.clone();
    result.progress.clear();
    for shared in result.shared.iter_mut().filter(|shared| growing.contains(&(None, shared.name.as_str()))) {
        rewriter.shared(shared)?;
    }
    let templates = result.templates.iter_mut().map(|template| &mut template.body);
    let procedures = result.procedures.iter_mut().map(|procedure| &mut procedure.body);
    for (index, body) in templates.chain(procedures).enumerate() {
        rewriter.block(index, body)?;
    }
    for property in &mut result.properties {
        let truth = match property.kind {
            PropertyKind::Forbid => Truth::May,
            PropertyKind::Final => Truth::Must,
        };
        property.condition = rewriter.names.property(&property.condition, truth)?;
    }
    match palisade_program::validate(&result).iter().any(palisade_base::Diagnostic::is_error) {
        true => Err(Refusal::Unfit("the program cannot be taken modulo a number".to_owned())),
        false => Ok(result),
    }
}

struct Rewriter<'p> {
    names: Names<'p>,
    modulus: u32,
}

impl Rewriter<'_> {
    fn ty(&self) -> Type {
        Type::wrapping(0, Value::from(self.modulus) - 1)
    }

    fn shared(&self, shared: &mut Shared) -> Result<(), Refusal> {
        shared.ty = self.ty();
        match &mut shared.init {
            Init::Every(value) => self.initial(value),
            Init::Each(values) => values.iter_mut().try_for_each(|value| self.initial(value)),
        }
    }

    fn initial(&self, value: &mut InitValue) -> Result<(), Refusal> {
        let number = match value {
            InitValue::Any => None,
            InitValue::Const(e) => literal(e),
        };
        let number = number.filter(|number| number.unsigned_abs() <= MAX_STEP);
        let number =
            number.ok_or_else(|| Refusal::Unfit("an initial value has no known remainder".to_owned()))?;
        *value = InitValue::Const(Expr::int(number.rem_euclid(self.modulus.into())));
        Ok(())
    }

    /// The parsers limit how deep blocks nest.
    fn block(&self, body: BodyIndex, block: &mut Block) -> Result<(), Refusal> {
        block.iter_mut().try_for_each(|stmt| self.stmt(body, stmt))
    }

    fn stmt(&self, body: BodyIndex, stmt: &mut Stmt) -> Result<(), Refusal> {
        palisade_base::limits::checkpoint();
        let names = &self.names;
        match &mut stmt.kind {
            StmtKind::Let { name, ty, init } => {
                let wide = names.is_wide_register(body, name);
                if let Some(init) = init {
                    *init = names.stored(body, init, wide)?;
                }
                if wide {
                    *ty = self.ty();
                }
            }
            StmtKind::Assign { place, value } => {
                *value = names.stored(body, value, names.is_wide(body, place))?;
                *place = names.place(body, place)?;
            }
            StmtKind::Eval(e) => {
                let (rewritten, _) = names.expr(body, e)?;
                match &rewritten.kind {
                    // It is not a single effect any more.
                    ExprKind::Binary(..) => {
                        stmt.kind =
                            StmtKind::If { condition: rewritten, then: Vec::new(), otherwise: Vec::new() };
                    }
                    _ => *e = rewritten,
                }
            }
            StmtKind::Assume(e) | StmtKind::Await(e) => *e = names.condition(body, e, Demand::Wait)?,
            StmtKind::Assert(e, _) => *e = names.condition(body, e, Demand::Assert)?,
            StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => {
                *condition = names.exact(body, condition)?;
            }
            StmtKind::Return(Some(e)) => *e = names.exact(body, e)?,
            StmtKind::Spawn { args, .. } => {
                for arg in args {
                    *arg = names.exact(body, arg)?;
                }
            }
            StmtKind::Return(None)
            | StmtKind::Skip
            | StmtKind::Fence
            | StmtKind::StoreFence
            | StmtKind::Loop(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Goto(_)
            | StmtKind::Choose(_)
            | StmtKind::Atomic(_)
            | StmtKind::Block(_) => {}
        }
        stmt.kind.blocks_mut().into_iter().try_for_each(|inner| self.block(body, inner))
    }
}

/// The value of a literal or a negated one.
fn literal(e: &Expr) -> Option<Value> {
    match &e.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Bool(value) => Some((*value).into()),
        ExprKind::Unary(UnaryOp::Neg, a) => literal(a)?.checked_neg(),
        _ => None,
    }
}

/// `a op b`, at the place of another expression.
fn binary(op: BinaryOp, a: Expr, b: Expr, at: &Expr) -> Expr {
    Expr { kind: ExprKind::Binary(op, Box::new(a), Box::new(b)), origin: at.origin }
}
