//! Random programs in written form. They are grammatical `.pal`, but names need not be declared and types
//! need not match.

use palisade_base::{Origin, Span};
use palisade_program::written::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Any program that `.pal` can express.
pub fn program() -> BoxedStrategy<Program> {
    (
        vec(shared(), 0..6),
        vec(private(), 0..4),
        vec(procedure(), 0..3),
        vec(template(), 0..3),
        vec(property(), 0..3),
        vec(progress(), 0..3),
    )
        .prop_map(|(shared, privates, procedures, templates, properties, progress)| Program {
            enums: Vec::new(),
            shared,
            privates,
            procedures,
            templates,
            properties,
            progress,
            identities: None,
        })
        .boxed()
}

/// Names, including words that are keywords only in one context.
fn name() -> BoxedStrategy<Name> {
    prop_oneof![
        8 => prop_oneof![Just("x"), Just("y"), Just("flag"), Just("P"), Just("cs"), Just("r1"), Just("critical")],
        1 => prop_oneof![Just("on"), Just("end"), Just("_"), Just("process_"), Just("a_rather_long_name_of_a_variable")],
    ]
    .prop_map(Name::generated)
.boxed()
}

/// Values, including the extremes.
fn value() -> BoxedStrategy<i64> {
    prop_oneof![8 => -3..10i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => any::<i64>()].boxed()
}

fn ty() -> BoxedStrategy<Type> {
    let domain = prop_oneof![
        Just(Domain::Int),
        Just(Domain::Bool),
        (value(), value()).prop_map(|(lo, hi)| Domain::Range { lo, hi })
    ];
    let outside = prop_oneof![4 => Just(Outside::Fault), 1 => Just(Outside::Block), 1 => Just(Outside::Wrap)];
    (domain, outside).prop_map(|(domain, outside)| Type { domain, outside }).boxed()
}

fn private() -> BoxedStrategy<Private> {
    (name(), ty()).prop_map(|(name, ty)| Private { name, ty, origin: Origin::NONE }).boxed()
}

fn shared() -> BoxedStrategy<Shared> {
    let initial = || {
        prop_oneof![
            4 => Just(InitValue::Const(Expr::int(0))),
            2 => expr().prop_map(InitValue::Const),
            1 => Just(InitValue::Any)
        ]
    };
    let init =
        prop_oneof![4 => initial().prop_map(Init::Every), 1 => vec(initial(), 0..4).prop_map(Init::Each)];
    let at = option::weighted(0.2, (value(), value()));
    (name(), option::of(0..5u32), ty(), init, at)
        .prop_map(|(name, len, ty, init, at)| {
            let at =
                at.map(|(address, step)| Placement { address, step: if len.is_some() { step } else { 1 } });
            Shared { name, len, ty, init, at, origin: Origin::NONE }
        })
        .boxed()
}

fn params() -> BoxedStrategy<Vec<Param>> {
    vec((name(), ty()).prop_map(|(name, ty)| Param { name, ty }), 0..3).boxed()
}

fn procedure() -> BoxedStrategy<Procedure> {
    (name(), params(), option::of(ty()), block())
        .prop_map(|(name, params, result, body)| Procedure {
            name,
            params,
            result,
            body,
            origin: Origin::NONE,
        })
        .boxed()
}

fn template() -> BoxedStrategy<Template> {
    let count =
        prop_oneof![3 => Just(Count::Fixed(1)), 1 => (0..9u32).prop_map(Count::Fixed), 1 => Just(Count::Any)];
    let start = prop_oneof![Just(Start::Initially), Just(Start::OnSpawn)];
    (name(), params(), count, start, block())
        .prop_map(|(name, params, count, start, body)| Template {
            name,
            params,
            count,
            start,
            body,
            origin: Origin::NONE,
        })
        .boxed()
}

fn property() -> BoxedStrategy<Property> {
    let kind = prop_oneof![Just(PropertyKind::Forbid), Just(PropertyKind::Final)];
    (kind, expr()).prop_map(|(kind, condition)| Property { kind, condition, origin: Origin::NONE }).boxed()
}

fn progress() -> BoxedStrategy<Progress> {
    let kind = prop_oneof![
        Just(ProgressKind::DeadlockFree),
        Just(ProgressKind::LiveEnd),
        expr().prop_map(ProgressKind::Live),
        Just(ProgressKind::Terminates),
        (process_ref(), name()).prop_map(|(process, label)| ProgressKind::Leaves { process, label }),
    ];
    kind.prop_map(|kind| Progress { kind, origin: Origin::NONE }).boxed()
}

fn place(expr: BoxedStrategy<Expr>) -> BoxedStrategy<Place> {
    prop_oneof![
        3 => name().prop_map(PlaceKind::Named),
        2 => (name(), expr.clone()).prop_map(|(name, index)| PlaceKind::Element(name, Box::new(index))),
        1 => expr.prop_map(|pointer| PlaceKind::Deref(Box::new(pointer))),
    ]
    .prop_map(|kind| Place::new(kind, Span::NONE))
    .boxed()
}

fn process_ref() -> BoxedStrategy<ProcessRef> {
    let select = prop_oneof![
        Just(Select::Only),
        (0..9u32).prop_map(Select::Index),
        vec(value(), 0..3).prop_map(Select::Args)
    ];
    (name(), select)
        .prop_map(|(template, select)| ProcessRef { template, select, origin: Origin::NONE })
        .boxed()
}

