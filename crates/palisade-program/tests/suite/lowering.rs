//! The control flow that lowering produces.

use crate::common;

use common::{flow, system, system_with};
use palisade_base::{Origin, Span};
use palisade_program::running::{Condition, System};
use palisade_program::written::{
    BinaryOp, Check, Count, Expr, ExprKind, Init, InitValue, Name, Place, PlaceKind, Program, Rmw, Shared,
    Start, Stmt, StmtKind, Template, Type, UnaryOp,
};
use palisade_program::{Instantiation, lower};

/// Lowers a program and compares the control flow of one code, in the format of [`flow`]. Spaces around lines
/// do not matter.
#[track_caller]
fn check(text: &str, name: &str, expected: &str) {
    let found = flow(&system(text), name);
    let expected: String =
        expected.lines().map(str::trim).filter(|l| !l.is_empty()).map(|l| format!("{l}\n")).collect();
    assert_eq!(found, expected, "{text}\nlowers to\n{found}");
}

/// The same for the body of a process with a few variables and procedures around it.
#[track_caller]
fn check_body(body: &str, expected: &str) {
    let text = format!(
        "shared x, y, a[3]; shared b: bool;
        proc f(n: 0..3) -> int {{ return n; }}
        proc g() {{ fence; }}
        process Q(i: 0..1) on spawn {{ }}
        process P {{ {body} }}"
    );
    check(&text, "P", expected);
}

#[test]
fn peterson_as_it_is_printed() {
    let text = "shared flag[2]: bool;
        shared turn: 0..1 = *;
        process P(i: 0..1) {
            loop {
                flag[i] = true;
                turn = 1 - i;
                while flag[1 - i] && turn == 1 - i {}
            cs: skip;
                flag[i] = false;
            }
        }";
    check(
        text,
        "P(1)",
        "0: flag[1] = 1 -> 1
        1: turn = 0 -> 2
        2: %0 = flag[0] -> 3
        3: assume(%0) -> 4
        3: assume(!%0) -> cs
        4: %0 = turn -> 5
        5: assume(%0 == 0) -> 2
        5: assume(%0 != 0) -> cs
        cs: skip -> 7
        7: flag[1] = 0 -> 0",
    );
}

#[test]
fn operands_are_loaded_from_left_to_right() {
    check_body(
        "x = y - a[x];",
        "0: %0 = y -> 1 \n 1: %1 = x -> 2 \n 2: %1 = a[%1] -> 3 \n 3: x = %0 - %1 -> end",
    );
    check_body("a[x] = y;", "0: %0 = y -> 1 \n 1: %1 = x -> 2 \n 2: a[%1] = %0 -> end");
    check_body(
        "cas(a[x], y, b);",
        "0: %0 = y -> 1 \n 1: %1 = b -> 2 \n 2: %2 = x -> 3 \n 3: %0 = cas(a[%2], %0, %1) -> end",
    );
    check_body("*x = *y;", "0: %0 = y -> 1 \n 1: %0 = *%0 -> 2 \n 2: %1 = x -> 3 \n 3: *%1 = %0 -> end");
    check_body("spawn Q(b);", "0: %0 = b -> 1 \n 1: spawn Q(%0) -> end");
}

#[test]
fn results_go_straight_to_registers() {
    check_body("let r = x; r = a[r];", "0: r = x -> 1 \n 1: r = a[r] -> end");
    check_body(
        "let r = xchg(x, 1); r = cas(x, r, 2);",
        "0: r = xchg(x, 1) -> 1 \n 1: r = cas(x, r, 2) -> end",
    );
    check_body(
        "let r = f(1); r = f(r); f(x);",
        "0: r = f(1) -> 1 \n 1: r = f(r) -> 2 \n 2: %0 = x -> 3 \n 3: f(%0) -> end",
    );
    check_body("let r = any(0..2); g();", "0: r = any(0..2) -> 1 \n 1: g() -> end");
}

