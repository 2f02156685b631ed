//! What a translated program states about its end.
//!
//! *Problem.* Whether the program can always finish is a question about runs in which waits on condition variables end
//! only by signals. What can go wrong is a question about all runs. A search for fences asks both about one program.
//!
//! *How.* Under [`Aim::Both`](crate::Aim) a variable that is never written says whether waits may end without a signal.
//! Its initial value is arbitrary. The program must be able to finish in the runs in which they may not; in the others
//! it need not.
//!
//! *Guarantee.* Each run of the program under `Both` is a run under `Safety`, with one more load per wait, and vice
//! versa. Those in which the variable is 0 are the runs under `Progress`. The variable never changes, so what can be
//! reached in a run of one kind is what can be reached there.

use crate::Finish;
use crate::emit::OVER;
use palisade_base::{Origin, Span};
use palisade_program::written::{
    BinaryOp, Count, END_LABEL, Expr, ExprKind, Init, InitValue, Name, Observation, Place, PlaceKind,
    Placement, Progress, ProgressKind, Shared, Stmt, Template, Type,
};

/// Says in memory whether waits for conditions may end without a signal in this run. It is never written. No C
/// variable has this name, and no pointer leads to it: the last three bits of an address are the logarithm of a
/// size.
const WAKES_ALONE: &str = "spurious.wake-ups";
const WAKES_ALONE_AT: Placement = Placement { address: 7, step: 1 };

/// Whether waits end only by signals, or also without them in some runs, as memory says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WakeUps {
    BySignal,
    Open,
}

/// The variable that says whether waits may end without a signal.
pub(crate) fn wakes_alone() -> Shared {
    Shared {
        name: Name::generated(WAKES_ALONE),
        len: None,
        ty: Type::BOOL,
        init: Init::Every(InitValue::Any),
        at: Some(WAKES_ALONE_AT),
        origin: Origin::NONE,
    }
}

/// Whether waits may end without a signal in this run.
pub(crate) fn reads_wakes_alone() -> Expr {
    let place = Place::new(PlaceKind::Named(Name::generated(WAKES_ALONE)), Span::NONE);
    expr(ExprKind::Read(place))
}

fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::NONE)
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    expr(ExprKind::Binary(op, Box::new(a), Box::new(b)))
}

/// What must stay possible so that the program can finish.
pub(crate) fn stays_possible(finish: &Finish, wake_ups: WakeUps, templates: &[Template]) -> Option<Progress> {
    let unless_alone = |goal: Expr| match wake_ups {
        WakeUps::BySignal => goal,
        WakeUps::Open => binary(BinaryOp::Or, binary(BinaryOp::Ne, reads_wakes_alone(), Expr::int(0)), goal),
    };
    let kind = match (finish, wake_ups) {
        (Finish::Over, _) => ProgressKind::Live(unless_alone(is_over(templates))),
        (Finish::AllEnded, WakeUps::BySignal) => ProgressKind::LiveEnd,
        (Finish::AllEnded, WakeUps::Open) => ProgressKind::Live(unless_alone(all_ended(templates))),
        (Finish::Never | Finish::NotFollowed(_), _) => return None,
    };
    Some(Progress { kind, origin: Origin::NONE })
}

/// How many threads are at a label.
fn number_at<'a>(label: &str, templates: impl Iterator<Item = &'a Template>) -> Option<Expr> {
    let counts = templates.map(|template| {
        let (template, label) = (Name::generated(template.name.as_str()), Name::generated(label));
        expr(ExprKind::Observe(Observation::Count { template, label }))
    });
    counts.reduce(|a, b| binary(BinaryOp::Add, a, b))
}

/// The condition that a thread has ended the program. If none of them ever does, it is false.
fn is_over(templates: &[Template]) -> Expr {
    let number = number_at(OVER, templates.iter().filter(|template| has_label(&template.body, OVER)));
    let Some(number) = number else { return expr(ExprKind::Bool(false)) };
    binary(BinaryOp::Gt, number, Expr::int(0))
}

/// The condition that all threads have ended.
fn all_ended(templates: &[Template]) -> Expr {
    let all = templates.iter().map(|template| match template.count {
        Count::Fixed(count) => i64::from(count),
        Count::Any => unreachable!("C programs have a fixed number of threads"),
    });
    let number = number_at(END_LABEL, templates.iter()).unwrap_or_else(|| Expr::int(0));
    binary(BinaryOp::Eq, number, Expr::int(all.sum()))
}

fn has_label(block: &[Stmt], label: &str) -> bool {
    block.iter().any(|stmt| {
        stmt.labels.iter().any(|name| name.as_str() == label)
            || stmt.kind.blocks().into_iter().any(|inner| has_label(inner, label))
    })
}