fn observation() -> BoxedStrategy<Observation> {
    let process = process_ref();
    prop_oneof![
        (process.clone(), name()).prop_map(|(process, label)| Observation::At { process, label }),
        (name(), name()).prop_map(|(template, label)| Observation::Count { template, label }),
        (process, name()).prop_map(|(process, register)| Observation::Register { process, register }),
    ]
    .boxed()
}

/// Any expression.
pub fn expr() -> BoxedStrategy<Expr> {
    let made = |kind| Expr::new(kind, Span::NONE);
    let leaf = prop_oneof![
        2 => prop_oneof![0..10i64, Just(i64::MAX), Just(i64::MIN)].prop_map(ExprKind::Int),
        1 => any::<bool>().prop_map(ExprKind::Bool),
        3 => name().prop_map(|name| ExprKind::Read(Place::new(PlaceKind::Named(name), Span::NONE))),
        1 => (value(), value()).prop_map(|(lo, hi)| ExprKind::Any { lo, hi }),
        1 => observation().prop_map(ExprKind::Observe),
    ]
    .prop_map(made);
    leaf.prop_recursive(5, 40, 3, move |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            1 => place(inner.clone()).prop_map(ExprKind::Read),
            1 => place(inner.clone()).prop_map(ExprKind::AddressOf),
            2 => (unary_op(), boxed.clone()).prop_map(|(op, a)| ExprKind::Unary(op, a)),
            8 => (binary_op(), boxed.clone(), boxed).prop_map(|(op, a, b)| ExprKind::Binary(op, a, b)),
            1 => locked(inner.clone()),
            1 => (name(), vec(inner, 0..3)).prop_map(|(name, args)| ExprKind::Call(name, args)),
        ]
        .prop_map(made)
    })
    .boxed()
}

fn locked(operand: BoxedStrategy<Expr>) -> BoxedStrategy<ExprKind> {
    (0..Rmw::ALL.len(), place(operand.clone()), vec(operand, 2))
        .prop_map(|(rmw, place, mut operands)| {
            let rmw = Rmw::ALL[rmw].0;
            operands.truncate(rmw.operands());
            ExprKind::Locked(rmw, place, operands)
        })
        .boxed()
}

fn check() -> BoxedStrategy<Check> {
    prop_oneof![3 => Just(Check::Assertion), 1 => Just(Check::Overflow), 1 => Just(Check::Heap)].boxed()
}

fn unary_op() -> BoxedStrategy<UnaryOp> {
    prop_oneof![Just(UnaryOp::Neg), Just(UnaryOp::Not), Just(UnaryOp::BitNot)].boxed()
}

fn binary_op() -> BoxedStrategy<BinaryOp> {
    use BinaryOp::*;
    prop_oneof![
        prop_oneof![Just(Add), Just(Sub), Just(Mul), Just(Div), Just(Rem)],
        prop_oneof![Just(BitAnd), Just(BitOr), Just(BitXor), Just(Shl), Just(Shr)],
        prop_oneof![Just(Eq), Just(Ne), Just(Lt), Just(Le), Just(Gt), Just(Ge)],
        prop_oneof![Just(And), Just(Or)],
        proptest::sample::select(&BinaryOp::WORD[..]),
    ]
    .boxed()
}

fn stmt(kind: BoxedStrategy<StmtKind>) -> BoxedStrategy<Stmt> {
    let labels = prop_oneof![4 => Just(Vec::new()), 1 => vec(name(), 1..3)];
    (labels, kind).prop_map(|(labels, kind)| Stmt { labels, kind, origin: Origin::NONE }).boxed()
}

fn block() -> BoxedStrategy<Block> {
    use StmtKind::*;
    let effect = prop_oneof![
        locked(expr()),
        (name(), vec(expr(), 0..3)).prop_map(|(name, args)| ExprKind::Call(name, args))
    ];
    let leaf = stmt(
        prop_oneof![
            prop_oneof![
                Just(Skip),
                Just(Fence),
                Just(StoreFence),
                Just(Break),
                Just(Continue),
                Just(Return(None))
            ],
            (name(), ty(), option::of(expr())).prop_map(|(name, ty, init)| Let { name, ty, init }),
            (place(expr()), expr()).prop_map(|(place, value)| Assign { place, value }),
            effect.prop_map(|kind| Eval(Expr::new(kind, Span::NONE))),
            expr().prop_map(Assume),
            expr().prop_map(Await),
            (expr(), check()).prop_map(|(condition, check)| Assert(condition, check)),
            expr().prop_map(|value| Return(Some(value))),
            name().prop_map(Goto),
            (name(), vec(expr(), 0..3)).prop_map(|(template, args)| Spawn { template, args }),
        ]
        .boxed(),
    );
    let nested = leaf.prop_recursive(4, 24, 4, |inner| {
        let block = vec(inner, 0..4);
        stmt(
            prop_oneof![
                (expr(), block.clone(), block.clone()).prop_map(|(condition, then, otherwise)| If {
                    condition,
                    then,
                    otherwise
                }),
                (expr(), block.clone()).prop_map(|(condition, body)| While { condition, body }),
                block.clone().prop_map(Loop),
                block.clone().prop_map(Atomic),
                block.clone().prop_map(Block),
                vec(block, 1..4).prop_map(Choose),
            ]
            .boxed(),
        )
    });
    vec(nested, 0..5).boxed()
}