#[test]
fn the_second_operand_is_evaluated_only_if_needed() {
    check_body(
        "let r = b || x;",
        "0: %0 = b -> 1
        1: assume(%0) -> 4
        1: assume(!%0) -> 2
        2: %0 = x -> 3
        3: r = %0 != 0 -> end
        4: r = 1 -> end",
    );
    check_body(
        "let r = !(b && x);",
        "0: %0 = b -> 1
        1: assume(%0) -> 2
        1: assume(!%0) -> 4
        2: %0 = x -> 3
        3: assume(%0) -> 5
        3: assume(!%0) -> 4
        4: r = 1 -> end
        5: r = 0 -> end",
    );
    check_body(
        "let r; if r && x || b { y = 1; } else { y = 2; } y = 3;",
        "0: assume(r) -> 1
        0: assume(!r) -> 3
        1: %0 = x -> 2
        2: assume(%0) -> 5
        2: assume(!%0) -> 3
        3: %0 = b -> 4
        4: assume(%0) -> 5
        4: assume(!%0) -> 6
        5: y = 1 -> 7
        6: y = 2 -> 7
        7: y = 3 -> end",
    );
    // There is nothing to skip: the second operand is a register.
    check_body("let r = x; r = b && r;", "0: r = x -> 1 \n 1: %0 = b -> 2 \n 2: r = %0 && r -> end");
    check_body(
        "let r = -(b && x);",
        "0: %1 = b -> 1
        1: assume(%1) -> 2
        1: assume(!%1) -> 4
        2: %1 = x -> 3
        3: %0 = %1 != 0 -> 5
        4: %0 = 0 -> 5
        5: r = -%0 -> end",
    );
}

#[test]
fn constants_are_folded_but_not_their_faults() {
    check_body("a[5 - 3] = 2 * 3 + 1;", "0: a[2] = 7 -> end");
    check_body("if 0 && x { y = 1; } y = 1 && x;", "0: %0 = x -> 1 \n 1: y = %0 != 0 -> end");
    check_body("if true { x = 1; } else { x = 2; }", "0: x = 1 -> end");
    check_body("while false { x = 1; }", "");
    let text = "shared x, a[2]; process P(i: 0..1) { x = 6 / i; a[i + 1] = &a[i]; if i == 1 { x = 1; } }";
    check(text, "P(0)", "0: x = 6 / 0 -> 1 \n 1: a[1] = 2 -> end");
    check(text, "P(1)", "0: x = 6 -> 1 \n 1: a[2] = 3 -> 2 \n 2: x = 1 -> end");
}

#[test]
fn faults_come_before_calls_that_may_not_return() {
    check_body(
        "let r = 1; x = 7 % r + f(2); x = 7 % r + x;",
        "0: r = 1 -> 1
        1: %0 = 7 % r -> 2
        2: %1 = f(2) -> 3
        3: x = %0 + %1 -> 4
        4: %0 = x -> 5
        5: x = 7 % r + %0 -> end",
    );
}

#[test]
fn addresses() {
    check_body(
        "let i: 0..2 = 1; let p = &a[i]; p = &a[x]; p = &x; *(&a[1]) = 2; *(2 + 2) = 5; *99 = 1; *p = *&x;",
        "0: i = 1 -> 1
        1: p = 3 + i -> 2
        2: %0 = x -> 3
        3: assert(%0 >= 0 && %0 < 3) else index -> 4
        4: p = 3 + %0 -> 5
        5: p = 1 -> 6
        6: a[1] = 2 -> 7
        7: a[1] = 5 -> 8
        8: *99 = 1 -> 9
        9: %0 = x -> 10
        10: *p = %0 -> end",
    );
}

#[test]
fn registers_that_are_0_already_need_no_assignment() {
    check_body("let r; let s = 0; let t: 0..3; x = r + s + t;", "0: x = r + s + t -> end");
    check_body("loop { let r; r = x; }", "0: r = 0 -> 1 \n 1: r = x -> 0");
    check_body("l: skip; let r; r = x; goto l;", "l: skip -> 1 \n 1: r = 0 -> 2 \n 2: r = x -> l");
}

