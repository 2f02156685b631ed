//! Fences inserted into texts of every language: the text is as expected, it has the right meaning, and
//! nothing else changes.

use palisade_base::{Diagnostic, Source, Span};
use palisade_conformance::brute::{self, Scope};
use palisade_memory::{Machine, Model};
use palisade_program::written::{Block, Program, StmtKind};
use palisade_program::{Instantiation, lower};
use palisade_syntax::edit::{FenceAt, FenceKind, Side, insert_fences};
use palisade_syntax::{Language, parse};
use std::collections::BTreeSet;

fn program(language: Language, text: &str) -> Program {
    let source = Source::new("test", text);
    parse(language, &source).unwrap_or_else(|errors| panic!("{errors:#?}\nin\n{text}")).program
}

fn insert(language: Language, text: &str, fences: &[FenceAt]) -> Result<String, Vec<Diagnostic>> {
    insert_fences(language, &Source::new("test", text), fences)
}

fn walk(block: &Block, visit: &mut impl FnMut(&StmtKind, Span)) {
    for statement in block {
        visit(&statement.kind, statement.span());
        statement.kind.blocks().into_iter().for_each(|body| walk(body, visit));
    }
}

/// The spans of all statements, and of all fences.
fn places(program: &Program) -> (BTreeSet<Span>, BTreeSet<Span>) {
    let (mut all, mut fences) = (BTreeSet::new(), BTreeSet::new());
    let mut visit = |kind: &StmtKind, span: Span| {
        all.insert(span);
        if matches!(kind, StmtKind::Fence | StmtKind::StoreFence) {
            fences.insert(span);
        }
    };
    program.templates.iter().for_each(|template| walk(&template.body, &mut visit));
    program.procedures.iter().for_each(|procedure| walk(&procedure.body, &mut visit));
    all.remove(&Span::NONE);
    (all, fences)
}

/// The statement whose text begins with the given words. The prefix `«n» ` selects the n-th one, counted from
/// 0.
#[track_caller]
fn statement(language: Language, text: &str, words: &str) -> Span {
    let (number, words) = match words.split_once("» ") {
        Some((number, words)) => (number.trim_start_matches('«').parse().expect("a number"), words),
        None => (0, words),
    };
    let (all, _) = places(&program(language, text));
    let mut found = all.into_iter().filter(|span| text[span.start as usize..].starts_with(words));
    found.nth(number).unwrap_or_else(|| panic!("no statement `{words}` in\n{text}"))
}

fn fence(span: Span, side: Side, kind: FenceKind) -> FenceAt {
    FenceAt { span, side, kind }
}

/// Inserts full fences beside statements: `"after x = 1"`. With an `s` before the side, it inserts
/// store-store fences.
#[track_caller]
fn insert_at(language: Language, text: &str, wanted: &[&str]) -> Result<String, Vec<Diagnostic>> {
    let fences: Vec<FenceAt> = wanted
        .iter()
        .map(|wanted| {
            let (side, words) = wanted.split_once(' ').expect("a side and a statement");
            let kind = if side.starts_with('s') { FenceKind::StoreStore } else { FenceKind::Full };
            let side = if side.ends_with("before") { Side::Before } else { Side::After };
            fence(statement(language, text, words), side, kind)
        })
        .collect();
    insert(language, text, &fences)
}

#[track_caller]
fn check(language: Language, text: &str, wanted: &[&str], expected: &str) {
    let found = insert_at(language, text, wanted).unwrap_or_else(|errors| panic!("{errors:#?}\nin\n{text}"));
    assert_eq!(found, expected, "\n{found}");
}

#[track_caller]
fn rejected(language: Language, text: &str, wanted: &[&str], ids: &[&str]) {
    let errors = insert_at(language, text, wanted).expect_err("the fence is rejected");
    assert_eq!(errors.iter().map(|error| error.id).collect::<Vec<_>>(), ids);
}

fn verdict(language: Language, text: &str) -> &'static str {
    let system = lower(&program(language, text), Instantiation { any: 1, every: None });
    brute::check(Machine::new(&system, Model::Tso), Scope::states(100_000)).word()
}

