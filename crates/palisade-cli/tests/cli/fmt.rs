//! `palisade fmt`: files and folders, standard input, `--check`, and what is refused.

use crate::common;

use common::{Ran, STORE_BUFFERING, Scratch};
use std::io::Write;
use std::process::Stdio;

const MESSY: &str = "shared x:0 .. 1; // one\nprocess P{\nx=1 ;\n}\n";
const NEAT: &str = "shared x: 0..1; // one\nprocess P {\n    x = 1;\n}\n";

/// Runs the command with this text as its standard input.
fn with_input(scratch: &Scratch, args: &[&str], input: &str) -> Ran {
    let mut command = scratch.command(args);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    Ran::new(child.wait_with_output().expect("it ends"))
}

#[test]
fn files_are_formatted_in_place() {
    let scratch = Scratch::new("fmt_files").file("a.pal", MESSY).file("b.pal", STORE_BUFFERING);
    let ran = scratch.run(&["fmt", "a.pal", "b.pal"]).exits(0);
    assert_eq!(ran.stdout, "changed  a.pal\nunchanged  b.pal\n");
    assert_eq!((scratch.read("a.pal").as_str(), scratch.read("b.pal").as_str()), (NEAT, STORE_BUFFERING));
    assert_eq!(scratch.run(&["fmt", "a.pal"]).exits(0).stdout, "unchanged  a.pal\n");
    assert_eq!(scratch.run(&["fmt", "a.pal", "-q"]).exits(0).stdout, "");
}

#[test]
fn check_changes_nothing() {
    let scratch = Scratch::new("fmt_check").file("d/a.pal", MESSY).file("d/b.pal", NEAT).file("d/c.rmm", "");
    let ran = scratch.run(&["fmt", "--check", "d"]).exits(1);
    assert_eq!(ran.stdout, "would-change  d/a.pal\nunchanged  d/b.pal\n");
    assert_eq!(scratch.read("d/a.pal"), MESSY);
    scratch.run(&["fmt", "d"]).exits(0);
    scratch.run(&["fmt", "--check", "d"]).exits(0);
}

#[test]
fn standard_input_is_printed() {
    let scratch = Scratch::new("fmt_stdin");
    assert_eq!(with_input(&scratch, &["fmt", "-"], MESSY).exits(0).stdout, NEAT);
    assert_eq!(with_input(&scratch, &["fmt", "-"], NEAT).exits(0).stdout, NEAT);
    assert_eq!(with_input(&scratch, &["fmt", "-", "--check"], MESSY).exits(1).stdout, "would-change  -\n");
    let json = with_input(&scratch, &["fmt", "-", "--format", "json"], "shared  x;").exits(0).stdout;
    assert!(json.contains(r#""state":"changed""#) && json.contains(r#""text":"shared x;\n""#), "{json}");
}

#[test]
fn what_cannot_be_formatted_stays_as_it_is() {
    let wrong = "shared x\nprocess P { x = ; y = ; }\n";
    let scratch = Scratch::new("fmt_refused").file("wrong.pal", wrong).file("a.pal", MESSY);
    let ran = scratch.run(&["fmt", "wrong.pal", "a.pal"]).exits(2);
    assert!(ran.stderr.matches("error[").count() >= 2, "{}", ran.stderr);
    assert_eq!((scratch.read("wrong.pal").as_str(), scratch.read("a.pal").as_str()), (wrong, NEAT));
}

/// The grammar decides, not the files that a program imports.
#[test]
fn imported_files_do_not_matter() {
    let program = "import \"gone.pal\" ;\nshared x:0 .. N;\nshared s :State = Idle;\nshared n: Node;\nprocess P{\nx=N ;\n}\n";
    let neat = "import \"gone.pal\";\nshared x: 0..N;\nshared s: State = Idle;\nshared n: Node;\nprocess P {\n    x = N;\n}\n";
    let scratch = Scratch::new("fmt_imports")
        .file("a.pal", program)
        .file("b.pal", "import \"c.pal\";\nshared x:0 .. 1;\n")
        .file("c.pal", "shared y = ;\n");
    assert_eq!(with_input(&scratch, &["fmt", "-"], program).exits(0).stdout, neat);
    assert_eq!(scratch.run(&["fmt", "a.pal", "b.pal"]).exits(0).stdout, "changed  a.pal\nchanged  b.pal\n");
    assert_eq!(scratch.read("a.pal"), neat);
    assert_eq!(scratch.read("b.pal"), "import \"c.pal\";\nshared x: 0..1;\n");
    let ran = with_input(&scratch, &["fmt", "-"], "import \"gone.pal\";\nshared x = ;\n").exits(2);
    assert!(ran.stderr.contains("-:2:12") && !ran.stderr.contains("import files"), "{}", ran.stderr);
}

#[test]
fn other_languages_are_refused_by_name() {
    let names = [
        ("a.rmm", "rmm"),
        ("a.litmus", "litmus"),
        ("a.txt", "trencher"),
        ("a.c", "C"),
        ("a.ll", "llvm"),
        ("a.rs", "Rust"),
    ];
    for (file, language) in names {
        let scratch = Scratch::new(&format!("fmt_{}", file.replace('.', "_"))).file(file, "text");
        let ran = scratch.run(&["fmt", file]).exits(2);
        let expected =
            format!("error[not-pal]: {file}: `palisade fmt` formats .pal files, but this one is {language}");
        assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
        assert_eq!(scratch.read(file), "text");
    }
    let ran = Scratch::new("fmt_odd").file("notes.md", "text").run(&["fmt", "notes.md"]).exits(2);
    assert!(ran.stderr.contains("does not end with .pal"), "{}", ran.stderr);
    Scratch::new("fmt_nothing").run(&["fmt"]).exits(2);
}