#[test]
fn conditions_that_wait() {
    check_body(
        "assume(b && x); await x == 1 && y == 2; assume(x || b);",
        "0: %0 = b -> 1
        1: assume(%0) -> 2
        2: %0 = x -> 3
        3: assume(%0) -> 4
        4: %0 = x -> 5
        5: assume(%0 == 1) -> 6
        6: %0 = y -> 7
        7: assume(%0 == 2) -> 8
        8: %0 = x -> 9
        9: assume(%0) -> end
        9: assume(!%0) -> 10
        10: %0 = b -> 11
        11: assume(%0) -> end",
    );
    // A failed attempt may have changed something, so there is a real loop.
    check_body(
        "await cas(x, 0, 1);",
        "0: %0 = cas(x, 0, 1) -> 1
        1: assume(%0) -> end
        1: assume(!%0) -> 0",
    );
}

#[test]
fn assertions() {
    check_body(
        "assert(x == 1); assert(!(b && x));",
        "0: %0 = x -> 1
        1: assert(%0 == 1) -> 2
        2: %0 = b -> 3
        3: assume(%0) -> 4
        3: assume(!%0) -> end
        4: %0 = x -> 5
        5: assume(%0) -> 6
        5: assume(!%0) -> end
        6: assert(0) -> end",
    );
}

#[test]
fn every_label_has_its_own_location() {
    check_body(
        "cs: skip; skip; a: {} c: goto d; d: loop { e: f: x = 1; break; } z: loop {}",
        "cs: skip -> a
        a: skip -> c
        c: skip -> d
        d: skip -> e,f
        e,f: x = 1 -> z
        z: skip -> z",
    );
    // Unreachable labels can still be observed.
    check_body("return; l: x = 2; m: skip;", "l: stuck \n m: stuck");
    check_body("if false { l: x = 2; } goto m; m: skip; goto l;", "m: skip -> l \n l: x = 2 -> m");
}

#[test]
fn loops_and_jumps_leave_no_empty_steps() {
    check_body("", "");
    check_body("loop {}", "0: stuck");
    check_body(
        "{ { } } skip; x = 1; {} fence; sfence;",
        "0: x = 1 -> 1 \n 1: fence -> 2 \n 2: sfence -> end",
    );
    check_body(
        "loop { while b {} if x { continue; } break; } y = 1;",
        "0: %0 = b -> 1
        1: assume(%0) -> 0
        1: assume(!%0) -> 2
        2: %0 = x -> 3
        3: assume(%0) -> 0
        3: assume(!%0) -> 4
        4: y = 1 -> end",
    );
    check_body(
        "if b { return; } else { goto l; } l: skip;",
        "0: %0 = b -> 1 \n 1: assume(%0) -> end \n 1: assume(!%0) -> l \n l: skip -> end",
    );
}

#[test]
fn a_choice_is_merged_with_the_first_step_if_equivalent() {
    check_body(
        "choose { loop { x = 1; } } or { goto l; } or { y = 1; } or {} or { choose { x = 2; } or { l: x = 3; } }",
        "0: skip -> 1
        0: skip -> l
        0: y = 1 -> end
        0: skip -> end
        0: x = 2 -> end
        0: skip -> l
        1: x = 1 -> 1
        l: x = 3 -> end",
    );
}

#[test]
fn leaving_an_atomic_block_closes_it() {
    check_body(
        "atomic { x = 1; if b { return; } }
        loop { atomic { if x { break; } atomic { if y { continue; } goto l; } } }
        l: x = 1;",
        "0: atomic { -> 1
        1: x = 1 -> 2
        2: %0 = b -> 3
        3: assume(%0) -> 4
        3: assume(!%0) -> 5
        4: } atomic -> end
        5: } atomic -> 6
        6: atomic { -> 7
        7: %0 = x -> 8
        8: assume(%0) -> 9
        8: assume(!%0) -> 10
        9: } atomic -> l
        10: atomic { -> 11
        11: %0 = y -> 12
        12: assume(%0) -> 13
        12: assume(!%0) -> 15
        13: } atomic -> 14
        14: } atomic -> 6
        15: } atomic -> 16
        16: } atomic -> l
        l: x = 1 -> end",
    );
}