/// Store buffering: the inserted fences make it safe under TSO, and they are where they should be in the
/// program.
#[track_caller]
fn check_store_buffering(language: Language, text: &str, wanted: &[&str], expected: &str, kinds: &[&str]) {
    check(language, text, wanted, expected);
    assert_eq!(verdict(language, text), "unsafe");
    assert_eq!(verdict(language, expected), "safe");
    for template in &program(language, expected).templates {
        let found: Vec<&str> = template
            .body
            .iter()
            .filter_map(|statement| match statement.kind {
                StmtKind::Fence => Some("fence"),
                StmtKind::Assign { .. } => Some("assign"),
                _ => None,
            })
            .collect();
        assert_eq!(found, kinds, "{}", template.name);
    }
}

#[test]
fn store_buffering_in_pal() {
    let text = "\
// Store buffering.
shared x, y: 0..1;
process P {
    x = 1; // publish
    let r = y;
}
process Q { let r = 0; y = 1; r = x; }
final P.r == 1 || Q.r == 1;
";
    let expected = "\
// Store buffering.
shared x, y: 0..1;
process P {
    x = 1; // publish
    fence;
    let r = y;
}
process Q { let r = 0; y = 1; fence; r = x; }
final P.r == 1 || Q.r == 1;
";
    check(Language::Pal, text, &["after x = 1", "after y = 1"], expected);
    assert_eq!((verdict(Language::Pal, text), verdict(Language::Pal, expected)), ("unsafe", "safe"));
}

#[test]
fn store_buffering_in_rmm() {
    check_store_buffering(
        Language::Rmm,
        "\
forbidden A A
data x = 0 : [0:1] y = 0 : [0:1]
process registers $r = 0 : [0:1]
text
  write: x := 1; /* publish */
  read: $r := y;
  assume: $r = 0;
  A: nop
process registers $r = 0 : [0:1]
text L: write: y := 1; read: $r := x; assume: $r = 0; A: nop
",
        &["after write: x", "before read: $r := x"],
        "\
forbidden A A
data x = 0 : [0:1] y = 0 : [0:1]
process registers $r = 0 : [0:1]
text
  write: x := 1; /* publish */
  fence;
  read: $r := y;
  assume: $r = 0;
  A: nop
process registers $r = 0 : [0:1]
text L: write: y := 1; fence; read: $r := x; assume: $r = 0; A: nop
",
        &["assign", "fence", "assign"],
    );
}

#[test]
fn store_buffering_in_litmus() {
    check_store_buffering(
        Language::Litmus,
        "\
X86 SB
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ; (* stores *)
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
",
        &["after MOV [x]", "after MOV [y]"],
        "\
X86 SB
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ; (* stores *)
 MFENCE      | MFENCE      ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
",
        &["assign", "fence", "assign"],
    );
}

#[test]
fn store_buffering_in_trencher() {
    check_store_buffering(
        Language::Trencher,
        "\
thread left
initial q0
final q3
    transition q0 q1 write 1 0 # publish
    transition q1 q2 read r 1
    transition q2 q3 check == r 0
end
thread right initial q0 final q3 transition q0 q1 write 1 1 transition q1 q2 read r 0 transition q2 q3 check == r 0 end
",
        &["after transition q0 q1 write 1 0", "before «1» transition q1 q2"],
        "\
thread left
initial q0
final q3
    transition q0 q1_f write 1 0 # publish
    transition q1_f q1 mfence
    transition q1 q2 read r 1
    transition q2 q3 check == r 0
end
thread right initial q0 final q3 transition q0 q1 write 1 1 transition q1 q1_f2 mfence transition q1_f2 q2 read r 0 transition q2 q3 check == r 0 end
",
        &["assign", "fence", "assign"],
    );
}

