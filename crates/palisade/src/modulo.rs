//! Counters that grow without bound: exact engines on programs whose integers are taken modulo a number.
//!
//! *Problem.* The tickets of a ticket lock grow forever, so no list of values is complete, and no guess of a domain
//! holds.
//!
//! *How.* The integers that seem to grow are taken modulo 2, 3, 4, …, and an engine that lists values is asked about
//! that program. It has more behaviour than the program itself: see `palisade_certificate::wrapped` for the argument.
//!
//! If that proves nothing, the engine looks for a violation in the runs in which the variables without a domain stay near
//! their initial values: other stores block there. Such a run is a run of the program, and is replayed as one.
//!
//! *Guarantee.* `safe` is about the program itself, as long as no integer overflows, and the answer says so. A violation
//! of the program modulo a number proves nothing and leads to the next one.

use crate::answer::Answer;
use crate::ask::confirm;
use crate::check::{CheckOptions, check_analysis};
use crate::error::AskError;
use palisade_certificate::wrapped;
use palisade_engine::{Analysis, Limits, Verdict};
use palisade_program::Value;
use palisade_program::written::{Domain, ExprKind, Init, InitValue, Outside, Type, UnaryOp};

/// The numbers that are tried, in this order.
const MODULI: [u32; 6] = [2, 3, 4, 6, 8, 12];

/// How many configurations an engine may look at for each number.
const WORK: u64 = 1 << 16;

/// How far from their initial values variables may be when a violation is looked for.
const NEARBY: Value = 2;

/// `safe`, if an engine says so about the program with its growing integers taken modulo some number;
/// or a violation near the initial values.
pub(crate) fn modulo(
    analysis: &Analysis<'_>,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<Option<Answer>, AskError> {
    let limits = limits.clone().at_most_work(WORK);
    for modulus in MODULI {
        let Ok(Ok(program)) = limits.within(|| wrapped(analysis.task.program, modulus)) else {
            return Ok(None);
        };
        let answer = check_analysis(&Analysis::new(options.task(&program)), options, &limits)?;
        match answer.outcome.verdict {
            Verdict::Holds => return Ok(Some(Answer { modulus: Some(modulus), ..answer })),
            Verdict::Violated(_) => {}
            // Larger numbers take more work.
            Verdict::Unknown(_) => break,
        }
    }
    nearby(analysis, options, &limits)
}

/// Says in an answer how it was proved.
pub(crate) fn note(answer: &mut Answer) {
    if let (Some(modulus), Verdict::Holds) = (answer.modulus, &answer.outcome.verdict) {
        answer.add_note(format!("proved with integers taken modulo {modulus}, for runs without overflow"));
    }
}

/// A violation in the runs in which variables without a domain stay near their initial values.
fn nearby(
    analysis: &Analysis<'_>,
    options: &CheckOptions,
    limits: &Limits,
) -> Result<Option<Answer>, AskError> {
    let mut program = analysis.task.program.clone();
    for shared in program.shared.iter_mut().filter(|shared| shared.ty.domain == Domain::Int) {
        let initial = match &shared.init {
            Init::Every(value) => number(value).map(|value| (value, value)),
            Init::Each(values) => {
                let numbers: Option<Vec<Value>> = values.iter().map(number).collect();
                numbers.and_then(|numbers| Some((*numbers.iter().min()?, *numbers.iter().max()?)))
            }
        };
        let Some((lo, hi)) = initial else { return Ok(None) };
        let (lo, hi) = (lo.saturating_sub(NEARBY), hi.saturating_add(NEARBY));
        shared.ty = Type { domain: Domain::Range { lo, hi }, outside: Outside::Block };
    }
    if palisade_program::validate(&program).iter().any(palisade_base::Diagnostic::is_error) {
        return Ok(None);
    }
    let options = CheckOptions { prove: false, certify: false, ..options.clone() };
    let mut answer = check_analysis(&Analysis::new(options.task(&program)), &options, limits)?;
    if !matches!(answer.outcome.verdict, Verdict::Violated(_)) {
        return Ok(None);
    }
    answer.confirmed = confirm(analysis, &mut answer.outcome, limits)?;
    Ok(Some(answer))
}

/// An initial value, if it is a number.
fn number(value: &InitValue) -> Option<Value> {
    let InitValue::Const(e) = value else { return None };
    match &e.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Unary(UnaryOp::Neg, a) => match a.kind {
            ExprKind::Int(value) => value.checked_neg(),
            _ => None,
        },
        _ => None,
    }
}
