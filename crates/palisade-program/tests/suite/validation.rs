//! The errors and warnings of the validator.

use crate::common;

use common::list;
use palisade_base::{Severity, Source};
use palisade_syntax::{Language, parse};

/// Compares all diagnostics of a program. Each is a line `line:column id: message`; warnings are marked.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let diagnostics = match parse(Language::Pal, &Source::new("test.pal", text)) {
        Ok(parsed) => parsed.warnings,
        Err(diagnostics) => diagnostics,
    };
    let mark = |severity| if severity == Severity::Warning { "warning " } else { "" };
    let found: Vec<String> = diagnostics
        .iter()
        .map(|d| format!("{}{}", mark(d.severity), list(text, std::slice::from_ref(d)).trim_end()))
        .collect();
    assert_eq!(found, expected, "{text}");
}

/// The same for the body of a process, which starts on line 2.
#[track_caller]
fn check_body(body: &str, expected: &[&str]) {
    check(&format!("{PRELUDE}\n{body}}}"), expected);
}

const PRELUDE: &str = "shared x, y: 0..3; shared a[3]; proc f(n) -> int { return n; } proc g() { } \
    process Q(i: 0..1) on spawn { } process R { } process P(id: 0..1) {";

#[test]
fn valid_bodies() {
    for body in ["", "a[x] = 1; let r = f(x); g(); spawn Q(1); l: skip; goto l;"] {
        check_body(body, &[]);
    }
}

#[test]
fn unknown_names_are_reported_once() {
    check_body(
        "z = 1; xx = 1; z = 2;",
        &[
            "2:1 unknown-name: there is no variable or register `z`",
            "2:8 unknown-name: there is no variable or register `xx`",
        ],
    );
}

#[test]
fn names_declared_twice() {
    check_body(
        "let r; let r; let x; let id; skip; end: skip; l: skip; l: skip;",
        &[
            "2:12 duplicate-name: the register `r` is declared twice",
            "2:19 shadowed-name: the register `x` has the same name as a shared variable",
            "2:26 duplicate-name: the register `id` has the same name as a parameter",
            "2:36 reserved-label: the label `end` is reserved for the end of every body",
            "2:56 duplicate-label: the label `l` is declared twice",
        ],
    );
}

#[test]
fn arrays_and_scalars() {
    check_body(
        "a = 1; x = a; x[0] = 1; let r; r[0] = 1; id = 3; a[3] = 1; a[-1] = 2; a[1 + 2] = 2;",
        &[
            "2:1 array-without-index: `a` is an array",
            "2:12 array-without-index: `a` is an array",
            "2:15 not-an-array: `x` is not an array",
            "2:32 not-an-array: `r` is a register, not an array",
            "2:42 assigned-parameter: `id` is a parameter of the process and cannot be assigned",
            "2:52 out-of-bounds: the array `a` has no element 3",
            "2:62 out-of-bounds: the array `a` has no element -1",
            "2:73 out-of-bounds: the array `a` has no element 3",
        ],
    );
}

#[test]
fn only_shared_variables_have_addresses_and_locked_instructions() {
    check_body(
        "let r; r = &r; cas(r, 1, 2); r = &id; r = &a; r = fetch_add(id, 1);",
        &[
            "2:13 not-shared: `r` is a register: registers have no address",
            "2:20 not-shared: `r` is a register: `cas` works only on shared variables",
            "2:35 not-shared: `id` is a parameter: registers have no address",
            "2:44 array-without-index: `a` is an array",
            "2:61 not-shared: `id` is a parameter: `fetch_add` works only on shared variables",
        ],
    );
}

#[test]
fn labels_and_gotos() {
    check_body(
        "goto m; goto end; lab: skip; goto lap;",
        &[
            "2:6 unknown-label: there is no label `m` here",
            "warning 2:9 unreachable-code: this code is unreachable",
            "2:14 unknown-label: there is no label `end` here",
            "2:35 unknown-label: there is no label `lap` here",
        ],
    );
    check_body(
        "goto l; atomic { l: skip; goto l; atomic { goto l; } } atomic { goto l; }",
        &[
            "2:6 goto-into-atomic: `goto l` jumps into an atomic block",
            "warning 2:35 unreachable-code: this code is unreachable",
            "warning 2:56 unreachable-code: this code is unreachable",
            "2:70 goto-into-atomic: `goto l` jumps into an atomic block",
        ],
    );
}