#[test]
fn places_in_pal() {
    let text = "\
shared x: 0..3;
process P {
    if x == 0 {
        x = 1;
    } else if x == 1 { x = 2; }
l:  while x == 2 {} /* wait
    */ x = 3; }
process Q { loop { a: b: x = 0; if x == 1 { goto end_of_it; } } end_of_it: }
forbid P@l;
";
    let with = |from: &str, to: &str| text.replacen(from, to, 1);
    let check = |wanted: &[&str], expected: String| check(Language::Pal, text, wanted, &expected);
    check(&["after x = 1"], with("        x = 1;\n", "        x = 1;\n        fence;\n"));
    check(&["sbefore x = 1"], with("        x = 1;\n", "        sfence;\n        x = 1;\n"));
    check(&["before if x == 1"], with("else if x == 1 { x = 2; }", "else { fence; if x == 1 { x = 2; } }"));
    check(&["after if x == 1"], with("else if x == 1 { x = 2; }", "else { if x == 1 { x = 2; } fence; }"));
    check(&["after if x == 0"], with("{ x = 2; }\n", "{ x = 2; }\n    fence;\n"));
    check(&["before while"], with("l:  while", "l:  fence; while"));
    check(&["after while"], with("{} /*", "{} fence; /*"));
    check(&["before x = 0"], with("b: x = 0;", "b: fence; x = 0;"));
    check(&["after x = 0"], with("x = 0; if", "x = 0; fence; if"));
    check(&["after loop"], with("} } end_of_it:", "} } fence; end_of_it:"));
    check(&["before end_of_it: }"], with("end_of_it: }", "end_of_it: fence; }"));
    check(&["sbefore x = 0", "before x = 0", "before x = 0"], with("b: x", "b: fence; x"));
    check(
        &["before x = 2", "after x = 2", "after if x == 1", "before if x == 1"],
        with("if x == 1 { x = 2; }", "{ fence; if x == 1 { fence; x = 2; fence; } fence; }"),
    );
    check(&[], text.to_owned());
}

#[test]
fn lines_keep_their_breaks() {
    let text = "shared x: 0..1;\r\nprocess P {\r\n\tx = 1;\r\n}\r\n";
    let fenced = "shared x: 0..1;\r\nprocess P {\r\n\tfence;\r\n\tx = 1;\r\n\tfence;\r\n}\r\n";
    check(Language::Pal, text, &["before x", "after x"], fenced);
}

const RMM: &str = "\
forbidden * B
macro twice(v) write: v := 1; write: v := 0 endmacro
macro one() 1 endmacro
data x = 0 : [0:3] y = 0 : [0:3]
process registers $r = 0 : [0:3] $p = 0 : [0:3]
text
  A: if $r = 0 then if $r = 1 then write: x := 1 else write: x := 2;
  while $r < 2 do { read: $r := y };
  either{ write: [$p] := one() or twice(y); nop };
  locked{ read: x = 1; write: x := 3 }
process text
  B: nop;
  C: write: y := 2
";

#[test]
fn places_in_rmm() {
    let with = |from: &str, to: &str| RMM.replacen(from, to, 1);
    let check = |wanted: &[&str], expected: String| check(Language::Rmm, RMM, wanted, &expected);
    check(&["before if $r = 0"], with("A: if", "A: fence; if"));
    check(&["after if $r = 0"], with("x := 2;\n", "x := 2;\n     fence;\n"));
    check(
        &["after if $r = 1"],
        with(
            "if $r = 1 then write: x := 1 else write: x := 2",
            "{ if $r = 1 then write: x := 1 else write: x := 2; fence }",
        ),
    );
    check(&["after write: x := 1"], with("write: x := 1", "{ write: x := 1; fence }"));
    check(
        &["before write: x := 2", "after write: x := 2", "after if $r = 1"],
        with(
            "if $r = 1 then write: x := 1 else write: x := 2",
            "{ if $r = 1 then write: x := 1 else { fence; write: x := 2; fence }; fence }",
        ),
    );
    check(&["after read: $r"], with("read: $r := y }", "read: $r := y; fence }"));
    check(&["safter write: [$p]"], with("one() or", "one(); ssfence or"));
    check(&["before write: [$p]"], with("{ write: [$p]", "{ fence; write: [$p]"));
    check(&["after nop }"], with("nop }", "nop; fence }"));
    check(&["before locked"], with("locked{", "fence;\n  locked{"));
    check(&["after locked"], with("x := 3 }\n", "x := 3 };\n  fence\n"));
    check(&["after write: y := 2"], with("y := 2\n", "y := 2;\n     fence\n"));
    rejected(Language::Rmm, RMM, &["after write: v", "before write: v"], &["fence-in-macro"; 1]);
    rejected(Language::Rmm, RMM, &["after write: x := 3"], &["fence-in-locked-block"]);
    rejected(Language::Rmm, RMM, &["before $p = 0"], &["no-such-statement"]);
}

const LITMUS: &str = "\
X86_64 loop
{ uint64_t x = 0; 0:rdx = x; }
 P0             | P1;
 movq $1,(%rdx) | lock; incq (x) ;
 L: cmpq $1,(y) | movq $2,(y) ; movq (z),%rax | movq $1,(z);
 jne L          | E: ;
