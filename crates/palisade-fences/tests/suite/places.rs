//! Where fences may go.

use crate::common::{pal, places, read};
use palisade_base::Source;
use palisade_fences::{Per, Placement, Side};
use palisade_memory::Model;
use palisade_program::written::Program;
use palisade_syntax::Language;

/// The places of a program as line numbers. The fence is after (`+`) or before (`-`) the line; `*` marks
/// places in loops.
fn describe(text: &str, program: &Program, placement: Placement, per: Per) -> String {
    let source = Source::new("test", text);
    let places = places(program, placement, per, Model::Tso);
    let place = |place: &palisade_fences::FencePlace| {
        let line = source.position(place.span).expect("places are written").line;
        let side = if place.side == Side::After { "+" } else { "-" };
        let process = place.args.as_ref().map_or(String::new(), |_| format!("{} ", place.process));
        format!("{process}{line}{side}{}", if place.in_loop { "*" } else { "" })
    };
    places.places().iter().map(place).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check(text: &str, after_writes: &str, before_reads: &str, anywhere: &str) {
    let program = pal(text);
    for (placement, expected) in [
        (Placement::AfterWrites, after_writes),
        (Placement::BeforeReads, before_reads),
        (Placement::Anywhere, anywhere),
    ] {
        assert_eq!(describe(text, &program, placement, Per::Source), expected, "{placement:?} of\n{text}");
    }
}

#[test]
fn between_statements() {
    check("shared x, y: 0..3;\nprocess P {\nx = 1;\nlet r = y;\n}\n", "3+", "4-", "3-, 3+, 4+");
    // Of places with the same effect the first one counts.
    check(
        "shared x, y: 0..3;\nprocess P {\nx = 1;\nlet r = 0;\nr = r + 1;\nr = y;\n}\n",
        "3+",
        "6-",
        "3-, 3+, 6+",
    );
    // A register is not shared memory, and a locked instruction waits anyway.
    check("shared x: 0..3;\nprocess P {\nlet r = 1;\nxchg(x, r);\n}\n", "", "", "3-, 4+");
}

#[test]
fn loops() {
    check(
        "shared x, y: 0..3;\nprocess P {\nx = 1;\nwhile y == 0 {\nx = 2;\nx = 3;\n}\nx = 0;\n}\n",
        "3+, 5+*, 6+*, 8+",
        "4-, 6+*",
        "3-, 3+, 5-*, 5+*, 6+*, 4+, 8+",
    );
    // Control never passes after a jump.
    check(
        "shared x, y: 0..3;\nprocess P {\nloop {\nx = 1;\nif y == 1 {\nx = 2;\ncontinue;\n}\n}\n}\n",
        "4+*, 6+*",
        "5-*",
        "3-, 4-*, 4+*, 6-*, 6+*, 5+*",
    );
}

#[test]
fn labels() {
    // A jump to the label passes only what comes after the label.
    let jump = "shared x, y: 0..3;\nprocess P {\nx = 1;\nl: y = x;\ngoto l;\n}\n";
    check(jump, "3+, 4+*", "4-*", "3-, 3+, 4-*, 4+*");
    // A loop returns to its label. A fence in between would change what the property refers to.
    let text = |property: &str| {
        format!("shared x, y: 0..3;\nprocess P {{\nx = 1;\nl: while y == 0 {{\nx = 2;\n}}\n}}\n{property}\n")
    };
    check(&text(""), "3+, 5+*", "4-, 5+*", "3-, 3+, 4-, 5-*, 5+*, 4+");
    check(&text("forbid P@l && x == 3;"), "3+, 5+*", "3+, 5+*", "3-, 3+, 5-*, 5+*, 4+");
}

#[test]
fn atomic_blocks_and_procedures() {
    check(
        "shared x, y: 0..3;\nproc f() {\nx = 1;\n}\nprocess P {\natomic {\nx = 2;\ny = x;\n}\nloop {\nf();\n}\n}\n",
        "3+*",
        "",
        "6-, 6+, 11-*, 11+*, 3-*, 3+*",
    );
}

#[test]
fn instances() {
    let text = "shared x[2], y: 0..3;\nprocess P(i: 0..1) {\nx[i] = 1;\n}\nprocess Q[2] {\ny = 1;\n}\n";
    assert_eq!(describe(text, &pal(text), Placement::AfterWrites, Per::Instance), "P(0) 3+, P(1) 3+, 6+");
    assert_eq!(describe(text, &pal(text), Placement::AfterWrites, Per::Source), "3+, 6+");
}

/// Transitions become statements and jumps. A fence is written next to the transition.
#[test]
fn transitions() {
    let text = "thread t\ninitial q0\ntransition q0 q1 write 1 0\ntransition q1 q2 read r 1\n\
                transition q1 q2 write 2 1\ntransition q2 q0 write 0 0\nend\n";
    let program = read(Language::Trencher, text);
    assert_eq!(describe(text, &program, Placement::AfterWrites, Per::Source), "3+*, 5+*, 6+*");
}