#[test]
fn loops() {
    check_body(
        "break; continue; loop { break; } while x { atomic { continue; } }",
        &[
            "2:1 outside-loop: `break` is not inside a loop",
            "2:8 outside-loop: `continue` is not inside a loop",
            "warning 2:8 unreachable-code: this code is unreachable",
        ],
    );
}

#[test]
fn calls() {
    check_body(
        "h(); ff(1); f(); g(1); x = g(); x = f(1, 2);",
        &[
            "2:1 unknown-procedure: there is no procedure `h`",
            "2:6 unknown-procedure: there is no procedure `ff`",
            "2:13 wrong-arity: the procedure `f` takes 1 argument, not 0",
            "2:18 wrong-arity: the procedure `g` takes 0 arguments, not 1",
            "2:28 no-result: the procedure `g` does not return a value",
            "2:37 wrong-arity: the procedure `f` takes 1 argument, not 2",
        ],
    );
}

#[test]
fn results_and_spawns() {
    check_body("return 1;", &["2:8 unexpected-result: a process does not return a value"]);
    check_body(
        "spawn T(1); spawn R(); spawn Q(); spawn P(1);",
        &[
            "2:7 unknown-process: there is no process `T`",
            "2:19 not-spawnable: `R` starts automatically and cannot be spawned",
            "2:30 wrong-arity: the process `Q` takes 1 argument, not 0",
            "2:41 not-spawnable: `P` starts automatically and cannot be spawned",
        ],
    );
}

#[test]
fn observations() {
    check_body(
        "x = P(0)@l; x = count(P@l);",
        &[
            "2:5 observation-in-code: processes can be observed only in `forbid` and `final`",
            "2:17 observation-in-code: processes can be observed only in `forbid` and `final`",
        ],
    );
}

#[test]
fn constants_that_fault() {
    check_body(
        "x = 1 / 0; x = x % (2 - 2); x = 1 << 64; x = 9223372036854775807 + 1; x = -9223372036854775808 / -1;",
        &[
            "2:5 constant-fault: division by zero",
            "2:16 constant-fault: division by zero",
            "2:33 constant-fault: arithmetic overflow",
            "2:46 constant-fault: arithmetic overflow",
            "2:75 constant-fault: arithmetic overflow",
        ],
    );
}

#[test]
fn registers() {
    check_body(
        "r = 1; let r; r = 2;",
        &["2:1 used-before-declaration: the register `r` is used before it is declared"],
    );
    check_body(
        "let r: 1..2; let s: 2..1; let t: 1..2 = 1; x = any(3..1); x = any(0..99999999);",
        &[
            "2:5 outside-domain: without an initial value `r` is 0, which is outside its domain",
            "2:18 empty-domain: the domain 2..1 of `s` is empty",
            "2:48 empty-domain: the range 3..1 is empty",
            "2:63 too-many-choices: `any` chooses from more than 1048576 values",
        ],
    );
}

#[test]
fn unreachable_code() {
    check_body(
        "return; x = 1; y = 1; l: skip; goto l; { skip; } loop { x = 1; } fence; { m: skip; } x = 2;",
        &[
            "warning 2:9 unreachable-code: this code is unreachable",
            "warning 2:40 unreachable-code: this code is unreachable",
        ],
    );
    check_body("while true { } x = 1;", &["warning 2:16 unreachable-code: this code is unreachable"]);
    check_body("loop { if x { break; } } x = 1;", &[]);
}

#[test]
fn no_process() {
    check("", &["1:1 no-process: the program has no process that starts automatically"]);
    check(
        "process P on spawn { }",
        &["1:9 no-process: the program has no process that starts automatically"],
    );
}

#[test]
fn global_names_declared_twice() {
    check(
        "shared x, x; proc f() {} proc f() {} process P {} process P {}",
        &[
            "1:11 duplicate-name: the shared variable `x` is declared twice",
            "1:31 duplicate-name: the procedure `f` is declared twice",
            "1:59 duplicate-name: the process `P` is declared twice",
        ],
    );
}