#[test]
fn procedures_return() {
    let text = "shared x;
        proc f(n: 0..3) -> bool {
            atomic { if n == 0 { return x == 1; } }
            return f(n - 1);
        }
        proc g() { if x { return; } x = 1; }
        process P { g(); }";
    check(
        text,
        "f",
        "0: atomic { -> 1
        1: assume(n == 0) -> 2
        1: assume(n != 0) -> 5
        2: %0 = x -> 3
        3: } atomic -> 4
        4: return %0 == 1 -> end
        5: } atomic -> 6
        6: %0 = f(n - 1) -> 7
        7: return %0 -> end",
    );
    check(
        text,
        "g",
        "0: %0 = x -> 1
        1: assume(%0) -> 2
        1: assume(!%0) -> 3
        2: return -> end
        3: x = 1 -> 4
        4: return -> end",
    );
}

#[test]
fn temporaries_can_hold_their_values() {
    let system = system("shared x: 0..5; shared y: 3..9 = 3; process P { assume(x == 1); assume(y == 3); }");
    let code = system.role_code(system.instances[palisade_program::running::ThreadId(0)].role);
    let domains: Vec<_> = code.registers.iter().map(|r| (r.name.as_str(), r.ty.domain.bounds())).collect();
    assert_eq!(domains, [("%0", Some((0, 9)))]);
}

#[test]
fn registers_say_whether_they_are_temporaries() {
    let system = system("shared x: 0..5; process P { let r = x; assume(x == r); }");
    let code = system.role_code(system.instances[palisade_program::running::ThreadId(0)].role);
    let registers: Vec<_> = code.registers.iter().map(|r| (r.name.as_str(), r.is_temporary())).collect();
    assert_eq!(registers, [("r", false), ("%0", true)]);
}

#[test]
fn spans_are_those_of_statements_and_loads() {
    let text = "shared x, y; process P { x = y + 1; if x == 2 { fence; } }";
    let source = palisade_base::Source::new("t", text);
    let system = system(text);
    let code = system.role_code(system.instances[palisade_program::running::ThreadId(0)].role);
    let spans: Vec<&str> = code.edges().iter().map(|edge| source.slice(edge.span)).collect();
    assert_eq!(spans, ["y", "x = y + 1;", "x", "if x == 2", "if x == 2", "fence;"]);
}

fn names(system: &System) -> Vec<&str> {
    system.instances.iter().map(|instance| instance.name.as_str()).collect()
}

#[test]
fn instances_and_their_names() {
    let text = "process Main { } process P(i: 0..1, j: 0..1) { } process Q[2] { } process R(i: 1..2)[*] { }
        process S(i: 0..9) on spawn { }";
    let declared = system(text);
    assert_eq!(
        names(&declared),
        [
            "Main", "P(0, 0)", "P(0, 1)", "P(1, 0)", "P(1, 1)", "Q[0]", "Q[1]", "R(1)[0]", "R(1)[1]",
            "R(2)[0]", "R(2)[1]"
        ]
    );
    assert_eq!(declared.roles.len(), 1 + 4 + 1 + 2 + 10);
    let one = system_with(text, Instantiation { any: 3, every: Some(1) });
    assert_eq!(
        names(&one),
        ["Main", "P(0, 0)", "P(0, 1)", "P(1, 0)", "P(1, 1)", "Q[0]", "R(1)[0]", "R(2)[0]"]
    );
}

#[test]
fn processes_named_by_properties_exist() {
    let text = "process P[*] { l: skip; } process Q(i: 0..1)[2] { l: skip; } forbid P[2]@l; forbid Q[3]@l;";
    let least = system_with(text, Instantiation { any: 1, every: None });
    assert_eq!(names(&least), ["P[0]", "P[1]", "P[2]", "Q(0)[0]", "Q(0)[1]", "Q(1)[0]", "Q(1)[1]"]);
    let threads: Vec<u32> = least
        .properties
        .iter()
        .map(|property| match property.bad {
            Condition::At(thread, _) => thread.0,
            ref other => panic!("not a place: {other:?}"),
        })
        .collect();
    assert_eq!(threads, [2, 6]);
}