exists (x=1)
";

#[test]
fn places_in_litmus() {
    let with = |from: &str, to: &str| LITMUS.replacen(from, to, 1);
    let check = |wanted: &[&str], expected: String| check(Language::Litmus, LITMUS, wanted, &expected);
    check(
        &["before movq $1,(%rdx)"],
        with(" movq $1,(%rdx)", " mfence         |                ;\n movq $1,(%rdx)"),
    );
    check(&["safter lock"], with("(x) ;\n", "(x) ;\n                | sfence         ;\n"));
    check(&["before cmpq"], with(" L: cmpq", " L: mfence      |             ;\n    cmpq"));
    check(&["after movq $2"], with("(y) ; ", "(y) ; | mfence ; "));
    check(&["before movq (z)"], with("movq (z)", "mfence | ; movq (z)"));
    check(&["after movq (z)", "after movq $1,(z)"], with("(z);\n", "(z); mfence | mfence ;\n"));
    check(&["before E:"], with("E: ;\n", "E: ;\n                | mfence ;\n"));
}

const TRENCHER: &str = "\
thread t
initial q0
  transition q0 q1 read r 0
  transition q1 q0 check == r 0
  transition q1 q2 check == r 1
  transition q1 q3 check > r 1
  transition q2 q3 lock
  transition q3 q4 write 1 0
  transition q4 q5 noop
end
";

#[test]
fn places_in_trencher() {
    let with = |from: &str, to: &str| TRENCHER.replacen(from, to, 1);
    let check = |wanted: &[&str], expected: String| check(Language::Trencher, TRENCHER, wanted, &expected);
    check(&["after transition q0"], with("q0 q1 read r 0", "q0 q1_f read r 0\n  transition q1_f q1 mfence"));
    check(&["before transition q1 q2"], with("q1 q2 check", "q1 q1_f mfence\n  transition q1_f q2 check"));
    let whole = with("transition q1 q0", "transition q1 q1_f mfence\n  transition q1_f q0");
    let whole = whole
        .replace("transition q1 q2", "transition q1_f q2")
        .replace("transition q1 q3", "transition q1_f q3");
    check(&["before transition q1 q0", "before transition q1 q3"], whole);
    rejected(Language::Trencher, TRENCHER, &["safter transition q0"], &["no-store-fence"]);
    rejected(Language::Trencher, TRENCHER, &["before q5"], &["no-such-statement"]);
}

#[test]
fn spans_that_are_not_statements_are_rejected() {
    let text = "shared x: 0..1; process P { x = 1; }";
    let spans = [Span::NONE, Span::new(3..5), Span::new(90..95)];
    let fences = spans.map(|span| fence(span, Side::After, FenceKind::Full));
    let errors = insert(Language::Pal, text, &fences).expect_err("these are not statements");
    let ids: Vec<&str> = errors.iter().map(|error| error.id).collect();
    assert_eq!(ids, ["not-written", "no-such-statement", "no-such-statement"]);
    assert!(insert(Language::Pal, "process P { x = 1; ", &[]).is_err());
}

/// Beside every statement of a program, a fence is either inserted or rejected for a known reason. If it is
/// inserted, the program has one more fence.
fn everywhere(language: Language, text: &str, refusals: &[&str]) {
    let (all, before) = places(&program(language, text));
    let mut put = 0;
    for &span in &all {
        for side in [Side::Before, Side::After] {
            match insert(language, text, &[fence(span, side, FenceKind::Full)]) {
                Ok(fenced) => {
                    let (_, after) = places(&program(language, &fenced));
                    assert_eq!(after.len(), before.len() + 1, "{side:?} {}\n{fenced}", &text[span.range()]);
                    put += 1;
                }
                Err(errors) => {
                    let known = errors.iter().all(|error| refusals.contains(&error.id));
                    assert!(known, "{side:?} {}: {errors:#?}", &text[span.range()]);
                }
            }
        }
    }
    assert!(put >= 6, "only {put} places in\n{text}");
}