#[test]
fn initial_values() {
    check(
        "shared a[0]; shared b[2] = [1]; shared c = [1]; shared d = *; shared e: 0..1 = 2; shared f: 1..3; shared g = x; shared h = &x; shared i = &b; shared j = &b[7]; shared k = 1/0; shared l[3]: bool = [0, *, 2]; process P {}",
        &[
            "1:8 empty-array: the array `a` has no cells",
            "1:21 wrong-initial-values: `b` has 2 cells, but the list of initial values has 1",
            "1:40 wrong-initial-values: `c` is not an array, but has a list of initial values",
            "1:56 any-without-domain: `d` can start with any value, but has no finite domain",
            "1:80 outside-domain: the initial value 2 of `e` is outside its domain",
            "1:90 outside-domain: the initial value 0 of `f` is outside its domain",
            "1:110 not-constant: the initial value of `g` is not a constant",
            "1:125 unknown-name: there is no shared variable `x`",
            "1:140 array-without-index: `b` is an array",
            "1:154 constant-fault: array index 7 is out of bounds",
            "1:172 constant-fault: division by zero",
            "1:204 outside-domain: the initial value 2 of `l` is outside its domain",
        ],
    );
}

#[test]
fn too_much_memory() {
    check(
        "shared a[1000000], b[1000000]; process P {}",
        &["1:20 too-many-cells: the shared variables have 2000000 cells; the limit is 1048576"],
    );
    check(
        "shared a[33]: bool = *; process P {}",
        &["1:8 too-many-initial-states: the program has more than 4294967296 initial states"],
    );
    check(
        "shared x: 0..9223372036854775807 = *; process P {}",
        &["1:8 too-many-initial-states: the program has more than 4294967296 initial states"],
    );
}

#[test]
fn parameters_and_counts() {
    check(
        "process P(i) {} process Q(i: 0..5000) {} process R(i: 3..1) {}",
        &[
            "1:11 infinite-parameter: the parameter `i` of a process has no finite domain",
            "1:25 too-many-roles: the parameters of `Q` have more than 4096 combinations of values",
            "1:52 empty-domain: the domain 3..1 of `i` is empty",
        ],
    );
    check(
        "process P[0] {} process Q[1000] {} process R[3] on spawn { }",
        &[
            "1:9 bad-count: `P` has no instances",
            "1:25 too-many-processes: the program starts 1000 processes; the limit is 256",
            "1:44 bad-count: `R` is started by `spawn`, so it cannot have a number of instances",
        ],
    );
    check(
        "process P(i, i: bool) {} shared x; proc f(x, y, y) -> 3..1 { return 1; }",
        &[
            "1:11 infinite-parameter: the parameter `i` of a process has no finite domain",
            "1:14 duplicate-name: the parameter `i` is declared twice",
            "1:41 empty-domain: the domain 3..1 of `f` is empty",
            "1:43 shadowed-name: the parameter `x` has the same name as a shared variable",
            "1:49 duplicate-name: the parameter `y` is declared twice",
        ],
    );
}

#[test]
fn results_of_procedures() {
    check(
        "proc f() -> int { return; } proc g() { return 1; } proc h() -> int { if 1 { return 1; } } process P { }",
        &[
            "1:19 missing-result: this procedure must return a value",
            "1:47 unexpected-result: this procedure does not return a value",
            "warning 1:57 missing-return: `h` can end without returning a value; the result is then 0",
        ],
    );
}