#[test]
fn properties_are_bad_when_true() {
    let text = "shared x, a[2];
        process P(i: 0..1) { let r = x; l: skip; }
        forbid P(1)@l && P(0)@end && a[2 - 1] == &x;
        final P(0).r == P(1).i;
        final !(x == 2 && 1 == 1);
        forbid count(P@l) >= 2 && 2 == 3;";
    let system = system(text);
    let shown: Vec<String> =
        system.properties.iter().map(|p| format!("{:?} {:?}", p.reads_memory, p.bad)).collect();
    assert_eq!(
        shown,
        [
            "true Binary(And, Binary(And, At(ThreadId(1), Location(1)), At(ThreadId(0), Location(2))), \
             Binary(Eq, Cell(CellId(2)), Const(1)))",
            "false Binary(Ne, Register(ThreadId(0), RegId(0)), Const(1))",
            "true Binary(And, Binary(Eq, Cell(CellId(0)), Const(2)), Const(1))",
            "false Binary(And, Binary(Ge, Count([(RoleId(0), Location(1)), (RoleId(1), Location(1))]), Const(2)), Const(0))",
        ]
    );
}

#[test]
fn memory_is_laid_out_in_order() {
    let system = system("shared p = &a[1]; shared a[2]: 0..3 = [1, *]; shared b: bool = true; process P { }");
    let cells: Vec<_> = system.cells.iter().map(|cell| (cell.name.as_str(), cell.init)).collect();
    assert_eq!(cells, [("p", Some(3)), ("a[0]", Some(1)), ("a[1]", None), ("b", Some(1))]);
}

/// Nesting deeper than the parser allows.
#[test]
fn deep_programs_do_not_exhaust_the_stack() {
    let load = || {
        Expr::new(ExprKind::Read(Place::new(PlaceKind::Named(Name::generated("x")), Span::NONE)), Span::NONE)
    };
    let deep =
        |step: &dyn Fn(Expr) -> ExprKind| (0..1000).fold(load(), |e, _| Expr::new(step(e), Span::NONE));
    let expressions = [
        deep(&|e| ExprKind::Binary(BinaryOp::And, Box::new(e), Box::new(load()))),
        deep(&|e| ExprKind::Binary(BinaryOp::Or, Box::new(load()), Box::new(e))),
        deep(&|e| ExprKind::Binary(BinaryOp::Div, Box::new(load()), Box::new(e))),
        deep(&|e| ExprKind::Unary(UnaryOp::Not, Box::new(e))),
        deep(&|e| ExprKind::Read(Place::new(PlaceKind::Deref(Box::new(e)), Span::NONE))),
        deep(&|e| {
            ExprKind::Locked(
                Rmw::Exchange,
                Place::new(PlaceKind::Named(Name::generated("x")), Span::NONE),
                vec![e],
            )
        }),
    ];
    let stmt = |kind| Stmt::new(kind, Span::NONE);
    let mut block: Vec<Stmt> = Vec::new();
    for e in expressions {
        block.push(stmt(StmtKind::Assert(e.clone(), Check::Assertion)));
        block.push(stmt(StmtKind::Let {
            name: Name::generated(format!("r{}", block.len())),
            ty: Type::INT,
            init: Some(e),
        }));
    }
    for level in 0..200 {
        block = vec![stmt(match level % 5 {
            0 => StmtKind::If { condition: load(), then: Vec::new(), otherwise: block },
            1 => StmtKind::Loop(block),
            2 => StmtKind::Atomic(block),
            3 => StmtKind::Choose(vec![Vec::new(), block]),
            _ => StmtKind::While { condition: load(), body: block },
        })];
    }
    let mut program = Program::default();
    let init = Init::Every(InitValue::Const(Expr::int(0)));
    program.shared.push(Shared {
        name: Name::generated("x"),
        len: None,
        ty: Type::INT,
        init,
        at: None,
        origin: Origin::NONE,
    });
    program.templates.push(Template {
        name: Name::generated("P"),
        params: Vec::new(),
        count: Count::Fixed(1),
        start: Start::Initially,
        body: block,
        origin: Origin::NONE,
    });
    assert_eq!(palisade_program::validate(&program), []);
    let system = lower(&program, Instantiation::declared(1));
    assert!(palisade_program::dot::control_flow(&system).len() > 100_000);
}
