//! `-D N=3`: values for constants, from the command line.

use crate::common;

use common::Scratch;

const TICKETS: &str = "\
const N = 2;
shared x: 0..9;
process P[N] { x = x + 1; }
final x == N;
";

#[test]
fn constants_are_recorded_with_runs_and_proofs() {
    let scratch = Scratch::new("constants")
        .file("lost.pal", TICKETS)
        .file("kept.pal", TICKETS.replace("x = x + 1", "fetch_add(x, 1)"))
        .file("other.pal", TICKETS.replace('N', "K"));
    let ran = scratch.run(&["check", "lost.pal", "-D", "N=1"]);
    assert!(ran.stdout.starts_with("safe  lost.pal: with N = 1"), "{}", ran.stdout);
    let ran = scratch.run(&["check", "lost.pal", "-DN=3", "--witness", "run.json"]);
    assert!(
        ran.stdout.starts_with("unsafe  lost.pal: with N = 3, ") && ran.stdout.contains("buffer P[2]"),
        "{}",
        ran.stdout
    );
    let ran = scratch.run(&["replay", "run.json"]);
    assert!(
        ran.stdout.starts_with("valid  run.json") && ran.stdout.contains("buffer P[2]"),
        "{}",
        ran.stdout
    );
    scratch.run(&["check", "kept.pal", "-D", "N=3", "--certificate", "proof.json"]);
    let ran = scratch.run(&["certify", "proof.json"]);
    assert!(ran.stdout.contains("with N = 3"), "{}{}", ran.stdout, ran.stderr);
    let ran = scratch.run(&["fences", "lost.pal", "-D", "N=1", "--diff"]);
    assert!(ran.stdout.contains("with N = 1"), "{}{}", ran.stdout, ran.stderr);
    // In a folder, each program takes the constants that it has.
    let ran = scratch.run(&["check", ".", "-D", "K=1", "-D", "N=1"]);
    assert_eq!(ran.stdout.matches("with N = 1").count(), 2, "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("with K = 1").count(), 1, "{}", ran.stdout);
}

#[test]
fn unknown_constants_are_errors() {
    let scratch = Scratch::new("constants_unknown")
        .file("lost.pal", TICKETS)
        .file("test.rmm", "forbidden\n  end\ndata\n")
        .file("main.c", "int main(void) { return 0; }\n");
    for (args, message) in [
        (["check", "lost.pal", "-D", "M=3"], "the program has no constant `M`"),
        (["check", ".", "-D", "M=3"], "no program here has a constant `M`"),
        (["check", "test.rmm", "-D", "N=3"], "-D sets constants of `.pal` programs"),
        (["check", "main.c", "-D", "N=3"], "`-- -DN=3`"),
        (["check", "lost.pal", "-D", "N"], "write the name and the value"),
        (["check", "lost.pal", "-D", "N=x"], "`x` is not a 64-bit integer"),
        (["check", "lost.pal", "-D", "=1"], "the name of the constant is missing"),
    ] {
        let ran = scratch.run(&args);
        assert!(ran.stderr.contains(message), "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, Some(2), "{args:?}");
    }
}

#[test]
fn fences_in_loops_are_one_place() {
    let text = "\
shared flag[2], mine[2]: bool;

process P(i: 0..1) {
    for k in 0..1 {
        flag[i] = true;
        mine[i] = !flag[1 - i];
        if mine[i] {
        cs: skip;
        }
        flag[i] = false;
    }
}

forbid exists p in P, q in P: p != q && p@cs && q@cs;
";
    let scratch = Scratch::new("fences_in_loops").file("two.pal", text);
    let ran = scratch.run(&["fences", "two.pal", "--write", "fenced.pal"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let fenced = std::fs::read_to_string(scratch.path("fenced.pal")).expect("it was written");
    assert!(fenced.contains("flag[i] = true;\n        fence;\n"), "{fenced}");
    assert_eq!(fenced.matches("fence;").count(), 1, "{fenced}");
    assert!(scratch.run(&["check", "fenced.pal"]).stdout.starts_with("safe"));
}

#[test]
fn values_of_enumerations_are_shown_by_their_names() {
    let text = "\
enum Light { Red, Green }
shared a, b: Light;
process P(of: Light) {
    let seen: Light = a;
    if of == Green { a = Green; }
    b = seen;
}
final b == Red;
";
    let scratch = Scratch::new("enumerations").file("lights.pal", text);
    let ran = scratch.run(&["check", "lights.pal", "--html", "page.html", "-v"]);
    let first = ran.stdout.lines().next().expect("a verdict");
    assert_eq!(first, "unsafe  lights.pal: at the end, b = Green (line 8: final b == Red)");
    for part in ["P(Green)", "store a = Green", "read a = Green", "b=Green"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let page = std::fs::read_to_string(scratch.path("page.html")).expect("a page");
    assert!(page.contains("\"Green\""), "the page shows names in memory");
    let ran = scratch.run(&["outcomes", "lights.pal"]);
    assert!(ran.stdout.contains("Green") && ran.stdout.contains("Red"), "{}", ran.stdout);
    let ran = scratch.run(&["show", "--as", "pal", "lights.pal"]);
    assert!(ran.stdout.starts_with("enum Light { Red, Green }\n\nshared a, b: Light;\n"), "{}", ran.stdout);
    // The names of generated variables differ from those of values.
    let ran = scratch.run(&["translate", "lights.pal", "--rounds", "1", "--to", "pal"]);
    let scratch = scratch.file("translated.pal", ran.stdout);
    assert_eq!(scratch.run(&["check", "translated.pal", "--model", "sc"]).code, Some(1));
}