#[test]
fn fences_everywhere() {
    for text in [
        "shared x, y: 0..1; process P { x = 1; fence; let r = y; } process Q { y = 1; }",
        "shared a[2]: 0..3;
         proc f(n: 0..3) -> bool { if n == 0 { return cas(a[0], 0, 1); } else if n == 1 { return true; } else { skip; } return f(n - 1); }
         process P(i: 0..1) {
             loop { choose { a[i] = 1; } or { await a[1 - i] == 1; break; } }
             atomic { a[0] = 2; a[1] = 3; }
             { l: m: a[i] = 0; /* a } in a comment */ }
             while a[0] == 0 { if a[1] == 0 { continue; } } // a { too
             if f(2) { goto out; }
             spawn Q;
         out:
         }
         process Q on spawn { assert(a[0] >= 0); assume(a[1] == 0); xchg(a[0], 1); return; }",
    ] {
        everywhere(Language::Pal, text, &[]);
    }
    everywhere(Language::Rmm, RMM, &["fence-in-macro", "fence-in-locked-block", "no-such-statement"]);
    everywhere(
        Language::Rmm,
        "forbidden A B C data x = 0 : Z process(2) data y = * : [0:1] registers $r = * : [0:1]
         text write: y[my] := 1; if $r = 0 then A: read: y[0] = 0; B: syncrd: $r := x; while true do C: slocked write: x := 1
         process text C: either{ either{ cas(x,0,1) or nop }; goto C or {nop; nop} }; assume: [true]",
        &["no-such-statement"],
    );
    everywhere(Language::Litmus, LITMUS, &[]);
    everywhere(
        Language::Litmus,
        "X86 t\n{}\nP0 | P1 ;\nmov eax, 1 | xchg [x], eax ; L: | mov ebx, [y] ;\n dec eax | M: add dword ptr [x], 2;\n\
         jnz L | cmp ebx, 0 ; | je M ;\nlocations [x; y;]\nforall (x=0 \\/ 1:ebx=0)\n",
        &[],
    );
    everywhere(Language::Trencher, TRENCHER, &["no-such-statement"]);
}

#[test]
fn fences_under_a_condition() {
    use palisade_syntax::edit::insert_conditional_fences;
    let text = "\
shared x, y: 0..1;
process P(i: 0..1) {
    x = 1;      // publish
    if x == 1 { y = 1; } else if y == 0 { x = 0; }
l:
}
";
    let check = |wanted: &[(&str, Side, FenceKind, Option<&str>)], expected: &str| {
        let fences: Vec<(FenceAt, Option<String>)> = wanted
            .iter()
            .map(|(words, side, kind, condition)| {
                let at = fence(statement(Language::Pal, text, words), *side, *kind);
                (at, condition.map(str::to_owned))
            })
            .collect();
        let found = insert_conditional_fences(Language::Pal, &Source::new("test", text), &fences);
        let found = found.unwrap_or_else(|errors| panic!("{errors:#?}"));
        assert_eq!(found.text(), expected, "\n{}", found.text());
    };
    let zero = Some("i == 0");
    check(
        &[("x = 1", Side::After, FenceKind::Full, zero)],
        &text.replace("// publish\n", "// publish\n    if i == 0 { fence; }\n"),
    );
    check(
        &[
            ("x = 1", Side::Before, FenceKind::StoreStore, zero),
            ("x = 0", Side::After, FenceKind::Full, None),
        ],
        &text
            .replace("    x = 1;", "    if i == 0 { sfence; }\n    x = 1;")
            .replace("x = 0;", "x = 0; fence;"),
    );
    check(
        &[("if y", Side::Before, FenceKind::Full, Some("i == 0 || i == 1"))],
        &text.replace("if y == 0 { x = 0; }", "{ if i == 0 || i == 1 { fence; } if y == 0 { x = 0; } }"),
    );
    check(&[("l", Side::Before, FenceKind::Full, zero)], &text.replace("l:", "l: if i == 0 { fence; }"));

    let rmm =
        "forbidden A *\ndata x = 0 : [0:1]\nprocess text A: write: x := 1\nprocess text write: x := 0\n";
    let at = fence(statement(Language::Rmm, rmm, "write: x := 1"), Side::After, FenceKind::Full);
    let rejected = insert_conditional_fences(
        Language::Rmm,
        &Source::new("test", rmm),
        &[(at, Some("me == 0".to_owned()))],
    );
    assert_eq!(
        rejected.expect_err("a fence in `.rmm` cannot have a condition")[0].id,
        "no-conditional-fence"
    );
}