#[test]
fn processes_that_properties_refer_to() {
    check("process P { l: skip; let r; } process Q[2] { l: skip; } process R(i: 0..1) { l: skip; } process S[*] { l: skip; } process T(i: 0..1)[2] {l: skip;} process U on spawn { l: skip; let r; } process V(i: 0..1)[*] {l: skip;}
         forbid P@l && P@m && P.r == 1 && P.s == 1 && P[0]@l && P[1]@l && P()@l && P(1)@l;
         forbid Q@l && Q[1]@l && Q[2]@l && Q()@l;
         forbid R@l && R(0)@l && R(2)@l && R[1]@l && R[2]@l && R(0).i == 0 && R(0).j == 0 && R(0, 1)@l;
         forbid S@l && S[7]@l && S[9999]@l && S()@l && count(S@l) > 1 && count(S@k) > 1;
         forbid T@l && T(0)@l && T[3]@l && T[4]@l;
         forbid U@l && U.r == 1 && count(U@l) == 1;
         forbid V@l && V(0)@l && V[0]@l;
         forbid W@l && count(W@l) > 1;", &["2:26 unknown-label: the process `P` has no label `m`", "2:45 unknown-register: the process `P` has no register `s`", "2:65 no-such-process: `P` has no instance number 1", "2:84 wrong-arity: `P` takes 0 parameter values, not 1", "3:17 ambiguous-process: `Q` has several instances", "3:34 no-such-process: `Q` has no instance number 2", "3:44 ambiguous-process: `Q` has several instances", "4:17 ambiguous-process: `R` has several instances", "4:34 no-such-process: there is no such instance of `R`", "4:54 no-such-process: `R` has no instance number 2", "4:84 unknown-register: the process `R` has no register `j`", "4:94 wrong-arity: `R` takes 1 parameter value, not 2", "5:17 ambiguous-process: `S` has several instances", "5:34 no-such-process: the instance number 9999 of `S` is too large", "5:47 ambiguous-process: `S` has several instances", "5:82 unknown-label: the process `S` has no label `k`", "6:17 ambiguous-process: `T` has several instances", "6:24 ambiguous-process: `T` has several instances", "6:44 no-such-process: `T` has no instance number 4", "7:17 not-initial: `U` is started by `spawn`, so its instances cannot be named", "7:24 not-initial: `U` is started by `spawn`, so its instances cannot be named", "8:17 ambiguous-process: `V` has several instances", "8:24 ambiguous-process: `V` has several instances", "8:34 ambiguous-process: `V` has several instances", "9:17 unknown-process: there is no process `W`", "9:30 unknown-process: there is no process `W`"]);
}

#[test]
fn properties_execute_nothing() {
    check(
        "shared x, a[2]; proc f() -> int { return 1; } process P { let r; } final f() == 1 || cas(x, 0, 1) || any(0..1) == 1 || r == 1 || x[0] == 1 || a == 1 || a[2] == 1 || a[x] == 1 || *x == 1 || &x == 1 || 1 / 0 == 1 || a[1/0] == 1;",
        &[
            "1:74 step-in-property: a property describes a state and cannot execute anything",
            "1:86 step-in-property: a property describes a state and cannot execute anything",
            "1:102 step-in-property: a property describes a state and cannot execute anything",
            "1:120 unknown-name: there is no shared variable `r`",
            "1:130 not-an-array: `x` is not an array",
            "1:143 array-without-index: `a` is an array",
            "1:155 out-of-bounds: the array `a` has no element 2",
            "1:168 not-constant: an index in a property must be a constant",
            "1:179 pointer-in-property: a property cannot dereference pointers",
            "1:201 constant-fault: division by zero",
            "1:217 constant-fault: division by zero",
        ],
    );
}

#[test]
fn similar_names_are_suggested() {
    let help = |text: &str| match parse(Language::Pal, &Source::new("test.pal", text)) {
        Ok(_) => None,
        Err(diagnostics) => diagnostics[0].help.clone(),
    };
    let check = |text: &str, expected: &str| assert_eq!(help(text).as_deref(), Some(expected), "{text}");
    check("shared flag; process P { falg = 1; }", "did you mean `flag`?");
    check("process P { let count1 = 1; conut1 = 2; }", "did you mean `count1`?");
    check("process P { critical: skip; } forbid P@crtical;", "did you mean `critical`?");
    check("process Worker { l: skip; } forbid Wroker@l;", "did you mean `Worker`?");
    check("proc lock() {} process P { lokc(); }", "did you mean `lock`?");
}

#[test]
fn parameters_of_procedures_are_assignable() {
    check("proc f(n) -> int { n = n + 1; return n; } process P { f(1); }", &[]);
}

#[test]
fn very_large_programs_are_rejected() {
    let text = format!("shared x; process P(i: 0..4095)[*] {{ {} }}", "x = 1; ".repeat(2000));
    check(
        &text,
        &[
            "1:11 too-large: the program is too large: its processes together have more than 8388608 statements and expressions",
        ],
    );
}

#[test]
fn private_variables() {
    check("shared x; private p, q: 0..3; proc f(n) { p = n; } process P { q = p; f(q); x = q; }", &[]);
    check(
        "shared x; private p, x, p; private q: 1..2; proc f(p) { } process P { let q; p[0] = 1; x = &q; cas(p, 0, 1); } forbid P.p == 1;",
        &[
            "1:22 shadowed-name: the private variable `x` has the same name as a shared variable",
            "1:25 duplicate-name: the private variable `p` is declared twice",
            "1:36 outside-domain: `q` starts at 0, which is outside its domain",
            "1:52 shadowed-name: the parameter `p` has the same name as a private variable",
            "1:75 shadowed-name: the register `q` has the same name as a private variable",
            "1:78 not-an-array: `p` is a register, not an array",
            "1:93 not-shared: `q` is a register: registers have no address",
            "1:100 not-shared: `p` is a register: `cas` works only on shared variables",
            "1:121 unknown-register: the process `P` has no register `p`",
        ],
    );
}
